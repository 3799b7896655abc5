//! `swift`: Swift (Kumar et al., "Swift: delay is simple and effective for congestion control in the datacenter",
//! SIGCOMM 2020), a window that keeps the round trip at a target.
//!
//! ```text
//! target(w) = base + hops * hop + fs(w)            w: the window in packets
//! fs(w)     = range * (1/sqrt(w) - 1/sqrt(100)) / (1/sqrt(0.1) - 1/sqrt(100)), within 0 and range = 5 base
//! acknowledgement, RTT < target     w += ai acked / w, or ai acked where w < 1
//!                  otherwise        w *= max(1 - beta (RTT - target) / RTT, 1 - max_mdf), once per round trip
//! loss, timeout                     w *= 1 - max_mdf, once per round trip; the fifth timeout in a row: w = 0.01
//! pacing                            where w < 1, a packet every RTT / w
//! ```
//!
//! The scaling `fs` lets many flows, whose windows are small, have a longer queue than few. `base` has the round trip
//! of the path in it: over a longer path the window falls to its smallest.
//!
//! Values: `beta`, `max_mdf` and `ai` are those of htsim (`swift.cpp`), whose authors mark them as guesses, and so are
//! the bounds of `fs` (0.1 and 100 packets, range 5 base) and the five timeouts. The paper prints its base target
//! and the time of a hop only in figures: 25 us and 1 us are ours.
//!
//! Deviations: one window for fabric and host, because simulated hosts add no delay of their own. The number of
//! hops is a parameter; the paper reads it from IP's TTL. The smallest window is 0.01 packets (the paper's is 0.001,
//! htsim's 10 bytes). A window that the sender does not use does not grow. Marks count as losses.
//!
//! The receiver's delay of acknowledgements counts as delay: where windows are small, turn `delayed_ack` off.
//!
//! Parameters: `base`, 25 us; `hops`, 0; `hop`, 1 us; `beta`, 0.8; `max_mdf`, 0.5; `ai`, 1 packet.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::paced::{mul_div, per_round_trip};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Needs, Variable,
};

/// The parameters of Swift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwiftTarget {
    /// The target of a path without hops, its round trip included.
    pub base: Duration,
    /// The hops of the path.
    pub hops: u64,
    /// What each hop adds.
    pub hop: Duration,
    /// The weight of an excess of delay.
    pub beta: Decimal,
    /// The largest share that a reduction takes.
    pub max_mdf: Decimal,
    /// Packets that a round trip adds.
    pub ai: Decimal,
}

/// Swift's window.
#[derive(Clone, Debug)]
pub struct Swift {
    target: SwiftTarget,
    mss: Bytes,
    /// In 1/1024 bytes; below a segment too.
    window: u64,
    decreased_at: Option<Instant>,
    srtt: Duration,
    /// The window before the last loss, to return to if it proves unfounded.
    checkpoint: Option<u64>,
}

impl SwiftTarget {
    /// 25 us, 0.8, 0.5, 1.
    pub const DEFAULT: Self = Self {
        base: Duration::from_micros(25),
        hops: 0,
        hop: Duration::from_micros(1),
        beta: Decimal::FOUR_FIFTHS,
        max_mdf: Decimal::HALF,
        ai: Decimal::ONE,
    };

    /// The delay that a window of this many millionths of a packet may have.
    fn of(&self, millionths: u64) -> Duration {
        let inverse = inverse_root(millionths).clamp(INVERSE_LEAST, INVERSE_MOST) - INVERSE_LEAST;
        let range = self.base.saturating_mul(RANGE);
        let scaling = range.mul_ratio(inverse, INVERSE_MOST - INVERSE_LEAST);
        self.base + self.hop.saturating_mul(self.hops) + scaling
    }
}

impl Swift {
    /// Starts with `initial_window` for segments of `mss`.
    pub fn new(mss: Bytes, initial_window: Bytes, target: SwiftTarget) -> Self {
        Self {
            target,
            mss,
            window: initial_window.get().saturating_mul(UNIT),
            decreased_at: None,
            srtt: Duration::ZERO,
            checkpoint: None,
        }
    }

