//! `reno`: fast retransmit and fast recovery (RFC 5681 §3.2).
//!
//! The third duplicate acknowledgement reveals the loss of the oldest segment. Each duplicate says that
//! a segment has left the path; counting it out of what is in flight is the RFC's inflation of the
//! window seen from the other side. The first new acknowledgement ends recovery.

use weir_cc::RecoveryState;

use super::{AckSummary, DUP_THRESH, Found, LossRecovery, Profile, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// Reno's count of duplicates.
#[derive(Clone, Debug, Default)]
pub(super) struct Reno {
    duplicates: DuplicateAcks,
}

impl LossRecovery for Reno {
    fn profile(&self) -> Profile {
        Profile { ends_on_partial_ack: true, ..Profile::default() }
    }

    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        if ack.covered.cum_acked > 0 {
            self.duplicates.clear(board);
        }
        Found { lost: self.duplicates.on_ack(cx, board, ack), ..Found::default() }
    }
}

/// Duplicate acknowledgements without selective information, as Reno and NewReno count them.
#[derive(Clone, Debug, Default)]
pub(super) struct DuplicateAcks {
    count: u32,
    /// Below this position a duplicate may stem from an episode that is over (RFC 6582 §3.2 step 1).
    recover: u64,
}

impl DuplicateAcks {
    /// Counts a duplicate; the third marks the oldest segment. Returns the bytes newly lost.
    pub(super) fn on_ack(
        &mut self,
        cx: &RecoveryCx,
        board: &mut Scoreboard,
        ack: &AckSummary,
    ) -> u64 {
        if cx.state == RecoveryState::Loss {
            self.recover = cx.high;
            return 0;
        }
        if !ack.duplicate {
            return 0;
        }
        self.count += 1;
        board.duplicate_ack(cx.mss);
        let fresh = board.una() >= self.recover;
        if self.count == DUP_THRESH && cx.state != RecoveryState::Recovery && fresh {
            self.recover = board.nxt();
            return board.lose_first();
        }
        0
    }

    /// Starts to count anew.
    pub(super) fn clear(&mut self, board: &mut Scoreboard) {
        self.count = 0;
        board.clear_duplicates();
    }
}
