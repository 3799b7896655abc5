//! `cubic`: RFC 9438 as Linux 6.1 computes it.
//!
//! ```text
//! W(t)     = W_max + C (t - K)^3              target window, t from the start of the epoch + min RTT
//! K        = cbrt((W_max - cwnd) / C)         cwnd at the start of the epoch
//! growth   = 1 mss per cwnd / (W(t) - cwnd)   segments acknowledged, at least 2
//! W_est   += 1 mss per cwnd (1 + beta) / (3 (1 - beta))   segments acknowledged: never slower than Reno
//! loss       W_max = cwnd, or cwnd (1 + beta) / 2 below the last W_max (fast convergence)
//!            cwnd  = ssthresh = beta cwnd
//! C = 410/1024 segments/s^3, beta = 717/1024, unless they are given
//! ```
//!
//! Units as in the kernel, so that windows can be compared ACK by ACK: windows in whole segments,
//! the curve in 1/1024 s, time read in ticks of 1 ms (a kernel with `HZ` = 1000).
//!
//! Deviations from the RFC, which are Linux's: `t` includes the minimum RTT instead of a second
//! target one RTT ahead; growth is recomputed once per tick, or after 31 ms while the window
//! stands; before the first loss the window grows at least 5 % per RTT; slow start ends by HyStart
//! ([`SlowStartExit`]).
//!
//! Parameters: `hystart`, how slow start ends; `friendliness`, whether `W_est` counts (Linux's
//! `tcp_friendliness`); `beta`, the share that a loss leaves (0.7); `c`, how steep the curve is (0.4);
//! `idle`, what the time without data moves ([`Idle`]).

use weir_units::{Bytes, Duration, Instant};

use crate::hystart::SlowStartExit;
use crate::ticks::{TICKS_PER_SEC, ticks};
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Hystart, Variable,
};

/// Whether the window grows at least as Reno's would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Friendliness {
    /// RFC 9438 §4.3.
    #[default]
    On,
    /// By the curve alone.
    Off,
}

/// What moves by the time that passed with nothing in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// The epoch of the curve, as in Linux.
    #[default]
    Epoch,
    /// The end of the recovery, a fault of quiche until 0.26.0 (cloudflare/quiche #2370), kept for searches to find: a
    /// flight so small that one acknowledgement empties it never leaves recovery, so that the window stands.
    Recovery,
}

/// How CUBIC grows and gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicShape {
    /// The share of the window that a loss leaves, below 1.
    pub beta: Decimal,
    /// Segments per second cubed, above 0.
    pub c: Decimal,
    /// Whether Reno's growth is the least.
    pub friendliness: Friendliness,
    /// What idle time moves.
    pub idle: Idle,
}

impl CubicShape {
    /// Linux's.
    pub const LINUX: Self = Self {
        beta: Decimal::SEVEN_TENTHS,
        c: Decimal::TWO_FIFTHS,
        friendliness: Friendliness::On,
        idle: Idle::Epoch,
    };

    fn beta(self) -> u64 {
        self.beta.in_1024ths().min(LARGEST_BETA)
    }

    fn c(self) -> u64 {
        self.c.in_1024ths().max(1)
    }
}

impl Default for CubicShape {
    fn default() -> Self {
        Self::LINUX
    }
}

/// CUBIC's window.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: AckClockedWindow,
    curve: Curve,
    exit: SlowStartExit,
    last_sent: Option<Instant>,
    /// What was sent until then grows no window, with [`Idle::Recovery`].
    recovery_end: Option<Instant>,
}

