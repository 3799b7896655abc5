//! What BBR believes of the path, for long and for the present cycle, and how losses change that
//! (draft-ietf-ccwg-bbr §5.5).

use weir_units::{Bytes, Rate};

use super::{BoundedBbr, LOSS_THRESHOLD, State, UNIT};
use crate::{CcContext, LossSample, RateSample};

/// The rates and volumes that the path is believed to take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Model {
    /// The largest delivery rates of the cycle before and of this one.
    max_bw: [Rate; 2],
    /// Bounds from losses of this cycle, if there were any.
    pub(super) bw_shortterm: Option<Rate>,
    pub(super) inflight_shortterm: Option<Bytes>,
    /// What a probe found to be too much to be in flight.
    pub(super) inflight_longterm: Option<Bytes>,
    /// The rate that a probe found to be marked too much (version 2).
    pub(super) bw_longterm: Option<Rate>,
}

/// What the last round delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    bw_latest: Rate,
    pub(super) inflight_latest: Bytes,
    /// A round of losses is over when what is sent after this was delivered arrives.
    round_delivered: Bytes,
    pub(super) round_start: bool,
    loss_in_round: bool,
    pub(super) mark_in_round: bool,
    /// Acknowledgements of the round that showed losses.
    pub(super) losses: u32,
}

impl Model {
    pub(super) fn max_bw(&self) -> Rate {
        self.max_bw[0].max(self.max_bw[1])
    }

    pub(super) fn bw(&self) -> Rate {
        let bounds = [self.bw_shortterm, self.bw_longterm];
        bounds.into_iter().flatten().fold(self.max_bw(), Rate::min)
    }

    /// A cycle is over: its maximum counts for one more.
    pub(super) fn advance_max_bw(&mut self) {
        if self.max_bw[1] > Rate::ZERO {
            self.max_bw = [self.max_bw[1], Rate::ZERO];
        }
    }

    pub(super) fn forget_shortterm(&mut self) {
        self.bw_shortterm = None;
        self.inflight_shortterm = None;
    }
}

impl Signals {
    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.loss_in_round = false;
        self.mark_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }

    /// `AdvanceLatestDeliverySignals`: the next round begins with this sample.
    pub(super) fn restart(&mut self, sample: &RateSample) {
        self.bw_latest = sample.rate().unwrap_or(Rate::ZERO);
        self.inflight_latest = sample.delivered;
    }
}

impl BoundedBbr {
    pub(super) fn update_latest_signals(&mut self, sample: &RateSample) {
        let signals = &mut self.signals;
        signals.bw_latest = signals.bw_latest.max(sample.rate().unwrap_or(Rate::ZERO));
        signals.inflight_latest = signals.inflight_latest.max(sample.delivered);
        signals.round_start = sample.prior_delivered >= signals.round_delivered;
        if signals.round_start {
            signals.round_delivered = self.delivered;
        }
    }

    pub(super) fn update_max_bw(&mut self, sample: &RateSample) {
        if let Some(rate) = sample.rate()
            && (!sample.app_limited || rate >= self.model.max_bw())
        {
            self.model.max_bw[1] = self.model.max_bw[1].max(rate);
        }
    }

