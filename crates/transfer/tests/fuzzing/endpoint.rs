//! An endpoint on loopback that listens, and attackers who send it anything.
//!
//! The input's bytes are read as a list of operations. What attackers send is mostly what was sent or
//! answered before, changed a little, so that more than the first check is reached.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use weir_transfer::endpoint::{Application, Endpoint};
use weir_transfer::seal::Key;
use weir_transport::wire::{Ports, emit, parse};
use weir_transport::{Config, Connection, Event, Flags, Options, Segment, SeqNum, Timestamps};
use weir_units::{Bytes, Duration, Instant};

use super::input::Input;

/// Runs the operations. A peer that has not shown that it receives at its address gets no
/// more bytes than it sent, and no memory; and a friend is served afterwards.
pub(crate) fn check(input: &[u8]) {
    let mut input = Input(input);
    let mut world = World::new(input.u8());
    while !input.0.is_empty() {
        world.operate(&mut input);
        world.server.step(Duration::ZERO).expect("a working socket");
        world.listen_to_answers();
    }
    world.serve_a_friend();
}

struct World {
    server: Endpoint<Sink>,
    address: SocketAddr,
    key: Option<Key>,
    attackers: [UnmatchedDatagram; 2],
}

struct UnmatchedDatagram {
    socket: UdpSocket,
    sent: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    bytes_sent: usize,
    bytes_answered: usize,
    /// It has returned something that only who receives its answers can know.
    may_be_known: bool,
}

impl World {
    fn new(kind: u8) -> Self {
        let key = kind.is_multiple_of(4).then(|| Key::new([3; 32]));
        let mut server = Endpoint::bind(loopback()).expect("loopback");
        if let Some(key) = &key {
            server.seal_with(key.clone()).expect("random bytes");
        }
        server.listen(config(), |_| Some(Sink::default()));
        let address = server.socket().local_addr();
        Self {
            server,
            address,
            key,
            attackers: [UnmatchedDatagram::new(address), UnmatchedDatagram::new(address)],
        }
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        let unmatched = &mut self.attackers[usize::from(input.u8() % 2)];
        let datagram = match input.u8() % 8 {
            0 => {
                let len = usize::from(input.u8());
                (0..len).map(|_| input.u8()).collect()
            }
            1 | 2 => opening(input, &[&[], &[0; 24], &[0; 23], &[7; 24]]),
            3 | 4 => unmatched.claim(input),
            5 => unmatched.follow_up(input),
            _ => changed(pick(&unmatched.sent, input), input),
        };
        unmatched.send(datagram);
    }

    fn listen_to_answers(&mut self) {
        for unmatched in &mut self.attackers {
            unmatched.receive();
            let known = unmatched.may_be_known;
            let (sent, answered) = (unmatched.bytes_sent, unmatched.bytes_answered);
            assert!(known || answered <= sent, "{answered} bytes for {sent}");
        }
        if !self.attackers.iter().any(|unmatched| unmatched.may_be_known) {
            assert_eq!(self.server.connections().count(), 0, "memory without a peer");
        }
    }

    fn serve_a_friend(&mut self) {
        let mut friend = Endpoint::bind(loopback()).expect("loopback");
        if let Some(key) = &self.key {
            friend.seal_with(key.clone()).expect("random bytes");
        }
        friend.connect(self.address, &config(), Sink { to_send: 1_000, ..Sink::default() });
        for _ in 0..1_000 {
            friend.step(Duration::from_millis(1)).expect("a working socket");
            self.server.step(Duration::from_millis(1)).expect("a working socket");
            if self.server.connections().any(|(_, _, sink)| sink.stored == 1_000) {
                return;
            }
        }
        panic!("a friend is not served");
    }
}

impl UnmatchedDatagram {
    fn new(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind(loopback()).expect("loopback");
        socket.connect(server).expect("an address");
        socket.set_nonblocking(true).expect("a socket");
        Self {
            socket,
            sent: Vec::new(),
            answers: Vec::new(),
            bytes_sent: 0,
            bytes_answered: 0,
            may_be_known: false,
        }
    }

