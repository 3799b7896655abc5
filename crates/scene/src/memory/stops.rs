//! When ports have paused, and how long.

use weir_units::{Duration, Instant};

/// The port that a link leaves, as far as its neighbour lets it send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stop {
    /// Since when it pauses, if it does.
    since: Option<Instant>,
    /// The end of the warm-up.
    opened: Instant,
    count: u64,
    /// How long it has paused since then, without the pause at hand.
    paused: Duration,
    /// Whether an event looks for a cycle of paused ports.
    pub(super) is_watched: bool,
}

impl Stop {
    pub(super) fn begin(&mut self, now: Instant) {
        if self.since.is_none() {
            self.since = Some(now);
            self.count += 1;
        }
    }

    pub(super) fn end(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.paused += now.saturating_since(since.max(self.opened));
        }
    }

    /// Since when it pauses, if it does.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Forgets the warm-up.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.opened, self.count, self.paused) = (now, 0, Duration::ZERO);
    }

    /// How many pauses there were, and for how long.
    pub(super) fn total(&self, now: Instant) -> (u64, Duration) {
        let at_hand = self.since.map(|since| now.saturating_since(since.max(self.opened)));
        (self.count, self.paused + at_hand.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paused_before_the_warm_up_ended_does_not_count() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut stop = Stop::default();
        stop.begin(at(1));
        stop.restart(at(3));
        assert_eq!(stop.total(at(4)), (0, Duration::from_secs(1)));
        stop.end(at(5));
        stop.begin(at(7));
        stop.begin(at(8));
        assert_eq!(stop.total(at(9)), (1, Duration::from_secs(4)));
        assert_eq!(stop.since(), Some(at(7)));
    }
}
