//! The sending half: what may leave, what an acknowledgement means, what a timer means.
//!
//! It joins the four pieces of a stack: the recovery scheme marks losses in the scoreboard, the epoch
//! turns them into episodes, the controller sets the window, the pacer spaces what leaves.

mod ack;
mod buffer;
mod burst;
mod follow;
mod report;
mod route;
mod silence;
mod stream;
mod timer;
mod transmit;

use weir_cc::host::{Pacer, RateSampler};
use weir_cc::{CcContext, CongestionController, Fixed, Needs, RecoveryState};
use weir_units::feedback::Drai;
use weir_units::feedback::Telemetry;
use weir_units::{Bytes, Duration, Echo, Ecn, Feedback, FeedbackKind, Instant, Rate, Rng};

pub(crate) use self::ack::IncomingAck;
pub(crate) use self::buffer::segment_memory;
pub(crate) use self::transmit::{Kind, OutgoingRange};
use crate::recovery::{Epoch, LossRecovery, Profile, RecoveryCx};
use crate::rtt::{RttConfig, RttEstimator, RttVariation};
use crate::scoreboard::Scoreboard;
use crate::stats::{LimitClock, Stats};
use crate::window_limit::{INDEX_LEVELS, LimitInForce};
use crate::{Config, HostProfile, LimitingEnd, RecoveryConfig, WindowLimit};

/// The sending half of a connection. Positions are stream offsets; a FIN is one byte after the last.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    mss: u64,
    /// What it is where the peer's window holds two.
    full_mss: u64,
    board: Scoreboard,
    /// RACK's timer has found losses, and nothing is paced: only these leave until an acknowledgement arrives, or the
    /// application writes (Linux's `tcp_rack_reo_timeout`).
    only_repairs: bool,
    recovery: Box<dyn LossRecovery>,
    profile: Profile,
    epoch: Epoch,
    controller: Box<dyn CongestionController>,
    needs: Needs,
    /// Packets ask the routers for indices that the receiver sets its window by, not the controller.
    asks_for_receiver: bool,
    rng: Rng,
    rtt: RttEstimator,
    sampler: RateSampler,
    pacer: Pacer,
    pacing: Pacing,
    bursts: burst::Bursts,
    clock: LimitClock,
    /// Bytes that the application has made available, as far as they fit the buffer.
    written: u64,
    /// The application will write no more.
    finishing: bool,
    /// Where what was written waits, if that is bounded.
    buffer: Option<buffer::SendBuffer>,
    /// The first offset that the peer's window does not permit.
    window_edge: u64,
    /// The largest window that the peer has offered, and the newest.
    max_window: u64,
    window: u64,
    sack: bool,
    ecn: bool,
    /// The next new data segment carries CWR (RFC 3168 §6.1.2).
    cwr_pending: bool,
    /// Bytes delivered by acknowledgements that echoed a mark.
    delivered_marked: u64,
    /// What the acknowledgement at hand returns of the routers' feedback.
    feedback: Option<Echo>,
    usage: CwndUsage,
    round: Round,
    timers: timer::Timers,
    probe_due: bool,
    /// Number of segments that a timeout sends, regardless of window and pacer.
    timeout_segments: u8,
    /// The same of segments that left with a SYN, and that the peer did not take.
    early_repairs: u8,
    limited_transmit: bool,
    /// Segments reported to have arrived twice.
    dsacks: u64,
    /// The largest distance in bytes by which a segment has come late (Linux's `reordering`).
    reordering: u64,
    nagle: bool,
    /// The end of the newest segment that was not full.
    small_until: u64,
    cwnd_validation: bool,
    slow_start_after_idle: bool,
    min_rto: Duration,
    host_profile: HostProfile,
    last_sent_at: Instant,
    /// What a silent path may have held.
    held: silence::Held,
    route: Option<route::Route>,
    /// The limit in addition to the peer's window.
    window_limit: LimitInForce,
}

