//! A file that comes in loose datagrams.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use weir_units::{Duration, Instant};

use crate::file::disk::Disk;
use crate::file::frame::{Header, Tally};
use crate::file::memory::Share;
use crate::file::partial::Partial;

/// A file that comes in loose datagrams.
#[derive(Debug)]
pub(crate) struct DatagramFile {
    /// Until it turns out that it cannot become whole.
    partial: Option<Partial>,
    size: u64,
    /// The file's bytes in each datagram but the last.
    piece: u64,
    /// A bit for each piece that is there.
    there: Vec<u64>,
    /// Where the memory of these bits is from.
    share: Rc<Share>,
    tally: Tally,
    began: Instant,
    /// When the last datagram came, or the word that there are no more.
    heard: Instant,
    /// The sender has said how many it sent.
    announced: bool,
}

impl DatagramFile {
    /// A file that comes in pieces of `piece` bytes, or why not.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn begin(
        now: Instant,
        disk: &Arc<dyn Disk>,
        folder: &Path,
        header: &Header,
        piece: u32,
        share: &Rc<Share>,
    ) -> io::Result<Result<Self, String>> {
        let (size, piece) = (header.size, u64::from(piece));
        if piece < MIN_PIECE {
            return Ok(Err(format!("datagrams of {piece} bytes; {MIN_PIECE} are the least")));
        }
        let pieces = size.div_ceil(piece);
        if pieces > MAX_PIECES {
            let reason = format!("more than {MAX_PIECES} datagrams of {piece} bytes");
            return Ok(Err(reason));
        }
        if !share.claim(memory_of(pieces)) {
            return Ok(Err("the receiver has no memory to count its datagrams".to_owned()));
        }
        Ok(Ok(Self {
            share: Rc::clone(share),
            partial: Some(Partial::fresh(disk, folder, header)),
            size,
            piece,
            there: vec![0; pieces.div_ceil(64) as usize],
            tally: Tally::default(),
            began: now,
            heard: now,
            announced: false,
        }))
    }

    /// Takes a datagram in; what does not belong is ignored.
    pub(crate) fn store(&mut self, now: Instant, offset: u64, bytes: &[u8]) {
        let expected = self.size.saturating_sub(offset).min(self.piece);
        let misplaced = !offset.is_multiple_of(self.piece);
        if misplaced || bytes.len() as u64 != expected || bytes.is_empty() {
            return;
        }
        self.heard = now;
        let at = offset / self.piece;
        let (word, bit) = (&mut self.there[(at / 64) as usize], 1 << (at % 64));
        if *word & bit != 0 {
            self.tally.duplicates += 1;
            return;
        }
        *word |= bit;
        self.tally.arrived += 1;
        self.tally.bytes += bytes.len() as u64;
        self.tally.span = now.saturating_since(self.began);
        // Too many holes, or no memory: it can still be counted.
        if self.partial.as_mut().is_some_and(|partial| partial.write(offset, bytes).is_err()) {
            self.discard();
        }
    }

    /// The sender has sent this many.
    pub(crate) fn on_sent(&mut self, now: Instant, datagrams: u64) {
        self.tally.sent = datagrams;
        self.heard = now;
        self.announced = true;
    }

    /// When nothing more is to be expected, unless something comes.
    pub(crate) fn ends_at(&self, srtt: Duration) -> Option<Instant> {
        if !self.announced {
            return None;
        }
        let whole = self.tally.bytes == self.size;
        Some(if whole { self.heard } else { self.heard + GRACE.max(srtt.saturating_mul(4)) })
    }

    /// What has arrived so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// What the bits of its pieces take.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.there[..])
    }

    /// The file, if it is whole; what is not is removed.
    pub(crate) fn finish(mut self) -> Option<Partial> {
        if self.partial.as_ref().is_some_and(Partial::is_complete) {
            return self.partial.take();
        }
        None
    }

    fn discard(&mut self) {
        if let Some(partial) = self.partial.take() {
            // What cannot be removed is overwritten by the next transfer of the same file.
            let _ = partial.discard();
        }
    }
}

impl Drop for DatagramFile {
    fn drop(&mut self) {
        self.share.give_back(memory_of(self.size.div_ceil(self.piece)));
        self.discard();
    }
}

