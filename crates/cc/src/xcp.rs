//! `xcp`: the eXplicit Control Protocol's sender.
//!
//! Sources: Katabi, Handley and Rohrs, "Congestion control for high bandwidth-delay product networks",
//! SIGCOMM 2002; draft-falk-xcp-spec-03 §3.1, 2007. Each packet says the round trip, the time between
//! packets (round trip over window) and the change of rate that the sender would like; what the routers
//! leave of that comes back:
//!
//! ```text
//! acknowledgement   cwnd += change RTT, at least one segment, at most what the peer offers
//! loss, timeout     as Reno
//! ```
//!
//! A sender with more to send asks for all there is, one that its application holds back for nothing.
//! What comes back as it was sent has met no XCP router: until something else does, this is Reno.

use weir_units::feedback::{Xcp as Header, header_micros};
use weir_units::{Bytes, Duration, Echo, Feedback, FeedbackKind};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, Needs};

/// A window that routers move.
#[derive(Clone, Debug)]
pub struct Xcp {
    window: AckClockedWindow,
    /// A router was heard of.
    heard: bool,
}

impl Xcp {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window), heard: false }
    }

    /// Change of the rate in bytes per second.
    fn change(&mut self, cx: &CcContext<'_>, delta: i32) {
        let rtt = i128::from(cx.rtt.srtt.unwrap_or_default().as_nanos());
        let change = i128::from(delta) * rtt / i128::from(Duration::from_secs(1).as_nanos());
        let cwnd = i128::from(self.window.cwnd.get());
        let most = cx.peer_window.max(cx.mss).get();
        let target = (cwnd + change).clamp(i128::from(cx.mss.get()), i128::from(most));
        self.window.cwnd = Bytes(u64::try_from(target).unwrap_or(most));
    }
}

impl CongestionController for Xcp {
    fn name(&self) -> &'static str {
        "xcp"
    }

    fn needs(&self) -> Needs {
        Needs { feedback: Some(FeedbackKind::Xcp), ..Needs::default() }
    }

    fn request(&mut self, cx: &mut CcContext<'_>) -> Option<Feedback> {
        let rtt = cx.rtt.srtt.unwrap_or_default();
        let spacing = rtt.mul_ratio(cx.mss.get(), self.window.cwnd.get().max(1)).as_nanos();
        Some(Feedback::Xcp(Header {
            rtt_micros: header_micros(rtt),
            spacing_nanos: u32::try_from(spacing).unwrap_or(u32::MAX),
            delta: if cx.app_limited { 0 } else { EVERYTHING },
        }))
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let echoed = match cx.feedback {
            Some(Echo::Xcp(delta)) if delta != EVERYTHING => Some(delta),
            _ => None,
        };
        self.heard |= echoed.is_some();
        if !self.heard && may_raise(cx, ack) {
            self.window.grow_as_reno(cx, ack.acked);
        }
        if let Some(delta) = echoed.filter(|delta| *delta < 0 || may_raise(cx, ack)) {
            self.change(cx, delta);
        }
    }

    ack_clocked_window!(on_spurious);

    fn phase(&self) -> &'static str {
        if self.heard { "controlled" } else { self.window.phase() }
    }
}

/// More than any router leaves.
const EVERYTHING: i32 = i32::MAX;
