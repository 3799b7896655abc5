//! FQ: a queue per flow, served in turn, each with a bound of its own and no further management.
//!
//! Source: Linux 6.1's `sch_fq` (Dumazet 2013).
//!
//! Flows take turns as `rotation.rs` says. A new flow may send `initial_quantum`
//! bytes in its first turn, one that comes back keeps the credit it had left; a pause of `refill_delay`
//! gives it a whole quantum again. What finds `limit` parcels in all queues, or `flow_limit` in its
//! own, is dropped. With `ce_threshold` every capable parcel that waited for longer is marked.
//!
//! Left out: pacing. Linux's FQ lets a socket's packets go at the rate that its congestion control sets;
//! here senders pace themselves (as Linux's TCP does without FQ), and a router knows no sockets. So
//! there is no `maxrate`, no horizon and no departure times; nor a queue of its own for
//! control packets.
//!
//! Deviations: flows are identified by their number and direction, hashed with a seed of its own (stream
//! `"fq"`) into `flows` queues, as Linux does with packets of no local socket (`orphan_mask`); of local
//! sockets each has its queue there. A queue's memory of its credit never expires.

use weir_units::{Bytes, Duration, Instant, Rng};

use crate::droptail::Limit;
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};
use crate::rotation::{Joined, MAX_QUANTUM, Rotation, check_rotation};
use crate::stats::DropCause;

/// An FQ queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// The most parcels that wait in one queue.
    pub flow_limit: u32,
    /// How many queues.
    pub flows: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// The same of the first turn ever.
    pub initial_quantum: Bytes,
    /// The pause after which a queue has a quantum again.
    pub refill_delay: Duration,
    /// Parcels capable of ECN that waited for longer than this are marked.
    pub ce_threshold: Option<Duration>,
}

/// FQ.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    config: FqConfig,
    flows: Rotation<P>,
    /// When each queue was found empty; `None` for one never used.
    emptied: Vec<Option<Instant>>,
    marks: u64,
}

impl FqConfig {
    /// Linux's, with its quanta on Ethernet.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(10_000),
        flow_limit: 100,
        flows: 1_024,
        quantum: Bytes(2 * 1_514),
        initial_quantum: Bytes(10 * 1_514),
        refill_delay: Duration::from_millis(40),
        ce_threshold: None,
    };

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_rotation(self.flows, self.quantum)?;
        if self.initial_quantum > MAX_QUANTUM {
            const HELP: &str = "it may be 1gib at most";
            return Err(ConfigError::new("queue.initial_quantum", self.initial_quantum, HELP));
        }
        Ok(())
    }
}

impl<P: Parcel> Fq<P> {
    /// An empty queue, whose parcels count for `overhead` more bytes than their length.
    pub fn new(config: FqConfig, overhead: Bytes, mut rng: Rng) -> Self {
        Self {
            config,
            flows: Rotation::new(config.flows, config.quantum, overhead, rng.next_u64()),
            emptied: vec![None; config.flows as usize],
            marks: 0,
        }
    }

    /// A queue that was empty gets its credit.
    fn refill(&mut self, now: Instant, place: usize) {
        let FqConfig { quantum, initial_quantum, refill_delay, .. } = self.config;
        match self.emptied[place] {
            None => self.flows.set_credit(place, initial_quantum),
            Some(since) if now.saturating_since(since) > refill_delay => {
                self.flows.grant(place, quantum);
            }
            Some(_) => {}
        }
    }
}

impl<P: Parcel> Queue<P> for Fq<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let place = self.flows.place_of(&parcel);
        let waiting = self.flows.packets_at(place) as u64;
        let is_full = waiting > 0 && waiting >= u64::from(self.config.flow_limit);
        if is_full || !self.flows.has_space(&parcel, self.config.limit, in_service) {
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
        } else if self.flows.push(place, now, parcel) == Joined::Woken {
            self.refill(now, place);
        }
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        // As in Linux, an empty FQ looks at no queue: the last one keeps its place in its list.
        if self.flows.stored().packets == 0 {
            return None;
        }
        loop {
            let place = self.flows.next_in_turn()?;
            if let Some(mut queued) = self.flows.pop(place) {
                self.flows.charge(place, &queued.parcel);
                let threshold = self.config.ce_threshold;
                if threshold.is_some_and(|threshold| queued.sojourn(now) > threshold) {
                    mark(&mut queued.parcel, &mut self.marks);
                }
                return Some(queued);
            }
            if let Some(place) = self.flows.retire() {
                self.emptied[place] = Some(now);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.flows.stored()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

#[cfg(test)]
mod tests;
