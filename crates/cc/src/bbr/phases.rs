//! BBR's modes and the moves between them.

use weir_units::{Bytes, Duration, Instant};

use super::bandwidth::whole;
use super::{Bbr, HIGH_GAIN, UNIT};
use crate::probe_rtt::{Due, ProbeRtt, maybe_delayed};
use crate::ticks::ticks;
use crate::{AckEvent, CcContext, RateSample};

/// Where BBR is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubling the rate per round until the pipe is full.
    Startup,
    /// Draining the queue that this built.
    Drain,
    /// Cycling the pacing gain around one.
    ProbeBw(Phase),
    /// Emptying the pipe to see its propagation time.
    ProbeRtt,
}

/// A phase of the gain cycle, since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    index: usize,
    start: Instant,
    /// This cycle does not probe ([`super::overflow`]).
    held: bool,
    /// Rounds that a gradual probe has lasted.
    rounds: u32,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBw(_) => "probe_bw",
            Self::ProbeRtt => "probe_rtt",
        }
    }

    pub(super) fn probes_up(self) -> bool {
        matches!(self, Self::ProbeBw(Phase { index: 0, held: false, .. }))
    }

    /// Whether losses seen now may be those of a probe.
    pub(super) fn is_probe_or_drain(self) -> bool {
        matches!(self, Self::ProbeBw(Phase { index: 0 | 1, held: false, .. }))
    }
}

