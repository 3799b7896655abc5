//! What is written of a file that arrives: on another core once there is much of it, where there is one.
//!
//! So a long file gets a helper, a thread that is handed pieces, writes each, and gives its memory back to be
//! filled again. What the journal is to say goes the same way: it never speaks of bytes that are not written.
//! After an error the helper writes nothing more.

use std::io;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use super::disk::{DiskFile, Helpers};

/// Writes a file's pieces.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    helpers: Helpers,
    helper: Option<WriterThread>,
}

/// What could not be written.
#[derive(Debug)]
pub(crate) struct WriteFailed {
    /// Where; all pieces before are in the file.
    pub(crate) at: u64,
    pub(crate) error: io::Error,
}

#[derive(Debug)]
struct WriterThread {
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
    Thread(JoinHandle<()>),
    /// The caller that waits for it.
    Caller(Receiver<Work>, Box<WriteJob>),
}

/// What a helper works on.
#[derive(Debug)]
struct WriteJob {
    file: Arc<dyn DiskFile>,
    /// The end of the last piece that is written.
    end: u64,
    done: Sender<Result<Vec<u8>, WriteFailed>>,
}

/// Something to be written at an offset, after all that came before.
#[derive(Debug)]
enum Work {
    Piece(Vec<u8>, u64),
    Note(Vec<u8>, u64),
}

impl Writer {
    pub(crate) fn new(helpers: Helpers) -> Self {
        Self { helpers, helper: None }
    }

    /// Writes a piece to its place in `file`, the next after the one before; returns an empty one for it.
    /// `left` bytes are still to come.
    pub(crate) fn take(
        &mut self,
        file: &Arc<dyn DiskFile>,
        mut piece: Vec<u8>,
        at: u64,
        left: u64,
    ) -> Result<Vec<u8>, WriteFailed> {
        if self.helper.is_none() && at >= WORTH_A_HELPER && left >= WORTH_A_HELPER {
            self.helper = WriterThread::start(self.helpers, file, at);
        }
        if let Some(helper) = &mut self.helper {
            return helper.exchange(piece, at);
        }
        file.write_all_at(&piece, at).map_err(|error| WriteFailed { at, error })?;
        piece.clear();
        Ok(piece)
    }

    /// Writes `bytes` at `at` once all that was handed over, up to `end`, is written.
    pub(crate) fn note(
        &mut self,
        file: &dyn DiskFile,
        bytes: &[u8],
        at: u64,
        end: u64,
    ) -> Result<(), WriteFailed> {
        match &mut self.helper {
            Some(helper) => helper.note(bytes, at),
            None => file.write_all_at(bytes, at).map_err(|error| WriteFailed { at: end, error })?,
        }
        Ok(())
    }

    /// Waits until all that was handed over is written.
    pub(crate) fn settle(&mut self) -> Result<(), WriteFailed> {
        self.helper.take().map_or(Ok(()), WriterThread::finish)
    }
}

