//! Sizes, rates and probabilities.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::rng::Rng;
use crate::time::Duration;

/// A number of bytes.
///
/// ```
/// use weir_units::Bytes;
///
/// let queue: Bytes = "64kib".parse()?;
/// assert_eq!(queue, Bytes(65_536));
/// assert_eq!(queue.mul_ratio(3, 4), Bytes(49_152));
/// assert_eq!(Bytes(1_000).saturating_sub(queue), Bytes::ZERO);
/// # Ok::<(), weir_units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A length in millimetres.
///
/// ```
/// use weir_units::Length;
///
/// assert_eq!("250m".parse(), Ok(Length(250_000)));
/// assert!("250".parse::<Length>().unwrap_err().to_string().contains("as in 250m"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(pub u64);

/// A speed in millimetres per second.
///
/// ```
/// use weir_units::Speed;
///
/// assert_eq!("1.5m/s".parse(), Ok(Speed(1_500)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(pub u64);

/// A data rate in bits per second.
///
/// ```
/// use weir_units::{Bytes, Duration, Rate};
///
/// let rate = Rate::from_mbit(12);
/// assert_eq!(rate.bytes_in(Duration::from_millis(1)), Bytes(1_500));
/// assert_eq!(Rate::from_transfer(Bytes(1_500), Duration::from_millis(1)), Some(rate));
/// assert_eq!("12Mbps".parse(), Ok(rate));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A fraction between 0 and 1 in exact billionths: a loss, a share, a mark probability.
///
/// ```
/// use weir_units::{Ratio, stream};
///
/// let loss: Ratio = "2.5%".parse()?;
/// assert_eq!(loss.as_billionths(), 25_000_000);
/// let mut rng = stream(1, "loss");
/// let lost = (0..100_000).filter(|_| loss.chance(&mut rng)).count();
/// assert!((2_300..2_700).contains(&lost), "{lost}");
/// # Ok::<(), weir_units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than anything holds.
    pub const MAX: Self = Self(u64::MAX);

    /// The plain number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * num / den`, rounded down, without overflow in between.
    pub const fn mul_ratio(self, num: u64, den: u64) -> Self {
        Self((self.0 as u128 * num as u128 / den as u128) as u64)
    }
}

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    const NANO_BITS_PER_BYTE: u128 = 8 * 1_000_000_000;

    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `mbit` million bits per second.
    pub const fn from_mbit(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// The rate that moves `bytes` in `time`; `None` when `time` is zero.
    pub fn from_transfer(bytes: Bytes, time: Duration) -> Option<Self> {
        let nanos = u128::from(time.as_nanos());
        let bits = (u128::from(bytes.0) * Self::NANO_BITS_PER_BYTE).checked_div(nanos)?;
        Some(Self(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    /// Bits per second.
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0
    }

    /// Millions of bits per second, for tables and plots only.
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time that `bytes` take at this rate. `carry` holds what rounding left behind (in bits per
    /// second times nanoseconds) and goes into the next call, so that a link never drifts.
    ///
    /// # Panics
    /// If the rate is zero: a stopped link has no transmission time.
    ///
    /// ```
    /// use weir_units::{Bytes, Duration, Rate};
    ///
    /// // A byte takes 2.67 ns at 3 Gbit/s. Three bytes take exactly 8 ns, because the rest is carried.
    /// let (rate, mut carry) = (Rate::from_mbit(3_000), 0);
    /// let times: Vec<u64> = (0..3).map(|_| rate.transmit_time(Bytes(1), &mut carry).as_nanos()).collect();
    /// assert_eq!(times, [2, 3, 3]);
    /// ```
    #[inline(always)]
    pub fn transmit_time(self, bytes: Bytes, carry: &mut u64) -> Duration {
        // A carry from a faster rate may exceed this one; it is at most one nanosecond of it.
        let work = u128::from(bytes.0) * Self::NANO_BITS_PER_BYTE + u128::from(*carry);
        let nanos = match u64::try_from(work) {
            // A packet's: one division in place of two long ones.
            Ok(work) => {
                *carry = work % self.0;
                work / self.0
            }
            Err(_) => {
                let rate = u128::from(self.0);
                *carry = (work % rate) as u64;
                (work / rate) as u64
            }
        };
        Duration::from_nanos(nanos)
    }

    /// The bytes that pass in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / Self::NANO_BITS_PER_BYTE;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// `self * num / den`, rounded down, stopping at the largest rate.
    pub fn mul_ratio(self, num: u64, den: u64) -> Self {
        let bits = u128::from(self.0) * u128::from(num) / u128::from(den);
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl Ratio {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(Self::BILLION);
    const BILLION: u32 = 1_000_000_000;

    /// `parts` billionths; `None` above one.
    pub const fn from_billionths(parts: u32) -> Option<Self> {
        if parts <= Self::BILLION { Some(Self(parts)) } else { None }
    }

    /// `percent` hundredths, at most 100.
    ///
    /// # Panics
    /// Above 100.
    pub const fn from_percent(percent: u32) -> Self {
        assert!(percent <= 100);
        Self(percent * 10_000_000)
    }

    /// Billionths.
    pub const fn as_billionths(self) -> u32 {
        self.0
    }

    /// As a float, for tables and formulas that decide nothing.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e9
    }

    /// Draws: true with this probability. Never and always draw nothing from the stream.
    pub fn chance(self, rng: &mut Rng) -> bool {
        match self.0 {
            0 => false,
            Self::BILLION => true,
            parts => rng.below(u64::from(Self::BILLION)) < u64::from(parts),
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Bytes {
    type Output = Self;
    fn div(self, by: u64) -> Self {
        Self(self.0 / by)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
