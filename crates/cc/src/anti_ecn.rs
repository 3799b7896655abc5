//! `anti-ecn`: Reno that grows as in slow start where routers see spare capacity.
//!
//! Source: Kunniyur, "AntiECN marking: a marking scheme for high bandwidth delay connections", ICC 2003.
//!
//! ```text
//! every link so far has spare capacity    cwnd += acknowledged bytes
//! else                          as Reno: slow start before the first loss, 1 / cwnd segments per segment after
//! loss, timeout                 as Reno
//! ```
//!
//! The bit is set unless a router clears it, so this is only for paths whose bottlenecks have one; an end
//! cannot tell. Where the peer returns none at all this is Reno.

use weir_units::feedback::Headroom;
use weir_units::{Bytes, Echo, Feedback, FeedbackKind};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, Needs};

/// Reno's window, with a bit that says how to grow.
#[derive(Clone, Debug)]
pub struct AntiEcn {
    window: AckClockedWindow,
}

impl AntiEcn {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window) }
    }
}

impl CongestionController for AntiEcn {
    fn name(&self) -> &'static str {
        "anti-ecn"
    }

    fn needs(&self) -> Needs {
        Needs { feedback: Some(FeedbackKind::AntiEcn), ..Needs::default() }
    }

    fn request(&mut self, _cx: &mut CcContext<'_>) -> Option<Feedback> {
        Some(Feedback::AntiEcn(Headroom::Spare))
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if !may_raise(cx, ack) {
            return;
        }
        match cx.feedback {
            Some(Echo::AntiEcn(Headroom::Spare)) if cx.cwnd_limited => {
                self.window.cwnd += ack.acked;
            }
            // A cleared bit takes nothing: the source's sender is never slower than slow start.
            _ => self.window.grow_as_reno(cx, ack.acked),
        }
    }

    ack_clocked_window!(on_spurious, phase);
}
