//! `sack`: the conservative algorithm over a selective acknowledgement scoreboard (RFC 6675).
//!
//! ```text
//! IsLost(S)   more than (DupThresh - 1) · MSS bytes, or DupThresh separate blocks, are SACKed above S
//! pipe        outstanding − SACKed − lost + resent
//! ```
//!
//! The first loss opens recovery, which ends at the recovery point. NextSeg's rules 1 and 2 are the
//! sender's order (lost segments, then new data); rule 3 (when there is no new data, resend what is
//! below the highest SACK though not yet shown to be lost) marks such a segment lost. Rule 4, the rescue
//! retransmission, is left out: the retransmission timer covers a lost tail.

use super::{AckSummary, DUP_THRESH, Found, LossRecovery, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// RFC 6675's count of duplicates; the rest stands in the scoreboard.
#[derive(Clone, Debug, Default)]
pub(super) struct Sack {
    duplicates: u32,
}

impl LossRecovery for Sack {
    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        if ack.covered.cum_acked > 0 {
            self.duplicates = 0;
        } else if ack.duplicate && (ack.covered.sacked > 0 || !cx.sack) {
            self.duplicates += 1;
        }
        let recovering = cx.is_recovering();
        if !board.has_sacked_ranges() && self.duplicates < DUP_THRESH && !recovering {
            return Found::default();
        }
        let threshold = u64::from(DUP_THRESH);
        let by_bytes = board.sacked_above((threshold - 1) * cx.mss);
        let by_blocks = board.nth_sacked_range_from_top(DUP_THRESH as usize);
        let mut lost = match by_bytes.max(by_blocks) {
            Some(boundary) => board.lose_in_flight_below(boundary),
            None => 0,
        };
        if board.lost() == 0 && self.duplicates >= DUP_THRESH && !recovering {
            lost += board.lose_first();
        }
        if recovering && !cx.new_data && board.lost() == board.resent() {
            lost += board.lose_first_in_flight_below(board.highest_sacked());
        }
        Found { lost, ..Found::default() }
    }
}
