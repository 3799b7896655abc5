//! What is around a segment on its way.

use std::io;

use weir_transport::wire::{self, Parsed};

/// How a connection's segments are wrapped into datagrams.
#[derive(Debug, Default)]
pub enum Envelope {
    /// Not at all: the datagram is the segment.
    #[default]
    Clear,
}

impl Envelope {
    /// Bytes that it adds to each segment.
    pub fn overhead(&self) -> usize {
        match self {
            Self::Clear => 0,
        }
    }

    /// Wraps the segment that begins at `start` and ends with `out`.
    ///
    /// # Errors
    /// Why it cannot be wrapped.
    pub fn seal(&mut self, _out: &mut Vec<u8>, _start: usize) -> io::Result<()> {
        match self {
            Self::Clear => Ok(()),
        }
    }

    /// The segment inside, if there is a proper one.
    pub fn open<'a>(&mut self, datagram: &'a [u8]) -> Option<Parsed<'a>> {
        match self {
            Self::Clear => wire::parse(datagram).ok(),
        }
    }
}
