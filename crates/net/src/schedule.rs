//! A value that changes at known times.

use weir_units::Instant;

/// A value with its later changes: each step holds from its instant on, until the next.
///
/// ```
/// use weir_net::{LinkConfig, Schedule, Service};
/// use weir_units::{Duration, Instant, Rate};
///
/// let at = |secs| Instant::ZERO + Duration::from_secs(secs);
/// let rate = Schedule { initial: Rate::from_mbit(10), steps: vec![(at(5), Rate::from_mbit(2))] };
/// assert_eq!((rate.at(at(4)), rate.at(at(5))), (Rate::from_mbit(10), Rate::from_mbit(2)));
/// let config = LinkConfig { service: Service::Rate(rate), ..LinkConfig::default() };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule<T> {
    /// The value before the first step.
    pub initial: T,
    /// The changes, in the order of their times.
    pub steps: Vec<(Instant, T)>,
}

impl<T: Copy> Schedule<T> {
    /// A value that never changes.
    pub const fn constant(value: T) -> Self {
        Self { initial: value, steps: Vec::new() }
    }

    /// Whether it never changes.
    pub fn is_constant(&self) -> bool {
        self.steps.is_empty()
    }

    /// The value at `time`.
    pub fn at(&self, time: Instant) -> T {
        self.pieces_from(time).next().map_or(self.initial, |(_, value)| value)
    }

    /// The stretches of constant value from `time` on: each with its end ([`Instant::MAX`] for the
    /// last) and its value.
    pub(crate) fn pieces_from(&self, time: Instant) -> impl Iterator<Item = (Instant, T)> + '_ {
        let next = self.steps.partition_point(|(from, _)| *from <= time);
        (next..=self.steps.len()).map(|i| {
            let value = if i == 0 { self.initial } else { self.steps[i - 1].1 };
            let end = self.steps.get(i).map_or(Instant::MAX, |(from, _)| *from);
            (end, value)
        })
    }

    /// The time of the first step that does not come after the one before it.
    pub(crate) fn first_disorder(&self) -> Option<Instant> {
        let pair = self.steps.windows(2).find(|pair| pair[0].0 >= pair[1].0)?;
        Some(pair[1].0)
    }
}

impl<T: Copy> From<T> for Schedule<T> {
    fn from(value: T) -> Self {
        Self::constant(value)
    }
}
