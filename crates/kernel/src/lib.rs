//! Scenarios over the kernel's own TCP: its connections between two namespaces, behind the scenario's
//! links.
//!
//! All senders are in one namespace, all receivers in another, and what the kernel sends from one to
//! the other crosses the links of the run in real time ([`weir_links::emulator`]). Flow `i` has port 6000 +
//! `i`. The router works on the calling thread; one thread drives all senders and asks the kernel how
//! its connections are (`TCP_INFO`), one takes what arrives. Flows of our own ([`Ends::Weir`](weir_scene::Ends::Weir)
//! (weir_scene::Ends::Weir), and all bare datagrams) live on the router's thread and share the links.

#![cfg(target_os = "linux")]

mod check;
mod diag;
mod hosts;
mod info;
mod machine;
mod netem;
mod own;
pub mod packetdrill;
mod processes;
mod programs;
mod receivers;
mod record;
mod senders;
mod shared;
mod site;
mod sockets;
mod verdict;

use std::io;
use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread::{ScopedJoinHandle, scope};

use weir_scene::{
    Flow, HeapQueue, KernelFlow, Network, Outcome, PathStats, Router, Run, RunSpec, SpecError,
    Violation, validate,
};
use weir_sockets::clock::{Alarm, TimerSlackGuard};
use weir_trace::{Capture, Histogram, SampleRow};
use weir_units::{Duration, Instant};

use self::check::kernel_config;
pub use self::hosts::{
    FlowLatency, HostPart, MeasuredHost, PathLog, SharedPathLog, check_between_hosts, merge,
};
use self::info::TcpInfoReader;
use self::machine::{Machine, Setting};
use self::netem::{Netem, Routers};
use self::own::OwnFlows;
use self::programs::ProgramFlows;
use self::receivers::Receiver;
pub use self::record::HostRecord;
use self::record::LoggedFlow;
use self::senders::{Context, FlowEvent, Legacy, Sender, Senders};
use self::shared::Shared;
use self::site::Namespaces;
pub use self::sockets::FIRST_PORT;
use self::verdict::HostLoad;
use weir_links::emulator::{Emulator, EmulatorError, NamespaceError, Options};
use weir_links::health::thread_cpu_time;

/// A run that could not be made, was broken off, or must not be believed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The description cannot be run anywhere.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The kernel cannot do what the description asks of a flow.
    #[error("flow '{flow}': {problem}")]
    Unfit {
        /// The flow.
        flow: String,
        /// What of it, and why.
        problem: String,
    },
    /// The kernel's netem cannot stand in for the links of a flow.
    #[error("router netem: flow '{flow}': {problem}")]
    Netem {
        /// The flow.
        flow: String,
        /// What of its path, and why.
        problem: String,
    },
    /// A program of a flow cannot do its work.
    #[error("flow '{flow}': {problem}")]
    Program {
        /// The flow.
        flow: String,
        /// Which program, and what it said.
        problem: String,
    },
    /// This machine, or who runs us on it, lacks something.
    #[error("{0}")]
    Missing(String),
    /// There is no namespace to be had.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// There is no network to be had between the namespaces.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The system refused something on the way.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        error: io::Error,
    },
    /// The record of a host does not fit the run.
    #[error("host '{host}': {problem}")]
    Host {
        /// Its name.
        host: String,
        /// What of its record, and why.
        problem: String,
    },
    /// Its watcher stopped it.
    #[error("the run was broken off")]
    Stopped,
    /// A checker found the program at fault, not the description.
    #[error(transparent)]
    Check(#[from] Violation),
}

impl KernelError {
    fn of_netem(error: io::Error) -> Self {
        Self::System { what: "working with netem", error }
    }
}

/// Refuses what this machine lacks, and what its kernel cannot host.
///
/// # Errors
/// For the first such thing.
pub fn check(spec: &RunSpec, router: Router) -> Result<(), KernelError> {
    check_for(spec, router, &Machine::detect()?.controllers)
}

