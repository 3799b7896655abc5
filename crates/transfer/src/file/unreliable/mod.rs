//! Files over bare UDP, so that its losses can be counted (`--stack udp`).
//!
//! The connection carries the offer, the receiver's consent, how many datagrams were sent, and what
//! became of them; the file's bytes travel next to it in loose datagrams, each once, numbered by their
//! offset in the file. A file that arrived whole with the right hash is kept, any other is removed.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub(crate) use self::incoming::DatagramFile;
pub use self::outgoing::{DatagramOptions, OutgoingDatagrams};