/// How far the window has been used of late (RFC 7661's question, Linux's `tcp_cwnd_validate`).
#[derive(Clone, Debug, Default)]
struct CwndUsage {
    /// New data has left since this was last looked at.
    sent: bool,
    limited: bool,
    /// The most that was outstanding in the current round, counted in whole segments.
    max_outstanding: u64,
    /// Where the stream ended when that was noted.
    until: u64,
}

/// What the configuration adds to the controller's pacing rate.
#[derive(Clone, Debug)]
struct Pacing {
    most: Option<Rate>,
    /// How much of the stream's beginning is spread over a round trip.
    first_flight: Bytes,
    /// How many segments leave before any are paced.
    unpaced: u64,
    /// Pace by the window where the controller sets no rate.
    window: bool,
    /// The most to make up for once a segment was lost.
    catch_up_after_loss: Option<Duration>,
    /// The controller to go back to if some of a quick start is lost.
    usual: Option<Box<dyn CongestionController>>,
}

/// Round trips counted by sequence: one ends when what was sent at its start is acknowledged.
#[derive(Clone, Debug, Default)]
struct Round {
    count: u64,
    end: u64,
}

impl Sender {
    /// A sender whose window is `controller`'s.
    pub(crate) fn new(
        config: &Config,
        controller: Box<dyn CongestionController>,
        rng: Rng,
    ) -> Self {
        let recovery = config.stack.recovery.build();
        let mss = Bytes(u64::from(config.mss));
        let initial = config.initial_window();
        let mut needs = controller.needs();
        let asks_for_receiver =
            config.window_limit == Some(WindowLimit::Indices) && needs.feedback.is_none();
        if asks_for_receiver {
            needs.feedback = Some(FeedbackKind::Drai);
        }
        Self {
            mss: mss.get(),
            full_mss: mss.get(),
            board: Scoreboard::default(),
            only_repairs: false,
            profile: recovery.profile(),
            recovery,
            epoch: Epoch::new(),
            needs,
            asks_for_receiver,
            controller,
            rng,
            rtt: RttEstimator::new(rtt_config(config)),
            sampler: RateSampler::default(),
            pacer: Pacer::new(config.pacing_catch_up),
            pacing: Pacing {
                most: config.max_pacing_rate,
                first_flight: if config.pace_initial_window { initial } else { Bytes::ZERO },
                unpaced: unpaced_segments(config),
                window: config.pace_window,
                catch_up_after_loss: config.pacing_catch_up_after_loss,
                usual: None,
            },
            bursts: burst::Bursts::new(config.gso),
            clock: LimitClock::default(),
            written: 0,
            finishing: false,
            buffer: config.send_buffer.map(|size| {
                let most = config.max_send_buffer.unwrap_or(size);
                buffer::SendBuffer::new(size, most, config.send_overhead, mss.get())
            }),
            window_edge: 0,
            max_window: 0,
            window: 0,
            sack: config.sack,
            ecn: false,
            cwr_pending: false,
            delivered_marked: 0,
            feedback: None,
            usage: CwndUsage::default(),
            round: Round::default(),
            timers: timer::Timers::new(config.fires_on_ticks()),
            probe_due: false,
            timeout_segments: 0,
            early_repairs: 0,
            limited_transmit: config.limited_transmit,
            reordering: 0,
            dsacks: 0,
            nagle: config.nagle,
            small_until: 0,
            cwnd_validation: config.cwnd_validation,
            slow_start_after_idle: config.slow_start_after_idle,
            min_rto: config.min_rto,
            host_profile: config.host_profile,
            last_sent_at: Instant::ZERO,
            held: silence::Held::default(),
            route: route::Route::new(config.route_policy),
            window_limit: LimitInForce::new(config.window_limit, LimitingEnd::Sender),
        }
    }

    /// The handshake is done: what was agreed upon and the peer's first window.
    pub(crate) fn establish(&mut self, now: Instant, terms: &Terms, stats: &mut Stats) {
        self.sack = terms.sack;
        self.ecn = terms.ecn;
        if !terms.sack {
            self.recovery = terms.recovery.build_without_sack();
            self.profile = self.recovery.profile();
        }
        self.full_mss = self.full_mss.min(u64::from(terms.mss));
        self.window_edge = terms.window;
        self.window = terms.window;
        self.on_larger_window(now, terms.window);
        self.fill_buffer();
        self.clock.set(now, crate::stats::Limit::Application, stats);
    }

