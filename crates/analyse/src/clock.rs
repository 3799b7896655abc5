//! The clock of a connection's capture, which may be set while it runs.
//!
//! A clock that is set back would put packets before those that they answer. From there on times continue where they were.
//! A pause of more than a year is that of a clock which got its date. Packets that are out of order by less are no step.

/// The times of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The first time, and the last one in the capture.
    first: Option<u64>,
    raw: Option<u64>,
    /// What is added to times of the capture.
    shift: i64,
    steps: u64,
}

impl Clock {
    /// The time of a packet that the capture has at `raw`; it does not go back by more than [`LEAST_STEP`].
    pub(crate) fn time(&mut self, raw: u64) -> u64 {
        let first = *self.first.get_or_insert(raw);
        let before = self.raw.replace(raw).unwrap_or(raw);
        let back = before.saturating_sub(raw);
        let ahead = raw.saturating_sub(before);
        if back >= LEAST_STEP {
            self.steps += 1;
            self.shift = self.shift.saturating_add_unsigned(back);
        } else if ahead >= LONGEST_PAUSE {
            self.steps += 1;
            self.shift = self.shift.saturating_sub_unsigned(ahead);
        } else if self.shift > 0
            && ahead >= LEAST_STEP
            && ahead.abs_diff(self.shift as u64) < LEAST_STEP
        {
            // A few packets were out of order: the clock was right before and is again.
            self.shift = 0;
        }
        let time = raw.saturating_add_signed(self.shift);
        time.clamp(first.saturating_sub(LONGEST_PAUSE), first.saturating_add(LONGEST_PAUSE))
    }

    /// How often the clock was set.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }
}

/// Captures of several interfaces or cores are out of order by less.
const LEAST_STEP: u64 = 50_000_000;
/// A year; times of a connection are so far from each other at most, so that small multiples fit into 64 bits.
const LONGEST_PAUSE: u64 = 365 * 24 * 3_600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn times(raw: &[u64]) -> (Vec<u64>, u64) {
        let mut clock = Clock::default();
        let times = raw.iter().map(|ms| clock.time(ms * MS) / MS).collect();
        (times, clock.steps())
    }

    #[test]
    fn times_continue_where_the_clock_is_set_back() {
        assert_eq!(times(&[5_000, 5_010, 3_010, 3_020]), (vec![5_000, 5_010, 5_010, 5_020], 1));
    }

    #[test]
    fn a_packet_out_of_order_is_no_step() {
        assert_eq!(times(&[5_000, 5_010, 4_990, 5_020]), (vec![5_000, 5_010, 4_990, 5_020], 0));
        // Out of order by much: the clock is right again after it.
        assert_eq!(times(&[5_000, 5_010, 4_810, 5_020]).0, [5_000, 5_010, 5_010, 5_020]);
    }

    #[test]
    fn a_clock_that_gets_its_date_does_not_pause_for_years() {
        let year = 365 * 24 * 3_600 * 1_000;
        assert_eq!(times(&[5, 50 * year, 50 * year + 7]), (vec![5, 5, 12], 1));
    }
}
