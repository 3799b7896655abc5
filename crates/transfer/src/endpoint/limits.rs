//! Limits on what unknown peers may cost.

use weir_sockets::places::Bounds;
use weir_units::{Duration, Instant};

/// Limits on what unknown peers may cost an endpoint. How much each connection may hold is its application's matter,
/// which opens the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there may be, and which of them a newcomer replaces. What arrives before a peer has said
    /// what its connection is for is no progress.
    pub places: Bounds,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a peer may be silent.
    pub idle: Duration,
}

impl Limits {
    /// The same for at most this many connections, where there is no memory for more.
    pub fn with_at_most(mut self, connections: usize) -> Self {
        let Bounds { all, per_network, per_address, .. } = &mut self.places;
        *all = connections.clamp(1, *all);
        *per_network = (*all / 2).clamp(1, *per_network);
        *per_address = (*all / 4).clamp(1, *per_address);
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            places: Bounds {
                all: 1_024,
                per_network: 512,
                per_address: 256,
                grace: Duration::from_secs(5),
                least_rate: 1_024,
                stay: Duration::from_secs(1),
            },
            handshake: Duration::from_secs(30),
            idle: Duration::from_secs(60),
        }
    }
}

/// Token bucket: a burst, and a rate per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    most: u64,
    left: u64,
    counted: Instant,
}

impl TokenBucket {
    pub(super) fn per_second(most: u64) -> Self {
        Self { most, left: most, counted: Instant::ZERO }
    }

    /// Whether one more is allowed; it then counts.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let one = Duration::from_secs(1) / self.most;
        let earned = now.saturating_since(self.counted).as_nanos() / one.as_nanos();
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(self.most);
            self.counted = now;
        }
        let allowed = self.left > 0;
        self.left -= u64::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_comes_back_with_time() {
        let mut allowance = TokenBucket::per_second(10);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let take =
            |allowance: &mut TokenBucket, ms| (0..100).filter(|_| allowance.take(at(ms))).count();
        assert_eq!(take(&mut allowance, 0), 10);
        assert_eq!(take(&mut allowance, 50), 0);
        assert_eq!(take(&mut allowance, 350), 3);
        assert_eq!(take(&mut allowance, 60_000), 10);
    }
}
