//! PIE: drops with a probability that a proportional integral controller steers by the delay.
//!
//! Source: RFC 8033 (Pan, Natarajan, Baker, White 2017); where it leaves a choice or Linux differs,
//! Linux 6.1's `sch_pie` and `pie.h`.
//!
//! The queueing delay is that of the parcel that left last, and zero once the queue is empty
//! (RFC 8033 §5.2, timestamps). Every `update`, the probability moves by
//!
//! ```text
//! p += alpha (delay - target) + beta (delay - delay at the last update)
//! ```
//!
//! Below 10 % both weights are halved, and quartered again below 1 %, 0.1 % and so on down to 10^-6
//! (§4.2; Linux's finer steps). From 10 % on p rises by 2 % at most at a time; above 250 ms of delay it
//! rises by 2 % more; after two updates without delay it shrinks by a 64th.
//!
//! At an arrival p is added to a sum (§5.4): below 0.85 nothing is signalled, from 8.5 on the parcel is,
//! between them at random with p, which begins the sum anew. Never signalled is
//!
//! - during a burst (§4.4): for 150 ms of sending after p, the delay and the one before had settled,
//! - while the delay is below half the target and p below 20 % (§4.1),
//! - while less than two full-sized parcels are there.
//!
//! A signal is a mark if `ecn` is on, the parcel capable and p at most 10 % (§5.1), else a drop.
//!
//! Since the delay is that of a parcel that leaves, it lags: what does not listen and sends at four times
//! the rate makes p swing between 0 and 1, with delays far beyond the target. Linux has the same rule.
//!
//! Deviations: p stays at 1 where Linux lets it go on to 256. A mark that was overdue begins the sum anew
//! as a drop does, where Linux goes on marking. Updates come at multiples of
//! `update`, whenever the queue was set up. The delay is never estimated from a departure rate
//! (`dq_rate_estimator`, off in Linux) and probabilities never weighted by length (`bytemode`, off).
//! What a token bucket has taken and holds does not keep an update from counting the queue as
//! empty. Random numbers come from stream `"pie"`.

use weir_units::{Bytes, Duration, Instant, Rng};

use crate::droptail::{DropTail, DropTailConfig, Limit};
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};
use crate::stats::DropCause;

/// A PIE queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieConfig {
    /// The bound; arrivals to a full queue are dropped.
    pub limit: Limit,
    /// The control law.
    pub law: PieLaw,
}

/// The parameters of PIE's control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieLaw {
    /// The delay to hold.
    pub target: Duration,
    /// How often the probability moves.
    pub update: Duration,
    /// How much a delay beyond the target counts, in sixteenths per second, as `tc` has it.
    pub alpha: u32,
    /// How much a change of the delay counts, in the same unit.
    pub beta: u32,
    /// Whether parcels that are capable of ECN are marked in place of a drop.
    pub ecn: bool,
}

/// A FIFO under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    fifo: DropTail<P>,
    law: PieLaw,
    mtu: Bytes,
    state: PieState,
    rng: Rng,
    marks: u64,
}

/// What the control law remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieState {
    /// In units of 2^-56.
    probability: u64,
    /// The sum of probabilities since the last signal, in the same unit.
    accumulated: u64,
    delay: Duration,
    delay_before: Duration,
    burst_left: Duration,
    last_departure: Option<Instant>,
    /// The updates so far.
    updates: u64,
}

/// What happens to an arriving parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Signal,
}

impl PieLaw {
    /// The parameters of Linux and, but for ECN, of RFC 8033.
    pub const DEFAULT: Self = Self {
        target: Duration::from_millis(15),
        update: Duration::from_millis(15),
        alpha: 2,
        beta: 20,
        ecn: false,
    };

    /// The shortest time between updates.
    pub const MIN_UPDATE: Duration = Duration::from_micros(10);
    /// The largest alpha or beta, 64 per second, in sixteenths.
    pub const MAX_WEIGHT: u32 = 1_024;

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.update < Self::MIN_UPDATE {
            return Err(ConfigError::new("queue.update", self.update, "10us at least"));
        }
        for (key, weight) in [("queue.alpha", self.alpha), ("queue.beta", self.beta)] {
            if weight > Self::MAX_WEIGHT {
                return Err(ConfigError::new(key, weight, "0 to 1024 (sixteenths per second)"));
            }
        }
        Ok(())
    }
}

impl<P: Parcel> Pie<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: PieConfig, overhead: Bytes, mtu: Bytes, rng: Rng) -> Self {
        let fifo = DropTail::new(DropTailConfig { overhead, ..config.limit.into() });
        Self { fifo, law: config.law, mtu, state: PieState::default(), rng, marks: 0 }
    }
}

impl<P: Parcel> Queue<P> for Pie<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let Self { fifo, law, mtu, state, rng, marks } = self;
        state.catch_up(now, law, fifo.charged());
        if !fifo.has_space(&parcel, in_service) {
            state.on_drop();
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
            return;
        }
        let verdict = state.judge(law, fifo.charged_with(in_service), *mtu, rng);
        if verdict == Verdict::Signal && !state.may_mark(law, &mut parcel, marks) {
            state.on_drop();
            dropped.push(Dropped { parcel, cause: DropCause::Aqm });
            return;
        }
        fifo.enqueue(now, parcel, in_service, dropped);
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        self.state.catch_up(now, &self.law, self.fifo.charged());
        let head = self.fifo.pop()?;
        self.state.on_departure(now, head.sojourn(now), self.fifo.charged());
        Some(head)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

