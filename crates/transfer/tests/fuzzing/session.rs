//! A receiver's session: frames in any order, datagrams next to them, deaths of the receiver, damaged partial files.
//!
//! The input is a list of operations. The disk is that of the simulation, so that nothing depends on the machine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use weir_sockets::socket::{Arrival, DatagramSink, SendBatch};
use weir_transfer::endpoint::{Application, Core, Randomness};
use weir_transfer::file::{
    Announcement, Attributes, Disk, EntryHeader, EntryKind, Finalizer, Folder, Header, OutgoingFile,
};
use weir_transfer::{Carrier, Destination, SendOptions, Sender, Sessions};
use weir_transport::Config;
use weir_units::{Bytes, Duration, Ecn, Instant};

use super::disk::{Death, Machine};
use super::input::Input;
use super::script::Script;

/// Runs the operations. Whatever they are, a file under a final name has the content that was announced for it, the
/// memory stays within its limit, and a valid sender is served afterwards.
pub(crate) fn check(input: &[u8]) {
    let mut input = Input(&input[..input.len().min(2_000)]);
    let mut world = World::new();
    while !input.0.is_empty() {
        world.operate(&mut input);
        world.pass(3);
        world.check_folder();
    }
    world.die(Death::Process);
    world.serve();
}

struct World {
    now: Instant,
    machine: Machine,
    receiver: Receiver,
    sender: Core<Script>,
    ways: [Queue; 2],
}

struct Receiver {
    core: Core<weir_transfer::file::Incoming>,
    sessions: Sessions,
    finalizer: Rc<Finalizer>,
}

/// Datagrams on their way to one end.
#[derive(Default)]
struct Queue(RefCell<VecDeque<Vec<u8>>>);

impl DatagramSink for Queue {
    fn send(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        let datagrams = departure.bytes.chunks(departure.stride.max(1)).map(<[u8]>::to_vec);
        self.0.borrow_mut().extend(datagrams);
        Ok(())
    }

    fn max_segments(&self) -> usize {
        8
    }
}

impl World {
    fn new() -> Self {
        let (now, machine) = (Instant::ZERO, Machine::new(1, "disk of the receiver"));
        let receiver = Receiver::start(now, &machine);
        let mut world = Self { now, machine, receiver, sender: core(2), ways: Default::default() };
        world.connect();
        world
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        let said = match input.u8() % 19 {
            16 => Announcement::Ask(header(input)),
            17 => entry(input),
            18 => Announcement::Hole {
                offset: u64::from(input.u16()) << (input.u8() % 48),
                len: 1 + (u64::from(input.u16()) << (input.u8() % 47)),
            },
            0 | 1 => Announcement::Hello { files: u32::from(input.u8()) },
            2..=4 => Announcement::File(header(input)),
            5 => Announcement::Datagram { header: header(input), piece: u32::from(input.u16()) },
            6 => Announcement::Repair(header(input)),
            7 => Announcement::Parts(vec![[input.u8(); 32]; 1 + usize::from(input.u8() % 8)]),
            8 => Announcement::Sent { datagrams: input.u16().into() },
            9 => Announcement::End,
            10 | 11 => return self.send_piece(input),
            12 => {
                let (number, len) = (u64::from(input.u16()), usize::from(input.u16() % 1_400));
                let mut bytes = content(usize::from(input.u8()));
                bytes.truncate(len);
                let datagram = (number, bytes);
                return self.script(|script| script.datagram.push_back(datagram));
            }
            13 => {
                let byte = input.u8();
                return self.script(|script| script.stream.push(byte));
            }
            14 => {
                self.die(if input.u8() < 128 { Death::Process } else { Death::Machine });
                return self.connect();
            }
            _ => return self.damage(input),
        };
        self.script(|script| script.say(said));
    }

    /// A piece of a content, with its bytes or others.
    fn send_piece(&mut self, input: &mut Input<'_>) {
        let content = content(usize::from(input.u8()));
        let start = usize::from(input.u16()) % (content.len() + 1);
        let end = content.len().min(start + 1 + usize::from(input.u16()));
        let mut bytes = content[start..end].to_vec();
        if input.u8() < 32 && !bytes.is_empty() {
            bytes[0] ^= 1;
        }
        let (offset, len) = (start as u64, bytes.len().max(1) as u64);
        self.script(|script| {
            script.say(Announcement::Data { offset, len });
            script.stream.extend(bytes);
        });
    }

