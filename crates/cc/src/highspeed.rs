//! `highspeed`: HighSpeed TCP, Reno with larger steps and smaller reductions the larger the window is
//! (RFC 3649), as Linux 6.1 has it (`tcp_highspeed.c`).
//!
//! ```text
//! slow start            as Reno
//! congestion avoidance  cwnd += a(w) mss / cwnd per acknowledgement, w = cwnd in segments
//! loss                  ssthresh = (1 - b(w)) cwnd
//! RFC 3649 §5:
//!   b(w) = 0.5 - 0.4 (ln w - ln 38) / (ln 83000 - ln 38),  0.5 below
//!   a(w) = w^2 p(w) 2 b(w) / (2 - b(w)),  p(w) = 0.078 / w^1.2,  1 below
//! ```
//!
//! As in appendix B of the RFC, a row of a table holds for the windows up to its own, at which a(w) is the
//! number of the row; `b` is in 1/256, rounded down.
//!
//! Deviations from the RFC, which are Linux's: growth counts acknowledgements, not what they acknowledge,
//! so a receiver that delays them halves it; what an acknowledgement acknowledges beyond `ssthresh` is
//! lost for it; the row is looked up in congestion avoidance only, so the loss that ends the first
//! slow start halves any window.

use weir_units::Bytes;

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, Variable};

/// HighSpeed TCP's window.
#[derive(Clone, Debug)]
pub struct Highspeed {
    window: AckClockedWindow,
    /// In the table.
    row: usize,
}

impl Highspeed {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window), row: 0 }
    }

    fn look_up(&mut self, segments: u64) {
        while self.row + 1 < WINDOWS.len() && segments > WINDOWS[self.row] {
            self.row += 1;
        }
        while self.row > 0 && segments <= WINDOWS[self.row - 1] {
            self.row -= 1;
        }
    }

    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        if self.window.in_slow_start() {
            self.window.slow_start(acked);
            return;
        }
        self.look_up(self.window.cwnd.get() / cx.mss.get());
        let window = &mut self.window;
        window.credit += cx.mss * (self.row as u64 + 1);
        if window.credit >= window.cwnd {
            window.credit -= window.cwnd;
            window.cwnd += cx.mss;
        }
    }
}

impl CongestionController for Highspeed {
    fn name(&self) -> &'static str {
        "highspeed"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let (mss, decrease) = (cx.mss.get(), DECREASES[self.row]);
        let reduced = |cwnd: Bytes| {
            let segments = cwnd.get() / mss;
            Bytes((segments - segments * decrease / 256) * mss)
        };
        self.window.on_congestion(cx, event, reduced);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if may_raise(cx, ack) && cx.cwnd_limited {
            self.grow(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        vec![("a_segments", self.row as f64 + 1.0), ("b", DECREASES[self.row] as f64 / 256.0)]
    }
}

/// The largest window of each row, in segments.
const WINDOWS: [u64; 72] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778,
    4177, 4596, 5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082,
    12834, 13614, 14424, 15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402,
    25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694,
    46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035,
    89053,
];
/// `b` of each row, in 1/256.
const DECREASES: [u64; 72] = [
    128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59,
    58, 57, 56, 55, 54, 53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40,
    39, 39, 38, 38, 37, 36, 36, 35, 35, 34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25,
    24,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_formula_of_the_rfc() {
        let ln = libm::log;
        for (row, (&window, &decrease)) in WINDOWS.iter().zip(&DECREASES).enumerate() {
            let w = window as f64;
            let b = 0.5 - 0.4 * (ln(w) - ln(38.0)) / (ln(83_000.0) - ln(38.0));
            assert_eq!(decrease, (256.0 * b) as u64, "{window}");
            let a = libm::pow(w, 0.8) * 0.078 * 2.0 * b / (2.0 - b);
            // At 38 segments it is Reno's 1, by the choice of p(w).
            let expected = (row + 1) as f64;
            assert!((a - expected).abs() < 0.06, "{a} at {window}, not {expected}");
        }
    }
}
