//! `prague`: the Prague congestion control (draft-briscoe-iccrg-prague-congestion-control-04; Linux's
//! `tcp_prague.c` of L4STeam): DCTCP for the Internet, for queues that mark ECT(1) early and often
//! (RFC 9331).
//!
//! ```text
//! once per max(RTT, RTT_virt), from the first mark on:
//!   F     = bytes acknowledged with an echo / bytes acknowledged,  alpha += (F - alpha) / 16
//! mark, once per max(RTT, RTT_virt)   cwnd -= cwnd alpha / 2,  ssthresh = cwnd
//! loss                                ssthresh = cwnd = cwnd / 2, as Reno, and no growth while it is repaired
//! growth, per unmarked byte           1 below ssthresh, then mss / cwnd (RTT / RTT_virt)^2
//! pacing                              cwnd / srtt, twice that below ssthresh / 2
//! ```
//!
//! `RTT_virt` is 25 ms, so that flows of shorter round trips take no more than one of that length; it counts
//! after 500 rounds outside slow start (draft §2.4.4). Marks do not stop growth: an acknowledgement of unmarked
//! bytes grows the window during an episode too. The window keeps its fractions of a segment, so that the
//! smallest `alpha` tells. `alpha` starts at 1, which halves the window at the first mark.
//!
//! The receiver must echo marks exactly, which the transport sees to. Without ECN no echo ever arrives, and
//! this is Reno, paced. A queue that marks like RFC 3168 is not recognised, as in Linux by default.
//!
//! Deviations from Linux: `alpha` counts bytes, not segments; the window moves to where it should be at once,
//! not by a segment per acknowledgement; an episode that a mark began halves the window at its first loss.
//!
//! Parameter: `rtt`, what `RTT_virt` is, 25 ms; 0 leaves the round trip as it is.

use weir_units::{Bytes, Duration, Ecn, Instant, Rate};

use crate::window::{AckClockedWindow, ack_clocked_window, whole_segments};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, RecoveryState,
    Variable,
};

/// Prague's window.
#[derive(Clone, Debug)]
pub struct Prague {
    window: AckClockedWindow,
    virtual_rtt: Duration,
    /// In 1/16 of 1/2^20.
    alpha: u64,
    /// A mark was echoed: some queue on the path knows ECN.
    has_seen_mark: bool,
    round: Round,
    /// Rounds outside slow start.
    rounds: u32,
    alpha_at: Instant,
    reduced_at: Option<Instant>,
    /// Growth of less than a byte.
    credit: u128,
    srtt: Option<Duration>,
    delivered_marked: Bytes,
    /// After a loss, until it is repaired.
    repairing: bool,
}

/// Where the round being observed ends, and the totals at its start.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    delivered: Bytes,
    marked: Bytes,
}

