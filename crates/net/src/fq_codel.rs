//! FQ-CoDel: a queue per flow, served in turn, each under CoDel.
//!
//! Source: RFC 8290 (Hoeiland-Joergensen et al. 2018); Linux 6.1's `sch_fq_codel`.
//!
//! Flows take turns as `rotation.rs` says, new ones with a credit of `quantum` bytes.
//!
//! When the bound is exceeded, the longest queue (in bytes) loses half of its bytes from its head, 64
//! parcels at most, and its CoDel counts them as signals (`fq_codel_drop`).
//!
//! Deviations: flows are identified by their number and direction, hashed with a seed of its own (stream
//! `"fq-codel"`), as Linux hashes addresses and ports. There is no bound on memory.

use weir_units::{Bytes, Instant, Rng};

use crate::codel::{CodelLaw, CodelState, Head, Signals};
use crate::droptail::Limit;
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::rotation::{Joined, Rotation, check_rotation};
use crate::stats::DropCause;

/// An FQ-CoDel queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// How many queues.
    pub flows: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// The control law of each queue.
    pub law: CodelLaw,
}

/// FQ-CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    overhead: Bytes,
    mtu: Bytes,
    flows: Rotation<P>,
    /// What the control law of each queue remembers.
    states: Vec<CodelState>,
    marks: u64,
}

impl FqCodelConfig {
    /// Linux's number of queues, and its quantum on Ethernet.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(10_240),
        flows: 1_024,
        quantum: Bytes(1_514),
        law: CodelLaw { ecn: true, ..CodelLaw::DEFAULT },
    };

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_rotation(self.flows, self.quantum)
    }
}

impl<P: Parcel> FqCodel<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: FqCodelConfig, overhead: Bytes, mtu: Bytes, mut rng: Rng) -> Self {
        Self {
            config,
            overhead,
            mtu,
            flows: Rotation::new(config.flows, config.quantum, overhead, rng.next_u64()),
            states: vec![CodelState::default(); config.flows as usize],
            marks: 0,
        }
    }

    fn shorten_longest(&mut self, dropped: &mut Vec<Dropped<P>>) {
        const BATCH: u32 = 64;
        let longest = self.flows.longest();
        let enough = self.flows.bytes_at(longest).mul_ratio(1, 2);
        let (mut parcels, mut bytes) = (0, Bytes::ZERO);
        while let Some(Queued { parcel, .. }) = self.flows.pop(longest) {
            parcels += 1;
            bytes += parcel.len() + self.overhead;
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
            if parcels >= BATCH || bytes >= enough {
                break;
            }
        }
        let state = &mut self.states[longest];
        state.count = state.count.wrapping_add(parcels);
    }
}

impl<P: Parcel> Queue<P> for FqCodel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let place = self.flows.place_of(&parcel);
        if self.flows.push(place, now, parcel) == Joined::Woken {
            self.flows.set_credit(place, self.config.quantum);
        }
        if self.flows.is_over(self.config.limit, in_service) {
            self.shorten_longest(dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        loop {
            let place = self.flows.next_in_turn()?;
            let Self { config, mtu, flows, states, marks, .. } = self;
            let signals = Signals { law: &config.law, mtu: *mtu, dropped, marks };
            let sent = states[place].dequeue(now, signals, || {
                let queued = flows.pop(place)?;
                Some(Head { queued, behind: flows.charged() })
            });
            if let Some(queued) = sent {
                flows.charge(place, &queued.parcel);
                return Some(queued);
            }
            flows.retire();
        }
    }

    /// All queues are found empty in turn.
    fn on_idle(&mut self, _since: Instant) {
        let Self { flows, states, .. } = self;
        flows.retire_all(|place| states[place].on_empty());
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
