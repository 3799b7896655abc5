//! The hashes of files that were read before, so that naming a file a hundred times costs one reading.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::file::disk::FileState;
use crate::file::frame::Hash;

/// The hashes of the files that were read last.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    hashes: HashMap<FileState, Hash>,
    /// The oldest first.
    order: VecDeque<FileState>,
}

impl Known {
    pub(super) fn get(&self, state: &FileState) -> Option<Hash> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.hashes.get(state).copied()
    }

    /// Records the hash of a file that was in this state before and after it was read.
    pub(super) fn note(&self, state: FileState, hash: Hash) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.hashes.insert(state, hash).is_none() {
            known.order.push_back(state);
        }
        if known.order.len() > MOST
            && let Some(oldest) = known.order.pop_front()
        {
            known.hashes.remove(&oldest);
        }
    }
}

const MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let known = Known::default();
        let state = |inode| FileState { inode, ..FileState::default() };
        for inode in 0..=MOST as u64 {
            known.note(state(inode), [2; 32]);
        }
        assert_eq!(known.get(&state(0)), None);
        assert_eq!(known.get(&state(1)), Some([2; 32]));
    }
}
