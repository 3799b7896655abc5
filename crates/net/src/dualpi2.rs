//! DualPI2: two queues, one for L4S and one for all other traffic, whose signals are coupled.
//!
//! Sources: RFC 9332 (De Schepper, Briscoe, White 2023), appendix A; De Schepper et al., "PI2: a
//! linearized AQM for both classic and scalable TCP", 2016; for the scheduler Linux's `sch_dualpi2`.
//!
//! Packets with ECT(1) or CE go to the *L queue*, the others to the *classic* one (§2.3); with
//! [`Classifier::AnyEct`] all that are capable of ECN go to the L queue, as with Linux's `any_ect`. Every
//! `update` = min(target, rtt_max/3) the base probability moves by
//!
//! ```text
//! p' += alpha (delay - target) + beta (delay - delay at the last update)
//! alpha = 0.1 update / rtt_max^2 per second,   beta = 0.3 / rtt_max per second
//! ```
//!
//! the delay being that of the heads, the longer of the two. A classic parcel is dropped, or marked if it is
//! capable, with `p_C = p'^2`; one of the L queue is marked with the larger of `p_CL = k p'` and its
//! own ramp, which goes from 0 to 1 over `ramp` around `threshold` of its own waiting time, and stays 0
//! while nothing waits behind it (Th_len of one packet). `ramp` 0 is a step. With k = 2 the rates of a scalable and a classic
//! flow are equal where their windows follow 2/p and 1.22/sqrt(p) (§2.1).
//!
//! Overload (§2.5.1, appendix A.2) is `p_CL >= 1`, which is `p_C >= 1/k^2`: then the classic queue drops
//! capable parcels too, and the L queue drops with `p_C` before it marks with `p_CL`.
//!
//! Signals are spread evenly: each queue adds up its probability and signals whenever that exceeds one
//! (`recur`), so no random number is needed. Below two full-sized parcels in both queues together nothing is coupled
//! (Linux).
//!
//! Schedulers: [`Scheduler::Weighted`] is Linux's, by a credit that each queue's bytes move by the other's
//! weight while both wait. [`Scheduler::TimeShifted`] sends whichever head has waited longer when the L
//! queue's has a start of `shift` (appendix A.1).
//!
//! Deviations: the delay of the L queue counts in the base probability, as in Linux, so that an L queue
//! that does not listen comes into overload by itself. Updates come at multiples of `update`.

use weir_units::{Bytes, Duration, Instant, Ratio};

use crate::droptail::{DropTail, DropTailConfig, Limit};
use crate::error::{ConfigError, check_span};
use crate::parcel::{Ecn, Parcel};
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};
use crate::rotation::is_over;
use crate::stats::DropCause;

/// A DualPI2 queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2Config {
    /// The bound of both queues together, the parcel in service included.
    pub limit: Limit,
    /// The delay of the classic queue to hold.
    pub target: Duration,
    /// The longest round trip for which the controller is stable.
    pub rtt_max: Duration,
    /// The coupling factor k.
    pub coupling: u32,
    /// The waiting time in the L queue of which half is marked.
    pub threshold: Duration,
    /// From no marks to all, half before and half behind the threshold.
    pub ramp: Duration,
    /// What goes to the L queue.
    pub classifier: Classifier,
    /// Which queue sends.
    pub scheduler: Scheduler,
}

/// What goes to the L queue of a [`DualPi2`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// ECT(1) and CE, the identifier of L4S (RFC 9331).
    L4s,
    /// All that is capable of ECN.
    AnyEct,
}

/// Which queue of a [`DualPi2`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// By weighted round robin; the classic queue has this part of the link while both wait.
    Weighted(Ratio),
    /// The head that has waited longer, when those of the L queue count as this much older.
    TimeShifted(Duration),
}

/// DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    config: DualPi2Config,
    overhead: Bytes,
    mtu: Bytes,
    update: Duration,
    classic: Half<P>,
    low: Half<P>,
    /// Bytes times billionths: the L queue sends up to zero.
    credit: i64,
    /// p', in units of 2^-32.
    base: u64,
    delay_before: Duration,
    /// The updates so far.
    updates: u64,
    marks: u64,
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Half<P> {
    fifo: DropTail<P>,
    /// Probability since the last signal, in units of 2^-32.
    accumulated: u64,
}

