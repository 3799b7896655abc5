//! BBR with bounds from losses. `bbr3`: version 3 (draft-ietf-ccwg-bbr, the editors' copy of commit 007dbe1f; `text=06`:
//! draft -06). `bbr2`: version 2, whose equations and differences are in [`version_2`].
//!
//! ```text
//! max_bw  = largest delivery rate of this ProbeBW cycle and the one before
//! bw      = min(max_bw, bw_shortterm)
//! min_rtt = smallest RTT of 10 s
//! pacing  = 0.99 pacing_gain bw
//! cwnd    = cwnd_gain bw min_rtt + extra acknowledged, at least 3 bursts, at least 4 segments,
//!           at most the caps
//!
//! state            pacing_gain  cwnd_gain  caps of cwnd                          until
//! startup          2.77         2          shortterm                             3 rounds without 25 % more,
//!                                                                                or > 2 % lost in a round
//! drain            0.5          2          shortterm                             in flight <= bw min_rtt, 3 rounds
//! probe_bw_down    0.9          2          longterm, shortterm                   in flight <= bw min_rtt and
//!                                                                                <= 0.85 longterm
//! probe_bw_cruise  1            2          0.85 longterm, shortterm              2 to 3 s or, if sooner, as many
//!                                                                                rounds as Reno needs, at most 63
//! probe_bw_refill  1            2          longterm                              a round
//! probe_bw_up      1.25         2.25       longterm, raised by 1, 2, 4 … mss     3 rounds without 25 % more,
//!                                          a round                               or > 2 % lost
//! probe_rtt        1            0.5        0.5 bw min_rtt of before              200 ms and a round
//! ```
//!
//! Losses while it does not probe lower `bw_shortterm` and `inflight_shortterm` once per round to what was
//! delivered, by 0.7 at most (`model`). A probe that loses more than 2 % sets `inflight_longterm` to what was
//! in flight then (`probe_bw`); the next one stops there and only the one after that goes on.
//!
//! With `text=06`, probe_rtt follows 5 s without a smaller RTT, and its window follows `bw min_rtt` (`probe_rtt`).
//!
//! The draft specifies no answer to ECN's marks but that they are congestion (§3.7). Here a mark, where packets
//! are ECN-capable (`ecn = true`), counts as a loss in the round, and ends startup or a probe.
//!
//! Deviations from the draft: of several segments that one acknowledgement shows to be lost, the last is
//! judged; rounds with losses in startup are counted by acknowledgements that show some, as Linux does
//! (`tcp_bbr.c` of version 3); the extra acknowledged is what `bbr` measures, which Linux bounds by 100 ms of
//! bandwidth; samples of probe_rtt are known as limited by the controller itself; the pacing rate stays
//! above 1 kbit/s.

mod control;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;
mod version_2;

use weir_units::{Bytes, Duration, Ecn, Instant, Rate};

use self::model::{Model, Signals};
use self::probe_bw::Probe;
pub use self::probe_rtt::Bbr3Text;
use self::probe_rtt::RecentMin;
use self::startup::FullPipe;
pub use self::version_2::Bbr2Ecn;
use self::version_2::Marks;
use crate::bbr::aggregation::{Aggregation, WINDOW_ROUNDS};
use crate::probe_rtt::ProbeRtt;
use crate::round::Round;
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, RateSample,
    RecoveryState, Variable,
};

/// The model of the path and what BBR makes of it, in version 2 or 3.
#[derive(Clone, Debug)]
pub struct BoundedBbr {
    version: Version,
    cwnd: Bytes,
    initial_window: Bytes,
    pacing_rate: Rate,
    state: State,
    round: Round,
    model: Model,
    signals: Signals,
    marks: Marks,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    /// The round in which drain began.
    drain_since: u64,
    probe: Probe,
    min_rtt: Option<Duration>,
    /// When it was measured, from the first transmission on.
    min_rtt_at: Option<Instant>,
    recent_min: RecentMin,
    probe_rtt: ProbeRtt,
    /// The window to return to after recovery or probe_rtt.
    prior_cwnd: Bytes,
    /// At the acknowledgement before.
    recovery: RecoveryState,
    undo: Undo,
    idle_restart: bool,
    has_seen_rtt: bool,
    delivered: Bytes,
}

