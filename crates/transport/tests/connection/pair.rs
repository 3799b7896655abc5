//! Two connections and a network between them, in virtual time.
//!
//! Segments cross as bytes, payload included, so every test also covers the wire format; what the
//! applications read is compared with what was written, byte for byte.

use std::collections::BTreeMap;

use weir_transport::wire::{self, Ports};
use weir_transport::{Config, Connection, Event, PathEvent, Segment};
use weir_units::{Duration, Ecn, Feedback, Instant, stream};

/// One end of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Opened the connection.
    Client,
    /// Was listening.
    Server,
}
use Side::{Client, Server};

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Client => Server,
            Server => Client,
        }
    }
}

/// A segment as it enters the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub(crate) at: Instant,
    pub(crate) from: Side,
    pub(crate) segment: Segment,
    /// Stream offset of its payload.
    pub(crate) offset: u64,
    /// Whether its packet is ECN-capable.
    pub(crate) ecn: Ecn,
}

/// What the network does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Deliver,
    Drop,
    /// Delivered now and once more after so long.
    Twice(Duration),
    /// Delivered this much later.
    Late(Duration),
    /// Delivered with this bit flipped, counted from the first and modulo the length.
    Corrupt(usize),
    /// Delivered with a congestion mark, if its packet can carry one.
    Mark,
}

/// What an application does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Reads at once whatever is there, and closes when the peer has closed.
    Eager,
    /// Reads when the test says so.
    Manual,
}

/// A connection and the application on it.
pub(crate) struct End {
    pub(crate) connection: Connection,
    pub(crate) events: Vec<Event>,
    pub(crate) reading: Reading,
    /// Bytes read so far, each compared with what the peer wrote.
    pub(crate) read: u64,
    /// Bytes written so far.
    pub(crate) written: u64,
    /// Datagrams that were no segments.
    pub(crate) malformed: u64,
    received: Vec<Option<u8>>,
}

/// The two ends and the network.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) client: End,
    pub(crate) server: End,
    /// Everything that was sent, in order.
    pub(crate) log: Vec<Passing>,
    latency: Duration,
    network: Box<dyn FnMut(&Passing) -> Verdict>,
    /// Rewrites the feedback in what passes.
    router: Box<dyn FnMut(&mut Feedback)>,
    /// By time of arrival and order of sending.
    in_flight: BTreeMap<(Instant, u64), Datagram>,
    datagrams: u64,
}

struct Datagram {
    to: Side,
    bytes: Vec<u8>,
    ecn: Ecn,
}

impl Pair {
    /// Both ends with the same configuration, 10 ms apart.
    pub(crate) fn new(config: &Config) -> Self {
        Self::with_configs(config, config)
    }

    /// Each end with its own configuration.
    pub(crate) fn with_configs(client: &Config, server: &Config) -> Self {
        Self::drawing(client, server, "client")
    }

    /// The same, with the client's random stream named.
    pub(crate) fn drawing(client: &Config, server: &Config, client_stream: &str) -> Self {
        let now = Instant::from_nanos(5_000_000_000);
        Self {
            now,
            client: End::new(Connection::connect(client, now, stream(1, client_stream))),
            server: End::new(Connection::listen(server, stream(1, "server"))),
            log: Vec::new(),
            latency: ONE_WAY,
            network: Box::new(|_| Verdict::Deliver),
            router: Box::new(|_| {}),
            in_flight: BTreeMap::new(),
            datagrams: 0,
        }
    }

