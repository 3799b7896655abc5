//! Startup and drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use weir_units::{Bytes, Rate};

use super::{BoundedBbr, State, UNIT, Version};
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

impl BoundedBbr {
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        if self.full_pipe.now || !self.round.start || sample.app_limited {
            return;
        }
        let Some(rate) = sample.rate() else { return };
        let rate = if self.version.is_2() { self.model.max_bw() } else { rate };
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
            if self.version.is_2() {
                self.signals.reset();
            }
        }
    }

    /// `CheckStartupHighLoss`: a round of recovery in which more than the threshold was lost, in several
    /// places.
    fn check_high_loss(&mut self, cx: &CcContext<'_>, ack: &AckEvent, sample: Option<&RateSample>) {
        self.signals.losses += u32::from(ack.lost > Bytes::ZERO);
        let Some(sample) = sample.filter(|_| self.signals.round_start) else { return };
        let losses = std::mem::take(&mut self.signals.losses);
        if cx.state == RecoveryState::Recovery
            && losses >= self.full_pipe_losses()
            && self.is_inflight_too_high(sample)
        {
            self.undo.state = Some(State::Startup);
            self.end_startup_at_bound(cx.mss);
        }
    }

    fn full_pipe_losses(&self) -> u32 {
        match self.version {
            Version::Two(_) => FULL_PIPE_LOSSES_OF_2,
            Version::Three(_) => FULL_PIPE_LOSSES,
        }
    }

    /// The queue is too long: what may be in flight is bounded from now on.
    pub(super) fn end_startup_at_bound(&mut self, mss: Bytes) {
        self.full_pipe.reached = true;
        let safe = match self.version {
            Version::Two(_) => self.inflight(mss, self.model.max_bw(), UNIT),
            Version::Three(_) => self.bdp(self.bw(), UNIT).max(self.signals.inflight_latest),
        };
        self.model.inflight_longterm = Some(safe);
    }

    pub(super) fn check_drain_done(&mut self, cx: &mut CcContext<'_>) {
        let (in_flight, bandwidth) = match self.version {
            Version::Two(_) => {
                (self.in_flight_at_departure(cx, cx.bytes_in_flight), self.model.max_bw())
            }
            Version::Three(_) => (cx.bytes_in_flight, self.bw()),
        };
        let drained = in_flight <= self.inflight(cx.mss, bandwidth, UNIT);
        let late = !self.version.is_2() && self.round.count > self.drain_since + DRAIN_ROUNDS;
        if self.state == State::Drain && (drained || late) {
            self.start_down(cx);
        }
    }
}

const FULL_PIPE_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`, of the draft and of version 2.
const FULL_PIPE_LOSSES: u32 = 6;
const FULL_PIPE_LOSSES_OF_2: u32 = 8;
const DRAIN_ROUNDS: u64 = 3;