/// The version, and what its source leaves to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two(Bbr2Ecn),
    Three(Bbr3Text),
}

/// Where BBR is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What to return to if losses prove unfounded.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    state: Option<State>,
    bw_shortterm: Option<Rate>,
    inflight_shortterm: Option<Bytes>,
    inflight_longterm: Option<Bytes>,
}

impl BoundedBbr {
    /// Version 2. Starts with `initial_window` in segments of `mss`.
    pub fn version_2(mss: Bytes, initial_window: Bytes, ecn: Bbr2Ecn) -> Self {
        Self::new(mss, initial_window, Version::Two(ecn))
    }

    /// Version 3. Starts with `initial_window` in segments of `mss`, and follows `text`.
    pub fn version_3(mss: Bytes, initial_window: Bytes, text: Bbr3Text) -> Self {
        Self::new(mss, initial_window, Version::Three(text))
    }

    fn new(mss: Bytes, initial_window: Bytes, version: Version) -> Self {
        let mut bbr = Self {
            version,
            cwnd: initial_window.max(mss),
            initial_window,
            pacing_rate: Rate::ZERO,
            state: State::Startup,
            round: Round::default(),
            model: Model::default(),
            signals: Signals::default(),
            marks: Marks::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            drain_since: 0,
            probe: Probe::default(),
            min_rtt: None,
            min_rtt_at: None,
            recent_min: RecentMin::default(),
            probe_rtt: ProbeRtt::default(),
            prior_cwnd: Bytes::ZERO,
            recovery: RecoveryState::Open,
            undo: Undo::default(),
            idle_restart: false,
            has_seen_rtt: false,
            delivered: Bytes::ZERO,
        };
        bbr.pacing_rate = bbr.initial_rate(Duration::from_millis(1));
        bbr
    }

    /// `UpdateModelAndState`.
    fn update_model(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.round.start = false;
        let sample = ack.rate.map(|sample| self.limited(sample));
        if let Some(sample) = &sample {
            self.update_latest_signals(sample);
            self.update_round(sample);
            self.update_max_bw(sample);
            self.update_marks(cx, sample);
            self.update_aggregation(cx, ack);
        }
        self.adapt_lower_bounds();
        if let Some(sample) = &sample {
            self.check_full_pipe(sample);
        }
        self.check_startup_done(cx, ack, sample.as_ref());
        self.check_drain_done(cx);
        if let Some(sample) = &sample {
            self.update_cycle(cx, ack, sample);
        }
        self.update_min_rtt(cx, ack, sample.as_ref());
        if let Some(sample) = sample.filter(|_| self.signals.round_start) {
            self.signals.restart(&sample);
        }
    }

    /// With samples of probe_rtt counted as limited by the application.
    fn limited(&self, sample: RateSample) -> RateSample {
        let app_limited = sample.app_limited || self.probe_rtt.limits(sample.prior_delivered);
        RateSample { app_limited, ..sample }
    }

    fn update_round(&mut self, sample: &RateSample) {
        if self.round.update(self.delivered, sample.prior_delivered) {
            self.probe.rounds_since = self.probe.rounds_since.saturating_add(1);
        }
    }

    fn update_aggregation(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if ack.acked == Bytes::ZERO {
            return;
        }
        if self.round.start {
            self.aggregation.next_round(if self.full_pipe.reached { WINDOW_ROUNDS } else { 1 });
        }
        let bandwidth = self.bw();
        let explained = |time| bandwidth.bytes_in(time);
        self.aggregation.on_ack(cx.now, ack.acked, explained, self.cwnd);
    }

    fn bw(&self) -> Rate {
        self.model.bw()
    }

    fn save_cwnd(&mut self) {
        let good = !self.recovery.repairs() && self.state != State::ProbeRtt;
        self.prior_cwnd = if good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Whether the window is to be restored when this state ends: what follows a timeout, and in version 3 every repair.
    fn lowers_window(&self, state: RecoveryState) -> bool {
        if self.version.is_2() { state == RecoveryState::Loss } else { state.repairs() }
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// `SaveStateUponLoss`.
    fn save_state(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.model.bw_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        };
    }
}

impl CongestionController for BoundedBbr {
    fn name(&self) -> &'static str {
        match self.version {
            Version::Two(_) => "bbr2",
            Version::Three(_) => "bbr3",
        }
    }

