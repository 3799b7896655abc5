//! The frames as bytes, and bytes as frames.

use weir_units::Duration;

use super::{
    Announcement, Answer, Attributes, EntryHeader, EntryKind, Frame, FrameError, Hash, Header,
    MAGIC, MAX_PARTS, MAX_PATH, Tally, Verdict, kind,
};

impl Frame for Announcement {
    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { files } => {
                out.extend(MAGIC);
                out.extend(files.to_be_bytes());
            }
            Self::Ask(header) => {
                out.push(kind::ASK);
                header.encode(out);
            }
            Self::Entry(entry) => entry.encode(out),
            Self::File(header) => {
                out.push(kind::FILE);
                header.encode(out);
            }
            Self::Repair(header) => {
                out.push(kind::REPAIR);
                header.encode(out);
            }
            Self::Parts(hashes) => {
                let hashes = &hashes[..hashes.len().min(MAX_PARTS)];
                out.extend([kind::PARTS, hashes.len() as u8]);
                out.extend(hashes.as_flattened());
            }
            Self::Datagram { header, piece } => {
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
            Self::Hole { offset, len } => {
                out.push(kind::HOLE);
                out.extend(offset.to_be_bytes());
                out.extend(len.to_be_bytes());
            }
            Self::End => out.push(kind::END),
        }
    }

    fn parse_body(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let mut reader = Reader(bytes);
        let Some([kind]) = reader.array() else { return Ok(None) };
        let frame = match kind {
            kind::HELLO => {
                let known = bytes.len().min(MAGIC.len());
                if bytes[..known] != MAGIC[..known] {
                    let version = bytes.get(MAGIC.len() - 1).filter(|_| bytes.starts_with(b"WEIR"));
                    return Err(version.map_or(FrameError::Magic, |it| FrameError::Version(*it)));
                }
                let _: Option<[u8; MAGIC.len() - 1]> = reader.array();
                reader.u32().map(|files| Self::Hello { files })
            }
            kind::ASK => reader.header()?.map(Self::Ask),
            kind::FOLDER | kind::FOLDER_END | kind::LINK => reader.entry(kind)?.map(Self::Entry),
            kind::HOLE => reader.range()?.map(|(offset, len)| Self::Hole { offset, len }),
            kind::FILE => reader.header()?.map(Self::File),
            kind::REPAIR => reader.header()?.map(Self::Repair),
            kind::PARTS => reader.parts()?.map(Self::Parts),
            kind::LOOSE => match reader.u32() {
                Some(piece) => reader.header()?.map(|header| Self::Datagram { header, piece }),
                None => None,
            },
            kind::SENT => reader.u64().map(|datagrams| Self::Sent { datagrams }),
            kind::DATA => reader.range()?.map(|(offset, len)| Self::Data { offset, len }),
            kind::END => Some(Self::End),
            other => return Err(FrameError::Kind(other)),
        };
        Ok(frame.map(|frame| (frame, bytes.len() - reader.0.len())))
    }
}

impl Frame for Answer {
    fn encode_body(&self, out: &mut Vec<u8>) {
        let (kind, file) = match self {
            Self::Have { file, .. } => (kind::HAVE, *file),
            Self::Verdict { file, verdict } => (verdict.kind(), *file),
            Self::Count { file, .. } => (kind::COUNT, *file),
            Self::Working => (kind::WORKING, 0),
            Self::Wait { file } => (kind::WAIT, *file),
            Self::Wanted { file } => (kind::WANTED, *file),
            Self::Damaged { file, .. } => (kind::DAMAGED, *file),
            Self::Failed { .. } => (kind::FAILED, 0),
            Self::Broken { .. } => (kind::BROKEN, 0),
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
            Self::Damaged { offset, len, .. } => {
                out.extend([*offset, *len].map(u64::to_be_bytes).as_flattened());
            }
            Self::Working
            | Self::Wait { .. }
            | Self::Wanted { .. }
            | Self::Verdict { verdict: Verdict::Mismatch, .. } => {}
            Self::Verdict { verdict: Verdict::Kept { name: text }, .. }
            | Self::Verdict { verdict: Verdict::Already { name: text }, .. }
            | Self::Verdict { verdict: Verdict::Refused { reason: text }, .. }
            | Self::Failed { reason: text }
            | Self::Broken { reason: text } => put_text(out, text),
        }
    }

    fn parse_body(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
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
            kind::WAIT => Some(Self::Wait { file }),
            kind::WANTED => Some(Self::Wanted { file }),
            kind::DAMAGED => {
                reader.range()?.map(|(offset, len)| Self::Damaged { file, offset, len })
            }
            kind::MISMATCH => Some(Self::Verdict { file, verdict: Verdict::Mismatch }),
            _ => reader.text()?.map(|text| match kind {
                kind::KEPT => Self::Verdict { file, verdict: Verdict::Kept { name: text } },
                kind::ALREADY => Self::Verdict { file, verdict: Verdict::Already { name: text } },
                kind::REFUSED => Self::Verdict { file, verdict: Verdict::Refused { reason: text } },
                kind::BROKEN => Self::Broken { reason: text },
                _ => Self::Failed { reason: text },
            }),
        };
        Ok(frame.map(|frame| (frame, bytes.len() - reader.0.len())))
    }
}

