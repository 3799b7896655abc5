//! `cdg`: CAIA delay gradient, which backs off at random, the likelier the steeper delays rise (Hayes and
//! Armitage, "Revisiting TCP congestion control using delay gradients", IFIP Networking 2011), as Linux
//! 6.1 has it (`tcp_cdg.c`).
//!
//! ```text
//! growth    as Reno
//! once per round trip, its smallest and its largest RTT against those of the round before:
//!   g_min, g_max = sums of the last 8 differences
//!   g            = g_min if it is positive, g_max otherwise; 8/n of it after the first n rounds
//!   g > 0:  backs off with probability 1 - exp(-g 42e-6 / us), but not after 5 times without effect:
//!           ssthresh = 724/1024 cwnd, metered as after a congestion mark
//!   g_min or g_max at -32 us or less:  backing off had an effect
//! loss      ssthresh = shadow, of which cwnd / 2 to cwnd count
//! shadow    the window that Reno would have, had it not backed off: at a back-off at least cwnd, then grows
//!           with cwnd; a loss halves it
//! ```
//!
//! Slow start ends by HyStart's two signs at any window: ACKs less than 3 ms apart for longer than
//! max(`min_rtt` / 2, 125 us), or a round's smallest RTT, after 8 samples, above `min_rtt` + max(1/8 `min_rtt`,
//! 125 us at least in all).
//!
//! Gradients are in microseconds and sums, not divided by the 8 rounds. The exponential is Linux's: a product
//! of tabulated powers in 32 bits.
//!
//! Randomness: the kernel's generator there, the connection's own stream here, one draw per round trip with a rising
//! delay. Deviations from the paper, which are Linux's: HyStart, PRR, no tolerance of losses without a rising delay.
//! Deviations from Linux: `ssthresh` is two segments at least where HyStart sets it, too; whether SACKed segments are
//! outstanding is inferred from bytes in flight.

use weir_units::{Bytes, Duration, Instant};

use crate::window::{AckClockedWindow, covered_segments, may_raise, whole_segments};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, PathEvent, RecoveryState,
    Variable,
};

/// CDG's window.
#[derive(Clone, Debug)]
pub struct Cdg {
    window: AckClockedWindow,
    shadow: Bytes,
    /// It has backed off, and this episode lasts.
    backing_off: bool,
    /// Not reported to the transport yet.
    asks: bool,
    state: RecoveryState,
    measured: Measured,
    train: Train,
    has_begun: bool,
}

/// What a restart after idle forgets.
#[derive(Clone, Debug)]
struct Measured {
    /// This round's RTTs.
    rtt: Extremes,
    previous: Extremes,
    gradients: Gradients,
    /// The round trip ends when `snd_una` passes it.
    round_end: u64,
    /// Acknowledgements of single segments to ignore, counted from those of several segments.
    delayed_acks: u8,
    /// Times that it backed off without effect.
    ineffective: u16,
    min_delay: i64,
}

/// Microseconds; RTTs of zero stand for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extremes {
    min: i64,
    max: i64,
}

/// The differences of the last rounds and their sums.
#[derive(Clone, Debug, Default)]
struct Gradients {
    ring: [Extremes; ROUNDS],
    sum: Extremes,
    tail: usize,
    filled: bool,
}

/// HyStart in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    start: Instant,
    last_ack: Option<Instant>,
    samples: u8,
}