/// Memory of a bit for each of `pieces` pieces.
fn memory_of(pieces: u64) -> usize {
    pieces.div_ceil(64) as usize * size_of::<u64>()
}

/// The shortest segment of a reliable transfer, too: shorter ones cost the receiver more than the sender.
const MIN_PIECE: u64 = 64;
/// A bit for each takes 8 MiB.
const MAX_PIECES: u64 = 1 << 26;
/// How long the last datagrams may come behind the word that they were sent.
const GRACE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Bytes;

    use crate::file::SystemDisk;
    use crate::file::memory::Memory;
    use crate::file::testing::{TempDir, header_of, noise};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn begin(folder: &TempDir, content: &[u8], piece: u32) -> DatagramFile {
        let header = header_of("x", content);
        let share = Memory::new(Bytes(1 << 20)).share(0);
        begin_with(folder, &header, piece, &share).expect("few")
    }

    fn begin_with(
        folder: &TempDir,
        header: &Header,
        piece: u32,
        share: &Rc<Share>,
    ) -> Result<DatagramFile, String> {
        let disk = SystemDisk::shared();
        DatagramFile::begin(at(0), &disk, folder.path(), header, piece, share).expect("a folder")
    }

    #[test]
    fn a_file_that_arrives_whole_in_any_order_can_be_kept() {
        let (folder, content) = (TempDir::new(), noise(1_000));
        let mut file = begin(&folder, &content, 300);
        for offset in [900, 0, 600, 300, 0] {
            let end = (offset + 300).min(1_000);
            file.store(at(5), offset as u64, &content[offset..end]);
        }
        assert_eq!(file.ends_at(Duration::ZERO), None, "more may come");
        file.on_sent(at(6), 4);
        assert_eq!(file.ends_at(Duration::ZERO), Some(at(6)));
        let span = Duration::from_millis(5);
        let tally = Tally { sent: 4, arrived: 4, bytes: 1_000, duplicates: 1, span };
        assert_eq!(file.tally(), tally);
        let mut partial = file.finish().expect("it is whole");
        assert!(partial.seal().expect("readable").is_some());
    }

    #[test]
    fn a_file_with_holes_is_counted_and_removed() {
        let (folder, content) = (TempDir::new(), noise(1_000));
        let mut file = begin(&folder, &content, 300);
        file.store(at(1), 300, &content[300..600]);
        file.on_sent(at(2), 4);
        assert_eq!(file.ends_at(Duration::ZERO), Some(at(202)));
        assert_eq!(file.ends_at(Duration::from_millis(100)), Some(at(402)));
        assert_eq!((file.tally().arrived, file.tally().bytes), (1, 300));
        assert!(file.finish().is_none());
        assert!(folder.names().is_empty());
    }

    #[test]
    fn what_was_not_offered_is_ignored() {
        let (folder, content) = (TempDir::new(), noise(1_000));
        let mut file = begin(&folder, &content, 300);
        for (offset, len) in [(1, 300), (900, 300), (1_200, 300), (0, 299), (0, 0), (u64::MAX, 300)]
        {
            file.store(at(1), offset, &vec![0; len]);
        }
        assert_eq!(file.tally(), Tally::default());
    }

    #[test]
    fn the_bits_of_a_file_are_bounded() {
        let folder = TempDir::new();
        let mut header = header_of("x", b"");
        header.size = 1 << 40;
        let share = Memory::new(Bytes(8 << 20)).share(0);
        let begin = |header: &Header, piece| begin_with(&folder, header, piece, &share);
        let refused = begin(&header, 64);
        assert!(refused.is_err_and(|reason| reason.contains("datagrams of 64 bytes")));
        for tiny in [0, 1, 63] {
            header.size = 1_000;
            assert!(begin(&header, tiny).is_err(), "{tiny}");
        }
        header.size = 64 << 26;
        let first = begin(&header, 64).expect("8 MiB of bits");
        assert!(begin(&header, 64).is_err_and(|reason| reason.contains("no memory")));
        drop(first);
        drop(begin(&header, 64).expect("8 MiB again"));
        assert!(folder.names().is_empty());
    }
}
