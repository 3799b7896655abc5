//! `bic`: binary increase, a search for the window at which the last loss came (Xu, Harfoush and Rhee,
//! "Binary increase congestion control (BIC) for fast long-distance networks", INFOCOM 2004), as Linux
//! 6.1 has it (`tcp_bic.c`).
//!
//! ```text
//! slow start            as Reno
//! congestion avoidance  cwnd += mss per n mss acknowledged; w and w_max in segments,
//!                       d = (w_max - w) / 4 below w_max:
//!   w <= low                 n = w                  as Reno
//!   w < w_max, d > most      n = w / most           `most` segments per round trip
//!              d >= 2        n = w / d              binary search
//!              d <= 1        n = smooth w / 4       plateau
//!   w >= w_max, w < w_max + 4       n = smooth w / 4         plateau
//!               w < w_max + 3 most  n = 3 w / (w - w_max)    max probing
//!               beyond              n = w / most
//!   no loss yet (w_max = 0)  n <= 20
//!   n times 1/r, r the mean of segments per acknowledgement, above `low` segments
//! loss     w <= low: ssthresh = cwnd / 2
//!          else      ssthresh = beta cwnd
//!          w_max = w;  (1 + beta)/2 w if w is below the last w_max
//! timeout  as a loss, and everything else begins anew (w_max = 0, r = 2)
//! ```
//!
//! Every quotient is rounded down; `r` is kept in 1/16 and moves by 1/16 of the error with each
//! acknowledgement in the open state; so rounded it stays at 31/16 where every segment is acknowledged, and
//! growth is twice as fast as the constants say. `n` is computed anew when the window has changed, or
//! after 31 ms.
//!
//! Deviations from the paper, which are Linux's: the search goes a quarter of the way, not half; the reduction
//! is by a fifth, not an eighth. Deviation from Linux: time in ticks of 1 ms (`HZ` = 1000) begins with
//! the simulation, which matters for the 31 ms only.
//!
//! Parameters, Linux's: `beta` (0.8, which is 819/1024), `low-window` (14), `max-increment` (16, `most` above)
//! and `smooth-part` (20).

use weir_units::Bytes;

use crate::ticks::ticks;
use crate::window::{AckClockedWindow, ack_clocked_window, covered_segments, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, RecoveryState,
    Variable,
};

/// BIC's window.
#[derive(Clone, Debug)]
pub struct Bic {
    window: AckClockedWindow,
    search: Search,
    shape: BicShape,
    state: RecoveryState,
}

/// How BIC grows and gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BicShape {
    /// The share of the window that a loss leaves, at most 1.
    pub beta: Decimal,
    /// Segments: up to here it is Reno.
    pub low_window: u64,
    /// The most segments per round trip, at least 1.
    pub max_increment: u64,
    /// Windows that a segment takes on the plateau, times four.
    pub smooth_part: u64,
}

impl BicShape {
    /// Linux's.
    pub const LINUX: Self =
        Self { beta: Decimal::FOUR_FIFTHS, low_window: 14, max_increment: 16, smooth_part: 20 };
}

impl Default for BicShape {
    fn default() -> Self {
        Self::LINUX
    }
}

/// What a timeout forgets.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Segments acknowledged per segment of growth.
    count: u64,
    /// The window that lost, in segments; zero before the first loss.
    max: u64,
    /// The window that `count` is for, and the tick at which it was computed.
    window: u64,
    computed_at: u64,
    /// Segments per acknowledgement, in 1/16.
    ack_ratio: u64,
}

impl Bic {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes, shape: BicShape) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            search: Search::NEW,
            shape,
            state: RecoveryState::Open,
        }
    }

    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let beyond = self.window.slow_start(acked);
        if beyond > Bytes::ZERO {
            let segments = self.window.cwnd.get() / cx.mss.get();
            self.search.update(self.shape, segments, ticks(cx.now));
            self.window.additive_increase(cx.mss, cx.mss * self.search.count, beyond);
        }
    }
}

impl CongestionController for Bic {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let segments = self.window.cwnd.get() / cx.mss.get();
        if event.first_in_epoch {
            self.search.on_loss(self.shape.beta.in_1024ths(), segments);
        }
        let shape = self.shape;
        let reduced = |cwnd: Bytes| {
            if segments <= shape.low_window {
                cwnd / 2
            } else {
                cwnd.mul_ratio(shape.beta.in_1024ths(), ONE)
            }
        };
        self.window.on_congestion(cx, event, reduced);
        if let Cause::Timeout { .. } = event.cause {
            self.search = Search::NEW;
            self.state = RecoveryState::Loss;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        // Linux measures in the state before the acknowledgement.
        if self.state == RecoveryState::Open {
            self.search.count_ack(covered_segments(ack, cx.mss));
        }
        self.state = cx.state;
        if may_raise(cx, ack) && cx.cwnd_limited {
            self.grow(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        vec![("w_max_segments", self.search.max as f64)]
    }
}

impl Search {
    const NEW: Self =
        Self { count: 0, max: 0, window: 0, computed_at: 0, ack_ratio: 2 * RATIO_SCALE };

    /// `bictcp_update`.
    fn update(&mut self, shape: BicShape, window: u64, now: u64) {
        if self.window == window && now.saturating_sub(self.computed_at) <= PATIENCE {
            return;
        }
        self.window = window;
        self.computed_at = now;
        if window <= shape.low_window {
            self.count = window;
            return;
        }
        let count = self.acks_per_segment(shape, window);
        let count = if self.max == 0 { count.min(LARGEST_BLIND) } else { count };
        self.count = (count * RATIO_SCALE / self.ack_ratio).max(1);
    }

    fn acks_per_segment(&self, shape: BicShape, window: u64) -> u64 {
        let largest_step = shape.max_increment;
        let plateau = window * shape.smooth_part / PART;
        if window < self.max {
            let step = (self.max - window) / PART;
            match step {
                0 | 1 => plateau,
                2.. if step <= largest_step => window / step,
                _ => window / largest_step,
            }
        } else {
            let above = window - self.max;
            if above < PART {
                plateau
            } else if above < largest_step * (PART - 1) {
                window * (PART - 1) / above
            } else {
                window / largest_step
            }
        }
    }

    fn on_loss(&mut self, beta: u64, window: u64) {
        // Fast convergence: a flow that reduced its window below its last maximum leaves capacity to others.
        let gives_way = window < self.max;
        self.max = if gives_way { window * (ONE + beta) / (2 * ONE) } else { window };
    }

    fn count_ack(&mut self, segments: u64) {
        self.ack_ratio += segments;
        self.ack_ratio -= (self.ack_ratio - segments) / RATIO_SCALE;
    }
}

/// 1 in the share that a loss leaves.
const ONE: u64 = 1_024;
/// The share of the distance that one round trip goes.
const PART: u64 = 4;
/// Before the first loss, 5 % per round trip at least.
const LARGEST_BLIND: u64 = 20;
const RATIO_SCALE: u64 = 16;
/// Ticks.
const PATIENCE: u64 = 1_000 / 32;
