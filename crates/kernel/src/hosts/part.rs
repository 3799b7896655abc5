//! One host's part in a run: the ends of flows that are on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::thread::scope;

use rustix::net::{bind, getsockname};
use weir_scene::{
    Ends, FlowSpec, IP_HEADER, KernelFlow, Router, RunSpec, Side, TransportSpec, UDP_HEADER,
};
use weir_sockets::clock::{self, TimerSlackGuard};
use weir_sockets::socket::{Socket, path_mtu};
use weir_units::{Duration, Instant};

use super::own::{OwnPart, OwnRecord};
use super::tap::SharedPathLog;
use crate::check::{self, kernel_config};
use crate::receivers::{self, Received, Receiver};
use crate::record::{EVENT_KINDS, HostRecord, LoggedFlow, ReceivedFlow, SentFlow};
use crate::senders::{Context, FlowEvent, Legacy, Sender, Senders};
use crate::shared::Shared;
use crate::{KernelError, joined, machine, sockets};
use weir_links::datagrams::PathSocket;

/// Refuses what no pair of hosts can run, whatever congestion controls they have.
///
/// # Errors
/// For the first such thing.
pub fn check_between_hosts(spec: &RunSpec) -> Result<(), KernelError> {
    for flow in &spec.flows {
        let problem = match (&flow.transport, flow.ends) {
            (TransportSpec::Udp(_), _) => "stack = udp: between hosts there are no bare datagrams",
            (TransportSpec::Reliable(_), Ends::Weir) if flow.workload.has_responses() => {
                "ends = weir: between hosts our own connections make no requests"
            }
            (TransportSpec::Reliable(_), _) => continue,
            _ => "its stack runs on one machine only; write a congestion control of Linux",
        };
        return Err(KernelError::Unfit { flow: flow.name.clone(), problem: problem.to_owned() });
    }
    let kernels = spec.flows.iter().filter_map(kernel_config);
    let controllers: Vec<String> = kernels.map(check::controller).collect();
    check::check(spec, &controllers, Router::Weir)
}

