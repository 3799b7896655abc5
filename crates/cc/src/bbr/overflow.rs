//! `overflow=avoid`: telling a queue that overflows from a path that loses packets at any rate.
//!
//! Linux's BBR does not try. Its startup goes on at 2.89 times the rate of a link whose short queue
//! drops the rest, and every eighth round trip drops what probing adds.
//!
//! ```text
//! share    = lost / (lost + delivered)    of n >= 64 segments, and of a round with as many
//! usual    = (usual + share) / 2          after each round in which nothing overflowed
//! overflow : share > u + 2 % + 3 sqrt(u (1 - u) / n),  u = usual + 1 / n
//!                                         of n segments that startup or a probe may have sent,
//!                                         without the 2 % in a round of a gradual probe
//! ```
//!
//! The 2 % are BBRv3's (draft-ietf-ccwg-bbr §5.6.2, BBRLossThresh). The root is the standard deviation of the share
//! where segments are lost independently. One loss more than usual keeps few losses of few segments from
//! counting: with none before, it takes 6 of 64, BBRv3's number in startup.
//!
//! After an overflow in startup one round conserves packets, which measures the rate of the full link,
//! and startup ends. The next probe then waits for 63 rounds, at most two seconds, as BBRv3's does
//! (draft-ietf-ccwg-bbr §5.3.3.5.1). So it does after a probe that overflowed. Until then the gain of 5/4
//! is 260/256, which makes up for pacing one percent below the rate.
//!
//! The next probe is gradual, as the draft's probe of a path that has lost too much
//! (§5.3.3.6, ProbeInflightLongtermUpward): what it adds begins small and doubles with each round. In a short
//! queue a round at 5/4 loses nearly a quarter of a bandwidth-delay product. Its gains are
//! 260/256 + 2^k/256 in its round k = 0, 1, ..., up to 5/4. It ends when a round loses significantly more than usual, or
//! with as much in flight as a probe at 5/4 aims for. After that the path has space, and probes are at 5/4 again.
//!
//! An RTT of at most 9/8 of the smallest one counts as measuring it again, so that PROBE_RTT is left out while
//! the queue is nearly empty (an option of Google's QUIC, with the same ratio). Where the round trip takes 150 ms,
//! each PROBE_RTT costs what the path carries in 0.44 s.
//!
//! No other loss conserves packets: one random loss would cost startup a round of growth. Startup has
//! BBRv3's gains, 2.77 and 2: its window fits into a queue of one bandwidth-delay product.

use weir_units::{Bytes, Duration, Instant};

use super::Bbr;
use super::phases::Mode;
use crate::{AckEvent, CcContext};

/// How BBR responds to a queue that overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// As to any other loss.
    #[default]
    Linux,
    /// Ends startup, and delays the next probe.
    Avoid,
}

/// The share of losses, recent and usual.
#[derive(Clone, Debug, Default)]
pub(super) struct Detector {
    pub(super) policy: Overflow,
    lately: Tally,
    round: Tally,
    /// In 2^-20; `None` before a round of as many segments as are judged.
    usual: Option<u64>,
    /// Startup ends with the present round.
    pub(super) ends_startup: bool,
    hold: Option<Hold>,
    /// Probes begin small: the queue overflowed, and no probe has reached its aim since.
    pub(super) is_gradual: bool,
}

/// Bytes delivered and lost.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    delivered: Bytes,
    lost: Bytes,
}

/// No probe before this round and this time.
#[derive(Clone, Copy, Debug)]
struct Hold {
    round: u64,
    until: Instant,
}

impl Detector {
    pub(super) fn new(policy: Overflow) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(super) fn is_avoided(&self) -> bool {
        self.policy == Overflow::Avoid
    }

    /// A round has begun. Returns whether the one before, in which a gradual probe may have been seen, lost
    /// significantly more than usual.
    fn next_round(&mut self, mss: Bytes, probing: bool) -> bool {
        let round = std::mem::take(&mut self.round);
        let Some(share) = round.share(mss) else { return false };
        let overflows = self.is_gradual
            && probing
            && self.usual.is_some_and(|usual| share > explained(usual, round.segments(mss)));
        if !overflows {
            self.usual = Some(self.usual.map_or(share, |usual| (usual + share) / 2));
        }
        overflows
    }

    /// Counts an acknowledgement. Returns whether the queue overflows; only what startup or a probe has
    /// sent overflows it.
    fn observe(&mut self, mss: Bytes, ack: &AckEvent, probing: bool) -> bool {
        self.round.add(ack);
        self.lately.add(ack);
        let Some(share) = self.lately.share(mss) else { return false };
        let segments = self.lately.segments(mss);
        self.lately = Tally::default();
        let overflows =
            probing && self.usual.is_some_and(|usual| share > largest_share(usual, segments));
        if overflows {
            self.round = Tally::default();
        }
        overflows
    }

    /// Whether the next probe has to wait.
    pub(super) fn holds(&self, now: Instant, round: u64) -> bool {
        self.hold.is_some_and(|hold| round < hold.round && now < hold.until)
    }
}

impl Tally {
    fn add(&mut self, ack: &AckEvent) {
        self.delivered += ack.acked;
        self.lost += ack.lost;
    }

    /// The share of losses in 2^-20, of enough segments.
    fn share(&self, mss: Bytes) -> Option<u64> {
        let sent = self.delivered + self.lost;
        (sent >= mss * ENOUGH_SEGMENTS).then(|| self.lost.get().saturating_mul(UNIT) / sent.get())
    }

