//! Reads packet captures and qlogs: connections, their measurements, and what limited them.
//!
//! [`Reading`] reads files one after the other and returns the rows of tables. Memory is bounded whatever a file
//! contains. Nothing in a file causes a panic.

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
mod qlog;
mod read;
mod rows;
mod sender;
mod sequence;
mod table;
mod udp;

pub use error::{Cut, ReadError};
pub use expert::ExpertCounts;
pub use file::{CaptureReader, Record};
pub use packet::{Content, Datagram, Packet, QuicHeader, SackBlocks, Segment, decode};
pub use policer::{SentPacket, bucket_size, find_policer};
pub use read::{CaptureCounts, Reading, Tables};
pub use rows::{ConnectionRow, PacketRow, PointRow, SliceRow};
pub use udp::UdpRow;
