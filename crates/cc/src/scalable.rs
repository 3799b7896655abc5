//! `scalable`: Scalable TCP, whose growth and reduction are shares of the window, so that the time to
//! recover from a loss does not depend on the rate (Kelly, "Scalable TCP: Improving performance in
//! highspeed wide area networks", ACM CCR 33(2), 2003), as Linux 6.1 has it (`tcp_scalable.c`).
//!
//! ```text
//! slow start            as Reno
//! congestion avoidance  cwnd += mss per 100 mss acknowledged, per cwnd below 100 segments
//! loss                  ssthresh = cwnd - cwnd / 8, the eighth in whole segments
//! ```
//!
//! Deviations from the paper, which are Linux's: windows below 100 segments grow as Reno's (the paper
//! has Reno's reduction there, too, and changes over at 16 segments).

use weir_units::Bytes;

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise, whole_segments};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent};

/// Scalable TCP's window.
#[derive(Clone, Debug)]
pub struct Scalable {
    window: AckClockedWindow,
}

impl Scalable {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window) }
    }
}

impl CongestionController for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let mss = cx.mss;
        self.window.on_congestion(cx, event, |cwnd| cwnd - whole_segments(cwnd / 8, mss));
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if may_raise(cx, ack) && cx.cwnd_limited {
            let beyond = self.window.slow_start(ack.acked);
            let per = self.window.cwnd.min(cx.mss * PER);
            self.window.additive_increase(cx.mss, per, beyond);
        }
    }

    ack_clocked_window!(on_spurious, phase);
}

/// Segments acknowledged per segment of growth.
pub(crate) const PER: u64 = 100;