    /// The peer offers a larger window than ever. Segments are no longer than half of the largest: two are
    /// acknowledged at once, one after a delay (Linux's `tcp_bound_to_half_wnd`).
    pub(super) fn on_larger_window(&mut self, now: Instant, window: u64) {
        self.max_window = window;
        let most = match window {
            0 => self.full_mss,
            1..=DEFAULT_MSS => window,
            _ => window / 2,
        };
        let mss = self.full_mss.min(most.max(LEAST_SEGMENT));
        if self.host_profile == HostProfile::Kernel && self.profile.prr.is_some() {
            self.board.count_segments_as(mss);
        }
        if mss != self.mss {
            self.mss = mss;
            let event = weir_cc::PathEvent::MssChanged(Bytes(mss));
            self.with_controller(now, |controller, cx| controller.on_path(cx, &event));
            if let Some(buffer) = &mut self.buffer {
                buffer.set_mss(mss);
            }
        }
    }

    /// An RTT measured on the handshake.
    pub(crate) fn on_handshake_rtt(&mut self, now: Instant, sample: Duration) {
        self.rtt.on_sample(now, sample, self.outstanding());
    }

    /// Whether any data has left.
    #[inline]
    pub(crate) fn has_sent(&self) -> bool {
        self.board.nxt() > 0
    }

    /// The smoothed round trip and the timeout.
    pub(crate) fn measured(&self) -> Option<(Duration, Duration)> {
        Some((self.rtt.srtt()?, self.rtt.base_rto()))
    }

    /// The routers let the connection start with `window`, spread over a round trip. It stands if it is
    /// more than the usual.
    pub(crate) fn start_with(&mut self, config: &Config, window: Bytes) {
        if window > self.controller.cwnd()
            && let Ok(started) = config.stack.controller.build(Bytes(self.mss), window)
        {
            self.pacing.usual = Some(std::mem::replace(&mut self.controller, started));
            self.pacing.first_flight = window;
        }
    }

    /// The peer takes segments of at most `mss`: the first window is as many of them (RFC 6928 §2).
    pub(crate) fn start_with_segments(&mut self, config: &Config, mss: u32) {
        let mss = Bytes(u64::from(mss));
        let window = mss * u64::from(config.initial_window);
        if let Ok(controller) = config.stack.controller.build(mss, window) {
            self.controller = controller;
        }
    }

    /// A loss has shown. If some of a quick start is among what was lost, the connection is as if there had
    /// been none, and this returns that it has reduced.
    fn leave_quick_start(&mut self) -> bool {
        let within = self.board.una() < self.pacing.first_flight.get();
        let usual = self.pacing.usual.take().filter(|_| within);
        usual.map(|controller| self.controller = controller).is_some()
    }

    /// What routers had to say of the handshake.
    pub(crate) fn on_handshake_feedback(&mut self, now: Instant, echo: Echo) {
        self.feedback = Some(echo);
        let ack = weir_cc::AckEvent::default();
        self.with_controller(now, |controller, cx| controller.on_ack(cx, &ack));
        self.feedback = None;
    }

    /// Records of hops came back.
    pub(crate) fn on_telemetry(&mut self, records: &Telemetry) {
        self.controller.on_telemetry(records);
    }

