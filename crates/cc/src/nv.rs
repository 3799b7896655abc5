//! `nv`: TCP-NV ("New Vegas"), which compares its window with what the measured rate and the smallest RTT
//! account for (Brakmo, "TCP-NV: Congestion avoidance for data centers", Linux Plumbers Conference 2010),
//! as Linux 6.1 has it (`tcp_nv.c`).
//!
//! ```text
//! slow start            as Reno, while growth is allowed
//! congestion avoidance  cwnd += mss per max(cwnd, 4 mss) acknowledged, while growth is allowed
//! with each RTT sample:
//!   rtt  = (rtt + sample) / 2,  min_rtt = smallest rtt
//!   rate = what was delivered since the newest segment acknowledged was sent, over rtt
//! once per round trip:
//!   max_win = largest rate since the last decision * min_rtt + 10 mss
//!   cwnd > max_win      and 60 samples (30 in the first slow start) in 2 rounds or more:
//!                       growth ends;  ssthresh = max_win;
//!                       cwnd -= 38/128 (cwnd - max_win), or = max_win if it is 2 segments above at most
//!   cwnd <= max_win - 2 and 20 samples:  growth is allowed
//! loss                  ssthresh = 819/1024 cwnd;  growth ends until a decision allows it
//! timeout               the same, and growth halves, eight times at most; it recovers by a factor of two
//!                       with every ninth decision in a row to grow
//! every 2 s at first, then every 3.75 to 6.25 s:  min_rtt = the smallest since the last time
//! ```
//!
//! Units as in the kernel: RTTs in microseconds, rates in 100 bit/s, every quotient rounded down. Made for
//! data centers: once nothing but its own queue is there to measure, `min_rtt` takes it in.
//!
//! Randomness: the period after which `min_rtt` is replaced has a random byte, from the connection's own stream
//! here. Deviation from Linux: there is no RTT known beforehand (its BPF hook).

use weir_units::{Bytes, Duration};

use crate::ticks::{TICKS_PER_SEC, ticks};
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, RateSample,
    RecoveryState, Variable,
};

/// NV's window.
#[derive(Clone, Debug)]
pub struct Nv {
    window: AckClockedWindow,
    rtts: Rtts,
    /// Growth is divided by two to this power.
    slowness: u32,
    may_grow: bool,
    /// Segments; below, one sample per round trip decides nothing.
    least_cwnd: u64,
    state: RecoveryState,
    tally: Tally,
    /// Decisions to grow in a row.
    calm: u32,
    /// What was acknowledged at the last sample.
    last_una: u64,
}

/// Microseconds.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    mean: u64,
    min: u64,
    /// The smallest since `min` was last replaced.
    next_min: u64,
    /// The tick at which it is replaced; set when the first data leaves.
    replace_at: Option<u64>,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// The round trip ends when `snd_una` passes it.
    round_end: u64,
    rounds: u8,
    samples: u8,
    /// In 100 bit/s.
    max_rate: u64,
}

impl Nv {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            rtts: Rtts { mean: 0, min: ENDLESS, next_min: ENDLESS, replace_at: None },
            slowness: 0,
            may_grow: true,
            least_cwnd: LEAST_CWND,
            state: RecoveryState::Open,
            tally: Tally::default(),
            calm: 0,
            last_una: 0,
        }
    }

    /// `tcpnv_acked`.
    fn measure(&mut self, cx: &mut CcContext<'_>, rtt: Duration, rate: Option<RateSample>) {
        let acked = cx.snd_una.saturating_sub(self.last_una);
        self.last_una = cx.snd_una;
        let delivered = rate.map_or(0, |rate| (rate.total_delivered - rate.prior_delivered).get());
        if delivered == 0 {
            return;
        }
        let mean = self.rtts.sample(rtt.as_micros());
        let rate = delivered.saturating_mul(RATE_SCALE) / mean.max(1);
        self.tally.max_rate = self.tally.max_rate.max(rate.min(u64::from(u32::MAX)));
        self.tally.samples = self.tally.samples.saturating_add(1);
        let now = ticks(cx.now);
        if self.rtts.replace_at.is_some_and(|at| now >= at) {
            let byte = cx.rng.below(256);
            self.rtts.replace(now + ((PERIOD * (384 + byte) * TICKS_PER_SEC) >> 9));
            self.least_cwnd = (self.least_cwnd / 2).max(LEAST_CWND);
        }
        if cx.snd_una > self.tally.round_end {
            self.end_round(cx, acked);
        }
    }

    fn end_round(&mut self, cx: &CcContext<'_>, acked: u64) {
        let mss = cx.mss.get();
        self.tally.round_end = cx.snd_nxt;
        self.tally.rounds = self.tally.rounds.saturating_add(1);
        let lone = self.tally.samples == 1 && acked >= (self.least_cwnd - 1) * mss;
        if lone && self.least_cwnd < LARGEST_LEAST_CWND {
            self.least_cwnd = (self.least_cwnd + 2).min(LARGEST_LEAST_CWND);
            self.tally.round_end = cx.snd_nxt + self.least_cwnd * mss;
            self.tally.samples = 0;
            self.may_grow = true;
            return;
        }
        let delivered = u128::from(self.tally.max_rate) * u128::from(self.rtts.min);
        let fits = (delivered / u128::from(RATE_SCALE * mss)).min(u128::from(u32::MAX)) as u64;
        let max_win = fits + PAD;
        let cwnd = self.window.cwnd.get() / mss;
        let decided = if cwnd > max_win {
            self.give_way(cx.mss, cwnd, max_win)
        } else {
            cwnd + PAD_BUFFER <= max_win && self.allow_growth()
        };
        if decided {
            self.tally = Tally { round_end: self.tally.round_end, ..Tally::default() };
            self.window.cwnd = self.window.cwnd.max(cx.mss * 2);
        }
    }

    /// There is a queue: whether there is enough to know it by.
    fn give_way(&mut self, mss: Bytes, cwnd: u64, max_win: u64) -> bool {
        let first_slow_start = self.window.finite_ssthresh().is_none();
        let enough = if first_slow_start { SAMPLES_TO_END } else { SAMPLES_TO_SHRINK };
        if self.tally.rounds < 2 {
            return false;
        }
        if self.tally.samples < enough {
            if !first_slow_start && self.tally.rounds > ROUNDS_OF_GROWTH {
                self.may_grow = false;
            }
            return false;
        }
        self.may_grow = false;
        self.window.ssthresh = mss * max_win;
        let excess = cwnd - max_win;
        let taken = if excess > 2 { (excess * DECREASE / 128).max(2) } else { excess };
        self.window.cwnd = mss * (cwnd - taken);
        self.calm = 0;
        true
    }

    fn allow_growth(&mut self) -> bool {
        if self.tally.samples < SAMPLES_TO_GROW {
            return false;
        }
        self.may_grow = true;
        self.calm = self.calm.saturating_add(1);
        if self.slowness > 0 && self.calm > CALM {
            self.slowness -= 1;
            self.calm = 0;
        }
        true
    }

    /// `tcpnv_state`.
    fn follow(&mut self, cx: &CcContext<'_>) {
        if cx.state == self.state {
            return;
        }
        let ended = is_episode(self.state) && !is_episode(cx.state);
        self.state = cx.state;
        if is_episode(cx.state) {
            self.may_grow = false;
        } else if ended {
            self.calm = 0;
            self.rtts.mean = 0;
            self.tally = Tally { round_end: cx.snd_una, ..Tally::default() };
            self.last_una = cx.snd_una;
        }
    }
}

