//! A limit on how many messages of a kind a node sends in a second (RFC 3561 §6.3, §6.11).

use weir_units::{Duration, Instant};

/// Counts messages in windows of one second.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimit {
    per_second: Option<u32>,
    since: Instant,
    count: u32,
}

impl RateLimit {
    pub(super) fn new(per_second: Option<u32>) -> Self {
        Self { per_second, since: Instant::ZERO, count: 0 }
    }

    /// Whether a message may go now, or else when the next one may.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let Some(limit) = self.per_second else { return Ok(()) };
        if now.saturating_since(self.since) >= WINDOW {
            (self.since, self.count) = (now, 0);
        }
        if self.count >= limit {
            return Err(self.since + WINDOW);
        }
        self.count += 1;
        Ok(())
    }
}

const WINDOW: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_a_second_and_no_more() {
        let mut limit = RateLimit::new(Some(2));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(limit.take(at(1500)), Ok(()));
        assert_eq!(limit.take(at(1600)), Ok(()));
        assert_eq!(limit.take(at(1700)), Err(at(2500)));
        assert_eq!(limit.take(at(2500)), Ok(()));
        let mut free = RateLimit::new(None);
        assert!((0..1000).all(|_| free.take(at(0)).is_ok()));
    }
}
