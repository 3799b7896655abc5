//! `lp`: TCP-LP, Reno for what must not disturb others: it gives way as soon as the one-way delay rises
//! (Kuzmanovic and Knightly, "TCP-LP: A distributed algorithm for low priority data transfer", INFOCOM
//! 2003), as Linux 6.1 has it (`tcp_lp.c`).
//!
//! ```text
//! growth   as Reno, but not for 3 round trips after giving way
//! loss     as Reno
//! with each RTT sample:
//!   owd  = peer's timestamp * (1000 / hz) - ours that it echoes,  hz the rate of the peer's clock
//!   sowd = 7/8 sowd + 1/8 owd;  owd_min, owd_max its extremes, of which the largest is left out
//! with each acknowledgement, if sowd >= owd_min + 15 % (owd_max - owd_min):
//!   within 3 round trips of the last time:  cwnd = 1 mss,  otherwise cwnd / 2
//!   owd_min = sowd,  owd_max = 2 sowd
//! ```
//!
//! Units as in the kernel: everything has 32 bits, in ms, `sowd` in 1/8, and what does not fit wraps. `hz` is
//! estimated from the timestamps of each acknowledgement and the one before, as 63/64 of the old value and 1/64
//! of the new, rounded down.
//!
//! **What Linux makes of it.** Its hosts add a random offset to their timestamps (`tcp_timestamps` = 1, RFC 7323
//! §5.4), and TCP-LP takes the peer's for a delay. One of 2^29 ms and more, which are seven of eight, does not fit into
//! `sowd`, which then is always below `owd_min`: such a connection is Reno's twin. Below, it gives way once, and
//! then 15 % of the offset must be exceeded. `offsets=random`, the default, is that: one draw per connection, from
//! its own stream. `offsets=none` is `tcp_timestamps` = 2 between hosts whose clocks agree, where delays
//! are delays. Without timestamps it is Reno.
//!
//! Where the estimate of `hz` is not 1000, the delay is a multiple of the clocks' own values, so it also depends on
//! how long the hosts have run.
//!
//! Deviations from the paper, which are Linux's: the reset of the extremes; slow start as Reno's.

use weir_units::Bytes;

use crate::ticks::ticks;
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{
    AckEvent, AckTimestamps, CcContext, CongestionController, CongestionEvent, Needs,
    RecoveryState, Variable,
};

/// What the clocks of both hosts show at the beginning, in ms: in the guest with Linux that runs are compared with, a run
/// begins after ten seconds.
const UPTIME: u32 = 10_000;

/// What the peer adds to its timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offsets {
    /// Something random, drawn per connection.
    #[default]
    Random,
    /// Nothing.
    None,
}

/// TCP-LP's window.
#[derive(Clone, Debug)]
pub struct Lp {
    window: AckClockedWindow,
    offsets: Offsets,
    /// The peer's, once there was a timestamp.
    offset: Option<u32>,
    clock: PeerClock,
    delay: Delay,
    /// When it last gave way, in ms.
    gave_way_at: Option<u32>,
    /// Three round trips, in ms.
    inference: u32,
    is_holding: bool,
}

/// The peer's clock: ticks per second, and the timestamps last seen.
#[derive(Clone, Copy, Debug, Default)]
struct PeerClock {
    hz: i64,
    value: u32,
    echo: u32,
}

/// One-way delays in ms, but `smoothed` in 1/8.
#[derive(Clone, Copy, Debug)]
struct Delay {
    smoothed: u32,
    min: u32,
    max: u32,
    /// The largest, which is not believed before a second one comes near.
    reserve: u32,
}

impl Lp {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes, offsets: Offsets) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            offsets,
            offset: None,
            clock: PeerClock::default(),
            delay: Delay { smoothed: 0, min: u32::MAX, max: 0, reserve: 0 },
            gave_way_at: None,
            inference: 0,
            is_holding: false,
        }
    }

    /// `tcp_lp_pkts_acked`.
    fn measure(&mut self, cx: &mut CcContext<'_>, stamps: AckTimestamps, is_timed: bool) {
        let offset = *self.offset.get_or_insert_with(|| match self.offsets {
            Offsets::Random => cx.rng.next_u32(),
            Offsets::None => 0,
        });
        let echo = stamps.echo.wrapping_add(UPTIME);
        if is_timed {
            let peer = stamps.value.wrapping_add(UPTIME).wrapping_add(offset);
            if let Some(owd) = self.clock.one_way_delay(peer, echo) {
                self.delay.sample(owd);
            }
        }
        let now = (ticks(cx.now) as u32).wrapping_add(UPTIME);
        let rtt = now.wrapping_sub(echo);
        if rtt > 0 && rtt <= i32::MAX as u32 {
            self.inference = rtt.wrapping_mul(3);
        }
        self.is_holding = self.gave_way_at.is_some_and(|at| now.wrapping_sub(at) < self.inference);
        if self.delay.is_low() {
            return;
        }
        self.delay.begin_anew();
        self.give_way(cx);
        // Zero is never in Linux.
        self.gave_way_at = Some(now).filter(|now| *now > 0);
    }

    fn give_way(&mut self, cx: &CcContext<'_>) {
        // In an episode the window is PRR's, and where it ends is settled.
        if matches!(cx.state, RecoveryState::Recovery | RecoveryState::Cwr) {
            return;
        }
        let half = self.window.cwnd.get() / cx.mss.get() / 2;
        self.window.cwnd = cx.mss * if self.is_holding { 1 } else { half.max(1) };
    }
}

