//! `veno`: Reno that tells losses by congestion from random ones (Fu and Liew, "TCP Veno: TCP
//! enhancement for transmission over wireless access networks", IEEE JSAC 21(2), 2003), as Linux
//! 6.1 has it (`tcp_veno.c`).
//!
//! ```text
//! backlog = cwnd - cwnd base_rtt / rtt              segments in the queue, in halves, rounded up
//! slow start            as Reno
//! congestion avoidance  backlog < 3:  as Reno
//!                       otherwise:    1 mss per two windows acknowledged
//! loss                  backlog < 3:  ssthresh = 4/5 cwnd
//!                       otherwise:    ssthresh = 1/2 cwnd
//! ```
//!
//! `rtt` is the smallest RTT since the window last had a chance to grow, `base_rtt` the smallest
//! ever, both in microseconds and one more than measured.
//!
//! Deviations from the paper, which are Linux's: the backlog is computed for every acknowledgement,
//! not once per round trip, and a loss is judged by the last one computed; outside the open state,
//! and before the third RTT sample, the window grows as Reno's and the backlog stands; `base_rtt`
//! is forgotten when sending resumes after everything was acknowledged; an acknowledgement whose
//! RTT is unknown counts as an endless one, as does the one that ends an episode.

use weir_units::{Bytes, Duration};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, RecoveryState, Variable};

/// Veno's window.
#[derive(Clone, Debug)]
pub struct Veno {
    window: AckClockedWindow,
    base_rtt: u64,
    rtt: u64,
    /// RTT samples so far, in 16 bits: every 65 536 of them Linux starts to count anew.
    samples: u16,
    /// Segments in the queue, in halves.
    backlog: u64,
    /// Whether the backlog is looked at; otherwise Veno is Reno.
    judging: bool,
    state: RecoveryState,
    /// With a backlog, whether the next full window acknowledged grows the window.
    may_grow: bool,
}

impl Veno {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            base_rtt: ENDLESS,
            rtt: ENDLESS,
            samples: 0,
            backlog: 0,
            judging: true,
            state: RecoveryState::Open,
            may_grow: true,
        }
    }

    fn sample_rtt(&mut self, rtt: Duration) {
        // As Linux does, lest it divide by zero.
        let rtt = rtt.as_micros() + 1;
        self.base_rtt = self.base_rtt.min(rtt);
        self.rtt = self.rtt.min(rtt);
        self.samples = self.samples.wrapping_add(1);
    }

    /// Veno works in the open state only, and starts there without an RTT (`tcp_veno_state`).
    fn follow(&mut self, state: RecoveryState) {
        if state == self.state {
            return;
        }
        self.state = state;
        self.judging = state == RecoveryState::Open;
        if self.judging {
            self.rtt = ENDLESS;
        }
    }

    /// `tcp_veno_cong_avoid` with enough samples.
    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let halves = self.window.cwnd.get() / cx.mss.get() * 2;
        let fits = u128::from(halves) * u128::from(self.base_rtt) / u128::from(self.rtt);
        self.backlog = halves.saturating_sub(fits as u64);
        let beyond = self.window.slow_start(acked);
        if beyond == Bytes::ZERO {
            return;
        }
        if self.backlog < BETA {
            self.window.additive_increase(cx.mss, self.window.cwnd, beyond);
        } else if self.window.credit < self.window.cwnd {
            self.window.credit += beyond;
        } else {
            self.window.credit = Bytes::ZERO;
            if self.may_grow {
                self.window.cwnd += cx.mss;
            }
            self.may_grow = !self.may_grow;
        }
    }
}

impl CongestionController for Veno {
    fn name(&self) -> &'static str {
        "veno"
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if cx.bytes_in_flight == Bytes::ZERO {
            self.base_rtt = ENDLESS;
            self.rtt = ENDLESS;
            self.judging = true;
            self.may_grow = true;
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if let crate::Cause::Timeout { .. } = event.cause {
            self.follow(RecoveryState::Loss);
        }
        let random = self.backlog < BETA;
        self.window.on_congestion(cx, event, |cwnd| if random { cwnd * 4 / 5 } else { cwnd / 2 });
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        if ack.brief_episode {
            self.state = RecoveryState::Cwr;
        }
        self.follow(cx.state);
        if !may_raise(cx, ack) {
            return;
        }
        if !self.judging {
            return self.window.grow_as_reno(cx, ack.acked);
        }
        if cx.cwnd_limited {
            if self.samples <= FEW_SAMPLES {
                self.window.grow_as_reno(cx, ack.acked);
            } else {
                self.grow(cx, ack.acked);
            }
            self.rtt = ENDLESS;
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        let mut found = vec![("backlog_segments", self.backlog as f64 / 2.0)];
        if self.samples > 0 {
            found.push(("base_rtt_ms", self.base_rtt as f64 / 1e3));
        }
        found
    }
}

/// Microseconds, before there is a sample.
const ENDLESS: u64 = i32::MAX as u64;
/// A backlog of this many half segments means that the queue, not chance, loses packets.
const BETA: u64 = 3 * 2;
const FEW_SAMPLES: u16 = 2;