impl Header {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.number.to_be_bytes());
        out.extend(self.size.to_be_bytes());
        out.extend(self.hash);
        self.attributes.encode(out);
        put_text(out, &self.name);
    }
}

impl EntryHeader {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match &self.kind {
            EntryKind::Folder => kind::FOLDER,
            EntryKind::FolderEnd => kind::FOLDER_END,
            EntryKind::Link { .. } => kind::LINK,
        });
        out.extend(self.number.to_be_bytes());
        self.attributes.encode(out);
        put_text(out, &self.path);
        if let EntryKind::Link { target } = &self.kind {
            put_text(out, target);
        }
    }
}

impl Attributes {
    fn encode(self, out: &mut Vec<u8>) {
        let (seconds, nanos) = self.modified;
        out.extend(self.mode.to_be_bytes());
        out.extend(seconds.to_be_bytes());
        out.extend(nanos.to_be_bytes());
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

/// Texts carry their length in two bytes; what is longer is cut.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = head(text, MAX_PATH);
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text.as_bytes());
}

/// At most `max` bytes of `text`, in whole characters.
pub(in crate::file) fn head(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The permissions of `st_mode`: no set-user-ID, set-group-ID or sticky bit comes from another machine.
const PERMISSIONS: u16 = 0o777;

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
        let text = self.raw_text()?;
        Ok(text.map(|text| text.chars().filter(|c| !c.is_control()).collect()))
    }

    fn raw_text(&mut self) -> Result<Option<String>, FrameError> {
        let Some(len) = self.array().map(u16::from_be_bytes).map(usize::from) else {
            return Ok(None);
        };
        if len > MAX_PATH {
            return Err(FrameError::Text);
        }
        let Some((text, rest)) = self.0.split_at_checked(len) else { return Ok(None) };
        let text = std::str::from_utf8(text).map_err(|_| FrameError::Text)?;
        self.0 = rest;
        Ok(Some(text.to_owned()))
    }

    fn header(&mut self) -> Result<Option<Header>, FrameError> {
        let start = self.u32().zip(self.u64()).zip(self.array());
        let Some(((number, size), hash)) = start else { return Ok(None) };
        if size > i64::MAX as u64 {
            return Err(FrameError::Piece { offset: 0, len: size });
        }
        let Some(attributes) = self.attributes()? else { return Ok(None) };
        Ok(self.path()?.map(|name| Header { number, name, size, hash, attributes }))
    }

    fn entry(&mut self, kind: u8) -> Result<Option<EntryHeader>, FrameError> {
        let Some(number) = self.u32() else { return Ok(None) };
        let Some(attributes) = self.attributes()? else { return Ok(None) };
        let Some(path) = self.path()? else { return Ok(None) };
        let kind = match kind {
            kind::FOLDER => EntryKind::Folder,
            kind::FOLDER_END => EntryKind::FolderEnd,
            _ => match self.path()? {
                Some(target) => EntryKind::Link { target },
                None => return Ok(None),
            },
        };
        Ok(Some(EntryHeader { number, path, attributes, kind }))
    }

    fn attributes(&mut self) -> Result<Option<Attributes>, FrameError> {
        let mode = self.array().map(u16::from_be_bytes);
        let time = self.array().map(i64::from_be_bytes).zip(self.u32());
        let Some((mode, modified)) = mode.zip(time) else { return Ok(None) };
        if modified.1 >= 1_000_000_000 {
            return Err(FrameError::Order("a time with a second or more of nanoseconds"));
        }
        Ok(Some(Attributes { mode: mode & PERMISSIONS, modified }))
    }

    /// The name of something, as it was sent. Its user finds out whether it can be used.
    fn path(&mut self) -> Result<Option<String>, FrameError> {
        match self.raw_text()? {
            // Nor one of which nothing can be printed.
            Some(name) if name.chars().all(char::is_control) => Err(FrameError::NoName),
            name => Ok(name),
        }
    }

    fn tally(&mut self) -> Option<Tally> {
        let [sent, arrived, bytes, duplicates, span] =
            [self.u64()?, self.u64()?, self.u64()?, self.u64()?, self.u64()?];
        Some(Tally { sent, arrived, bytes, duplicates, span: Duration::from_nanos(span) })
    }

    fn parts(&mut self) -> Result<Option<Vec<Hash>>, FrameError> {
        let Some([count]) = self.array() else { return Ok(None) };
        if count == 0 || usize::from(count) > MAX_PARTS {
            return Err(FrameError::Order("a list of no parts, or of too many"));
        }
        Ok((0..count).map(|_| self.array()).collect())
    }

    /// An offset and a length above 0.
    fn range(&mut self) -> Result<Option<(u64, u64)>, FrameError> {
        let Some((offset, len)) = self.u64().zip(self.u64()) else { return Ok(None) };
        let end = offset.checked_add(len).filter(|end| len > 0 && *end <= i64::MAX as u64);
        end.map(|_| Some((offset, len))).ok_or(FrameError::Piece { offset, len })
    }
}
