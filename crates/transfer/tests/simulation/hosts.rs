//! The two ends as the programs `weir send` and `weir recv` run them: the same core, the same decisions,
//! another socket, clock and disk.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use weir_sockets::socket::Arrival;
use weir_transfer::endpoint::{Application, ConnectionId, Core, Limits, Randomness};
use weir_transfer::file::{
    Disk, Finalizer, Folder, Header, Incoming, Outgoing, OutgoingDatagrams, OutgoingFile,
    OutgoingKind,
};
use weir_transfer::seal::Key;
use weir_transfer::{
    ConnectionSequence, DatagramSession, Destination, Sender, Sent, Sessions, TransferError,
};
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rng};

use super::disk::{Machine, ProcessDisk, attributes_of};
use super::network::{Datagram, Network, Outlet};
use super::plan::{Plan, Sending};
use super::script::Script;

/// What both ends have.
pub(crate) struct Process<A> {
    pub(crate) core: Core<A>,
    pub(crate) disk: ProcessDisk,
    pub(crate) outlet: Outlet,
    inbox: Vec<Datagram>,
    /// When it last looked around, and until when it is busy with that.
    looked_at: Instant,
    busy_until: Instant,
}

impl<A: Application> Process<A> {
    fn start(
        network: &Rc<Network>,
        machine: &Machine,
        address: SocketAddr,
        key: Option<&Key>,
        rng: &mut Rng,
    ) -> Self {
        let is_sender = address != receiver_address();
        let disk = machine.start();
        let alive = disk.clone();
        let outlet = Outlet {
            network: Rc::clone(network),
            address,
            max_segments: 1 + rng.below(64) as usize,
            withholds: 0,
            is_alive: Box::new(move || alive.is_alive()),
        };
        let mut core = Core::new(Randomness { secret: secret(rng), seed: rng.next_u64() });
        let now = network.now.get();
        if is_sender {
            // As `weir send` has it.
            let patience = SENDER_PATIENCE;
            core.set_limits(Limits { handshake: patience, idle: patience, ..Limits::default() });
        }
        if let Some(key) = key {
            core.seal_with(now, key.clone().into(), secret(rng));
        }
        Self { core, disk, outlet, inbox: Vec::new(), looked_at: now, busy_until: now }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.outlet.address
    }

    pub(crate) fn deliver(&mut self, datagram: Datagram) {
        self.inbox.push(datagram);
    }

    /// When it wants a turn.
    pub(crate) fn wakes_at(&self) -> Instant {
        let looks = self.looked_at + LOOKS_EVERY;
        let wakes = if !self.inbox.is_empty() || self.core.is_busy() && !self.core.is_blocked() {
            Instant::ZERO
        } else if self.core.is_blocked() {
            self.looked_at + BLOCKED_FOR
        } else {
            self.core.next_deadline().map_or(looks, |at| at.min(looks))
        };
        wakes.max(self.busy_until)
    }

    /// What [`weir_transfer::endpoint::Endpoint::step`] does.
    fn step(&mut self, now: Instant) {
        self.busy_until = now + TURN + DATAGRAM.saturating_mul(self.inbox.len() as u64);
        self.looked_at = now;
        self.core.unblock(&self.outlet);
        for Datagram { from, ecn, bytes, .. } in self.inbox.drain(..) {
            self.core.receive(now, &Arrival::of(from, now, ecn, &bytes), &self.outlet);
        }
        self.core.step(now, &self.outlet);
    }
}

/// `weir recv`.
pub(crate) struct ReceivingProgram {
    pub(crate) process: Process<Incoming>,
    sessions: Sessions,
    finalizer: Rc<Finalizer>,
    /// When the finalizer does its next task.
    pub(crate) keeper_at: Option<Instant>,
}

