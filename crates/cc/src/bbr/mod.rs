//! `bbr`: BBR version 1 (Cardwell, Cheng, Gunn, Yeganeh and Jacobson, 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00) as in Linux 6.1's `tcp_bbr.c`.
//!
//! ```text
//! bw       = largest delivery rate of 10 rounds (not application-limited, unless larger)
//! min_rtt  = smallest RTT of 10 s
//! pacing   = 0.99 pacing_gain bw
//! cwnd     = cwnd_gain bw min_rtt + extra acknowledged + 3 bursts, even, at least 4 segments
//!
//! mode       pacing_gain        cwnd_gain   until
//! startup    739/256 = 2.89     2.89        bw grew less than 25 % in 3 rounds
//! drain      88/256 = 1/2.89    2.89        in flight <= bw min_rtt
//! probe_bw   5/4, 3/4, then 1   2           phases of one min_rtt, in turn, the first drawn
//! probe_rtt  1                  4 segments  200 ms and a round; after 10 s without a new min_rtt
//! ```
//!
//! Losses lower the window only by what was lost: the first round of a recovery conserves packets (one
//! out per one delivered), and the window from before comes back afterwards. A token-bucket policer is
//! recognised (`policer`), and ACKs that come in bursts enlarge the window (`aggregation`).
//!
//! Parameter: `overflow=avoid` tells such a queue from a lossy path (`overflow`).
//!
//! Bandwidth and time have the kernel's units (`bandwidth`): what these truncate decides over whole segments.
//!
//! Deviations from Linux: counts come in bytes, of which a part of a segment is rounded up; samples of PROBE_RTT are
//! limited by the controller itself rather than through the connection's mark; pacing stays above 1 kbit/s.

pub(crate) mod aggregation;
mod bandwidth;
mod overflow;
mod phases;
mod policer;

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::filter::MaxFilter;
use crate::probe_rtt::ProbeRtt;
use crate::round::Round;
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, RateSample,
    RecoveryState, Variable,
};
use aggregation::{Aggregation, LONGEST, WINDOW_ROUNDS};
use bandwidth::{Bandwidth, segments, whole};
use overflow::Detector;
pub use overflow::Overflow;
use phases::Mode;
use policer::{Observation, Policer, Verdict};

/// BBR's model of the path and what it makes of it.
#[derive(Clone, Debug)]
pub struct Bbr {
    cwnd: Bytes,
    initial_window: Bytes,
    pacing_rate: Rate,
    ssthresh: Option<Bytes>,
    mode: Mode,

    bandwidth: MaxFilter<Bandwidth>,
    policer: Policer,
    aggregation: Aggregation,
    overflow: Detector,
    min_rtt: Option<Duration>,
    /// When it was measured, from the first transmission on.
    min_rtt_at: Option<Instant>,
    full_pipe: FullPipe,
    round: Round,
    probe_rtt: ProbeRtt,

    /// The window to return to after recovery or PROBE_RTT.
    prior_cwnd: Bytes,
    prior_state: RecoveryState,
    packet_conservation: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    delivered: Bytes,
    lost: Bytes,
}

/// Whether more sending stopped to bring more delivery.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: Bandwidth,
    rounds: u32,
    reached: bool,
}

impl Bbr {
    /// Starts with `initial_window` in segments of `mss`.
    pub fn new(mss: Bytes, initial_window: Bytes, overflow: Overflow) -> Self {
        let mut bbr = Self {
            cwnd: initial_window.max(mss),
            initial_window,
            pacing_rate: Rate::ZERO,
            ssthresh: None,
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            overflow: Detector::new(overflow),
            min_rtt: None,
            min_rtt_at: None,
            full_pipe: FullPipe::default(),
            round: Round::default(),
            probe_rtt: ProbeRtt::default(),
            prior_cwnd: Bytes::ZERO,
            prior_state: RecoveryState::Open,
            packet_conservation: false,
            idle_restart: false,
            has_seen_rtt: false,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
        };
        bbr.pacing_rate = bbr.initial_rate(mss, Duration::from_millis(1));
        bbr
    }

    /// The bandwidth in use: the policer's, or the largest measured.
    fn bw(&self, mss: Bytes) -> Bandwidth {
        let policed = self.policer.rate().map(|rate| Bandwidth::from_rate(rate, mss));
        policed.unwrap_or(self.bandwidth.max())
    }