/// The ends of flows on this host, with their sockets.
#[derive(Debug)]
pub struct HostPart {
    spec: RunSpec,
    seed: u64,
    connectors: BTreeMap<usize, OwnedFd>,
    listeners: BTreeMap<usize, OwnedFd>,
    /// The socket of our own flows, if there are any.
    socket: Option<Socket>,
    /// Of our own flows that begin here, the address that they come from.
    own_sends: BTreeMap<usize, Ipv4Addr>,
    own_receives: Vec<usize>,
    /// Bytes that our own flows have sent and received, as far as they are acknowledged.
    moved: Arc<AtomicU64>,
    /// Where our own flows that it sends are recorded.
    log: Option<SharedPathLog>,
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
        check_between_hosts(spec)?;
        let mut here = BTreeSet::new();
        for index in sends.keys().chain(receives) {
            let flow = spec.flows.get(*index).ok_or_else(|| {
                let count = spec.flows.len();
                KernelError::Missing(format!("there is no flow {index}; the scenario has {count}"))
            })?;
            if !here.insert(*index) && kernel_config(flow).is_none() {
                return Err(KernelError::Unfit {
                    flow: flow.name.clone(),
                    problem: "one host has only one end of a flow of ours".to_owned(),
                });
            }
        }
        let mut part = Self::empty(spec, seed);
        let here: Vec<FlowSpec> = here.into_iter().map(|index| spec.flows[index].clone()).collect();
        let here = RunSpec { flows: here, ..spec.clone() };
        check::check(&here, controllers, Router::Weir)?;
        machine::check_settings(&here)?;
        for (index, to) in sends {
            if part.flow(*index).and_then(kernel_config).is_some() {
                let socket = part.connector(*index, *to).map_err(opening)?;
                part.connectors.insert(*index, socket);
            } else {
                part.check_length(*index, (*to).into())?;
                part.own_sends.insert(*index, source(*to).map_err(opening)?);
            }
        }
        for index in receives {
            if let Some(config) = part.flow(*index).and_then(kernel_config) {
                let socket = sockets::listener(config, 0).map_err(opening)?;
                part.listeners.insert(*index, socket);
            } else {
                part.own_receives.push(*index);
            }
        }
        if !part.own_sends.is_empty() || !part.own_receives.is_empty() {
            let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            part.socket =
                Some(Socket::bind(any).map_err(|error| opening(io::Error::other(error)))?);
        }
        Ok(part)
    }

    /// The ends of flows of our own transport on one side of a path: of those in `sends` the sending ones,
    /// of all others the receiving ones.
    ///
    /// # Errors
    /// If a flow is not one of our transport, or its segments do not fit the path.
    pub fn over(
        spec: &RunSpec,
        seed: u64,
        path: PathSocket,
        sends: &BTreeSet<usize>,
    ) -> Result<Self, KernelError> {
        check_between_hosts(spec)?;
        let (socket, remote) = path.into_parts();
        let mut part = Self::empty(spec, seed);
        for (index, flow) in spec.flows.iter().enumerate() {
            if kernel_config(flow).is_some() {
                let problem = "its ends are the kernel's; write ends = weir".to_owned();
                return Err(KernelError::Unfit { flow: flow.name.clone(), problem });
            }
            if sends.contains(&index) {
                part.check_length(index, remote.ip())?;
                part.own_sends.insert(index, Ipv4Addr::UNSPECIFIED);
            } else {
                part.own_receives.push(index);
            }
        }
        part.socket = Some(socket);
        Ok(part)
    }

    fn empty(spec: &RunSpec, seed: u64) -> Self {
        Self {
            spec: spec.clone(),
            seed,
            connectors: BTreeMap::new(),
            listeners: BTreeMap::new(),
            socket: None,
            own_sends: BTreeMap::new(),
            own_receives: Vec::new(),
            moved: Arc::default(),
            log: None,
        }
    }

    /// The same that records our own flows that it sends, and where the record is after the run.
    #[must_use]
    pub fn recording(mut self) -> (Self, SharedPathLog) {
        let log = self.log.get_or_insert_default().clone();
        (self, log)
    }

    /// Number of bytes that flows of our own transport have sent or received so far, while it runs too.
    pub fn moved(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moved)
    }

    /// The address that each flow comes from.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn sources(&self) -> Result<BTreeMap<usize, SocketAddrV4>, KernelError> {
        let mut found = addresses(&self.connectors).map_err(opening)?;
        let own =
            self.own_sends.iter().map(|(index, ip)| (*index, SocketAddrV4::new(*ip, self.port())));
        found.extend(own);
        Ok(found)
    }

    /// The port at which each flow arrives.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn ports(&self) -> Result<BTreeMap<usize, u16>, KernelError> {
        let found = addresses(&self.listeners).map_err(opening)?;
        let kernels = found.into_iter().map(|(index, address)| (index, address.port()));
        Ok(kernels.chain(self.own_receives.iter().map(|index| (*index, self.port()))).collect())
    }

    /// Runs this part from `start`, in nanoseconds of the machine's monotonic clock, until every flow
    /// that begins here has ended and none ends here, the time is over, or `watch` breaks it off.
    /// `peers` has the other end of each flow: where it listens, or the address that it comes from.
    ///
    /// # Errors
    /// If a flow has no peer, or the system refuses something on the way.
    pub fn run(
        self,
        start: u64,
        peers: &BTreeMap<usize, SocketAddr>,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<HostRecord, KernelError> {
        let interval = (self.spec.measure.duration / MOST_ROWS).max(FINEST);
        let own_sides = self.own_sides(peers)?;
        let kernels = self.kernel_peers(peers)?;
        let Self { spec, seed, connectors, listeners, socket, own_receives, moved, .. } = self;
        let open = connectors.len() + self.own_sends.len();
        let info_reader = machine::info_reader()?;
        let left = Duration::from_nanos(start.saturating_sub(clock::monotonic_nanos()));
        let shared = Shared::new(clock::now() + left, spec.flows.len(), open);
        let _punctual = TimerSlackGuard::set();
        let (events, reported) = mpsc::channel();
        let context = Context { shared: &shared, info_reader, events: &events };
        let list = connectors.into_iter().map(|(index, socket)| {
            let flow = KernelFlow::new(index as u32, &spec.flows[index], &spec.measure, seed);
            let (flow, described) = (LoggedFlow::logged(flow), &spec.flows[index]);
            Sender::new(context, flow, described, index as u32, socket, kernels[&index])
        });
        let (list, measure) = (list.collect(), spec.measure);
        let end = Instant::ZERO + measure.duration;
        let senders = Senders { list, measure, shared: &shared, end };
        let ends = listeners.into_iter().map(|(index, socket)| {
            Receiver::new(index, &spec.flows[index], socket).of_host(kernels[&index], interval)
        });
        let ends: Vec<_> = ends.collect();
        let receives = !ends.is_empty() || !own_receives.is_empty();
        let own = socket
            .map(|socket| OwnPart::new(&spec, seed, socket, &own_sides, interval, moved, self.log));
        let own = own.transpose().map_err(opening)?;
        let mut goes_on = || {
            let has_ended = shared.is_over() || (shared.open_flows() == 0 && !receives);
            // A receiver that ends first would look like one that failed.
            let latest = if receives { end + GRACE } else { end };
            !has_ended && shared.now() < latest && watch(shared.now()).is_continue()
        };
        let (sent, received, own) = scope(|threads| {
            let sending = threads.spawn(|| shared.end_unless_ok(senders.run()));
            let receiving = threads.spawn(|| shared.end_unless_ok(receivers::run(ends, &shared)));
            let own = run_own(own, &shared, &mut goes_on);
            shared.end();
            let sent = joined("driving TCP senders", sending);
            let received = joined("driving TCP receivers", receiving);
            let own = own.map_err(|error| KernelError::System { what: "driving our flows", error });
            Ok::<_, KernelError>((sent?, received?, own?))
        })?;
        drop(events);
        let settings = machine::describe(&machine::present_settings()?);
        let real = (shared.now() - Instant::ZERO).as_nanos();
        Ok(HostRecord { settings, real, ..recorded(sent, received, own, reported, &shared) })
    }

    fn flow(&self, index: usize) -> Option<&FlowSpec> {
        self.spec.flows.get(index)
    }

    /// The port of our own flows.
    fn port(&self) -> u16 {
        self.socket.as_ref().map_or(0, |socket| socket.local_addr().port())
    }

    /// Which end of each of our own flows is here, and where the other is.
    fn own_sides(
        &self,
        peers: &BTreeMap<usize, SocketAddr>,
    ) -> Result<BTreeMap<usize, (Side, SocketAddr)>, KernelError> {
        let sends = self.own_sends.keys().map(|index| (*index, Side::Sender));
        let receives = self.own_receives.iter().map(|index| (*index, Side::Receiver));
        let sides = sends.chain(receives);
        sides.map(|(index, side)| Ok((index, (side, self.peer(index, peers)?)))).collect()
    }

    /// Where the other end of each of the kernel's flows is.
    fn kernel_peers(
        &self,
        peers: &BTreeMap<usize, SocketAddr>,
    ) -> Result<BTreeMap<usize, SocketAddrV4>, KernelError> {
        let here = self.connectors.keys().chain(self.listeners.keys());
        let of = |index: &usize| match self.peer(*index, peers)? {
            SocketAddr::V4(peer) => Ok((*index, peer)),
            SocketAddr::V6(peer) => {
                Err(self.unfit(*index, format!("its other end is at {peer}; IPv4 is needed")))
            }
        };
        here.map(of).collect()
    }

    fn peer(
        &self,
        index: usize,
        peers: &BTreeMap<usize, SocketAddr>,
    ) -> Result<SocketAddr, KernelError> {
        let peer = peers.get(&index).copied();
        peer.ok_or_else(|| self.unfit(index, "the address of its other end is missing".to_owned()))
    }

    fn unfit(&self, index: usize, problem: String) -> KernelError {
        KernelError::Unfit { flow: self.spec.flows[index].name.clone(), problem }
    }

    /// Refuses segments whose datagrams are longer than what the first network on the way takes.
    fn check_length(&self, index: usize, to: IpAddr) -> Result<(), KernelError> {
        let Some(flow) = self.flow(index) else { return Ok(()) };
        let TransportSpec::Reliable(config) = &flow.transport else { return Ok(()) };
        let Some(largest) = path_mtu(SocketAddr::new(to, DISCARD_PORT)) else { return Ok(()) };
        let ip = if to.to_canonical().is_ipv4() { IP_HEADER } else { IPV6_HEADER };
        let headers = ip + UDP_HEADER + TCP_HEADER + sockets::options_len(config);
        if config.mss + headers <= largest {
            return Ok(());
        }
        let problem = format!(
            "mss = {}: a datagram takes {headers} bytes more, and the path to {to} takes {largest}; \
             write mss = {}",
            config.mss,
            largest.saturating_sub(headers)
        );
        Err(self.unfit(index, problem))
    }

    /// Bound to the address that the route to `to` begins with, so that the other host may expect it.
    fn connector(&self, index: usize, to: Ipv4Addr) -> io::Result<OwnedFd> {
        let flow = self.flow(index).ok_or(io::ErrorKind::InvalidInput)?;
        let config = kernel_config(flow).ok_or(io::ErrorKind::InvalidInput)?;
        let socket = sockets::connector(config, &flow.workload)?;
        bind(&socket, &SocketAddrV4::new(source(to)?, 0))?;
        Ok(socket)
    }
}

