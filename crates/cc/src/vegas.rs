//! `vegas`: delay-based congestion avoidance (Brakmo, O'Malley and Peterson, 1994) as Linux has it.
//!
//! ```text
//! once per round trip, with at least 3 RTT samples:
//!   rtt     = smallest RTT of the round, base_rtt = smallest ever
//!   backlog = cwnd (rtt - base_rtt) / base_rtt                      segments in the queue
//!   slow start            backlog > gamma:   cwnd = cwnd base_rtt / rtt + 1 mss, and it ends
//!   congestion avoidance  backlog < alpha:   cwnd += 1 mss
//!                         backlog > beta:    cwnd -= 1 mss
//! loss, timeout, fewer samples: as Reno
//! ```
//!
//! Deviations from the paper, which are Linux's: slow start doubles every round trip, not every second
//! one; losses are found and answered as by Reno; `base_rtt` is forgotten when sending resumes after
//! everything was acknowledged; growth does not ask whether the window was used; each round lifts
//! `ssthresh` to three quarters of the window.
//!
//! Parameters: `alpha` (2), `beta` (4) and `gamma` (1), segments in the queue. The paper and ns-2 have 1, 3
//! and 1.

use weir_units::{Bytes, Duration};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, RecoveryState, Variable};

/// Vegas's window.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: AckClockedWindow,
    bounds: VegasBounds,
    base_rtt: Option<Duration>,
    /// The round trip being measured; `None` outside [`RecoveryState::Open`].
    round: Option<Round>,
    /// Segments in the queue, by the last round trip with enough samples.
    backlog: Option<u64>,
}

/// Segments in the queue by which Vegas acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasBounds {
    /// Fewer ask for growth.
    pub alpha: u64,
    /// More ask for the opposite.
    pub beta: u64,
    /// More end slow start.
    pub gamma: u64,
}

impl VegasBounds {
    /// Linux's.
    pub const LINUX: Self = Self { alpha: 2, beta: 4, gamma: 1 };
}

impl Default for VegasBounds {
    fn default() -> Self {
        Self::LINUX
    }
}

/// A round trip: it ends when `snd_una` passes `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    min_rtt: Option<Duration>,
    samples: u32,
}

impl Vegas {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes, bounds: VegasBounds) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            bounds,
            base_rtt: None,
            round: Some(Round::default()),
            backlog: None,
        }
    }

    fn sample_rtt(&mut self, rtt: Duration) {
        // As Linux does, lest it divide by zero.
        let rtt = rtt + Duration::from_micros(1);
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        if let Some(round) = &mut self.round {
            round.min_rtt = Some(round.min_rtt.map_or(rtt, |min| min.min(rtt)));
            round.samples = round.samples.saturating_add(1);
        }
    }

    /// Vegas works in the open state only, with a fresh round each time it comes back.
    fn follow(&mut self, cx: &CcContext<'_>) {
        match (cx.state, self.round) {
            (RecoveryState::Open, None) => {
                self.round = Some(Round { end: cx.snd_nxt, ..Round::default() });
            }
            (RecoveryState::Open, Some(_)) => {}
            _ => self.round = None,
        }
    }

    fn end_round(&mut self, cx: &CcContext<'_>, round: Round, acked: Bytes) {
        let (Some(base_rtt), Some(rtt), 3..) = (self.base_rtt, round.min_rtt, round.samples) else {
            self.window.grow_as_reno(cx, acked);
            return;
        };
        let cwnd = self.window.cwnd.get() / cx.mss.get();
        let backlog = segments(cwnd, rtt - base_rtt, base_rtt);
        self.backlog = Some(backlog);
        if self.window.in_slow_start() && backlog > self.bounds.gamma {
            let fits = cx.mss * (segments(cwnd, base_rtt, rtt) + 1);
            self.window.cwnd = self.window.cwnd.min(fits);
            self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
        } else if self.window.in_slow_start() {
            self.window.slow_start(acked);
        } else if backlog > self.bounds.beta {
            self.window.cwnd = self.window.cwnd.saturating_sub(cx.mss);
            self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
        } else if backlog < self.bounds.alpha {
            self.window.cwnd += cx.mss;
        }
        self.window.cwnd = self.window.cwnd.max(cx.mss * 2);
        self.window.ssthresh = self.window.remembered_ssthresh(cx.mss);
    }
}

impl CongestionController for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if cx.bytes_in_flight == Bytes::ZERO {
            self.base_rtt = None;
            self.round = Some(Round { end: cx.snd_nxt, ..Round::default() });
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        self.follow(cx);
        if !may_raise(cx, ack) {
            return;
        }
        match self.round {
            None => self.window.grow_as_reno(cx, ack.acked),
            Some(round) if cx.snd_una > round.end => {
                self.end_round(cx, round, ack.acked);
                self.round = Some(Round { end: cx.snd_nxt, ..Round::default() });
            }
            Some(_) => {
                self.window.slow_start(ack.acked);
            }
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        let mut found = Vec::new();
        found.extend(self.base_rtt.map(|rtt| ("base_rtt_ms", rtt.as_millis_f64())));
        found.extend(self.backlog.map(|segments| ("backlog_segments", segments as f64)));
        found
    }
}

/// `cwnd * num / den` in whole segments.
fn segments(cwnd: u64, num: Duration, den: Duration) -> u64 {
    (u128::from(cwnd) * u128::from(num.as_micros()) / u128::from(den.as_micros())) as u64
}
