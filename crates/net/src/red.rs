//! RED: random early detection.
//!
//! Sources: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", 1993; Floyd,
//! "Recommendation on using the gentle variant of RED", 2000; Linux 6.1's `sch_red` and `red.h`.
//!
//! At each arrival an average of the backlog q (the parcel in service included) moves by
//!
//! ```text
//! avg += weight (q - avg)
//! ```
//!
//! or, after the link was idle for the time of m full-sized parcels, shrinks to `avg (1 - weight)^m`.
//! Below `min` nothing happens. Between `min` and `max` parcels are signalled with
//!
//! ```text
//! p = probability (avg - min) / (max - min)
//! ```
//!
//! spread evenly (the paper's method 2): the number of parcels up to the next signal is uniform in
//! 1 ..= 1/p, so that a signal comes every `(1/p + 1) / 2` parcels on average. From `max` on all are
//! signalled; with `gentle` p rises from `probability` there to 1 at twice `max` first. A signal is a
//! mark if `ecn` is on and the parcel is capable, else a drop; as in Linux that holds above `max` too.
//!
//! `min` and `max` are both in bytes or both in parcels, and so is the average. In bytes it has as many
//! bits behind the point as Linux gives it and is rounded up as there (`red_calc_qavg_no_idle_time`): it
//! settles at a constant backlog, so that one of just `min` counts as reached. The weight may be given
//! as the `burst` of parcels that an empty queue takes in before the average passes `min`
//! ([`RedConfig::weight_for_burst`], `tc_red_eval_ewma`).
//!
//! Deviations: idle times count by the paper's formula, where Linux has a table of it. Below a token
//! bucket the average does not shrink while idle, because Linux's `tbf` looks first and never asks an
//! empty RED for a parcel. Random numbers come from stream `"red"`.

use weir_units::{Bytes, Duration, Instant, Ratio, Rng};

use crate::droptail::{DropTail, DropTailConfig, Limit};
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};
use crate::stats::DropCause;

/// A RED queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedConfig {
    /// The bound of the queue itself.
    pub limit: Limit,
    /// The average below which nothing is signalled.
    pub min: Limit,
    /// The average from which everything is signalled, or the slope gets gentle.
    pub max: Limit,
    /// The probability just below `max`.
    pub probability: Ratio,
    /// How much each arrival moves the average.
    pub weight: Ratio,
    /// Whether the probability rises on to 1 at twice `max`.
    pub gentle: bool,
    /// Whether parcels that are capable of ECN are marked in place of a drop.
    pub ecn: bool,
}

/// A FIFO under RED.
#[derive(Clone, Debug)]
pub struct Red<P> {
    pub(crate) fifo: DropTail<P>,
    early: EarlyDetection,
    marks: u64,
}

/// RED's average and its decision, for any store of parcels.
///
/// ```
/// use weir_net::{Backlog, EarlyDetection, Limit, RedConfig};
/// use weir_units::{Bytes, Instant, Ratio, stream};
///
/// let red = RedConfig {
///     limit: Limit::Infinite,
///     min: Limit::Packets(5),
///     max: Limit::Packets(15),
///     probability: Ratio::from_percent(10),
///     weight: Ratio::from_percent(50),
///     gentle: false,
///     ecn: false,
/// };
/// let mut early = EarlyDetection::new(red, None, stream(1, "red"));
/// let behind = |packets| Backlog { packets, bytes: Bytes(1_500) * packets };
/// assert!(!early.on_arrival(Instant::ZERO, behind(4)), "the average is 2");
/// assert!(early.on_arrival(Instant::ZERO, behind(40)), "it is 21, above max");
/// ```
#[derive(Clone, Debug)]
pub struct EarlyDetection {
    config: RedConfig,
    min: u64,
    max: u64,
    /// What a full-sized parcel takes to be sent; `None` where idle times do not count.
    parcel_time: Option<Duration>,
    /// In bytes or parcels, with `point` bits behind the point.
    average: u64,
    point: u32,
    idle_since: Option<Instant>,
    /// Parcels since the last signal; `None` while nothing is signalled at random.
    count: Option<u64>,
    /// Up to where `count` times the probability may go, in units of 2^-32.
    threshold: u32,
    rng: Rng,
}

