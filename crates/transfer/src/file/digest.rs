//! The hash of a file that arrives, and what is written of it: on another core once there is much of it,
//! where there is one.
//!
//! To write and to hash is most of a receiver's work, which nothing waits for before the end of the file.
//! So a long file gets a helper, a thread that is handed pieces in the order of the file, writes each and
//! hashes it, and gives its memory back to be filled again. What the journal is to say goes the same way:
//! it never speaks of bytes that are not written. After an error the helper writes nothing more.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use blake3::Hasher;

use super::disk::{DiskFile, Helpers};
use super::frame::Hash;

/// The hash of what was handed over so far.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    helpers: Helpers,
    /// Without a helper.
    hasher: Hasher,
    helper: Option<HashThread>,
    count: u64,
}

/// What could not be written.
#[derive(Debug)]
pub(crate) struct WriteFailed {
    /// Where; all pieces before are in the file.
    pub(crate) at: u64,
    pub(crate) error: io::Error,
}

#[derive(Debug)]
struct HashThread {
    /// Until it is to end.
    work: Option<Sender<Work>>,
    /// Pieces that are done with, or why one cannot be written.
    empties: Receiver<Result<Vec<u8>, WriteFailed>>,
    /// Those that were given back.
    spares: Vec<Vec<u8>>,
    /// How many pieces there are, here and there.
    made: usize,
    worker: Option<Worker>,
}

/// Who does the helper's work, until it was waited for.
#[derive(Debug)]
enum Worker {
    Thread(JoinHandle<Hasher>),
    /// The caller that waits for it.
    Caller(Receiver<Work>, Box<HashJob>),
}

/// What a helper works on.
#[derive(Debug)]
struct HashJob {
    file: Arc<dyn DiskFile>,
    hasher: Hasher,
    done: Sender<Result<Vec<u8>, WriteFailed>>,
}

#[derive(Debug)]
enum Work {
    /// To be written at an offset, and hashed.
    Keep(Vec<u8>, u64),
    /// To be hashed.
    Hash(Vec<u8>),
    /// To be written at an offset, after all that came before.
    Note(Vec<u8>, u64),
}

impl Digest {
    /// Of nothing yet.
    pub(crate) fn new(helpers: Helpers) -> Self {
        Self { helpers, ..Self::default() }
    }

    /// How many bytes it covers.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds bytes that are written already.
    pub(crate) fn update(&mut self, bytes: &[u8]) -> Result<(), WriteFailed> {
        match &mut self.helper {
            Some(helper) => drop(helper.exchange(Work::Hash(bytes.to_vec()), bytes.len())?),
            None => {
                self.hasher.update(bytes);
            }
        }
        self.count += bytes.len() as u64;
        Ok(())
    }

    /// Writes the piece that comes next to its place in `file` and adds it; returns an empty one for it.
    /// `left` bytes are still to come.
    pub(crate) fn take(
        &mut self,
        file: &Arc<dyn DiskFile>,
        mut piece: Vec<u8>,
        left: u64,
    ) -> Result<Vec<u8>, WriteFailed> {
        if self.helper.is_none() && self.count >= WORTH_A_HELPER && left >= WORTH_A_HELPER {
            self.helper = HashThread::start(self.helpers, &self.hasher, file);
        }
        let (at, len) = (self.count, piece.len() as u64);
        if let Some(helper) = &mut self.helper {
            let like = piece.capacity();
            piece = helper.exchange(Work::Keep(piece, at), like)?;
        } else {
            file.write_all_at(&piece, at).map_err(|error| WriteFailed { at, error })?;
            self.hasher.update(&piece);
            piece.clear();
        }
        self.count += len;
        Ok(piece)
    }

    /// Writes `bytes` at `at` once all that was handed over is written.
    pub(crate) fn note(
        &mut self,
        file: &dyn DiskFile,
        bytes: &[u8],
        at: u64,
    ) -> Result<(), WriteFailed> {
        match &mut self.helper {
            Some(helper) => helper.note(bytes, at),
            None => file.write_all_at(bytes, at).map_err(|error| WriteFailed { at, error })?,
        }
        Ok(())
    }

    /// Waits until all that was handed over is written and hashed.
    pub(crate) fn settle(&mut self) -> Result<(), WriteFailed> {
        if let Some(helper) = self.helper.take() {
            self.hasher = helper.finish()?;
        }
        Ok(())
    }

    /// The hash of all bytes so far.
    pub(crate) fn hash(&mut self) -> Result<Hash, WriteFailed> {
        self.settle()?;
        Ok(*self.hasher.finalize().as_bytes())
    }
}

