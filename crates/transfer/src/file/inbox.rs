//! Bytes of a stream whose meaning is not known yet, because a frame before them has not arrived.

use std::collections::BTreeMap;
use std::io;

use weir_transport::{RangeSet, Reassembly};

use super::frame::MAX_FRAME;

/// Bytes that arrived behind the last frame that was understood, up to a limit. Only what has arrived
/// takes memory: a few bytes far ahead cost no more than a few bytes.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The offset in the stream of the next frame.
    base: u64,
    /// What arrived, by offset: without overlaps, and nothing that ends at or below `base`.
    pieces: BTreeMap<u64, Vec<u8>>,
    filled: RangeSet,
    /// The memory that the pieces take.
    held: usize,
    limit: usize,
}

impl Inbox {
    /// An empty inbox that takes at most `limit` bytes from the next frame on.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { base: 0, pieces: BTreeMap::new(), filled: RangeSet::new(), held: 0, limit }
    }

    /// Where the next frame begins.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Whether the next frame begins at `offset`, and nothing of it or of what follows is here.
    pub(crate) fn awaits(&self, offset: u64) -> bool {
        offset == self.base && self.pieces.is_empty()
    }

    /// From now on it may hold more.
    pub(crate) fn widen(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// The offset up to which bytes may come.
    pub(crate) fn edge(&self) -> u64 {
        self.base + self.limit as u64
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// The same, counted anew.
    pub(crate) fn measure(&self) -> usize {
        self.pieces.values().map(cost).sum()
    }

    /// Keeps bytes that are new; those before the next frame are known already.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let known = self.base.saturating_sub(offset).min(bytes.len() as u64);
        let (offset, bytes) = (offset + known, &bytes[known as usize..]);
        let Some(end) = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.edge())
        else {
            return Err(too_much());
        };
        let new: Vec<_> = self.filled.missing_in(offset..end).collect();
        self.filled.insert(offset..end, Reassembly::MAX_RANGES).ok_or_else(too_much)?;
        for range in new {
            let part = &bytes[(range.start - offset) as usize..(range.end - offset) as usize];
            self.keep(range.start, part);
        }
        Ok(())
    }

    /// What is there without a hole from the next frame on: at least the longest frame, if there is that much.
    pub(crate) fn ready(&mut self) -> &[u8] {
        let Some((&start, _)) = self.pieces.first_key_value().filter(|(at, _)| **at <= self.base)
        else {
            return &[];
        };
        let mut first = self.take(start);
        let skip = (self.base - start) as usize;
        while first.len() - skip < MAX_FRAME {
            let end = start + first.len() as u64;
            if !self.pieces.contains_key(&end) {
                break;
            }
            first.append(&mut self.take(end));
        }
        self.held += cost(&first);
        &self.pieces.entry(start).or_insert(first)[skip..]
    }

    /// Hands over what is there below stream offset `end`, in pieces; the next frame begins there.
    pub(crate) fn hand_over(&mut self, end: u64, mut each: impl FnMut(u64, &[u8])) {
        for (&start, bytes) in self.pieces.range(..end) {
            let from = self.base.saturating_sub(start) as usize;
            let to = bytes.len().min((end - start) as usize);
            each(start + from as u64, &bytes[from..to]);
        }
        self.advance(end);
    }

    /// The next frame begins at `base`.
    pub(crate) fn advance(&mut self, base: u64) {
        self.base = base;
        self.filled.remove_below(base);
        while let Some((&start, bytes)) = self.pieces.first_key_value() {
            if start + bytes.len() as u64 > base {
                break;
            }
            self.take(start);
        }
    }

    /// Appends to the piece that ends where this one begins, or adds a piece.
    fn keep(&mut self, offset: u64, bytes: &[u8]) {
        let before = self.pieces.range_mut(..offset).next_back();
        let before = before.filter(|(start, piece)| {
            **start + piece.len() as u64 == offset && piece.len() + bytes.len() <= LONGEST_JOINED
        });
        if let Some((_, piece)) = before {
            self.held -= cost(piece);
            piece.extend_from_slice(bytes);
            self.held += cost(piece);
        } else {
            let piece = bytes.to_vec();
            self.held += cost(&piece);
            self.pieces.insert(offset, piece);
        }
    }

    fn take(&mut self, start: u64) -> Vec<u8> {
        let piece = self.pieces.remove(&start).unwrap_or_default();
        self.held -= cost(&piece);
        piece
    }
}

/// What a piece takes: its bytes, and its places in the map and in the set of ranges.
fn cost(piece: &Vec<u8>) -> usize {
    piece.capacity() + COST_OF_A_PIECE
}

fn too_much() -> io::Error {
    io::Error::other("more bytes came than requested")
}

/// A place in a map whose nodes are half full, an allocation, and places in two sets of ranges.
const COST_OF_A_PIECE: usize = 144;
/// Short pieces that follow one another become one up to this length. Longer ones stay as they came: blocks
/// that grow leave holes of every size in the process's memory, which no limit counts.
const LONGEST_JOINED: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_ready_once_there_is_no_hole() {
        let mut inbox = Inbox::new(8);
        inbox.insert(3, b"def").expect("space");
        assert_eq!(inbox.ready(), b"");
        inbox.insert(0, b"abc").expect("space");
        assert_eq!(inbox.ready(), b"abcdef");
        inbox.advance(2);
        inbox.insert(8, b"ij").expect("space again");
        assert_eq!(inbox.ready(), b"cdef");
        let mut taken = Vec::new();
        inbox.hand_over(9, |offset, bytes| taken.push((offset, bytes.to_vec())));
        assert_eq!(taken, [(2, b"cdef".to_vec()), (8, b"i".to_vec())]);
        assert_eq!((inbox.base(), inbox.ready()), (9, b"j".as_slice()));
        inbox.advance(10);
        assert_eq!(inbox.held(), 0);
    }

    #[test]
    fn it_takes_no_more_than_it_may() {
        let mut inbox = Inbox::new(4);
        assert!(inbox.insert(2, b"abc").is_err());
        inbox.widen(5);
        inbox.insert(2, b"abc").expect("allowed now");
        assert!(inbox.insert(u64::MAX - 8, b"x").is_err());
        assert!(inbox.insert(u64::MAX, b"x").is_err());
    }

    #[test]
    fn memory_follows_what_arrived_and_not_where() {
        let mut inbox = Inbox::new(1 << 20);
        inbox.insert((1 << 20) - 64, &[7; 64]).expect("space");
        assert!(inbox.held() < 64 + 150, "{}", inbox.held());
        for at in 0..1_000 {
            inbox.insert(at, &[at as u8]).expect("space");
        }
        assert!(inbox.held() < 3_000, "{}", inbox.held());
        assert_eq!(inbox.ready().len(), 1_000);
    }
}