impl Cubic {
    /// Starts with `initial_window`; `hystart` says how slow start ends.
    pub fn new(initial_window: Bytes, hystart: Hystart, shape: CubicShape) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            curve: Curve { shape, ..Curve::default() },
            exit: SlowStartExit::new(hystart),
            last_sent: None,
            recovery_end: None,
        }
    }

    /// Whether what `ack` acknowledges was sent in the recovery that [`Idle::Recovery`] prolongs.
    fn is_held(&self, now: Instant, ack: &AckEvent) -> bool {
        let ends = self.recovery_end.filter(|_| self.curve.shape.idle == Idle::Recovery);
        ends.zip(ack.rtt).is_some_and(|(end, rtt)| now <= end + rtt)
    }

    /// Processes an RTT sample; may end slow start, also that which goes on below the threshold while a reduction is
    /// `metered` (Linux's `tcp_in_slow_start` in `cubictcp_acked`).
    fn sample_rtt(&mut self, cx: &CcContext<'_>, rtt: Duration, metered: Option<Bytes>) {
        let now = ticks(cx.now);
        // The second after a reduction still sees the queue that caused it.
        if self.curve.epoch.is_some_and(|start| now.saturating_sub(start) < TICKS_PER_SEC) {
            return;
        }
        let rtt = rtt.max(Duration::from_micros(1));
        let min_rtt = self.curve.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.curve.min_rtt = Some(min_rtt);
        let cwnd = metered.unwrap_or(self.window.cwnd);
        if cwnd < self.window.ssthresh && self.exit.on_rtt(cx, cwnd, rtt, min_rtt) {
            self.window.cwnd = cwnd;
            self.window.ssthresh = cwnd;
        }
    }
}

impl CongestionController for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        // Time without data is no time to grow in: the epoch moves by the idle time.
        if let (Bytes::ZERO, Some(last)) = (cx.bytes_in_flight, self.last_sent) {
            let idle = ticks(cx.now).saturating_sub(ticks(last));
            self.curve.epoch = self.curve.epoch.map(|start| (start + idle).min(ticks(cx.now)));
            self.recovery_end = self.recovery_end.map(|end| end + (cx.now - last));
        }
        self.last_sent = Some(cx.now);
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let curve = &mut self.curve;
        let mss = cx.mss;
        self.window.on_congestion(cx, event, |cwnd| curve.reduce(cwnd, mss));
        self.exit.on_congestion();
        self.recovery_end = Some(cx.now);
        if let Cause::Timeout { .. } = event.cause {
            self.curve = Curve { shape: self.curve.shape, ..Curve::default() };
            self.exit.restart(cx);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.sample_rtt(cx, rtt, ack.metered_window);
        }
        if !may_raise(cx, ack) || !cx.cwnd_limited || self.is_held(cx.now, ack) {
            return;
        }
        let beyond = if self.window.in_slow_start() {
            self.window.slow_start(self.exit.growth(ack.acked, cx.mss))
        } else {
            ack.acked
        };
        if beyond > Bytes::ZERO {
            let per = self.curve.update(cx, self.window.cwnd, beyond);
            self.window.additive_increase(cx.mss, per, beyond);
        }
    }

    ack_clocked_window!(on_spurious);

    fn phase(&self) -> &'static str {
        if self.window.in_slow_start() && self.exit.is_conservative() {
            return "conservative_slow_start";
        }
        self.window.phase()
    }

    fn variables(&self) -> Vec<Variable> {
        let curve = &self.curve;
        let mut found = vec![("w_max_segments", curve.last_max as f64)];
        if curve.epoch.is_some() {
            found.push(("k_s", curve.k as f64 / 1024.0));
            found.push(("w_est_segments", curve.reno_cwnd as f64));
        }
        found
    }
}

/// The cubic curve of one epoch and what is remembered between epochs.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// The tick in which the epoch began; `None` from a reduction to the next growth.
    epoch: Option<u64>,
    /// `W_max` in segments; zero before the first loss.
    last_max: u64,
    /// The window in segments around which the curve lies flat, and when it gets there, in 1/1024 s
    /// after the start of the epoch.
    origin: u64,
    k: u64,
    /// Segments acknowledged per segment of growth.
    count: u64,
    /// For which window, in segments, and in which tick `count` was last computed.
    last_cwnd: u64,
    last_tick: u64,
    /// `W_est` in segments, and the bytes acknowledged towards its next one.
    reno_cwnd: u64,
    reno_credit: Bytes,
    shape: CubicShape,
    min_rtt: Option<Duration>,
}

impl Curve {
    /// RFC 9438 §4.6 and §4.7: the window after a reduction of `cwnd`.
    fn reduce(&mut self, cwnd: Bytes, mss: Bytes) -> Bytes {
        let (segments, beta) = (cwnd.get() / mss.get(), self.shape.beta());
        self.epoch = None;
        self.last_max =
            if segments < self.last_max { segments * (1024 + beta) / 2048 } else { segments };
        mss * (segments * beta / 1024)
    }

