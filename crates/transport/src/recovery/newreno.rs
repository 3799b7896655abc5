//! `newreno`: Reno that stays in recovery through partial acknowledgements (RFC 6582).
//!
//! An acknowledgement that moves, but not past the recovery point, reveals the next hole, which is sent
//! again at once: one loss per round trip.
//!
//! Linux's, which `rack` falls back to without SACK, differs around it: the reduction is metered by
//! PRR, for which each duplicate is a delivery, may be taken back, and lasts until something above
//! the recovery point is acknowledged.

use weir_cc::RecoveryState;

use super::reno::DuplicateAcks;
use super::{AckSummary, Found, LossRecovery, Profile, PrrRule, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// NewReno's count of duplicates.
#[derive(Clone, Debug, Default)]
pub(super) struct NewReno {
    duplicates: DuplicateAcks,
    profile: Profile,
}

impl NewReno {
    pub(super) fn as_linux() -> Self {
        let profile = Profile {
            prr: Some(PrrRule::Linux),
            undo: true,
            ends_above_point: true,
            ..Profile::default()
        };
        Self { profile, ..Self::default() }
    }
}

impl LossRecovery for NewReno {
    fn profile(&self) -> Profile {
        self.profile
    }

    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        let partial = ack.covered.cum_acked > 0
            && cx.state == RecoveryState::Recovery
            && board.una() < cx.high;
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