impl Bbr {
    pub(super) fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup if self.overflow.is_avoided() => STARTUP_GAIN,
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw(_) if self.policer.rate().is_some() => UNIT,
            Mode::ProbeBw(Phase { held: true, index: 0, .. }) => HELD_GAIN,
            Mode::ProbeBw(Phase { held: true, .. }) => UNIT,
            Mode::ProbeBw(Phase { index: 0, rounds, .. }) if self.overflow.is_gradual => {
                (HELD_GAIN + (1 << rounds.min(UNIT.ilog2()))).min(CYCLE[0])
            }
            Mode::ProbeBw(phase) => CYCLE[phase.index],
            Mode::ProbeRtt => UNIT,
        }
    }

    pub(super) fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain if self.overflow.is_avoided() => 2 * UNIT,
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw(_) => 2 * UNIT,
            Mode::ProbeRtt => UNIT,
        }
    }

    /// Starts the cycle in a random phase, but never by draining, so that flows do not probe together.
    pub(super) fn enter_probe_bw(&mut self, cx: &mut CcContext<'_>) {
        let last = CYCLE.len() - 1;
        let index = last - cx.rng.below(last as u64) as usize;
        self.next_phase(cx, Phase { index, start: cx.now, held: false, rounds: 0 });
    }

    fn next_phase(&mut self, cx: &CcContext<'_>, phase: Phase) {
        let index = (phase.index + 1) % CYCLE.len();
        let held = match index {
            0 => self.overflow.holds(cx.now, self.round.count),
            _ => phase.held,
        };
        self.mode = Mode::ProbeBw(Phase { index, start: cx.now, held, rounds: 0 });
    }

    pub(super) fn update_cycle_phase(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        let Mode::ProbeBw(phase) = self.mode else { return };
        let gradual = self.overflow.is_gradual && self.mode.probes_up();
        if gradual && !self.gradual_probe_is_over(cx, ack, phase) {
            if self.round.start {
                self.mode = Mode::ProbeBw(Phase { rounds: phase.rounds + 1, ..phase });
            }
        } else if gradual || self.phase_is_over(cx, ack, phase) {
            self.next_phase(cx, phase);
        }
    }

    /// A gradual probe lasts until the queue overflows, or until what a probe at 5/4 aims for is in flight.
    fn gradual_probe_is_over(&mut self, cx: &CcContext<'_>, ack: &AckEvent, phase: Phase) -> bool {
        let aim = self.inflight(cx.mss, self.bandwidth.max(), CYCLE[0]);
        let full = phase.rounds > 0 && self.in_flight_at_departure(cx, ack.prior_in_flight) >= aim;
        let overflows = self.overflow.holds(cx.now, self.round.count);
        self.overflow.is_gradual = overflows || !full;
        overflows || full
    }

    fn phase_is_over(&self, cx: &CcContext<'_>, ack: &AckEvent, phase: Phase) -> bool {
        let since = cx.now.in_whole_micros().saturating_since(phase.start.in_whole_micros());
        let lasted = self.min_rtt.is_some_and(|min_rtt| since.as_micros() > min_rtt.as_micros());
        let gain = self.pacing_gain();
        if gain == UNIT || phase.held {
            return lasted;
        }
        let bandwidth = self.bandwidth.max();
        let in_flight = self.in_flight_at_departure(cx, ack.prior_in_flight);
        if gain > UNIT {
            // Up: until the larger window is in flight, or does not fit.
            let full = in_flight >= self.inflight(cx.mss, bandwidth, gain);
            return lasted && (ack.lost > Bytes::ZERO || full);
        }
        lasted || in_flight <= self.inflight(cx.mss, bandwidth, UNIT)
    }

    pub(super) fn check_drain(&mut self, cx: &mut CcContext<'_>) {
        let target = self.inflight(cx.mss, self.bandwidth.max(), UNIT);
        // Linux changes gains after the model: what ends STARTUP still counts the burst that leaves.
        let in_flight = self.in_flight_at_departure(cx, cx.bytes_in_flight);
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(target);
        }
        if self.mode == Mode::Drain && in_flight <= target {
            self.enter_probe_bw(cx);
        }
    }

    /// What will be in the network when the next segment leaves: the whole segments that are delivered
    /// until then are gone, and a gain above one adds a burst.
    fn in_flight_at_departure(&self, cx: &CcContext<'_>, in_flight_now: Bytes) -> Bytes {
        let wait = cx.next_departure.saturating_since(cx.now);
        let burst = if self.pacing_gain() > UNIT { self.burst_segments(cx.mss) } else { 0 };
        let delivered = self.bw(cx.mss).segments_in(wait);
        (whole(cx.mss, in_flight_now) + cx.mss * burst).saturating_sub(cx.mss * delivered)
    }

    pub(super) fn update_min_rtt(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let expired = self.min_rtt_at.is_some_and(|at| is_past(cx.now, at + MIN_RTT_WINDOW));
        if let Some(rtt) = ack.rtt.map(|rtt| Duration::from_micros(rtt.as_micros())) {
            if self.min_rtt.is_none_or(|min| rtt < min) || expired && !maybe_delayed(cx, ack) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = Some(cx.now);
            } else if self.overflow.is_avoided() && self.min_rtt.is_some_and(|min| rtt <= near(min))
            {
                self.min_rtt_at = Some(cx.now);
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            // Linux has entered the mode when it saves the window, so an earlier, larger one stays.
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(cx);
        }
        if ack.rate.is_some_and(|sample| sample.delivered > Bytes::ZERO) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, cx: &mut CcContext<'_>) {
        match self.probe_rtt.advance(cx, self.delivered, self.round.start) {
            Some(Due::Round) => self.round.begin(self.delivered),
            Some(Due::End) => self.check_probe_rtt_done(cx),
            None => {}
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut CcContext<'_>) {
        if !self.probe_rtt.end().is_some_and(|end| is_past(cx.now, end)) {
            return;
        }
        self.min_rtt_at = Some(cx.now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_pipe.reached {
            self.enter_probe_bw(cx);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Whether the application or PROBE_RTT, not the network, bounded the sample.
    pub(super) fn is_limited(&self, sample: &RateSample) -> bool {
        sample.app_limited || self.probe_rtt.limits(sample.prior_delivered)
    }
}

/// Whether `time` was in an earlier tick of Linux's clock.
fn is_past(now: Instant, time: Instant) -> bool {
    ticks(now) > ticks(time)
}

/// The longest RTT that counts as the smallest one measured again: 9/8 of it, `kSimilarMinRttThreshold` of
/// Google's QUIC.
fn near(min_rtt: Duration) -> Duration {
    min_rtt + min_rtt / 8
}

const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// BBRv3's: `4 ln 2` is the smallest that doubles delivery per round where a window of twice the
/// bandwidth-delay product does not hold it back (draft-ietf-ccwg-bbr §2.5).
const STARTUP_GAIN: u64 = UNIT * 277 / 100;
/// A little more than pacing stays below the rate.
const HELD_GAIN: u64 = UNIT + 4;
const DRAIN_GAIN: u64 = UNIT * 1_000 / 2_885;
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use weir_units::{Rate, stream};

    use super::*;
    use crate::bbr::bandwidth::Bandwidth;
    use crate::bbr::overflow::{Detector, Overflow};

    const MSS: Bytes = Bytes(1_250);
    const RTT: Duration = Duration::from_millis(40);

    /// A connection of 10 Mbit/s and 40 ms that probes upwards since its first nanosecond.
    fn probing() -> Bbr {
        let mut bbr = Bbr::new(MSS, MSS * 10, Overflow::Linux);
        bbr.bandwidth.update(10, 1, Bandwidth::of(1, Duration::from_millis(1)));
        bbr.pacing_rate = Rate::from_mbit(12);
        bbr.min_rtt = Some(RTT);
        bbr.full_pipe.reached = true;
        bbr.mode = Mode::ProbeBw(Phase { index: 0, start: Instant::ZERO, held: false, rounds: 0 });
        bbr
    }

    /// Whether the probe ends more than a round trip later with these segments in flight, when the next one
    /// leaves after `wait`.
    fn ends(segments: u64, wait: Duration) -> bool {
        let now = Instant::ZERO + RTT + Duration::from_millis(1);
        let mut rng = stream(1, "unused");
        let mut cx = CcContext::new(now, MSS, &mut rng);
        cx.next_departure = now + wait;
        let ack = AckEvent { prior_in_flight: MSS * segments, ..AckEvent::default() };
        let bbr = probing();
        let Mode::ProbeBw(phase) = bbr.mode else { unreachable!("it probes") };
        bbr.phase_is_over(&cx, &ack, phase)
    }

    /// Linux's `bbr_packets_in_net_at_edt` counts what is delivered until then in whole packets. The target is
    /// 5/4 of 40, three bursts of two, and two more; the burst that leaves counts too.
    #[test]
    fn a_part_of_a_segment_is_not_delivered_before_the_next_one_leaves() {
        assert!(!ends(55, Duration::ZERO));
        assert!(ends(56, Duration::ZERO));
        // Truncated, the bandwidth is a little less than a segment per millisecond.
        assert!(ends(56, Duration::from_millis(1)));
        assert!(!ends(56, Duration::from_micros(1_001)));
        assert!(ends(57, Duration::from_micros(1_001)));
    }

    /// Linux's `bbr_update_min_rtt` changes the mode before it saves the window, and `bbr_save_cwnd` then keeps
    /// the larger of the two.
    #[test]
    fn probe_rtt_returns_to_the_largest_window_saved() {
        let prior_after = |earlier: u64| {
            let mut bbr = probing();
            (bbr.cwnd, bbr.prior_cwnd) = (MSS * 40, MSS * earlier);
            bbr.min_rtt_at = Some(Instant::ZERO);
            let mut rng = stream(1, "unused");
            let mut cx = CcContext::new(Instant::ZERO + MIN_RTT_WINDOW * 2, MSS, &mut rng);
            bbr.update_min_rtt(&mut cx, &AckEvent::default());
            assert_eq!(bbr.mode, Mode::ProbeRtt);
            bbr.prior_cwnd
        };
        assert_eq!(prior_after(30), MSS * 40);
        assert_eq!(prior_after(60), MSS * 60);
    }

    /// Where the queue is nearly empty anyway, four packets in flight would measure nothing new.
    #[test]
    fn an_rtt_near_the_smallest_makes_probe_rtt_needless_if_overflow_is_avoided() {
        let enters = |overflow: Overflow, rtt: Duration| {
            let mut bbr = probing();
            bbr.overflow = Detector::new(overflow);
            (bbr.min_rtt, bbr.min_rtt_at) = (Some(RTT), Some(Instant::ZERO));
            let mut rng = stream(1, "unused");
            for after in [MIN_RTT_WINDOW / 2, MIN_RTT_WINDOW + Duration::from_millis(2)] {
                let mut cx = CcContext::new(Instant::ZERO + after, MSS, &mut rng);
                let ack = AckEvent { rtt: Some(rtt), ..AckEvent::default() };
                bbr.update_min_rtt(&mut cx, &ack);
            }
            bbr.mode == Mode::ProbeRtt
        };
        assert!(!enters(Overflow::Avoid, RTT * 9 / 8));
        assert!(enters(Overflow::Avoid, RTT * 5 / 4));
        assert!(enters(Overflow::Linux, RTT * 9 / 8));
    }

    /// After an overflow a probe adds 1/256, then twice as much with each round, until it overflows again or 5/4 of
    /// the bandwidth-delay product is in flight: then the next one is at 5/4 at once.
    #[test]
    fn a_probe_after_an_overflow_is_gradual() {
        let mut bbr = probing();
        bbr.overflow = Detector::new(Overflow::Avoid);
        bbr.overflow.is_gradual = true;
        bbr.round.start = true;
        let mut rng = stream(1, "unused");
        let cx = CcContext::new(Instant::ZERO + RTT, MSS, &mut rng);
        let round = |bbr: &mut Bbr, segments: u64| {
            let gain = bbr.pacing_gain();
            let ack = AckEvent { prior_in_flight: MSS * segments, ..AckEvent::default() };
            bbr.update_cycle_phase(&cx, &ack);
            gain
        };
        let gains: Vec<u64> = (0..8).map(|_| round(&mut bbr, 44)).collect();
        assert_eq!(gains, [261, 262, 264, 268, 276, 292, 320, 320]);
        assert!(bbr.mode.probes_up() && bbr.overflow.is_gradual);
        let mut full = bbr.clone();
        round(&mut full, 56);
        assert!(!full.mode.probes_up() && !full.overflow.is_gradual);
        bbr.hold_probes(cx.now);
        round(&mut bbr, 44);
        assert!(!bbr.mode.probes_up() && bbr.overflow.is_gradual);
    }

    /// Linux's `bbr_update_gains` follows `bbr_check_drain`: on the acknowledgement that ends STARTUP a burst is
    /// about to leave, on the next one none.
    #[test]
    fn what_ends_startup_counts_one_more_burst() {
        let ends = |mode: Mode| {
            let mut bbr = probing();
            bbr.mode = mode;
            let mut rng = stream(1, "unused");
            let mut cx = CcContext::new(Instant::ZERO + RTT, MSS, &mut rng);
            cx.bytes_in_flight = MSS * 46;
            bbr.check_drain(&mut cx);
            bbr.mode != Mode::Drain
        };
        // The target is 40 and three bursts of two.
        assert!(!ends(Mode::Startup));
        assert!(ends(Mode::Drain));
    }

    /// Linux compares ticks: what is due 10 s after a time in the middle of one is due when that tick is over.
    #[test]
    fn the_minimum_rtt_is_too_old_in_the_tick_after_ten_seconds() {
        let entered = |after: Duration| {
            let mut bbr = probing();
            let measured = Instant::ZERO + Duration::from_micros(100_000);
            bbr.min_rtt_at = Some(measured);
            let mut rng = stream(1, "unused");
            let mut cx = CcContext::new(measured + after, MSS, &mut rng);
            bbr.update_min_rtt(&mut cx, &AckEvent::default());
            bbr.mode == Mode::ProbeRtt
        };
        // A tick begins 750 us after each millisecond of ours.
        assert!(!entered(MIN_RTT_WINDOW + Duration::from_micros(749)));
        assert!(entered(MIN_RTT_WINDOW + Duration::from_micros(750)));
    }
}