impl Cdg {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            shadow: initial_window,
            backing_off: false,
            asks: false,
            state: RecoveryState::Open,
            measured: Measured::new(0),
            train: Train::default(),
            has_begun: false,
        }
    }

    /// Linux's `CA_EVENT_COMPLETE_CWR`: gradients leave out what the reduction did.
    fn follow(&mut self, cx: &CcContext<'_>) {
        let reducing = |state| matches!(state, RecoveryState::Cwr | RecoveryState::Recovery);
        if reducing(self.state) && !reducing(cx.state) && cx.state != RecoveryState::Loss {
            self.backing_off = false;
            self.measured.end_round(cx.snd_nxt);
        }
        self.state = cx.state;
    }

    /// `tcp_cdg_cong_avoid`.
    fn avoid_congestion(&mut self, cx: &mut CcContext<'_>, acked: Bytes) {
        if self.window.in_slow_start() {
            self.end_slow_start(cx);
        }
        let measured = &mut self.measured;
        if cx.snd_una > measured.round_end && measured.rtt.is_some() {
            let gradient = if measured.previous.is_some() { measured.gradient() } else { 0 };
            measured.end_round(cx.snd_nxt);
            self.train.last_ack = None;
            self.train.samples = 0;
            if gradient > 0 && self.backs_off(cx, gradient) {
                return;
            }
        }
        let before = self.window.cwnd;
        if cx.cwnd_limited {
            self.window.grow_as_reno(cx, acked);
            self.shadow += self.window.cwnd - before;
        } else {
            self.shadow = self.shadow.min(before);
        }
    }

    fn backs_off(&mut self, cx: &mut CcContext<'_>, gradient: i64) -> bool {
        let exponent = (gradient as u32).wrapping_mul(BACKOFF_FACTOR);
        if cx.rng.next_u32() <= negative_exponential(exponent) {
            return false;
        }
        self.measured.ineffective = self.measured.ineffective.saturating_add(1);
        if self.measured.ineffective > MOST_INEFFECTIVE {
            return false;
        }
        self.shadow = self.shadow.max(self.window.cwnd);
        self.backing_off = true;
        self.asks = true;
        true
    }

    /// `tcp_cdg_hystart_update`.
    fn end_slow_start(&mut self, cx: &CcContext<'_>) {
        let min = &mut self.measured.min_delay;
        *min = least_not_zero(*min, self.measured.rtt.min);
        let min = *min;
        if min == 0 {
            return;
        }
        let delayed = self.measured.rtt.min > (min + min / 8).max(SHORT_US);
        if self.train.is_long(cx, min) || self.train.counts_sample() && delayed {
            self.window.ssthresh = self.window.cwnd.max(cx.mss * 2);
        }
    }
}

impl CongestionController for Cdg {
    fn name(&self) -> &'static str {
        "cdg"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let (mss, backing_off, shadow) = (cx.mss, self.backing_off, &mut self.shadow);
        self.window.on_congestion(cx, event, |cwnd| {
            if backing_off {
                return cwnd.mul_ratio(BACKOFF, 1_024);
            }
            *shadow = whole_segments(*shadow / 2, mss).min(cwnd);
            (*shadow).max(cwnd / 2)
        });
        // The very next acknowledgement may end the episode.
        self.state = match event.cause {
            Cause::Timeout { .. } => RecoveryState::Loss,
            _ => RecoveryState::Cwr,
        };
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.asks = false;
        if let Some(rtt) = ack.rtt {
            // The time of the SYN belongs to the first round. As it has the shortest packets, it is the least.
            let syn = cx.rtt.min.filter(|least| !self.has_begun && *least < rtt);
            self.has_begun = true;
            if let Some(syn) = syn {
                self.measured.sample(syn.as_micros(), 1, false);
            }
            let segments = covered_segments(ack, cx.mss);
            self.measured.sample(rtt.as_micros(), segments, !ack.disordered);
        }
        if ack.brief_episode {
            self.state = RecoveryState::Cwr;
        }
        self.follow(cx);
        if may_raise(cx, ack) {
            self.avoid_congestion(cx, ack.acked);
        }
    }

    fn poll_episode(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        if let PathEvent::IdleRestart { .. } = event {
            self.measured = Measured::new(cx.snd_nxt);
            self.train = Train::default();
            self.backing_off = false;
            self.shadow = self.window.cwnd;
        }
        self.window.on_path(cx.mss, event);
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh()
    }

    fn phase(&self) -> &'static str {
        if self.backing_off { "backoff" } else { self.window.phase() }
    }

    fn variables(&self) -> Vec<Variable> {
        let gradients = self.measured.gradients.sum;
        let per_round = |sum: i64| sum as f64 / ROUNDS as f64;
        vec![
            ("min_gradient_us", per_round(gradients.min)),
            ("max_gradient_us", per_round(gradients.max)),
            ("ineffective_backoffs", f64::from(self.measured.ineffective)),
            ("shadow_window_bytes", self.shadow.get() as f64),
        ]
    }
}

impl Measured {
    fn new(round_end: u64) -> Self {
        Self {
            rtt: Extremes::default(),
            previous: Extremes::default(),
            gradients: Gradients::default(),
            round_end,
            delayed_acks: 0,
            ineffective: 0,
            min_delay: 0,
        }
    }

    fn end_round(&mut self, next_end: u64) {
        self.round_end = next_end;
        self.previous = std::mem::take(&mut self.rtt);
    }