/// Refuses what a kernel with these congestion controls cannot host, wherever it is.
///
/// # Errors
/// For the first such thing.
pub fn check_for(
    spec: &RunSpec,
    router: Router,
    controllers: &[String],
) -> Result<(), KernelError> {
    check::check(spec, controllers, router)?;
    match router {
        Router::Weir => Ok(()),
        Router::Netem => Netem::of(spec).map(drop),
    }
}

/// Runs `spec` in real time over the kernel's TCP; `watch` receives the time of the run many times a
/// second and may stop it. The randomness of links and applications comes from `seed`; packets are
/// recorded if `capture` asks for it.
///
/// # Errors
/// If this machine lacks something, its kernel cannot host the description, the system refuses what
/// it takes, `watch` breaks the run off, or a checker finds the program at fault.
pub fn run(
    spec: &RunSpec,
    seed: u64,
    router: Router,
    capture: Option<&Capture>,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, KernelError> {
    validate(spec)?;
    let machine = Machine::detect()?;
    check_for(spec, router, &machine.controllers)?;
    // The capacity of each route comes from links that no packet crosses.
    let idle = Network::<HeapQueue>::new(spec, seed)?;
    let settings = machine::settings(spec, &idle);
    let netem = match router {
        Router::Weir => None,
        Router::Netem => Some(Netem::of(spec)?),
    };
    let spec = netem.as_ref().map_or(spec, |netem| &netem.wires);
    let site = Namespaces::prepare(spec, settings)?;
    let routers = netem.as_ref().map(|netem| netem.join(site.ends())).transpose();
    let routers = routers.map_err(KernelError::of_netem)?;
    let _alarm = Alarm::set();
    let _punctual = TimerSlackGuard::set();
    let options = Options { capture: capture.cloned(), ..site::options(spec) };
    let ends = routers.as_ref().map_or(site.ends(), Routers::ends);
    let mut emulator = Emulator::open(spec, seed, ends, &options)?;
    let devices = options.devices.each_ref().map(|device| device.address);
    let address = match &routers {
        Some(routers) => routers.start(devices).map_err(KernelError::of_netem)?,
        None => devices[1],
    };
    let address = |index: u16| SocketAddrV4::new(address, FIRST_PORT + index);
    let Namespaces { sending, receiving, connectors, listeners, settings } = site;
    let programs = ProgramFlows::start(spec, seed, [&sending, &receiving])?;
    if !programs.is_empty() {
        programs.count_packets(&mut emulator);
        // What went before is not of the run.
        emulator.restart_clock();
    }
    let sockets = Sockets { connectors, listeners };
    let world = World::new(spec, seed, emulator, routers, programs);
    world.run(sockets, machine.info_reader, address, &settings, watch)
}

/// The sockets of the kernel's flows.
struct Sockets {
    connectors: Vec<Option<OwnedFd>>,
    listeners: Vec<Option<OwnedFd>>,
}

/// A run in progress, on the router's thread.
struct World<'a> {
    run: Run<&'a RunSpec>,
    end: Instant,
    emulator: Emulator,
    /// Those with the kernel's netem, if it stands in for our links.
    routers: Option<Routers>,
    own: OwnFlows,
    programs: ProgramFlows<'a>,
    /// Of flows between programs.
    samples: Vec<SampleRow>,
    next_sample: Option<Instant>,
    is_warm: bool,
    /// Per flow, what had been dropped when the warm-up was over.
    dropped_before: Vec<u64>,
}

