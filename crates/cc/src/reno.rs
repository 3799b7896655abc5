//! `reno`: slow start and congestion avoidance (RFC 5681), as Linux counts them.
//!
//! ```text
//! slow start            cwnd += acked                          while cwnd < ssthresh
//! congestion avoidance  cwnd += mss per cwnd bytes acked
//! loss                  ssthresh = max(cwnd / 2, 2 mss),  cwnd = ssthresh
//! timeout               ssthresh as above,  cwnd = in flight + 1 mss
//! ```
//!
//! Deviations from the RFC, which are Linux's: growth counts the bytes that are delivered, with
//! no limit per ACK in slow start (RFC 3465 with L = ∞), but only on ACKs that move `snd_una`;
//! `ssthresh` derives from `cwnd`, not from the flight size. The bytes that an ACK acknowledges beyond
//! `ssthresh` count for congestion avoidance. After a timeout the window adds to what recovery
//! still believes in flight, which is nothing unless RACK repairs.

use weir_units::Bytes;

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent};

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
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if may_raise(cx, ack) {
            self.window.grow_as_reno(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious, phase);
}