impl ReceivingProgram {
    pub(crate) fn start(
        network: &Rc<Network>,
        machine: &Machine,
        plan: &Plan,
        rng: &mut Rng,
    ) -> Self {
        let key = plan.key.as_ref();
        let mut process = Process::start(network, machine, receiver_address(), key, rng);
        let folder = Folder {
            disk: Arc::new(process.disk.clone()),
            path: PathBuf::from(RECEIVED),
            max_size: None,
            max_files: 100,
            takes_folders: true,
            quota: None,
            expiry: Duration::from_secs(7 * 86_400),
            memory: plan.memory,
            window: Bytes(200_000)..Bytes(16 << 20),
        };
        let finalizer = Rc::new(Finalizer::without_thread());
        let sessions = Sessions::listen(network.now.get(), folder, &finalizer, &mut process.core);
        Self { process, sessions, finalizer, keeper_at: None }
    }

    pub(crate) fn step(&mut self, now: Instant, keeper_latency: Duration) {
        self.process.step(now);
        let core = &mut self.process.core;
        self.sessions.report_ended(core, &mut |_| ControlFlow::Continue(()));
        let _ = self.sessions.look(now, core, &mut |_| ControlFlow::Continue(()));
        self.keeper_at.get_or_insert(now + keeper_latency);
    }

    /// The memory that all senders together are charged for.
    pub(crate) fn charged_memory(&self) -> Bytes {
        self.sessions.charged_memory()
    }

    /// Lets the finalizer do its next task, if it has one.
    pub(crate) fn work(&mut self, now: Instant, keeper_latency: Duration) {
        self.keeper_at = self.finalizer.work().then(|| now + keeper_latency);
    }
}

/// `weir send`.
pub(crate) struct SendingProgram<'a> {
    pub(crate) process: Process<Outgoing>,
    sender: Sender<'a>,
    course: ConnectionSequence,
}

impl<'a> SendingProgram<'a> {
    /// Reads the files and opens the first connection; `None` if the disk does not let it.
    pub(crate) fn start(
        network: &Rc<Network>,
        machine: &Machine,
        sending: &'a Sending,
        address: SocketAddr,
        rng: &mut Rng,
    ) -> Option<Self> {
        let options = &sending.options;
        let key = options.key.as_ref();
        let mut process = Process::start(network, machine, address, key, rng);
        let files = in_folders(&process.disk, sending, prepare(&process.disk, sending)?);
        let (now, remote) = (network.now.get(), receiver_address());
        let mut sender = Sender::new(now, &files, remote, options);
        let way =
            Destination { remote, config: options.config(None), patience: Duration::from_secs(10) };
        let course = sender.begin(now, way, files, &mut process.core, &process.outlet);
        Some(Self { process, sender, course })
    }

    /// The present connection, and what is known of its files.
    pub(crate) fn present(&self) -> Option<(ConnectionId, &[OutgoingFile])> {
        let (id, _, application) = self.process.core.connections().next()?;
        Some((id, application.files()))
    }

    pub(crate) fn step(
        &mut self,
        now: Instant,
    ) -> Option<(Vec<OutgoingFile>, Result<(), TransferError>)> {
        self.process.step(now);
        let Process { core, outlet, .. } = &mut self.process;
        let mut watch = |_: &_| ControlFlow::Continue(());
        let (result, left) =
            self.sender.step(now, Ok(()), &mut self.course, core, outlet, &mut watch)?;
        Some((left, result))
    }

    pub(crate) fn finish(self, left: Vec<OutgoingFile>) -> Sent {
        self.sender.finish(left)
    }
}

/// `weir send --stack udp`.
pub(crate) struct DatagramProgram {
    pub(crate) process: Process<OutgoingDatagrams>,
    session: DatagramSession,
}

impl DatagramProgram {
    /// Reads the files and opens the connection; `None` if the disk does not let it.
    pub(crate) fn start(
        network: &Rc<Network>,
        machine: &Machine,
        sending: &Sending,
        address: SocketAddr,
        rng: &mut Rng,
    ) -> Option<Self> {
        let options = &sending.options;
        let mut process = Process::start(network, machine, address, options.key.as_ref(), rng);
        let files = prepare(&process.disk, sending)?;
        let (now, remote) = (network.now.get(), receiver_address());
        let Process { core, outlet, .. } = &mut process;
        let session = DatagramSession::begin(now, remote, files, options, core, outlet);
        Some(Self { process, session })
    }