    fn send(&mut self, datagram: Vec<u8>) {
        self.bytes_sent += datagram.len();
        // Full buffers are a network that loses.
        let _ = self.socket.send(&datagram);
        self.sent.push(datagram);
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2_048];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            self.bytes_answered += len;
            self.answers.push(buffer[..len].to_vec());
        }
    }

    /// The SYN of an answer once more, with the cookie that came for it, perhaps changed.
    fn claim(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        let answer = pick(&self.answers, input);
        let Ok(answer) = parse(&answer) else { return opening(input, &[&[]]) };
        let asked = |sent: &&Vec<u8>| {
            parse(sent).is_ok_and(|sent| sent.segment.seq + 1 == answer.segment.ack)
        };
        let Some(Ok(syn)) = self.sent.iter().find(asked).map(|sent| parse(sent)) else {
            return opening(input, &[&[]]);
        };
        let segment = Segment { payload_len: answer.payload.len() as u32, ..syn.segment };
        let mut claim = Vec::new();
        emit(&segment, syn.ports, answer.payload, &mut claim);
        self.may_be_known = true;
        if input.u8() < 192 { claim } else { changed(claim, input) }
    }

    /// A segment as the connection behind an answer may expect it.
    fn follow_up(&mut self, input: &mut Input<'_>) -> Vec<u8> {
        let answer = pick(&self.answers, input);
        let Ok(answer) = parse(&answer) else { return opening(input, &[&[]]) };
        let payload = vec![input.u8(); usize::from(input.u8())];
        let segment = Segment {
            seq: answer.segment.ack + u32::from(input.u8()) / 64,
            ack: answer.segment.seq + 1 + u32::from(input.u8()) / 64,
            flags: Flags(input.u8()).with(Flags::ACK),
            window: input.u16(),
            payload_len: payload.len() as u32,
            options: Options {
                timestamps: answer
                    .segment
                    .options
                    .timestamps
                    .map(|ts| Timestamps { value: ts.echo, echo: ts.value }),
                ..Options::default()
            },
        };
        let ports = Ports { source: answer.ports.destination, destination: answer.ports.source };
        let mut bytes = Vec::new();
        emit(&segment, ports, &payload, &mut bytes);
        bytes
    }
}

/// A SYN with one of these notes.
fn opening(input: &mut Input<'_>, notes: &[&[u8]]) -> Vec<u8> {
    let note = notes[usize::from(input.u8()) % notes.len()];
    let options = input.u8();
    let segment = Segment {
        seq: SeqNum(u32::from(input.u16())),
        flags: Flags::SYN,
        payload_len: note.len() as u32,
        options: Options {
            mss: (options & 1 == 0).then_some(1_400),
            window_scale: (options & 2 == 0).then_some(7),
            sack_permitted: options & 4 == 0,
            timestamps: (options & 8 == 0).then_some(Timestamps { value: 5, echo: 0 }),
            ..Options::default()
        },
        ..Segment::default()
    };
    let mut bytes = Vec::new();
    emit(&segment, Ports { source: input.u16(), destination: 9 }, note, &mut bytes);
    bytes
}

fn pick(from: &[Vec<u8>], input: &mut Input<'_>) -> Vec<u8> {
    let at = usize::from(input.u8());
    from.get(at % from.len().max(1)).cloned().unwrap_or_default()
}

fn changed(mut datagram: Vec<u8>, input: &mut Input<'_>) -> Vec<u8> {
    let at = usize::from(input.u16()) % datagram.len().max(1);
    match input.u8() % 4 {
        0 => datagram.truncate(at),
        1 => datagram.push(input.u8()),
        _ => datagram.get_mut(at).map_or((), |byte| *byte ^= 1 << (input.u8() % 8)),
    }
    datagram
}

/// Sends `to_send` zeros, and counts what it receives.
#[derive(Default)]
struct Sink {
    to_send: u64,
    stored: u64,
}

impl Application for Sink {
    fn fill(&mut self, _: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.fill(0);
        Ok(())
    }

    fn store(&mut self, _: u64, bytes: &[u8]) -> io::Result<()> {
        self.stored += bytes.len() as u64;
        Ok(())
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        while let Some(event) = connection.poll_event() {
            if event == Event::Connected {
                connection.write(now, self.to_send);
            }
        }
        Ok(())
    }
}

fn config() -> Config {
    Config { recv_buffer: Bytes(100_000), ..Config::default() }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