    fn segments(&self, mss: Bytes) -> u64 {
        (self.delivered + self.lost).get() / mss.get()
    }
}

/// The largest share of losses, in 2^-20, of this many segments that is no overflow.
fn largest_share(usual: u64, segments: u64) -> u64 {
    explained(usual, segments) + LOSS_THRESHOLD
}

/// The largest share of losses, in 2^-20, of this many segments that random loss explains.
fn explained(usual: u64, segments: u64) -> u64 {
    let expected = (usual + UNIT / segments).min(UNIT);
    let deviation = (expected * (UNIT - expected) / segments).isqrt();
    expected + 3 * deviation
}

impl Bbr {
    /// Detects an overflow and responds to it.
    pub(super) fn watch_for_overflow(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if !self.overflow.is_avoided() {
            return;
        }
        let in_startup = self.mode == Mode::Startup;
        let probing = in_startup || self.mode == Mode::Drain || self.mode.is_probe_or_drain();
        if !self.overflow.observe(cx.mss, ack, probing) {
            return;
        }
        self.hold_probes(cx.now);
        if in_startup && !self.overflow.ends_startup {
            self.overflow.ends_startup = true;
            self.conserve_packets(cx, ack);
        }
    }

    /// Judges the round that has ended.
    pub(super) fn end_round_of_losses(&mut self, cx: &CcContext<'_>) {
        if self.overflow.next_round(cx.mss, self.mode.is_probe_or_drain()) {
            self.hold_probes(cx.now);
        }
    }

    /// The next probe waits, and is a gradual one.
    pub(super) fn hold_probes(&mut self, now: Instant) {
        let until = now.saturating_add(HOLD);
        self.overflow.hold = Some(Hold { round: self.round.count + HOLD_ROUNDS, until });
        self.overflow.is_gradual = true;
    }
}

const ENOUGH_SEGMENTS: u64 = 64;
const UNIT: u64 = 1 << 20;
const LOSS_THRESHOLD: u64 = UNIT * 2 / 100;
const HOLD_ROUNDS: u64 = 63;
const HOLD: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1_000);

    /// Counts `blocks` of 128 segments of which `lost` are lost; how many of them show an overflow.
    fn overflows(detector: &mut Detector, blocks: u32, lost: u64, probing: bool) -> usize {
        let ack = AckEvent { acked: MSS * (128 - lost), lost: MSS * lost, ..AckEvent::default() };
        (0..blocks).filter(|_| detector.observe(MSS, &ack, probing)).count()
    }

    #[test]
    fn only_a_share_above_the_usual_one_is_an_overflow() {
        let mut detector = Detector::new(Overflow::Avoid);
        assert_eq!(overflows(&mut detector, 1, 64, true), 0, "nothing is usual yet");
        for _ in 0..9 {
            detector.next_round(MSS, false);
            overflows(&mut detector, 4, 32, true);
        }
        assert_eq!(overflows(&mut detector, 4, 32, true), 0, "a quarter always");
        assert_eq!(overflows(&mut detector, 4, 40, true), 0, "a sixteenth more");
        assert_eq!(overflows(&mut detector, 4, 52, false), 0, "nothing probes");
        assert_eq!(overflows(&mut detector, 4, 52, true), 4);
    }

    #[test]
    fn six_of_64_are_an_overflow_where_nothing_was_lost_before() {
        assert_eq!([5, 6].map(|lost| lost * UNIT / 64 > largest_share(0, 64)), [false, true]);
        assert_eq!(largest_share(UNIT, 64), UNIT + LOSS_THRESHOLD, "all are lost always");
    }

    #[test]
    fn a_round_that_overflows_is_not_usual() {
        let mut detector = Detector::new(Overflow::Avoid);
        overflows(&mut detector, 4, 0, true);
        for _ in 0..3 {
            detector.next_round(MSS, false);
            assert_eq!(overflows(&mut detector, 4, 64, true), 4);
        }
    }

    /// Few losses of many segments do not reach the 2 %, but random loss does not explain them.
    #[test]
    fn a_round_of_a_gradual_probe_that_loses_a_little_more_than_usual_overflows() {
        let judge = |usual: u64, lost: u64, is_gradual: bool, probing: bool| {
            let mut detector = Detector { is_gradual, ..Detector::new(Overflow::Avoid) };
            overflows(&mut detector, 24, usual, false);
            assert!(!detector.next_round(MSS, probing));
            overflows(&mut detector, 24, lost, true);
            detector.next_round(MSS, probing)
        };
        assert!(judge(0, 1, true, true));
        assert!(!judge(0, 1, false, true), "a probe at 5/4");
        assert!(!judge(0, 1, true, false), "nothing probes");
        assert_eq!([2, 3].map(|lost| judge(2, lost, true, true)), [false, true]);
    }

    #[test]
    fn a_probe_waits_for_rounds_and_at_most_two_seconds() {
        let until = Instant::ZERO + HOLD;
        let hold = Some(Hold { round: 70, until });
        let detector = Detector { hold, ..Detector::default() };
        let before = Instant::from_nanos(until.as_nanos() - 1);
        assert!(detector.holds(before, 69));
        assert!(!detector.holds(before, 70));
        assert!(!detector.holds(until, 69));
        assert!(!Detector::default().holds(Instant::ZERO, 0));
    }
}
