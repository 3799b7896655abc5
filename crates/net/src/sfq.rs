//! SFQ: a queue per hash of a flow, served in turn; an overflow costs the longest queue a parcel.
//!
//! Sources: McKenney, "Stochastic fairness queueing", INFOCOM 1990; Shreedhar and Varghese, "Efficient
//! fair queueing using deficit round robin", 1996; Linux 6.1's `sch_sfq` (Kuznetsov, Dumazet).
//!
//! Active queues stand in one ring. A queue that wakes up joins the end of the ring with a credit of
//! `quantum` bytes. The queue at the head sends while its credit is positive; then it gets another
//! quantum and goes to the end. A queue that empties leaves the ring and forgets its credit.
//!
//! A parcel for a queue that holds `depth` parcels is dropped, or with `head_drop` the oldest of that
//! queue. When all queues together exceed `limit`, the queue with the most parcels loses its newest
//! (with `head_drop` its oldest): among equals the one that changed last, and where every queue holds
//! a single parcel the one at the head of the ring (`sfq_drop`).
//!
//! Left out: `perturb`, which changes the hash from time to time (off by default), and the RED variant.
//!
//! Deviations: flows are identified by their number and direction, hashed with a salt of its own
//! (stream `"sfq"`), as Linux hashes addresses and ports. Any of the `buckets` may be active at once,
//! where Linux has `flows` (128) queues, which no more than its usual `limit` of 127 parcels can need.

use std::collections::VecDeque;

use weir_units::{Bytes, Instant, Rng};

use crate::droptail::Limit;
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::rotation::{bucket_of, check_rotation, is_over};
use crate::stats::DropCause;

/// An SFQ queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// The most parcels that wait in one queue.
    pub depth: u32,
    /// How many queues flows are hashed to: `divisor` of `tc`.
    pub buckets: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// Drop the oldest parcel of a queue in place of the newest.
    pub head_drop: bool,
}

/// SFQ.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    config: SfqConfig,
    overhead: Bytes,
    salt: u64,
    buckets: Vec<Bucket<P>>,
    /// Queues that hold parcels, the next to send first.
    ring: VecDeque<usize>,
    stored: Backlog,
    /// Counts changes of lengths.
    changes: u64,
}

/// The queue of the flows with one hash.
#[derive(Clone, Debug)]
struct Bucket<P> {
    waiting: VecDeque<Queued<P>>,
    credit: i64,
    /// The number of the last change of its length.
    changed: u64,
}

/// Which end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Oldest,
    Newest,
}

impl SfqConfig {
    /// Linux's bounds and number of hash buckets, and its quantum on Ethernet.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(127),
        depth: 127,
        buckets: 1_024,
        quantum: Bytes(1_514),
        head_drop: false,
    };

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_rotation(self.buckets, self.quantum)?;
        if self.depth == 0 {
            const HELP: &str = "it must be above zero, or nothing gets through";
            return Err(ConfigError::new("queue.flow_limit", self.depth, HELP));
        }
        Ok(())
    }

    /// What a queue that is too long loses.
    fn loses(&self) -> End {
        if self.head_drop { End::Oldest } else { End::Newest }
    }
}

impl<P: Parcel> Sfq<P> {
    /// An empty queue, whose parcels count for `overhead` more bytes than their length.
    pub fn new(config: SfqConfig, overhead: Bytes, mut rng: Rng) -> Self {
        Self {
            config,
            overhead,
            salt: rng.next_u64(),
            buckets: (0..config.buckets).map(|_| Bucket::default()).collect(),
            ring: VecDeque::new(),
            stored: Backlog::default(),
            changes: 0,
        }
    }

    fn push(&mut self, place: usize, queued: Queued<P>) {
        self.stored = self.stored + Backlog { packets: 1, bytes: queued.parcel.len() };
        let bucket = &mut self.buckets[place];
        if bucket.waiting.is_empty() {
            bucket.credit = self.config.quantum.get() as i64;
            self.ring.push_back(place);
        }
        bucket.waiting.push_back(queued);
        self.note_change(place);
    }

    /// Takes a parcel out of a queue that holds one.
    fn take(&mut self, place: usize, end: End) -> Option<Queued<P>> {
        let waiting = &mut self.buckets[place].waiting;
        let queued = match end {
            End::Oldest => waiting.pop_front(),
            End::Newest => waiting.pop_back(),
        }?;
        self.stored.packets -= 1;
        self.stored.bytes -= queued.parcel.len();
        self.note_change(place);
        Some(queued)
    }

    fn note_change(&mut self, place: usize) {
        self.changes += 1;
        self.buckets[place].changed = self.changes;
    }

    /// Drops one parcel of the longest queue.
    fn shorten_longest(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let rank = |place: &usize| {
            let bucket = &self.buckets[*place];
            (bucket.waiting.len(), bucket.changed)
        };
        let Some(longest) = self.ring.iter().copied().max_by_key(rank) else { return };
        let all_hold_one = self.buckets[longest].waiting.len() == 1;
        let place = if all_hold_one { self.ring.pop_front().unwrap_or(longest) } else { longest };
        if let Some(Queued { parcel, .. }) = self.take(place, self.config.loses()) {
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
        }
    }
}

impl<P: Parcel> Queue<P> for Sfq<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let place = bucket_of(&parcel, self.salt, self.buckets.len());
        let queued = Queued { parcel, arrived: now };
        if self.buckets[place].waiting.len() >= self.config.depth as usize {
            let lost = match self.config.loses() {
                End::Newest => Some(queued),
                End::Oldest => {
                    // In this order, so that a queue of depth one keeps its place in the ring.
                    self.push(place, queued);
                    self.take(place, End::Oldest)
                }
            };
            let cause = DropCause::Queue;
            dropped.extend(lost.map(|Queued { parcel, .. }| Dropped { parcel, cause }));
            return;
        }
        self.push(place, queued);
        if is_over(self.stored + in_service, self.overhead, self.config.limit) {
            self.shorten_longest(dropped);
        }
    }

    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        loop {
            let place = *self.ring.front()?;
            let bucket = &mut self.buckets[place];
            if bucket.credit > 0 {
                let queued = self.take(place, End::Oldest)?;
                let bucket = &mut self.buckets[place];
                bucket.credit -= (queued.parcel.len() + self.overhead).get() as i64;
                if bucket.waiting.is_empty() {
                    self.ring.pop_front();
                }
                return Some(queued);
            }
            bucket.credit += self.config.quantum.get() as i64;
            self.ring.rotate_left(1);
        }
    }

    fn backlog(&self) -> Backlog {
        self.stored
    }
}

impl<P> Default for Bucket<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), credit: 0, changed: 0 }
    }
}

#[cfg(test)]
mod tests;
