//! Reads packet captures and qlogs: connections, their measurements, and what limited them.
//!
//! [`Reading`] reads files one after the other and returns the rows of tables. Memory is bounded whatever a file
//! contains. Nothing in a file causes a panic.

mod clock;
mod connection;
mod copies;
mod decompress;
mod echoes;
mod end;
mod error;
mod expert;
mod file;
mod fragments;
mod identify;
mod layers;
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
mod snoop;
mod table;
mod tunnels;
mod udp;
mod unread;
mod wireless;

pub use error::{Cut, ReadError};
pub use expert::ExpertCounts;
pub use policer::{SentPacket, bucket_size, find_policer};
pub use read::{CaptureCounts, Reading, Tables};
pub use rows::{ConnectionRow, PacketRow, PointRow, SliceRow};
pub use udp::UdpRow;
pub use unread::{Unread, UnreadCounts};
