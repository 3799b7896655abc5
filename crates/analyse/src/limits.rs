//! What limited a sender, as shares of its time: each slice of time has parts, and each part one cause.
//!
//! Sources: T-RAT (Zhang, Breslau, Paxson, Shenker: "On the Characteristics and Origins of Internet Flow Rates",
//! SIGCOMM 2002); Siekkinen, Urvoy-Keller, Biersack, Collange: "A root cause analysis toolkit for TCP", Computer Networks
//! 2008; Linux's `tcp_info` (busy, receiver-window and send-buffer limited time); Flach et al. 2016 (policers).
//!
//! | limit | rule |
//! |---|---|
//! | no answer | the timer ran out three times or more, and the peer was not heard |
//! | application | nothing is unacknowledged, or the last new segment was not full and nothing is being repaired |
//! | receiver window | less than three segments fit into the window that the receiver offers (T-RAT), and the path is not full |
//! | slow start | until the first repetition, or the first round whose flight grows by less than a quarter |
//! | policer | between the first and the last loss of a flow that [`crate::policer`] recognises |
//! | path capacity | the rate is at least 80 % of the capacity: Siekkinen's dispersion below 0.2 |
//! | congestion | the last loss came after a grown RTT, or the RTT is grown and nothing was lost |
//! | random loss | the last loss came without a grown RTT |
//! | send buffer | no loss, and the flight stays within three segments of its median (T-RAT) |
//!
//! The time before a repetition by a timer belongs to the cause of the loss. The rules are tried in this order. A grown RTT
//! before a loss is at least half of the way from the least to the 95th percentile, where these are at least 5 % and 1 ms
//! apart. This replaces the fixed 20 ms of Flach's step 9, which no short queue reaches.

use crate::policer::{self, Place, Policer};
use crate::sender::{Loss, Measured, Slice};

/// What limited a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    Application,
    ReceiverWindow,
    SendBuffer,
    SlowStart,
    Congestion,
    RandomLoss,
    Policer,
    PathCapacity,
    NoAnswer,
    Unknown,
}

impl Limit {
    /// In the order of the tables.
    pub(crate) const ALL: [Self; 10] = [
        Self::Application,
        Self::ReceiverWindow,
        Self::SendBuffer,
        Self::SlowStart,
        Self::Congestion,
        Self::RandomLoss,
        Self::Policer,
        Self::PathCapacity,
        Self::NoAnswer,
        Self::Unknown,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiverWindow => "receiver-window",
            Self::SendBuffer => "send-buffer",
            Self::SlowStart => "slow-start",
            Self::Congestion => "congestion",
            Self::RandomLoss => "random-loss",
            Self::Policer => "policer",
            Self::PathCapacity => "path-capacity",
            Self::NoAnswer => "no-answer",
            Self::Unknown => "unknown",
        }
    }
}

/// The causes of all slices of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Nanoseconds of each limit, in the order of [`Limit::ALL`].
    pub(crate) times: [u64; 10],
    /// The longest part of each slice.
    pub(crate) slices: Vec<Limit>,
    /// Bytes of data per second that the path carries, where a queue showed it.
    pub(crate) capacity: Option<f64>,
    pub(crate) policer: Option<Policer>,
}

impl Limits {
    /// Decides for every slice of a sender; `mss` is the payload of its segments.
    pub(crate) fn of(measured: &Measured, mss: u32) -> Self {
        let view = View::of(measured, mss);
        let mut times = [0; 10];
        let mut dominant = Vec::with_capacity(view.slices.len());
        for (at, slice) in view.slices.iter().enumerate() {
            let network = if slice.network > 0 { view.network(at) } else { Limit::Unknown };
            let of_path = view.share_of_path(at).min(slice.window);
            let parts = [
                (Limit::Application, slice.application),
                (Limit::ReceiverWindow, slice.window - of_path),
                (Limit::PathCapacity, of_path),
                (Limit::SlowStart, slice.slow_start),
                (Limit::NoAnswer, slice.no_answer),
                (network, slice.network),
            ];
            for (limit, time) in parts {
                times[limit as usize] += time;
            }
            let longest = parts.into_iter().max_by_key(|(_, time)| *time);
            dominant.push(longest.map_or(Limit::Unknown, |(limit, _)| limit));
        }
        Self { times, slices: dominant, capacity: view.capacity, policer: view.policer }
    }