impl Prague {
    /// Starts with `initial_window`; flows of round trips shorter than `virtual_rtt` behave as if theirs were
    /// that long.
    pub fn new(initial_window: Bytes, virtual_rtt: Duration) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            virtual_rtt,
            alpha: ONE << GAIN_SHIFT,
            has_seen_mark: false,
            round: Round::default(),
            rounds: 0,
            alpha_at: Instant::ZERO,
            reduced_at: None,
            credit: 0,
            srtt: None,
            delivered_marked: Bytes::ZERO,
            repairing: false,
        }
    }

    /// Whether the round trip is stretched to `RTT_virt`.
    fn is_independent(&self) -> bool {
        self.rounds >= TRANSITION_ROUNDS && !self.window.in_slow_start()
    }

    /// Whether at least `RTT_virt` has passed since `then`, so that a flow with that RTT would act again.
    fn may_act(&self, now: Instant, then: Instant) -> bool {
        !self.is_independent() || now.saturating_since(then) >= self.virtual_rtt
    }

    /// Ends the round, and takes its share of marks into `alpha`.
    fn update_alpha(&mut self, cx: &CcContext<'_>) {
        if cx.snd_una < self.round.end || !self.may_act(cx.now, self.alpha_at) {
            return;
        }
        if self.has_seen_mark {
            let delivered = (cx.delivered - self.round.delivered).get().max(1);
            let marked = (cx.delivered_marked - self.round.marked).get();
            let share = (u128::from(marked) * u128::from(ONE) / u128::from(delivered)) as u64;
            self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + share.min(ONE);
        }
        self.alpha_at = cx.now;
        self.rounds = self.rounds.saturating_add(u32::from(!self.window.in_slow_start()));
        self.round =
            Round { end: cx.snd_nxt, delivered: cx.delivered, marked: cx.delivered_marked };
    }

    /// The first mark of an episode.
    fn on_mark(&mut self, cx: &CcContext<'_>) {
        self.has_seen_mark = true;
        if self.reduced_at.is_some_and(|at| !self.may_act(cx.now, at)) {
            return;
        }
        self.reduced_at = Some(cx.now);
        let reduction = self.window.cwnd.mul_ratio(self.alpha >> GAIN_SHIFT, 2 * ONE);
        self.window.cwnd = self.window.cwnd.saturating_sub(reduction).max(cx.mss * 2);
        self.window.ssthresh = self.window.cwnd;
        // A mark is never taken back: the router did see a queue.
        self.window.keep();
    }

    fn on_loss(&mut self, cx: &CcContext<'_>, event: &CongestionEvent) {
        self.repairing = true;
        if cx.state == RecoveryState::Cwr && event.cause == Cause::FastRetransmit {
            self.window.cwnd = whole_segments(self.window.cwnd / 2, cx.mss).max(cx.mss * 2);
            self.window.ssthresh = self.window.cwnd;
        } else {
            self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
        }
    }

    fn grow(&mut self, cx: &CcContext<'_>, unmarked: Bytes) {
        let unmarked = self.window.slow_start(unmarked);
        let rtt = self.srtt.unwrap_or_default();
        let virtual_rtt = if self.is_independent() { rtt.max(self.virtual_rtt) } else { rtt };
        // Squares of microseconds, of an hour at most: the products below stay in range.
        let square =
            |time: Duration| u128::from(time.as_micros().clamp(1, u64::from(u32::MAX))).pow(2);
        let per = u128::from(self.window.cwnd.get().max(1)) * square(virtual_rtt);
        self.credit += u128::from(unmarked.get()) * u128::from(cx.mss.get()) * square(rtt);
        let growth = u64::try_from(self.credit / per).unwrap_or(u64::MAX);
        self.credit %= per;
        self.window.cwnd += Bytes(growth);
    }
}

impl CongestionController for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn needs(&self) -> Needs {
        Needs { ecn: Ecn::Ect1, own_reduction: true, pacing: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        match event.cause {
            Cause::EcnEcho => self.on_mark(cx),
            Cause::FastRetransmit | Cause::Timeout { .. } | Cause::Delay => self.on_loss(cx, event),
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.srtt = cx.rtt.srtt;
        let marked = cx.delivered_marked.saturating_sub(self.delivered_marked);
        self.delivered_marked = cx.delivered_marked;
        self.repairing &= cx.state != RecoveryState::Open;
        let repairing = self.repairing && cx.state != RecoveryState::Loss;
        if cx.cwnd_limited && !repairing {
            self.grow(cx, ack.acked.saturating_sub(marked));
        }
        self.update_alpha(cx);
    }

    ack_clocked_window!(on_spurious, phase);

    fn pacing_rate(&self) -> Option<Rate> {
        let srtt = self.srtt?.max(Duration::from_micros(1));
        let doubled = self.window.cwnd < self.window.ssthresh / 2;
        let window = self.window.cwnd * if doubled { 2 } else { 1 };
        Rate::from_transfer(window, srtt).map(|rate| rate.max(LEAST_RATE))
    }

    fn variables(&self) -> Vec<Variable> {
        vec![("alpha", self.alpha as f64 / (ONE << GAIN_SHIFT) as f64)]
    }
}

/// `alpha` of one.
const ONE: u64 = 1 << 20;
/// The gain is `1 / 2^4`.
const GAIN_SHIFT: u32 = 4;
const TRANSITION_ROUNDS: u32 = 500;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);