    fn update_model(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.round.start = false;
        if let Some(sample) = &ack.rate {
            self.update_bandwidth(cx, ack, sample);
            if ack.acked > Bytes::ZERO {
                if self.round.start {
                    self.aggregation.next_round(WINDOW_ROUNDS);
                }
                let bandwidth = self.bw(cx.mss);
                let explained = |time| cx.mss * bandwidth.segments_in(time);
                let acked = whole(cx.mss, ack.acked);
                self.aggregation.on_ack(cx.now.in_whole_micros(), acked, explained, self.cwnd);
            }
        }
        if self.round.start {
            self.end_round_of_losses(cx);
        }
        self.update_cycle_phase(cx, ack);
        self.check_full_pipe(ack);
        self.check_drain(cx);
        self.update_min_rtt(cx, ack);
    }

    fn update_bandwidth(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent, sample: &RateSample) {
        if self.round.update(self.delivered, sample.prior_delivered) {
            self.packet_conservation = false;
        }
        let app_limited = self.is_limited(sample);
        self.watch_for_policer(cx, ack.lost > Bytes::ZERO, app_limited);
        let bandwidth = Bandwidth::of(segments(cx.mss, sample.delivered), sample.interval);
        if !app_limited || bandwidth >= self.bandwidth.max() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.round.count, bandwidth);
        }
    }

    fn watch_for_policer(&mut self, cx: &mut CcContext<'_>, loss_now: bool, app_limited: bool) {
        let verdict = self.policer.observe(&Observation {
            now: cx.now,
            delivered: self.delivered,
            lost: self.lost,
            loss_now,
            app_limited,
            round_start: self.round.start,
            probing_bandwidth: matches!(self.mode, Mode::ProbeBw(_)),
        });
        if verdict == Verdict::GivenUp {
            self.enter_probe_bw(cx);
        }
    }

    fn check_full_pipe(&mut self, ack: &AckEvent) {
        self.full_pipe.reached |= self.round.start && self.overflow.ends_startup;
        let limited = ack.rate.is_none_or(|sample| self.is_limited(&sample));
        if self.full_pipe.reached || !self.round.start || limited {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if bandwidth >= self.full_pipe.bandwidth.mul_ratio(5, 4) {
            self.full_pipe = FullPipe { bandwidth, ..FullPipe::default() };
        } else {
            self.full_pipe.rounds += 1;
            self.full_pipe.reached = self.full_pipe.rounds >= FULL_PIPE_ROUNDS;
        }
    }

    /// `gain / 256` of the bandwidth-delay product, in whole segments.
    fn bdp(&self, mss: Bytes, bandwidth: Bandwidth, gain: u64) -> Bytes {
        let Some(min_rtt) = self.min_rtt else { return self.initial_window };
        mss * bandwidth.product(min_rtt, gain)
    }

    /// Adds three bursts to `window`, an even number of segments, and two more while probing
    /// upwards: short paths would starve on the exact product.
    fn quantised(&self, mss: Bytes, window: Bytes) -> Bytes {
        let segments = segments(mss, window) + 3 * self.burst_segments(mss);
        let probing_up = if self.mode.probes_up() { 2 } else { 0 };
        mss * (segments.next_multiple_of(2) + probing_up)
    }

    /// The segments that Linux hands to the interface at once: a millisecond's worth.
    fn burst_segments(&self, mss: Bytes) -> u64 {
        let rate = self.pacing_rate.as_bits_per_sec();
        let least = if rate < SINGLE_SEGMENT_BITS_PER_SEC { 1 } else { 2 };
        let bytes = (rate / 8 / 1_024).min(LARGEST_BURST);
        (bytes / mss.get()).clamp(least, MOST_BURST_SEGMENTS)
    }

    /// The bytes that may be in flight at `gain / 256`.
    fn inflight(&self, mss: Bytes, bandwidth: Bandwidth, gain: u64) -> Bytes {
        self.quantised(mss, self.bdp(mss, bandwidth, gain))
    }

    fn update_cwnd(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if ack.acked > Bytes::ZERO {
            self.follow_recovery(cx, ack);
            if self.packet_conservation {
                self.cwnd = self.cwnd.max(replaced(cx, ack));
            } else {
                self.approach_target(cx, whole(cx.mss, ack.acked));
            }
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt.window(cx));
        }
    }

    /// What was lost leaves the window; a recovery begins by conserving packets and ends with the
    /// window from before.
    fn follow_recovery(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        self.cwnd = self.cwnd.saturating_sub(whole(cx.mss, ack.lost)).max(cx.mss);
        if cx.state == RecoveryState::Recovery && self.prior_state != RecoveryState::Recovery {
            if !self.overflow.is_avoided() {
                self.conserve_packets(cx, ack);
            }
        } else if self.prior_state.repairs() && !cx.state.repairs() {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prior_state = cx.state;
    }

    /// One out per one delivered, for a round.
    fn conserve_packets(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        self.packet_conservation = true;
        self.round.begin(self.delivered);
        self.cwnd = replaced(cx, ack);
    }

    fn approach_target(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let bandwidth = self.bw(cx.mss);
        let mut target = self.bdp(cx.mss, bandwidth, self.cwnd_gain());
        if self.full_pipe.reached {
            target += self.aggregation.window(cx.mss * bandwidth.segments_in(LONGEST));
        }
        let target = self.quantised(cx.mss, target);
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || self.delivered < self.initial_window {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(cx.mss * LEAST_SEGMENTS);
    }

    fn update_pacing_rate(&mut self, cx: &CcContext<'_>, gain: u64) {
        self.take_first_rtt(cx);
        let rate = self.bw(cx.mss).paced(cx.mss, gain);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(LEAST_RATE);
        }
    }

    /// The first RTT replaces the millisecond that the first pacing rate assumed.
    fn take_first_rtt(&mut self, cx: &CcContext<'_>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, cx.rtt.srtt) {
            self.has_seen_rtt = true;
            self.pacing_rate = self.initial_rate(cx.mss, srtt);
        }
    }

    fn initial_rate(&self, mss: Bytes, rtt: Duration) -> Rate {
        let bandwidth = Bandwidth::of(segments(mss, self.cwnd), rtt);
        bandwidth.paced(mss, HIGH_GAIN).max(LEAST_RATE)
    }

    fn save_cwnd(&mut self) {
        let good = !self.prior_state.repairs() && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
}

