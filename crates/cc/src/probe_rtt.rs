//! A stay in BBR's probe_rtt, the same in all versions: few packets in flight, for some
//! time and a round.

use weir_units::{Bytes, Duration, Instant};

use crate::{AckEvent, CcContext};

/// A stay in probe_rtt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRtt {
    /// The window, where that is more than the least.
    cwnd: Bytes,
    done_at: Option<Instant>,
    round_done: bool,
    /// What was sent while this many bytes had been delivered was limited by the probe.
    limited: Option<(Bytes, Bytes)>,
}

/// What an acknowledgement during a stay asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Few enough packets are in flight: a round begins.
    Round,
    /// The round is over, and with it perhaps the stay.
    End,
}

impl ProbeRtt {
    /// A stay that begins, with this window if it is more than the least.
    pub(crate) fn with(cwnd: Bytes) -> Self {
        Self { cwnd, ..Self::default() }
    }

    /// Changes the window of the stay.
    pub(crate) fn resize(&mut self, cwnd: Bytes) {
        self.cwnd = cwnd;
    }

    /// The window of the stay.
    pub(crate) fn window(&self, cx: &CcContext<'_>) -> Bytes {
        self.cwnd.max(cx.mss * LEAST_SEGMENTS)
    }

    /// Whether it limited sending when `delivered` bytes had been delivered.
    pub(crate) fn limits(&self, prior_delivered: Bytes) -> bool {
        self.limited.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }

    /// Handles an acknowledgement after which `delivered` bytes have been delivered; it may start a round.
    pub(crate) fn advance(
        &mut self,
        cx: &CcContext<'_>,
        delivered: Bytes,
        round_start: bool,
    ) -> Option<Due> {
        let from = self.limited.map_or(delivered, |(from, _)| from);
        self.limited = Some((from, delivered + cx.bytes_in_flight));
        if self.done_at.is_some() {
            self.round_done |= round_start;
            return self.round_done.then_some(Due::End);
        }
        if cx.bytes_in_flight > self.window(cx) {
            return None;
        }
        self.done_at = Some(cx.now + LENGTH);
        self.round_done = false;
        Some(Due::Round)
    }

    /// When its time is over; `None` until few enough packets are in flight.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.done_at
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.done_at.is_some_and(|done| now > done)
    }
}

/// A lone runt segment, whose ACK the receiver may have delayed.
pub(crate) fn maybe_delayed(cx: &CcContext<'_>, ack: &AckEvent) -> bool {
    let alone = ack.rate.is_some_and(|sample| sample.delivered == ack.acked);
    alone && ack.acked == ack.cum_acked && ack.acked < cx.mss
}

/// `BBRMinPipeCwnd`.
const LEAST_SEGMENTS: u64 = 4;
const LENGTH: Duration = Duration::from_millis(200);
