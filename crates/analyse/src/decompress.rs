//! Undoes the compression of a file, if it has one.
//!
//! Sources: RFC 1952 (gzip), RFC 8878 §3.1 (zstd: a file is frames one after the other, of which some may be skipped).

use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Result};
use std::rc::Rc;

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

/// As [`open`], but a file that unpacks to far more than its size ends with the error [`EXPANDS`]. It costs nothing to
/// make, and hours to read.
///
/// # Errors
/// If it is too short, or is not compressed as its first bytes say.
pub(crate) fn open_bounded<'r>(
    source: impl Read + 'r,
) -> std::result::Result<Opened<'r>, ReadError> {
    let packed = Rc::new(Cell::new(0));
    let opened = open(Counted { source, count: Rc::clone(&packed) })?;
    let source = Box::new(Bounded { source: opened.source, packed, unpacked: 0 });
    Ok(Opened { source, ..opened })
}

/// A source, and how many bytes were read of it.
struct Counted<R> {
    source: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.source.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// What is unpacked, up to a multiple of what was packed.
struct Bounded<'r> {
    source: Box<dyn Read + 'r>,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.source.read(buffer)?;
        self.unpacked += read as u64;
        if self.unpacked > UNPACKED_AT_LEAST.max(self.packed.get() * MOST_TIMES) {
            let text = format!(
                "it unpacks to over {} MiB and over {MOST_TIMES} times its size; if you trust it, unpack it first",
                UNPACKED_AT_LEAST >> 20
            );
            return Err(Error::new(EXPANDS, text));
        }
        Ok(read)
    }
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

/// The kind of the error that ends a file which unpacks to too much.
pub(crate) const EXPANDS: ErrorKind = ErrorKind::QuotaExceeded;
/// Any file may unpack to this size. Logs of connections unpack to 10 to 40 times their size.
const UNPACKED_AT_LEAST: u64 = 256 << 20;
const MOST_TIMES: u64 = 100;
/// The first bytes of a frame of zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Those of a frame that is skipped; the last four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;
const SKIPPABLE_BITS: u32 = 0xffff_fff0;

#[cfg(test)]
mod tests {
    use std::io::{copy, repeat, sink};

    use super::*;

    fn read(packed: u64, unpacked: u64) -> Result<u64> {
        let packed = Rc::new(Cell::new(packed));
        let source = Box::new(repeat(b' ').take(unpacked));
        copy(&mut Bounded { source, packed, unpacked: 0 }, &mut sink())
    }

    #[test]
    fn what_unpacks_to_far_more_than_its_size_is_refused() {
        let most = UNPACKED_AT_LEAST;
        assert_eq!(read(10, most).expect("it is little"), most);
        let refused = read(10, most + 1).expect_err("it is much");
        assert_eq!(refused.kind(), EXPANDS);
        assert!(refused.to_string().contains("over 256 MiB and over 100 times its size"));
        let large = most / MOST_TIMES + 10;
        assert_eq!(read(large, most + 1).expect("the file is large too"), most + 1);
    }
}
