//! The smallest RTT and the state that measures it (draft-ietf-ccwg-bbr §5.3.4).

use weir_units::{Bytes, Duration, Instant};

use super::{BoundedBbr, State, UNIT, Version};
use crate::probe_rtt::{Due, ProbeRtt, maybe_delayed};
use crate::{AckEvent, CcContext, RateSample};

/// The text of the draft that BBRv3 follows. They differ in the filters of the smallest RTT, and in the window of probe_rtt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bbr3Text {
    /// The editors' copy of commit 007dbe1f: one filter of 10 s, a window that an episode keeps.
    #[default]
    Commit007dbe1f,
    /// draft-ietf-ccwg-bbr-06: a filter of 5 s schedules probe_rtt, one of 10 s gives `min_rtt`.
    Draft06,
}

/// The smallest RTT since the last probe_rtt, `probe_rtt_min_delay` of draft -06.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentMin {
    pub(super) rtt: Option<Duration>,
    /// When it was measured, or when the last probe_rtt ended, whichever is later.
    pub(super) at: Option<Instant>,
}

impl BoundedBbr {
    /// `UpdateMinRTT` and `CheckProbeRTT`.
    pub(super) fn update_min_rtt(
        &mut self,
        cx: &mut CcContext<'_>,
        ack: &AckEvent,
        sample: Option<&RateSample>,
    ) {
        let enters = if self.has_two_filters() {
            self.update_two_filters(cx, ack)
        } else {
            self.update_one_filter(cx, ack)
        };
        if enters && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe.stop();
            self.round.begin(self.delivered);
        }
        if self.state == State::ProbeRtt {
            if self.has_two_filters() {
                self.probe_rtt.resize(self.bdp(self.bw(), UNIT / 2));
            }
            self.probe_rtt(cx);
        }
        if sample.is_some_and(|sample| sample.delivered > Bytes::ZERO) {
            self.idle_restart = false;
        }
    }

    /// Of draft -06, which has them from version 2.
    fn has_two_filters(&self) -> bool {
        self.version != Version::Three(Bbr3Text::Commit007dbe1f)
    }

    /// Whether probe_rtt is due. Its window is of the product before a larger sample replaces `min_rtt`.
    fn update_one_filter(&mut self, cx: &CcContext<'_>, ack: &AckEvent) -> bool {
        let expired = has_expired(self.min_rtt_at, MIN_RTT_WINDOW, cx.now);
        let enters = expired && self.state != State::ProbeRtt;
        if enters {
            self.probe_rtt = ProbeRtt::with(self.bdp(self.bw(), UNIT / 2));
        }
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = Some(cx.now);
        }
        enters
    }

    /// Whether probe_rtt is due. `min_rtt` outlives the shorter filter by 5 s, and so is fresh when probe_rtt begins.
    fn update_two_filters(&mut self, cx: &CcContext<'_>, ack: &AckEvent) -> bool {
        let version_2 = self.version.is_2();
        // In version 2 an equal sample is as good as a smaller one.
        let counts = |rtt: Duration, min: Duration| rtt < min || version_2 && rtt == min;
        let delayed = version_2 && maybe_delayed(cx, ack);
        let recent = &mut self.recent_min;
        let expired = has_expired(recent.at, PROBE_RTT_INTERVAL, cx.now);
        if let Some(rtt) = ack.rtt.map(|rtt| if version_2 { whole_micros(rtt) } else { rtt })
            && (expired && !delayed || recent.rtt.is_none_or(|min| counts(rtt, min)))
        {
            *recent = RecentMin { rtt: Some(rtt), at: Some(cx.now) };
        }
        let lower = recent.rtt.is_some_and(|rtt| self.min_rtt.is_none_or(|min| counts(rtt, min)));
        if lower || has_expired(self.min_rtt_at, MIN_RTT_WINDOW, cx.now) {
            self.min_rtt = recent.rtt;
            self.min_rtt_at = recent.at;
        }
        let enters = expired && self.state != State::ProbeRtt;
        if enters {
            self.probe_rtt = ProbeRtt::default();
        }
        enters
    }

    fn probe_rtt(&mut self, cx: &mut CcContext<'_>) {
        match self.probe_rtt.advance(cx, self.delivered, self.round.start) {
            Some(Due::Round) => self.round.begin(self.delivered),
            Some(Due::End) => self.check_probe_rtt_done(cx),
            None => {}
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut CcContext<'_>) {
        if !self.probe_rtt.is_over(cx.now) {
            return;
        }
        if self.has_two_filters() {
            self.recent_min.at = Some(cx.now);
        } else {
            self.min_rtt_at = Some(cx.now);
        }
        self.restore_cwnd();
        self.model.forget_shortterm();
        if self.full_pipe.reached {
            self.start_down(cx);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}

/// The kernel's clock counts them, so that most samples of an empty path are equal.
fn whole_micros(rtt: Duration) -> Duration {
    Duration::from_micros(rtt.as_micros())
}

fn has_expired(measured: Option<Instant>, window: Duration, now: Instant) -> bool {
    measured.is_some_and(|at| now > at + window)
}

/// `MinRTTFilterLen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// `ProbeRTTInterval` of draft -06. The other text has 10 s for both.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;
    use crate::CongestionController;

    const MSS: Bytes = Bytes(1_000);
    /// 100 packets of 1000 bytes in 100 ms.
    const BDP: Bytes = Bytes(100_000);

    /// A flow at 1 MB/s with a minimum RTT of 100 ms that passes from startup to cruising at once, and cruises on.
    fn cruising(text: Bbr3Text) -> BoundedBbr {
        let mut bbr = BoundedBbr::version_3(MSS, BDP * 2, text);
        ack(&mut bbr, 1, 100, BDP);
        bbr.full_pipe.reached = true;
        bbr.state = State::Cruise;
        bbr
    }

    /// An acknowledgement after `ms`, with an RTT of `rtt_ms`, that leaves `in_flight`.
    fn ack(bbr: &mut BoundedBbr, ms: u64, rtt_ms: u64, in_flight: Bytes) {
        let mut rng = stream(1, "controller");
        let now = Instant::ZERO + Duration::from_millis(ms);
        let mut cx = CcContext { bytes_in_flight: in_flight, ..CcContext::new(now, MSS, &mut rng) };
        if bbr.min_rtt_at.is_none() {
            bbr.on_sent(&mut cx, MSS);
        }
        bbr.probe.rounds_since = 0;
        bbr.probe.wait = Duration::from_secs(1_000);
        let sample = RateSample {
            delivered: BDP,
            interval: Duration::from_millis(100),
            prior_delivered: bbr.delivered,
            total_delivered: bbr.delivered + MSS,
            in_flight_at_send: in_flight,
            lost: Bytes::ZERO,
            app_limited: false,
        };
        let rtt = Some(Duration::from_millis(rtt_ms));
        bbr.on_ack(
            &mut cx,
            &AckEvent { acked: MSS, rtt, rate: Some(sample), ..AckEvent::default() },
        );
    }

    /// Acknowledges every 10 ms with an RTT of `rtt_ms` until probe_rtt begins; when that is.
    fn enters_at(bbr: &mut BoundedBbr, rtt_ms: u64) -> u64 {
        for ms in (10..).step_by(10) {
            ack(bbr, ms, rtt_ms, BDP * 2);
            if bbr.state == State::ProbeRtt {
                return ms;
            }
        }
        unreachable!()
    }

    /// The first acknowledgement after the interval: an equal sample is not a smaller one.
    #[test]
    fn it_begins_when_no_smaller_rtt_was_seen_for_the_interval() {
        for (text, expected) in [(Bbr3Text::Commit007dbe1f, 10_010), (Bbr3Text::Draft06, 5_010)] {
            for rtt_ms in [100, 200] {
                assert_eq!(enters_at(&mut cruising(text), rtt_ms), expected, "{text:?}");
            }
        }
    }

    /// One filter: half the product before the sample of 200 ms replaces 100 ms, fixed for the episode. Two filters:
    /// half the present product, in which 100 ms is fresh until it is 10 s old.
    #[test]
    fn its_window_is_half_the_product() {
        for (text, later) in [(Bbr3Text::Commit007dbe1f, BDP / 2), (Bbr3Text::Draft06, BDP)] {
            let mut bbr = cruising(text);
            let start = enters_at(&mut bbr, 200);
            for ms in (start + 10..=10_000).step_by(10) {
                assert_eq!(bbr.cwnd, BDP / 2, "{text:?} after {ms} ms");
                ack(&mut bbr, ms, 200, BDP * 2);
            }
            assert_eq!(bbr.cwnd, BDP / 2, "{text:?}");
            for ms in (10_020..=11_000).step_by(10) {
                ack(&mut bbr, ms, 200, BDP * 2);
            }
            assert_eq!(bbr.cwnd, later, "{text:?}");
        }
    }

    /// draft-ietf-ccwg-bbr-06, `CheckProbeRTTDone`: the end delays the next probe_rtt, and leaves the age of `min_rtt`.
    #[test]
    fn the_end_of_one_schedules_the_next() {
        let mut bbr = cruising(Bbr3Text::Draft06);
        let start = enters_at(&mut bbr, 120);
        for ms in [10, 20, 215] {
            ack(&mut bbr, start + ms, 120, MSS);
        }
        let end = start + 215;
        assert_eq!(bbr.state, State::Cruise);
        assert_eq!(bbr.min_rtt, Some(Duration::from_millis(100)), "younger than 10 s");
        ack(&mut bbr, end + 4_990, 130, BDP);
        assert_eq!(bbr.min_rtt, Some(Duration::from_millis(120)), "of the last probe_rtt");
        ack(&mut bbr, end + 5_000, 130, BDP);
        assert_eq!(bbr.state, State::Cruise);
        ack(&mut bbr, end + 5_001, 130, BDP);
        assert_eq!(bbr.state, State::ProbeRtt);
    }
}
