//! Startup and drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use weir_units::{Bytes, Rate};

use super::model::is_too_much;
use super::{Bbr3, State, UNIT};
use crate::{AckEvent, CcContext, RateSample, RecoveryState};

/// Whether more sending stopped to bring more delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) bandwidth: Rate,
    rounds: u32,
    /// Since it was last asked.
    pub(super) now: bool,
    /// Ever.
    pub(super) reached: bool,
}

impl FullPipe {
    /// `ResetFullBW`.
    pub(super) fn reset(&mut self) {
        *self = Self { reached: self.reached, ..Self::default() };
    }
}

impl Bbr3 {
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        if self.full_pipe.now || !self.round.start || sample.app_limited {
            return;
        }
        let Some(rate) = sample.rate() else { return };
        if rate >= self.full_pipe.bandwidth.mul_ratio(5, 4) {
            self.full_pipe.reset();
            self.full_pipe.bandwidth = rate;
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.now = self.full_pipe.rounds >= FULL_PIPE_ROUNDS;
        self.full_pipe.reached |= self.full_pipe.now;
    }

    pub(super) fn check_startup_done(
        &mut self,
        cx: &CcContext<'_>,
        ack: &AckEvent,
        sample: Option<&RateSample>,
    ) {
        if self.state != State::Startup {
            return;
        }
        self.check_high_loss(cx, ack, sample);
        if self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_since = self.round.count;
        }
    }

    /// `CheckStartupHighLoss`: a round of recovery in which more than the threshold was lost, in several
    /// places.
    fn check_high_loss(&mut self, cx: &CcContext<'_>, ack: &AckEvent, sample: Option<&RateSample>) {
        self.signals.losses += u32::from(ack.lost > Bytes::ZERO);
        let Some(sample) = sample.filter(|_| self.signals.round_start) else { return };
        let losses = std::mem::take(&mut self.signals.losses);
        if cx.state == RecoveryState::Recovery
            && losses >= FULL_PIPE_LOSSES
            && is_too_much(sample.lost, sample.in_flight_at_send)
        {
            self.undo.state = Some(State::Startup);
            self.full_pipe.reached = true;
            let safe = self.bdp(self.bw(), UNIT).max(self.signals.inflight_latest);
            self.model.inflight_longterm = Some(safe);
        }
    }

    pub(super) fn check_drain_done(&mut self, cx: &mut CcContext<'_>) {
        let drained = cx.bytes_in_flight <= self.inflight(cx.mss, self.bw());
        let late = self.round.count > self.drain_since + DRAIN_ROUNDS;
        if self.state == State::Drain && (drained || late) {
            self.start_down(cx);
        }
    }
}

const FULL_PIPE_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`.
const FULL_PIPE_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
