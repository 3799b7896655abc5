//! A running maximum over a window of rounds or of time, from three candidates.
//!
//! Kathleen Nichols' estimator, as in Linux's `lib/win_minmax.c`: the best value of the window, the
//! best one after it and the best one after that, so that an expiring maximum has a successor at
//! hand. Close to the exact maximum at constant cost.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Candidate<T> {
    at: u64,
    value: T,
}

/// The largest value of a window that ends with the newest; `T::default()` before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaxFilter<T> {
    best: [Candidate<T>; 3],
}

impl<T: Copy + Ord> MaxFilter<T> {
    pub(crate) fn max(&self) -> T {
        self.best[0].value
    }

    /// Processes a value of the time `at`, which does not lie before the last one's; older ones than
    /// `window` count no longer.
    pub(crate) fn update(&mut self, window: u64, at: u64, value: T) {
        let new = Candidate { at, value };
        let nothing_left = at - self.best[2].at > window;
        if value >= self.best[0].value || nothing_left {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.expire(window, new);
    }

    fn expire(&mut self, window: u64, new: Candidate<T>) {
        let [first, second, third] = self.best;
        let age = new.at - first.at;
        if age > window {
            self.best =
                if new.at - second.at > window { [third, new, new] } else { [second, third, new] };
        } else if second.at == first.at && age > window / 4 {
            // A quarter of the window without a successor: take one from the second quarter.
            self.best = [first, new, new];
        } else if third.at == second.at && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_units::Rate;

    use super::*;

    fn mbit(n: u64) -> Rate {
        Rate::from_mbit(n)
    }

    #[test]
    fn a_maximum_lasts_for_the_window_and_leaves_a_successor() {
        let mut filter = MaxFilter::default();
        filter.update(10, 0, mbit(100));
        for round in 1..=10 {
            filter.update(10, round, mbit(50 + round));
            assert_eq!(filter.max(), mbit(100), "round {round}");
        }
        filter.update(10, 11, mbit(40));
        assert_eq!(filter.max(), mbit(60), "the best of the last rounds");
    }

    proptest! {
        #[test]
        fn never_above_the_exact_maximum_nor_below_the_newest(
            rates in proptest::collection::vec(1..1_000_u64, 1..200),
        ) {
            let mut filter = MaxFilter::default();
            for (round, rate) in rates.iter().enumerate() {
                filter.update(10, round as u64, mbit(*rate));
                let exact = rates[round.saturating_sub(10)..=round].iter().max().copied().unwrap_or(0);
                prop_assert!(filter.max() <= mbit(exact));
                prop_assert!(filter.max() >= mbit(*rate));
            }
        }
    }
}