impl CongestionController for Nv {
    fn name(&self) -> &'static str {
        "nv"
    }

    fn needs(&self) -> Needs {
        Needs { rate_samples: true, measures_first: true, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        self.rtts.replace_at.get_or_insert(ticks(cx.now) + 2 * TICKS_PER_SEC);
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd.mul_ratio(LOSS_FACTOR, 1_024));
        if let Cause::Timeout { .. } = event.cause {
            self.state = RecoveryState::Loss;
            self.may_grow = false;
            self.slowness = (self.slowness + 1).min(SLOWEST);
        }
    }

    fn on_delivery(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let (Some(rtt), false) = (ack.rtt, is_episode(cx.state)) {
            self.measure(cx, rtt, ack.rate);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if ack.brief_episode {
            self.state = RecoveryState::Cwr;
            self.may_grow = false;
        }
        self.follow(cx);
        if may_raise(cx, ack) && cx.cwnd_limited && self.may_grow {
            let beyond = self.window.slow_start(ack.acked);
            let per = if self.slowness > 0 {
                self.window.cwnd * (1 << self.slowness)
            } else {
                self.window.cwnd.max(cx.mss * 4)
            };
            self.window.additive_increase(cx.mss, per, beyond);
        }
    }

    ack_clocked_window!(on_spurious);

    fn phase(&self) -> &'static str {
        if !self.may_grow { "holding" } else { self.window.phase() }
    }

    fn variables(&self) -> Vec<Variable> {
        let mut found = vec![("max_rate_mbps", self.tally.max_rate as f64 / 1e4)];
        if self.rtts.min != ENDLESS {
            found.push(("min_rtt_ms", self.rtts.min as f64 / 1e3));
        }
        found
    }
}

impl Rtts {
    /// The moving average with this sample.
    fn sample(&mut self, rtt: u64) -> u64 {
        if self.mean > 0 {
            self.mean = (rtt + self.mean) / 2;
        } else {
            self.mean = rtt;
            self.min = 2 * rtt;
        }
        self.min = self.min.min(self.mean);
        self.next_min = self.next_min.min(self.mean);
        self.mean
    }

    fn replace(&mut self, next_time: u64) {
        self.min = self.next_min;
        self.next_min = ENDLESS;
        self.replace_at = Some(next_time);
    }
}

fn is_episode(state: RecoveryState) -> bool {
    !matches!(state, RecoveryState::Open | RecoveryState::Disorder)
}

/// Microseconds, before there is a sample.
const ENDLESS: u64 = u32::MAX as u64;
/// From bytes per microsecond to 100 bit/s.
const RATE_SCALE: u64 = 80_000;
/// Segments that may wait, and what it keeps away from that.
const PAD: u64 = 10;
const PAD_BUFFER: u64 = 2;
/// In 1/128: 30 %.
const DECREASE: u64 = 30 * 128 / 100;
/// In 1/1024: 80 %.
const LOSS_FACTOR: u64 = 819;
const SAMPLES_TO_SHRINK: u8 = 60;
const SAMPLES_TO_GROW: u8 = 20;
const SAMPLES_TO_END: u8 = 30;
const ROUNDS_OF_GROWTH: u8 = 10;
/// Decisions to grow in a row that speed growth up again.
const CALM: u32 = 8;
const SLOWEST: u32 = 8;
const LEAST_CWND: u64 = 4;
const LARGEST_LEAST_CWND: u64 = 81;
/// Seconds after which the smallest RTT is replaced, on average.
const PERIOD: u64 = 5;