    pub(crate) fn rtt_mut(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    /// Whether the controller lives on congestion marks.
    pub(crate) fn needs_ecn(&self) -> bool {
        self.needs.ecn != Ecn::NotEct
    }

    /// The ECN field that the controller asks for.
    pub(crate) fn needed_ecn(&self) -> Ecn {
        self.needs.ecn
    }

    /// Whether the controller asks routers.
    pub(crate) fn needs_feedback(&self) -> bool {
        self.needs.feedback.is_some()
    }

    /// What the next data packet is to carry past the routers, if the controller or the receiver asks them.
    pub(crate) fn request(&mut self, now: Instant) -> Option<Feedback> {
        self.needs.feedback?;
        if self.asks_for_receiver {
            return Some(Feedback::Drai(Drai { level: INDEX_LEVELS, hops: 0 }));
        }
        self.with_controller(now, |controller, cx| controller.request(cx))
    }

    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// Whether nothing is in flight, this acknowledgement and window are those of before, and the controller
    /// need not hear of it. In Linux it does where nothing is charged to the socket: there is no memory at
    /// hand then, and `tcp_rcv_established` takes its slow path.
    pub(crate) fn knows(&self, ack: u64, window: u64) -> bool {
        let idle = self.board.is_empty() && !self.timers.is_persisting();
        let tells = self.needs.every_ack && self.board.una() > 0;
        idle && !tells
            && self.epoch.state() == RecoveryState::Open
            && ack == self.board.una()
            && window == self.window
    }

    /// The largest window that the peer has offered.
    pub(crate) fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The window in force, or what is smaller: the recovery scheme's, the window limit. The peer's is no
    /// congestion window, and is reported only where there is no other.
    fn reported_window(&self) -> Bytes {
        let scheme =
            self.profile.window.map_or(u64::MAX, |segments| u64::from(segments) * self.mss);
        let limit = self.window_limit.bytes(self.mss).unwrap_or(u64::MAX);
        let cwnd = self.cwnd().get().min(scheme).min(limit);
        if cwnd < Fixed::UNBOUNDED.get() {
            return Bytes(cwnd);
        }
        Bytes(cwnd.min(self.allowed_window().unwrap_or(u64::MAX)))
    }

    /// The smaller of the largest window that the peer has offered and the configured limit, in bytes.
    fn allowed_window(&self) -> Option<u64> {
        let peer = (self.max_window > 0).then_some(self.max_window);
        match (peer, self.window_limit.bytes(self.mss)) {
            (Some(peer), Some(limit)) => Some(peer.min(limit)),
            (peer, limit) => peer.or(limit),
        }
    }

    /// The window in force.
    pub(crate) fn cwnd(&self) -> Bytes {
        self.epoch.prr_window().unwrap_or_else(|| self.controller.cwnd())
    }

    /// The rate at which segments leave: the controller's, that of a first flight or of the window,
    /// within what is allowed.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let own = self.controller.pacing_rate().or_else(|| self.first_flight_rate());
        let rate = own.or_else(|| if self.pacing.window { self.window_rate() } else { None });
        match (rate, self.pacing.most) {
            (Some(rate), Some(most)) => Some(rate.min(most)),
            (rate, most) => rate.or(most),
        }
    }

    fn first_flight_rate(&self) -> Option<Rate> {
        if self.board.nxt() >= self.pacing.first_flight.get() {
            return None;
        }
        Rate::from_transfer(self.pacing.first_flight, self.rtt.srtt()?)
    }

    fn recovery_cx(&self, now: Instant) -> RecoveryCx {
        RecoveryCx {
            now,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            base_rto: self.timers.in_force(self.rtt.base_rto()),
            min_rto: self.min_rto,
            mss: self.mss,
            state: self.epoch.state(),
            high: self.epoch.high(),
            rto_deadline: self.timers.rto_deadline(now, &self.rtt),
            new_data: self.sendable() > 0,
            sack: self.sack,
            host_profile: self.host_profile,
        }
    }