    /// The limit with the largest share, and nanoseconds of all.
    pub(crate) fn largest(&self) -> Option<Limit> {
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.times[*limit as usize])?;
        (self.times[longest as usize] > 0).then_some(longest)
    }
}

/// What the rules look at.
struct View<'s> {
    slices: &'s [Slice],
    start: u64,
    width: u64,
    mss: u64,
    /// The slice, and whether the RTT had grown.
    losses: Vec<(usize, bool)>,
    least_rtt: Option<u64>,
    capacity: Option<f64>,
    /// The rate at which acknowledgements came within their bursts.
    ack_rate: Option<f64>,
    policer: Option<Policer>,
}

impl<'s> View<'s> {
    fn of(measured: &'s Measured, mss: u32) -> Self {
        let Measured { slices, rtts, .. } = measured;
        let least_rtt = rtts.min().map(|rtt| rtt.as_nanos());
        let high_rtt = rtts.percentile(950).or(rtts.max());
        let grown = Grown::of(least_rtt, high_rtt.map(|rtt| rtt.as_nanos()));
        let place = |loss: &Loss| ((loss.time - slices.start()) / slices.width()) as usize;
        let losses = measured.losses.iter().filter(|loss| loss.duplicates < loss.repeats);
        let mut view = Self {
            slices: slices.list(),
            start: slices.start(),
            width: slices.width(),
            mss: u64::from(mss),
            losses: losses.map(|loss| (place(loss), grown.is_before(loss))).collect(),
            least_rtt,
            capacity: None,
            ack_rate: measured.ack_rate(),
            policer: policer::find(&measured.passed, Place::of(&measured.counts)),
        };
        view.capacity = view.capacity();
        view
    }

    /// The cause of the network's part of a slice.
    fn network(&self, at: usize) -> Limit {
        let time = self.start + at as u64 * self.width;
        if let Some(policer) = &self.policer
            && (policer.between.0..=policer.between.1).contains(&(time + self.width / 2))
        {
            return Limit::Policer;
        }
        let before = self.losses.partition_point(|(slice, _)| *slice <= at);
        let window = self.window(at, before);
        let rate = self.rate(window.clone());
        if self.capacity.is_some_and(|capacity| rate >= SATURATED * capacity) {
            return Limit::PathCapacity;
        }
        // Before the first loss, the next one says why the window is what it is.
        let loss = before.checked_sub(1).or((before < self.losses.len()).then_some(before));
        if let Some(loss) = loss {
            return if self.losses[loss].1 { Limit::Congestion } else { Limit::RandomLoss };
        }
        if self.ack_rate.is_some_and(|capacity| rate >= SATURATED * capacity) {
            return Limit::PathCapacity;
        }
        if self.is_grown(&self.slices[at]) {
            return Limit::Congestion;
        }
        if self.is_steady(window) { Limit::SendBuffer } else { Limit::Unknown }
    }

    /// Of the time in which the receiver's window was full, that in which the path was full too: a larger window would only
    /// make the queue longer. With a short queue both share it.
    fn share_of_path(&self, at: usize) -> u64 {
        let slice = &self.slices[at];
        let (Some(rtt), Some(least), Some(capacity)) =
            (slice.rtt_min, self.least_rtt, self.capacity)
        else {
            return 0;
        };
        let around =
            at.saturating_sub(LEAST_AROUND)..(at + LEAST_AROUND + 1).min(self.slices.len());
        if slice.window == 0 || self.rate(around) < SATURATED * capacity {
            return 0;
        }
        match rtt {
            rtt if rtt * 2 > least * 3 => slice.window,
            rtt if rtt * 10 > least * 11 => slice.window / 2,
            _ => 0,
        }
    }

    /// The slices around one that have the same cause: between two losses, and enough for a mean.
    fn window(&self, at: usize, before: usize) -> std::ops::Range<usize> {
        let start = before.checked_sub(1).map_or(0, |loss| self.losses[loss].0);
        let end = self.losses.get(before).map_or(self.slices.len(), |(slice, _)| slice + 1);
        let start = start.max(at.saturating_sub(MOST_AROUND)).min(at.saturating_sub(LEAST_AROUND));
        let end = end.min(at + MOST_AROUND + 1).max(at + LEAST_AROUND + 1);
        start..end.min(self.slices.len())
    }