impl CongestionController for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn needs(&self) -> Needs {
        Needs { rate_samples: true, own_reduction: true, pacing: true, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if self.min_rtt_at.is_none() {
            // The handshake's.
            self.min_rtt = cx.rtt.min;
            self.min_rtt_at = Some(cx.now);
        }
        self.take_first_rtt(cx);
        if cx.bytes_in_flight > Bytes::ZERO || !cx.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(cx.now.in_whole_micros());
        match self.mode {
            Mode::ProbeBw(_) => self.update_pacing_rate(cx, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(cx),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.first_in_epoch {
            self.save_cwnd();
        }
        if let Cause::Timeout { .. } = event.cause {
            self.prior_state = RecoveryState::Loss;
            self.full_pipe.bandwidth = Bandwidth::default();
            // A timeout is as good as the end of a round.
            self.round.start = true;
            self.lost += event.lost;
            self.watch_for_policer(cx, true, false);
            self.cwnd = cx.bytes_in_flight + cx.mss;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.lost += ack.lost;
        self.delivered =
            ack.rate.map_or(self.delivered + ack.acked, |sample| sample.total_delivered);
        self.watch_for_overflow(cx, ack);
        self.update_model(cx, ack);
        self.update_pacing_rate(cx, self.pacing_gain());
        self.update_cwnd(cx, ack);
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.full_pipe.bandwidth = Bandwidth::default();
        self.full_pipe.rounds = 0;
        self.policer.reset();
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn phase(&self) -> &'static str {
        self.mode.name()
    }

    fn variables(&self) -> Vec<Variable> {
        let extra = self.aggregation.window(Bytes::MAX);
        let mut found = vec![
            ("bw_segments_per_s", self.bandwidth.max().segments_per_sec()),
            ("full_bw_segments_per_s", self.full_pipe.bandwidth.segments_per_sec()),
            ("extra_acked_bytes", extra.get() as f64),
            ("rounds", self.round.count as f64),
        ];
        found.extend(self.policer.rate().map(|rate| ("lt_bw_mbps", rate.as_mbit_f64())));
        found.extend(self.min_rtt.map(|rtt| ("min_rtt_ms", rtt.as_millis_f64())));
        found
    }
}

/// The window that lets one out per one delivered.
fn replaced(cx: &CcContext<'_>, ack: &AckEvent) -> Bytes {
    whole(cx.mss, cx.bytes_in_flight) + whole(cx.mss, ack.acked)
}

/// Gains are in 1/256. `2 / ln 2` is the smallest that doubles delivery per round.
const UNIT: u64 = 256;
const HIGH_GAIN: u64 = UNIT * 2_885 / 1_000 + 1;
const BANDWIDTH_ROUNDS: u64 = 10;
const FULL_PIPE_ROUNDS: u32 = 3;
const LEAST_SEGMENTS: u64 = 4;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);
/// Linux's largest burst less the headers that it reserves.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
const MOST_BURST_SEGMENTS: u64 = 127;
const SINGLE_SEGMENT_BITS_PER_SEC: u64 = 1_200_000;
