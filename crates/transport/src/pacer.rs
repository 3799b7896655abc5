//! Spreads segments over time at the controller's pacing rate, as Linux's internal pacing does.

use weir_units::{Bytes, Instant, Rate};

/// When the next segment may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    next: Instant,
    carry: u64,
}

impl Pacer {
    /// When the next segment may leave, if that is not now.
    pub(crate) fn blocked_until(&self, now: Instant, rate: Option<Rate>) -> Option<Instant> {
        (rate.is_some() && self.next > now).then_some(self.next)
    }

    /// When the next segment may leave by the rates so far.
    pub(crate) fn next_departure(&self) -> Instant {
        self.next
    }

    /// Charges `bytes` that leave now at `rate`.
    pub(crate) fn on_sent(&mut self, now: Instant, rate: Option<Rate>, bytes: Bytes) {
        let Some(rate) = rate.filter(|rate| *rate > Rate::ZERO) else { return };
        let gap = rate.transmit_time(bytes, &mut self.carry);
        // A sender that comes late is given back up to half of the gap (Linux's
        // tcp_update_skb_after_send): timers fire late, and the rate should not suffer for it.
        let late = now.saturating_since(self.next);
        let credit = if self.next == Instant::ZERO { gap / 2 } else { late.min(gap / 2) };
        self.next = now.max(self.next) + (gap - credit);
    }
}
