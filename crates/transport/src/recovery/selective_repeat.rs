//! `selective-repeat`: the receiver keeps what arrives and acknowledges each segment (by SACK blocks);
//! each segment has its own timer, and only what timed out is sent again (Kurose and Ross §3.4.4).
//!
//! A timer reveals a single loss while others are acknowledged, so the controller, if there is one,
//! hears of it as of a fast retransmission.

use weir_units::Instant;

use super::{AckSummary, Countdown, Expired, Found, LossRecovery, Profile, RecoveryCx, TimerCx};
use crate::pause::Pause;
use crate::scoreboard::Scoreboard;

/// Selective repeat's timers.
#[derive(Clone, Debug)]
pub(super) struct SelectiveRepeat {
    window: Option<u32>,
    /// When the transmission that has been out longest left.
    oldest: Option<Instant>,
}

impl SelectiveRepeat {
    pub(super) fn new(window: Option<u32>) -> Self {
        Self { window, oldest: None }
    }
}

impl LossRecovery for SelectiveRepeat {
    fn profile(&self) -> Profile {
        Profile { window: self.window, follows_sending: true, ..Profile::default() }
    }

    fn on_ack(&mut self, _cx: &RecoveryCx, board: &mut Scoreboard, _ack: &AckSummary) -> Found {
        self.oldest = board.lose_expired(|_| false).1.map(|oldest| oldest.sent_at);
        Found::default()
    }

    fn on_sent(&mut self, cx: &RecoveryCx, _board: &Scoreboard) -> Countdown {
        self.oldest.get_or_insert(cx.now);
        Countdown::FromNow
    }

    fn on_resent(&mut self, now: Instant, _is_oldest: bool) {
        self.oldest.get_or_insert(now);
    }

    fn next_timeout(&self, timers: &TimerCx) -> Option<Instant> {
        self.oldest.map(|sent_at| sent_at.saturating_add(timers.base_rto))
    }

    fn postpone(&mut self, pause: Pause) {
        self.oldest = self.oldest.map(|sent_at| pause.shift(sent_at));
    }

    fn on_timeout(&mut self, cx: &RecoveryCx, board: &mut Scoreboard) -> Expired {
        let rto = cx.base_rto;
        let overdue =
            board.first().is_some_and(|first| first.sent_at.saturating_add(rto) <= cx.now);
        let (lost, oldest) = board.lose_expired(|sent| sent.sent_at.saturating_add(rto) <= cx.now);
        self.oldest = oldest.map(|oldest| oldest.sent_at);
        if lost > 0 { Expired::SegmentTimeout { lost, oldest: overdue } } else { Expired::Nothing }
    }
}
