//! When a receiver with thresholds acknowledges at once (draft-ietf-quic-ack-frequency).
//!
//! ```text
//! more than `threshold` segments since the last acknowledgement
//! newest - smallest unreported missing >= `reordering`
//! a segment that arrives <= newest acknowledged - `reordering` and was missing
//! ```
//!
//! What is missing is reported once an acknowledgement left with the newest segment that far ahead of it. Positions are
//! offsets in the stream, a segment's worth each.

use crate::AckFrequency;

/// What has arrived since the last acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Thresholds {
    unacknowledged: u32,
    /// The end of the newest byte, and what that was in the last acknowledgement.
    newest: u64,
    reported: u64,
}

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The first missing byte that is unreported.
    pub(super) missing: Option<u64>,
}

impl Thresholds {
    /// Below it, what is missing was reported.
    pub(super) fn reported_below(&self, config: AckFrequency, mss: u64) -> u64 {
        self.reported.saturating_sub(u64::from(config.reordering) * mss)
    }

    /// Whether to acknowledge at once.
    pub(super) fn on_data(&mut self, config: AckFrequency, mss: u64, at: &Position) -> bool {
        let reported_below = self.reported_below(config, mss);
        self.unacknowledged += 1;
        let was_missing = at.start < reported_below && at.end <= self.newest;
        self.newest = self.newest.max(at.end);
        if self.unacknowledged > config.threshold {
            return true;
        }
        let distance = (u64::from(config.reordering) + 1) * mss;
        let far = at.missing.is_some_and(|missing| self.newest - missing >= distance);
        config.reordering > 0 && (far || was_missing)
    }

    pub(super) fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.reported = self.newest;
    }
}