impl RedConfig {
    /// The weight, a power of a half, with which `burst` parcels of `packet` bytes into an empty queue do
    /// not lift the average above `min`; `None` if the burst is shorter than `min` itself. Without a
    /// burst it is that of `(2 min + max) / 3`, as in `tc`.
    pub fn weight_for_burst(
        min: Limit,
        max: Limit,
        packet: Bytes,
        burst: Option<u32>,
    ) -> Option<Ratio> {
        let packets = |limit| match limit {
            Limit::Bytes(bytes) => bytes.get() as f64 / packet.get() as f64,
            Limit::Packets(packets) => packets as f64,
            Limit::Infinite => f64::INFINITY,
        };
        let usual = libm::ceil((2.0 * packets(min) + packets(max)) / 3.0);
        let burst = burst.map_or(usual, f64::from);
        let beyond = burst + 1.0 - packets(min);
        let fits = |weight: &f64| beyond <= (1.0 - libm::pow(1.0 - weight, burst)) / weight;
        let halves = (1..30).map(|power| 1.0 / f64::from(1u32 << power));
        let weight = halves.filter(|_| beyond >= 1.0).find(fits)?;
        Ratio::from_billionths(libm::round(weight * 1e9) as u32)
    }

    /// Whether an average can be kept with these parameters.
    ///
    /// # Errors
    /// For thresholds of different units or in the wrong order, and a weight of zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const UNITS: &str = "min and max are both in packets, or both in bytes, times or BDPs";
        let (min, max) = match (self.min, self.max) {
            (Limit::Bytes(min), Limit::Bytes(max)) => (min.get(), max.get()),
            (Limit::Packets(min), Limit::Packets(max)) => (min, max),
            (Limit::Infinite, _) | (_, Limit::Infinite) => {
                const HELP: &str = "a size is needed; without one it is a quarter of limit";
                return Err(ConfigError::new("queue.max", "infinite", HELP));
            }
            _ => return Err(ConfigError::new("queue.max", "another unit than min's", UNITS)),
        };
        if max > 1 << 38 {
            return Err(ConfigError::new("queue.max", max, "at most 2^38 bytes"));
        }
        if min >= max {
            return Err(ConfigError::new("queue.min", min, "it must be below max"));
        }
        if self.weight == Ratio::ZERO {
            const HELP: &str = "above zero; a burst that is shorter than min gives none";
            return Err(ConfigError::new("queue.weight", self.weight, HELP));
        }
        Ok(())
    }
}

impl<P: Parcel> Red<P> {
    /// An empty queue, whose parcels count for `overhead` more bytes than their length. `parcel_time`
    /// is what a full-sized one takes to be sent, where idle times are to count.
    pub fn new(
        config: RedConfig,
        overhead: Bytes,
        parcel_time: Option<Duration>,
        rng: Rng,
    ) -> Self {
        Self {
            fifo: DropTail::new(DropTailConfig { overhead, ..config.limit.into() }),
            early: EarlyDetection::new(config, parcel_time, rng),
            marks: 0,
        }
    }

    /// Moves the average: a parcel arrives.
    pub(crate) fn observe(&mut self, now: Instant, in_service: Backlog) {
        let packets = self.fifo.backlog().packets + in_service.packets;
        let backlog = Backlog { packets, bytes: self.fifo.charged_with(in_service) };
        self.early.observe(now, backlog);
    }

    /// Whether the average is at `min` or above.
    pub(crate) fn is_above_min(&self) -> bool {
        self.early.is_above_min()
    }

    /// Enqueues, marks or drops the parcel that was observed.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        mut parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let is_signalled = self.early.signals() && self.fifo.has_space(&parcel, in_service);
        if is_signalled && !(self.early.config.ecn && mark(&mut parcel, &mut self.marks)) {
            dropped.push(Dropped { parcel, cause: DropCause::Aqm });
        } else {
            self.fifo.enqueue(now, parcel, in_service, dropped);
        }
    }
}

