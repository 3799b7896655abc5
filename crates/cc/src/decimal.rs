//! Exact decimal parameters.

use std::fmt;
use std::str::FromStr;

use weir_units::Bytes;

/// A number from 0 to 1 000 000 in exact thousandths: `0.8`, `1.125`, `3`.
///
/// ```
/// use weir_cc::Decimal;
///
/// assert_eq!("0.875".parse::<Decimal>().map(Decimal::thousandths), Ok(875));
/// assert!("0.8755".parse::<Decimal>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(u32);

/// A text that is no [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0 to 1000000 with at most three decimals")]
pub struct DecimalError;

impl Decimal {
    /// 1.
    pub const ONE: Self = Self(1_000);
    pub(crate) const HALF: Self = Self(500);
    /// 0.4.
    pub(crate) const TWO_FIFTHS: Self = Self(400);
    /// 0.7.
    pub(crate) const SEVEN_TENTHS: Self = Self(700);
    /// 0.8.
    pub(crate) const FOUR_FIFTHS: Self = Self(800);
    /// 0.875.
    pub(crate) const SEVEN_EIGHTHS: Self = Self(875);
    /// 0.95.
    pub(crate) const NINETEEN_TWENTIETHS: Self = Self(950);
    pub(crate) const TWO: Self = Self(2_000);
    const MAX: u32 = 1_000_000_000;

    /// `thousandths / 1000`; `None` above 1 000 000.
    pub const fn from_thousandths(thousandths: u32) -> Option<Self> {
        if thousandths <= Self::MAX { Some(Self(thousandths)) } else { None }
    }

    /// This times 1000.
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// This in 1/1024, to the nearest, as Linux has its shares: 0.7 is 717.
    pub(crate) const fn in_1024ths(self) -> u64 {
        (self.0 as u64 * 1_024 + 500) / 1_000
    }

    /// `bytes` times this, rounded down.
    pub(crate) fn multiply(self, bytes: Bytes) -> Bytes {
        bytes.mul_ratio(u64::from(self.0), 1_000)
    }

    /// `bytes` over this, rounded down; zero counts as a thousandth.
    pub(crate) fn divide(self, bytes: Bytes) -> Bytes {
        bytes.mul_ratio(1_000, u64::from(self.0.max(1)))
    }

    /// This less one, or zero.
    pub(crate) fn less_one(self) -> Self {
        Self(self.0.saturating_sub(1_000))
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        // ".8" is how tables write it.
        if !(digits(whole) || whole.is_empty()) || !digits(fraction) || fraction.len() > 3 {
            return Err(DecimalError);
        }
        let thousandths: u32 =
            format!("{whole}{fraction:0<3}").parse().map_err(|_| DecimalError)?;
        Self::from_thousandths(thousandths).ok_or(DecimalError)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 1_000, self.0 % 1_000);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{fraction:03}").trim_end_matches('0'))
    }
}
