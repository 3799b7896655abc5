//! `westwood`: Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+,
//! New Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004), as Linux 6.1 has it
//! (`tcp_westwood.c`): Reno that falls back to what the path was seen to carry.
//!
//! ```text
//! growth          as Reno
//! loss, mark      ssthresh = cwnd / 2;  cwnd = ssthresh = bwe rtt_min  when the episode ends
//! timeout         ssthresh = bwe rtt_min,  cwnd = in flight + 1 mss
//! once per max(rtt, interval):
//!   sample = bytes acknowledged in the interval / interval
//!   once   = (1 - gain) once + gain sample
//!   bwe    = (1 - gain) bwe  + gain once
//! ```
//!
//! Units as in the kernel, every quotient rounded down: time in ticks of 1 ms (`HZ` = 1000), RTTs
//! rounded up to ticks, rates in bytes per tick, `bwe rtt_min` in whole segments, at least two. A
//! duplicate acknowledgement counts as a segment, which a later, larger one then lacks: but only
//! one that header prediction does not expect, because Linux looks for that in its slow path only.
//!
//! Deviations from the paper, which are Linux's: two filters in series, with constant coefficients;
//! intervals of 50 ms at least; `rtt_min` is measured anew after a timeout; the window moves to
//! `bwe rtt_min` at the end of an episode, towards half of itself before. Deviations from Linux: the
//! first interval begins with the first data, not with the connection; an unfounded reduction is
//! taken back in full.
//!
//! Parameters: `interval`, the shortest time that one sample is over (50 ms), and `gain`, the weight of a
//! new sample in the filters (1/8).

use weir_units::{Bytes, Duration, Instant};

use crate::ticks::ticks;
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Gain, Needs, RecoveryState,
    Variable,
};

/// Westwood+'s window.
#[derive(Clone, Debug)]
pub struct Westwood {
    window: AckClockedWindow,
    estimate: Estimate,
    /// A reduction is in progress; at its end the window moves to the estimate.
    reducing: bool,
}

impl Westwood {
    /// Starts with `initial_window`; a sample of the bandwidth is over `interval` at least and has the
    /// weight `gain`.
    pub fn new(initial_window: Bytes, interval: Duration, gain: Gain) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window),
            estimate: Estimate {
                shortest: interval.as_micros().div_ceil(1_000),
                gain,
                ..Estimate::default()
            },
            reducing: false,
        }
    }

    /// The episode is over (Linux's `CA_EVENT_COMPLETE_CWR`).
    fn complete(&mut self, mss: Bytes) {
        self.reducing = false;
        self.window.ssthresh = self.estimate.window(mss);
        self.window.cwnd = self.window.ssthresh;
    }
}

impl CongestionController for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn needs(&self) -> Needs {
        Needs { every_ack: true, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        self.estimate.opened.get_or_insert(ticks(cx.now));
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let timeout = matches!(event.cause, Cause::Timeout { .. });
        let estimate = self.estimate.window(cx.mss);
        self.window.on_congestion(cx, event, |cwnd| if timeout { estimate } else { cwnd / 2 });
        self.reducing = !timeout && (self.reducing || event.first_in_epoch);
        if timeout && event.first_in_epoch {
            self.estimate.rtt_min = None;
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.estimate.on_ack(cx, ack);
        if self.reducing && !matches!(cx.state, RecoveryState::Recovery | RecoveryState::Cwr) {
            self.complete(cx.mss);
        }
        if may_raise(cx, ack) {
            self.window.grow_as_reno(cx, ack.acked);
        }
    }

    /// For the acknowledgement that begins the next episode too; otherwise `on_ack` was first.
    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        if self.reducing {
            self.complete(cx.mss);
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
        self.reducing = false;
    }

    ack_clocked_window!(phase);

    fn variables(&self) -> Vec<Variable> {
        let ticks_per_sec = crate::ticks::TICKS_PER_SEC as f64;
        let mut found = vec![("bw_mbps", self.estimate.twice as f64 * 8.0 * ticks_per_sec / 1e6)];
        let least = self.estimate.rtt_min;
        found.extend(least.map(|ticks| ("min_rtt_ms", ticks as f64 * 1e3 / ticks_per_sec)));
        found
    }
}

/// What the path carries, and how long it is when empty.
#[derive(Clone, Debug, Default)]
struct Estimate {
    /// In ticks: the shortest interval.
    shortest: u64,
    gain: Gain,
    /// Bytes per tick, filtered once and twice.
    once: u64,
    twice: u64,
    /// The tick at which the interval began, and the bytes acknowledged since.
    opened: Option<u64>,
    bytes: u64,
    /// Up to where bytes were counted; the first acknowledgement only sets it.
    counted: Option<u64>,
    /// Bytes counted for duplicates that a later acknowledgement will cover.
    ahead: u64,
    /// In ticks. No minimum: the next acknowledgement sets it.
    rtt: u64,
    rtt_min: Option<u64>,
}

impl Estimate {
    fn on_ack(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt.filter(|rtt| *rtt >= Duration::from_micros(1)) {
            self.rtt = rtt.as_micros().div_ceil(1_000);
        }
        let counted = *self.counted.get_or_insert(cx.snd_una);
        self.end_interval(cx.now);
        self.bytes += if ack.predicted {
            cx.snd_una - counted
        } else {
            self.count(cx.snd_una - counted, cx.mss.get())
        };
        self.counted = Some(cx.snd_una);
        self.rtt_min = Some(self.rtt_min.map_or(self.rtt, |min| min.min(self.rtt)));
    }

    /// `westwood_update_window`.
    fn end_interval(&mut self, now: Instant) {
        let now = ticks(now);
        let interval = now - *self.opened.get_or_insert(now);
        if self.rtt == 0 || interval <= self.rtt.max(self.shortest) {
            return;
        }
        let sample = self.bytes / interval;
        if (self.once, self.twice) == (0, 0) {
            (self.once, self.twice) = (sample, sample);
        } else {
            self.once = self.gain.filtered(self.once, sample);
            self.twice = self.gain.filtered(self.twice, self.once);
        }
        self.bytes = 0;
        self.opened = Some(now);
    }

    /// What an acknowledgement that moves `snd_una` by `moved` says to have arrived
    /// (`westwood_acked_count`).
    fn count(&mut self, moved: u64, mss: u64) -> u64 {
        if moved == 0 {
            self.ahead += mss;
            return mss;
        }
        if moved <= mss {
            return moved;
        }
        if self.ahead >= moved {
            self.ahead -= moved;
            return mss;
        }
        moved - std::mem::take(&mut self.ahead)
    }

    /// The window that fills the path without a queue.
    fn window(&self, mss: Bytes) -> Bytes {
        let bytes = self.twice * self.rtt_min.unwrap_or_default();
        mss * (bytes / mss.get()).max(2)
    }
}
