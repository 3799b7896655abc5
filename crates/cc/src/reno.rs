//! `reno`: slow start and congestion avoidance (RFC 5681), as Linux counts them.
//!
//! ```text
//! slow start            cwnd += acked                          while cwnd < ssthresh
//! congestion avoidance  cwnd += mss per cwnd bytes acked
//! loss                  ssthresh = max(cwnd / 2, 2 mss),  cwnd = ssthresh
//! timeout               ssthresh as above,  cwnd = 1 mss
//! ```
//!
//! Deviations from the RFC, which are Linux's: growth counts the bytes that are delivered, with
//! no limit per ACK in slow start (RFC 3465 with L = ∞), and `ssthresh` derives from `cwnd`, not from
//! the flight size. The bytes that an ACK acknowledges beyond `ssthresh` count for congestion
//! avoidance.

use weir_units::Bytes;

use crate::window::AckClockedWindow;
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, PathEvent};

/// Reno's window.
#[derive(Clone, Debug)]
pub struct Reno {
    window: AckClockedWindow,
}

impl Reno {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window) }
    }
}

impl CongestionController for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.first_in_epoch {
            self.window.reduce(cx.mss, event.cause, self.window.cwnd.mul_ratio(1, 2));
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if !self.window.may_grow(cx) {
            return;
        }
        let beyond = self.window.slow_start(ack.acked);
        self.window.additive_increase(cx.mss, self.window.cwnd, beyond);
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        self.window.on_path(cx.mss, event);
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh()
    }

    fn phase(&self) -> &'static str {
        self.window.phase()
    }
}