impl DualPi2Config {
    /// RFC 9332's, with Linux's bound and scheduler.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(10_000),
        target: Duration::from_millis(15),
        rtt_max: Duration::from_millis(100),
        coupling: 2,
        threshold: Duration::from_millis(1),
        ramp: Duration::from_micros(400),
        classifier: Classifier::L4s,
        scheduler: Scheduler::Weighted(Ratio::from_percent(10)),
    };

    /// The shortest target and round trip.
    pub const MIN_TIME: Duration = Duration::from_micros(10);
    /// The longest target and round trip.
    pub const MAX_TIME: Duration = Duration::from_secs(10);
    /// The largest coupling factor.
    pub const MAX_COUPLING: u32 = 16;

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        const SPAN: &str = "10us to 10s";
        for (key, span) in [("queue.target", self.target), ("queue.rtt_max", self.rtt_max)] {
            if !(Self::MIN_TIME..=Self::MAX_TIME).contains(&span) {
                return Err(ConfigError::new(key, span, SPAN));
            }
        }
        if !(1..=Self::MAX_COUPLING).contains(&self.coupling) {
            return Err(ConfigError::new("queue.coupling", self.coupling, "1 to 16"));
        }
        check_span("queue.l4s_threshold", self.threshold)?;
        if let Scheduler::TimeShifted(shift) = self.scheduler {
            check_span("queue.shift", shift)?;
        }
        if self.ramp / 2 > self.threshold {
            const HELP: &str = "at most twice l4s_threshold, around which it lies";
            return Err(ConfigError::new("queue.l4s_ramp", self.ramp, HELP));
        }
        Ok(())
    }
}

impl<P: Parcel> DualPi2<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: DualPi2Config, overhead: Bytes, mtu: Bytes) -> Self {
        let mut queue = Self {
            config,
            overhead,
            mtu,
            update: config.target.min(config.rtt_max / 3),
            classic: Half::new(overhead),
            low: Half::new(overhead),
            credit: 0,
            base: 0,
            delay_before: Duration::ZERO,
            updates: 0,
            marks: 0,
        };
        queue.restart_credit();
        queue
    }

    /// Makes the updates that were due up to `now`.
    fn catch_up(&mut self, now: Instant) {
        let due = now.as_nanos() / self.update.as_nanos();
        let missed = due - self.updates;
        let from = due - missed.min(MAX_CATCH_UP);
        for number in from + 1..=due {
            let time = Instant::from_nanos(number * self.update.as_nanos());
            let (classic, low) = (&self.classic.fifo, &self.low.fifo);
            let delay = classic.head_sojourn(time).max(low.head_sojourn(time));
            if self.base == 0 && delay.is_zero() && self.delay_before.is_zero() {
                break;
            }
            self.update(delay);
        }
        self.updates = due;
    }

    /// Moves the base probability.
    fn update(&mut self, delay: Duration) {
        let nanos = |span: Duration| i128::from(span.as_nanos());
        let DualPi2Config { target, rtt_max, .. } = self.config;
        let integral = nanos(self.update) * (nanos(delay) - nanos(target)) / (10 * nanos(rtt_max));
        let proportional = 3 * (nanos(delay) - nanos(self.delay_before)) / 10;
        let step = (integral + proportional) * i128::from(ONE) / nanos(rtt_max);
        self.base = (i128::from(self.base) + step).clamp(0, i128::from(ONE)) as u64;
        self.delay_before = delay;
    }

    /// Whether the L queue's turn has come; `None` if nothing waits.
    fn turn(&self, now: Instant) -> Option<Turn> {
        let (classic, low) = (self.classic.fifo.is_empty(), self.low.fifo.is_empty());
        Some(match (classic, low) {
            (true, true) => return None,
            (true, false) => Turn::Low,
            (false, true) => Turn::Classic,
            (false, false) => {
                let goes = match self.config.scheduler {
                    Scheduler::Weighted(_) => self.credit <= 0,
                    Scheduler::TimeShifted(shift) => {
                        let classic = self.classic.fifo.head_sojourn(now);
                        self.low.fifo.head_sojourn(now) + shift >= classic
                    }
                };
                if goes { Turn::Low } else { Turn::Classic }
            }
        })
    }

    /// A parcel leaves: if the other queue waits meanwhile, that gains by it.
    fn charge(&mut self, turn: Turn, parcel: &P) {
        let Scheduler::Weighted(share) = self.config.scheduler else { return };
        let share = i64::from(share.as_billionths());
        let bytes = (parcel.len() + self.overhead).get().min(MAX_BYTES) as i64;
        match turn {
            Turn::Low if !self.classic.fifo.is_empty() => self.credit += bytes * share,
            Turn::Classic if !self.low.fifo.is_empty() => {
                self.credit -= bytes * (BILLION - share);
            }
            _ => {}
        }
    }

    /// The scheduler begins anew, with the heavier queue.
    fn restart_credit(&mut self) {
        if let Scheduler::Weighted(share) = self.config.scheduler {
            let lead = 2 * i64::from(share.as_billionths()) - BILLION;
            self.credit = self.mtu.get().min(MAX_BYTES) as i64 * lead;
        }
    }

    /// `p_C` and `p_CL`, in units of 2^-32; nothing is coupled while next to nothing was there before
    /// this parcel left.
    fn coupled(&self, parcel: &P) -> (u64, u64) {
        let there = self.charged() + parcel.len() + self.overhead;
        if there < self.mtu * 2 {
            return (0, 0);
        }
        let classic = (u128::from(self.base) * u128::from(self.base)) >> 32;
        (classic as u64, self.base * u64::from(self.config.coupling))
    }

    fn charged(&self) -> Bytes {
        self.classic.fifo.charged() + self.low.fifo.charged()
    }

    /// The L queue's own probability.
    fn ramp(&self, sojourn: Duration) -> u64 {
        let DualPi2Config { threshold, ramp, .. } = self.config;
        let start = threshold.saturating_sub(ramp / 2);
        if self.low.fifo.is_empty() || sojourn <= start {
            return 0;
        }
        let beyond = (sojourn - start).as_nanos();
        if beyond >= ramp.as_nanos() {
            return ONE;
        }
        (u128::from(beyond) * u128::from(ONE) / u128::from(ramp.as_nanos())) as u64
    }

    /// Whether a parcel from the L queue goes on; marks it if that is due.
    fn goes_low(&mut self, now: Instant, queued: &mut Queued<P>) -> bool {
        let (classic, coupled) = self.coupled(&queued.parcel);
        let is_signalled = if coupled >= ONE {
            if self.low.recur(classic) {
                return false;
            }
            true
        } else {
            let own = self.ramp(queued.sojourn(now));
            self.low.recur(own.max(coupled))
        };
        if is_signalled {
            mark(&mut queued.parcel, &mut self.marks);
        }
        true
    }

    /// The same for a parcel from the classic queue.
    fn goes_classic(&mut self, queued: &mut Queued<P>) -> bool {
        let (classic, coupled) = self.coupled(&queued.parcel);
        if !self.classic.recur(classic) {
            return true;
        }
        coupled < ONE && mark(&mut queued.parcel, &mut self.marks)
    }

    fn is_low(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.config.classifier == Classifier::AnyEct,
            Ecn::NotEct => false,
        }
    }
}

