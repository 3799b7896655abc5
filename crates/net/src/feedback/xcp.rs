//! `xcp`: the eXplicit Control Protocol's router.
//!
//! Sources: Katabi, Handley and Rohrs, "Congestion control for high bandwidth-delay product networks",
//! SIGCOMM 2002; draft-falk-xcp-spec-03, 2007; the arithmetic is that of ns-2.35's XCP queue. X is the time
//! from one packet of a flow to its next, C the capacity and y the input rate, both in bytes per second.
//!
//! ```text
//! arrival        input += size    sum_x += X    sum_rx += X min(RTT, 1 s)
//! interval d     mean RTT = sum_rx / sum_x, at least 1 ms, and 50 ms before any is known; at its end
//!   phi          = alpha (C - y) - beta Qmin / d
//!   shuffle      = max(0, gamma y - |phi|)
//!   residual+    = max(0, phi) + shuffle       Cp = residual+ / sum_x
//!   residual-    = max(0, -phi) + shuffle      Cn = residual- / input
//! departure      pos = min(residual+, Cp X)    neg = min(residual-, Cn size)
//!                delta = min(delta, pos - neg); what the packet cannot take goes into neg
//! Qmin           the shortest queue within max(2 ms, (d - q / C) / 2)
//! ```
//!
//! Parameters: alpha 0.4, beta 0.226, gamma 0.1, capacity (nominal).

use weir_units::{Duration, Feedback, Instant, Rate};

use super::NANOS_PER_SECOND;
use super::capacity::{Capacity, ServiceRate};
use super::occupancy::{Occupancy, Signal};
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// An XCP router's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XcpConfig {
    /// Where the capacity comes from.
    pub capacity: Capacity,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Xcp {
    capacity: ServiceRate,
    /// The interval at hand.
    interval: Interval,
    ends: Option<Instant>,
    mean_rtt: Duration,
    /// What the last interval left to hand out.
    gain: Share,
    loss: Share,
    queue: ShortestQueue,
}

/// What arrived within an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    input: u64,
    /// Nanoseconds, and nanoseconds times microseconds.
    sum_x: u128,
    sum_rx: u128,
}

/// Bytes per second to hand out, an amount for each of `parts`.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: u128,
    parts: u128,
    left: u64,
}

/// The shortest queue within a time.
#[derive(Clone, Copy, Debug, Default)]
struct ShortestQueue {
    last: u64,
    running: u64,
    ends: Option<Instant>,
}

impl Xcp {
    /// Nothing seen yet.
    pub fn new(config: &XcpConfig, rate: Rate) -> Self {
        Self {
            capacity: ServiceRate::new(config.capacity, rate),
            interval: Interval::default(),
            ends: None,
            mean_rtt: FIRST_INTERVAL,
            gain: Share::default(),
            loss: Share::default(),
            queue: ShortestQueue::default(),
        }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        self.capacity.set_busy(now, signal, occupancy);
    }

    pub(super) fn on_arrival<P: Parcel>(&mut self, now: Instant, parcel: &mut P, ahead: Backlog) {
        self.catch_up(now, ahead);
        self.interval.input += parcel.len().get();
        if let Some(Feedback::Xcp(header)) = parcel.feedback() {
            let x = u128::from(header.spacing_nanos);
            self.interval.sum_x += x;
            self.interval.sum_rx += x * u128::from(header.rtt_micros.min(LONGEST_RTT_MICROS));
        }
    }

    pub(super) fn on_departure<P: Parcel>(
        &mut self,
        now: Instant,
        parcel: &mut P,
        behind: Backlog,
    ) {
        self.catch_up(now, behind);
        self.queue.note(behind);
        let size = parcel.len();
        self.capacity.on_departure(size);
        if let Some(Feedback::Xcp(header)) = parcel.feedback() {
            let mut pos = self.gain.of(u128::from(header.spacing_nanos)) as i64;
            let mut neg = self.loss.of(u128::from(size.get())) as i64;
            let (requested, offered) = (i64::from(header.delta), pos - neg);
            if requested >= offered {
                header.delta = offered.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            } else {
                neg = (neg + offered - requested).min(self.loss.left as i64);
                pos = (requested + neg).max(0);
            }
            self.gain.take(pos);
            self.loss.take(neg);
        }
    }

    /// Ends what has ended by `now`.
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        let ends = *self.ends.get_or_insert(now + FIRST_INTERVAL);
        if ends <= now {
            self.end_interval(now, now.saturating_since(ends));
        }
        self.queue.catch_up(now, backlog, self.mean_rtt, self.capacity.get());
    }

    /// The interval was longer than planned by `late`: nothing has happened since its end.
    fn end_interval(&mut self, now: Instant, late: Duration) {
        self.capacity.settle(now);
        let Interval { input, sum_x, sum_rx } = std::mem::take(&mut self.interval);
        let lasted = self.mean_rtt.max(SHORTEST_INTERVAL) + late;
        let mean_micros = sum_rx.checked_div(sum_x).map(|micros| micros as u64);
        self.mean_rtt = mean_micros
            .filter(|micros| *micros > 0)
            .map_or(FIRST_INTERVAL, Duration::from_micros)
            .max(SHORTEST_INTERVAL);
        let input_rate = per_second(input, lasted);
        let spare = i128::from(self.capacity.get()) - i128::from(input_rate);
        let drain = i128::from(per_second(self.queue.last, self.mean_rtt));
        let phi = (spare * ALPHA - drain * BETA) / PER_MILLE;
        let shuffle = (i128::from(input_rate) * GAMMA / PER_MILLE - phi.abs()).max(0);
        self.gain = Share::new(phi.max(0) + shuffle, sum_x);
        self.loss = Share::new((-phi).max(0) + shuffle, u128::from(input));
        self.ends = Some(now + self.mean_rtt);
    }
}

impl Share {
    fn new(all: i128, parts: u128) -> Self {
        let left = u64::try_from(all).unwrap_or(0).min(i64::MAX as u64);
        Self { all: u128::from(left), parts, left }
    }

    /// What falls to `part`.
    fn of(&self, part: u128) -> u64 {
        let share = (self.all * part).checked_div(self.parts).unwrap_or(0);
        u64::try_from(share).unwrap_or(u64::MAX).min(self.left)
    }

    fn take(&mut self, taken: i64) {
        self.left = self.left.saturating_sub(taken.max(0) as u64);
    }
}

impl ShortestQueue {
    fn note(&mut self, backlog: Backlog) {
        self.running = self.running.min(backlog.bytes.get());
    }

    fn catch_up(&mut self, now: Instant, backlog: Backlog, rtt: Duration, capacity: u64) {
        if self.ends.is_some_and(|ends| ends > now) {
            return;
        }
        self.last = self.running;
        self.running = backlog.bytes.get();
        let nanos = u128::from(self.running) * NANOS_PER_SECOND / u128::from(capacity.max(1));
        let drain = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.ends = Some(now + (rtt.saturating_sub(drain) / 2).max(SHORTEST_QUEUE_TIME));
    }
}

/// Bytes per second: an amount over a time.
fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = u128::from(time.as_nanos()).max(1);
    u64::try_from(u128::from(bytes) * NANOS_PER_SECOND / nanos).unwrap_or(u64::MAX)
}

const PER_MILLE: i128 = 1_000;
const ALPHA: i128 = 400;
const BETA: i128 = 226;
const GAMMA: i128 = 100;
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
const SHORTEST_QUEUE_TIME: Duration = Duration::from_millis(2);
const LONGEST_RTT_MICROS: u32 = 1_000_000;

#[cfg(test)]
mod tests;