/// The address that the route to another begins with.
fn source(to: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    probe.connect((to, DISCARD_PORT))?;
    match probe.local_addr()? {
        SocketAddr::V4(from) => Ok(*from.ip()),
        SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// Runs the flows of our transport; without any, waits until those of the kernel are over.
fn run_own(
    own: Option<OwnPart>,
    shared: &Shared,
    goes_on: &mut dyn FnMut() -> bool,
) -> io::Result<OwnRecord> {
    if let Some(own) = own {
        return own.run(shared, goes_on);
    }
    while goes_on() {
        std::thread::sleep(WATCH_INTERVAL);
    }
    Ok(OwnRecord::default())
}

fn opening(error: io::Error) -> KernelError {
    KernelError::System { what: "opening sockets", error }
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
    own: OwnRecord,
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
        sent: flows.chain(own.sent).collect(),
        received: ends.chain(own.received).collect(),
        actions: [sent.lateness.done + own.lateness.done, sent.lateness.late + own.lateness.late],
        dropped: own.dropped,
        cpu: [sent.cpu, received.cpu, own.cpu].map(Duration::as_nanos).to_vec(),
        ..HostRecord::default()
    }
}

const WATCH_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// From the end of senders to that of receivers, unless the controller ends them before.
const GRACE: Duration = Duration::from_secs(2);
/// Of a flow's log of arrivals.
const MOST_ROWS: u64 = 100_000;
const FINEST: Duration = Duration::from_millis(1);
/// Nothing is sent there: a UDP socket that is connected only asks for the route.
const DISCARD_PORT: u16 = 9;
const IPV6_HEADER: u32 = 40;
/// Without options.
const TCP_HEADER: u32 = 20;
