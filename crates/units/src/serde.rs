//! Quantities in files: text with a unit, read and written as on the command line. A bare number is
//! refused where a unit is needed, with what is allowed.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::parse::{
    BUFFER_HELP, LENGTH_HELP, RATE_HELP, RATIO_HELP, SIZE_HELP, SPEED_HELP, TIME_HELP,
};
use crate::{BufferSize, Bytes, Duration, Length, Rate, Ratio, Speed, UnitError};

/// What a file may say in place of a quantity.
trait Quantity: FromStr<Err = UnitError> {
    const HELP: &'static str;
    /// Whether a number without unit has one meaning only.
    const BARE: bool = false;
}

struct QuantityVisitor<T>(PhantomData<T>);

impl<T: Quantity> QuantityVisitor<T> {
    fn bare<E: Error>(&self, number: String, unexpected: Unexpected<'_>) -> Result<T, E> {
        if T::BARE {
            return number.parse().map_err(E::custom);
        }
        Err(E::invalid_type(unexpected, self))
    }
}

impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::HELP)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.bare(number.to_string(), Unexpected::Signed(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.bare(number.to_string(), Unexpected::Unsigned(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.bare(number.to_string(), Unexpected::Float(number))
    }
}

macro_rules! quantity {
    ($type:ty, $help:expr $(, bare = $bare:expr)?) => {
        impl Quantity for $type {
            const HELP: &'static str = $help;
            $(const BARE: bool = $bare;)?
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor(PhantomData))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

quantity!(Duration, TIME_HELP);
quantity!(Rate, RATE_HELP);
quantity!(Bytes, SIZE_HELP);
quantity!(Length, LENGTH_HELP);
quantity!(Speed, SPEED_HELP);
quantity!(Ratio, RATIO_HELP, bare = true);
quantity!(BufferSize, BUFFER_HELP);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn quantities_are_read_and_written_as_text() {
        assert_eq!(read::<Rate>(r#""10mbit""#), Ok(Rate::from_mbit(10)));
        assert_eq!(serde_json::to_string(&BufferSize::Bdp(1_500)).unwrap(), r#""1.5bdp""#);
    }

    #[test]
    fn a_number_without_unit_is_refused_unless_it_is_a_fraction() {
        let message = read::<Rate>("10").unwrap_err();
        assert!(message.contains("integer `10`") && message.contains("10mbit"), "{message}");
        assert!(read::<Duration>("0.5").is_err());
        assert_eq!(read::<Ratio>("0.02"), Ok(Ratio::from_percent(2)));
        assert!(read::<Ratio>("-0.02").is_err());
    }
}