impl PieState {
    /// Makes the updates that were due up to `now`, while `backlog` was there.
    pub(crate) fn catch_up(&mut self, now: Instant, law: &PieLaw, backlog: Bytes) {
        let due = now.as_nanos() / law.update.as_nanos();
        let missed = due - self.updates;
        for _ in 0..missed.min(MAX_CATCH_UP) {
            let before = (self.probability, self.delay_before, self.burst_left);
            self.update(law, backlog);
            // Nothing moves any more, so the other updates change nothing.
            if before == (self.probability, self.delay_before, self.burst_left) {
                break;
            }
        }
        self.updates = due;
    }

    /// Whether an arriving parcel is signalled (`pie_drop_early`).
    pub(crate) fn judge(
        &mut self,
        law: &PieLaw,
        backlog: Bytes,
        mtu: Bytes,
        rng: &mut Rng,
    ) -> Verdict {
        let calm = self.delay < law.target / 2 && self.probability < ONE / 5;
        if self.burst_left > Duration::ZERO || calm || backlog < mtu * 2 {
            return Verdict::Pass;
        }
        self.accumulated = match self.probability {
            0 => 0,
            probability => self.accumulated + probability,
        };
        if self.accumulated < ONE / 100 * 85 {
            return Verdict::Pass;
        }
        let is_overdue = self.accumulated >= ONE / 2 * 17;
        if !is_overdue && rng.next_u64() >> 8 >= self.probability {
            return Verdict::Pass;
        }
        self.accumulated = 0;
        Verdict::Signal
    }

    /// Marks a parcel that is signalled, if it and the law allow that; says whether it was marked.
    pub(crate) fn may_mark<P: Parcel>(
        &self,
        law: &PieLaw,
        parcel: &mut P,
        marks: &mut u64,
    ) -> bool {
        law.ecn && self.probability <= ONE / 10 && mark(parcel, marks)
    }

    /// An arriving parcel was dropped.
    pub(crate) fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// A parcel leaves after `sojourn`, `behind` stays (`pie_process_dequeue`).
    pub(crate) fn on_departure(&mut self, now: Instant, sojourn: Duration, behind: Bytes) {
        self.delay = if behind == Bytes::ZERO { Duration::ZERO } else { sojourn };
        let since = self.last_departure.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_departure = Some(now);
        self.burst_left = self.burst_left.saturating_sub(since);
    }

    /// Moves the probability (`pie_calculate_probability`).
    fn update(&mut self, law: &PieLaw, backlog: Bytes) {
        let (delay, before) = (self.delay, self.delay_before);
        let mut step = self.step(law);
        if step > i128::from(ONE / 50) && self.probability >= ONE / 10 {
            step = i128::from(ONE / 50);
        }
        if delay > LONG_DELAY {
            step += i128::from(ONE / 50);
        }
        let moved = (i128::from(self.probability) + step).clamp(0, i128::from(ONE));
        self.probability = moved as u64;
        let at_rest = delay == Duration::ZERO && before == Duration::ZERO;
        if at_rest && backlog == Bytes::ZERO {
            self.probability -= self.probability / 64;
        }
        let calm = delay < law.target / 2 && before < law.target / 2;
        self.delay_before = delay;
        if calm && self.probability == 0 {
            self.burst_left = BURST;
            self.last_departure = None;
            self.accumulated = 0;
        }
    }

    /// The controller's step at the present delay.
    fn step(&self, law: &PieLaw) -> i128 {
        const NANOS: i128 = 1_000_000_000;
        let nanos = |delay: Duration| i128::from(delay.as_nanos());
        let weight = |sixteenths: u32| i128::from(sixteenths) * i128::from(ONE) / NANOS / 16;
        let mut halvings = 0;
        if self.probability < ONE / 10 {
            halvings = 1;
            let mut power = 100;
            while power <= 1_000_000 && self.probability < ONE / power {
                halvings += 2;
                power *= 10;
            }
        }
        let (alpha, beta) = (weight(law.alpha) >> halvings, weight(law.beta) >> halvings);
        let (delay, before) = (nanos(self.delay), nanos(self.delay_before));
        alpha * (delay - nanos(law.target)) + beta * (delay - before)
    }
}

impl Default for PieState {
    fn default() -> Self {
        Self {
            probability: 0,
            accumulated: 0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            burst_left: BURST,
            last_departure: None,
            updates: 0,
        }
    }
}

/// Linux's `MAX_PROB`: probability one.
const ONE: u64 = u64::MAX >> 8;
/// Up to which nothing is signalled once a queue has settled.
const BURST: Duration = Duration::from_millis(150);
/// From which on the probability rises faster.
const LONG_DELAY: Duration = Duration::from_millis(250);
/// The most updates made at once, a quarter of an hour's by default; further ones are skipped.
const MAX_CATCH_UP: u64 = 1 << 16;

#[cfg(test)]
mod tests;
