//! Distributions of delays, in constant space.

use hdrhistogram::Histogram as HdrHistogram;
use weir_units::Duration;

/// A distribution of durations.
///
/// The first [`Histogram::EXACT`] samples are kept as they are, so that percentiles of a small
/// sample are exact; beyond that, samples are counted in buckets of three significant digits.
/// Mean, minimum, maximum and count are exact throughout.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Samples not yet counted into `buckets`: recording appends here and counts in batches,
    /// which touches the large table rarely.
    pending: Vec<u64>,
    buckets: Option<Box<HdrHistogram<u32>>>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// A distribution summed up for a table: milliseconds, `None` where there are too few samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The arithmetic mean.
    pub mean_ms: Option<f64>,
    /// The median.
    pub p50_ms: Option<f64>,
    /// The 95th percentile.
    pub p95_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
    /// The smallest sample.
    pub min_ms: Option<f64>,
    /// The largest sample.
    pub max_ms: Option<f64>,
    /// How many samples there were.
    pub samples: u64,
}

impl Histogram {
    /// So many samples are kept exactly.
    pub const EXACT: usize = 1_024;
    /// A percentile needs so many samples beyond it.
    pub const MIN_TAIL: u64 = 5;
    const SIGNIFICANT_DIGITS: u8 = 3;

    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a sample.
    pub fn record(&mut self, sample: Duration) {
        let nanos = sample.as_nanos();
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum += u128::from(nanos);
        self.pending.push(nanos);
        if self.pending.len() >= Self::EXACT {
            self.flush();
        }
    }

    /// Takes in every sample of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        if let Some(buckets) = &other.buckets {
            let added = self.buckets_mut().add(&**buckets);
            added.expect("a resizable histogram takes in every other");
        }
        self.pending.extend_from_slice(&other.pending);
        if self.pending.len() >= Self::EXACT {
            self.flush();
        }
    }

    /// How many samples were taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then_some(Duration::from_nanos(self.min))
    }

    /// The largest sample.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then_some(Duration::from_nanos(self.max))
    }

    /// The sample of nearest rank `⌈permille / 1000 · n⌉`. Refused (`None`) when fewer than
    /// [`Self::MIN_TAIL`] samples lie beyond the percentile, `n · (1 − p) < 5`: a P95 needs 100
    /// samples, a P99 needs 500.
    ///
    /// # Panics
    /// If `permille` is not below 1000.
    pub fn percentile(&self, permille: u64) -> Option<Duration> {
        assert!(permille < 1_000, "the maximum is not a percentile");
        if self.count * (1_000 - permille) < Self::MIN_TAIL * 1_000 {
            return None;
        }
        let rank = (self.count * permille).div_ceil(1_000).max(1);
        Some(Duration::from_nanos(self.value_at_rank(rank)))
    }

    /// Everything that the tables show.
    pub fn spread(&self) -> Spread {
        let millis = |duration: Option<Duration>| duration.map(Duration::as_millis_f64);
        Spread {
            mean_ms: (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e6),
            p50_ms: millis(self.percentile(500)),
            p95_ms: millis(self.percentile(950)),
            p99_ms: millis(self.percentile(990)),
            min_ms: millis(self.min()),
            max_ms: millis(self.max()),
            samples: self.count,
        }
    }

    fn value_at_rank(&self, rank: u64) -> u64 {
        match &self.buckets {
            None => {
                let mut samples = self.pending.clone();
                let (_, value, _) = samples.select_nth_unstable(rank as usize - 1);
                *value
            }
            Some(buckets) => {
                let mut buckets = buckets.clone();
                count_into(&mut buckets, &self.pending);
                // The middle of the nearest bucket, so that rounding does not lean one way.
                let quantile = (rank as f64 - 0.5) / self.count as f64;
                let value = buckets.value_at_quantile(quantile);
                buckets.median_equivalent(value).clamp(self.min, self.max)
            }
        }
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        count_into(self.buckets_mut(), &pending);
        self.pending = pending;
        self.pending.clear();
    }

    fn buckets_mut(&mut self) -> &mut HdrHistogram<u32> {
        self.buckets.get_or_insert_with(|| {
            let empty = HdrHistogram::new(Self::SIGNIFICANT_DIGITS);
            Box::new(empty.expect("three significant digits are supported"))
        })
    }
}

fn count_into(buckets: &mut HdrHistogram<u32>, samples: &[u64]) {
    for &nanos in samples {
        buckets.record(nanos).expect("a resizable histogram takes in every value");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(samples: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        samples.into_iter().for_each(|nanos| histogram.record(Duration::from_nanos(nanos)));
        histogram
    }

    #[test]
    fn a_small_sample_has_exact_nearest_ranks() {
        let histogram = of((1..=100).rev());
        assert_eq!(histogram.percentile(500), Some(Duration::from_nanos(50)));
        assert_eq!(histogram.percentile(950), Some(Duration::from_nanos(95)));
        assert_eq!(histogram.min(), Some(Duration::from_nanos(1)));
        assert_eq!(histogram.max(), Some(Duration::from_nanos(100)));
    }

    #[test]
    fn a_percentile_without_a_tail_is_refused() {
        assert_eq!(of(0..99).percentile(950), None);
        assert!(of(0..100).percentile(950).is_some());
        assert_eq!(of(0..499).percentile(990), None);
        assert!(of(0..500).percentile(990).is_some());
        assert_eq!(of([]).spread(), Spread::default());
    }

    proptest! {
        #[test]
        fn ranks_are_within_three_digits_of_the_sorted_sample(
            mut samples in prop::collection::vec(0u64..50_000_000, 10..5_000),
            permille in 1u64..1_000,
            cut in 0usize..10,
        ) {
            // Two parts that are merged must equal one whole.
            let mut histogram = of(samples[..cut].iter().copied());
            histogram.merge(&of(samples[cut..].iter().copied()));
            samples.sort_unstable();
            let rank = (samples.len() as u64 * permille).div_ceil(1_000) as usize;
            let exact = samples[rank - 1];
            if let Some(found) = histogram.percentile(permille) {
                prop_assert!(found.as_nanos().abs_diff(exact) <= exact / 1_000 + 1);
            }
            let mean = samples.iter().sum::<u64>() / samples.len() as u64;
            prop_assert_eq!(histogram.mean(), Some(Duration::from_nanos(mean)));
        }
    }
}