impl CongestionController for Lp {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn needs(&self) -> Needs {
        Needs { timestamps: true, measures_first: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_delivery(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if let Some(stamps) = ack.timestamps {
            let is_timed = ack.rtt.is_some_and(|rtt| rtt.as_micros() > 0);
            self.measure(cx, stamps, is_timed);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if may_raise(cx, ack) && !self.is_holding {
            self.window.grow_as_reno(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious);

    fn phase(&self) -> &'static str {
        if self.is_holding { "inference" } else { self.window.phase() }
    }

    fn variables(&self) -> Vec<Variable> {
        if self.delay.max == 0 {
            return Vec::new();
        }
        vec![
            ("owd_ms", f64::from(self.delay.smoothed) / 8.0),
            ("owd_min_ms", f64::from(self.delay.min)),
            ("owd_max_ms", f64::from(self.delay.max)),
        ]
    }
}

impl PeerClock {
    /// `tcp_lp_owd_calculator`; nothing before the rate is known.
    fn one_way_delay(&mut self, value: u32, echo: u32) -> Option<u32> {
        self.estimate(value, echo);
        let scale = u32::try_from(1_000_i64.checked_div(self.hz)?).unwrap_or(0);
        let owd = value.wrapping_mul(scale).wrapping_sub(echo);
        (owd > 0).then_some(owd)
    }

    /// `tcp_lp_remote_hz_estimator`.
    fn estimate(&mut self, value: u32, echo: u32) {
        let known = self.value != 0 && self.echo != 0;
        let ticks = value.wrapping_sub(self.value);
        let passed = echo.wrapping_sub(self.echo);
        *self = Self { value, echo, ..*self };
        if known && ticks != 0 && passed != 0 {
            let hz = i64::from(1_000_u32.wrapping_mul(ticks) / passed);
            self.hz = if self.hz > 0 { (64 * self.hz + hz - self.hz) >> 6 } else { hz };
        }
    }
}

impl Delay {
    fn sample(&mut self, owd: u32) {
        self.min = self.min.min(owd);
        if owd > self.max {
            self.max = owd;
            if owd > self.reserve {
                if self.reserve > 0 {
                    self.max = self.reserve;
                }
                self.reserve = owd;
            }
        }
        self.smoothed = match self.smoothed {
            0 => owd << 3,
            smoothed => smoothed.wrapping_add(owd).wrapping_sub(smoothed >> 3),
        };
    }

    fn is_low(&self) -> bool {
        let above = 15_u32.wrapping_mul(self.max.wrapping_sub(self.min)) / 100;
        self.smoothed >> 3 < self.min.wrapping_add(above)
    }

    fn begin_anew(&mut self) {
        self.min = self.smoothed >> 3;
        self.max = self.smoothed >> 2;
        self.reserve = self.smoothed >> 2;
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Duration, Instant, stream};

    use super::*;

    /// `tcp_time_stamp_ts`: a quarter of a millisecond before the next whole one that one has begun, as for timestamps.
    #[test]
    fn its_clock_is_that_of_timestamps() {
        let mut rng = stream(1, "unused");
        let mut inference = |micros| {
            let mut lp = Lp::new(Bytes(14_480), Offsets::None);
            let now = Instant::ZERO + Duration::from_micros(micros);
            let timestamps = Some(AckTimestamps { value: 5, echo: 1 });
            let ack = AckEvent { timestamps, ..AckEvent::default() };
            lp.on_delivery(&mut CcContext::new(now, Bytes(1_448), &mut rng), &ack);
            lp.inference
        };
        assert_eq!((inference(10_740), inference(10_760)), (27, 30));
    }

    /// `tcp_lp_owd_calculator`: twice the peer's clock is taken to be 0 ms, and what is left is our own.
    #[test]
    fn a_clock_that_seems_fast_leaves_the_hosts_time() {
        let mut rng = stream(1, "unused");
        let mut lp = Lp::new(Bytes(14_480), Offsets::None);
        let now = Instant::ZERO + Duration::from_millis(50);
        for (value, echo) in [(5, 1), (25, 11)] {
            let rtt = Some(Duration::from_millis(40));
            let timestamps = Some(AckTimestamps { value, echo });
            let ack = AckEvent { rtt, timestamps, ..AckEvent::default() };
            lp.on_delivery(&mut CcContext::new(now, Bytes(1_448), &mut rng), &ack);
        }
        assert_eq!(lp.clock.hz, 2_000);
        assert_eq!(lp.delay.min, 0_u32.wrapping_sub(11 + UPTIME));
    }
}
