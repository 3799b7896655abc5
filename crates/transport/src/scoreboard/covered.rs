//! What one acknowledgement says of the segments that it covers.

use weir_units::{Duration, Instant};

use super::sent::{Sent, Transmission};
use weir_cc::host::SendRecord;

/// When an acknowledgement arrived, the shortest round trip that is credible, the timestamp that it
/// echoes, and how far the one before had reported data selectively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTime {
    pub(crate) now: Instant,
    pub(crate) min_rtt: Duration,
    pub(crate) echo_ms: Option<u32>,
    pub(crate) highest: u64,
}

/// What an acknowledgement newly covered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Covered {
    /// Bytes by which `una` moved.
    pub(crate) cum_acked: u64,
    /// Bytes acknowledged selectively for the first time.
    pub(crate) sacked: u64,
    /// Bytes delivered: acknowledged in either way for the first time.
    pub(crate) delivered: u64,
    /// Segments newly covered cumulatively.
    pub(crate) segments: u32,
    /// Copies of them that are still in flight, because an earlier one was acknowledged (RFC 3522).
    pub(crate) spurious_copies: u32,
    /// The newest transmission among them.
    pub(crate) newest: Option<(Transmission, SendRecord)>,
    /// The newest transmission among those that cannot be an answer to a spurious retransmission.
    pub(crate) newest_credible: Option<Transmission>,
    /// When the last of those that was looked at was sent: RACK's round trip is its (Linux's
    /// `tcp_rack_advance`).
    pub(crate) last_credible: Option<Instant>,
    /// When the first and the last segment covered cumulatively were sent; `None` where one of
    /// them was retransmitted (Karn).
    pub(crate) cum_sent: Option<(Instant, Instant)>,
    /// When the first and the last segment covered selectively were sent, of those sent once.
    pub(crate) sack_sent: Option<(Instant, Instant)>,
    /// Whether a segment sent once, from before the recovery point, was among them (F-RTO).
    pub(crate) original_acked: bool,
    /// The lowest segment sent once that was covered below one already covered: the path reorders.
    pub(crate) reordered: Option<u64>,
}

/// A segment that arrived twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dsack {
    /// Where it ended.
    pub(crate) end: u64,
    /// It may have been sent twice: nothing else is known of a segment that is no longer outstanding.
    pub(crate) was_resent: bool,
}

impl Covered {
    /// Notes that the segment at `start` came later than others above it.
    pub(crate) fn note_late(&mut self, start: u64) {
        self.reordered = Some(self.reordered.map_or(start, |lowest| lowest.min(start)));
    }

    /// Takes up a segment that an acknowledgement newly covers.
    pub(super) fn note(&mut self, segment: &Sent, cx: &AckTime, echo_ms: Option<u32>) {
        let sent = segment.transmission();
        if self.newest.is_none_or(|(newest, _)| sent > newest) {
            self.newest = Some((sent, segment.record));
        }
        // RFC 8985 §6.2 step 2: an answer that came too soon, or that echoes an earlier timestamp,
        // answers an earlier copy. What a selective acknowledgement echoes is older than what it
        // covers (RFC 7323 §4.3), so it does not count.
        let too_soon = || cx.now.saturating_since(segment.sent_at) < cx.min_rtt;
        let echoes_earlier = || {
            let sent_ms = crate::timestamp_ms(segment.sent_at);
            echo_ms.is_some_and(|echo| (echo.wrapping_sub(sent_ms) as i32) < 0)
        };
        if segment.was_retransmitted() && (too_soon() || echoes_earlier()) {
            // Which of the earlier ones it answers is unknown: the first, unless that one was lost.
            self.spurious_copies += segment.transmissions - 1;
        } else {
            self.newest_credible = self.newest_credible.max(Some(sent));
            self.last_credible = Some(segment.sent_at);
        }
    }
}
