//! `timely`: TIMELY (Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015), a rate
//! that follows the gradient of the round trip.
//!
//! ```text
//! once per round trip, with its newest RTT:
//!   diff = (1 - alpha) diff + alpha (RTT - previous RTT);  gradient = diff / min
//!   RTT < low          rate += add
//!   RTT > high         rate *= 1 - beta (1 - high / RTT)
//!   gradient <= 0      rate += add, five times that from the fifth time in a row on
//!   gradient > 0       rate *= 1 - beta gradient
//! ```
//!
//! The defaults are those of HPCC's simulator for links of 100 Gbit/s (HPCC, SIGCOMM 2019, its public code); the
//! paper's `add` is 10 Mbit/s, for links of 10 Gbit/s.
//!
//! Deviations: the paper starts a flow at the line rate over the number of the host's flows. A sender here knows
//! neither: it doubles its rate per round trip until the RTT reaches `low`, or a loss. A gradient above 1 counts as 1.
//! The paper assumes a network without loss: a loss, a timeout or a mark halves the rate, once per epoch. The rate
//! is at least 1 Mbit/s, and does not rise while the application limits it. The window is two round trips' worth.
//!
//! `low` and `high` have the round trip of the path in them: over a longer path the rate falls to its smallest.
//!
//! Parameters: `low`, 50 us; `high`, 500 us; `min`, 20 us; `alpha`, 0.875; `beta`, 0.8; `add`, 100 Mbit/s.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::paced::{PacedRate, mul_div, paced_rate};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, Decimal, Needs, Variable};

/// The parameters of TIMELY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelyShape {
    /// Below this round trip the rate always rises.
    pub low: Duration,
    /// Above this one it always falls.
    pub high: Duration,
    /// The round trip that gradients are relative to.
    pub min: Duration,
    /// The weight of a new difference.
    pub alpha: Decimal,
    /// The weight of a reduction.
    pub beta: Decimal,
    /// What a step adds.
    pub add: Rate,
}

/// TIMELY's rate.
#[derive(Clone, Debug)]
pub struct Timely {
    shape: TimelyShape,
    paced: PacedRate,
    previous: Option<Duration>,
    /// The filtered difference of round trips, in nanoseconds.
    diff: i64,
    /// Steps in a row without a rising gradient.
    calm: u32,
    updated_at: Instant,
}

impl TimelyShape {
    /// 50 us, 500 us, 20 us, 0.875, 0.8, 100 Mbit/s.
    pub const DEFAULT: Self = Self {
        low: Duration::from_micros(50),
        high: Duration::from_micros(500),
        min: Duration::from_micros(20),
        alpha: Decimal::SEVEN_EIGHTHS,
        beta: Decimal::FOUR_FIFTHS,
        add: Rate::from_mbit(100),
    };
}

impl Timely {
    /// Starts with `initial_window` per round trip.
    pub fn new(initial_window: Bytes, shape: TimelyShape) -> Self {
        Self {
            shape,
            paced: PacedRate::new(initial_window, LEAST, MOST),
            previous: None,
            diff: 0,
            calm: 0,
            updated_at: Instant::ZERO,
        }
    }

    fn update(&mut self, cx: &CcContext<'_>, rtt: Duration) {
        self.updated_at = cx.now;
        let previous = self.previous.replace(rtt).unwrap_or(rtt);
        let change = signed(rtt) - signed(previous);
        let alpha = i128::from(self.shape.alpha.thousandths());
        let diff = ((1_000 - alpha) * i128::from(self.diff) + alpha * i128::from(change)) / 1_000;
        self.diff = diff as i64;
        let rate = self.rate_after(rtt);
        if rate <= self.paced.get() || !cx.app_limited {
            self.paced.set(cx, rate);
        }
    }