impl<'a> World<'a> {
    fn new(
        spec: &'a RunSpec,
        seed: u64,
        mut emulator: Emulator,
        routers: Option<Routers>,
        programs: ProgramFlows<'a>,
    ) -> Self {
        let run = Run::new(spec, seed);
        Self {
            end: run.end(),
            own: OwnFlows::new(spec, seed, &mut emulator),
            emulator,
            routers,
            programs,
            samples: Vec::new(),
            next_sample: run.first_sample(),
            run,
            is_warm: false,
            dropped_before: vec![0; spec.flows.len()],
        }
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    fn run(
        mut self,
        sockets: Sockets,
        info_reader: TcpInfoReader,
        address: impl Fn(u16) -> SocketAddrV4,
        settings: &[Setting],
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<Outcome, KernelError> {
        // This thread may have executed other runs before.
        let cpu_before = thread_cpu_time();
        let spec = self.run.spec;
        let kernel_flows = spec.flows.iter().filter_map(kernel_config).count();
        let shared = Shared::new(self.emulator.origin(), spec.flows.len(), kernel_flows);
        let (events, reported) = mpsc::channel();
        let context = Context { shared: &shared, info_reader, events: &events };
        let described = (0u16..).zip(&spec.flows).zip(sockets.connectors);
        let list = described.filter_map(|((index, flow), socket)| {
            let foreign = KernelFlow::new(index.into(), flow, &spec.measure, self.run.seed);
            let foreign = LoggedFlow::plain(foreign);
            Some(Sender::new(context, foreign, flow, index.into(), socket?, address(index)))
        });
        let (list, measure) = (list.collect(), spec.measure);
        let senders = Senders { list, measure, shared: &shared, end: Instant::MAX };
        let (legacy, receivers_cpu) = scope(|threads| {
            let sending = threads.spawn(|| shared.end_unless_ok(senders.run()));
            let ends = spec.flows.iter().zip(sockets.listeners).enumerate();
            let receivers: Vec<Receiver> = ends
                .filter_map(|(index, (flow, socket))| Some(Receiver::new(index, flow, socket?)))
                .collect();
            let receiving =
                threads.spawn(|| shared.end_unless_ok(receivers::run(receivers, &shared)));
            self.programs.spawn_clients(threads, &shared);
            let worked = self.route(&shared, &reported, watch);
            shared.end();
            self.programs.end_clients(&mut self.emulator, self.is_warm);
            let sent = joined("driving TCP senders", sending);
            let received = joined("driving TCP receivers", receiving);
            worked.and(Ok((sent?, received?.cpu)))
        })?;
        self.note(&reported);
        let router_cpu = thread_cpu_time().saturating_sub(cpu_before);
        self.finish(router_cpu, legacy, receivers_cpu, settings)
    }

    /// The router's work.
    fn route(
        &mut self,
        shared: &Shared,
        reported: &mpsc::Receiver<FlowEvent>,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<(), KernelError> {
        let mut watched = Instant::ZERO;
        while self.emulator.net.now < self.end {
            let open = shared.open_flows() + self.own.open_flows() + self.programs.open_flows();
            if shared.is_over() || (open == 0 && !self.emulator.net.is_busy()) {
                break;
            }
            let now = self.emulator.net.now;
            if now.saturating_since(watched) >= WATCH_INTERVAL {
                watched = now;
                self.note(reported);
                if watch(now).is_break() {
                    return Err(KernelError::Stopped);
                }
            }
            let until = self.next_time(watched + WATCH_INTERVAL);
            self.emulator
                .step(until)
                .map_err(|error| KernelError::System { what: "routing packets", error })?;
            self.own.step(&mut self.emulator);
            self.programs.step(&mut self.emulator, self.is_warm);
            self.keep_books()?;
            if let Some(what) = self.emulator.net.notes.violation() {
                return Err(self.run.failed(self.emulator.net.now, what).into());
            }
        }
        Ok(())
    }

    /// Until when the links may work before something else is to be done.
    fn next_time(&mut self, watch: Instant) -> Instant {
        let warming = (!self.is_warm).then(|| self.run.warmed_up());
        let wakes = [self.own.next_time(), self.programs.next_time()];
        let others = [self.next_sample, wakes[0], wakes[1], warming, Some(watch)];
        let next = others.into_iter().flatten().min().unwrap_or(self.end);
        next.clamp(self.emulator.net.now, self.end)
    }

    /// Opens the recorder and takes samples when they are due.
    fn keep_books(&mut self) -> Result<(), KernelError> {
        let now = self.emulator.net.now;
        if !self.is_warm && now >= self.run.warmed_up() {
            self.begin_measurement()?;
        }
        if self.next_sample.is_none_or(|at| at > now) || now >= self.end {
            return Ok(());
        }
        self.programs.sample(&self.emulator, &mut self.samples);
        self.next_sample = self.run.sample(&mut self.own.flows, &mut self.emulator.net);
        Ok(())
    }

    fn begin_measurement(&mut self) -> Result<(), KernelError> {
        self.is_warm = true;
        if let Some(routers) = &mut self.routers {
            routers.begin_measurement(self.emulator.net.now).map_err(KernelError::of_netem)?;
        }
        self.own.begin_measurement(&mut self.emulator);
        self.programs.begin_measurement(&self.emulator);
        self.emulator.restart_queue_delays();
        self.dropped_before.clone_from(&self.emulator.net.notes.dropped_data);
        self.run.open_links(&mut self.emulator.net);
        Ok(())
    }

    /// Enters what the senders' thread reports into table `events`.
    fn note(&mut self, reported: &mpsc::Receiver<FlowEvent>) {
        for FlowEvent { at, flow, kind, detail } in reported.try_iter() {
            self.emulator.net.notes.log.flow(at, flow, kind, &detail);
        }
    }

    fn finish(
        mut self,
        router_cpu: Duration,
        legacy: Legacy,
        receivers_cpu: Duration,
        settings: &[Setting],
    ) -> Result<Outcome, KernelError> {
        let real = self.emulator.clock() - Instant::ZERO;
        self.emulator
            .finish_capture()
            .map_err(|error| KernelError::System { what: "recording packets", error })?;
        if !self.is_warm {
            self.begin_measurement()?;
        }
        let now = self.emulator.net.now;
        self.run.check(&mut self.emulator.net)?;
        self.own.end(&mut self.emulator);
        let strain = HostLoad {
            health: self.emulator.health(),
            lateness: legacy.lateness,
            cpu: [router_cpu, legacy.cpu, receivers_cpu],
        };
        let mut flows: Vec<(u32, Flow)> =
            self.own.indices.into_iter().zip(self.own.flows).collect();
        let between_programs = self.programs.finish()?;
        let of_sockets = legacy.flows.into_iter().map(|(index, flow)| (index, flow.into_flow()));
        for (index, mut foreign) in of_sockets.chain(between_programs) {
            let dropped = self.emulator.net.notes.dropped_data[index as usize];
            let queue_delay = match self.routers {
                None => self.emulator.take_queue_delay(index),
                // It waits where we do not see it.
                Some(_) => Histogram::new(),
            };
            let dropped = dropped - self.dropped_before[index as usize];
            foreign.set_passage(PathStats { dropped, queue_delay });
            flows.push((index, foreign.into()));
        }
        flows.sort_by_key(|(index, _)| *index);
        let mut flows: Vec<Flow> = flows.into_iter().map(|(_, flow)| flow).collect();
        let spec = self.run.spec;
        self.run.events = self.emulator.events();
        let mut outcome = self.run.close(&mut flows, self.emulator.net);
        outcome.samples.extend(legacy.samples);
        outcome.samples.extend(self.samples);
        outcome.samples.sort_by(|a, b| a.t_s.total_cmp(&b.t_s).then(a.flow.cmp(&b.flow)));
        strain.fill(&mut outcome, spec, real);
        outcome.summary.settings = Some(machine::describe(settings));
        if let Some(routers) = &self.routers {
            routers.fill(&mut outcome, now).map_err(KernelError::of_netem)?;
        }
        Ok(outcome)
    }
}

fn joined<T>(
    what: &'static str,
    thread: ScopedJoinHandle<'_, io::Result<T>>,
) -> Result<T, KernelError> {
    let result = thread.join().expect("threads of a run do not panic");
    result.map_err(|error| KernelError::System { what, error })
}

/// Interval at which the watcher receives the time.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
