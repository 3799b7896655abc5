//! A running maximum over a window of rounds, from three candidates.
//!
//! Kathleen Nichols' estimator, as in Linux's `lib/win_minmax.c`: the best value of the window, the
//! best one after it and the best one after that, so that an expiring maximum has a successor at
//! hand. Close to the exact maximum at constant cost.

use weir_units::Rate;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Candidate {
    round: u64,
    rate: Rate,
}

/// The largest rate of the last `window` rounds.
#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    window: u64,
    best: [Candidate; 3],
}

impl MaxFilter {
    pub(super) fn new(window: u64) -> Self {
        Self { window, best: [Candidate::default(); 3] }
    }

    pub(super) fn max(&self) -> Rate {
        self.best[0].rate
    }

    pub(super) fn update(&mut self, round: u64, rate: Rate) {
        let new = Candidate { round, rate };
        let nothing_left = round - self.best[2].round > self.window;
        if rate >= self.best[0].rate || nothing_left {
            self.best = [new; 3];
            return;
        }
        if rate >= self.best[1].rate {
            self.best[1] = new;
            self.best[2] = new;
        } else if rate >= self.best[2].rate {
            self.best[2] = new;
        }
        self.expire(new);
    }

    fn expire(&mut self, new: Candidate) {
        let [first, second, third] = self.best;
        let age = new.round - first.round;
        if age > self.window {
            self.best = if new.round - second.round > self.window {
                [third, new, new]
            } else {
                [second, third, new]
            };
        } else if second.round == first.round && age > self.window / 4 {
            // A quarter of the window without a successor: take one from the second quarter.
            self.best = [first, new, new];
        } else if third.round == second.round && age > self.window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mbit(n: u64) -> Rate {
        Rate::from_mbit(n)
    }

    #[test]
    fn a_maximum_lasts_for_the_window_and_leaves_a_successor() {
        let mut filter = MaxFilter::new(10);
        filter.update(0, mbit(100));
        for round in 1..=10 {
            filter.update(round, mbit(50 + round));
            assert_eq!(filter.max(), mbit(100), "round {round}");
        }
        filter.update(11, mbit(40));
        assert_eq!(filter.max(), mbit(60), "the best of the last rounds");
    }

    proptest! {
        #[test]
        fn never_above_the_exact_maximum_nor_below_the_newest(
            rates in proptest::collection::vec(1..1_000_u64, 1..200),
        ) {
            let mut filter = MaxFilter::new(10);
            for (round, rate) in rates.iter().enumerate() {
                filter.update(round as u64, mbit(*rate));
                let exact = rates[round.saturating_sub(10)..=round].iter().max().copied().unwrap_or(0);
                prop_assert!(filter.max() <= mbit(exact));
                prop_assert!(filter.max() >= mbit(*rate));
            }
        }
    }
}
