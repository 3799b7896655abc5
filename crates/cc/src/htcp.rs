//! `htcp`: H-TCP, whose growth per round trip rises with the time since the last congestion and whose
//! reduction leaves the queue just empty (Leith and Shorten, "H-TCP: TCP for high-speed and
//! long-distance networks", PFLDnet 2004, and draft-leith-tcp-htcp-06), as Linux 6.1 has it
//! (`tcp_htcp.c`).
//!
//! ```text
//! slow start            as Reno
//! congestion avoidance  cwnd += alpha mss per cwnd bytes acknowledged
//! loss                  ssthresh = beta cwnd
//! t seconds after the last episode ended:
//!   f     = 1                                   t <= 1
//!           1 + 10 (t - 1) + ((t - 1) / 2)^2    t > 1
//!   alpha = 2 (1 - beta) f 10 rtt_min,  10 rtt_min in seconds within 0.1 and 2,  f 10 rtt_min at least 1
//! loss, B the largest throughput since the last episode, B' that of the episode before:
//!   beta  = rtt_min / rtt_max within 0.5 and 0.8     4/5 B' <= B <= 6/5 B', the second time in a row
//!           0.5                                      otherwise
//! ```
//!
//! Units as in the kernel: time in ticks of 1 ms (`HZ` = 1000), RTTs rounded up to ticks, `alpha` and `beta` in
//! 1/128, the scale 1 / (10 `rtt_min`) in 1/8, throughput in whole segments per second, every quotient
//! rounded down. The product in `f` has 32 bits there and here: 132 s after an episode growth starts over.
//!
//! Deviations from the draft, which are Linux's: `alpha` is computed when the window grows and before a
//! reduction, not per acknowledgement; `rtt_max` rises by 20 ms at most per sample, in the open state
//! only, and each episode takes 5 % off what it exceeds `rtt_min` by; `beta` stays 0.5 where
//! `rtt_min` is 10 ms or less; throughput is measured per window acknowledged, filtered by 1/4.
//! Deviation from Linux: time begins with the first data, not with the connection.

use weir_units::{Bytes, Duration};

use crate::ticks::{TICKS_PER_SEC, ticks};
use crate::window::{AckClockedWindow, ack_clocked_window, covered_segments, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, RecoveryState,
    Variable,
};

/// H-TCP's window.
#[derive(Clone, Debug)]
pub struct Htcp {
    window: AckClockedWindow,
    /// In 1/128.
    alpha: u64,
    beta: u64,
    /// Whether the throughput was steady at the last episode, too.
    steady: bool,
    /// In ticks, zero before there is a sample.
    rtt_min: u64,
    rtt_max: u64,
    /// The tick at which the last episode ended; during an episode, the tick at which it began.
    congested_at: Option<u64>,
    checkpoint: Option<Checkpoint>,
    throughput: Throughput,
    /// What the next acknowledgement counts for in congestion avoidance.
    acked: Bytes,
}

/// What an unfounded episode gives back.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    congested_at: Option<u64>,
    rtt_max: u64,
    previous: u64,
}

/// Segments per second, once per window acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    segments: u64,
    /// The tick at which counting began; before the first, an age ago.
    since: Option<u64>,
    filtered: u64,
    largest: u64,
    /// The largest before the last episode.
    previous: u64,
}

impl Htcp {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            alpha: ONE,
            beta: BETA_MIN,
            steady: false,
            rtt_min: 0,
            rtt_max: 0,
            congested_at: None,
            checkpoint: None,
            throughput: Throughput::default(),
            acked: Bytes::ZERO,
        }
    }

    fn since_congestion(&self, now: u64) -> u64 {
        self.congested_at.map_or(0, |at| now - at)
    }

    /// `measure_achieved_throughput`, in the state before the acknowledgement.
    fn measure(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if cx.state == RecoveryState::Open {
            self.acked = cx.mss * covered_segments(ack, cx.mss);
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| *rtt >= Duration::from_micros(1)) {
            self.sample_rtt(cx.state, rtt.as_micros().div_ceil(1_000));
        }
        let now = ticks(cx.now);
        let throughput = &mut self.throughput;
        if !matches!(cx.state, RecoveryState::Open | RecoveryState::Disorder) {
            throughput.segments = 0;
            throughput.since = Some(now);
            return;
        }
        throughput.segments += covered_segments(ack, cx.mss);
        let cwnd = self.window.cwnd.get() / cx.mss.get();
        // Linux's difference wraps where alpha exceeds the window: then no window is enough.
        let enough = cwnd.checked_sub((self.alpha / ONE).max(1));
        let a_window = enough.is_some_and(|enough| throughput.segments >= enough);
        let ticks = throughput.since.map_or(u64::MAX, |since| now - since);
        if a_window && self.rtt_min > 0 && ticks >= self.rtt_min {
            let just_reduced = self.since_congestion(now) / self.rtt_min <= 3;
            self.throughput.end_window(now, ticks, just_reduced);
        }
    }

    fn sample_rtt(&mut self, state: RecoveryState, rtt: u64) {
        if self.rtt_min == 0 || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        if state == RecoveryState::Open {
            self.rtt_max = self.rtt_max.max(self.rtt_min);
            if rtt <= self.rtt_max + LARGEST_STEP {
                self.rtt_max = self.rtt_max.max(rtt);
            }
        }
    }

    /// `htcp_param_update`.
    fn adapt(&mut self, now: u64) {
        self.update_beta();
        self.update_alpha(now);
        if self.rtt_max > self.rtt_min && self.rtt_min > 0 {
            self.rtt_max = self.rtt_min + (self.rtt_max - self.rtt_min) * 95 / 100;
        }
    }

    fn update_beta(&mut self) {
        let Throughput { largest, previous, .. } = self.throughput;
        self.throughput.previous = largest;
        self.beta = BETA_MIN;
        if !(4 * previous..=6 * previous).contains(&(5 * largest)) {
            self.steady = false;
        } else if self.steady && self.rtt_min > SHORT_RTT && self.rtt_max > 0 {
            self.beta = (self.rtt_min * ONE / self.rtt_max).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.steady = true;
        }
    }

    fn update_alpha(&mut self, now: u64) {
        let mut factor = 1;
        if let Some(late @ 1..) = self.since_congestion(now).checked_sub(TICKS_PER_SEC) {
            let square = u64::from(((late / 2) * (late / 2)) as u32);
            factor += (10 * late + square / TICKS_PER_SEC) / TICKS_PER_SEC;
        }
        if self.rtt_min > 0 {
            let scale = (8 * TICKS_PER_SEC / (10 * self.rtt_min)).clamp(8 / 2, 8 * 10);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }

    /// In the open state an episode is over.
    fn end_if_open(&mut self, state: RecoveryState, now: u64) {
        if state == RecoveryState::Open && self.checkpoint.take().is_some() {
            self.congested_at = Some(now);
        }
    }

    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        if self.window.in_slow_start() {
            self.window.slow_start(acked);
            return;
        }
        if self.window.credit.mul_ratio(self.alpha, ONE) >= self.window.cwnd {
            self.window.cwnd += cx.mss;
            self.window.credit = Bytes::ZERO;
            self.update_alpha(ticks(cx.now));
        } else {
            self.window.credit += self.acked;
        }
        self.acked = cx.mss;
    }
}

