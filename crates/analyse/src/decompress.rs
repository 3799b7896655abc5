//! Undoes the compression of a file, if it has one.
//!
//! Sources: RFC 1952 (gzip), RFC 8878 §3.1 (zstd: a file is frames one after the other, of which some may be skipped).

use std::io::{BufRead, BufReader, Cursor, Error, Read, Result};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::error::ReadError;
use crate::snoop;

/// A file whose compression is undone.
pub(crate) struct Opened<'r> {
    pub(crate) is_compressed: bool,
    /// Its first bytes.
    pub(crate) magic: [u8; 4],
    pub(crate) source: Box<dyn Read + 'r>,
}

/// Undoes the compression of a file, if it has one.
///
/// # Errors
/// If it is too short, or is not compressed as its first bytes say.
pub(crate) fn open<'r>(source: impl Read + 'r) -> std::result::Result<Opened<'r>, ReadError> {
    let (magic, source) = peeked(source)?;
    let (is_compressed, magic, source): (bool, _, Box<dyn Read + 'r>) = match magic {
        [0x1f, 0x8b, ..] => {
            let (magic, source) =
                peeked(MultiGzDecoder::new(BufReader::new(source))).map_err(broken)?;
            (true, magic, Box::new(source))
        }
        magic if is_frame(magic) => {
            let (magic, source) = peeked(Frames::new(BufReader::new(source))).map_err(broken)?;
            (true, magic, Box::new(source))
        }
        _ => (false, magic, Box::new(source)),
    };
    if snoop::MAGIC.starts_with(&magic) {
        let (magic, source) = peeked(snoop::AsPcap::new(source))?;
        return Ok(Opened { is_compressed, magic, source: Box::new(source) });
    }
    Ok(Opened { is_compressed, magic, source })
}

/// Nothing could be unpacked.
fn broken(error: ReadError) -> ReadError {
    match error {
        ReadError::Empty => ReadError::Empty,
        _ => ReadError::Broken,
    }
}

/// The first bytes of a source, and a source that has them too.
fn peeked<R: Read>(mut source: R) -> std::result::Result<([u8; 4], impl Read), ReadError> {
    let mut start = Vec::with_capacity(4);
    source.by_ref().take(4).read_to_end(&mut start)?;
    let magic = start.clone().try_into().map_err(|_| ReadError::Empty)?;
    Ok((magic, Cursor::new(start).chain(source)))
}

fn is_frame(magic: [u8; 4]) -> bool {
    magic == ZSTD || u32::from_le_bytes(magic) & SKIPPABLE_BITS == SKIPPABLE
}

/// The frames of a file of zstd, one after the other.
struct Frames<R: Read> {
    /// None at the end, or after an error.
    state: Option<State<R>>,
    is_broken: bool,
}

/// A source whose next bytes were read already.
type Behind<R> = std::io::Chain<Cursor<[u8; 4]>, R>;

enum State<R: Read> {
    Between(R),
    Inside(Box<StreamingDecoder<Behind<R>, FrameDecoder>>),
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        Self { state: Some(State::Between(source)), is_broken: false }
    }

    /// Begins the next frame, behind those that are skipped; none at the end.
    fn begin(mut source: R) -> Result<Option<State<R>>> {
        while !source.fill_buf()?.is_empty() {
            let mut magic = [0; 4];
            source.read_exact(&mut magic)?;
            if u32::from_le_bytes(magic) & SKIPPABLE_BITS != SKIPPABLE {
                let decoder = StreamingDecoder::new(Cursor::new(magic).chain(source));
                return Ok(Some(State::Inside(Box::new(decoder.map_err(Error::other)?))));
            }
            let mut len = [0; 4];
            source.read_exact(&mut len)?;
            let len = u64::from(u32::from_le_bytes(len));
            if std::io::copy(&mut source.by_ref().take(len), &mut std::io::sink())? < len {
                return Err(Error::other("a frame ends early"));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.is_broken {
            return Err(Error::other("a frame is not valid"));
        }
        self.is_broken = true;
        let count = self.advance(buffer)?;
        self.is_broken = false;
        Ok(count)
    }
}

impl<R: BufRead> Frames<R> {
    fn advance(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while let Some(state) = self.state.take() {
            match state {
                State::Between(source) => self.state = Self::begin(source)?,
                State::Inside(mut decoder) => {
                    let count = decoder.read(buffer)?;
                    if count > 0 || buffer.is_empty() {
                        self.state = Some(State::Inside(decoder));
                        return Ok(count);
                    }
                    self.state = Some(State::Between(decoder.into_inner().into_inner().1));
                }
            }
        }
        Ok(0)
    }
}

/// The first bytes of a frame of zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Those of a frame that is skipped; the last four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;
const SKIPPABLE_BITS: u32 = 0xffff_fff0;
