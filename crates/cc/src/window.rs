//! The window that the loss-based controllers share: slow start, additive increase with an exact
//! remainder, reduction with a checkpoint to undo it.

use weir_units::Bytes;

use crate::{Cause, CcContext, PathEvent, RecoveryState};

/// `ssthresh` before the first loss. Half of the range, so that sums with it cannot overflow.
const INFINITE: Bytes = Bytes(u64::MAX / 2);

/// A window with a slow-start threshold.
#[derive(Clone, Debug)]
pub(crate) struct AckClockedWindow {
    pub(crate) cwnd: Bytes,
    pub(crate) ssthresh: Bytes,
    initial: Bytes,
    /// Bytes acknowledged towards the next segment of additive increase.
    credit: Bytes,
    /// `cwnd` and `ssthresh` before the last reduction.
    checkpoint: Option<(Bytes, Bytes)>,
}

impl AckClockedWindow {
    pub(crate) fn new(initial: Bytes) -> Self {
        Self { cwnd: initial, ssthresh: INFINITE, initial, credit: Bytes::ZERO, checkpoint: None }
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
        let per = per.max(mss);
        // Credit left from a larger `per` is worth one segment, no more.
        if self.credit >= per {
            self.credit = Bytes::ZERO;
            self.cwnd += mss;
        }
        self.credit += acked;
        if self.credit >= per {
            let segments = self.credit.get() / per.get();
            self.credit -= per * segments;
            self.cwnd += mss * segments;
        }
    }

    /// Lowers the threshold to `ssthresh` (at least two segments) and the window to it, or to one
    /// segment on a timeout.
    pub(crate) fn reduce(&mut self, mss: Bytes, cause: Cause, ssthresh: Bytes) {
        self.checkpoint = Some((self.cwnd, self.ssthresh));
        self.ssthresh = ssthresh.max(mss * 2);
        self.credit = Bytes::ZERO;
        self.cwnd = match cause {
            Cause::Timeout { .. } => mss,
            Cause::FastRetransmit | Cause::EcnEcho => self.ssthresh,
        };
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
    pub(crate) fn on_path(&mut self, _mss: Bytes, event: &PathEvent) {
        if let PathEvent::IdleRestart { idle, rto } = *event {
            let restart = self.initial.min(self.cwnd);
            self.ssthresh = self.ssthresh.max(self.cwnd.mul_ratio(3, 4));
            let mut idle = idle;
            while idle > rto && self.cwnd > restart {
                idle = idle - rto;
                self.cwnd = self.cwnd / 2;
            }
            self.cwnd = self.cwnd.max(restart);
            self.credit = Bytes::ZERO;
        }
    }

    /// Windows grow only when they were used, and not while the transport reduces them.
    pub(crate) fn may_grow(&self, cx: &CcContext<'_>) -> bool {
        cx.cwnd_limited && !matches!(cx.state, RecoveryState::Recovery | RecoveryState::Cwr)
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
