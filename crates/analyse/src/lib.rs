//! Reads packet captures: TCP connections, their measurements, and what limited them.
//!
//! [`Reading`] reads captures one after the other and returns the rows of tables. Memory is bounded whatever a capture
//! contains. Nothing in a capture causes a panic.

mod connection;
mod error;
mod expert;
mod file;
mod identify;
mod limits;
mod link;
mod packet;
mod points;
mod policer;
mod read;
mod rows;
mod sender;
mod sequence;
mod table;

pub use error::{Cut, ReadError};
pub use expert::ExpertCounts;
pub use file::{CaptureReader, Record};
pub use packet::{Content, Packet, SackBlocks, Segment, decode};
pub use read::{CaptureCounts, Reading, Tables};
pub use rows::{ConnectionRow, PacketRow, PointRow, SliceRow};
