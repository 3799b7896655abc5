//! Why a sender repeats data: the kind of a retransmission, from what the sender had seen before it.
//!
//! Sources: RFC 6298 §5 (retransmission timer), RFC 8985 §7 (tail loss probe), RFC 5681 §3.2 (fast retransmit). The values
//! are those that a sender would have computed; Linux's smallest RTO, 200 ms, is also Weir's.

/// Why data was sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatKind {
    /// Acknowledgements showed a loss.
    Fast,
    /// The retransmission timer expired.
    Timeout,
    /// A tail loss probe.
    TailProbe,
}

/// What a sender knew at a repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Whether data above it was selectively acknowledged, or acknowledgements were repeated.
    pub(crate) is_loss_reported: bool,
    /// Whether it begins at the first unacknowledged byte.
    pub(crate) is_first: bool,
    /// Whether it ends at the last byte that was sent.
    pub(crate) is_last: bool,
    /// Whether it is below the last byte that was sent when the timer last expired.
    pub(crate) is_after_timeout: bool,
    /// Since the later of its last transmission and the last progress of acknowledgements.
    pub(crate) waited: u64,
    /// Since the last packet in any direction.
    pub(crate) quiet: u64,
    /// Whether it was sent once, by a sender that may send probes: these need SACK (RFC 8985 §3.2).
    pub(crate) may_probe: bool,
}

/// The smoothed RTT of RFC 6298 §2, and the timers that follow from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    smoothed: Option<u64>,
}

impl Timer {
    /// Processes a sample of the RTT.
    pub(crate) fn record(&mut self, rtt: u64) {
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            return;
        };
        self.smoothed = Some((7 * smoothed + rtt) / 8);
    }

    /// The smoothed RTT.
    pub(crate) fn smoothed(&self) -> Option<u64> {
        self.smoothed
    }

    /// The least retransmission timeout that is usual: Linux's, or RFC 6298's before the first sample. Variation is left
    /// out, because a capture elsewhere sees another one.
    fn rto(&self) -> u64 {
        self.smoothed.map_or(FIRST_RTO, |smoothed| smoothed + LEAST_RTO)
    }

    /// Why a range with this evidence was repeated.
    pub(crate) fn kind(&self, evidence: &Evidence) -> RepeatKind {
        if evidence.is_after_timeout {
            return RepeatKind::Timeout;
        }
        // The timer of a probe is never later than that of a timeout (RFC 8985 §7.2).
        let rto = self.rto() * EARLY_PERCENT / 100;
        let probe = self.smoothed.map_or(rto, |smoothed| 2 * smoothed) * EARLY_PERCENT / 100;
        let is_quiet = evidence.quiet >= probe.min(rto);
        if evidence.is_last && evidence.may_probe && !evidence.is_loss_reported && is_quiet {
            return RepeatKind::TailProbe;
        }
        if evidence.is_first && evidence.waited >= rto {
            return RepeatKind::Timeout;
        }
        RepeatKind::Fast
    }
}

const LEAST_RTO: u64 = 200_000_000;
const FIRST_RTO: u64 = 1_000_000_000;
/// Timers of a capture: its times jitter, and ticks of a millisecond shorten a timeout.
const EARLY_PERCENT: u64 = 90;