    /// Changes a byte of a partial file, most often of its journal.
    fn damage(&mut self, input: &mut Input<'_>) {
        let names = self.machine.names();
        let Some((path, len)) = names.iter().find(|(path, _)| is_hidden(path)) else { return };
        self.die(Death::Process);
        let mut bytes = self.machine.read(path).expect("it is there");
        let back = 1 + usize::from(input.u16()) % 1_024;
        match input.u8() % 4 {
            0 => bytes.truncate(len.saturating_sub(back)),
            1 => bytes.resize(len + back, 0),
            _ => {
                let at = len.saturating_sub(back);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (back % 8);
                }
            }
        }
        self.machine.put(path, &bytes);
        self.connect();
    }

    fn script(&mut self, change: impl FnOnce(&mut Script)) {
        let last = self.sender.connections().last().map(|(id, ..)| id);
        if let Some(script) = last.and_then(|id| self.sender.application_mut(id)) {
            change(script);
        }
    }

    fn connect(&mut self) {
        let config = Config::for_datagrams();
        let address = receiver_address();
        self.sender.connect(self.now, address, &config, Script::default(), &self.ways[0]);
    }

    fn die(&mut self, death: Death) {
        self.machine.kill(death);
        self.receiver = Receiver::start(self.now, &self.machine);
    }

    fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            self.receiver.step(self.now, &self.ways);
            step(self.now, &mut self.sender, receiver_address(), [&self.ways[1], &self.ways[0]]);
            while self.sender.next_ended().is_some() {}
        }
    }

    fn check_folder(&self) {
        assert!(self.receiver.sessions.charged_memory() <= MEMORY);
        for (path, _) in self.machine.names() {
            let bytes = self.machine.read(&path).expect("it is there");
            assert!(is_hidden(&path) || (0..CONTENTS.len()).any(|n| content(n) == bytes));
        }
    }

    /// A valid sender sends the second content.
    fn serve(&mut self) {
        let machine = Machine::new(3, "disk of a sender");
        let path = Path::new("/out/friend");
        machine.put(path, &content(1));
        let disk: Arc<dyn Disk> = Arc::new(machine.start());
        let file = OutgoingFile::prepare_on(disk, path, &mut |_, _| Ok(())).expect("readable");
        let options = options();
        let (remote, patience) = (receiver_address(), Duration::from_secs(10));
        self.ways = Default::default();
        let mut core = core(4);
        let files = vec![file];
        let mut sender = Sender::new(self.now, &files, remote, &options);
        let way = Destination { remote, config: options.config(None), patience };
        let mut course = sender.begin(self.now, way, files, &mut core, &self.ways[0]);
        for _ in 0..30_000 {
            self.now += Duration::from_millis(1);
            self.receiver.step(self.now, &self.ways);
            step(self.now, &mut core, remote, [&self.ways[1], &self.ways[0]]);
            let mut watch = |_: &_| ControlFlow::Continue(());
            let (now, sink) = (self.now, &self.ways[0]);
            let step = sender.step(now, Ok(()), &mut course, &mut core, sink, &mut watch);
            if let Some((result, left)) = step {
                let sent = sender.finish(left);
                assert!(result.is_ok() && sent.is_complete(), "{sent:?}");
                return self.check_folder();
            }
        }
        panic!("a valid sender is not served");
    }
}

impl Receiver {
    fn start(now: Instant, machine: &Machine) -> Self {
        let folder = Folder {
            disk: Arc::new(machine.start()),
            path: PathBuf::from("/in"),
            max_size: Some(Bytes(4 << 20)),
            max_files: 200,
            takes_folders: true,
            quota: None,
            expiry: Duration::from_secs(3_600),
            memory: MEMORY,
            window: Bytes(200_000)..Bytes(1 << 20),
        };
        let finalizer = Rc::new(Finalizer::without_thread());
        let mut core = core(1);
        let sessions = Sessions::listen(now, folder, &finalizer, &mut core);
        Self { core, sessions, finalizer }
    }

    fn step(&mut self, now: Instant, ways: &[Queue; 2]) {
        step(now, &mut self.core, sender_address(), [&ways[0], &ways[1]]);
        self.sessions.report_ended(&mut self.core, &mut |_| ControlFlow::Continue(()));
        let _ = self.sessions.look(now, &mut self.core, &mut |_| ControlFlow::Continue(()));
        while self.finalizer.work() {}
    }
}

/// Hands an end what has come for it and lets it act.
fn step<A: Application>(
    now: Instant,
    core: &mut Core<A>,
    from: SocketAddr,
    [inbound, outbound]: [&Queue; 2],
) {
    let arrived = std::mem::take(&mut *inbound.0.borrow_mut());
    for bytes in arrived {
        core.receive(now, &Arrival::of(from, now, Ecn::NotEct, &bytes), outbound);
    }
    core.step(now, outbound);
}

fn core<A: Application>(seed: u64) -> Core<A> {
    Core::new(Randomness { secret: [seed as u8; 32], seed })
}

fn entry(input: &mut Input<'_>) -> Announcement {
    let paths = ["t", "t/a", "t/a/b", "t/../x", "t/.weir-0.part", "u"];
    let targets = ["a", "../..", "/etc", "a/b"];
    let path = paths[usize::from(input.u8()) % paths.len()].to_owned();
    let kind = match input.u8() % 4 {
        0 | 1 => EntryKind::Folder,
        2 => EntryKind::FolderEnd,
        _ => {
            EntryKind::Link { target: targets[usize::from(input.u8()) % targets.len()].to_owned() }
        }
    };
    Announcement::Entry(EntryHeader { number: 0, path, attributes: Attributes::default(), kind })
}

fn header(input: &mut Input<'_>) -> Header {
    let content = content(usize::from(input.u8()));
    let (mut size, mut hash) = (content.len() as u64, *blake3::hash(&content).as_bytes());
    match input.u8() % 8 {
        0 => size = u64::from(input.u16()) << (input.u8() % 48),
        1 => hash[31] ^= 1,
        _ => {}
    }
    let names = ["a", "b", "../c", ".weir-x.part", "t/a", "t/a/b"];
    Header::new(names[usize::from(input.u8()) % names.len()], size, hash)
}

fn content(n: usize) -> Vec<u8> {
    let len = CONTENTS[n % CONTENTS.len()];
    (0..len).map(|at| (at * 7 + at / 251 + len) as u8).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.to_string_lossy().contains("/.weir-")
}

fn options() -> SendOptions {
    SendOptions {
        carrier: Carrier::Stack("rack/bbr".parse().expect("a stack")),
        mss: 1_420,
        initial_window: 10,
        max_rate: None,
        pacing: true,
        max_retransmits: 100,
        max_wait: Duration::from_secs(30),
        key: None,
    }
}

fn receiver_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 9_000))
}

fn sender_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], 20_000))
}

/// Lengths: none, one part, and several.
const CONTENTS: [usize; 4] = [0, 3_000, 70_000, 300_000];
const MEMORY: Bytes = Bytes(4 << 20);
