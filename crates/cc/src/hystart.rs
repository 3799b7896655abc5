//! How CUBIC's slow start ends before it loses: Linux's HyStart and HyStart++ (RFC 9406).
//!
//! HyStart (Ha and Rhee, "Taming the elephants", 2011), as in Linux 6.1, from a window of 16
//! segments on; either sign ends slow start at the present window:
//!
//! ```text
//! ACK train   ACKs at most 2 ms apart since the start of the round last longer than
//!             (min_rtt + d) / 2, of a paced sender min_rtt + d,
//!             d = min(1 ms, 4 * 64 KiB / Linux's pacing rate)
//! delay       the round's min RTT, after 8 samples > min_rtt + clamp(min_rtt / 8, 4 ms, 16 ms)
//! ```
//!
//! HyStart++: the delay sign, against the minimum of the *previous* round, starts conservative slow
//! start, which grows at a quarter of the pace; five rounds of that end slow start, a minimum below
//! the one that started it resumes it. It acts before the first loss only, and counts at most 8
//! segments per ACK, as RFC 9406 §4.3 asks of a sender that does not pace.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::CcContext;

/// How slow start ends before it loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hystart {
    /// Linux's HyStart.
    #[default]
    Linux,
    /// RFC 9406.
    PlusPlus,
    /// Only by loss.
    Off,
}

/// The state of the chosen method.
#[derive(Clone, Debug)]
pub(crate) enum SlowStartExit {
    Linux(Train),
    PlusPlus(Conservative),
    Off,
}

impl SlowStartExit {
    pub(crate) fn new(method: Hystart) -> Self {
        match method {
            Hystart::Linux => Self::Linux(Train::default()),
            Hystart::PlusPlus => Self::PlusPlus(Conservative::default()),
            Hystart::Off => Self::Off,
        }
    }

    /// Processes an RTT sample of slow start; whether slow start is over.
    pub(crate) fn on_rtt(
        &mut self,
        cx: &CcContext<'_>,
        cwnd: Bytes,
        rtt: Duration,
        min_rtt: Duration,
    ) -> bool {
        match self {
            Self::Linux(train) => train.on_rtt(cx, cwnd, rtt, min_rtt),
            Self::PlusPlus(css) if !css.over => css.on_rtt(cx, rtt),
            _ => false,
        }
    }

    /// By how much slow start may grow the window for `acked` bytes.
    pub(crate) fn growth(&self, acked: Bytes, mss: Bytes) -> Bytes {
        match self {
            Self::PlusPlus(css) if !css.over => {
                let divisor = if css.baseline.is_some() { 4 } else { 1 };
                acked.min(mss * 8) / divisor
            }
            _ => acked,
        }
    }

    /// Congestion: HyStart++ is for the first slow start only.
    pub(crate) fn on_congestion(&mut self) {
        if let Self::PlusPlus(css) = self {
            css.over = true;
        }
    }

    /// A timeout: slow start begins anew.
    pub(crate) fn restart(&mut self, cx: &CcContext<'_>) {
        if let Self::Linux(train) = self {
            *train = Train { round: Round::begin(cx), ..Train::default() };
        }
    }

    pub(crate) fn is_conservative(&self) -> bool {
        matches!(self, Self::PlusPlus(css) if !css.over && css.baseline.is_some())
    }
}

/// A round trip with its smallest RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Instant,
    end: u64,
    min_rtt: Option<Duration>,
    samples: u32,
}

impl Round {
    fn begin(cx: &CcContext<'_>) -> Self {
        Self { start: cx.now, end: cx.snd_nxt, min_rtt: None, samples: 0 }
    }

    fn sample(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.samples = self.samples.saturating_add(1);
    }

    /// The minimum, once it rests on `enough` samples.
    fn min_of(&self, enough: u32) -> Option<Duration> {
        self.min_rtt.filter(|_| self.samples >= enough)
    }
}

/// Linux's HyStart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Train {
    round: Round,
    last_ack: Instant,
    found: bool,
}

impl Train {
    fn on_rtt(
        &mut self,
        cx: &CcContext<'_>,
        cwnd: Bytes,
        rtt: Duration,
        min_rtt: Duration,
    ) -> bool {
        if self.found {
            return false;
        }
        // The sample that ends a round is the first of the next, below the smallest window too.
        if cx.snd_una > self.round.end {
            self.round = Round::begin(cx);
            self.last_ack = cx.now;
        }
        if cwnd < cx.mss * LOW_WINDOW {
            return false;
        }
        let train = self.train_is_long(cx, cwnd, min_rtt);
        self.round.sample(rtt);
        // Linux looks from the sample after the eighth on.
        let round_min = self.round.min_of(MIN_SAMPLES + 1);
        let delayed = round_min.is_some_and(|min| min > min_rtt + threshold(min_rtt));
        self.found = train || delayed;
        self.found
    }

    fn train_is_long(&mut self, cx: &CcContext<'_>, cwnd: Bytes, min_rtt: Duration) -> bool {
        if cx.now.saturating_since(self.last_ack) > ACK_SPACING {
            return false;
        }
        self.last_ack = cx.now;
        // The pacer spreads a window over half a round trip, twice as fast as it is acknowledged.
        let parts = if cx.paced { 1 } else { 2 };
        let allowed = (min_rtt + segmentation_delay(cx, cwnd)) / parts;
        cx.now.saturating_since(self.round.start) > allowed
    }
}

/// Four of the largest bursts that Linux hands to the interface, at the rate that it derives from
/// the window even where it does not pace: twice `cwnd / srtt` in slow start.
fn segmentation_delay(cx: &CcContext<'_>, cwnd: Bytes) -> Duration {
    let rate = cx.rtt.srtt.and_then(|srtt| Rate::from_transfer(cwnd * 2, srtt));
    match rate {
        Some(rate) if rate > Rate::ZERO => {
            rate.transmit_time(LARGEST_BURST * 4, &mut 0).min(Duration::from_millis(1))
        }
        _ => Duration::ZERO,
    }
}

/// HyStart++.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conservative {
    round: Option<Round>,
    last_round_min: Option<Duration>,
    /// The round's minimum that started conservative slow start, while it lasts.
    baseline: Option<Duration>,
    rounds: u32,
    over: bool,
}

impl Conservative {
    fn on_rtt(&mut self, cx: &CcContext<'_>, rtt: Duration) -> bool {
        if self.round.is_some_and(|round| cx.snd_una > round.end) {
            self.end_round();
        }
        let round = self.round.get_or_insert_with(|| Round::begin(cx));
        round.sample(rtt);
        match (self.baseline, round.min_of(MIN_SAMPLES), self.last_round_min) {
            (None, Some(min), Some(last)) if min >= last + threshold(last) => {
                self.baseline = Some(min);
                self.rounds = 0;
            }
            (Some(baseline), Some(min), _) if min < baseline => self.baseline = None,
            _ => {}
        }
        self.over
    }

    fn end_round(&mut self) {
        self.last_round_min = self.round.take().and_then(|round| round.min_rtt);
        if self.baseline.is_some() {
            self.rounds += 1;
            self.over = self.rounds >= CONSERVATIVE_ROUNDS;
        }
    }
}

/// By how much the RTT must have grown (RFC 9406 §4.2, and Linux).
fn threshold(min_rtt: Duration) -> Duration {
    (min_rtt / 8).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

const MIN_SAMPLES: u32 = 8;
const LOW_WINDOW: u64 = 16;
const ACK_SPACING: Duration = Duration::from_millis(2);
const LARGEST_BURST: Bytes = Bytes(1 << 16);
const CONSERVATIVE_ROUNDS: u32 = 5;
