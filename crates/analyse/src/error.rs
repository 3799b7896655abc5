//! What can be wrong with a capture.

use thiserror::Error;

/// Why a file could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Its first bytes are of no format that is read.
    #[error(
        "it is no packet capture and no qlog: allowed are pcap, pcapng, snoop and qlog, also compressed by gzip, zstd or xz"
    )]
    Format,
    /// Its compressed data ends early or is not valid before the first packet.
    #[error("its compressed data ends early or is not valid, before the first packet")]
    Broken,
    /// It begins like a qlog and is none; the text says why.
    #[error("{0}")]
    Log(String),
    /// It ends inside its header.
    #[error("it ends before its first packet")]
    Empty,
}

/// Why reading a capture ended before its end: everything before that place has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// It ends inside a packet, as after a kill of the program that wrote it.
    Incomplete {
        /// Where that packet begins.
        offset: u64,
    },
    /// A block is not valid.
    Invalid {
        /// Where it begins.
        offset: u64,
    },
    /// It is a qlog that ends inside an event.
    Event,
    /// Its compressed data is not valid.
    Compression,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Incomplete { offset } => write!(f, "it ends inside the block at byte {offset}"),
            Self::Invalid { offset } => {
                write!(f, "the block at byte {offset} is not valid; nothing after it was read")
            }
            Self::Event => write!(f, "it ends inside an event"),
            Self::Compression => write!(f, "its compressed data ends early or is not valid"),
        }
    }
}