    /// `tcp_cdg_acked`: an acknowledgement of one segment may be a delayed one, if others acknowledge
    /// several; then it counts for the minimum only.
    fn sample(&mut self, micros: u64, segments: u64, in_order: bool) {
        let rtt = micros.min(RTT_MAX) as i64;
        if rtt == 0 {
            return;
        }
        if in_order && segments == 1 && self.delayed_acks > 0 {
            self.rtt.min = self.rtt.min.min(rtt);
            self.delayed_acks -= 1;
            return;
        }
        if in_order && segments > 1 && self.delayed_acks < 5 {
            self.delayed_acks += 1;
        }
        self.rtt.min = least_not_zero(self.rtt.min, rtt);
        self.rtt.max = self.rtt.max.max(rtt);
    }

    /// `tcp_cdg_grad`.
    fn gradient(&mut self) -> i64 {
        let (now, before) = (self.rtt, self.previous);
        let newest = Extremes { min: now.min - before.min, max: now.max - before.max };
        let (sum, gradient) = self.gradients.add(newest);
        if sum.min <= -EFFECT_US || sum.max <= -EFFECT_US {
            self.ineffective = 0;
        }
        gradient
    }
}

impl Extremes {
    fn is_some(self) -> bool {
        self != Self::default()
    }
}

impl Gradients {
    /// The sums with the newest difference, and the gradient that they make.
    fn add(&mut self, newest: Extremes) -> (Extremes, i64) {
        let oldest = std::mem::replace(&mut self.ring[self.tail], newest);
        self.sum.min += newest.min - oldest.min;
        self.sum.max += newest.max - oldest.max;
        self.tail = (self.tail + 1) % ROUNDS;
        let gradient = if self.sum.min > 0 { self.sum.min } else { self.sum.max };
        self.filled |= self.tail == 0;
        let known = if self.filled { ROUNDS } else { self.tail };
        (self.sum, gradient * ROUNDS as i64 / known as i64)
    }
}

impl Train {
    fn is_long(&mut self, cx: &CcContext<'_>, min_delay: i64) -> bool {
        match self.last_ack {
            Some(last) if cx.cwnd_limited => {
                if cx.now.saturating_since(last) >= ACK_SPACING {
                    return false;
                }
                self.last_ack = Some(cx.now);
                let allowed = Duration::from_micros((min_delay / 2).max(SHORT_US) as u64);
                cx.now.saturating_since(self.start) > allowed
            }
            _ => {
                self.last_ack = Some(cx.now);
                self.start = cx.now;
                false
            }
        }
    }

    /// Whether there have been enough samples before this one.
    fn counts_sample(&mut self) -> bool {
        let enough = self.samples >= MIN_SAMPLES;
        self.samples = (self.samples + 1).min(MIN_SAMPLES);
        enough
    }
}

/// 2^32 exp(-x), x in millionths, as `nexp_u32` computes it: from the bits of x, the lowest eight at once.
fn negative_exponential(x: u32) -> u32 {
    let mut power = u64::from(u32::MAX - (x & 0xff) * (u32::MAX / 1_000_000));
    let bits = x >> 8;
    if bits > u32::from(u16::MAX) {
        return 0;
    }
    for (bit, factor) in POWERS.iter().enumerate() {
        if bits >> bit & 1 == 1 {
            power = (power * factor) >> 16;
        }
    }
    power as u32
}

fn least_not_zero(a: i64, b: i64) -> i64 {
    if a == 0 || b == 0 { a.max(b) } else { a.min(b) }
}

