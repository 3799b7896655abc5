//! Waking up on time: sleep until shortly before, look around until then.

use weir_units::{Duration, Instant};

/// Decides when to spin. A sleeper wakes some tens of microseconds late; who spins is there. But only
/// a quarter of the time is spent on it: a real-time thread that never sleeps is taken off its core for
/// 50 ms in every second (sched(7)), and where packets come thick and fast it keeps others from making
/// them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    /// So long before something is due sleep ends; zero never to spin.
    margin: Duration,
    /// How long it may spin still.
    credit: Duration,
    looked: Instant,
    is_spinning: bool,
}

impl Spin {
    pub(super) fn new(margin: Duration) -> Self {
        Self { margin, credit: MOST_CREDIT, looked: Instant::ZERO, is_spinning: false }
    }

    /// At `now`, before something that is due at `due`: until when to sleep; `None` to look again at
    /// once.
    pub(super) fn sleep_until(&mut self, now: Instant, due: Instant) -> Option<Instant> {
        let passed = now.saturating_since(self.looked);
        self.looked = now;
        self.credit = if self.is_spinning {
            self.credit.saturating_sub(passed)
        } else {
            (self.credit + passed / SHARE).min(MOST_CREDIT)
        };
        let left = due.saturating_since(now);
        let may = !self.margin.is_zero() && self.credit >= self.margin;
        self.is_spinning = may && left <= self.margin;
        match (may, self.is_spinning) {
            (true, true) => None,
            (true, false) => Some(now + (left - self.margin)),
            (false, _) => Some(due),
        }
    }
}

/// Denominator of the share of time spent spinning.
const SHARE: u64 = 4;
const MOST_CREDIT: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn sleep_ends_before_what_is_due_and_the_rest_is_spun() {
        let mut spin = Spin::new(Duration::from_micros(60));
        assert_eq!(spin.sleep_until(at(0), at(1_000)), Some(at(940)));
        assert_eq!(spin.sleep_until(at(940), at(1_000)), None);
        assert_eq!(spin.sleep_until(at(999), at(1_000)), None);
        assert_eq!(Spin::new(Duration::ZERO).sleep_until(at(990), at(1_000)), Some(at(1_000)));
    }

    #[test]
    fn no_more_than_a_quarter_of_the_time_is_spun() {
        let mut spin = Spin::new(Duration::from_micros(60));
        // Something is always due within 40 us: it would spin all the time.
        let (mut now, mut spun) = (0, 0);
        while now < 1_000_000 {
            match spin.sleep_until(at(now), at(now + 40)) {
                None => {
                    now += 1;
                    spun += 1;
                }
                Some(_) => now += 40,
            }
        }
        let credit = MOST_CREDIT.as_nanos() / 1_000;
        assert!(spun > 150_000 && spun <= 250_000 + credit, "{spun}");
    }
}
