//! The window that the loss-based controllers share: slow start, additive increase with an exact
//! remainder, reduction with a checkpoint to undo it.
//!
//! It counts as Linux does, so that its windows can be compared with the kernel's ACK by ACK: what
//! lowers the window leaves whole segments.

use weir_units::Bytes;

use crate::{AckEvent, Cause, CcContext, CongestionEvent, PathEvent, RecoveryState};

/// `ssthresh` before the first loss. Half of the range, so that sums with it cannot overflow.
const INFINITE: Bytes = Bytes(u64::MAX / 2);

/// A window with a slow-start threshold.
#[derive(Clone, Debug)]
pub(crate) struct AckClockedWindow {
    pub(crate) cwnd: Bytes,
    pub(crate) ssthresh: Bytes,
    initial: Bytes,
    /// Bytes acknowledged towards the next segment of additive increase.
    pub(crate) credit: Bytes,
    /// `cwnd` and `ssthresh` to return to if the last reduction proves unfounded.
    checkpoint: Option<(Bytes, Bytes)>,
}

/// The methods of a controller whose field `window` is an [`AckClockedWindow`]; and of `on_spurious` and
/// `phase` those that are the window's own.
macro_rules! ack_clocked_window {
    (@on_spurious) => {
        fn on_spurious(&mut self, _cx: &mut $crate::CcContext<'_>) {
            self.window.undo();
        }
    };
    (@phase) => {
        fn phase(&self) -> &'static str {
            self.window.phase()
        }
    };
    ($($own:ident),*) => {
        $($crate::window::ack_clocked_window!(@$own);)*

        fn on_path(&mut self, cx: &mut $crate::CcContext<'_>, event: &$crate::PathEvent) {
            self.window.on_path(cx.mss, event);
        }

        fn replace_window(&mut self, cwnd: weir_units::Bytes, ssthresh: Option<weir_units::Bytes>) {
            self.window.cwnd = cwnd;
            self.window.ssthresh = ssthresh.unwrap_or(self.window.ssthresh);
        }

        fn cwnd(&self) -> weir_units::Bytes {
            self.window.cwnd
        }

        fn ssthresh(&self) -> Option<weir_units::Bytes> {
            self.window.finite_ssthresh()
        }
    };
}
pub(crate) use ack_clocked_window;

impl AckClockedWindow {
    pub(crate) fn new(initial: Bytes) -> Self {
        Self { cwnd: initial, ssthresh: INFINITE, initial, credit: Bytes::ZERO, checkpoint: None }
    }

    /// Slow start below `ssthresh`, `1 / cwnd` segments per segment above it (Linux's
    /// `tcp_reno_cong_avoid`).
    pub(crate) fn grow_as_reno(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        if cx.cwnd_limited {
            let beyond = self.slow_start(acked);
            self.additive_increase(cx.mss, self.cwnd, beyond);
        }
    }

    /// Grows by what was acknowledged up to `ssthresh`; what lies beyond is returned for congestion
    /// avoidance (Linux's `tcp_slow_start`).
    pub(crate) fn slow_start(&mut self, acked: Bytes) -> Bytes {
        if !self.in_slow_start() {
            return acked;
        }
        let target = (self.cwnd + acked).min(self.ssthresh);
        let beyond = acked - (target - self.cwnd);
        self.cwnd = target;
        beyond
    }

    /// Grows by one `mss` for every `per` bytes acknowledged (Linux's `tcp_cong_avoid_ai`).
    pub(crate) fn additive_increase(&mut self, mss: Bytes, per: Bytes, acked: Bytes) {
        if acked == Bytes::ZERO {
            return;
        }
        let per = per.max(Bytes(1));
        // Credit left from a larger `per` is worth one segment, no more.
        if self.credit >= per {
            self.credit = Bytes::ZERO;
            self.cwnd += mss;
        }
        self.credit += acked;
        let segments = self.credit.get() / per.get();
        self.credit -= per * segments;
        self.cwnd += mss * segments;
    }