    fn needs(&self) -> Needs {
        let ecn = if self.uses_marks() { Ecn::Ect0 } else { Ecn::default() };
        Needs { rate_samples: true, own_reduction: true, pacing: true, ecn, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if self.min_rtt_at.is_none() {
            // The handshake's.
            self.min_rtt = cx.rtt.min;
            self.min_rtt_at = Some(cx.now);
            self.recent_min = RecentMin { rtt: self.min_rtt, at: self.min_rtt_at };
        }
        self.take_first_rtt(cx);
        if cx.bytes_in_flight > Bytes::ZERO || !cx.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(cx.now);
        if self.state.probes_bandwidth() {
            self.update_pacing_rate(cx, UNIT);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(cx);
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.cause == Cause::EcnEcho && !self.version.is_2() {
            return self.on_mark(cx);
        }
        if event.first_in_epoch {
            self.save_state();
        }
        if let Cause::Timeout { .. } = event.cause {
            if self.version.is_2() {
                self.on_timeout();
            }
            self.cwnd = cx.bytes_in_flight + cx.mss;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.delivered =
            ack.rate.map_or(self.delivered + ack.acked, |sample| sample.total_delivered);
        let before = std::mem::replace(&mut self.recovery, cx.state);
        if self.lowers_window(before) && !self.lowers_window(cx.state) {
            self.restore_cwnd();
        }
        if let Some(loss) = &ack.loss {
            self.on_loss(cx, loss);
        }
        self.update_model(cx, ack);
        self.update_pacing_rate(cx, self.pacing_gain());
        if ack.acked > Bytes::ZERO {
            self.update_cwnd(cx, ack.acked);
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.restore_cwnd();
        self.undo_losses();
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The transport takes a window below it for slow start, which is over when the pipe was full once.
    fn ssthresh(&self) -> Option<Bytes> {
        self.full_pipe.reached.then_some(self.cwnd)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::Down => "probe_bw_down",
            State::Cruise => "probe_bw_cruise",
            State::Refill => "probe_bw_refill",
            State::Up => "probe_bw_up",
            State::ProbeRtt => "probe_rtt",
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let extra = self.aggregation.window(Bytes::MAX);
        let model = &self.model;
        let mut found = vec![
            ("bw_mbps", self.bw().as_mbit_f64()),
            ("max_bw_mbps", model.max_bw().as_mbit_f64()),
            ("full_bw_mbps", self.full_pipe.bandwidth.as_mbit_f64()),
            ("extra_acked_bytes", extra.get() as f64),
            ("rounds", self.round.count as f64),
        ];
        let mbps = |rate: Rate| rate.as_mbit_f64();
        let bytes = |bytes: Bytes| bytes.get() as f64;
        found.extend(model.bw_shortterm.map(|rate| ("bw_shortterm_mbps", mbps(rate))));
        found.extend(model.inflight_shortterm.map(|own| ("inflight_shortterm_bytes", bytes(own))));
        found.extend(model.inflight_longterm.map(|own| ("inflight_longterm_bytes", bytes(own))));
        found.extend(model.bw_longterm.map(|rate| ("bw_longterm_mbps", mbps(rate))));
        found.extend(self.uses_marks().then(|| ("ecn_alpha", self.marks.alpha())));
        found.extend(self.min_rtt.map(|rtt| ("min_rtt_ms", rtt.as_millis_f64())));
        found
    }
}

impl Version {
    fn is_2(self) -> bool {
        matches!(self, Self::Two(_))
    }
}

impl State {
    /// Whether it takes losses for those of a probe, not for less capacity.
    fn probes_upwards(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// `IsInAProbeBWState`.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Gains and shares are in thousandths.
const UNIT: u64 = 1_000;
/// `LossThresh`.
const LOSS_THRESHOLD: u64 = 20;
/// `MinPipeCwnd`.
const LEAST_SEGMENTS: u64 = 4;
