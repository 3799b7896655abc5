//! `yeah`: YeAH-TCP, Scalable TCP while the queue is short and Reno otherwise, with reductions that drain
//! the queue (Baiocchi, Castellani and Vacirca, "YeAH-TCP: yet another highspeed TCP", PFLDnet 2007), as
//! Linux 6.1 has it (`tcp_yeah.c`).
//!
//! ```text
//! slow start            as Reno
//! fast mode             cwnd += mss per 100 mss acknowledged, per cwnd below 100 segments
//! slow mode             as Reno
//! once per round trip, with at least 3 RTT samples:
//!   rtt     = smallest RTT of the round, base_rtt = smallest ever
//!   queue   = cwnd (rtt - base_rtt) / rtt                       in segments
//!   queue > 80 or rtt - base_rtt > base_rtt / 8:  slow mode
//!     queue > 80 and cwnd > reno_cwnd:  cwnd -= min(queue, cwnd / 2), to reno_cwnd at least;  ssthresh = cwnd
//!     reno_cwnd = cwnd / 2 at first (it is 2), then + 1
//!   otherwise:  fast mode;  after 50 such rounds reno_cwnd = 2
//! loss  in slow mode for 16 rounds:  ssthresh = cwnd / 2
//!       otherwise:  ssthresh = cwnd - queue, of which cwnd / 8 to cwnd / 2 count
//!       reno_cwnd halves
//! ```
//!
//! RTTs are in microseconds and one more than measured, as for [`Vegas`](crate::Vegas); `reno_cwnd` is
//! what Reno would have, so that it does not give way to Reno's queues for ever.
//!
//! Deviations from the paper, which are Linux's: `base_rtt` is forgotten when sending resumes after
//! everything was acknowledged; nothing is judged while the window is not used, a round then goes on; the 50
//! rounds of fast mode need not follow each other, but no loss may come between them.

use weir_units::{Bytes, Duration};

use crate::scalable::PER;
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, RecoveryState, Variable};

/// YeAH's window.
#[derive(Clone, Debug)]
pub struct Yeah {
    window: AckClockedWindow,
    /// Microseconds.
    base_rtt: u64,
    round: Round,
    /// Segments in the queue, at the last look.
    queue: u64,
    /// Rounds of slow mode in a row; zero in fast mode.
    slow_rounds: u32,
    /// What Reno would have, in segments.
    reno_cwnd: u64,
    /// Rounds of fast mode since the last loss, counted to `PATIENCE`.
    fast_rounds: u32,
    state: RecoveryState,
}

/// A round trip: it ends when `snd_una` passes `end`.
#[derive(Clone, Copy, Debug)]
struct Round {
    end: u64,
    /// Microseconds.
    min_rtt: u64,
    samples: u32,
}

impl Yeah {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            base_rtt: ENDLESS,
            round: Round::until(0),
            queue: 0,
            slow_rounds: 0,
            reno_cwnd: LEAST,
            fast_rounds: 0,
            state: RecoveryState::Open,
        }
    }

    fn sample_rtt(&mut self, rtt: Duration) {
        // As Linux does, lest it divide by zero.
        let rtt = rtt.as_micros() + 1;
        self.base_rtt = self.base_rtt.min(rtt);
        self.round.min_rtt = self.round.min_rtt.min(rtt);
        self.round.samples = self.round.samples.saturating_add(1);
    }

    /// Each return to the open state begins a round.
    fn follow(&mut self, cx: &CcContext<'_>) {
        if cx.state == RecoveryState::Open && self.state != RecoveryState::Open {
            self.round = Round::until(cx.snd_nxt);
        }
        self.state = cx.state;
    }

    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let beyond = self.window.slow_start(acked);
        let cwnd = self.window.cwnd;
        let per = if self.slow_rounds == 0 { cwnd.min(cx.mss * PER) } else { cwnd };
        self.window.additive_increase(cx.mss, per, beyond);
        if cx.snd_una > self.round.end {
            if self.round.samples > FEW_SAMPLES {
                self.judge(cx.mss);
            }
            self.round = Round::until(cx.snd_nxt);
        }
    }

    fn judge(&mut self, mss: Bytes) {
        let (rtt, delay) = (self.round.min_rtt, self.round.min_rtt - self.base_rtt);
        let segments = self.window.cwnd.get() / mss.get();
        self.queue = (u128::from(segments) * u128::from(delay) / u128::from(rtt)) as u64;
        if self.queue <= LONG_QUEUE && delay <= self.base_rtt / 8 {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > PATIENCE {
                self.reno_cwnd = LEAST;
                self.fast_rounds = 0;
            }
            return;
        }
        if self.queue > LONG_QUEUE && segments > self.reno_cwnd {
            let drained = segments - self.queue.min(segments / 2);
            self.window.cwnd = mss * drained.max(self.reno_cwnd);
            self.window.ssthresh = self.window.cwnd;
        }
        if self.reno_cwnd <= LEAST {
            self.reno_cwnd = (self.window.cwnd.get() / mss.get() / 2).max(LEAST);
        } else {
            self.reno_cwnd += 1;
        }
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }
}

impl CongestionController for Yeah {
    fn name(&self) -> &'static str {
        "yeah"
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if cx.bytes_in_flight == Bytes::ZERO {
            self.base_rtt = ENDLESS;
            self.round = Round::until(cx.snd_nxt);
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let (mss, queue, slow_rounds) = (cx.mss.get(), self.queue, self.slow_rounds);
        let reduced = |cwnd: Bytes| {
            let segments = cwnd.get() / mss;
            let half = (segments / 2).max(LEAST);
            let drained = queue.min(half).max(segments / 8);
            let taken = if slow_rounds < COMPETITION { drained } else { half };
            Bytes(segments.saturating_sub(taken) * mss)
        };
        self.window.on_congestion(cx, event, reduced);
        if event.first_in_epoch {
            self.fast_rounds = 0;
            self.reno_cwnd = (self.reno_cwnd / 2).max(LEAST);
        }
        if let crate::Cause::Timeout { .. } = event.cause {
            self.state = RecoveryState::Loss;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(rtt);
        }
        if ack.brief_episode {
            self.state = RecoveryState::Cwr;
        }
        self.follow(cx);
        if may_raise(cx, ack) && cx.cwnd_limited {
            self.grow(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious);

    fn phase(&self) -> &'static str {
        if self.window.in_slow_start() {
            "slow_start"
        } else if self.slow_rounds == 0 {
            "fast_mode"
        } else {
            "slow_mode"
        }
    }

    fn variables(&self) -> Vec<Variable> {
        vec![
            ("queue_segments", self.queue as f64),
            ("reno_cwnd_segments", self.reno_cwnd as f64),
            ("slow_rounds", f64::from(self.slow_rounds)),
        ]
    }
}

impl Round {
    fn until(end: u64) -> Self {
        Self { end, min_rtt: ENDLESS, samples: 0 }
    }
}

/// Microseconds, before there is a sample.
const ENDLESS: u64 = i32::MAX as u64;
const FEW_SAMPLES: u32 = 2;
/// Segments.
const LONG_QUEUE: u64 = 80;
/// The least window that a reduction leaves, in segments.
const LEAST: u64 = 2;
/// Rounds of slow mode that show that others fill the queue.
const COMPETITION: u32 = 16;
/// Rounds of fast mode that show that no Reno flow competes.
const PATIENCE: u32 = 50;
