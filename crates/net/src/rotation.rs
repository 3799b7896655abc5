//! Queues of flows that are served in turn, each by its credit: what FQ-CoDel, FQ and FQ-PIE share.
//!
//! Sources: Shreedhar and Varghese, "Efficient fair queueing using deficit round robin", 1996;
//! RFC 8290 §4; Linux 6.1's `sch_fq_codel`, `sch_fq` and `sch_fq_pie`.
//!
//! A hash puts each parcel into one of the queues. Queues with something to send stand in one of two
//! lists. A queue that wakes up joins the *new* ones; new queues go before old ones, so that a flow that
//! sends little never waits behind those that fill the link. The first queue of the list sends while
//! its credit is positive; then it gets another quantum and goes to the end of the *old* list. A queue
//! found empty leaves its list, but a new one passes through the old list first, so that no flow starves.

use std::collections::VecDeque;

use weir_units::{Bytes, Instant};

use crate::droptail::Limit;
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Queued};

/// Queues that take turns.
#[derive(Clone, Debug)]
pub(crate) struct Rotation<P> {
    quantum: Bytes,
    overhead: Bytes,
    salt: u64,
    turns: Vec<Turn<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    stored: Backlog,
}

/// A queue for those flows whose hash leads to it.
#[derive(Clone, Debug)]
struct Turn<P> {
    waiting: VecDeque<Queued<P>>,
    /// Bytes that wait, overhead included.
    bytes: Bytes,
    credit: i64,
    is_listed: bool,
}

/// What a parcel finds as it joins its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// The queue had its place in a list.
    Waiting,
    /// The queue has just joined the new ones.
    Woken,
}

/// The largest number of queues into which a discipline hashes flows.
pub const MAX_FLOW_QUEUES: u32 = 65_536;
/// The most that a queue may send per turn.
pub const MAX_QUANTUM: Bytes = Bytes(1 << 30);

/// Whether a rotation with this number of queues and this quantum is allowed.
pub(crate) fn check_rotation(flows: u32, quantum: Bytes) -> Result<(), ConfigError> {
    if !(1..=MAX_FLOW_QUEUES).contains(&flows) {
        return Err(ConfigError::new("queue.flows", flows, "1 to 65536"));
    }
    if !(Bytes(1)..=MAX_QUANTUM).contains(&quantum) {
        const HELP: &str = "it must be above zero, and 1gib at most";
        return Err(ConfigError::new("queue.quantum", quantum, HELP));
    }
    Ok(())
}

