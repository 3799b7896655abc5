//! Distributions of delays, in little space.

use weir_units::Duration;

/// A distribution of durations.
///
/// The first [`Histogram::EXACT`] samples are kept as they are, so that percentiles of a small
/// sample are exact; beyond that, samples are counted in buckets that are at most a thousandth of
/// their value wide. Mean, minimum, maximum and count are exact throughout.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Samples not yet counted into `buckets`: recording appends here and counts in batches, which
    /// touches the large table rarely.
    pending: Vec<u64>,
    buckets: Option<Box<Buckets>>,
    /// Samples of zero: what does not wait is counted here alone.
    zeros: u64,
    count: u64,
    sum: u128,
    /// The largest value there is while there are no samples.
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            buckets: None,
            zeros: 0,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
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

/// Counts by value: for each power of two a page of 1024 equal steps, made when first needed. Delays
/// of one flow or link mostly lie within a few powers of two, which takes a tenth of the space of a
/// table from zero upwards.
#[derive(Clone, Debug, Default)]
struct Buckets {
    pages: Vec<Option<Box<[u32; STEPS]>>>,
}

/// Samples between two visits to the buckets.
const BATCH: usize = 64;
const STEP_BITS: u32 = 10;
const STEPS: usize = 1 << STEP_BITS;

impl Histogram {
    /// Number of samples above zero that are kept exactly.
    pub const EXACT: usize = 1_024;
    /// Number of samples that a percentile needs beyond it.
    pub const MIN_TAIL: u64 = 5;

    /// No samples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a sample.
    #[inline]
    pub fn record(&mut self, sample: Duration) {
        let nanos = sample.as_nanos();
        self.min = self.min.min(nanos);
        self.count += 1;
        if nanos == 0 {
            self.zeros += 1;
            return;
        }
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
        self.pending.push(nanos);
        if self.pending.len() >= self.batch() {
            self.flush();
        }
    }

    /// Adds every sample of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.zeros += other.zeros;
        self.count += other.count;
        self.sum += other.sum;
        if let Some(buckets) = &other.buckets {
            self.buckets.get_or_insert_default().merge(buckets);
        }
        self.pending.extend_from_slice(&other.pending);
        if self.pending.len() >= self.batch() {
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

    /// The `rank`-th smallest sample, counted from 1.
    fn value_at_rank(&self, rank: u64) -> u64 {
        let Some(rank) = rank.checked_sub(self.zeros + 1) else { return 0 };
        match &self.buckets {
            None => {
                let mut samples = self.pending.clone();
                *samples.select_nth_unstable(rank as usize).1
            }
            Some(buckets) => {
                let mut buckets = buckets.clone();
                self.pending.iter().for_each(|nanos| buckets.count(*nanos));
                buckets.value_at(rank).clamp(self.min, self.max)
            }
        }
    }

    /// How many samples are pending at most. Once there are buckets the list need only spare most
    /// visits to them; thousands of short lists stay in the processor's caches.
    fn batch(&self) -> usize {
        if self.buckets.is_some() { BATCH } else { Self::EXACT }
    }

    fn flush(&mut self) {
        let buckets = self.buckets.get_or_insert_default();
        self.pending.iter().for_each(|nanos| buckets.count(*nanos));
        self.pending.clear();
        self.pending.shrink_to(BATCH);
    }
}

impl Buckets {
    /// Page and step: below 1024 every value has its own; above, ten bits after the leading one
    /// name the step.
    fn place(nanos: u64) -> (usize, usize) {
        // The bit that is set keeps all values below 1024 on the first page.
        let page = (nanos | 1 << (STEP_BITS - 1)).ilog2() - (STEP_BITS - 1);
        let step = if page == 0 { nanos } else { nanos >> (page - 1) };
        (page as usize, step as usize % STEPS)
    }

    /// The middle of a step, so that rounding does not lean one way.
    fn middle(page: usize, step: usize) -> u64 {
        if page == 0 {
            return step as u64;
        }
        let width = 1u64 << (page - 1);
        ((STEPS + step) as u64) * width + width / 2
    }

    fn count(&mut self, nanos: u64) {
        let (page, step) = Self::place(nanos);
        match self.pages.get_mut(page) {
            Some(Some(counts)) => counts[step] += 1,
            _ => self.page(page)[step] += 1,
        }
    }

    fn page(&mut self, page: usize) -> &mut [u32; STEPS] {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([0; STEPS]))
    }

    fn merge(&mut self, other: &Self) {
        for (page, counts) in other.pages.iter().enumerate() {
            if let Some(counts) = counts {
                self.page(page).iter_mut().zip(counts.iter()).for_each(|(a, b)| *a += b);
            }
        }
    }

    /// The value of the sample with `rank` others below it.
    fn value_at(&self, rank: u64) -> u64 {
        let mut below = 0;
        for (page, counts) in self.pages.iter().enumerate() {
            let Some(counts) = counts else { continue };
            for (step, count) in counts.iter().enumerate() {
                below += u64::from(*count);
                if below > rank {
                    return Self::middle(page, step);
                }
            }
        }
        u64::MAX
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
    fn a_bucket_is_at_most_a_thousandth_of_its_value_wide() {
        let nanos =
            (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 3, u64::MAX >> bit]);
        for nanos in nanos {
            let (page, step) = Buckets::place(nanos);
            assert!(Buckets::middle(page, step).abs_diff(nanos) <= nanos / 1_000, "{nanos}");
        }
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
            mut samples in prop::collection::vec(prop_oneof![Just(0), 0u64..50_000_000], 10..5_000),
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