    /// `AdaptLowerBoundsFromCongestion`: after a round with losses, at most what was delivered in it.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if !self.signals.round_start {
            return;
        }
        let lossy = std::mem::take(&mut self.signals.loss_in_round);
        let marked = std::mem::take(&mut self.signals.mark_in_round);
        if !(lossy || marked) || self.state.probes_upwards() {
            return;
        }
        let bw = self.model.bw_shortterm.unwrap_or(self.model.max_bw());
        let inflight = self.model.inflight_shortterm.unwrap_or(self.cwnd);
        let (mut lower_bw, mut lower_inflight) = (bw, inflight);
        if lossy {
            lower_bw = bw.mul_ratio(BETA, UNIT).max(self.signals.bw_latest);
            lower_inflight = inflight.mul_ratio(BETA, UNIT).max(self.signals.inflight_latest);
        }
        if marked {
            lower_bw = lower_bw.min(self.marks.cut(bw));
            lower_inflight = lower_inflight.min(self.marks.cut_bytes(inflight));
        }
        self.model.bw_shortterm = Some(lower_bw);
        self.model.inflight_shortterm = Some(lower_inflight);
    }

    pub(super) fn on_mark(&mut self, cx: &mut CcContext<'_>) {
        self.note_loss();
        match self.state {
            State::Startup => self.full_pipe.reached = true,
            State::Up => self.start_down(cx),
            _ => {}
        }
    }

    fn note_loss(&mut self) {
        if !std::mem::replace(&mut self.signals.loss_in_round, true) {
            self.signals.round_delivered = self.delivered;
            if !self.version.is_2() {
                self.save_state();
            }
        }
    }

    /// `HandleLostPacket`.
    pub(super) fn on_loss(&mut self, cx: &mut CcContext<'_>, loss: &LossSample) {
        self.note_loss();
        if self.probe.is_sampling && is_too_much(loss.lost, loss.in_flight_at_send) {
            self.on_inflight_too_high(cx, inflight_at(loss), loss.app_limited);
        }
    }

    /// `IsInflightTooHigh`, also for the marks of version 2.
    pub(super) fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        is_too_much(sample.lost, sample.in_flight_at_send)
            || self.marks.are_too_many(sample.delivered)
    }

    pub(super) fn on_inflight_too_high(
        &mut self,
        cx: &mut CcContext<'_>,
        in_flight: Bytes,
        app_limited: bool,
    ) {
        self.probe.was_too_high = true;
        self.probe.is_sampling = false;
        if !app_limited {
            let least = self.target_inflight(cx.mss).mul_ratio(BETA, UNIT);
            self.model.inflight_longterm = Some(in_flight.max(least));
            self.lower_longterm_bw();
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(cx);
        }
    }

    /// `HandleSpuriousLossDetection`, without the window. Version 2 stays in its state.
    pub(super) fn undo_losses(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        self.signals.loss_in_round = false;
        self.full_pipe.reset();
        let model = &mut self.model;
        model.bw_shortterm = looser(model.bw_shortterm, undo.bw_shortterm);
        model.inflight_shortterm = looser(model.inflight_shortterm, undo.inflight_shortterm);
        model.inflight_longterm = looser(model.inflight_longterm, undo.inflight_longterm);
        match undo.state.filter(|_| !self.version.is_2()) {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

/// `IsInflightTooHigh`.
pub(super) fn is_too_much(lost: Bytes, in_flight: Bytes) -> bool {
    lost > in_flight.mul_ratio(LOSS_THRESHOLD, UNIT)
}

/// `InflightAtLoss`: what was in flight when the share of losses passed the threshold, somewhere within the
/// segment. With `p` of it lost: `(lost before + p) / (in flight before + p) = threshold`.
fn inflight_at(loss: &LossSample) -> Bytes {
    let before = loss.in_flight_at_send.saturating_sub(loss.size);
    let lost_before = loss.lost.saturating_sub(loss.size);
    let tolerated = before.mul_ratio(LOSS_THRESHOLD, UNIT).saturating_sub(lost_before);
    before + tolerated.mul_ratio(UNIT, UNIT - LOSS_THRESHOLD)
}

/// The higher bound, of which none is the highest.
fn looser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one?.max(other?))
}

/// `Beta`; version 2 calls the rest so.
const BETA: u64 = 700;

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-ccwg-bbr §5.5.10.2: what was in flight when exactly 2 % of it was lost.
    #[test]
    fn the_threshold_is_crossed_within_the_segment() {
        let loss = |lost| LossSample {
            size: Bytes(1_000),
            in_flight_at_send: Bytes(101_000),
            lost: Bytes(lost),
            app_limited: false,
        };
        // 1 500 of 100 000 before it; with 510 of it 2 010 of 100 510.
        assert_eq!(inflight_at(&loss(2_500)), Bytes(100_510));
        assert_eq!(inflight_at(&loss(9_000)), Bytes(100_000), "crossed before it");
        assert!(is_too_much(Bytes(2_021), Bytes(101_000)));
        assert!(!is_too_much(Bytes(2_020), Bytes(101_000)));
    }

    #[test]
    fn the_bandwidth_of_a_cycle_lasts_for_the_next() {
        let mut model = Model { max_bw: [Rate::ZERO, Rate::from_mbit(50)], ..Model::default() };
        model.advance_max_bw();
        model.max_bw[1] = Rate::from_mbit(20);
        assert_eq!(model.bw(), Rate::from_mbit(50));
        model.bw_shortterm = Some(Rate::from_mbit(30));
        assert_eq!(model.bw(), Rate::from_mbit(30));
        model.advance_max_bw();
        assert_eq!(model.bw(), Rate::from_mbit(20));
        model.advance_max_bw();
        assert_eq!(model.max_bw(), Rate::from_mbit(20), "a cycle without samples tells nothing");
    }
}
