//! `hybla`: growth as over a path of 25 ms, whatever the RTT, so that satellites are no handicap (Caini and
//! Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J. Satellite
//! Communications and Networking 22, 2004), as Linux 6.1 has it (`tcp_hybla.c`).
//!
//! ```text
//! rho = srtt / rtt0, at least 1, from the smallest srtt
//! start                 cwnd = rho mss, rho rounded down
//! slow start            cwnd += (2^rho - 1) mss     per acknowledgement, to ssthresh at most
//! congestion avoidance  cwnd += rho^2 mss / cwnd    per acknowledgement
//! loss                  ssthresh = cwnd / 2
//! outside the open state: as Reno
//! ```
//!
//! Units as in the kernel: `rho` in 1/8, growth in 1/128 segment, every quotient rounded down, 2 to the
//! fraction of `rho` from a table of eighths. Where the growth rounds to nothing, a window of
//! acknowledgements brings one segment.
//!
//! Deviations from the paper, which are Linux's: `rho` follows the smallest smoothed RTT, with the reference
//! of 25 ms; growth counts acknowledgements, not what they acknowledge; it neither paces nor
//! estimates the bandwidth; the first window is `rho` segments where other controllers have ten, and no window
//! exceeds 65 535 segments.
//!
//! Parameter: `rtt0`, the RTT of the path as which it grows (25 ms).

use weir_units::{Bytes, Duration};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, CcContext, CongestionController, CongestionEvent, RecoveryState, Variable};

/// Hybla's window.
#[derive(Clone, Debug)]
pub struct Hybla {
    window: AckClockedWindow,
    /// The RTT of the path as which it grows.
    reference: Duration,
    /// Set when the first data leaves.
    pace: Option<Pace>,
    /// Growth that is no whole segment yet, in 1/128.
    fraction: u64,
}

/// How much faster than the reference it must grow.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// In 1/8.
    rho: u64,
    /// The smoothed RTT that it stems from, in 1/8 us, as Linux has it; zero without one.
    srtt: u64,
}

impl Hybla {
    /// Starts with `initial_window` until the handshake's RTT is known.
    pub fn new(initial_window: Bytes, reference: Duration) -> Self {
        Self { window: AckClockedWindow::new(initial_window), reference, pace: None, fraction: 0 }
    }

    /// `hybla_cong_avoid` in the open state.
    fn grow(&mut self, mss: Bytes, pace: Pace) {
        let window = &mut self.window;
        let slow_start = window.in_slow_start();
        let growth = if slow_start {
            let power = 1 << (pace.rho / 8).min(16);
            power * POWERS[(pace.rho % 8) as usize] - ONE
        } else {
            let segments = (window.cwnd.get() / mss.get()).max(1);
            let growth = pace.rho * pace.rho * 2 / segments;
            if growth < ONE {
                window.credit += mss;
            }
            growth
        };
        window.cwnd += mss * (growth / ONE);
        self.fraction += growth % ONE;
        if self.fraction >= ONE {
            self.fraction -= ONE;
            window.cwnd += mss;
            window.credit = Bytes::ZERO;
        }
        if growth == 0 && window.credit >= window.cwnd {
            window.cwnd += mss;
            window.credit = Bytes::ZERO;
        }
        let most = if slow_start { window.ssthresh } else { mss * LARGEST };
        window.cwnd = window.cwnd.min(most).min(mss * LARGEST);
    }
}

impl CongestionController for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        if self.pace.is_none() {
            let pace = Pace::measure(cx, self.reference);
            self.window.cwnd = cx.mss * (pace.rho / 8);
            self.pace = Some(pace);
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let Some(pace) = &mut self.pace else { return };
        if !may_raise(cx, ack) {
            return;
        }
        let now = Pace::measure(cx, self.reference);
        if now.srtt < pace.srtt {
            *pace = now;
        }
        let pace = *pace;
        if cx.state != RecoveryState::Open {
            self.window.grow_as_reno(cx, ack.acked);
        } else if cx.cwnd_limited {
            self.grow(cx.mss, pace);
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        self.pace.iter().map(|pace| ("rho", pace.rho as f64 / 8.0)).collect()
    }
}

impl Pace {
    /// `hybla_recalc_param`.
    fn measure(cx: &CcContext<'_>, reference: Duration) -> Self {
        let srtt = cx.rtt.srtt.map_or(0, |srtt| srtt.as_nanos() / 125);
        Self { rho: (srtt / reference.as_micros().max(1)).clamp(8, LARGEST_RHO), srtt }
    }
}

/// A segment of growth.
const ONE: u64 = 128;
/// 2^(i/8) in 1/128, as Linux rounds it.
const POWERS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// Segments.
const LARGEST: u64 = 65_535;
/// In 1/8: more than any window needs.
const LARGEST_RHO: u64 = 8 * LARGEST;
