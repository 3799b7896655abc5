//! The smallest RTT and the state that measures it (draft-ietf-ccwg-bbr §5.3.4).

use weir_units::{Bytes, Duration};

use super::{Bbr3, State, UNIT};
use crate::probe_rtt::{Due, ProbeRtt};
use crate::{AckEvent, CcContext, RateSample};

impl Bbr3 {
    /// `UpdateMinRTT` and `CheckProbeRTT`.
    pub(super) fn update_min_rtt(
        &mut self,
        cx: &mut CcContext<'_>,
        ack: &AckEvent,
        sample: Option<&RateSample>,
    ) {
        let expired = self.min_rtt_at.is_some_and(|at| cx.now > at + MIN_RTT_WINDOW);
        let enters = expired && self.state != State::ProbeRtt;
        if enters {
            let cwnd = self.bdp(self.bw(), UNIT / 2);
            self.probe_rtt = ProbeRtt::with(cwnd);
        }
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = Some(cx.now);
        }
        if enters && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe.stop();
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(cx);
        }
        if sample.is_some_and(|sample| sample.delivered > Bytes::ZERO) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, cx: &mut CcContext<'_>) {
        match self.probe_rtt.advance(cx, self.delivered, self.round.start) {
            Some(Due::Round) => self.start_round(),
            Some(Due::End) => self.check_probe_rtt_done(cx),
            None => {}
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut CcContext<'_>) {
        if !self.probe_rtt.is_over(cx.now) {
            return;
        }
        self.min_rtt_at = Some(cx.now);
        self.restore_cwnd();
        self.model.forget_shortterm();
        if self.full_pipe.reached {
            self.start_down(cx);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
