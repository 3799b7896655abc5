//! Reads a file in larger pieces than it is sent in.

use std::io;
use std::ptr;
use std::sync::{Arc, Weak};

use super::disk::{DiskFile, read_exact, read_full};

/// The piece of a file that was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    file: Option<Weak<dyn DiskFile>>,
    offset: u64,
    bytes: Vec<u8>,
}

impl ReadAhead {
    /// Reads `buf.len()` bytes at `offset`.
    pub(crate) fn read(
        &mut self,
        file: &Arc<dyn DiskFile>,
        offset: u64,
        buf: &mut [u8],
    ) -> io::Result<()> {
        let before = self.file.as_ref();
        let same = before.is_some_and(|before| ptr::addr_eq(before.as_ptr(), Arc::as_ptr(file)));
        let start = offset.checked_sub(self.offset).filter(|_| same);
        let there = start.and_then(|start| self.bytes.get(start as usize..)?.get(..buf.len()));
        if let Some(bytes) = there {
            buf.copy_from_slice(bytes);
            return Ok(());
        }
        // What is sent again is read alone, so that what comes next stays; so is what is long enough.
        if buf.len() >= LONG || same && offset < self.offset {
            return read_exact(file.as_ref(), offset, buf).map_err(explain);
        }
        self.load(file, offset, buf.len())?;
        let bytes = self.bytes.get(..buf.len()).ok_or_else(|| explain(ends_early()))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    /// Reads the beginning of `file`, before anyone asks for it, unless something was read before.
    pub(crate) fn prepare(&mut self, file: &Arc<dyn DiskFile>) -> io::Result<()> {
        if self.bytes.is_empty() { self.load(file, 0, 0) } else { Ok(()) }
    }

    /// Reads a piece at `offset`, of `least` bytes or more.
    fn load(&mut self, file: &Arc<dyn DiskFile>, offset: u64, least: usize) -> io::Result<()> {
        // Of a small file no more memory is touched than it fills.
        let rest = file.size()?.saturating_sub(offset);
        let piece = usize::try_from(rest).unwrap_or(PIECE).min(PIECE);
        self.bytes.resize(piece.max(least), 0);
        let read = read_full(file.as_ref(), offset, &mut self.bytes)?;
        self.bytes.truncate(read);
        self.file = Some(Arc::downgrade(file));
        self.offset = offset;
        Ok(())
    }
}

fn ends_early() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(error.kind(), "the file became shorter while it was sent")
        }
        _ => error,
    }
}

/// Half of what a core's second cache holds.
const PIECE: usize = 256 << 10;
const LONG: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::file::testing::{TempDir, noise};

    #[test]
    fn any_part_of_any_file_is_read() {
        let folder = TempDir::new();
        let contents = [noise(600_000), noise(1000)];
        let files: Vec<Arc<dyn DiskFile>> = (0..2)
            .map(|n| {
                let path = folder.path().join(n.to_string());
                fs::write(&path, &contents[n]).expect("writable");
                Arc::new(File::open(path).expect("readable")) as Arc<dyn DiskFile>
            })
            .collect();
        let mut ahead = ReadAhead::default();
        ahead.prepare(&files[0]).expect("it is there");
        assert_eq!(ahead.bytes, contents[0][..PIECE]);
        ahead.prepare(&files[1]).expect("it is there");
        assert_eq!(ahead.bytes.len(), PIECE, "only the first");
        for (file, offset, len) in [
            (0, 0, 1448),
            (0, 1448, 1448),
            (0, 261_000, 1448),
            (0, 100, 50),
            (1, 900, 100),
            (0, 300_000, 40_000),
            (0, 599_999, 1),
            (1, 0, 1000),
        ] {
            let mut buf = vec![0; len];
            ahead.read(&files[file], offset as u64, &mut buf).expect("it is there");
            assert_eq!(buf, contents[file][offset..offset + len], "{file} {offset} {len}");
        }
        let error = ahead.read(&files[1], 990, &mut [0; 11]).expect_err("there are but 1000");
        assert_eq!(error.to_string(), "the file became shorter while it was sent");
    }
}
