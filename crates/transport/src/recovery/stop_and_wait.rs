//! `stop-and-wait`: one segment at a time, sent again when its timer fires (rdt3.0; Kurose and Ross,
//! Computer Networking, §3.4.1). Duplicate acknowledgements are ignored, as there: a premature timeout
//! would otherwise echo for ever.

use super::{AckSummary, Found, LossRecovery, Profile, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// One segment at a time.
#[derive(Clone, Debug)]
pub(super) struct StopAndWait;

impl LossRecovery for StopAndWait {
    fn profile(&self) -> Profile {
        Profile { window: Some(1), ..Profile::default() }
    }

    fn on_ack(&mut self, _cx: &RecoveryCx, _board: &mut Scoreboard, _ack: &AckSummary) -> Found {
        Found::default()
    }
}