impl CongestionController for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn needs(&self) -> Needs {
        Needs { measures_first: true, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        self.congested_at.get_or_insert(ticks(cx.now));
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let now = ticks(cx.now);
        if event.first_in_epoch {
            self.adapt(now);
        }
        let beta = self.beta;
        self.window.on_congestion(cx, event, |cwnd| cwnd.mul_ratio(beta, ONE));
        let timeout = matches!(event.cause, Cause::Timeout { .. });
        if timeout || event.first_in_epoch || cx.state != RecoveryState::Recovery {
            self.checkpoint = Some(Checkpoint {
                congested_at: self.congested_at,
                rtt_max: self.rtt_max,
                previous: self.throughput.previous,
            });
            self.congested_at = Some(now);
        }
    }

    fn on_delivery(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.measure(cx, ack);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.end_if_open(cx.state, ticks(cx.now));
        if may_raise(cx, ack) && cx.cwnd_limited {
            self.grow(cx, ack.acked);
        }
    }

    /// The acknowledgement may begin the next episode: then `on_ack` sees only that one's state.
    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        self.end_if_open(cx.state, ticks(cx.now));
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.congested_at = checkpoint.congested_at;
            self.rtt_max = checkpoint.rtt_max;
            self.throughput.previous = checkpoint.previous;
        }
        self.window.undo();
    }

    ack_clocked_window!(phase);

    fn variables(&self) -> Vec<Variable> {
        vec![("alpha", self.alpha as f64 / 128.0), ("beta", self.beta as f64 / 128.0)]
    }
}

impl Throughput {
    fn end_window(&mut self, now: u64, ticks: u64, just_reduced: bool) {
        let measured = self.segments * TICKS_PER_SEC / ticks;
        if just_reduced {
            self.filtered = measured;
            self.largest = measured;
        } else {
            self.filtered = (3 * self.filtered + measured) / 4;
            self.largest = self.largest.max(self.filtered);
        }
        self.segments = 0;
        self.since = Some(now);
    }
}

/// 1 in `alpha` and `beta`.
const ONE: u64 = 128;
const BETA_MIN: u64 = ONE / 2;
/// About 0.8.
const BETA_MAX: u64 = 102;
/// Ticks: 20 ms.
const LARGEST_STEP: u64 = 20;
/// Ticks: 10 ms.
const SHORT_RTT: u64 = 10;

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;

    /// The acknowledgement that shows a loss ends a window's worth for the throughput before the episode's beta is computed,
    /// as `pkts_acked` comes before `ssthresh` in Linux.
    #[test]
    fn what_shows_a_loss_is_measured_before_it() {
        let mss = Bytes(1_448);
        let mut rng = stream(1, "unused");
        let mut htcp = Htcp::new(mss * 10);
        let mut at = |ms: u64, state, call: &mut dyn FnMut(&mut CcContext<'_>)| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            call(&mut CcContext { state, ..CcContext::new(now, mss, &mut rng) });
        };
        let acks = |segments| AckEvent {
            cum_acked: mss * segments,
            rtt: Some(Duration::from_millis(20)),
            ..AckEvent::default()
        };
        at(0, RecoveryState::Open, &mut |cx| htcp.on_delivery(cx, &acks(9)));
        at(40, RecoveryState::Open, &mut |cx| htcp.on_delivery(cx, &acks(9)));
        let loss = CongestionEvent {
            cause: Cause::FastRetransmit,
            first_in_epoch: true,
            lost: mss,
            prior_in_flight: mss * 10,
        };
        at(40, RecoveryState::Open, &mut |cx| htcp.on_congestion(cx, &loss));
        assert!(htcp.throughput.previous > 0, "{htcp:?}");
    }
}
