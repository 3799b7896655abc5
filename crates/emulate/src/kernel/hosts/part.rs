//! One host's part in a run: the ends of flows that are on it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread::scope;

use rustix::net::{bind, getsockname};
use weir_scene::{Ends, FlowSpec, KernelFlow, Router, RunSpec, TransportSpec};
use weir_sockets::clock::{self, TimerSlackGuard};
use weir_units::{Duration, Instant};

use super::super::check::{self, kernel_config};
use super::super::receivers::{self, Received, Receiver};
use super::super::record::{EVENT_KINDS, HostRecord, LoggedFlow, ReceivedFlow, SentFlow};
use super::super::senders::{Context, FlowEvent, Legacy, Sender, Senders};
use super::super::shared::Shared;
use super::super::{KernelError, joined, machine, sockets};

/// Refuses what no pair of hosts can run, whatever congestion controls they have.
///
/// # Errors
/// For the first such thing.
pub fn check_between_hosts(spec: &RunSpec) -> Result<(), KernelError> {
    let mut controllers = Vec::new();
    for flow in &spec.flows {
        let Some(config) = kernel_config(flow) else {
            let problem = match (&flow.transport, flow.ends) {
                (TransportSpec::Udp(_), _) => {
                    "stack = udp: between hosts there are no bare datagrams"
                }
                (TransportSpec::Reliable(_), Ends::Weir) => {
                    "ends = weir: between hosts there is the kernel's TCP only; leave this key out"
                }
                _ => "its stack runs on one machine only; write a congestion control of Linux",
            };
            return Err(KernelError::Unfit {
                flow: flow.name.clone(),
                problem: problem.to_owned(),
            });
        };
        controllers.push(check::controller(config));
    }
    check::check(spec, &controllers, Router::Weir)
}

/// The ends of flows on this host, with their sockets.
#[derive(Debug)]
pub struct HostPart {
    spec: RunSpec,
    seed: u64,
    connectors: BTreeMap<usize, OwnedFd>,
    listeners: BTreeMap<usize, OwnedFd>,
}

impl HostPart {
    /// Opens the sockets of the flows that begin here, to the host with this address, and of those
    /// that end here.
    ///
    /// # Errors
    /// If this kernel cannot host one of them, or the system refuses a socket.
    pub fn open(
        spec: &RunSpec,
        seed: u64,
        sends: &BTreeMap<usize, Ipv4Addr>,
        receives: &[usize],
        controllers: &[String],
    ) -> Result<Self, KernelError> {
        let mut part = Self {
            spec: spec.clone(),
            seed,
            connectors: BTreeMap::new(),
            listeners: BTreeMap::new(),
        };
        let flows = sends.keys().chain(receives);
        let here: Vec<FlowSpec> =
            flows.filter_map(|index| spec.flows.get(*index)).cloned().collect();
        let here = RunSpec { flows: here, ..spec.clone() };
        check::check(&here, controllers, Router::Weir)?;
        machine::check_settings(&here)?;
        for (index, to) in sends {
            let socket = part.connector(*index, *to).map_err(opening)?;
            part.connectors.insert(*index, socket);
        }
        for index in receives {
            let socket = sockets::listener(part.config(*index)?, 0).map_err(opening)?;
            part.listeners.insert(*index, socket);
        }
        Ok(part)
    }

