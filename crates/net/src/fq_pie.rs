//! FQ-PIE: a queue per flow, served in turn, each under PIE.
//!
//! Source: Linux 6.1's `sch_fq_pie` (Tahiliani et al. 2019); RFC 8290 and RFC 8033.
//!
//! Flows take turns as `rotation.rs` says, new ones with a credit of `quantum` bytes. Each queue
//! has a control law of its own (`pie.rs`), which decides as a parcel arrives. What arrives when all
//! queues together are full is dropped, whosever it is.
//!
//! Deviations: flows are identified by their number and direction, hashed with a seed of its own (stream
//! `"fq-pie"`, which is also PIE's random stream), as Linux hashes addresses and ports. The probability up to
//! which is marked is PIE's 10 %, Linux's default. There is no bound on memory, and all laws are updated
//! at once, where Linux does 2048 at a time.

use weir_units::{Bytes, Instant, Rng};

use crate::droptail::Limit;
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::pie::{PieLaw, PieState, Verdict};
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::rotation::{Joined, Rotation, check_rotation};
use crate::stats::DropCause;

/// An FQ-PIE queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqPieConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// How many queues.
    pub flows: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// The control law of each queue.
    pub law: PieLaw,
}

/// FQ-PIE.
#[derive(Clone, Debug)]
pub struct FqPie<P> {
    config: FqPieConfig,
    mtu: Bytes,
    flows: Rotation<P>,
    /// What the control law of each queue remembers.
    states: Vec<PieState>,
    rng: Rng,
    marks: u64,
}

impl FqPieConfig {
    /// Linux's number of queues, and its quantum on Ethernet.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(10_240),
        flows: 1_024,
        quantum: Bytes(1_514),
        law: PieLaw::DEFAULT,
    };

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_rotation(self.flows, self.quantum)?;
        self.law.validate()
    }
}

impl<P: Parcel> FqPie<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: FqPieConfig, overhead: Bytes, mtu: Bytes, mut rng: Rng) -> Self {
        let salt = rng.next_u64();
        Self {
            config,
            mtu,
            flows: Rotation::new(config.flows, config.quantum, overhead, salt),
            states: vec![PieState::default(); config.flows as usize],
            rng,
            marks: 0,
        }
    }

    /// What the law says of a parcel that arrives for the queue at `place`.
    fn judge(&mut self, now: Instant, place: usize) -> Verdict {
        let Self { config, mtu, flows, states, rng, .. } = self;
        let backlog = flows.bytes_at(place);
        states[place].catch_up(now, &config.law, backlog);
        states[place].judge(&config.law, backlog, *mtu, rng)
    }
}

impl<P: Parcel> Queue<P> for FqPie<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let place = self.flows.place_of(&parcel);
        if !self.flows.has_space(&parcel, self.config.limit, in_service) {
            self.states[place].on_drop();
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
            return;
        }
        let signalled = self.judge(now, place) == Verdict::Signal;
        let Self { config, states, marks, .. } = self;
        if signalled && !states[place].may_mark(&config.law, &mut parcel, marks) {
            states[place].on_drop();
            dropped.push(Dropped { parcel, cause: DropCause::Aqm });
            return;
        }
        if self.flows.push(place, now, parcel) == Joined::Woken {
            self.flows.set_credit(place, self.config.quantum);
        }
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        loop {
            let place = self.flows.next_in_turn()?;
            let state = &mut self.states[place];
            state.catch_up(now, &self.config.law, self.flows.bytes_at(place));
            if let Some(queued) = self.flows.pop(place) {
                state.on_departure(now, queued.sojourn(now), self.flows.bytes_at(place));
                self.flows.charge(place, &queued.parcel);
                return Some(queued);
            }
            self.flows.retire();
        }
    }

    /// All queues are found empty in turn.
    fn on_idle(&mut self, _since: Instant) {
        self.flows.retire_all(|_| {});
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
