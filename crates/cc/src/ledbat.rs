//! `ledbat`: Low Extra Delay Background Transport (RFC 6817), which adds `target` of queueing delay at most
//! and yields to every flow that adds more.
//!
//! ```text
//! base       smallest delay of the last 10 minutes, kept minute by minute
//! queueing = smallest of the last 4 delays - base
//! per acknowledgement   cwnd += (target - queueing) / target acked mss / cwnd
//!                       at most what was in flight + 1 mss, at least 2 mss
//! loss                  cwnd = cwnd / 2, at least 2 mss, once per round trip
//! timeout               cwnd = in flight + 1 mss
//! ```
//!
//! Delays are one-way, from the timestamps of both ends (RFC 7323), whose offset cancels in the difference; they
//! count whole milliseconds. Without timestamps they are round trips, and queues on the way back count too.
//! The gain is 1. There is no slow start: the window grows by a segment per round trip at most, as in the RFC's
//! own outline, from two segments (§2.5), whatever the transport's initial window is.
//!
//! Deviation: the last four delays are those of acknowledgements, which may cover two segments each.
//!
//! Parameter: `target`, 100 ms (the most that RFC 6817 §2.5 allows).

use weir_units::{Bytes, Duration, Instant};

use crate::window::may_raise;
use crate::{AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Variable};

/// LEDBAT's window.
#[derive(Clone, Debug)]
pub struct Ledbat {
    cwnd: Bytes,
    target: Duration,
    /// The first one-way delay, which the others are compared with: the difference of two clocks in
    /// milliseconds, which has no meaning by itself.
    origin: Option<u32>,
    base: BaseDelay,
    /// The last delays, the newest first, in microseconds.
    current: [Option<i64>; CURRENT_FILTER],
    /// A change of less than a byte.
    remainder: i128,
    checkpoint: Option<Bytes>,
}

/// The smallest delays of the last minutes, in microseconds.
#[derive(Clone, Debug)]
struct BaseDelay {
    minutes: [Option<i64>; BASE_HISTORY],
    minute: u64,
}

impl Ledbat {
    /// Starts with two segments of `mss`. Targets of less than a millisecond count as one.
    pub fn new(mss: Bytes, target: Duration) -> Self {
        Self {
            cwnd: mss * LEAST_SEGMENTS,
            target: target.max(Duration::from_millis(1)),
            origin: None,
            base: BaseDelay { minutes: [None; BASE_HISTORY], minute: 0 },
            current: [None; CURRENT_FILTER],
            remainder: 0,
            checkpoint: None,
        }
    }

    /// The delay that an acknowledgement tells, in microseconds from an unknown origin.
    fn delay(&mut self, ack: &AckEvent) -> Option<i64> {
        if let Some(stamps) = ack.timestamps {
            // What acknowledges nothing new cumulatively echoes an old one (RFC 7323 §4.3).
            let news = ack.cum_acked > Bytes::ZERO;
            let one_way = news.then(|| stamps.value.wrapping_sub(stamps.echo))?;
            let origin = *self.origin.get_or_insert(one_way);
            return Some(i64::from(one_way.wrapping_sub(origin) as i32) * 1_000);
        }
        // Round trips have another origin.
        let rtt = ack.rtt.filter(|_| self.origin.is_none())?;
        i64::try_from(rtt.as_micros()).ok()
    }

    fn on_delay(&mut self, now: Instant, delay: i64) {
        self.base.update(now, delay);
        self.current.rotate_right(1);
        self.current[0] = Some(delay);
    }

    /// In microseconds.
    fn queueing_delay(&self) -> Option<i64> {
        let current = self.current.iter().flatten().min()?;
        Some(current - self.base.min()?)
    }

    /// RFC 6817 §2.4.2.
    fn adjust(&mut self, cx: &CcContext<'_>, ack: &AckEvent, queueing: i64) {
        let target = self.target.as_micros() as i64;
        let off_target = i128::from(target) - i128::from(queueing);
        let acked = i128::from(ack.acked.get()) * i128::from(cx.mss.get());
        let per = i128::from(target) * i128::from(self.cwnd.get().max(1));
        let change = off_target * acked + self.remainder;
        self.remainder = change % per;
        let cwnd = i128::from(self.cwnd.get()) + change / per;
        let most = (ack.prior_in_flight + cx.mss).max(cx.mss * LEAST_SEGMENTS);
        let cwnd = Bytes(u64::try_from(cwnd).unwrap_or(0)).max(cx.mss * LEAST_SEGMENTS);
        // What was not used does not grow; what grew before is kept.
        self.cwnd = if cwnd > self.cwnd { cwnd.min(most.max(self.cwnd)) } else { cwnd };
    }
}

impl CongestionController for Ledbat {
    fn name(&self) -> &'static str {
        "ledbat"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.first_in_epoch {
            self.checkpoint = (event.cause != Cause::EcnEcho).then_some(self.cwnd);
            self.cwnd = (self.cwnd / 2).max(cx.mss * LEAST_SEGMENTS).min(self.cwnd);
            self.remainder = 0;
        }
        if let Cause::Timeout { .. } = event.cause {
            self.cwnd = cx.bytes_in_flight + cx.mss;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(delay) = self.delay(ack) {
            self.on_delay(cx.now, delay);
        }
        if let Some(queueing) = self.queueing_delay().filter(|_| may_raise(cx, ack)) {
            self.adjust(cx, ack, queueing);
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        if let Some(cwnd) = self.checkpoint.take() {
            self.cwnd = self.cwnd.max(cwnd);
        }
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The transport takes a window below it for slow start, which there is none of.
    fn ssthresh(&self) -> Option<Bytes> {
        Some(self.cwnd)
    }

    fn phase(&self) -> &'static str {
        match self.queueing_delay() {
            Some(queueing) if queueing > self.target.as_micros() as i64 => "yielding",
            _ => "growing",
        }
    }

    fn variables(&self) -> Vec<Variable> {
        self.queueing_delay()
            .map(|delay| ("queueing_delay_ms", delay as f64 / 1e3))
            .into_iter()
            .collect()
    }
}

impl BaseDelay {
    fn update(&mut self, now: Instant, delay: i64) {
        let minute = now.as_micros() / MINUTE_MICROS;
        let passed = minute.saturating_sub(self.minute).min(BASE_HISTORY as u64);
        for _ in 0..passed {
            self.minutes.rotate_right(1);
            self.minutes[0] = None;
        }
        self.minute = self.minute.max(minute);
        self.minutes[0] = Some(self.minutes[0].map_or(delay, |least| least.min(delay)));
    }

    fn min(&self) -> Option<i64> {
        self.minutes.iter().flatten().min().copied()
    }
}

/// `BASE_HISTORY`, in minutes.
const BASE_HISTORY: usize = 10;
const MINUTE_MICROS: u64 = 60_000_000;
/// `CURRENT_FILTER`.
const CURRENT_FILTER: usize = 4;
/// `MIN_CWND` and `INIT_CWND`.
const LEAST_SEGMENTS: u64 = 2;
