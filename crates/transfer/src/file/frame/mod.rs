//! What the two ends say to each other, byte by byte. Integers are big-endian; a table of the frames is
//! in docs/transfer.md.
//!
//! Nothing here trusts the other end: every length has a bound, every text is made printable, and a
//! frame that breaks a rule is an error with its reason.

mod check;
mod codec;
#[cfg(test)]
mod tests;

use weir_units::Duration;

use self::check::{CHECK_LEN, check};
pub(super) use self::codec::head;

/// The longest file name in bytes, as on most file systems.
pub const MAX_NAME: usize = 255;
/// The longest path in bytes, and the longest target of a link: Linux's `PATH_MAX` without the zero at its end.
pub const MAX_PATH: usize = 4095;
/// The longest frame: a link with the longest path and target, and its check.
pub const MAX_FRAME: usize = 1 + 4 + ATTRIBUTES_LEN + 2 * (2 + MAX_PATH) + CHECK_LEN;
/// The most hashes of parts in a frame.
pub const MAX_PARTS: usize = 8;
/// A BLAKE3 hash.
pub type Hash = [u8; HASH_LEN];
const HASH_LEN: usize = blake3::OUT_LEN;
const VERSION: u8 = MAGIC[4];
const MAGIC: [u8; 5] = *b"WEIR\x03";
/// Permissions, and a time in seconds and nanoseconds.
const ATTRIBUTES_LEN: usize = 2 + 8 + 4;

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

/// What either end says, one frame after the other.
pub trait Frame: Sized {
    /// Appends the frame's bytes to `out`, but for its check.
    fn encode_body(&self, out: &mut Vec<u8>);

    /// Reads the frame at the start of `bytes`, but for its check, and says how long it is; `None` if more
    /// bytes are needed.
    fn parse_body(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError>;

    /// Appends the frame's bytes to `out`.
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_body(out);
        let check = check(&out[start..]);
        out.extend(check);
    }

    /// Reads the frame at the start of `bytes` and says how long it is; `None` if more bytes are needed.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((frame, len)) = Self::parse_body(bytes)? else { return Ok(None) };
        let (body, rest) = bytes.split_at(len);
        match rest.first_chunk() {
            None => Ok(None),
            Some(is) if *is == check(body) => Ok(Some((frame, len + CHECK_LEN))),
            Some(_) => Err(FrameError::Damaged),
        }
    }
}

/// From the sender of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// First of all: how many files there will be.
    Hello {
        /// Their number.
        files: u32,
    },
    /// Asks whether the receiver has a file already. Its answer is a verdict, or that it wants the file.
    Ask(Header),
    /// A folder, a link, or the end of a folder: nothing follows, and the answer is a verdict.
    Entry(EntryHeader),
    /// The next file; its data follows.
    File(Header),
    /// The next file, of which the receiver has got another content than announced. The hashes of its
    /// parts follow, and data once the receiver has said what of it is damaged.
    Repair(Header),
    /// The next of these hashes, at most [`MAX_PARTS`].
    Parts(Vec<Hash>),
    /// A piece of the file announced last. Its bytes follow the frame.
    Data {
        /// Where the piece begins in the file.
        offset: u64,
        /// How long it is, at least 1.
        len: u64,
    },
    /// The next file, whose data comes in datagrams next to the stream: `--stack udp`.
    Datagram {
        /// The file.
        header: Header,
        /// Its bytes in each datagram but the last.
        piece: u32,
    },
    /// Zeros in place of a piece of the file announced last, which its sender's disk has as a hole.
    Hole {
        /// Where they begin in the file: no further than what is there without a hole.
        offset: u64,
        /// How many there are, at least 1.
        len: u64,
    },
    /// All datagrams of the file announced last have left.
    Sent {
        /// How many they were.
        datagrams: u64,
    },
    /// Nothing comes after this.
    End,
}

/// What a file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Its number in its session: the next one, from 0, in the frame that names it first, a question or not.
    pub number: u32,
    /// Its name as the sender knows it, or its path in a folder that was announced: not safe to use (see
    /// [`super::SafePath`]).
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// The BLAKE3 hash of its content.
    pub hash: Hash,
    /// What else is kept of it.
    pub attributes: Attributes,
}

impl Header {
    /// The first file of a session, that anyone may read.
    pub fn new(name: impl Into<String>, size: u64, hash: Hash) -> Self {
        Self { number: 0, name: name.into(), size, hash, attributes: Attributes::default() }
    }
}

/// What is kept of a file or folder next to its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions: the lowest nine bits of `st_mode`. Others are not sent, and dropped when they come.
    pub mode: u16,
    /// When its content was last changed, in seconds and nanoseconds since 1970.
    pub modified: (i64, u32),
}

