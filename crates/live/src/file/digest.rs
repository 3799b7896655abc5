//! The hash of a file that arrives: on another core once there is much of it, where there is one.
//!
//! A fifth of a receiver's work is hashing, which nothing waits for before the end of the file. So a
//! long file gets a helper, a thread that is handed the pieces in order as they are written out, and
//! gives their memory back to be filled again.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use blake3::Hasher;

use super::frame::Hash;

/// The hash of what was handed over so far.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    /// Without a helper.
    hasher: Hasher,
    helper: Option<Helper>,
    count: u64,
}

#[derive(Debug)]
struct Helper {
    pieces: Sender<Vec<u8>>,
    /// Pieces that are done with.
    empties: Receiver<Vec<u8>>,
    /// How many pieces there are, here and there.
    made: usize,
    thread: JoinHandle<Hasher>,
}

impl Digest {
    /// How many bytes it covers.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.count += bytes.len() as u64;
        match &mut self.helper {
            Some(helper) => drop(helper.exchange(bytes.to_vec())),
            None => {
                self.hasher.update(bytes);
            }
        }
    }

    /// Adds a piece that is no longer needed; returns an empty one in its place. So many bytes are
    /// still to come.
    pub(crate) fn take(&mut self, mut piece: Vec<u8>, left: u64) -> Vec<u8> {
        if self.helper.is_none() && self.count >= WORTH_A_HELPER && left >= WORTH_A_HELPER {
            self.helper = Helper::start(&self.hasher);
        }
        let Some(helper) = &mut self.helper else {
            self.update(&piece);
            piece.clear();
            return piece;
        };
        self.count += piece.len() as u64;
        helper.exchange(piece)
    }

    /// The hash of all bytes so far.
    pub(crate) fn hash(&mut self) -> Hash {
        if let Some(helper) = self.helper.take() {
            self.hasher = helper.finish();
        }
        *self.hasher.finalize().as_bytes()
    }
}

impl Helper {
    /// Goes on from `hasher`, unless every core has a helper already.
    fn start(hasher: &Hasher) -> Option<Self> {
        let place = Place::take()?;
        let (pieces, work) = mpsc::channel::<Vec<u8>>();
        let (done, empties) = mpsc::channel();
        let mut hasher = hasher.clone();
        let work = move || {
            let _place = place;
            for mut piece in work {
                hasher.update(&piece);
                piece.clear();
                // Whoever has enough of it has let go of this end.
                let _ = done.send(piece);
            }
            hasher
        };
        let thread = thread::Builder::new().name("weir-hash".into()).spawn(work).ok()?;
        Some(Self { pieces, empties, made: 1, thread })
    }

    /// Hands a piece over for an empty one; waits where too many are on their way.
    fn exchange(&mut self, piece: Vec<u8>) -> Vec<u8> {
        let like = piece.capacity();
        // The thread ends only when this end of the channel is gone.
        let _ = self.pieces.send(piece);
        if let Ok(empty) = self.empties.try_recv() {
            return empty;
        }
        if self.made < PIECES {
            self.made += 1;
            return Vec::with_capacity(like);
        }
        self.empties.recv().unwrap_or_default()
    }

    fn finish(self) -> Hasher {
        drop(self.pieces);
        self.thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
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
/// How many pieces a file has: the one that is being filled, and those that wait to be hashed.
const PIECES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::testing::noise;

    #[test]
    fn with_or_without_a_helper_the_hash_is_the_same() {
        let content = noise(9 << 20);
        for (piece, helped) in [(256 << 10, true), (content.len(), false)] {
            let mut digest = Digest::default();
            let (mut left, mut helpers) = (content.len() as u64, 0);
            for (n, bytes) in content.chunks(piece).enumerate() {
                left -= bytes.len() as u64;
                match n % 5 {
                    3 => digest.update(bytes),
                    _ => assert!(digest.take(bytes.to_vec(), left).is_empty()),
                }
                helpers += usize::from(digest.helper.is_some());
            }
            assert_eq!(digest.count(), content.len() as u64);
            assert_eq!(digest.hash(), *blake3::hash(&content).as_bytes());
            let cores = thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(helpers > 0, helped && cores > 1);
        }
    }

    #[test]
    fn a_file_that_is_given_up_leaves_no_helper() {
        let before = TAKEN.load(Ordering::Relaxed);
        let mut digest = Digest { count: WORTH_A_HELPER, ..Digest::default() };
        digest.take(noise(1000), WORTH_A_HELPER);
        drop(digest);
        while TAKEN.load(Ordering::Relaxed) > before {
            thread::yield_now();
        }
    }
}
