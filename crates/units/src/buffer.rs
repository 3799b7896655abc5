//! How deep a queue is, in any of the field's units.

use crate::quantity::{Bytes, Rate};
use crate::time::Duration;

/// The bound of a queue.
///
/// ```
/// use weir_units::{BufferSize, Bytes, Duration, Rate};
///
/// let (rate, rtt) = (Rate::from_mbit(8), Duration::from_millis(100));
/// for (text, bytes) in [("0.5bdp", Some(50_000)), ("20ms", Some(20_000)), ("64kb", Some(64_000)), ("64p", None)] {
///     assert_eq!(text.parse::<BufferSize>()?.to_bytes(rate, rtt), bytes.map(Bytes));
/// }
/// # Ok::<(), weir_units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// A number of bytes of IP packets.
    Bytes(Bytes),
    /// A number of packets.
    Packets(u64),
    /// As much as the link sends in this time.
    Time(Duration),
    /// Thousandths of the bandwidth-delay product.
    Bdp(u64),
    /// No bound.
    Infinite,
}

impl BufferSize {
    /// Whether it holds nothing, whatever the link.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Bytes(bytes) => *bytes == Bytes::ZERO,
            Self::Packets(packets) => *packets == 0,
            Self::Time(time) => time.is_zero(),
            Self::Bdp(thousandths) => *thousandths == 0,
            Self::Infinite => false,
        }
    }

    /// `self * num / den`, rounded down; what has no bound keeps none.
    pub fn mul_ratio(self, num: u64, den: u64) -> Self {
        let scaled = |amount: u64| (u128::from(amount) * u128::from(num) / u128::from(den)) as u64;
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.mul_ratio(num, den)),
            Self::Packets(packets) => Self::Packets(scaled(packets)),
            Self::Time(time) => Self::Time(time.mul_ratio(num, den)),
            Self::Bdp(thousandths) => Self::Bdp(scaled(thousandths)),
            Self::Infinite => Self::Infinite,
        }
    }

    /// The bound in bytes on a link of `rate` whose flows see `rtt` without queues; `None` where the
    /// bound is a number of packets or there is none.
    pub fn to_bytes(self, rate: Rate, rtt: Duration) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Time(time) => Some(rate.bytes_in(time)),
            Self::Bdp(thousandths) => Some(rate.bytes_in(rtt).mul_ratio(thousandths, 1_000)),
            Self::Packets(_) | Self::Infinite => None,
        }
    }
}
