//! `copa`: Copa (Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet",
//! NSDI 2018), which sends at the rate at which `1/delta` packets of its own wait.
//!
//! ```text
//! queueing = standing - min        standing: smallest RTT of srtt/2, min: of 10 s
//! target rate = 1 / (delta queueing) packets per second
//! per acknowledgement   cwnd / standing <= target rate:  cwnd += v acked mss / (delta cwnd)
//!                       else                             cwnd -= the same
//! v        once per RTT: doubles if the window moved the same way for three RTTs, else 1
//! start    doubles per RTT until the target rate is passed
//! pacing   2 cwnd / standing
//! ```
//!
//! Copa's own queue is empty every five RTTs. If it is not, when a tenth of the RTT's range over the last four
//! counts as empty, others fill the queue, and `1/delta` grows by 1 per RTT, or halves if something was lost in
//! it, but not below its default: the window is as aggressive as AIMD's (§2.2, competitive mode). In default
//! mode losses change nothing but what is in flight.
//!
//! Deviations: a queue that lasts for two packets of the flow, up to a third of the range, counts as empty too,
//! because over a slow link a tenth of the range is less than a packet, and acknowledgements come for two:
//! alone it would take itself for a neighbour; extremes over time come from three candidates (`filter`), as in the
//! kernel's filters; a step moves the window by what was acknowledged at most; `v` restarts at once where the target
//! is crossed, as in Meta's mvfst (once per RTT alone, one of two equal flows may lose nine tenths of its share for a
//! minute); a timeout restarts it at in flight + 1 mss, doubling.
//!
//! Parameters: `delta`, 0.5; `mode=default` never competes.

use std::cmp::Reverse;

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::filter::MaxFilter;
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Needs, Variable,
};

/// Whether Copa competes with those that fill queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopaMode {
    /// While there are some.
    #[default]
    Auto,
    /// Never.
    Default,
}

/// Copa's window.
#[derive(Clone, Debug)]
pub struct Copa {
    cwnd: Bytes,
    mode: CopaMode,
    /// `1/delta` in thousandths of packets, as given and as in use.
    default_packets: u64,
    packets: u64,
    slow_start: bool,
    rtts: Rtts,
    velocity: Velocity,
    /// A change of less than a byte.
    credit: u128,
    /// When the queue was nearly empty, since when it is watched.
    empty_at: Option<Instant>,
    competing: bool,
    /// When `1/delta` last changed, and whether something was lost since.
    packets_at: Instant,
    lossy: bool,
    pacing_rate: Option<Rate>,
    /// The window to return to if a timeout proves unfounded.
    checkpoint: Option<Bytes>,
}

/// Extremes of the round-trip time.
#[derive(Clone, Debug, Default)]
struct Rtts {
    min: MaxFilter<Option<Reverse<Duration>>>,
    standing: MaxFilter<Option<Reverse<Duration>>>,
    max: MaxFilter<Duration>,
}

/// How fast the window moves.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    factor: u64,
    rising: bool,
    /// For how many RTTs it has moved the same way.
    rounds: u32,
    since: Instant,
    cwnd: Bytes,
}

impl Copa {
    /// Starts with `initial_window`; `delta` of zero counts as a thousandth.
    pub fn new(initial_window: Bytes, delta: Decimal, mode: CopaMode) -> Self {
        let packets = THOUSAND * THOUSAND / u64::from(delta.thousandths().max(1));
        Self {
            cwnd: initial_window,
            mode,
            default_packets: packets,
            packets,
            slow_start: true,
            rtts: Rtts::default(),
            velocity: Velocity {
                factor: 1,
                rising: true,
                rounds: 0,
                since: Instant::ZERO,
                cwnd: initial_window,
            },
            credit: 0,
            empty_at: None,
            competing: false,
            packets_at: Instant::ZERO,
            lossy: false,
            pacing_rate: None,
            checkpoint: None,
        }
    }

    /// Competes while the queue has not been nearly empty for five RTTs.
    fn update_mode(&mut self, cx: &CcContext<'_>, ack: &AckEvent, rtt: Duration, srtt: Duration) {
        let Some(min) = self.rtts.min() else { return };
        let range = self.rtts.max.max().saturating_sub(min);
        let spacing = srtt.mul_ratio(2 * cx.mss.get(), self.cwnd.get().max(1));
        let nearly_empty = (range / NEARLY_EMPTY).max(spacing.min(range / MOST_EMPTY));
        let empty_at = self.empty_at.get_or_insert(cx.now);
        if self.slow_start || rtt.saturating_sub(min) <= nearly_empty {
            *empty_at = cx.now;
        }
        let filled = cx.now.saturating_since(*empty_at) > srtt * FILLED_RTTS;
        let competing = filled && self.mode == CopaMode::Auto;
        if self.competing != competing {
            self.packets = self.default_packets;
            self.packets_at = cx.now;
            self.competing = competing;
            self.lossy = false;
        }
        self.lossy |= ack.lost > Bytes::ZERO;
        if competing && cx.now.saturating_since(self.packets_at) >= srtt {
            self.adapt_packets(cx.now);
        }
    }

    /// AIMD of `1/delta`, once per RTT.
    fn adapt_packets(&mut self, now: Instant) {
        self.packets_at = now;
        if std::mem::take(&mut self.lossy) {
            self.packets = (self.packets / 2).max(self.default_packets);
        } else {
            self.packets += THOUSAND;
        }
    }