impl<P: Parcel> Rotation<P> {
    /// `flows` empty queues, in whose turn `quantum` bytes may leave. Each parcel counts for `overhead`
    /// more bytes than its length; `salt` changes which flows meet in a queue.
    pub(crate) fn new(flows: u32, quantum: Bytes, overhead: Bytes, salt: u64) -> Self {
        Self {
            quantum,
            overhead,
            salt,
            turns: (0..flows).map(|_| Turn::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            stored: Backlog::default(),
        }
    }

    /// The queue of a parcel's flow.
    pub(crate) fn place_of(&self, parcel: &P) -> usize {
        bucket_of(parcel, self.salt, self.turns.len())
    }

    /// Puts a parcel into a queue.
    pub(crate) fn push(&mut self, place: usize, now: Instant, parcel: P) -> Joined {
        self.stored = self.stored + Backlog { packets: 1, bytes: parcel.len() };
        let turn = &mut self.turns[place];
        turn.bytes += parcel.len() + self.overhead;
        turn.waiting.push_back(Queued { parcel, arrived: now });
        if turn.is_listed {
            return Joined::Waiting;
        }
        turn.is_listed = true;
        self.new.push_back(place);
        Joined::Woken
    }

    /// Takes the head of a queue, and updates the counters.
    pub(crate) fn pop(&mut self, place: usize) -> Option<Queued<P>> {
        let turn = &mut self.turns[place];
        let head = turn.waiting.pop_front()?;
        let len = head.parcel.len();
        turn.bytes -= len + self.overhead;
        self.stored.packets -= 1;
        self.stored.bytes -= len;
        Some(head)
    }

    /// The queue whose turn it is, once those without credit have got theirs.
    pub(crate) fn next_in_turn(&mut self) -> Option<usize> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let place = *list.front()?;
            let turn = &mut self.turns[place];
            if turn.credit > 0 {
                return Some(place);
            }
            turn.credit += self.quantum.get() as i64;
            list.pop_front();
            self.old.push_back(place);
        }
    }

    /// A queue has sent this parcel.
    pub(crate) fn charge(&mut self, place: usize, parcel: &P) {
        self.turns[place].credit -= (parcel.len() + self.overhead).get() as i64;
    }

    /// The queue whose turn it is was found empty. Returns it if it has left the lists.
    pub(crate) fn retire(&mut self) -> Option<usize> {
        if let Some(place) = self.new.pop_front() {
            if !self.old.is_empty() {
                self.old.push_back(place);
                return None;
            }
            self.turns[place].is_listed = false;
            return Some(place);
        }
        let place = self.old.pop_front()?;
        self.turns[place].is_listed = false;
        Some(place)
    }

    /// All queues are found empty in turn; `visit` learns of each.
    pub(crate) fn retire_all(&mut self, mut visit: impl FnMut(usize)) {
        for place in self.new.drain(..).chain(self.old.drain(..)) {
            self.turns[place].is_listed = false;
            visit(place);
        }
    }

    /// Raises a queue's credit to `least`, if it has less.
    pub(crate) fn grant(&mut self, place: usize, least: Bytes) {
        let turn = &mut self.turns[place];
        turn.credit = turn.credit.max(least.get() as i64);
    }

    /// Sets a queue's credit.
    pub(crate) fn set_credit(&mut self, place: usize, credit: Bytes) {
        self.turns[place].credit = credit.get() as i64;
    }

    /// The queue with the most bytes, the first of equals.
    pub(crate) fn longest(&self) -> usize {
        let mut longest = 0;
        for (place, turn) in self.turns.iter().enumerate() {
            if turn.bytes > self.turns[longest].bytes {
                longest = place;
            }
        }
        longest
    }

    /// How many parcels wait in a queue.
    pub(crate) fn packets_at(&self, place: usize) -> usize {
        self.turns[place].waiting.len()
    }

    /// The bytes that wait in a queue, overhead included.
    pub(crate) fn bytes_at(&self, place: usize) -> Bytes {
        self.turns[place].bytes
    }

    /// Everything stored.
    pub(crate) fn stored(&self) -> Backlog {
        self.stored
    }

    /// The bytes stored, overhead included.
    pub(crate) fn charged(&self) -> Bytes {
        self.stored.bytes + self.overhead * self.stored.packets
    }

    /// Whether all queues together, with what is in service, are beyond a bound. A link that holds one
    /// parcel only never is.
    pub(crate) fn is_over(&self, limit: Limit, in_service: Backlog) -> bool {
        is_over(self.stored + in_service, self.overhead, limit)
    }

    /// Whether they would be with this parcel.
    pub(crate) fn has_space(&self, parcel: &P, limit: Limit, in_service: Backlog) -> bool {
        let with_it = self.stored + in_service + Backlog { packets: 1, bytes: parcel.len() };
        !is_over(with_it, self.overhead, limit)
    }
}

impl<P> Default for Turn<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: Bytes::ZERO, credit: 0, is_listed: false }
    }
}

/// Whether a backlog is beyond a bound: never if it is a single parcel.
pub(crate) fn is_over(backlog: Backlog, overhead: Bytes, limit: Limit) -> bool {
    let (max_packets, max_bytes) = limit.bounds();
    let bytes = backlog.bytes + overhead * backlog.packets;
    backlog.packets > 1 && (backlog.packets > max_packets || bytes.get() > max_bytes)
}

/// The bucket, of `buckets`, of a parcel's flow. Flows are identified by their number and direction.
pub(crate) fn bucket_of(parcel: &impl Parcel, salt: u64, buckets: usize) -> usize {
    let key = u64::from(parcel.conversation()) << 1 | u64::from(parcel.is_forward());
    scaled(hash(key, salt), buckets)
}

/// Fibonacci hashing, to 32 bits.
pub(crate) fn hash(key: u64, salt: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (key ^ salt).wrapping_mul(GOLDEN);
    (mixed ^ mixed >> 32).wrapping_mul(GOLDEN) >> 32
}

/// A hash of 32 bits scaled to `0 .. places`.
fn scaled(hash: u64, places: usize) -> usize {
    ((hash * places as u64) >> 32) as usize
}