    /// Processes `acked` bytes; the bytes that must be acknowledged per segment of growth.
    fn update(&mut self, cx: &CcContext<'_>, cwnd: Bytes, acked: Bytes) -> Bytes {
        let now = ticks(cx.now);
        let segments = cwnd.get() / cx.mss.get();
        self.reno_credit += acked;
        if self.last_cwnd != segments || now - self.last_tick > HOLD_TICKS {
            if self.epoch.is_none() || now != self.last_tick {
                self.recompute(now, segments, acked);
            }
            if self.shape.friendliness == Friendliness::On {
                self.keep_up_with_reno(segments, cx.mss);
            }
            self.count = self.count.max(2);
        }
        cx.mss * self.count
    }

    /// RFC 9438 §4.2: `count` from the distance to the curve.
    fn recompute(&mut self, now: u64, cwnd: u64, acked: Bytes) {
        self.last_cwnd = cwnd;
        self.last_tick = now;
        if self.epoch.is_none() {
            self.reno_credit = acked;
            self.reno_cwnd = cwnd;
            // `K^3` per segment below `W_max`, `K` in 1/1024 s.
            let cube = (1 << 40) / self.shape.c();
            self.k = cube_root(self.last_max.saturating_sub(cwnd).saturating_mul(cube));
            self.origin = self.last_max.max(cwnd);
        }
        let start = *self.epoch.get_or_insert(now);
        let min_rtt = self.min_rtt.unwrap_or_default().as_micros().div_ceil(1_000);
        let t = (now - start + min_rtt) * 1024 / TICKS_PER_SEC;
        let distance = curve_distance(t.abs_diff(self.k), self.shape.c());
        let target = if t < self.k {
            self.origin.saturating_sub(distance)
        } else {
            self.origin.saturating_add(distance)
        };
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            // Nothing is known of the path yet: 5 % per RTT at least.
            self.count = self.count.min(20);
        }
    }

    /// RFC 9438 §4.3: grows at least as Reno with the same reduction factor would.
    fn keep_up_with_reno(&mut self, cwnd: u64, mss: Bytes) {
        // Eighths of a window acknowledged per segment of `W_est`.
        let beta = self.shape.beta();
        let scale = 8 * (1024 + beta) / 3 / (1024 - beta);
        let per = (mss * (cwnd * scale / 8)).max(Bytes(1));
        let steps = self.reno_credit.saturating_sub(Bytes(1)).get() / per.get();
        self.reno_credit -= per * steps;
        self.reno_cwnd += steps;
        if let Some(ahead @ 1..) = self.reno_cwnd.checked_sub(cwnd) {
            self.count = self.count.min(cwnd / ahead);
        }
    }
}

/// `c offset^3` in segments, `c` in 1/1024, `offset` in 1/1024 s.
fn curve_distance(offset: u64, c: u64) -> u64 {
    let cubed = u128::from(offset).saturating_pow(3).saturating_mul(u128::from(c));
    u64::try_from(cubed >> 40).unwrap_or(u64::MAX)
}

/// The cube root as Linux approximates it, within 0.2 %: the six leading bits (in whole groups of
/// three) index an estimate, which one step of Newton's method refines.
fn cube_root(n: u64) -> u64 {
    let bits = u64::BITS - n.leading_zeros();
    let Some(groups) = (u64::from(bits) * 84 / 256).checked_sub(1).filter(|_| bits >= 7) else {
        return (ESTIMATES[n as usize] + 35) / 64;
    };
    let estimate = ((ESTIMATES[(n >> (3 * groups)) as usize] + 10) << groups) / 64;
    // Thirds as 341/1024.
    (2 * estimate + n / (estimate * (estimate - 1))) * 341 / 1024
}

/// 64 times the cube roots of 0 to 63, less 10, tuned to the error of the step that follows
/// (the figures are those of Linux's `tcp_cubic.c`).
const ESTIMATES: [u64; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168,
    170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213,
    215, 217, 219, 221, 222, 224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245,
    246, 248, 250, 251, 252, 254,
];

/// While the window stands, `count` holds for a 32nd of a second.
const HOLD_TICKS: u64 = TICKS_PER_SEC / 32;
/// In 1/1024: a loss takes something.
const LARGEST_BETA: u64 = 1_023;

#[cfg(test)]
#[path = "cubic/tests.rs"]
mod tests;