impl<P: Parcel> Queue<P> for DualPi2<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        self.catch_up(now);
        let with_it = self.backlog() + in_service + Backlog { packets: 1, bytes: parcel.len() };
        if is_over(with_it, self.overhead, self.config.limit) {
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
            return;
        }
        let half = if self.is_low(parcel.ecn()) { &mut self.low } else { &mut self.classic };
        half.fifo.enqueue(now, parcel, in_service, dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        self.catch_up(now);
        while let Some(turn) = self.turn(now) {
            let half = match turn {
                Turn::Low => &mut self.low,
                Turn::Classic => &mut self.classic,
            };
            let mut queued = half.fifo.pop()?;
            let goes = match turn {
                Turn::Low => self.goes_low(now, &mut queued),
                Turn::Classic => self.goes_classic(&mut queued),
            };
            if goes {
                self.charge(turn, &queued.parcel);
                return Some(queued);
            }
            dropped.push(Dropped { parcel: queued.parcel, cause: DropCause::Aqm });
        }
        None
    }

    fn on_idle(&mut self, _since: Instant) {
        self.restart_credit();
    }

    fn backlog(&self) -> Backlog {
        self.classic.fifo.backlog() + self.low.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

impl<P: Parcel> Half<P> {
    fn new(overhead: Bytes) -> Self {
        let config = DropTailConfig { overhead, ..Limit::Infinite.into() };
        Self { fifo: DropTail::new(config), accumulated: 0 }
    }

    /// Adds up a probability; a signal is due when that exceeds one.
    fn recur(&mut self, probability: u64) -> bool {
        self.accumulated += probability;
        let is_due = self.accumulated > ONE;
        if is_due {
            self.accumulated -= ONE;
        }
        is_due
    }
}

/// Which queue sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Classic,
    Low,
}

/// Probability one.
const ONE: u64 = 1 << 32;
const BILLION: i64 = 1_000_000_000;
/// As long as a packet counts at most in the scheduler: IP's longest, a gigabyte times a billionth fits.
const MAX_BYTES: u64 = 1 << 20;
/// The most updates made at once, a quarter of an hour's by default; further ones are skipped.
const MAX_CATCH_UP: u64 = 1 << 16;

#[cfg(test)]
mod tests;
