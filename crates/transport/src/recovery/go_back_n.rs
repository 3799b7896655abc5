//! `go-back-n`: cumulative acknowledgements to a receiver that keeps nothing out of order. Three
//! duplicates or the timeout resend all that is outstanding.
//!
//! When the sender goes back, duplicates of the old window are still on their way: one for each
//! segment that the receiver discarded behind the gap. Only duplicates beyond those speak of what
//! was resent, so they are waited out before three more make the sender go back again. Nor does a
//! duplicate count that comes sooner than a round trip after the oldest segment left: it answers an
//! earlier one. Without that, segments resent in vain would, by their own duplicates, cause ever more.
//!
//! The shortest round trip says little once a queue has grown. So copies are counted too: where an
//! acknowledgement answers an earlier copy (the Eifel detection, RFC 3522), each later copy of that
//! segment is still in flight, and the receiver will answer it by a duplicate.

use super::{AckSummary, DUP_THRESH, Found, LossRecovery, Profile, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// Go-back-N's count of duplicates.
#[derive(Clone, Debug)]
pub(super) struct GoBackN {
    window: Option<u32>,
    duplicates: u32,
    /// Duplicates still expected from before the sender went back.
    stale: u32,
    /// Duplicates still expected from copies of segments that are acknowledged.
    spurious: u32,
}

impl GoBackN {
    pub(super) fn new(window: Option<u32>) -> Self {
        Self { window, duplicates: 0, stale: 0, spurious: 0 }
    }
}

impl LossRecovery for GoBackN {
    fn profile(&self) -> Profile {
        // Everything out was resent, so whatever an acknowledgement moves, the loss is repaired.
        Profile { window: self.window, ends_on_partial_ack: true, ..Profile::default() }
    }

    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        if ack.covered.cum_acked > 0 {
            self.duplicates = 0;
            self.stale = 0;
            self.spurious = match ack.covered.spurious_copies {
                // It answers the last copy, and what was sent before that was answered before.
                0 => 0,
                copies => self.spurious + copies,
            };
        } else if ack.duplicate && self.spurious > 0 {
            self.spurious -= 1;
        } else if ack.duplicate && self.stale > 0 {
            self.stale -= 1;
        } else if ack.duplicate && answers_oldest(cx, board) {
            self.duplicates += 1;
        }
        if self.duplicates < DUP_THRESH {
            return Found::default();
        }
        let outstanding = board.iter().count() as u32;
        self.stale = outstanding.saturating_sub(1 + DUP_THRESH);
        self.duplicates = 0;
        Found { lost: board.lose_where(|_, _| true), ..Found::default() }
    }
}

/// Whether what arrives now can answer something that left after the oldest outstanding segment; as
/// long as no round trip was measured, only the timer tells.
fn answers_oldest(cx: &RecoveryCx, board: &Scoreboard) -> bool {
    let waited = board.first().map(|oldest| cx.now.saturating_since(oldest.sent_at));
    cx.srtt.is_some() && waited >= Some(cx.min_rtt)
}
