//! How much a receiver offers, as Linux sizes it (`tcp_rcv_space_adjust`): at first what the socket
//! holds, later twice what arrived within a round trip, so that a sender on a long path is not held up.

use weir_units::{Bytes, Duration, Instant};

/// How much a receiver offers; it only grows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: u64,
    limit: u64,
    /// When the present round began, and what had arrived by then.
    round: Option<(Instant, u64)>,
}

impl Window {
    pub(crate) fn new(first: Bytes, limit: Bytes) -> Self {
        Self { size: first.get().min(limit.get()), limit: limit.get(), round: None }
    }

    /// By `now`, `delivered` bytes have arrived over a path with this round trip.
    pub(crate) fn update(&mut self, now: Instant, delivered: u64, rtt: Duration) -> u64 {
        let (since, before) = *self.round.get_or_insert((now, delivered));
        let elapsed = now.saturating_since(since);
        if elapsed >= rtt && !elapsed.is_zero() {
            let in_a_round =
                Bytes(delivered - before).mul_ratio(rtt.as_nanos(), elapsed.as_nanos());
            self.size =
                in_a_round.get().saturating_mul(2).clamp(self.size, self.limit.max(self.size));
            self.round = Some((now, delivered));
        }
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_a_round_trip_brings() {
        let mut window = Window::new(Bytes(100), Bytes(1000));
        let (rtt, at) = (Duration::from_millis(10), |ms| Instant::ZERO + Duration::from_millis(ms));
        assert_eq!(window.update(at(0), 0, rtt), 100);
        assert_eq!(window.update(at(5), 90, rtt), 100, "the round is not over");
        assert_eq!(window.update(at(10), 100, rtt), 200);
        assert_eq!(window.update(at(30), 300, rtt), 200, "two rounds brought twice as much");
        assert_eq!(window.update(at(40), 400, rtt), 200);
        assert_eq!(window.update(at(50), 9_000, rtt), 1000, "no more than the limit");
        assert_eq!(window.update(at(60), 9_000, rtt), 1000, "it never shrinks");
    }
}
