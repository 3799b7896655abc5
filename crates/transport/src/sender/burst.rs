//! Bursts of several segments, as segmentation offload makes them.
//!
//! ```text
//! size    a 1024th of what the rate sends in a second, plus 64 KiB >> (min_rtt / 512 us), in segments;
//!         at least 2, at most what the window allows and `gso`           (tcp_tso_autosize)
//! rate    the controller's; without one max(cwnd, outstanding) / srtt,
//!         doubled below half of ssthresh, else 6/5 of it                 (tcp_update_pacing_rate)
//! waits   for the next acknowledgement if that would let more leave      (tcp_tso_should_defer)
//! ```
//!
//! A burst is paced as a whole. Everything else counts segments as without bursts. Retransmissions
//! leave one by one.

use weir_cc::RecoveryState;
use weir_units::{Bytes, Duration, Instant, Rate};

use super::Sender;

/// The burst that is leaving.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// The most segments in one; 1 for none.
    most: u64,
    /// Segments of the present burst that are still to leave.
    left: u64,
    /// The window would let something leave, which waits to leave with more.
    pub(super) waiting: bool,
}

impl Bursts {
    pub(super) fn new(most: u32) -> Self {
        Self { most: u64::from(most), left: 0, waiting: false }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// Nothing more can leave now.
    pub(super) fn end(&mut self) {
        self.left = 0;
    }
}

impl Sender {
    /// A new segment is about to leave: the first of a burst, or one more.
    pub(super) fn count_into_burst(&mut self) {
        if self.bursts.most == 1 {
            return;
        }
        let left = match self.bursts.left {
            0 => self.burst_size().min(self.space_in_window() / self.mss),
            left => left,
        };
        self.bursts.left = left.saturating_sub(1);
    }

    /// Whether new data that may leave should rather wait for the next acknowledgement.
    pub(super) fn waits_for_a_burst(&mut self, now: Instant) -> bool {
        self.bursts.waiting = self.bursts.most > 1
            && !self.bursts.is_under_way()
            && !matches!(self.epoch.state(), RecoveryState::Recovery | RecoveryState::Loss)
            && self.more_will_fit_soon(now);
        self.bursts.waiting
    }

    /// Linux's `tcp_tso_should_defer`, which gives data at the end of the stream a chance to be added
    /// to; here nothing waits for that.
    fn more_will_fit_soon(&self, now: Instant) -> bool {
        let last = self.last_sent_at.max(self.pacer.next_departure());
        let (Some(head), Some(srtt)) = (self.board.first(), self.rtt.srtt()) else { return false };
        let space = self.space_in_window();
        let largest = self.edge().saturating_sub(self.board.una()).min(self.cwnd().get());
        let enough =
            (self.burst_size() * self.mss).min(largest / WINDOW_SHARE).min(self.new_data());
        let soon = LARGEST_WAIT.min(srtt / 2);
        now.saturating_since(last) <= LARGEST_WAIT
            && space < enough
            && head.sent_at.saturating_add(srtt) <= now.saturating_add(soon)
    }

    /// What the congestion window and the peer's let leave now.
    fn space_in_window(&self) -> u64 {
        let space = self.cwnd().get().saturating_sub(self.board.in_flight().get());
        space.min(self.new_data_in_window()).max(self.mss)
    }

    fn burst_size(&self) -> u64 {
        let rate = self.pacing_rate().or_else(|| self.window_rate()).unwrap_or(Rate::ZERO);
        let in_a_tick = rate.as_bits_per_sec() / 8 / 1_024;
        let min_rtt = self.rtt.min().unwrap_or_default().as_micros();
        let on_short_paths = LARGEST_BURST.checked_shr((min_rtt / 512).min(63) as u32);
        let bytes = (in_a_tick + on_short_paths.unwrap_or(0)).min(LARGEST_BURST);
        (bytes / self.mss).max(LEAST_SEGMENTS).min(self.bursts.most)
    }

    /// The rate that Linux derives from the window where the controller sets none; `None` before the
    /// first measured round trip.
    pub(super) fn window_rate(&self) -> Option<Rate> {
        let cwnd = self.cwnd().get();
        let window = Bytes(cwnd.max(self.board.outstanding()));
        let rate = self.rtt.srtt().and_then(|srtt| Rate::from_transfer(window, srtt))?;
        let early = self.controller.ssthresh().is_none_or(|ssthresh| cwnd < ssthresh.get() / 2);
        let (num, den) = if early { (2, 1) } else { (6, 5) };
        Some(rate.mul_ratio(num, den))
    }
}

/// Linux's `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u64 = 2;
/// A GSO packet's 64 KiB less the space for headers.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;
/// A third of the window is worth sending (Linux's `tcp_tso_win_divisor`).
const WINDOW_SHARE: u64 = 3;
const LARGEST_WAIT: Duration = Duration::from_millis(1);
