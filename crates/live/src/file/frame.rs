//! What the two ends say to each other, byte by byte. Integers are big-endian; a table of the frames is
//! in docs/transfer.md.
//!
//! Nothing here trusts the other end: every length has a bound, every text is made printable, and a
//! frame that breaks a rule is an error with its reason.

use weir_units::Duration;

use super::unreliable::Tally;

/// The longest file name in bytes, as on most file systems.
pub const MAX_NAME: usize = 255;
/// The longest frame: a file's header with the longest name.
pub const MAX_FRAME: usize = 1 + 4 + 8 + HASH_LEN + 1 + MAX_NAME;
/// A BLAKE3 hash.
pub type Hash = [u8; HASH_LEN];
const HASH_LEN: usize = blake3::OUT_LEN;
const MAGIC: [u8; 5] = *b"WEIR\x01";

/// What either end says, one frame after the other.
pub trait Frame: Sized {
    /// Appends the frame's bytes to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads the frame at the start of `bytes` and says how long it is; `None` if more bytes are needed.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError>;
}

/// From the sender of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// First of all: how many files there will be.
    Hello {
        /// Their number.
        files: u32,
    },
    /// The next file; its data follows.
    File(Header),
    /// A piece of the file announced last. Its bytes follow the frame.
    Data {
        /// Where the piece begins in the file.
        offset: u64,
        /// How long it is, at least 1.
        len: u64,
    },
    /// The next file, whose data comes in datagrams beside the stream: `--stack udp`.
    Loose {
        /// The file.
        header: Header,
        /// Its bytes in each datagram but the last.
        piece: u32,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name as the sender knows it: not safe to use (see [`super::safe_name`]).
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// The BLAKE3 hash of its content.
    pub hash: Hash,
}

/// From the receiver. Files are numbered from 0 in the order in which they were announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The file is welcome, from `prefix` on: what comes before has arrived earlier.
    Have {
        /// Which file.
        file: u32,
        /// How many bytes of it are there.
        prefix: u64,
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
    /// The receiver ends the session.
    Failed {
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
    /// What arrived has another hash than announced, and was thrown away.
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
    #[error("not a weir transfer, or one of another version")]
    Magic,
    /// No such frame.
    #[error("unknown frame {0:#04x}")]
    Kind(u8),
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

impl Frame for Announcement {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { files } => {
                out.extend(MAGIC);
                out.extend(files.to_be_bytes());
            }
            Self::File(header) => {
                out.push(kind::FILE);
                header.encode(out);
            }
            Self::Loose { header, piece } => {
                out.push(kind::LOOSE);
                out.extend(piece.to_be_bytes());
                header.encode(out);
            }
            Self::Sent { datagrams } => {
                out.push(kind::SENT);
                out.extend(datagrams.to_be_bytes());
            }
            Self::Data { offset, len } => {
                out.push(kind::DATA);
                out.extend(offset.to_be_bytes());
                out.extend(len.to_be_bytes());
            }
            Self::End => out.push(kind::END),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let mut reader = Reader(bytes);
        let Some([kind]) = reader.array() else { return Ok(None) };
        let frame = match kind {
            kind::HELLO => {
                let known = bytes.len().min(MAGIC.len());
                if bytes[..known] != MAGIC[..known] {
                    return Err(FrameError::Magic);
                }
                let _: Option<[u8; MAGIC.len() - 1]> = reader.array();
                reader.u32().map(|files| Self::Hello { files })
            }
            kind::FILE => reader.header()?.map(Self::File),
            kind::LOOSE => match reader.u32() {
                Some(piece) => reader.header()?.map(|header| Self::Loose { header, piece }),
                None => None,
            },
            kind::SENT => reader.u64().map(|datagrams| Self::Sent { datagrams }),
            kind::DATA => reader.piece()?,
            kind::END => Some(Self::End),
            other => return Err(FrameError::Kind(other)),
        };
        Ok(frame.map(|frame| (frame, bytes.len() - reader.0.len())))
    }
}

impl Frame for Answer {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, file) = match self {
            Self::Have { file, .. } => (kind::HAVE, *file),
            Self::Verdict { file, verdict } => (verdict.kind(), *file),
            Self::Count { file, .. } => (kind::COUNT, *file),
            Self::Working => (kind::WORKING, 0),
            Self::Failed { .. } => (kind::FAILED, 0),
        };
        out.push(kind);
        out.extend(file.to_be_bytes());
        match self {
            Self::Have { prefix, .. } => out.extend(prefix.to_be_bytes()),
            Self::Count { tally, .. } => {
                let Tally { sent, arrived, bytes, duplicates, span } = tally;
                let fields = [*sent, *arrived, *bytes, *duplicates, span.as_nanos()];
                out.extend(fields.map(u64::to_be_bytes).as_flattened());
            }
            Self::Working | Self::Verdict { verdict: Verdict::Mismatch, .. } => {}
            Self::Verdict { verdict: Verdict::Kept { name: text }, .. }
            | Self::Verdict { verdict: Verdict::Already { name: text }, .. }
            | Self::Verdict { verdict: Verdict::Refused { reason: text }, .. }
            | Self::Failed { reason: text } => put_text(out, text),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let mut reader = Reader(bytes);
        let Some([kind]) = reader.array() else { return Ok(None) };
        if !kind::ANSWERS.contains(&kind) {
            return Err(FrameError::Kind(kind));
        }
        let Some(file) = reader.u32() else { return Ok(None) };
        let frame = match kind {
            kind::HAVE => reader.u64().map(|prefix| Self::Have { file, prefix }),
            kind::COUNT => reader.tally().map(|tally| Self::Count { file, tally }),
            kind::WORKING => Some(Self::Working),
            kind::MISMATCH => Some(Self::Verdict { file, verdict: Verdict::Mismatch }),
            _ => reader.text()?.map(|text| match kind {
                kind::KEPT => Self::Verdict { file, verdict: Verdict::Kept { name: text } },
                kind::ALREADY => Self::Verdict { file, verdict: Verdict::Already { name: text } },
                kind::REFUSED => Self::Verdict { file, verdict: Verdict::Refused { reason: text } },
                _ => Self::Failed { reason: text },
            }),
        };
        Ok(frame.map(|frame| (frame, bytes.len() - reader.0.len())))
    }
}

