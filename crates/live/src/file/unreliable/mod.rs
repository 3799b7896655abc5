//! Files over bare UDP, so that its losses can be counted (`--stack udp`).
//!
//! The connection carries the offer, the receiver's consent, how many datagrams were sent, and what
//! became of them; the file's bytes travel beside it in loose datagrams, each once, numbered by their
//! offset in the file. A file that arrived whole with the right hash is kept, any other is removed.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use weir_units::Duration;

pub(crate) use self::incoming::DatagramFile;
pub use self::outgoing::{DatagramOptions, OutgoingDatagrams};

/// What became of a file's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were sent.
    pub sent: u64,
    /// How many of these arrived,
    pub arrived: u64,
    /// with this many bytes of the file,
    pub bytes: u64,
    /// and how many arrived again.
    pub duplicates: u64,
    /// From the offer to the last one that arrived, at the receiver.
    pub span: Duration,
}