    fn rate_after(&mut self, rtt: Duration) -> u64 {
        let (rate, add) = (self.paced.get(), self.shape.add.as_bits_per_sec());
        if rtt < self.shape.low {
            return rate.saturating_add(add);
        }
        if rtt > self.shape.high {
            self.calm = 0;
            let excess = rtt.saturating_sub(self.shape.high);
            return self.reduced(rate, excess.as_nanos(), rtt.as_nanos());
        }
        if self.diff <= 0 {
            self.calm = self.calm.saturating_add(1);
            let steps = if self.calm >= CALM_STEPS { FAST_STEPS } else { 1 };
            return rate.saturating_add(add.saturating_mul(steps));
        }
        self.calm = 0;
        let min = self.shape.min.as_nanos().max(1);
        self.reduced(rate, self.diff.unsigned_abs().min(min), min)
    }

    /// `rate (1 - beta num / den)`.
    fn reduced(&self, rate: u64, num: u64, den: u64) -> u64 {
        rate - mul_div(mul_div(rate, num, den), self.shape.beta.thousandths().into(), 1_000)
    }
}

impl CongestionController for Timely {
    fn name(&self) -> &'static str {
        "timely"
    }

    fn needs(&self) -> Needs {
        Needs { own_reduction: true, pacing: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.paced.on_loss(cx, event, |rate| rate / 2);
        self.calm = 0;
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let (Some(rtt), Some(srtt)) = (ack.rtt, cx.rtt.srtt) else { return };
        if ack.acked == Bytes::ZERO {
            return;
        }
        if self.paced.is_starting() {
            self.paced.double(cx, ack.acked);
            if rtt >= self.shape.low {
                self.paced.end_start(cx);
            }
            self.previous = Some(rtt);
        } else if cx.now.saturating_since(self.updated_at) >= srtt {
            self.update(cx, rtt);
        }
    }

    paced_rate!();

    fn phase(&self) -> &'static str {
        if self.paced.is_starting() { "start" } else { "gradient" }
    }

    fn variables(&self) -> Vec<Variable> {
        let min = self.shape.min.as_nanos().max(1) as f64;
        vec![("gradient", self.diff as f64 / min)]
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

const LEAST: Rate = Rate::from_mbit(1);
const MOST: Rate = Rate::from_mbit(1_000_000);
/// The paper's N and the completions in a row that it takes.
const FAST_STEPS: u64 = 5;
const CALM_STEPS: u32 = 5;

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    const MSS: Bytes = Bytes(1_000);

    /// Round trips of these lengths in microseconds, after a start that ended at 8 Gbit/s; the rate in Mbit/s after each.
    fn rates(rtts: &[u64]) -> Vec<u64> {
        let mut cc = Timely::new(MSS * 49, TimelyShape::DEFAULT);
        let mut now = Instant::ZERO;
        let mut rng = stream(1, "unused");
        let mut round = |micros: u64| {
            let rtt = Duration::from_micros(micros);
            now += rtt;
            let mut cx = CcContext::new(now, MSS, &mut rng);
            cx.rtt.srtt = Some(rtt);
            cc.on_ack(&mut cx, &AckEvent { acked: MSS, rtt: Some(rtt), ..AckEvent::default() });
            cc.paced.get() / 1_000_000
        };
        assert_eq!(round(50), 8_000);
        rtts.iter().map(|rtt| round(*rtt)).collect()
    }

    #[test]
    fn the_rate_rises_below_low_and_falls_above_high() {
        assert_eq!(rates(&[49, 40]), [8_100, 8_200]);
        assert_eq!(rates(&[1_000]), [4_800], "1 - 0.8 (1 - 500 / 1000)");
    }

    #[test]
    fn the_rate_follows_the_gradient_in_between() {
        // A difference of 8 us counts by 0.875, over 20 us: 0.35, times 0.8.
        assert_eq!(rates(&[58]), [5_760]);
        assert_eq!(rates(&[50; 6]), [8_100, 8_200, 8_300, 8_400, 8_900, 9_400]);
        assert_eq!(rates(&[400]), [1_600], "a gradient above 1 counts as 1");
    }
}