impl Header {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.size.to_be_bytes());
        out.extend(self.hash);
        put_text(out, &self.name);
    }
}

impl Verdict {
    fn kind(&self) -> u8 {
        match self {
            Self::Kept { .. } => kind::KEPT,
            Self::Already { .. } => kind::ALREADY,
            Self::Mismatch => kind::MISMATCH,
            Self::Refused { .. } => kind::REFUSED,
        }
    }
}

mod kind {
    pub(super) const HELLO: u8 = super::MAGIC[0];
    pub(super) const FILE: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const LOOSE: u8 = 4;
    pub(super) const SENT: u8 = 5;
    pub(super) const HAVE: u8 = 16;
    pub(super) const KEPT: u8 = 17;
    pub(super) const ALREADY: u8 = 18;
    pub(super) const MISMATCH: u8 = 19;
    pub(super) const REFUSED: u8 = 20;
    pub(super) const FAILED: u8 = 21;
    pub(super) const WORKING: u8 = 22;
    pub(super) const COUNT: u8 = 23;
    pub(super) const ANSWERS: std::ops::RangeInclusive<u8> = HAVE..=COUNT;
}

/// Texts carry their length in one byte; what is longer is cut.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = head(text, MAX_NAME);
    out.push(text.len() as u8);
    out.extend(text.as_bytes());
}

