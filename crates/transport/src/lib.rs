//! A reliable transport as a plain state machine.
//!
//! [`Connection`] is told the time, is handed segments, and is asked for segments to send, for its
//! next deadline and for events. It manages byte *ranges*: whoever drives it supplies the bytes at
//! transmission and stores them at their offset on arrival.

mod config;
mod connection;
mod pacer;
mod ranges;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod sampler;
mod scoreboard;
mod segment;
mod sender;
mod stats;
pub mod wire;

pub use config::{
    Config, DelayedAck, Detection, RackConfig, RecoveryConfig, Stack, StackError, Tlp,
};
pub use connection::{Arrived, Connection, ConnectionError, Event, Transmit};
pub use ranges::RangeSet;
pub use reassembly::{Arrival, OutOfOrder, Reassembly, Stored};
pub use rtt::{Outstanding, RttConfig, RttEstimator, RttVariation};
pub use segment::{EcnField, Flags, Options, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
pub use stats::{Snapshot, Stats};
use weir_units::Instant;

/// RFC 7323's clock: milliseconds, as in Linux.
pub(crate) fn timestamp_ms(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