impl Default for Attributes {
    fn default() -> Self {
        Self { mode: 0o644, modified: (0, 0) }
    }
}

/// What has a name but no content of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// Its number in its session, as files have one.
    pub number: u32,
    /// Its path: not safe to use.
    pub path: String,
    /// What is kept of it.
    pub attributes: Attributes,
    /// What it is.
    pub kind: EntryKind,
}

/// A kind of entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder that is to be there before what is in it.
    Folder,
    /// The same folder, whose entries have all come: it gets its permissions and time.
    FolderEnd,
    /// A symbolic link.
    Link {
        /// Where it leads: not safe to use.
        target: String,
    },
}

/// From the receiver. Files and entries are numbered from 0 in the order in which they were asked about or announced
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The file is welcome, from `prefix` on: what comes before has arrived earlier.
    Have {
        /// Which file.
        file: u32,
        /// How many bytes of it are there.
        prefix: u64,
    },
    /// This range of the file is damaged and wanted again. All such come before the file's `Have`.
    Damaged {
        /// Which file.
        file: u32,
        /// Where the range begins.
        offset: u64,
        /// How long it is.
        len: u64,
    },
    /// The file that was asked about is not there.
    Wanted {
        /// Which file.
        file: u32,
    },
    /// Whether the file is welcome is not known yet: until it is, no more of it is wanted.
    Wait {
        /// Which file.
        file: u32,
    },
    /// How much of a file arrived in datagrams. Its verdict follows.
    Count {
        /// Which file.
        file: u32,
        /// What became of its datagrams.
        tally: Tally,
    },
    /// Nothing to say yet: it is still at work on the verdicts.
    Working,
    /// What became of a file.
    Verdict {
        /// Which file.
        file: u32,
        /// How it ended.
        verdict: Verdict,
    },
    /// The receiver ends the session, and another one would end the same way.
    Failed {
        /// Why.
        reason: String,
    },
    /// The receiver ends the session, for a reason that another one need not meet.
    Broken {
        /// Why.
        reason: String,
    },
}

/// How a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Complete, and in its folder under this name.
    Kept {
        /// The name that it got.
        name: String,
    },
    /// A file with the same content was there before, under this name.
    Already {
        /// The name that it has.
        name: String,
    },
    /// What arrived has another hash than announced. Another session may repair it.
    Mismatch,
    /// The receiver does not want it; it may want others.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A frame that breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream does not begin as ours does.
    #[error("not a weir transfer")]
    Magic,
    /// The sender speaks another version of the protocol.
    #[error("the sender speaks version {0} of the protocol, this receiver version {VERSION}")]
    Version(u8),
    /// No such frame.
    #[error("unknown frame {0:#04x}")]
    Kind(u8),
    /// A frame that was changed on its way.
    #[error("a damaged frame")]
    Damaged,
    /// A file without a name.
    #[error("a file without a name")]
    NoName,
    /// A text that is not UTF-8.
    #[error("a text that is not UTF-8")]
    Text,
    /// A piece without bytes, or beyond what a file can have.
    #[error("a piece of {len} bytes at {offset}")]
    Piece {
        /// Where it would begin.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// A frame where it has no place.
    #[error("{0}")]
    Order(&'static str),
}

mod kind {
    pub(super) const HELLO: u8 = super::MAGIC[0];
    pub(super) const FILE: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const LOOSE: u8 = 4;
    pub(super) const SENT: u8 = 5;
    pub(super) const REPAIR: u8 = 6;
    pub(super) const PARTS: u8 = 7;
    pub(super) const ASK: u8 = 8;
    pub(super) const FOLDER: u8 = 9;
    pub(super) const FOLDER_END: u8 = 10;
    pub(super) const LINK: u8 = 11;
    pub(super) const HOLE: u8 = 12;
    pub(super) const HAVE: u8 = 16;
    pub(super) const KEPT: u8 = 17;
    pub(super) const ALREADY: u8 = 18;
    pub(super) const MISMATCH: u8 = 19;
    pub(super) const REFUSED: u8 = 20;
    pub(super) const FAILED: u8 = 21;
    pub(super) const WORKING: u8 = 22;
    pub(super) const COUNT: u8 = 23;
    pub(super) const BROKEN: u8 = 24;
    pub(super) const WAIT: u8 = 25;
    pub(super) const DAMAGED: u8 = 26;
    pub(super) const WANTED: u8 = 27;
    pub(super) const ANSWERS: std::ops::RangeInclusive<u8> = HAVE..=WANTED;
}
