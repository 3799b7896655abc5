//! Named random streams.
//!
//! Every random decision draws from a stream derived from the run's seed and a name
//! (`"flow 3 start"`, `"link up loss"`), so adding a flow does not shift another's random numbers. The
//! generator is PCG XSL 128/64 (MCG), named explicitly: its values never change under us.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::time::Duration;

/// A seeded random stream.
///
/// ```
/// use weir_units::{Duration, stream};
///
/// let mut rng = stream(1, "arrivals");
/// assert!(rng.below(6) < 6);
/// let mean = Duration::from_millis(10);
/// let total: Duration = (0..10_000).map(|_| rng.exponential(mean)).sum();
/// assert!((9_700..10_300).contains(&(total / 10_000).as_micros()), "{total}");
/// ```
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

/// The stream called `name` of the run with this `seed`.
///
/// ```
/// use weir_units::stream;
///
/// let draws = |seed, name| stream(seed, name).next_u64();
/// assert_eq!(draws(1, "loss"), draws(1, "loss"));
/// assert_ne!(draws(1, "loss"), draws(2, "loss"));
/// assert_ne!(draws(1, "loss"), draws(1, "jitter"));
/// ```
pub fn stream(seed: u64, name: &str) -> Rng {
    // FNV-1a over seed and name, then splitmix64 to fill the 128-bit state: cheap, fixed forever.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seed.to_le_bytes().iter().chain(name.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let high = splitmix64(&mut hash);
    let low = splitmix64(&mut hash);
    Rng(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// A hash of one word: the output function of splitmix64, a bijection in which every bit of `word` has
/// an effect on every bit of the result.
pub fn mix(word: u64) -> u64 {
    let z = word;
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The state of the generator, which determines all that it will give.
    pub fn state(&self) -> u128 {
        self.0.state()
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// Uniform in `0..bound` (Lemire's multiplication; its bias, below 2^-32 for the bounds used
    /// here, is accepted so that each call draws exactly once).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no member");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `0 ..= max`.
    pub fn duration_up_to(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(self.below(max.as_nanos().saturating_add(1)))
    }

    /// Exponential with this mean: the time to the next event of a Poisson process.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let lengths = -libm::log(1.0 - self.unit_f64());
        Duration::from_nanos(libm::round(lengths * mean.as_nanos() as f64) as u64)
    }

    /// Uniform in `[0, 1)` with 53 random bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_forever_and_differ_by_seed_and_name() {
        let first = |seed, name| stream(seed, name).next_u64();
        assert_eq!(first(1, "loss"), first(1, "loss"));
        assert_ne!(first(1, "loss"), first(2, "loss"));
        assert_ne!(first(1, "loss"), first(1, "jitter"));
        // Test vectors: a change here changes the meaning of every seed ever published.
        let mut rng = stream(1, "loss");
        let drawn: Vec<u64> = (0..3).map(|_| rng.below(1_000_000)).collect();
        assert_eq!(drawn, VECTOR);
    }

    const VECTOR: [u64; 3] = [287_987, 119_215, 705_714];

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = stream(7, "even");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }

    /// Mean and standard deviation are equal, and `e^-x` of the draws exceed `x` means: each within
    /// four standard errors.
    #[test]
    fn exponential_draws_have_their_mean_and_their_tail() {
        let mut rng = stream(7, "exponential");
        let mean = Duration::from_millis(10);
        let n = 100_000;
        let draws: Vec<f64> =
            (0..n).map(|_| rng.exponential(mean).as_secs_f64() / mean.as_secs_f64()).collect();
        let error = 1.0 / libm::sqrt(f64::from(n));
        let found = draws.iter().sum::<f64>() / f64::from(n);
        assert!((found - 1.0).abs() < 4.0 * error, "{found}");
        for x in [0.1, 1.0, 3.0] {
            let expected = libm::exp(-x);
            let beyond = draws.iter().filter(|draw| **draw > x).count() as f64 / f64::from(n);
            let error = libm::sqrt(expected * (1.0 - expected)) * error;
            assert!((beyond - expected).abs() < 4.0 * error, "{beyond} beyond {x}");
        }
    }
}
