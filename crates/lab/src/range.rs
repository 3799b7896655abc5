//! The range of a key: which values of its type are allowed. It is declared next to the key.

use std::fmt::Display;

use weir_net::MAX_DELAY;
use weir_units::{Duration, Rate};

use crate::error::Problem;

/// A range of values.
pub(crate) struct Range<T> {
    low: Low<T>,
    high: Option<T>,
    reason: &'static str,
}

enum Low<T> {
    Any,
    From(T),
    Above(T),
}

/// From `least` on.
pub(crate) fn at_least<T>(least: T) -> Range<T> {
    Range { low: Low::From(least), high: None, reason: "" }
}

/// Up to `most`.
pub(crate) fn at_most<T>(most: T) -> Range<T> {
    Range { low: Low::Any, high: Some(most), reason: "" }
}

/// From `least` to `most`, both included.
pub(crate) fn between<T>(least: T, most: T) -> Range<T> {
    Range { low: Low::From(least), high: Some(most), reason: "" }
}

/// What exceeds `bound`.
pub(crate) fn above<T>(bound: T) -> Range<T> {
    Range { low: Low::Above(bound), high: None, reason: "" }
}

/// Every rate.
pub(crate) fn rates() -> Range<Rate> {
    above(Rate::ZERO).to(MAX_RATE)
}

/// More than any interface has. A run at a rate that is far beyond it would not end.
pub(crate) const MAX_RATE: Rate = Rate::from_mbit(10_000_000);

/// Every delay.
pub(crate) fn up_to_a_day() -> Range<Duration> {
    at_most(MAX_DELAY).because("(24h)")
}

impl<T> Range<T> {
    /// The same, up to `most`.
    pub(crate) fn to(self, most: T) -> Self {
        Self { high: Some(most), ..self }
    }

    /// The same, with a reason that follows a comma, or with an aside in parentheses.
    pub(crate) fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }
}

impl<T: PartialOrd + Display> Range<T> {
    fn contains(&self, value: &T) -> bool {
        let low = match &self.low {
            Low::Any => true,
            Low::From(least) => value >= least,
            Low::Above(bound) => value > bound,
        };
        low && self.high.as_ref().is_none_or(|most| value <= most)
    }

    fn text(&self) -> String {
        let range = match (&self.low, &self.high) {
            (Low::Any, None) => String::new(),
            (Low::Any, Some(most)) => format!("at most {most}"),
            (Low::From(least), None) => format!("at least {least}"),
            (Low::From(least), Some(most)) => format!("{least} to {most}"),
            (Low::Above(bound), None) => format!("above {bound}"),
            (Low::Above(bound), Some(most)) => format!("above {bound}, at most {most}"),
        };
        match self.reason {
            "" => range,
            aside if aside.starts_with('(') => format!("{range} {aside}"),
            reason => format!("{range}, {reason}"),
        }
    }
}

/// A range for a key of type `V`. A key without a value is in every range.
pub(crate) trait Allows<V> {
    /// The value as text, if it is outside.
    fn refused(&self, value: &V) -> Option<String>;

    /// The range as errors and the reference show it.
    fn shown(&self) -> String;
}

impl<T: PartialOrd + Display> Allows<T> for Range<T> {
    fn refused(&self, value: &T) -> Option<String> {
        (!self.contains(value)).then(|| value.to_string())
    }

    fn shown(&self) -> String {
        self.text()
    }
}

impl<T: PartialOrd + Display> Allows<Option<T>> for Range<T> {
    fn refused(&self, value: &Option<T>) -> Option<String> {
        value.as_ref().and_then(|value| self.refused(value))
    }

    fn shown(&self) -> String {
        self.text()
    }
}

/// Refuses a value outside the range of its key.
pub(crate) fn check<V>(key: &str, value: &V, range: &impl Allows<V>) -> Result<(), Problem> {
    match range.refused(value) {
        None => Ok(()),
        Some(value) => Err(Problem::new(key, format!("{value} is not allowed; {}", range.shown()))),
    }
}

/// The text of a range for keys of type `V`.
pub(crate) fn shown<V>(range: &impl Allows<V>) -> String {
    range.shown()
}

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;

    #[test]
    fn the_ends_are_as_the_text_says() {
        let refused = |range: Range<u32>| -> Vec<u32> {
            (0..=4).filter(|value| Allows::<u32>::refused(&range, value).is_some()).collect()
        };
        assert_eq!(refused(at_least(2)), [0, 1]);
        assert_eq!(refused(at_most(2)), [3, 4]);
        assert_eq!(refused(between(1, 3)), [0, 4]);
        assert_eq!(refused(above(1).to(3)), [0, 1, 4]);
        assert_eq!(between(1, 3).text(), "1 to 3");
        assert_eq!(above(Duration::ZERO).text(), "above 0s");
        assert_eq!(
            at_most(Duration::from_secs(60)).because("(a minute)").text(),
            "at most 60s (a minute)"
        );
        let reason = "or nothing passes";
        assert_eq!(
            at_least(Bytes(1_500)).because(reason).text(),
            "at least 1.5kb, or nothing passes"
        );
    }

    #[test]
    fn a_key_that_is_not_set_is_in_every_range() {
        assert_eq!(check("hops", &None, &between(1, 3)), Ok(()));
        let refused =
            check("hops", &Some(4), &between(1, 3)).map_err(|problem| problem.to_string());
        assert_eq!(refused, Err("hops: 4 is not allowed; 1 to 3".to_owned()));
    }
}