    /// A pair whose handshake is done.
    pub(crate) fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.drive();
        for side in [Client, Server] {
            assert_eq!(pair.end(side).events, [Event::Connected], "{side:?}");
        }
        pair.log.clear();
        pair
    }

    /// From now on the network does as `network` says.
    pub(crate) fn network(&mut self, network: impl FnMut(&Passing) -> Verdict + 'static) {
        self.network = Box::new(network);
    }

    /// From now on a router on the way rewrites feedback, in the bytes that pass it.
    pub(crate) fn router(&mut self, rewrite: impl FnMut(&mut Feedback) + 'static) {
        self.router = Box::new(rewrite);
    }

    /// The network loses the first segment that `which` picks, and nothing else.
    pub(crate) fn lose_first(&mut self, which: impl Fn(&Passing) -> bool + 'static) {
        self.lose_nth(0, which);
    }

    /// The network loses the `n`-th segment (from 0) of those that `which` picks, and nothing else.
    pub(crate) fn lose_nth(&mut self, n: usize, which: impl Fn(&Passing) -> bool + 'static) {
        let mut seen = 0;
        self.network(move |passing| {
            seen += usize::from(which(passing));
            if which(passing) && seen == n + 1 { Verdict::Drop } else { Verdict::Deliver }
        });
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// The application of `side` makes `bytes` more available.
    pub(crate) fn write(&mut self, side: Side, bytes: u64) {
        let now = self.now;
        let end = self.end(side);
        end.written += bytes;
        end.connection.write(now, bytes);
    }

    /// The application of `side` reads up to `max` bytes; returns how many there were.
    pub(crate) fn read(&mut self, side: Side, max: u64) -> u64 {
        let now = self.now;
        self.end(side).read(now, side.other(), max)
    }

    pub(crate) fn close(&mut self, side: Side) {
        let now = self.now;
        self.end(side).connection.close(now);
    }

    pub(crate) fn abort(&mut self, side: Side) {
        let now = self.now;
        self.end(side).connection.abort(now);
    }

    /// The network tells `side` something.
    pub(crate) fn notify(&mut self, side: Side, event: PathEvent) {
        let now = self.now;
        self.end(side).connection.handle_path_event(now, event);
        self.settle();
    }

    /// Runs until nothing is in flight and no timer is set.
    ///
    /// # Panics
    /// If that does not happen within a generous number of steps.
    pub(crate) fn drive(&mut self) {
        self.drive_until(Instant::MAX);
    }

    /// Runs for `time`.
    pub(crate) fn drive_for(&mut self, time: Duration) {
        let until = self.now + time;
        self.drive_until(until);
        self.now = until;
    }

    fn drive_until(&mut self, until: Instant) {
        let mut steps_at_once = 0;
        for _ in 0..MAX_STEPS {
            self.settle();
            let Some(next) = self.next_time().filter(|next| *next <= until) else { return };
            steps_at_once = if next > self.now { 0 } else { steps_at_once + 1 };
            assert!(steps_at_once < MAX_STEPS_AT_ONCE, "livelock at {next}");
            self.now = self.now.max(next);
            self.step();
        }
        panic!("not done after {MAX_STEPS} steps");
    }

    /// One thing that is due, so that the ends can answer before the next.
    fn step(&mut self) {
        let now = self.now;
        if let Some(first) = self.in_flight.first_entry().filter(|e| e.key().0 <= now) {
            let datagram = first.remove();
            self.end(datagram.to).receive(now, &datagram);
            return;
        }
        let due = |end: &End| end.connection.next_timeout(now).is_some_and(|at| at <= now);
        let end = if due(&self.client) { &mut self.client } else { &mut self.server };
        end.connection.handle_timeout(now);
    }

    fn next_time(&self) -> Option<Instant> {
        let now = self.now;
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let timeouts = [&self.client, &self.server].map(|end| end.connection.next_timeout(now));
        arrival.into_iter().chain(timeouts.into_iter().flatten()).min()
    }

    /// Lets both ends send and their applications act until neither has anything to do now.
    fn settle(&mut self) {
        for side in [Client, Server] {
            loop {
                self.transmit(side);
                let now = self.now;
                if !self.end(side).act(now, side.other()) {
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, side: Side) {
        for _ in 0..MAX_BURST {
            let now = self.now;
            let Some(transmit) = self.end(side).connection.poll_transmit(now) else { return };
            let passing = Passing {
                at: now,
                from: side,
                segment: transmit.segment,
                offset: transmit.offset,
                ecn: transmit.ecn,
            };
            let range = passing.offset..passing.offset + u64::from(passing.segment.payload_len);
            let written = self.end(side).written;
            assert!(range.is_empty() || range.end <= written, "sends only what was written");
            let payload: Vec<u8> = range.map(|at| byte_at(side, at)).collect();
            let mut bytes = Vec::new();
            wire::emit(&passing.segment, Ports { source: 1, destination: 2 }, &payload, &mut bytes);
            wire::stamp(&mut bytes, &mut self.router);
            self.log.push(passing);
            let verdict = (self.network)(&passing);
            self.carry(&passing, bytes, verdict);
        }
        panic!("{side:?} sends more than {MAX_BURST} segments at once");
    }

    fn carry(&mut self, passing: &Passing, mut bytes: Vec<u8>, verdict: Verdict) {
        let to = passing.from.other();
        let ecn = match (passing.ecn, verdict) {
            (Ecn::Ect0 | Ecn::Ect1, Verdict::Mark) => Ecn::Ce,
            (unmarked, _) => unmarked,
        };
        let on_time = self.now + self.latency;
        let arrival = match verdict {
            Verdict::Drop => return,
            Verdict::Late(by) => on_time + by,
            _ => on_time,
        };
        if let Verdict::Corrupt(bit) = verdict {
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Verdict::Twice(after) = verdict {
            self.enqueue(arrival + after, Datagram { to, bytes: bytes.clone(), ecn });
        }
        self.enqueue(arrival, Datagram { to, bytes, ecn });
    }

    fn enqueue(&mut self, arrival: Instant, datagram: Datagram) {
        self.in_flight.insert((arrival, self.datagrams), datagram);
        self.datagrams += 1;
    }
}

impl End {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            events: Vec::new(),
            reading: Reading::Eager,
            read: 0,
            written: 0,
            malformed: 0,
            received: Vec::new(),
        }
    }

    fn receive(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(parsed) = wire::parse(&datagram.bytes) else {
            self.malformed += 1;
            return;
        };
        let arrived = self.connection.handle_segment(now, &parsed.segment, datagram.ecn);
        let Some(arrived) = arrived else { return };
        let part = &parsed.payload[arrived.skip as usize..][..arrived.len as usize];
        let at = arrived.offset as usize;
        self.received.resize(self.received.len().max(at + part.len()), None);
        for (slot, byte) in self.received[at..].iter_mut().zip(part) {
            *slot = Some(*byte);
        }
    }

    /// Events and what the application does by itself; whether it did something.
    fn act(&mut self, now: Instant, peer: Side) -> bool {
        let mut acted = false;
        while let Some(event) = self.connection.poll_event() {
            acted = true;
            if event == Event::Finished && self.reading == Reading::Eager {
                self.connection.close(now);
            }
            if event != Event::Readable {
                self.events.push(event);
            }
        }
        if self.reading == Reading::Eager {
            acted |= self.read(now, peer, u64::MAX) > 0;
        }
        acted
    }

    fn read(&mut self, now: Instant, peer: Side, max: u64) -> u64 {
        let count = self.connection.read(now, max);
        for at in self.read..self.read + count {
            assert_eq!(
                self.received[at as usize],
                Some(byte_at(peer, at)),
                "byte {at} from {peer:?}"
            );
        }
        self.read += count;
        count
    }
}

/// What the application of `side` writes at `offset`.
fn byte_at(side: Side, offset: u64) -> u8 {
    let mixed = (offset ^ ((side as u64) << 62)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// The network's one-way latency.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(10);
/// A round trip.
pub(crate) const RTT: Duration = Duration::from_millis(20);

const MAX_STEPS: usize = 1_000_000;
const MAX_STEPS_AT_ONCE: usize = 20_000;
const MAX_BURST: usize = 100_000;
