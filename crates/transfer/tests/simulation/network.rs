//! A network that loses, repeats, reorders, delays and damages datagrams, and is cut now and then.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_sockets::socket::{DatagramSink, SendBatch};
use weir_units::{Bytes, Duration, Ecn, Instant, Rate, Rng, stream};

use super::tally::Tally;

/// What befalls datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// The capacity of each direction of each host.
    pub(crate) rate: Rate,
    /// Datagrams lost, per thousand,
    pub(crate) loss: u64,
    /// arrive twice,
    pub(crate) duplication: u64,
    /// arrive much later,
    pub(crate) straggling: u64,
    /// are damaged in 1 to 3 bits,
    pub(crate) corruption: u64,
    /// or find the sender's buffer full.
    pub(crate) blocking: u64,
}

impl Conditions {
    pub(crate) fn round_trip(&self) -> Duration {
        (self.delay + self.jitter).saturating_mul(2)
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

/// All datagrams that are on their way.
pub(crate) struct Network {
    pub(crate) now: Cell<Instant>,
    state: RefCell<State>,
}

struct State {
    rng: Rng,
    conditions: Conditions,
    /// A number tells those of one instant apart.
    in_flight: BTreeMap<(Instant, u64), Datagram>,
    /// When each direction of each host is free again.
    busy_until: BTreeMap<(SocketAddr, SocketAddr), Instant>,
    cut: bool,
    /// How many were sent, and delivered.
    sent: u64,
    count: u64,
    tally: Tally,
    /// Some of what was sent, for those who replay it.
    overheard: Vec<Datagram>,
}

impl Network {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Rc<Self> {
        let state = State {
            rng: stream(seed, "network"),
            conditions,
            in_flight: BTreeMap::new(),
            busy_until: BTreeMap::new(),
            cut: false,
            sent: 0,
            count: 0,
            tally: Tally::default(),
            overheard: Vec::new(),
        };
        Rc::new(Self { now: Cell::new(Instant::ZERO), state: RefCell::new(state) })
    }

    pub(crate) fn set_conditions(&self, conditions: Conditions) {
        self.state.borrow_mut().conditions = conditions;
    }

    /// Whether all that is sent from now on is lost.
    pub(crate) fn set_cut(&self, cut: bool) {
        self.state.borrow_mut().cut = cut;
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        Some(self.state.borrow().in_flight.first_key_value()?.0.0)
    }

    /// The next datagram that has arrived by now.
    pub(crate) fn take_arrived(&self) -> Option<Datagram> {
        let mut state = self.state.borrow_mut();
        let first = state.in_flight.first_entry()?;
        (first.key().0 <= self.now.get()).then(|| first.remove())
    }

    pub(crate) fn tally(&self) -> Tally {
        let state = self.state.borrow();
        let mut tally = state.tally.clone();
        tally.add("datagrams", state.sent);
        tally
    }

    /// Something that was sent, if anything was.
    pub(crate) fn overheard(&self, rng: &mut Rng) -> Option<Datagram> {
        let state = self.state.borrow();
        let len = state.overheard.len() as u64;
        (len > 0).then(|| state.overheard[rng.below(len) as usize].clone())
    }

    /// Delivers what an attacker sends.
    pub(crate) fn inject(&self, datagram: Datagram) {
        let mut state = self.state.borrow_mut();
        state.tally.count("datagrams of attackers");
        state.deliver(self.now.get(), datagram);
    }
}

impl State {
    fn happens(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.rng.below(1_000) < per_mille
    }

    fn send(&mut self, now: Instant, mut datagram: Datagram) {
        self.sent += 1;
        if self.overheard.len() < OVERHEARD {
            self.overheard.push(datagram.clone());
        } else if self.rng.below(50) == 0 {
            let at = self.rng.below(OVERHEARD as u64) as usize;
            self.overheard[at] = datagram.clone();
        }
        let conditions = self.conditions;
        if self.cut {
            self.tally.count("datagrams lost to a cut");
            return;
        }
        let way = (datagram.from, datagram.to);
        let free = self.busy_until.get(&way).copied().unwrap_or(now).max(now);
        // Half a second of queue, then it is full.
        if self.happens(conditions.loss) || free.saturating_since(now) > LONGEST_QUEUE {
            self.tally.count("datagrams lost");
            return;
        }
        let mut carry = 0;
        let sent = free
            + conditions.rate.transmit_time(Bytes(datagram.bytes.len() as u64 + 28), &mut carry);
        self.busy_until.insert(way, sent);
        if self.happens(conditions.corruption) {
            self.damage(&mut datagram.bytes);
        }
        if self.happens(conditions.duplication) {
            self.tally.count("datagrams duplicated");
            self.deliver(sent, datagram.clone());
        }
        self.deliver(sent, datagram);
    }

    fn deliver(&mut self, sent: Instant, datagram: Datagram) {
        let conditions = self.conditions;
        let mut delay = conditions.delay + self.rng.duration_up_to(conditions.jitter);
        if self.happens(conditions.straggling) {
            self.tally.count("datagrams much delayed");
            delay += self.rng.duration_up_to(LATEST);
        }
        self.count += 1;
        self.in_flight.insert((sent + delay, self.count), datagram);
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        self.tally.count("datagrams damaged in 1 to 3 bits");
        for _ in 0..=self.rng.below(3) {
            let at = self.rng.below(bytes.len().max(1) as u64 * 8) as usize;
            if let Some(byte) = bytes.get_mut(at / 8) {
                *byte ^= 1 << (at % 8);
            }
        }
    }
}

/// Where the datagrams of a process leave.
pub(crate) struct Outlet {
    pub(crate) network: Rc<Network>,
    pub(crate) address: SocketAddr,
    pub(crate) max_segments: usize,
    /// Datagrams never sent, per thousand.
    pub(crate) withholds: u64,
    /// Whether the process still runs.
    pub(crate) is_alive: Box<dyn Fn() -> bool>,
}

impl DatagramSink for Outlet {
    fn send(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        if !(self.is_alive)() {
            return Ok(());
        }
        let now = self.network.now.get();
        let mut state = self.network.state.borrow_mut();
        let per_mille = state.conditions.blocking;
        if state.happens(per_mille) {
            state.tally.count("sends to a full buffer");
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for bytes in departure.bytes.chunks(departure.stride.max(1)) {
            if state.happens(self.withholds) {
                state.tally.count("datagrams that hostile senders withhold");
                continue;
            }
            let SendBatch { to, ecn, .. } = *departure;
            state.send(now, Datagram { from: self.address, to, ecn, bytes: bytes.to_vec() });
        }
        Ok(())
    }

    fn max_segments(&self) -> usize {
        self.max_segments
    }
}

/// When a queue is full.
pub(crate) const LONGEST_QUEUE: Duration = Duration::from_millis(500);
/// A datagram that was delayed arrives by then.
const LATEST: Duration = Duration::from_secs(2);
/// How many datagrams may be replayed.
const OVERHEARD: usize = 64;