    /// What every loss-based controller does on congestion: a new epoch lowers the threshold to what
    /// `reduced` makes of the window (two segments at least) and the window to it. A timeout, also
    /// one inside an epoch, restarts the window with one segment above what is still in flight
    /// (Linux's `tcp_enter_loss`).
    pub(crate) fn on_congestion(
        &mut self,
        cx: &CcContext<'_>,
        event: &CongestionEvent,
        reduced: impl FnOnce(Bytes) -> Bytes,
    ) {
        let timeout = matches!(event.cause, Cause::Timeout { .. });
        if event.first_in_epoch {
            // A mark is never taken back: the router did see a queue. Nor is what delays made it do.
            let undoable = !matches!(event.cause, Cause::EcnEcho | Cause::Delay);
            self.checkpoint = undoable.then(|| (self.cwnd, self.remembered_ssthresh(cx.mss)));
            self.ssthresh = whole_segments(reduced(self.cwnd), cx.mss).max(cx.mss * 2);
            self.cwnd = self.ssthresh;
        }
        if timeout {
            self.cwnd = cx.bytes_in_flight + cx.mss;
        }
        if timeout || event.first_in_epoch {
            self.credit = Bytes::ZERO;
        }
    }

    /// An episode without a reduction: there is nothing to take back.
    pub(crate) fn keep(&mut self) {
        self.checkpoint = None;
    }

    /// Takes back the last reduction (Linux's `tcp_undo_cwnd_reduction`).
    pub(crate) fn undo(&mut self) {
        if let Some((cwnd, ssthresh)) = self.checkpoint.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// RFC 5681 §4.1 as Linux's `tcp_cwnd_restart` does it: the window halves for every timeout that
    /// passed in silence, down to the initial window, and the threshold remembers it.
    pub(crate) fn on_path(&mut self, mss: Bytes, event: &PathEvent) {
        if let PathEvent::IdleRestart { mut idle, rto } = *event {
            let restart = self.initial.min(self.cwnd);
            self.ssthresh = self.remembered_ssthresh(mss);
            while idle > rto && !rto.is_zero() && self.cwnd > restart {
                idle -= rto;
                self.cwnd = whole_segments(self.cwnd / 2, mss);
            }
            self.cwnd = self.cwnd.max(restart);
        }
    }

    /// Three quarters of the window prove that the path carries at least that much (Linux's
    /// `tcp_current_ssthresh`).
    pub(crate) fn remembered_ssthresh(&self, mss: Bytes) -> Bytes {
        let segments = self.cwnd.get() / mss.get();
        self.ssthresh.max(mss * (segments / 2 + segments / 4))
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    pub(crate) fn finite_ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh < INFINITE).then_some(self.ssthresh)
    }

    pub(crate) fn phase(&self) -> &'static str {
        if self.in_slow_start() { "slow_start" } else { "congestion_avoidance" }
    }
}

/// Whether the window may grow at all: the acknowledgement moved `snd_una`, or where the path reorders
/// delivered anything, and the transport is not busy lowering the window (Linux's `tcp_may_raise_cwnd`).
pub(crate) fn may_raise(cx: &CcContext<'_>, ack: &AckEvent) -> bool {
    let news = if ack.any_order { ack.acked } else { ack.cum_acked };
    news > Bytes::ZERO && !matches!(cx.state, RecoveryState::Recovery | RecoveryState::Cwr)
}

/// How many segments an acknowledgement covers cumulatively, a short one as a whole (Linux's `pkts_acked`).
pub(crate) fn covered_segments(ack: &AckEvent, mss: Bytes) -> u64 {
    ack.cum_acked.get().div_ceil(mss.get())
}

/// `bytes` less what does not fill a segment.
pub(crate) fn whole_segments(bytes: Bytes, mss: Bytes) -> Bytes {
    mss * (bytes.get() / mss.get())
}
