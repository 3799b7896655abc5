//! `newreno`: Reno that stays in recovery through partial acknowledgements (RFC 6582).
//!
//! An acknowledgement that moves, but not past the recovery point, reveals the next hole, which is sent
//! again at once: one loss per round trip.

use weir_cc::RecoveryState;

use super::reno::DuplicateAcks;
use super::{Digest, Found, LossRecovery, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// NewReno's count of duplicates.
#[derive(Debug, Default)]
pub(super) struct NewReno {
    duplicates: DuplicateAcks,
}

impl LossRecovery for NewReno {
    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &Digest) -> Found {
        let partial = ack.covered.cum_acked > 0 && cx.state == RecoveryState::Recovery;
        let lost = if partial {
            // RFC 6582 §3.2 step 3: deflate by what was acknowledged, less the segment resent.
            board.consume_duplicates(ack.covered.cum_acked, cx.mss);
            board.lose_first()
        } else {
            if ack.covered.cum_acked > 0 {
                self.duplicates.clear(board);
            }
            self.duplicates.on_ack(cx, board, ack)
        };
        Found { lost, ..Found::default() }
    }
}
