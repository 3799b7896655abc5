//! Busy polling for an answer that is about to arrive.
//!
//! To go to sleep and be woken takes tens of microseconds, in a virtual machine a hundred: most of what
//! a handshake takes on one machine or between neighbours. So an endpoint that waits for the other half of one
//! looks again and again for a moment before it sleeps.

use weir_units::{Duration, Instant};

/// Whether to poll without blocking. Remote peers cannot keep it polling: for [`REST`] after one poll began no other does.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    until: Instant,
    next: Instant,
}

impl BusyPoll {
    /// An answer is about to come.
    pub(super) fn begin(&mut self, now: Instant) {
        if now >= self.next {
            self.until = now + LENGTH;
            self.next = now + REST;
        }
    }

    /// Whether to look again rather than to sleep.
    pub(super) fn is_active(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// The other side has to be woken too, and a small file may take a second round trip.
const LENGTH: Duration = Duration::from_micros(600);
/// So at most 3 % of a core are spent.
const REST: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_peers_cannot_keep_us_polling() {
        let mut busy_poll = BusyPoll::default();
        let mut polled = 0;
        for micros in 0..100_000 {
            let now = Instant::from_nanos(1_000_000_000 + micros * 1_000);
            busy_poll.begin(now);
            polled += u64::from(busy_poll.is_active(now));
        }
        assert_eq!(polled, 3_000, "of 100 000 us");
    }
}
