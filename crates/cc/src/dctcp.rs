//! `dctcp`: Data Center TCP (RFC 8257; Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010), as
//! Linux 6.1 has it (`tcp_dctcp.c`): Reno that answers marks by how many there are.
//!
//! ```text
//! once per window:  F     = segments acknowledged with an echo / segments acknowledged
//!                   alpha = (1 - g) alpha + g F
//! mark              ssthresh = cwnd (1 - alpha / 2)
//! loss, timeout     as Reno
//! growth            as Reno
//! ```
//!
//! Units as in the kernel: `alpha` in 1/1024, `alpha` below `1/g` of these falls to zero at once,
//! every quotient rounded down, windows in whole segments.
//!
//! A loss halves the window whatever `alpha` is (RFC 8257 §3.5), also where it falls into an episode
//! that a mark began. Deviation from Linux: it then halves the window that PRR has arrived at; here
//! it is what was in flight before the acknowledgement that shows the loss.
//!
//! The receiver must echo marks exactly (RFC 8257 §3.2), which the transport sees to. Without ECN
//! no echo ever arrives, and this is Reno, as in Linux.
//!
//! Parameters: `g`, the gain (Linux's `dctcp_shift_g`), 1/16; `alpha0`, where `alpha` starts (Linux's
//! `dctcp_alpha_on_init`), 1.

use std::fmt;
use std::str::FromStr;

use weir_units::{Bytes, Ecn};

use crate::window::{AckClockedWindow, ack_clocked_window, may_raise, whole_segments};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Needs,
    RecoveryState, Variable,
};

/// DCTCP's window.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: AckClockedWindow,
    gain: Gain,
    /// In 1/1024.
    alpha: u64,
    /// Where the window that is being observed ends, and the totals at its start.
    end: u64,
    delivered: Bytes,
    marked: Bytes,
}

/// The gain `g` of DCTCP's filter: a negative power of two from 1 to 1/1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain {
    shift: u8,
}

impl Dctcp {
    /// Starts with `initial_window` and `alpha` (at most 1).
    pub fn new(initial_window: Bytes, gain: Gain, alpha: Decimal) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            gain,
            alpha: (u64::from(alpha.thousandths()) * MAX_ALPHA / 1_000).min(MAX_ALPHA),
            end: 0,
            delivered: Bytes::ZERO,
            marked: Bytes::ZERO,
        }
    }

    /// RFC 8257 §3.3, `dctcp_update_alpha`: a window has been acknowledged. Where nothing is in flight an
    /// acknowledgement of nothing new ends an empty one.
    fn update_alpha(&mut self, cx: &CcContext<'_>) {
        if cx.snd_una < self.end {
            return;
        }
        let delivered = (cx.delivered - self.delivered).get().max(1);
        let marked = (cx.delivered_marked - self.marked).get();
        let decay = self.alpha >> self.gain.shift;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let rise = (marked << (10 - self.gain.shift)) / delivered;
        self.alpha = (self.alpha + rise).min(MAX_ALPHA);
        self.end = cx.snd_nxt;
        self.delivered = cx.delivered;
        self.marked = cx.delivered_marked;
    }
}

impl CongestionController for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn needs(&self) -> Needs {
        Needs { ecn: Ecn::Ect0, every_ack: true, ..Needs::default() }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if !matches!(event.cause, Cause::Timeout { .. }) {
            self.update_alpha(cx);
        }
        let in_cwr = cx.state == RecoveryState::Cwr;
        if in_cwr && !event.first_in_epoch && event.cause == Cause::FastRetransmit {
            let half = whole_segments(event.prior_in_flight / 2, cx.mss).max(cx.mss * 2);
            self.window.ssthresh = half.min(self.window.ssthresh);
            self.window.cwnd = self.window.ssthresh;
            return;
        }
        let (alpha, mss) = (self.alpha, cx.mss);
        self.window.on_congestion(cx, event, |cwnd| {
            let segments = cwnd.get() / mss.get();
            // Only the state of recovery halves (`dctcp_state`).
            if event.cause == Cause::EcnEcho || (in_cwr && event.cause == Cause::FastRetransmit) {
                mss * (segments - (segments * alpha / (2 * MAX_ALPHA)))
            } else {
                cwnd / 2
            }
        });
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.update_alpha(cx);
        if may_raise(cx, ack) {
            self.window.grow_as_reno(cx, ack.acked);
        }
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        vec![("alpha", self.alpha as f64 / MAX_ALPHA as f64)]
    }
}

impl Gain {
    /// 1/8.
    pub(crate) const EIGHTH: Self = Self { shift: 3 };
    /// 1/256.
    pub(crate) const DCQCN: Self = Self { shift: 8 };

    /// This share of `one`, rounded down.
    pub(crate) const fn of(self, one: u64) -> u64 {
        one >> self.shift
    }

    /// `old` moved towards `new` by this share of the way, rounded down.
    pub(crate) fn filtered(self, old: u64, new: u64) -> u64 {
        (((1 << self.shift) - 1) * old + new) >> self.shift
    }
}

impl Default for Gain {
    /// 1/16, as in the paper and in Linux.
    fn default() -> Self {
        Self { shift: 4 }
    }
}

/// A text that is no [`Gain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GainError;

impl FromStr for Gain {
    type Err = GainError;

    fn from_str(text: &str) -> Result<Self, GainError> {
        let (one, below) = text.split_once('/').unwrap_or((text, "1"));
        let below: u32 = below.trim().parse().map_err(|_| GainError)?;
        let valid = one.trim() == "1" && below.is_power_of_two() && below <= 1 << 10;
        if valid { Ok(Self { shift: below.trailing_zeros() as u8 }) } else { Err(GainError) }
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shift {
            0 => f.write_str("1"),
            shift => write!(f, "1/{}", 1_u32 << shift),
        }
    }
}

const MAX_ALPHA: u64 = 1_024;

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;

    /// A loss halves the window; one that a probe has repaired counts as marks do (`tcp_process_tlp_ack`).
    #[test]
    fn a_short_episode_takes_the_share_of_marks() {
        let mss = Bytes(1_000);
        let window_after = |state| {
            let mut rng = stream(1, "unused");
            let half = "dctcp(alpha0=0.5)".parse::<crate::CcConfig>().expect("a controller");
            let mut dctcp = half.build(mss, mss * 8).expect("a window");
            let mut cx = CcContext { state, ..CcContext::new(Instant::ZERO, mss, &mut rng) };
            let event = CongestionEvent {
                cause: Cause::FastRetransmit,
                first_in_epoch: true,
                lost: mss,
                prior_in_flight: mss * 8,
            };
            dctcp.on_congestion(&mut cx, &event);
            dctcp.cwnd()
        };
        assert_eq!(window_after(RecoveryState::Open), mss * 4);
        // A window without marks has taken a sixteenth of alpha; half of 0.469 of eight segments is one whole one.
        assert_eq!(window_after(RecoveryState::Cwr), mss * 7);
    }
}