    /// The address that each flow comes from.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn sources(&self) -> Result<BTreeMap<usize, SocketAddrV4>, KernelError> {
        addresses(&self.connectors).map_err(opening)
    }

    /// The port at which each flow arrives.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn ports(&self) -> Result<BTreeMap<usize, u16>, KernelError> {
        let found = addresses(&self.listeners).map_err(opening)?;
        Ok(found.into_iter().map(|(index, address)| (index, address.port())).collect())
    }

    /// Runs this part from `start`, in nanoseconds of the machine's monotonic clock, until every flow
    /// that begins here has ended and none ends here, the time is over, or `watch` breaks it off.
    /// `peers` has the other end of each flow: where it listens, or the address that it comes from.
    ///
    /// # Errors
    /// If the system refuses something on the way.
    pub fn run(
        self,
        start: u64,
        peers: &BTreeMap<usize, SocketAddrV4>,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<HostRecord, KernelError> {
        let Self { spec, seed, connectors, listeners } = self;
        let teller = machine::teller()?;
        let left = Duration::from_nanos(start.saturating_sub(clock::monotonic_nanos()));
        let shared = Shared::new(clock::now() + left, spec.flows.len(), connectors.len());
        let _punctual = TimerSlackGuard::set();
        let (happenings, reported) = mpsc::channel();
        let context = Context { shared: &shared, teller, happenings: &happenings };
        let list = connectors.into_iter().filter_map(|(index, socket)| {
            let flow = KernelFlow::new(index as u32, &spec.flows[index], &spec.measure, seed);
            let (flow, described) = (LoggedFlow::logged(flow), &spec.flows[index]);
            Some(Sender::new(context, flow, described, index as u32, socket, *peers.get(&index)?))
        });
        let senders = Senders { list: list.collect(), measure: spec.measure, shared: &shared };
        let interval = (spec.measure.duration / MOST_ROWS).max(FINEST);
        let ends = listeners.into_iter().filter_map(|(index, socket)| {
            let receiver = Receiver::new(index, &spec.flows[index], socket);
            Some(receiver.of_host(*peers.get(&index)?, interval))
        });
        let ends: Vec<Receiver> = ends.collect();
        let receives = !ends.is_empty();
        let end = Instant::ZERO + spec.measure.duration;
        let (sent, received) = scope(|threads| {
            let sending = threads.spawn(|| shared.end_unless_ok(senders.run()));
            let receiving = threads.spawn(|| shared.end_unless_ok(receivers::run(ends, &shared)));
            while !shared.is_over() && shared.now() < end {
                let ended = shared.open_flows() == 0 && !receives;
                if watch(shared.now()).is_break() || ended {
                    break;
                }
                std::thread::sleep(WATCH_INTERVAL);
            }
            shared.end();
            let sent = joined("driving TCP senders", sending);
            let received = joined("driving TCP receivers", receiving);
            Ok::<_, KernelError>((sent?, received?))
        })?;
        drop(happenings);
        let settings = machine::describe(&machine::present_settings()?);
        let real = (shared.now() - Instant::ZERO).as_nanos();
        Ok(HostRecord { settings, real, ..recorded(sent, received, reported, &shared) })
    }

    fn config(&self, index: usize) -> Result<&weir_transport::Config, KernelError> {
        let flow = self.spec.flows.get(index);
        flow.and_then(kernel_config).ok_or_else(|| {
            opening(io::Error::other(format!("flow {index} is not one of the kernel's")))
        })
    }

    /// Bound to the address that the route to `to` begins with, so that the other host may expect it.
    fn connector(&self, index: usize, to: Ipv4Addr) -> io::Result<OwnedFd> {
        let config = self.config(index).map_err(io::Error::other)?;
        let socket = sockets::connector(config, &self.spec.flows[index].workload)?;
        let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        probe.connect((to, DISCARD_PORT))?;
        let std::net::SocketAddr::V4(from) = probe.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        bind(&socket, &SocketAddrV4::new(*from.ip(), 0))?;
        Ok(socket)
    }
}

fn opening(error: io::Error) -> KernelError {
    KernelError::System { what: "opening TCP sockets", error }
}

fn addresses(sockets: &BTreeMap<usize, OwnedFd>) -> io::Result<BTreeMap<usize, SocketAddrV4>> {
    let address = |(index, socket): (&usize, &OwnedFd)| {
        let address = SocketAddrV4::try_from(getsockname(socket)?).map_err(io::Error::other)?;
        Ok((*index, address))
    };
    sockets.iter().map(address).collect()
}

fn recorded(
    sent: Legacy,
    received: Received,
    reported: mpsc::Receiver<FlowEvent>,
    shared: &Shared,
) -> HostRecord {
    let mut events: BTreeMap<u32, Vec<(u64, usize, String)>> = BTreeMap::new();
    for FlowEvent { at, flow, kind, detail } in reported {
        let kind = EVENT_KINDS.iter().position(|known| *known == kind);
        let of_flow = events.entry(flow).or_default();
        of_flow.extend(kind.map(|kind| (at.as_nanos(), kind, detail)));
    }
    let flows = sent.flows.into_iter().map(|(flow, logged)| SentFlow {
        flow,
        steps: logged.into_steps(),
        events: events.remove(&flow).unwrap_or_default(),
    });
    let ends = received.receivers.into_iter().map(|receiver| ReceivedFlow {
        flow: receiver.index() as u32,
        completed: shared.completed(receiver.index()).map(Instant::as_nanos),
        log: receiver.into_arrivals(),
    });
    HostRecord {
        sent: flows.collect(),
        received: ends.collect(),
        actions: [sent.lateness.done, sent.lateness.late],
        cpu: [sent.cpu.as_nanos(), received.cpu.as_nanos()],
        ..HostRecord::default()
    }
}

const WATCH_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// Of a flow's log of arrivals.
const MOST_ROWS: u64 = 100_000;
const FINEST: Duration = Duration::from_millis(1);
/// Nothing is sent there: a UDP socket that is connected only asks for the route.
const DISCARD_PORT: u16 = 9;