impl WriterThread {
    /// Goes on from `end`, unless every core has a helper already.
    fn start(helpers: Helpers, file: &Arc<dyn DiskFile>, end: u64) -> Option<Self> {
        let (work, pieces) = mpsc::channel();
        let (done, empties) = mpsc::channel();
        let job = WriteJob { file: Arc::clone(file), end, done };
        let worker = match helpers {
            Helpers::Threads => {
                let place = Place::take()?;
                let work_through = move || {
                    let _place = place;
                    job.work_through(&pieces);
                };
                let thread = thread::Builder::new().name("weir-writer".into());
                Worker::Thread(thread.spawn(work_through).ok()?)
            }
            Helpers::Inline => Worker::Caller(pieces, Box::new(job)),
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

    /// Hands a piece over for an empty one with as much space; waits where too many are on their way.
    fn exchange(&mut self, piece: Vec<u8>, at: u64) -> Result<Vec<u8>, WriteFailed> {
        let like = piece.capacity();
        self.hand_over(Work::Piece(piece, at));
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
        let Some(Worker::Caller(work, job)) = &mut self.worker else { return false };
        while let Ok(next) = work.try_recv() {
            let is_piece = matches!(next, Work::Piece(..));
            if !job.handle(next) {
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

    fn finish(mut self) -> Result<(), WriteFailed> {
        self.end();
        self.empties.try_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// Waits for what it has to do.
    fn end(&mut self) {
        self.work = None;
        match self.worker.take() {
            Some(Worker::Thread(thread)) => {
                thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            }
            Some(Worker::Caller(work, job)) => job.work_through(&work),
            None => {}
        }
    }
}

impl Drop for WriterThread {
    /// A later session finds all bytes that were handed over, and the file free.
    fn drop(&mut self) {
        self.work = None;
        match self.worker.take() {
            Some(Worker::Thread(thread)) => drop(thread.join()),
            Some(Worker::Caller(work, job)) => job.work_through(&work),
            None => {}
        }
    }
}

impl WriteJob {
    /// What the helper does until there is no more work or something cannot be written.
    fn work_through(mut self, work: &Receiver<Work>) {
        for work in work {
            if !self.handle(work) {
                break;
            }
        }
    }

    /// Returns whether the next may follow.
    fn handle(&mut self, work: Work) -> bool {
        let (Work::Piece(bytes, at) | Work::Note(bytes, at)) = &work;
        if let Err(error) = self.file.write_all_at(bytes, *at) {
            // After a note that is not written, no content is either.
            let at = if matches!(work, Work::Piece(..)) { *at } else { self.end };
            let _ = self.done.send(Err(WriteFailed { at, error }));
            return false;
        }
        if let Work::Piece(mut bytes, at) = work {
            self.end = at + bytes.len() as u64;
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
/// What must have come, and be still to come: to start a thread takes as long as to write 100 KB.
const WORTH_A_HELPER: u64 = 1 << 20;
/// How many pieces a file has at most: the one that is being filled, and those that wait to be written.
/// Enough that the sender learns of what arrived although the helper has just been put off, and so
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
    fn with_or_without_a_helper_the_file_is_the_same() {
        let content = noise(9 << 20);
        for (piece, helped) in [(256 << 10, true), (content.len(), false)] {
            let folder = TempDir::new();
            let (file, mut writer) = (file_in(&folder), Writer::default());
            let (mut at, mut helpers) = (0, 0);
            for bytes in content.chunks(piece) {
                let left = content.len() as u64 - at - bytes.len() as u64;
                let empty = writer.take(&file, bytes.to_vec(), at, left).expect("space");
                assert!(empty.is_empty());
                at += bytes.len() as u64;
                let end = content.len() as u64;
                writer.note(file.as_ref(), &at.to_be_bytes(), end, at).expect("space");
                helpers += usize::from(writer.helper.is_some());
            }
            writer.settle().expect("no error");
            let written = fs::read(folder.path().join("x")).expect("it is there");
            assert!(written[..content.len()] == content);
            assert_eq!(written[content.len()..], at.to_be_bytes());
            let cores = thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(helpers > 0, helped && cores > 1);
        }
    }

    #[test]
    fn content_after_a_note_that_cannot_be_written_is_not_written_either() {
        let folder = TempDir::new();
        let (file, mut writer) = (file_in(&folder), Writer::new(Helpers::Inline));
        let mut at = 0;
        for len in [WORTH_A_HELPER, 1_000] {
            writer.take(&file, noise(len as usize), at, WORTH_A_HELPER).expect("space");
            at += len;
        }
        // No file has this offset.
        writer.note(file.as_ref(), &[0], u64::MAX, at).expect("the helper will find out");
        let taken = writer.take(&file, noise(1_000), at, WORTH_A_HELPER);
        let unwritten = taken.and_then(|_| writer.settle()).expect_err("the note failed");
        assert_eq!(unwritten.at, WORTH_A_HELPER + 1_000);
        assert_eq!(file.size().expect("it is there"), unwritten.at);
    }

    #[test]
    fn a_file_that_is_given_up_is_written_first_and_leaves_no_helper() {
        let folder = TempDir::new();
        let (file, before) = (file_in(&folder), helpers());
        let mut writer = Writer::default();
        writer.take(&file, noise(1000), WORTH_A_HELPER, WORTH_A_HELPER).expect("space");
        drop(writer);
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
        let mut writer = Writer::default();
        let mut failed = None;
        for n in 0..=PIECES as u64 {
            let at = WORTH_A_HELPER + n * 1_000;
            let taken = writer.take(&unwritable, noise(1000), at, WORTH_A_HELPER);
            failed = failed.or(taken.err());
        }
        let failed = failed.or_else(|| writer.settle().err()).expect("it is read-only");
        assert_eq!(failed.at, WORTH_A_HELPER);
        assert_eq!(fs::metadata(&path).expect("it is there").len(), 0);
    }
}
