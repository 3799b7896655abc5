//! `illinois`: additive increase and multiplicative decrease whose steps follow the queueing delay (Liu,
//! Başar and Srikant, "TCP-Illinois: A loss- and delay-based congestion control algorithm for
//! high-speed networks", VALUETOOLS 2006), as Linux 6.1 has it (`tcp_illinois.c`).
//!
//! ```text
//! slow start            as Reno
//! congestion avoidance  cwnd += alpha mss per cwnd bytes acknowledged
//! loss                  ssthresh = (1 - beta) cwnd
//! once per round trip, d the mean queueing delay in it, d_m the largest ever:
//!   alpha = 10                                              d <= d_m / 100
//!           10 D / (D + (d - d_m/100) (10 - 0.3) / 0.3)     otherwise, D = d_m - d_m/100
//!   beta  = 1/8                                             d <= d_m / 10
//!           1/2                                             d >= 8/10 d_m
//!           the straight line between                       otherwise
//! timeout, windows below 15 segments:  alpha = 1, beta = 1/2: Reno
//! ```
//!
//! Queueing delay is the RTT less its smallest value of the connection, in microseconds. `alpha` is kept in
//! 1/128, `beta` in 1/64, every quotient rounded down (so 0.3 is 38/128).
//!
//! Deviations from the paper, which are Linux's: once the delay has exceeded `d_m`/100, five round
//! trips below it in all, not in a row, bring back the largest `alpha`; the largest delay never ages. A
//! connection begins with `alpha` = 10 and `beta` = 1/2. Deviation from Linux: it counts round trips with
//! more than 65 535 RTT samples in full.

use weir_units::{Bytes, Duration};

use crate::window::{
    AckClockedWindow, ack_clocked_window, covered_segments, may_raise, whole_segments,
};
use crate::{AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Variable};

/// Illinois's window.
#[derive(Clone, Debug)]
pub struct Illinois {
    window: AckClockedWindow,
    /// In 1/128.
    alpha: u64,
    /// In 1/64.
    beta: u64,
    /// The smallest and the largest RTT, in microseconds.
    rtts: Option<(u64, u64)>,
    round: Round,
    /// Whether there was a queue since `alpha` was last the largest, and the rounds without one since.
    queued: bool,
    free_rounds: u32,
}

/// A round trip: it ends when `snd_una` passes `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    /// Microseconds.
    sum_rtt: u64,
    samples: u64,
}

impl Illinois {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            rtts: None,
            round: Round::default(),
            queued: false,
            free_rounds: 0,
        }
    }

    fn sample_rtt(&mut self, rtt: Duration) {
        let rtt = rtt.as_micros().min(RTT_MAX);
        let (base, max) = self.rtts.unwrap_or((rtt, rtt));
        self.rtts = Some((base.min(rtt), max.max(rtt)));
        self.round.sum_rtt += rtt;
        self.round.samples += 1;
    }

    /// `update_params`.
    fn end_round(&mut self, cx: &CcContext<'_>) {
        if self.window.cwnd < cx.mss * SMALL_WINDOW {
            self.be_reno();
        } else if let (Some((base, max)), 1..) = (self.rtts, self.round.samples) {
            let mean = self.round.sum_rtt / self.round.samples - base;
            self.alpha = self.alpha(mean, max - base);
            self.beta = beta(mean, max - base);
        }
        self.begin_round(cx);
    }

    fn alpha(&mut self, mean: u64, max: u64) -> u64 {
        let low = max / 100;
        if mean > low {
            self.queued = true;
            let (mean, max) = (mean - low, max - low);
            return max * ALPHA_MAX / (max + mean * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        }
        if self.queued {
            // One round without a queue may be chance.
            self.free_rounds += 1;
            if self.free_rounds < PATIENCE {
                return self.alpha;
            }
            self.free_rounds = 0;
            self.queued = false;
        }
        ALPHA_MAX
    }

    fn be_reno(&mut self) {
        self.alpha = ALPHA_RENO;
        self.beta = BETA_MAX;
    }

    fn begin_round(&mut self, cx: &CcContext<'_>) {
        self.round = Round { end: cx.snd_nxt, ..Round::default() };
    }

    fn grow(&mut self, mss: Bytes, ack: &AckEvent) {
        let window = &mut self.window;
        if window.in_slow_start() {
            window.slow_start(ack.acked);
            return;
        }
        window.credit += mss * covered_segments(ack, mss);
        let windows = window.credit.mul_ratio(self.alpha, ALPHA_RENO).get() / window.cwnd.get();
        if windows > 0 {
            window.cwnd += mss * windows;
            window.credit = Bytes::ZERO;
        }
    }
}

impl CongestionController for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let (beta, mss) = (self.beta, cx.mss);
        let reduced = |cwnd: Bytes| cwnd - whole_segments(cwnd.mul_ratio(beta, BETA_SCALE), mss);
        self.window.on_congestion(cx, event, reduced);
        if let Cause::Timeout { .. } = event.cause {
            self.be_reno();
            self.queued = false;
            self.free_rounds = 0;
            self.begin_round(cx);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        if !may_raise(cx, ack) {
            return;
        }
        if cx.snd_una > self.round.end {
            self.end_round(cx);
        }
        if cx.cwnd_limited {
            self.grow(cx.mss, ack);
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        let mut found =
            vec![("alpha", self.alpha as f64 / 128.0), ("beta", self.beta as f64 / 64.0)];
        if let Some((min, max)) = self.rtts {
            found.push(("min_rtt_ms", min as f64 / 1e3));
            found.push(("max_rtt_ms", max as f64 / 1e3));
        }
        found
    }
}

/// The part of the window that a loss takes, in 1/64.
fn beta(mean: u64, max: u64) -> u64 {
    let (low, high) = (max / 10, 8 * max / 10);
    if mean <= low {
        BETA_MIN
    } else if mean >= high || high <= low {
        BETA_MAX
    } else {
        (BETA_MIN * high - BETA_MAX * low + (BETA_MAX - BETA_MIN) * mean) / (high - low)
    }
}

/// Segments per round trip, in 1/128.
const ALPHA_RENO: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_RENO / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_RENO;
const BETA_SCALE: u64 = 64;
const BETA_MIN: u64 = BETA_SCALE / 8;
const BETA_MAX: u64 = BETA_SCALE / 2;
/// Microseconds: longer RTTs count as this (Linux's sums have 32 bits).
const RTT_MAX: u64 = u32::MAX as u64 / ALPHA_MAX;
/// Segments.
const SMALL_WINDOW: u64 = 15;
/// Rounds without a queue that bring back the largest growth.
const PATIENCE: u32 = 5;

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;

    /// A short segment counts as a whole one (`pkts_acked`).
    #[test]
    fn a_window_of_short_segments_makes_it_grow() {
        let mss = Bytes(1_000);
        let (mut illinois, mut rng) = (Illinois::new(mss * 4), stream(1, "unused"));
        illinois.window.ssthresh = mss * 2;
        illinois.be_reno();
        for sent in 1..=4 {
            assert_eq!(illinois.cwnd(), mss * 4);
            let mut cx =
                CcContext { cwnd_limited: true, ..CcContext::new(Instant::ZERO, mss, &mut rng) };
            cx.snd_una = sent * 100;
            illinois.round.end = u64::MAX;
            let (acked, cum_acked) = (mss, Bytes(100));
            illinois.on_ack(&mut cx, &AckEvent { acked, cum_acked, ..AckEvent::default() });
        }
        assert_eq!(illinois.cwnd(), mss * 5);
    }
}