impl EarlyDetection {
    /// An average of zero. A full-sized parcel takes `parcel_time` to be sent; without it idle times do not
    /// count.
    pub fn new(config: RedConfig, parcel_time: Option<Duration>, rng: Rng) -> Self {
        let units = |limit| match limit {
            Limit::Bytes(bytes) => bytes.get(),
            Limit::Packets(packets) => packets,
            Limit::Infinite => u64::MAX,
        };
        Self {
            config,
            min: units(config.min),
            max: units(config.max),
            parcel_time,
            average: 0,
            point: match config.min {
                Limit::Packets(_) => FINEST,
                Limit::Bytes(_) | Limit::Infinite => halvings(config.weight),
            },
            idle_since: None,
            count: None,
            threshold: 0,
            rng,
        }
    }

    /// A parcel arrives behind `backlog`. Returns whether it is signalled.
    pub fn on_arrival(&mut self, now: Instant, backlog: Backlog) -> bool {
        self.observe(now, backlog);
        self.signals()
    }

    fn is_above_min(&self) -> bool {
        self.average >= self.min << self.point
    }

    /// The queue has been empty since then.
    pub fn on_idle(&mut self, since: Instant) {
        self.idle_since = Some(since);
    }

    /// Moves the average: a parcel arrives behind `backlog`.
    fn observe(&mut self, now: Instant, backlog: Backlog) {
        let weight = i128::from(self.config.weight.as_billionths());
        if let (Some(since), Some(time)) = (self.idle_since.take(), self.parcel_time) {
            let parcels = now.saturating_since(since).as_nanos() / time.as_nanos().max(1);
            let kept = power(1_000_000_000 - self.config.weight.as_billionths(), parcels);
            self.average = (u128::from(self.average) * u128::from(kept) / 1_000_000_000) as u64;
            return;
        }
        let backlog = match self.config.min {
            Limit::Packets(_) => backlog.packets,
            _ => backlog.bytes.get(),
        };
        let step = ((i128::from(backlog) << self.point) - i128::from(self.average)) * weight;
        let rounded_up = -(-step).div_euclid(1_000_000_000);
        self.average = (i128::from(self.average) + rounded_up) as u64;
    }

    /// Whether the parcel at hand is signalled (`red_action`).
    fn signals(&mut self) -> bool {
        let (min, max) = (self.min << self.point, self.max << self.point);
        let end = if self.config.gentle { 2 * max } else { max };
        if self.average < min || self.average >= end {
            self.count = None;
            return self.average >= end;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        let due = u128::from(count) * self.probability() >= u128::from(self.threshold);
        if count > 0 && !due {
            return false;
        }
        self.count = Some(0);
        self.threshold = self.rng.next_u32();
        count > 0
    }

    /// The probability at the present average, in units of 2^-32.
    fn probability(&self) -> u128 {
        const ONE: u128 = 1 << 32;
        let probability = u128::from(self.config.probability.as_billionths()) * ONE / 1_000_000_000;
        let average = u128::from(self.average);
        let (min, max) = (u128::from(self.min << self.point), u128::from(self.max << self.point));
        if average < max {
            probability * (average - min) / (max - min)
        } else {
            probability + (ONE - probability) * (average - max) / max
        }
    }
}

impl<P: Parcel> Queue<P> for Red<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        self.observe(now, in_service);
        self.admit(now, parcel, in_service, dropped);
    }

    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        self.fifo.pop()
    }

    fn on_idle(&mut self, since: Instant) {
        self.early.on_idle(since);
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

/// `(base / 10^9)^exponent` in billionths.
fn power(base: u32, mut exponent: u64) -> u32 {
    const ONE: u64 = 1_000_000_000;
    let (mut square, mut product) = (u64::from(base), ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product * square / ONE;
        }
        square = square * square / ONE;
        exponent >>= 1;
    }
    product as u32
}

/// How often to halve 1 to come to `weight`, or below it. A power of a half may be off by its rounding
/// to billionths.
fn halvings(weight: Ratio) -> u32 {
    let weight = u64::from(weight.as_billionths());
    (0..FINEST).find(|halvings| (weight + 1) << halvings >= 1_000_000_000).unwrap_or(FINEST)
}

/// Bits behind the point of an average in parcels, and the most of one in bytes.
const FINEST: u32 = 24;

#[cfg(test)]
mod tests;
