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
//! one; losses are found and answered as by Reno; `base_rtt` is forgotten, and a round begins, when a segment
//! is sent with nothing in flight, also one that is sent again; growth does not ask whether the window was used; each round lifts
//! `ssthresh` to three quarters of the window.
//!
//! Parameters: `alpha` (2), `beta` (4) and `gamma` (1), segments in the queue. The paper and ns-2 have 1, 3
//! and 1.

use weir_units::{Bytes, Duration};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, RecoveryState, Variable,
};

/// Vegas's window.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: AckClockedWindow,
    bounds: VegasBounds,
    base_rtt: Option<Duration>,
    state: RecoveryState,
    /// The round trip being measured; `None` once [`RecoveryState::Open`] was left, until it returns or a
    /// segment is sent with nothing else in flight.
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
            state: RecoveryState::Open,
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

    /// Each return to the open state begins a round, each departure ends it (Linux's `tcp_vegas_state`).
    fn follow(&mut self, state: RecoveryState, snd_nxt: u64) {
        if state != self.state {
            self.state = state;
            let is_open = state == RecoveryState::Open;
            self.round = is_open.then(|| Round { end: snd_nxt, ..Round::default() });
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
        // Before the first segment is sent again, with nothing in flight, which begins a round.
        if let Cause::Timeout { .. } = event.cause {
            self.follow(RecoveryState::Loss, cx.snd_nxt);
        }
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        if ack.brief_episode {
            self.state = RecoveryState::Cwr;
        }
        self.follow(cx.state, cx.snd_nxt);
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

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;

    /// A segment that is sent again with nothing in flight begins a round inside recovery (Linux's
    /// `CA_EVENT_TX_START`); the return to the open state begins another.
    #[test]
    fn each_return_to_the_open_state_begins_a_round() {
        let (mut rng, mut vegas) =
            (stream(1, "unused"), Vegas::new(Bytes(14_480), VegasBounds::LINUX));
        let mut cx = CcContext::new(Instant::ZERO, Bytes(1_448), &mut rng);
        let ends = |vegas: &Vegas| vegas.round.map(|round| round.end);
        (cx.state, cx.snd_nxt) = (RecoveryState::Recovery, 10_000);
        vegas.on_ack(&mut cx, &AckEvent::default());
        assert_eq!(ends(&vegas), None);
        vegas.on_sent(&mut cx, Bytes(1_448));
        assert_eq!(ends(&vegas), Some(10_000));
        (cx.state, cx.snd_nxt) = (RecoveryState::Open, 12_000);
        vegas.on_ack(&mut cx, &AckEvent::default());
        assert_eq!(ends(&vegas), Some(12_000));
        cx.snd_nxt = 14_000;
        vegas.on_ack(&mut cx, &AckEvent::default());
        assert_eq!(ends(&vegas), Some(12_000));
        // A probe has repaired a loss: the state was another in between.
        vegas.on_ack(&mut cx, &AckEvent { brief_episode: true, ..AckEvent::default() });
        assert_eq!(ends(&vegas), Some(14_000));
    }

    /// After a timeout nothing is in flight: the segment that is sent again begins a round, which lasts
    /// while the losses are repaired.
    #[test]
    fn a_timeout_leaves_vegas_at_work() {
        let (mut rng, mut vegas) =
            (stream(1, "unused"), Vegas::new(Bytes(14_480), VegasBounds::LINUX));
        let mut cx = CcContext::new(Instant::ZERO, Bytes(1_448), &mut rng);
        let event = CongestionEvent {
            cause: Cause::Timeout { backoff: 0 },
            first_in_epoch: true,
            lost: Bytes(1_448),
            prior_in_flight: Bytes(1_448),
        };
        (cx.state, cx.snd_nxt) = (RecoveryState::Loss, 10_000);
        vegas.on_congestion(&mut cx, &event);
        assert!(vegas.round.is_none());
        vegas.on_sent(&mut cx, Bytes(1_448));
        vegas.on_ack(&mut cx, &AckEvent::default());
        assert!(vegas.round.is_some());
    }
}