    fn set(&mut self, window: u64, peer: Bytes) {
        let segment = self.mss.get().saturating_mul(UNIT);
        let most = peer.get().saturating_mul(UNIT).clamp(segment, MOST_WINDOW);
        self.window = window.clamp((segment / LEAST_SHARE).max(1), most);
    }

    /// The window in millionths of a packet.
    fn millionths(&self) -> u64 {
        mul_div(self.window, MILLION, self.mss.get().max(1) * UNIT)
    }

    fn grow(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let segment = self.mss.get().saturating_mul(UNIT);
        let packets = mul_div(acked.get() * UNIT, self.target.ai.thousandths().into(), 1_000);
        let step = mul_div(packets, segment, self.window.max(segment));
        self.set(self.window.saturating_add(step), cx.peer_window);
    }

    /// Takes thousandths of the window away, unless that was done within the last round trip.
    fn reduce(&mut self, cx: &CcContext<'_>, share: u64) {
        if self.decreased_at.is_none_or(|at| cx.now.saturating_since(at) >= self.srtt) {
            self.set(mul_div(self.window, THOUSAND - share, THOUSAND), cx.peer_window);
            self.decreased_at = Some(cx.now);
        }
    }

    fn follow(&mut self, cx: &CcContext<'_>, acked: Bytes, delay: Duration) {
        let target = self.target.of(self.millionths());
        if delay < target {
            if cx.cwnd_limited {
                self.grow(cx, acked);
            }
            return;
        }
        let most = u64::from(self.target.max_mdf.thousandths());
        let excess = delay.saturating_sub(target).as_nanos();
        let share = mul_div(excess, self.target.beta.thousandths().into(), delay.as_nanos().max(1));
        self.reduce(cx, share.min(most));
    }
}