    /// Bytes per second, in the slices that the network limits.
    fn rate(&self, slices: std::ops::Range<usize>) -> f64 {
        let own = self.slices[slices].iter().filter(|slice| self.is_of_network(slice));
        let (bytes, count) =
            own.fold((0, 0u32), |(bytes, count), slice| (bytes + slice.delivered, count + 1));
        if count == 0 { 0.0 } else { bytes as f64 * 1e9 / (f64::from(count) * self.width as f64) }
    }

    fn is_of_network(&self, slice: &Slice) -> bool {
        (slice.network + slice.slow_start + slice.window) * 2 > self.width
    }

    /// Whether the RTT stayed above its least value by more than a tenth.
    fn is_grown(&self, slice: &Slice) -> bool {
        matches!((slice.rtt_min, self.least_rtt), (Some(rtt), Some(least)) if rtt * 10 > least * 11)
    }

    /// The 95th percentile of the rate while the RTT was grown: the queue was not empty then. None if the rate varied: a flow
    /// that has the queue for itself gets a steady rate. A mean is taken over as many slices as have enough segments for it.
    fn capacity(&self) -> Option<f64> {
        let is_busy = |slice: &Slice| self.is_grown(slice) && self.is_of_network(slice);
        let busy = self.slices.iter().filter(|slice| is_busy(slice));
        let (bytes, count) =
            busy.fold((0, 0u64), |(bytes, count), slice| (bytes + slice.delivered, count + 1));
        let enough = ENOUGH_SEGMENTS * self.mss * count;
        let together = usize::try_from(enough.div_ceil(bytes.max(1))).ok()?.clamp(1, MOST_AROUND);
        let of_queue = self.slices.windows(together).filter(|some| some.iter().all(is_busy));
        let mut sums: Vec<u64> =
            of_queue.map(|some| some.iter().map(|slice| slice.delivered).sum()).collect();
        if sums.len() < LEAST_BUSY {
            return None;
        }
        sums.sort_unstable();
        let [low, high] = [10, 95].map(|percent| sums[(sums.len() - 1) * percent / 100] as f64);
        (low >= SATURATED * high).then(|| high * 1e9 / (self.width * together as u64) as f64)
    }

    /// Whether the flight stays within three segments of its median.
    fn is_steady(&self, slices: std::ops::Range<usize>) -> bool {
        let own = self.slices[slices].iter().filter(|slice| self.is_of_network(slice));
        let mut flights: Vec<u64> = own.map(|slice| slice.flight_max).collect();
        if flights.len() < LEAST_STEADY {
            return false;
        }
        flights.sort_unstable();
        let quantile = |percent: usize| flights[(flights.len() - 1) * percent / 100];
        quantile(80) <= quantile(50) + 3 * self.mss && quantile(20) + 3 * self.mss >= quantile(50)
    }
}

/// Above which RTT a queue had grown.
#[derive(Clone, Copy, Debug)]
struct Grown(Option<u64>);

impl Grown {
    fn of(least: Option<u64>, high: Option<u64>) -> Self {
        let (Some(least), Some(high)) = (least, high) else { return Self(None) };
        let range = high.saturating_sub(least);
        Self((range >= (least / 20).max(LEAST_RANGE)).then_some(least + range / 2))
    }

    fn is_before(self, loss: &Loss) -> bool {
        matches!((loss.rtt, self.0), (Some(rtt), Some(from)) if rtt >= from)
    }
}

/// 1 - Siekkinen's dispersion score of an unshared bottleneck.
const SATURATED: f64 = 0.8;
/// Slices on either side of one that a mean has.
const LEAST_AROUND: usize = 8;
const MOST_AROUND: usize = 32;
/// Slices with a queue that show a capacity.
const LEAST_BUSY: usize = 5;
/// Segments that a rate is the mean of.
const ENOUGH_SEGMENTS: u64 = 64;
/// T-RAT's flights in a row.
const LEAST_STEADY: usize = 3;
const LEAST_RANGE: u64 = 1_000_000;
