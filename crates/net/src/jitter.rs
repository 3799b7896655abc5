//! Delays on the wire that differ from parcel to parcel.

use weir_units::{Duration, Ratio, Rng};

use crate::error::{ConfigError, check_span};

/// A delay that varies around the link's own; the sum never gets below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// How it is distributed.
    pub spread: Spread,
    /// What happens when a parcel would overtake.
    pub order: Order,
}

/// The distribution of a jitter, with mean zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform from minus this to plus this.
    Uniform(Duration),
    /// Normal with this standard deviation.
    Normal(Duration),
}

/// Whether jitter may reorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A parcel that would overtake arrives together with the one before it. This makes the mean
    /// delay larger than the link's own when parcels are closer together than the jitter.
    #[default]
    Kept,
    /// Parcels arrive as their delays fall, which reorders massively once the jitter exceeds the
    /// gap between parcels.
    Free,
}

/// Parcels that take a longer way: those behind them overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// How many are held back.
    pub probability: Ratio,
    /// By how much.
    pub extra_delay: Duration,
}

/// The impairments on the wire at work.
#[derive(Clone, Debug)]
pub(crate) struct Disorder {
    jitter: Option<(Jitter, Rng)>,
    reorder: Option<(Reorder, Rng)>,
}

/// What the wire does to a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) delay: Duration,
    pub(crate) keeps_order: bool,
}

impl Reorder {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.extra_delay.is_zero() {
            const HELP: &str = "it must be above zero, or nothing is reordered";
            return Err(ConfigError::new("reorder.extra_delay", self.extra_delay, HELP));
        }
        check_span("reorder.extra_delay", self.extra_delay)
    }
}

impl Jitter {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let (Spread::Uniform(size) | Spread::Normal(size)) = self.spread;
        check_span("jitter", size)
    }
}

impl Disorder {
    /// Jitter and reordering at work, if there is either.
    pub(crate) fn new(
        jitter: Option<Jitter>,
        reorder: Option<Reorder>,
        stream: &mut impl FnMut(&'static str) -> Rng,
    ) -> Option<Box<Self>> {
        if jitter.is_none() && reorder.is_none() {
            return None;
        }
        let jitter = jitter.map(|jitter| (jitter, stream("jitter")));
        let reorder = reorder.map(|reorder| (reorder, stream("reorder")));
        Some(Box::new(Self { jitter, reorder }))
    }

    /// Whether a parcel may arrive before one that was sent earlier.
    pub(crate) fn may_overtake(&self) -> bool {
        let free = self.jitter.as_ref().is_some_and(|(jitter, _)| jitter.order == Order::Free);
        free || self.reorder.is_some()
    }

    /// The flight of a parcel on a link of this delay.
    pub(crate) fn flight(&mut self, delay: Duration) -> Flight {
        let mut flight = Flight { delay, keeps_order: true };
        if let Some((jitter, rng)) = &mut self.jitter {
            flight.delay = jitter.spread.vary(delay, rng);
            flight.keeps_order = jitter.order == Order::Kept;
        }
        if let Some((reorder, rng)) = &mut self.reorder
            && reorder.probability.chance(rng)
        {
            flight.delay += reorder.extra_delay;
            flight.keeps_order = false;
        }
        flight
    }
}

impl Spread {
    fn vary(self, delay: Duration, rng: &mut Rng) -> Duration {
        match self {
            Self::Uniform(most) => {
                let added = delay + rng.duration_up_to(most * 2);
                added.saturating_sub(most)
            }
            Self::Normal(deviation) => {
                let nanos = standard_normal(rng) * deviation.as_nanos() as f64;
                let size = Duration::from_nanos(libm::round(nanos.abs()) as u64);
                if nanos < 0.0 { delay.saturating_sub(size) } else { delay + size }
            }
        }
    }
}

/// Box and Muller (1958), one of the pair thrown away so that each draw takes two numbers.
fn standard_normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit_f64()));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.unit_f64())
}

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    const DELAY: Duration = Duration::from_millis(100);
    const SIZE: Duration = Duration::from_millis(10);

    /// Mean and standard deviation in milliseconds, least and most.
    fn moments(spread: Spread) -> (f64, f64, Duration, Duration) {
        const N: usize = 200_000;
        let mut rng = stream(5, "jitter");
        let drawn: Vec<Duration> = (0..N).map(|_| spread.vary(DELAY, &mut rng)).collect();
        let mean = drawn.iter().map(|d| d.as_millis_f64()).sum::<f64>() / N as f64;
        let square = |d: &Duration| (d.as_millis_f64() - mean) * (d.as_millis_f64() - mean);
        let variance = drawn.iter().map(square).sum::<f64>() / N as f64;
        (mean, libm::sqrt(variance), *drawn.iter().min().unwrap(), *drawn.iter().max().unwrap())
    }

    #[test]
    fn uniform_jitter_is_centred_and_bounded() {
        let (mean, deviation, least, most) = moments(Spread::Uniform(SIZE));
        assert!((mean - 100.0).abs() < 0.05 && (deviation - 10.0 / libm::sqrt(3.0)).abs() < 0.05);
        assert!(least >= DELAY - SIZE && most <= DELAY + SIZE);
    }

    #[test]
    fn normal_jitter_has_its_moments() {
        let (mean, deviation, least, most) = moments(Spread::Normal(SIZE));
        assert!((mean - 100.0).abs() < 0.1 && (deviation - 10.0).abs() < 0.1);
        assert!(least < DELAY - SIZE * 3 && most > DELAY + SIZE * 3);
    }

    #[test]
    fn a_delay_never_gets_below_zero() {
        let mut rng = stream(5, "jitter");
        for spread in [Spread::Uniform(SIZE), Spread::Normal(SIZE)] {
            let drawn = (0..1_000).map(|_| spread.vary(Duration::ZERO, &mut rng));
            assert!(drawn.max().unwrap() <= SIZE * 6);
        }
    }
}
