//! The cycle of ProbeBW: down, cruise, refill, up (draft-ietf-ccwg-bbr §5.3.3).

use weir_units::{Bytes, Duration, Instant};

use super::control::PROBE_GAIN;
use super::{BoundedBbr, LEAST_SEGMENTS, State, UNIT};
use crate::{AckEvent, CcContext, RateSample};

/// Where the probing for bandwidth stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    acks: Acks,
    /// What arrives was sent while probing, and did not show too much loss yet.
    pub(super) is_sampling: bool,
    /// An acknowledgement of this probe showed neither too much loss nor too many marks.
    pub(super) has_good_sample: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    /// The last probe stopped at what the one before had found to be too much.
    was_precautionary: bool,
    /// Rounds for which `inflight_longterm` has been growing.
    up_rounds: u32,
    /// Bytes acknowledged since it grew, and how many let it grow by a segment.
    up_acked: Bytes,
    acked_per_segment: Bytes,
    pub(super) rounds_since: u64,
    pub(super) wait: Duration,
    /// When down began, in version 2 also when up did.
    since: Instant,
}

/// What acknowledgements mean for the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

impl Probe {
    pub(super) fn stop(&mut self) {
        self.acks = Acks::Stopping;
    }
}

impl BoundedBbr {
    pub(super) fn start_down(&mut self, cx: &mut CcContext<'_>) {
        self.signals.reset();
        self.probe.rounds_since = cx.rng.below(2);
        self.probe.wait = LEAST_WAIT + cx.rng.duration_up_to(MORE_WAIT);
        self.probe.since = cx.now;
        self.probe.stop();
        self.round.begin(self.delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.model.forget_shortterm();
        self.probe.up_rounds = 0;
        self.probe.up_acked = Bytes::ZERO;
        self.probe.was_precautionary = false;
        self.probe.has_good_sample = false;
        self.probe.acks = Acks::Refilling;
        self.round.begin(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, cx: &CcContext<'_>, sample: &RateSample) {
        self.probe.is_sampling = true;
        self.probe.acks = Acks::Starting;
        self.round.begin(self.delivered);
        if self.version.is_2() {
            self.probe.since = cx.now;
        } else {
            self.restart_full_pipe(sample);
        }
        self.state = State::Up;
        self.raise_slope(cx.mss);
    }

    /// Version 2: what the long-term bound has become bounds the short term too.
    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
        if let (true, Some(longterm)) = (self.version.is_2(), self.model.inflight_longterm) {
            let shortterm = &mut self.model.inflight_shortterm;
            *shortterm = shortterm.map(|own| own.min(longterm));
        }
    }

    fn restart_full_pipe(&mut self, sample: &RateSample) {
        self.full_pipe.reset();
        self.full_pipe.bandwidth = sample.rate().unwrap_or(self.full_pipe.bandwidth);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(
        &mut self,
        cx: &mut CcContext<'_>,
        ack: &AckEvent,
        sample: &RateSample,
    ) {
        if !self.full_pipe.reached || self.adapt_longterm(cx, ack, sample) {
            return;
        }
        let in_flight = self.flight_of_cycle(cx, ack);
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(cx) => self.start_refill(),
            State::Down if self.is_time_to_cruise(cx, in_flight) => self.start_cruise(),
            State::Refill if self.round.start => self.start_up(cx, sample),
            State::Up if self.is_time_to_go_down(cx, in_flight, sample) => self.start_down(cx),
            _ => {}
        }
    }

    /// Follows what acknowledgements mean, and raises what may be in flight while little is lost. Whether
    /// that decided for another state.
    fn adapt_longterm(
        &mut self,
        cx: &mut CcContext<'_>,
        ack: &AckEvent,
        sample: &RateSample,
    ) -> bool {
        if self.probe.acks == Acks::Starting && self.round.start {
            self.probe.acks = Acks::Feedback;
        }
        if self.probe.acks == Acks::Stopping && self.round.start {
            self.probe.is_sampling = false;
            self.probe.acks = Acks::Init;
            let probing = self.state.probes_bandwidth();
            if probing && !sample.app_limited {
                self.model.advance_max_bw();
            }
            if probing && self.probe.was_precautionary && !self.probe.was_too_high {
                self.start_refill();
                return true;
            }
        }
        if self.is_inflight_too_high(sample) {
            if self.version.is_2() && self.probe.is_sampling {
                self.on_inflight_too_high(cx, sample.in_flight_at_send, sample.app_limited);
            }
            return false;
        }
        self.probe.has_good_sample |= self.probe.is_sampling;
        let Some(longterm) = self.model.inflight_longterm else { return false };
        self.model.inflight_longterm = Some(longterm.max(sample.in_flight_at_send));
        self.raise_longterm_bw(sample);
        if self.state == State::Up {
            self.probe_longterm_upward(cx, ack.acked);
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    pub(super) fn probe_longterm_upward(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let Some(longterm) = self.model.inflight_longterm else { return };
        if !cx.cwnd_limited || self.cwnd < longterm {
            if self.version.is_2() {
                self.probe.up_acked = Bytes::ZERO;
            }
            return;
        }
        self.probe.up_acked += acked;
        let per_segment = self.probe.acked_per_segment.max(cx.mss).get();
        let segments = self.probe.up_acked.get() / per_segment;
        self.probe.up_acked = Bytes(self.probe.up_acked.get() % per_segment);
        self.model.inflight_longterm = Some(longterm + cx.mss * segments);
        if self.round.start {
            self.raise_slope(cx.mss);
        }
    }

    /// `RaiseInflightLongtermSlope`: twice as many segments as in the round before.
    pub(super) fn raise_slope(&mut self, mss: Bytes) {
        self.probe.acked_per_segment = (self.cwnd / (1 << self.probe.up_rounds)).max(mss);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
    }

    /// `IsTimeToProbeBW`: after some seconds, or after as many rounds as Reno needs to grow back.
    fn is_time_to_probe(&self, cx: &CcContext<'_>) -> bool {
        let reno_rounds = self.target_inflight(cx.mss).get() / cx.mss.get();
        cx.now > self.probe.since + self.probe.wait
            || self.probe.rounds_since >= reno_rounds.min(MOST_ROUNDS)
    }

    fn is_time_to_cruise(&self, cx: &CcContext<'_>, in_flight: Bytes) -> bool {
        let headroom = self.inflight_with_headroom(cx.mss);
        headroom.is_none_or(|most| in_flight <= most)
            && in_flight <= self.inflight(cx.mss, self.model.max_bw(), UNIT)
    }

    fn is_time_to_go_down(
        &mut self,
        cx: &CcContext<'_>,
        in_flight: Bytes,
        sample: &RateSample,
    ) -> bool {
        let longterm = self.model.inflight_longterm;
        let mut down = false;
        if self.probe.was_too_high && longterm.is_some_and(|most| in_flight >= most) {
            self.probe.was_precautionary = true;
            down = true;
        } else if self.version.is_2() {
            let lasted = self.min_rtt.is_some_and(|min_rtt| cx.now > self.probe.since + min_rtt);
            let aim = self.inflight(cx.mss, self.model.max_bw(), PROBE_GAIN);
            down = lasted && in_flight >= aim;
        } else if cx.cwnd_limited && longterm.is_some_and(|most| self.cwnd >= most) {
            // What may be in flight, not the bandwidth, is the bound.
            self.restart_full_pipe(sample);
        } else {
            down = self.full_pipe.now;
        }
        if down {
            self.probe.was_too_high = false;
        }
        down
    }

    /// Limit that leaves other flows headroom in the bottleneck.
    pub(super) fn inflight_with_headroom(&self, mss: Bytes) -> Option<Bytes> {
        let longterm = self.model.inflight_longterm?;
        let headroom = longterm.mul_ratio(HEADROOM, UNIT).max(mss);
        Some(longterm.saturating_sub(headroom).max(mss * LEAST_SEGMENTS))
    }
}

/// `Headroom`.
const HEADROOM: u64 = 150;
const LEAST_WAIT: Duration = Duration::from_secs(2);
const MORE_WAIT: Duration = Duration::from_secs(1);
/// The rounds in which Reno fills 25 Mbit/s at 30 ms.
const MOST_ROUNDS: u64 = 63;