/// At most `max` bytes of `text`, in whole characters.
pub(super) fn head(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// What is left of the bytes at hand; `None` where they end too early.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text that is safe to print on a terminal.
    fn text(&mut self) -> Result<Option<String>, FrameError> {
        let Some([len]) = self.array() else { return Ok(None) };
        let Some((text, rest)) = self.0.split_at_checked(usize::from(len)) else { return Ok(None) };
        let text = std::str::from_utf8(text).map_err(|_| FrameError::Text)?;
        self.0 = rest;
        Ok(Some(text.chars().filter(|c| !c.is_control()).collect()))
    }

    fn header(&mut self) -> Result<Option<Header>, FrameError> {
        let Some((size, hash)) = self.u64().zip(self.array()) else { return Ok(None) };
        if size > i64::MAX as u64 {
            return Err(FrameError::Piece { offset: 0, len: size });
        }
        match self.text()? {
            // Nor one of which nothing can be printed.
            Some(name) if name.is_empty() => Err(FrameError::NoName),
            name => Ok(name.map(|name| Header { name, size, hash })),
        }
    }

    fn tally(&mut self) -> Option<Tally> {
        let [sent, arrived, bytes, duplicates, span] =
            [self.u64()?, self.u64()?, self.u64()?, self.u64()?, self.u64()?];
        Some(Tally { sent, arrived, bytes, duplicates, span: Duration::from_nanos(span) })
    }

    fn piece(&mut self) -> Result<Option<Announcement>, FrameError> {
        let Some((offset, len)) = self.u64().zip(self.u64()) else { return Ok(None) };
        let end = offset.checked_add(len).filter(|end| len > 0 && *end <= i64::MAX as u64);
        match end {
            Some(_) => Ok(Some(Announcement::Data { offset, len })),
            None => Err(FrameError::Piece { offset, len }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        "[a-zA-Zäß€ ._-]{1,60}"
    }

    fn header() -> impl Strategy<Value = Header> {
        (text(), 0..=i64::MAX as u64, any::<Hash>()).prop_map(|(name, size, hash)| Header {
            name,
            size,
            hash,
        })
    }

    fn announcement() -> impl Strategy<Value = Announcement> {
        prop_oneof![
            any::<u32>().prop_map(|files| Announcement::Hello { files }),
            header().prop_map(Announcement::File),
            (header(), any::<u32>())
                .prop_map(|(header, piece)| Announcement::Loose { header, piece }),
            any::<u64>().prop_map(|datagrams| Announcement::Sent { datagrams }),
            (0..1u64 << 62, 1..1u64 << 61)
                .prop_map(|(offset, len)| Announcement::Data { offset, len }),
            Just(Announcement::End),
        ]
    }

    fn answer() -> impl Strategy<Value = Answer> {
        let verdict = prop_oneof![
            text().prop_map(|name| Verdict::Kept { name }),
            text().prop_map(|name| Verdict::Already { name }),
            Just(Verdict::Mismatch),
            text().prop_map(|reason| Verdict::Refused { reason }),
        ];
        prop_oneof![
            any::<(u32, u64)>().prop_map(|(file, prefix)| Answer::Have { file, prefix }),
            (any::<u32>(), verdict).prop_map(|(file, verdict)| Answer::Verdict { file, verdict }),
            text().prop_map(|reason| Answer::Failed { reason }),
            any::<(u32, [u64; 5])>().prop_map(
                |(file, [sent, arrived, bytes, duplicates, span])| {
                    let span = Duration::from_nanos(span);
                    Answer::Count { file, tally: Tally { sent, arrived, bytes, duplicates, span } }
                }
            ),
            Just(Answer::Working),
        ]
    }

    fn reads_back<F: Frame + PartialEq + Debug>(frame: &F, rest: &[u8]) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let len = bytes.len();
        assert!(len <= MAX_FRAME);
        for cut in 0..len {
            assert!(F::parse(&bytes[..cut]).expect("a valid beginning").is_none(), "at {cut}");
        }
        bytes.extend(rest);
        let (read, used) = F::parse(&bytes).expect("valid").expect("whole");
        assert_eq!((&read, used), (frame, len));
    }

    proptest! {
        #[test]
        fn frames_read_back_and_wait_for_all_their_bytes(
            said in announcement(), answered in answer(), rest in any::<[u8; 3]>(),
        ) {
            reads_back(&said, &rest);
            reads_back(&answered, &rest);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for used in [
                Announcement::parse(&bytes).ok().flatten().map(|(_, used)| used),
                Answer::parse(&bytes).ok().flatten().map(|(_, used)| used),
            ].into_iter().flatten() {
                prop_assert!((1..=MAX_FRAME).contains(&used) && used <= bytes.len());
            }
        }
    }

    #[test]
    fn what_breaks_the_rules_is_an_error_as_soon_as_it_shows() {
        assert_eq!(Announcement::parse(b"WEIR\x02"), Err(FrameError::Magic));
        assert_eq!(Announcement::parse(b"WERE"), Err(FrameError::Magic));
        assert_eq!(Announcement::parse(b"GET / HTTP/1.1"), Err(FrameError::Kind(b'G')));
        let mut data = vec![kind::DATA];
        data.extend([0; 16]);
        assert_eq!(Announcement::parse(&data), Err(FrameError::Piece { offset: 0, len: 0 }));
        data[1..].fill(0xff);
        assert!(matches!(Announcement::parse(&data), Err(FrameError::Piece { .. })));
        let mut file = vec![kind::FILE];
        file.extend([0; 41]);
        assert_eq!(Announcement::parse(&file), Err(FrameError::NoName));
        assert_eq!(Answer::parse(&[kind::FILE]), Err(FrameError::Kind(kind::FILE)));
    }

    #[test]
    fn texts_are_cut_and_made_printable() {
        let mut bytes = Vec::new();
        let reason = format!("\x1b[31mred\n{}", "ä".repeat(200));
        Answer::Failed { reason }.encode(&mut bytes);
        let Ok(Some((Answer::Failed { reason }, _))) = Answer::parse(&bytes) else {
            panic!("it is a whole frame");
        };
        assert!(reason.starts_with("[31mredä"), "{reason}");
        assert!(reason.len() <= MAX_NAME);
    }
}
