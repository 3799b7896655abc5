//! A reliable transport as a plain state machine.
//!
//! [`Connection`] is told the time, is handed segments, and is asked for segments to send, for its
//! next deadline and for events. It manages byte *ranges*: whoever drives it supplies the bytes at
//! transmission and stores them at their offset on arrival.

mod ranges;
mod reassembly;
mod rtt;
mod segment;
pub mod wire;

pub use ranges::RangeSet;
pub use reassembly::{Arrival, OutOfOrder, Reassembly, Stored};
pub use rtt::{Outstanding, RttConfig, RttEstimator, RttVariation};
pub use segment::{Flags, Options, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