    /// Calls the controller with the connection as it stands.
    fn with_controller<T>(
        &mut self,
        now: Instant,
        call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>) -> T,
    ) -> T {
        let peer_window = Bytes(self.allowed_window().unwrap_or_default());
        let mut cx = CcContext {
            now,
            mss: Bytes(self.mss),
            rtt: self.rtt.snapshot(),
            bytes_in_flight: self.board.in_flight(),
            snd_una: self.board.una(),
            snd_nxt: self.board.nxt(),
            delivered: self.sampler.delivered(),
            delivered_marked: Bytes(self.delivered_marked),
            next_departure: self.pacer.next_departure(),
            paced: self.pacing.window || self.pacing.most.is_some(),
            app_limited: self.sampler.is_app_limited(),
            cwnd_limited: self.is_cwnd_limited(),
            peer_window,
            feedback: self.feedback,
            state: self.epoch.reported_state(),
            rng: &mut self.rng,
        };
        call(self.controller.as_mut(), &mut cx)
    }

    /// In slow start the window may double what was used of it; afterwards it must have been full.
    fn is_cwnd_limited(&self) -> bool {
        if self.usage.limited || !self.cwnd_validation {
            return true;
        }
        let slow_start = self.controller.ssthresh().is_none_or(|s| self.controller.cwnd() < s);
        slow_start && self.controller.cwnd().get() < 2 * self.usage.max_outstanding
    }

    fn outstanding(&self) -> crate::rtt::Outstanding {
        crate::rtt::Outstanding { snd_una: self.board.una(), snd_nxt: self.board.nxt() }
    }

    /// An episode begins: how many copies are on their way, that of a probe included.
    fn copies_out(&mut self) -> u32 {
        let resent = self.board.resent().div_ceil(self.mss) as u32;
        resent.saturating_add(u32::from(self.recovery.end_probe()))
    }

    fn in_loss(&self) -> bool {
        self.epoch.state() == RecoveryState::Loss
    }
}

/// What the handshake agreed upon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) mss: u32,
    /// The configured scheme.
    pub(crate) recovery: RecoveryConfig,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
    /// The peer's window in bytes.
    pub(crate) window: u64,
}

/// The initial window leaves unpaced, of a larger one what Linux's constant says (`data_segs_out >=
/// TCP_INIT_CWND`), or with the user-space profile, all of it, unless it is paced or a rate is
/// requested.
fn unpaced_segments(config: &Config) -> u64 {
    const TCP_INIT_CWND: u32 = 10;
    let free = !config.pace_initial_window && config.max_pacing_rate.is_none();
    let whole = free && config.host_profile == HostProfile::UserSpace;
    let window = if whole { config.initial_window } else { 0 };
    u64::from(window.max(TCP_INIT_CWND))
}

fn rtt_config(config: &Config) -> RttConfig {
    let linux = matches!(config.stack.recovery, RecoveryConfig::Rack(_));
    let user_space = config.host_profile == HostProfile::UserSpace;
    RttConfig {
        variation: if linux { RttVariation::Linux } else { RttVariation::Rfc6298 },
        min_rto: config.min_rto,
        max_rto: config.max_rto,
        max_doublings: if user_space { MAX_DOUBLINGS } else { u32::MAX },
        longest_backoff: if user_space { LONGEST_BACKOFF } else { Duration::MAX },
        initial_rto: config.initial_rto,
        fixed_rto: config.fixed_rto,
    }
}

/// RFC 9293 §3.7.1: how long segments may be that no host has to refuse.
const DEFAULT_MSS: u64 = 536;
/// However small the peer's window (Linux's 68 bytes with a header).
const LEAST_SEGMENT: u64 = 48;

/// How many times the timeout doubles in the user-space profile ([`HostProfile::UserSpace`]).
const MAX_DOUBLINGS: u32 = 5;
/// And up to which time, there: when a path returns after an outage, it is used within a second. picoquic has two.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_first_window_is_paced_where_that_is_asked_for_or_a_kernel_would() {
        let large =
            Config { initial_window: 92, pace_initial_window: false, ..Config::for_datagrams() };
        let paced = Config { pace_initial_window: true, ..large.clone() };
        let slow = Config { max_pacing_rate: Some(Rate::from_mbit(1)), ..large.clone() };
        let kernel = Config { host_profile: HostProfile::Kernel, ..large.clone() };
        let small = Config { initial_window: 4, ..large.clone() };
        let unpaced = [large, paced, slow, kernel, small].map(|config| unpaced_segments(&config));
        assert_eq!(unpaced, [92, 10, 10, 10, 10]);
    }
}