impl HashThread {
    /// Goes on from `hasher`, unless every core has a helper already.
    fn start(helpers: Helpers, hasher: &Hasher, file: &Arc<dyn DiskFile>) -> Option<Self> {
        let (work, pieces) = mpsc::channel();
        let (done, empties) = mpsc::channel();
        let labour = HashJob { file: Arc::clone(file), hasher: hasher.clone(), done };
        let worker = match helpers {
            Helpers::Threads => {
                let place = Place::take()?;
                let work_through = move || {
                    let _place = place;
                    labour.work_through(&pieces)
                };
                let thread = thread::Builder::new().name("weir-hash".into());
                Worker::Thread(thread.spawn(work_through).ok()?)
            }
            Helpers::Inline => Worker::Caller(pieces, Box::new(labour)),
        };
        Some(Self { work: Some(work), empties, spares: Vec::new(), made: 1, worker: Some(worker) })
    }

    fn hand_over(&self, work: Work) {
        // A thread that has ended has said why.
        let _ = self.work.as_ref().map(|channel| channel.send(work));
    }

    /// A thread does it soon, a caller without one at once: a journal is there to be read.
    fn note(&mut self, bytes: &[u8], at: u64) {
        self.hand_over(Work::Note(bytes.to_vec(), at));
        while self.work_until_one_is_done() {}
    }

    /// Hands a piece over for an empty one with space for `like` bytes; waits where too many are on their
    /// way.
    fn exchange(&mut self, work: Work, like: usize) -> Result<Vec<u8>, WriteFailed> {
        self.hand_over(work);
        while let Ok(empty) = self.empties.try_recv() {
            self.spares.push(empty?);
        }
        // The one that was emptied last is the likeliest to be in a cache.
        if let Some(empty) = self.spares.pop() {
            return Ok(empty);
        }
        if self.made < PIECES {
            self.made += 1;
            return Ok(Vec::with_capacity(like));
        }
        self.work_until_one_is_done();
        self.empties.recv().unwrap_or_else(|_| Ok(Vec::new()))
    }

    /// Without a thread: the work itself, until a piece is done with. Returns whether one is.
    fn work_until_one_is_done(&mut self) -> bool {
        let Some(Worker::Caller(work, labour)) = &mut self.worker else { return false };
        while let Ok(next) = work.try_recv() {
            let is_piece = !matches!(next, Work::Note(..));
            if !labour.handle(next) {
                // Nothing that follows is done, and no caller waits for it.
                self.worker = None;
                return false;
            }
            if is_piece {
                return true;
            }
        }
        false
    }

    fn finish(mut self) -> Result<Hasher, WriteFailed> {
        let hasher = self.end();
        match self.empties.try_iter().find_map(Result::err) {
            Some(unwritten) => Err(unwritten),
            None => Ok(hasher.unwrap_or_default()),
        }
    }

    /// Waits for what it has to do.
    fn end(&mut self) -> Option<Hasher> {
        self.work = None;
        match self.worker.take()? {
            Worker::Thread(thread) => {
                let ended = thread.join();
                Some(ended.unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
            }
            Worker::Caller(work, labour) => Some(labour.work_through(&work)),
        }
    }
}

impl Drop for HashThread {
    /// A later session finds all bytes that were handed over, and the file free.
    fn drop(&mut self) {
        self.work = None;
        match self.worker.take() {
            Some(Worker::Thread(thread)) => drop(thread.join()),
            Some(Worker::Caller(work, labour)) => drop(labour.work_through(&work)),
            None => {}
        }
    }
}

impl HashJob {
    /// What the helper does until there is no more work or something cannot be written.
    fn work_through(mut self, work: &Receiver<Work>) -> Hasher {
        for work in work {
            if !self.handle(work) {
                break;
            }
        }
        self.hasher
    }

    /// Returns whether the next may follow.
    fn handle(&mut self, work: Work) -> bool {
        let written = match &work {
            Work::Keep(bytes, at) => {
                let written = self.file.write_all_at(bytes, *at);
                written.map_err(|error| WriteFailed { at: *at, error })
            }
            Work::Note(bytes, at) => {
                let written = self.file.write_all_at(bytes, *at);
                // Content that follows is not written.
                written.map_err(|error| WriteFailed { at: self.hasher.count(), error })
            }
            Work::Hash(_) => Ok(()),
        };
        if let Err(unwritten) = written {
            let _ = self.done.send(Err(unwritten));
            return false;
        }
        if let Work::Keep(mut bytes, _) | Work::Hash(mut bytes) = work {
            self.hasher.update(&bytes);
            bytes.clear();
            // The other end was dropped: the result is not wanted.
            let _ = self.done.send(Ok(bytes));
        }
        true
    }
}

/// The right to one of the process's helpers: no more than there are cores, but none where there is
/// only one.
#[derive(Debug)]
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let most = if cores > 1 { cores } else { 0 };
        let more = |taken| (taken < most).then_some(taken + 1);
        TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// What must have come, and be still to come: to start a thread takes as long as to hash 100 KB.
const WORTH_A_HELPER: u64 = 1 << 20;
/// How many pieces a file has at most: the one that is being filled, and those that wait to be written and
/// hashed. Enough that the sender learns of what arrived although the helper has just been put off, and so
/// few that they do not all leave the caches meanwhile.
const PIECES: usize = 6;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::file::testing::{TempDir, noise};