/// Rounds that gradients are summed over.
const ROUNDS: usize = 8;
/// In 1/1024: the square root of one half.
const BACKOFF: u64 = 724;
/// Millionths per microsecond of gradient.
const BACKOFF_FACTOR: u32 = 42;
const MOST_INEFFECTIVE: u16 = 5;
/// Microseconds.
const EFFECT_US: i64 = 32;
const SHORT_US: i64 = 125;
const RTT_MAX: u64 = i32::MAX as u64;
const ACK_SPACING: Duration = Duration::from_millis(3);
const MIN_SAMPLES: u8 = 8;
/// exp(-0.000256 2^i) in 1/65536, i from 0, as Linux rounds it.
const POWERS: [u64; 16] = [
    65_519, 65_502, 65_469, 65_402, 65_268, 65_002, 64_471, 63_423, 61_379, 57_485, 50_424, 38_796,
    22_966, 8_048, 988, 15,
];

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    #[test]
    fn the_time_of_the_syn_belongs_to_the_first_round() {
        let (mut rng, mut cdg) = (stream(1, "unused"), Cdg::new(Bytes(14_480)));
        let now = Instant::ZERO + Duration::from_millis(100);
        let mut cx = CcContext::new(now, Bytes(1_448), &mut rng);
        cx.rtt.min = Some(Duration::from_millis(40));
        for (rtt_ms, expected) in [(41, (40_000, 41_000)), (43, (40_000, 43_000))] {
            let rtt = Some(Duration::from_millis(rtt_ms));
            cdg.on_ack(&mut cx, &AckEvent { rtt, ..AckEvent::default() });
            let found = cdg.measured.rtt;
            assert_eq!((found.min, found.max), expected);
        }
    }

    /// `tcp_cdg_acked`: only `sacked_out` says that an acknowledgement may not have been delayed, not what is lost.
    #[test]
    fn what_is_lost_delays_no_acknowledgement() {
        for (disordered, delayed) in [(false, 1), (true, 0)] {
            let (mut rng, mut cdg) = (stream(1, "unused"), Cdg::new(Bytes(14_480)));
            let mut cx = CcContext::new(Instant::ZERO, Bytes(1_448), &mut rng);
            (cx.snd_una, cx.snd_nxt) = (2 * 1_448, 6 * 1_448);
            let rtt = Some(Duration::from_millis(40));
            let acked = Bytes(2 * 1_448);
            let ack = AckEvent { rtt, acked, cum_acked: acked, disordered, ..AckEvent::default() };
            cdg.on_ack(&mut cx, &ack);
            assert_eq!(cdg.measured.delayed_acks, delayed);
        }
    }

    /// With nothing outstanding when it backs off, the next acknowledgement is already above what ended the episode,
    /// so no acknowledgement sees it. The loss after it halves the shadow (`CA_EVENT_COMPLETE_CWR`).
    #[test]
    fn an_episode_may_end_before_an_acknowledgement_sees_it() {
        let (mut rng, mut cdg) = (stream(1, "unused"), Cdg::new(Bytes(3 * 1_448)));
        let mut cx = CcContext::new(Instant::ZERO, Bytes(1_448), &mut rng);
        let none = Bytes::ZERO;
        let event = |cause| CongestionEvent {
            cause,
            first_in_epoch: true,
            lost: none,
            prior_in_flight: none,
        };
        cdg.shadow = Bytes(6 * 1_448);
        cdg.backing_off = true;
        cdg.on_congestion(&mut cx, &event(Cause::Delay));
        assert_eq!((cdg.window.cwnd, cdg.shadow), (Bytes(2 * 1_448), Bytes(6 * 1_448)));
        cdg.on_ack(&mut cx, &AckEvent::default());
        cdg.window.cwnd = Bytes(4 * 1_448);
        cdg.on_congestion(&mut cx, &event(Cause::FastRetransmit));
        assert_eq!((cdg.window.cwnd, cdg.shadow), (Bytes(3 * 1_448), Bytes(3 * 1_448)));
    }

    #[test]
    fn the_exponential_is_one() {
        let mut looked = 0;
        for x in (0..14_000_000).step_by(1_117) {
            let exact = libm::exp(-f64::from(x) * 1e-6);
            let ours = f64::from(negative_exponential(x)) / 4_294_967_296.0;
            // Each of 16 factors is rounded to 1/65536, the lowest bits to 1/233.
            assert!((ours - exact).abs() < 3e-4, "{x}: {ours}, not {exact}");
            looked += 1;
        }
        assert!(looked > 10_000);
        assert_eq!(negative_exponential(1 << 24), 0);
    }

    #[test]
    fn gradients_are_sums_over_eight_rounds_extrapolated_before() {
        let mut gradients = Gradients::default();
        for round in 1..=20 {
            let (sum, gradient) = gradients.add(Extremes { min: 100, max: 50 });
            assert_eq!(sum.min, 100 * round.min(8));
            assert_eq!(gradient, 800);
        }
        for _ in 0..8 {
            gradients.add(Extremes { min: -100, max: 50 });
        }
        let (sum, gradient) = gradients.add(Extremes { min: 0, max: 50 });
        assert_eq!((sum.min, gradient), (-700, 400));
    }
}