    /// Whether the rate is below its target: `cwnd / standing <= 1 / (delta queueing)`.
    fn is_below_target(&self, mss: Bytes) -> bool {
        let (Some(standing), Some(min)) = (self.rtts.standing(), self.rtts.min()) else {
            return true;
        };
        let queueing = u128::from(standing.saturating_sub(min).as_nanos());
        let sent = u128::from(self.cwnd.get()) * queueing * u128::from(THOUSAND);
        let wanted = u128::from(mss.get()) * u128::from(self.packets);
        sent <= wanted * u128::from(standing.as_nanos())
    }

    fn step(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let below = self.is_below_target(cx.mss);
        if self.slow_start && below {
            if cx.cwnd_limited {
                self.cwnd += acked;
            }
            return;
        }
        self.slow_start = false;
        self.velocity.turn(cx.now, self.cwnd, below);
        let per = u128::from(self.cwnd.get().max(1)) * u128::from(THOUSAND);
        let factor = u128::from(self.packets) * u128::from(self.velocity.factor);
        self.credit += u128::from(acked.get()) * u128::from(cx.mss.get()) * factor;
        let step = Bytes(u64::try_from(self.credit / per).unwrap_or(u64::MAX)).min(acked);
        self.credit %= per;
        if !below {
            self.cwnd = self.cwnd.saturating_sub(step).max(cx.mss * LEAST_SEGMENTS);
        } else if cx.cwnd_limited {
            self.cwnd += step;
        }
    }
}

impl CongestionController for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn needs(&self) -> Needs {
        Needs { own_reduction: true, pacing: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        // Marks, which the paper does not speak of, count as losses.
        self.lossy |= event.cause == Cause::EcnEcho;
        if let Cause::Timeout { .. } = event.cause {
            self.checkpoint = self.checkpoint.max(Some(self.cwnd));
            self.cwnd = cx.bytes_in_flight + cx.mss;
            self.slow_start = true;
            self.velocity.restart(cx.now, self.cwnd);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let (Some(rtt), Some(srtt)) = (ack.rtt, cx.rtt.srtt) else { return };
        self.rtts.update(cx.now, rtt, srtt);
        self.update_mode(cx, ack, rtt, srtt);
        if ack.acked > Bytes::ZERO {
            self.velocity.update(cx.now, srtt, self.cwnd);
            self.step(cx, ack.acked);
        }
        let standing = self.rtts.standing().unwrap_or(srtt).max(Duration::from_micros(1));
        self.pacing_rate =
            Rate::from_transfer(self.cwnd * 2, standing).map(|rate| rate.max(LEAST_RATE));
    }

    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {
        self.checkpoint = None;
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        if let Some(cwnd) = self.checkpoint.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.slow_start = false;
        }
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The transport takes a window below it for slow start.
    fn ssthresh(&self) -> Option<Bytes> {
        (!self.slow_start).then_some(self.cwnd)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn phase(&self) -> &'static str {
        match (self.slow_start, self.competing) {
            (true, _) => "slow_start",
            (false, false) => "default",
            (false, true) => "competitive",
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let mut found = vec![
            ("delta", THOUSAND as f64 / self.packets as f64),
            ("velocity", self.velocity.factor as f64),
            ("competing", f64::from(u8::from(self.competing))),
        ];
        found.extend(self.rtts.min().map(|rtt| ("min_rtt_ms", rtt.as_millis_f64())));
        found.extend(self.rtts.standing().map(|rtt| ("standing_rtt_ms", rtt.as_millis_f64())));
        found
    }
}

impl Rtts {
    fn update(&mut self, now: Instant, rtt: Duration, srtt: Duration) {
        let (at, smallest) = (now.as_nanos(), Some(Reverse(rtt)));
        self.min.update(MIN_WINDOW.as_nanos(), at, smallest);
        self.standing.update((srtt / 2).min(MIN_WINDOW).as_nanos(), at, smallest);
        self.max.update((srtt * MAX_RTTS).min(MIN_WINDOW).as_nanos(), at, rtt);
    }

    fn min(&self) -> Option<Duration> {
        self.min.max().map(|Reverse(rtt)| rtt)
    }

    fn standing(&self) -> Option<Duration> {
        self.standing.max().map(|Reverse(rtt)| rtt)
    }
}

impl Velocity {
    /// Once per RTT: which way the window moved, and for how long.
    fn update(&mut self, now: Instant, srtt: Duration, cwnd: Bytes) {
        if now.saturating_since(self.since) < srtt {
            return;
        }
        let rising = cwnd > self.cwnd;
        if rising == self.rising {
            self.rounds += 1;
            if self.rounds >= STEADY_RTTS {
                self.factor = (self.factor * 2).min(MOST_VELOCITY);
            }
        } else {
            self.restart(now, cwnd);
            self.rising = rising;
        }
        self.since = now;
        self.cwnd = cwnd;
    }

    /// What was gathered towards the target must not lead away from it.
    fn turn(&mut self, now: Instant, cwnd: Bytes, rising: bool) {
        if self.factor > 1 && self.rising != rising {
            self.restart(now, cwnd);
            self.rising = rising;
        }
    }

    fn restart(&mut self, now: Instant, cwnd: Bytes) {
        *self = Self { factor: 1, rising: true, rounds: 0, since: now, cwnd };
    }
}

const THOUSAND: u64 = 1_000;
const MIN_WINDOW: Duration = Duration::from_secs(10);
const MAX_RTTS: u64 = 4;
const FILLED_RTTS: u64 = 5;
/// A queue of a tenth of the range is nearly empty; of a third, if two packets make it.
const NEARLY_EMPTY: u64 = 10;
const MOST_EMPTY: u64 = 3;
const STEADY_RTTS: u32 = 3;
/// A step is bounded anyway.
const MOST_VELOCITY: u64 = 1 << 20;
const LEAST_SEGMENTS: u64 = 2;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);