    fn file_in(folder: &TempDir) -> Arc<dyn DiskFile> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).open(folder.path().join("x"));
        Arc::new(file.expect("writable"))
    }

    fn helpers() -> usize {
        TAKEN.load(Ordering::Relaxed)
    }

    #[test]
    fn with_or_without_a_helper_hash_and_file_are_the_same() {
        let content = noise(9 << 20);
        for (piece, helped) in [(256 << 10, true), (content.len(), false)] {
            let folder = TempDir::new();
            let (file, mut digest) = (file_in(&folder), Digest::default());
            let (mut left, mut helpers) = (content.len() as u64, 0);
            for (n, bytes) in content.chunks(piece).enumerate() {
                let at = digest.count();
                left -= bytes.len() as u64;
                if n % 5 == 3 {
                    file.write_all_at(bytes, at).expect("space");
                    digest.update(bytes).expect("no error");
                } else {
                    let empty = digest.take(&file, bytes.to_vec(), left).expect("space");
                    assert!(empty.is_empty());
                }
                let end = content.len() as u64;
                digest.note(file.as_ref(), &digest.count().to_be_bytes(), end).expect("space");
                helpers += usize::from(digest.helper.is_some());
            }
            assert_eq!(digest.count(), content.len() as u64);
            assert_eq!(digest.hash().expect("no error"), *blake3::hash(&content).as_bytes());
            let written = fs::read(folder.path().join("x")).expect("it is there");
            assert!(written[..content.len()] == content);
            assert_eq!(written[content.len()..], digest.count().to_be_bytes());
            let cores = thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(helpers > 0, helped && cores > 1);
        }
    }

    #[test]
    fn content_after_a_note_that_cannot_be_written_is_not_written_either() {
        let folder = TempDir::new();
        let (file, mut digest) = (file_in(&folder), Digest::new(Helpers::Inline));
        for len in [WORTH_A_HELPER, 1_000] {
            digest.take(&file, noise(len as usize), WORTH_A_HELPER).expect("space");
        }
        // No file has this offset.
        digest.note(file.as_ref(), &[0], u64::MAX).expect("the helper will find out");
        let taken = digest.take(&file, noise(1_000), WORTH_A_HELPER);
        let unwritten = taken.and_then(|_| digest.settle()).expect_err("the note failed");
        assert_eq!(unwritten.at, WORTH_A_HELPER + 1_000);
        assert_eq!(file.size().expect("it is there"), unwritten.at);
    }

    #[test]
    fn a_file_that_is_given_up_is_written_first_and_leaves_no_helper() {
        let folder = TempDir::new();
        let (file, before) = (file_in(&folder), helpers());
        let mut digest = Digest { count: WORTH_A_HELPER, ..Digest::default() };
        digest.take(&file, noise(1000), WORTH_A_HELPER).expect("space");
        drop(digest);
        assert_eq!(Arc::strong_count(&file), 1);
        assert_eq!(file.size().expect("it is there"), WORTH_A_HELPER + 1000);
        while helpers() > before {
            thread::yield_now();
        }
    }

    #[test]
    fn what_cannot_be_written_is_said_and_nothing_follows_it() {
        let folder = TempDir::new();
        drop(file_in(&folder));
        let path = folder.path().join("x");
        let unwritable: Arc<dyn DiskFile> = Arc::new(File::open(&path).expect("readable"));
        let mut digest = Digest { count: WORTH_A_HELPER, ..Digest::default() };
        let mut failed = None;
        for _ in 0..=PIECES {
            let taken = digest.take(&unwritable, noise(1000), WORTH_A_HELPER);
            failed = failed.or(taken.err());
        }
        let failed = failed.or_else(|| digest.settle().err()).expect("it is read-only");
        assert_eq!(failed.at, WORTH_A_HELPER);
        assert_eq!(fs::metadata(&path).expect("it is there").len(), 0);
    }
}
