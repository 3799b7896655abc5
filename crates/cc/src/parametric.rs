//! `aimd(a,b)`, `aiad(a,b)`, `mimd(a,b)`, `miad(a,b)`: the family of linear controls (Chiu and Jain,
//! "Analysis of the increase and decrease algorithms", 1989) behind Reno's slow start.
//!
//! ```text
//! additive increase         cwnd += a mss      per round trip
//! multiplicative increase   cwnd *= a          per round trip
//! additive decrease         cwnd -= b mss      on loss
//! multiplicative decrease   cwnd *= b          on loss
//! ```
//!
//! A timeout leaves slow start to bring the window back, as Reno. Defaults are the four
//! settings that the authors of TCP Muzha (2006) ended with: AIMD(1, 0.8), AIAD(1, 3),
//! MIMD(1.125, 0.8), MIAD(1.125, 3). `aimd(1,0.5)` is Reno.
//!
//! Parameters are exact thousandths: `a` in segments or as a factor, `b` in segments or as the factor
//! that remains. The window grows in whole segments and stays whole.

use weir_units::Bytes;

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, Decimal};

/// How the window grows per round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// By a number of segments.
    Add(Decimal),
    /// By this factor, above one.
    Multiply(Decimal),
}

/// How the window shrinks on loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decrease {
    /// By a number of segments.
    Subtract(Decimal),
    /// To this part, below one.
    Multiply(Decimal),
}

/// A window with linear control.
#[derive(Clone, Debug)]
pub struct Parametric {
    window: AckClockedWindow,
    increase: Increase,
    decrease: Decrease,
}

impl Parametric {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes, increase: Increase, decrease: Decrease) -> Self {
        Self { window: AckClockedWindow::new(initial_window), increase, decrease }
    }

    /// The bytes to acknowledge per segment of growth.
    fn bytes_per_segment(&self, mss: Bytes) -> Bytes {
        match self.increase {
            Increase::Add(a) => a.divide(self.window.cwnd),
            Increase::Multiply(a) => a.less_one().divide(mss),
        }
    }
}

impl CongestionController for Parametric {
    fn name(&self) -> &'static str {
        match (self.increase, self.decrease) {
            (Increase::Add(_), Decrease::Multiply(_)) => "aimd",
            (Increase::Add(_), Decrease::Subtract(_)) => "aiad",
            (Increase::Multiply(_), Decrease::Multiply(_)) => "mimd",
            (Increase::Multiply(_), Decrease::Subtract(_)) => "miad",
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let (decrease, mss) = (self.decrease, cx.mss);
        self.window.on_congestion(cx, event, |cwnd| match decrease {
            Decrease::Subtract(b) => cwnd.saturating_sub(b.multiply(mss)),
            Decrease::Multiply(b) => b.multiply(cwnd),
        });
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if may_raise(cx, ack) && cx.cwnd_limited {
            let beyond = self.window.slow_start(ack.acked);
            self.window.additive_increase(cx.mss, self.bytes_per_segment(cx.mss), beyond);
        }
    }

    ack_clocked_window!(on_spurious, phase);
}
