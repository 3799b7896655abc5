//! Long-term bandwidth sampling: recognises a token-bucket policer by two loss-ended intervals
//! of the same delivery rate, and then holds that rate instead of probing into the bucket.
//!
//! An interval lasts 4 to 16 rounds and ends with a loss while at least 50/256 of what was
//! delivered in it was lost. Two in a row whose rates differ by at most 1/8 (or 4 kbit/s) are a policer;
//! their mean is used for 48 rounds of PROBE_BW.

use weir_units::{Bytes, Duration, Instant, Rate};

/// What an acknowledgement says to the sampler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) now: Instant,
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
    pub(super) loss_now: bool,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
    pub(super) probing_bandwidth: bool,
}

/// Whether the rate in use was given up with this observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Unchanged,
    GivenUp,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    rate: Option<Rate>,
    in_use: bool,
    interval: Option<Interval>,
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Instant,
    delivered: Bytes,
    lost: Bytes,
}

impl Policer {
    /// The policed rate, while there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.in_use)
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn observe(&mut self, seen: &Observation) -> Verdict {
        if self.in_use {
            return self.tire(seen);
        }
        // The first loss says that the bucket is empty: sampling begins with it.
        if self.interval.is_none() && seen.loss_now {
            self.begin(seen);
        }
        let Some(interval) = self.interval else { return Verdict::Unchanged };
        if seen.app_limited {
            self.reset();
            return Verdict::Unchanged;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds > LONGEST_ROUNDS {
            self.reset();
        } else if self.rounds >= SHORTEST_ROUNDS && seen.loss_now {
            self.end(interval, seen);
        }
        Verdict::Unchanged
    }

    fn tire(&mut self, seen: &Observation) -> Verdict {
        if seen.probing_bandwidth && seen.round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS_IN_USE {
                self.reset();
                return Verdict::GivenUp;
            }
        }
        Verdict::Unchanged
    }

    fn begin(&mut self, seen: &Observation) {
        self.interval =
            Some(Interval { start: seen.now, delivered: seen.delivered, lost: seen.lost });
        self.rounds = 0;
    }

    fn end(&mut self, interval: Interval, seen: &Observation) {
        let lost = seen.lost.saturating_sub(interval.lost);
        let delivered = seen.delivered.saturating_sub(interval.delivered);
        let time = seen.now.saturating_since(interval.start);
        let heavy = u128::from(lost.get()) * 256 >= u128::from(delivered.get()) * LOSS_256TH;
        if delivered == Bytes::ZERO || !heavy || time < Duration::from_millis(1) {
            return;
        }
        let rate = Rate::from_transfer(delivered, time).unwrap_or(Rate::ZERO);
        match self.rate {
            Some(last) if similar(last, rate) => {
                let mean = last.as_bits_per_sec().midpoint(rate.as_bits_per_sec());
                self.rate = Some(Rate::from_bits_per_sec(mean));
                self.in_use = true;
                self.rounds = 0;
            }
            _ => {
                self.rate = Some(rate);
                self.begin(seen);
            }
        }
    }
}

fn similar(last: Rate, rate: Rate) -> bool {
    let apart = last.as_bits_per_sec().abs_diff(rate.as_bits_per_sec());
    apart <= last.as_bits_per_sec() / 8 || apart <= SAME_BITS_PER_SEC
}

const SHORTEST_ROUNDS: u32 = 4;
const LONGEST_ROUNDS: u32 = 16;
const LOSS_256TH: u128 = 50;
const SAME_BITS_PER_SEC: u64 = 4_000;
const ROUNDS_IN_USE: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that delivers 1 Mbyte/s and loses a third of that on top, seen once per 100 ms round.
    fn round_at(n: u64) -> Observation {
        Observation {
            now: Instant::from_nanos(n * 100_000_000),
            delivered: Bytes(n * 100_000),
            lost: Bytes(n * 33_000),
            loss_now: true,
            app_limited: false,
            round_start: true,
            probing_bandwidth: true,
        }
    }

    #[test]
    fn two_equal_intervals_of_heavy_loss_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        let used: Vec<bool> = (0..70)
            .map(|n| {
                policer.observe(&round_at(n));
                policer.rate().is_some()
            })
            .collect();
        let first = used.iter().position(|used| *used).expect("found");
        // Begun in round 0, which counts; ended in 3; the second interval takes four more.
        assert_eq!(first, 7);
        assert_eq!(used[first..].iter().position(|used| !used), Some(48));
    }

    #[test]
    fn light_loss_or_lack_of_data_is_none() {
        let mut light = Policer::default();
        let mut idle = Policer::default();
        for n in 0..100 {
            light.observe(&Observation { lost: Bytes(n * 10_000), ..round_at(n) });
            idle.observe(&Observation { app_limited: n % 3 == 0, ..round_at(n) });
            assert_eq!((light.rate(), idle.rate()), (None, None));
        }
    }

    #[test]
    fn the_rate_is_what_was_delivered() {
        let mut policer = Policer::default();
        (0..8).for_each(|n| {
            policer.observe(&round_at(n));
        });
        assert_eq!(policer.rate(), Some(Rate::from_mbit(8)));
    }
}
