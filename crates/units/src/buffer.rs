//! How deep a queue is, in any of the field's units.

use crate::quantity::{Bytes, Rate};
use crate::time::Duration;

/// The bound of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// So many bytes of IP packets.
    Bytes(Bytes),
    /// So many packets.
    Packets(u64),
    /// As much as the link sends in this time.
    Time(Duration),
    /// Thousandths of the bandwidth-delay product.
    Bdp(u64),
    /// No bound.
    Infinite,
}

impl BufferSize {
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
