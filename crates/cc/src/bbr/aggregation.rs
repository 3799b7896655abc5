//! How much more is acknowledged at once than the bandwidth explains: the extra window that keeps
//! the pipe full while a receiver, Wi-Fi or a modem holds ACKs back.
//!
//! `extra = acknowledged in the epoch - bandwidth * length of the epoch`; an epoch begins anew
//! whenever that falls to zero. The maximum is kept over two windows of five rounds each.

use weir_units::{Bytes, Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(crate) struct Aggregation {
    epoch_start: Instant,
    epoch_acked: Bytes,
    extra: [Bytes; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// The application resumes: what was held back before says nothing now.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.epoch_start = now;
        self.epoch_acked = Bytes::ZERO;
    }

    /// A round is over; maxima of one or two windows of `window` rounds count.
    pub(crate) fn next_round(&mut self, window: u32) {
        self.rounds += 1;
        if self.rounds >= window {
            self.rounds = 0;
            self.current = 1 - self.current;
            self.extra[self.current] = Bytes::ZERO;
        }
    }

    /// Processes `acked` bytes; `explained` are those that the bandwidth moves in a time.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        acked: Bytes,
        explained: impl Fn(Duration) -> Bytes,
        cwnd: Bytes,
    ) {
        let mut expected = explained(now.saturating_since(self.epoch_start));
        if self.epoch_acked <= expected {
            self.restart(now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += acked;
        let extra = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// The window to add: at most what the bandwidth moves in [`LONGEST`].
    pub(crate) fn window(&self, most: Bytes) -> Bytes {
        self.extra[0].max(self.extra[1]).min(most)
    }
}

/// Of each of the two windows.
pub(crate) const WINDOW_ROUNDS: u32 = 5;
/// Acknowledgements that are held back longer do not enlarge the window further.
pub(crate) const LONGEST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;

    /// 1000 bytes per millisecond.
    fn explained(time: Duration) -> Bytes {
        Rate::from_mbit(8).bytes_in(time)
    }

    #[test]
    fn a_burst_of_acks_counts_less_what_the_bandwidth_explains() {
        let cwnd = Bytes(1_000_000);
        let most = explained(LONGEST);
        let mut aggregation = Aggregation::default();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        aggregation.on_ack(at(10), Bytes(1_000), explained, cwnd);
        assert_eq!(aggregation.window(most), Bytes(1_000));
        aggregation.on_ack(at(10), Bytes(20_000), explained, cwnd);
        assert_eq!(aggregation.window(most), Bytes(21_000));
        // 5 ms explain 5000 bytes: 22 000 acknowledged by then leave 17 000, the maximum stays.
        aggregation.on_ack(at(15), Bytes(1_000), explained, cwnd);
        assert_eq!(aggregation.window(most), Bytes(21_000));
        (0..10).for_each(|_| aggregation.next_round(WINDOW_ROUNDS));
        assert_eq!(aggregation.window(most), Bytes::ZERO);
    }

    #[test]
    fn the_window_is_bounded_by_cwnd_and_by_the_most() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(Instant::from_nanos(1), Bytes(900_000), explained, Bytes(500_000));
        assert_eq!(aggregation.window(explained(LONGEST)), Bytes(100_000));
        assert_eq!(aggregation.window(Bytes::MAX), Bytes(500_000));
    }
}