    pub(crate) fn step(
        &mut self,
        now: Instant,
    ) -> Option<(Result<(), TransferError>, Vec<OutgoingFile>)> {
        self.process.step(now);
        let Process { core, outlet, .. } = &mut self.process;
        self.session.step(now, Ok(()), core, outlet)
    }
}

/// Reads the files of a command; `None` if the disk does not let it.
fn prepare(disk: &ProcessDisk, sending: &Sending) -> Option<Vec<OutgoingFile>> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let prepare = |(name, ..): &(String, u64, usize)| {
        let path = Path::new(SENT).join(name);
        let mut file =
            OutgoingFile::prepare_on(Arc::clone(&disk), &path, &mut |_, _| Ok(())).ok()?;
        file.header.name.clone_from(name);
        Some(file)
    };
    sending.files.iter().map(prepare).collect()
}

/// The files with the folders that they are in, and a link to the first of these.
fn in_folders(
    disk: &ProcessDisk,
    sending: &Sending,
    files: Vec<OutgoingFile>,
) -> Vec<OutgoingFile> {
    let folders = sending.folders();
    let entry = |name: &str, kind: OutgoingKind| {
        let header =
            Header { attributes: attributes_of(name.len()), ..Header::new(name, 0, [0; 32]) };
        OutgoingFile::entry(Arc::new(disk.clone()), &Path::new(SENT).join(name), kind, header)
    };
    let opened = folders.iter().map(|name| entry(name, OutgoingKind::Folder));
    let ended = folders.iter().rev().map(|name| entry(name, OutgoingKind::FolderEnd));
    let link = folders.first().map(|top| {
        let target = LINKED.to_owned();
        entry(&format!("{top}/link"), OutgoingKind::Link { target })
    });
    opened.chain(files).chain(link).chain(ended).collect()
}

/// An attacker that speaks the protocol, and sends what no sender sends.
pub(crate) struct HostileProgram {
    pub(crate) process: Process<Script>,
}

impl HostileProgram {
    /// Opens a connection to the receiver, over which it says `script`.
    pub(crate) fn start(
        network: &Rc<Network>,
        key: Option<&Key>,
        address: SocketAddr,
        (script, withholds): (Script, u64),
        rng: &mut Rng,
    ) -> Self {
        let machine = Machine::new(rng.next_u64(), "disk of a stranger");
        let mut process = Process::start(network, &machine, address, key, rng);
        process.outlet.withholds = withholds;
        let config = Config { recv_buffer: Bytes(1 << 20), ..Config::for_datagrams() };
        let now = network.now.get();
        process.core.connect(now, receiver_address(), &config, script, &process.outlet);
        Self { process }
    }

    pub(crate) fn step(&mut self, now: Instant) {
        self.process.step(now);
        while self.process.core.next_ended().is_some() {}
    }
}

pub(crate) fn receiver_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 9_000))
}

fn secret(rng: &mut Rng) -> [u8; 32] {
    std::array::from_fn(|_| rng.next_u32() as u8)
}

/// Where the files of senders are, and where they go.
pub(crate) const SENT: &str = "/out";
pub(crate) const RECEIVED: &str = "/in";
/// Where the link in a folder leads.
pub(crate) const LINKED: &str = "a/b";
/// How long the endpoint of `weir send` waits when it is given 30 s.
const SENDER_PATIENCE: Duration = Duration::from_secs(120);
/// As often the programs look around at least.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// How long a full buffer stays so.
const BLOCKED_FOR: Duration = Duration::from_micros(200);
/// What a turn takes, and a datagram in it.
const TURN: Duration = Duration::from_micros(5);
const DATAGRAM: Duration = Duration::from_micros(1);
