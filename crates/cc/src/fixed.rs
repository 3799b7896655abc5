//! `none`: a window that never moves.
//!
//! What the sliding-window protocols of a first course use: stop-and-wait is a window of one.
//!
//! Parameter: `window` in segments, without which only the receiver's window bounds the sender.

use weir_units::Bytes;

use crate::{AckEvent, CcContext, CongestionController, CongestionEvent};

/// A fixed window.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    cwnd: Bytes,
}

impl Fixed {
    /// A window that bounds nothing: half of the range, so that sums with it cannot overflow.
    pub const UNBOUNDED: Bytes = Bytes(u64::MAX / 2);

    /// A window of `segments` of `mss` bytes, or none at all.
    pub fn new(segments: Option<u64>, mss: Bytes) -> Self {
        let cwnd = segments.map_or(Self::UNBOUNDED, |n| mss * n.max(1));
        Self { cwnd }
    }
}

impl CongestionController for Fixed {
    fn name(&self) -> &'static str {
        "none"
    }

    fn on_congestion(&mut self, _cx: &mut CcContext<'_>, _event: &CongestionEvent) {}

    fn on_ack(&mut self, _cx: &mut CcContext<'_>, _ack: &AckEvent) {}

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }
}
