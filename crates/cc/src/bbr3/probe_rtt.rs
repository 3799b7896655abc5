//! The smallest RTT and the state that measures it (draft-ietf-ccwg-bbr §5.3.4).

use weir_units::{Bytes, Duration, Instant};

use super::{Bbr3, State, UNIT};
use crate::{AckEvent, CcContext, RateSample};

/// A stay in probe_rtt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// The window of the stay, from the RTT that was about to expire.
    pub(super) cwnd: Bytes,
    done_at: Option<Instant>,
    round_done: bool,
    /// What was sent while this many bytes had been delivered was limited by the probe.
    limited: Option<(Bytes, Bytes)>,
}

impl ProbeRtt {
    /// Whether it bounded what was sent when so much had been delivered.
    pub(super) fn limits(&self, prior_delivered: Bytes) -> bool {
        self.limited.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }
}

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
            self.probe_rtt = ProbeRtt { cwnd, ..ProbeRtt::default() };
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
        let from = self.probe_rtt.limited.map_or(self.delivered, |(from, _)| from);
        self.probe_rtt.limited = Some((from, self.delivered + cx.bytes_in_flight));
        if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.round.start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if cx.bytes_in_flight <= self.probe_rtt.cwnd.max(cx.mss * super::LEAST_SEGMENTS) {
            self.probe_rtt.done_at = Some(cx.now + PROBE_RTT_TIME);
            self.probe_rtt.round_done = false;
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut CcContext<'_>) {
        if self.probe_rtt.done_at.is_none_or(|done| cx.now <= done) {
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
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