impl CongestionController for Swift {
    fn name(&self) -> &'static str {
        "swift"
    }

    fn needs(&self) -> Needs {
        Needs { own_reduction: true, pacing: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.srtt = cx.rtt.srtt.unwrap_or(self.srtt);
        let before = self.window;
        match event.cause {
            Cause::Timeout { backoff } if backoff + 1 >= RESET_TIMEOUTS => {
                self.set(0, cx.peer_window)
            }
            _ if event.first_in_epoch => self.reduce(cx, self.target.max_mdf.thousandths().into()),
            _ => {}
        }
        if self.window < before && event.cause != Cause::EcnEcho {
            self.checkpoint = self.checkpoint.max(Some(before));
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.mss = cx.mss;
        self.srtt = cx.rtt.srtt.unwrap_or(self.srtt);
        if let Some(delay) = ack.rtt.filter(|_| ack.acked > Bytes::ZERO) {
            self.follow(cx, ack.acked, delay);
        }
    }

    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {
        self.checkpoint = None;
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        if let Some(window) = self.checkpoint.take() {
            self.window = self.window.max(window);
        }
    }

    fn cwnd(&self) -> Bytes {
        Bytes(self.window / UNIT).max(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let window = Bytes(self.window / UNIT);
        (window < self.mss).then(|| per_round_trip(window, self.srtt))
    }

    fn phase(&self) -> &'static str {
        if Bytes(self.window / UNIT) < self.mss { "paced" } else { "window" }
    }

    fn variables(&self) -> Vec<Variable> {
        let target = self.target.of(self.millionths());
        vec![
            ("target_us", target.as_nanos() as f64 / 1e3),
            ("window_packets", self.millionths() as f64 / MILLION as f64),
        ]
    }
}

/// A millionth of `1 / sqrt(w)`, `w` in millionths.
fn inverse_root(millionths: u64) -> u64 {
    (MILLION * MILLION * MILLION / millionths.max(1)).isqrt()
}

const UNIT: u64 = 1_024;
const THOUSAND: u64 = 1_000;
const MILLION: u64 = 1_000_000;
/// Of the base target.
const RANGE: u64 = 5;
/// `1 / sqrt(100)` and `1 / sqrt(0.1)`, in millionths.
const INVERSE_LEAST: u64 = 100_000;
const INVERSE_MOST: u64 = 3_162_277;
/// The smallest window is a packet over this.
const LEAST_SHARE: u64 = 100;
const MOST_WINDOW: u64 = u64::MAX / 4;
const RESET_TIMEOUTS: u32 = 5;

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    const MSS: Bytes = Bytes(1_000);

    fn ack(cc: &mut Swift, micros: u64, rtt: u64, packets: u64) {
        let mut rng = stream(1, "unused");
        let now = Instant::ZERO + Duration::from_micros(micros);
        let mut cx = CcContext { cwnd_limited: true, ..CcContext::new(now, MSS, &mut rng) };
        let rtt = Duration::from_micros(rtt);
        cx.rtt.srtt = Some(rtt);
        cc.on_ack(
            &mut cx,
            &AckEvent { acked: MSS * packets, rtt: Some(rtt), ..AckEvent::default() },
        );
    }

    fn swift(packets: u64) -> Swift {
        Swift::new(MSS, MSS * packets, SwiftTarget { hops: 3, ..SwiftTarget::DEFAULT })
    }

    /// The scaling is the whole range at a tenth of a packet, and nothing at a hundred.
    #[test]
    fn small_windows_may_have_a_longer_queue() {
        let target = SwiftTarget { hops: 3, ..SwiftTarget::DEFAULT };
        let micros = |millionths| target.of(millionths).as_nanos() as f64 / 1e3;
        assert!((micros(100_000) - (25.0 + 3.0 + 125.0)).abs() < 0.01);
        assert_eq!(micros(100 * MILLION), 28.0);
        assert_eq!(micros(1_000 * MILLION), 28.0);
        let at_one = 125.0 * (1.0 - 0.1) / (10.0_f64.sqrt() - 0.1);
        assert!((micros(MILLION) - 28.0 - at_one).abs() < 0.01);
    }

    #[test]
    fn the_window_grows_by_a_packet_per_round_trip_below_the_target() {
        let mut cc = swift(50);
        (0..50).for_each(|n| ack(&mut cc, n, 20, 1));
        assert!((MSS.get() * 51 - cc.cwnd().get()) < 20, "{:?}", cc.cwnd());
    }

    /// 1 - beta (RTT - target) / RTT, at least a half, and once per round trip.
    #[test]
    fn the_window_shrinks_by_the_excess_of_delay() {
        let mut cc = swift(200);
        ack(&mut cc, 100, 35, 1);
        assert_eq!(cc.cwnd(), Bytes(200_000 * 840 / 1_000), "(35 - 28) / 35 times 0.8");
        ack(&mut cc, 134, 35, 1);
        assert_eq!(cc.cwnd(), Bytes(168_000), "less than a round trip later");
        ack(&mut cc, 135, 35, 0);
        ack(&mut cc, 4_000, 3_500, 1);
        assert_eq!(cc.cwnd(), Bytes(84_000));
    }

    /// Below a packet the window is a pace.
    #[test]
    fn a_window_below_a_packet_is_paced() {
        let mut cc = swift(1);
        assert_eq!(cc.pacing_rate(), None);
        ack(&mut cc, 1_000, 1_000, 1);
        assert_eq!((cc.cwnd(), cc.phase()), (MSS, "paced"));
        // Half a packet per round trip.
        assert_eq!(cc.pacing_rate(), Some(Rate::from_bits_per_sec(500 * 8 * 1_000)));
        (2..40).for_each(|n| ack(&mut cc, n * 1_000, 1_000, 1));
        assert_eq!(cc.window / UNIT, 10, "a hundredth of a packet");
    }

    #[test]
    fn the_fifth_timeout_in_a_row_resets_the_window() {
        let mut cc = swift(64);
        let mut rng = stream(1, "unused");
        for backoff in 0..5 {
            let now = Instant::ZERO + Duration::from_millis(u64::from(backoff) + 1);
            let mut cx = CcContext::new(now, MSS, &mut rng);
            let (cause, lost) = (Cause::Timeout { backoff }, MSS);
            let first_in_epoch = backoff == 0;
            let event = CongestionEvent { cause, first_in_epoch, lost, prior_in_flight: MSS };
            cc.on_congestion(&mut cx, &event);
            let expected = if backoff < 4 { 32_000 } else { 10 };
            assert_eq!(cc.window / UNIT, expected);
        }
        cc.on_spurious(&mut CcContext::new(Instant::ZERO, MSS, &mut rng));
        assert_eq!(cc.cwnd(), MSS * 64);
    }
}
