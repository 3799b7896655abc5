//! Bytes of a stream whose meaning is not known yet, because a frame before them has not arrived.

use std::io;

use weir_transport::{RangeSet, Reassembly};

/// What arrived behind the last frame that was understood. It never holds more than it was allowed to.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The offset in the stream at which `bytes` begins.
    base: u64,
    bytes: Vec<u8>,
    filled: RangeSet,
    limit: usize,
}

impl Inbox {
    /// Nothing has arrived; at most `limit` bytes from the next frame on are kept.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { base: 0, bytes: Vec::new(), filled: RangeSet::new(), limit }
    }

    /// Where the next frame begins.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Whether the next frame begins at `offset`, and nothing of it or of what follows is here.
    pub(crate) fn awaits(&self, offset: u64) -> bool {
        offset == self.base && self.bytes.is_empty()
    }

    /// From now on it may hold more.
    pub(crate) fn widen(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// The offset up to which bytes may come.
    pub(crate) fn edge(&self) -> u64 {
        self.base + self.limit as u64
    }

    /// Keeps bytes; those before the next frame are known already.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let known = self.base.saturating_sub(offset).min(bytes.len() as u64);
        let (offset, bytes) = (offset + known, &bytes[known as usize..]);
        let end = offset + bytes.len() as u64;
        if end > self.edge() || self.filled.insert(offset..end, Reassembly::MAX_RANGES).is_none() {
            return Err(io::Error::other("more came than was asked for"));
        }
        let (start, end) = ((offset - self.base) as usize, (end - self.base) as usize);
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        Ok(())
    }

    /// What is there without a hole from the next frame on.
    pub(crate) fn ready(&self) -> &[u8] {
        let end = self.filled.range_at(self.base).map_or(self.base, |range| range.end);
        &self.bytes[..(end - self.base) as usize]
    }

    /// Hands over what is there below stream offset `end`, in pieces; the next frame begins there.
    pub(crate) fn hand_over(&mut self, end: u64, mut each: impl FnMut(u64, &[u8])) {
        for range in self.filled.iter().take_while(|range| range.start < end) {
            let (from, to) = (range.start - self.base, range.end.min(end) - self.base);
            each(range.start, &self.bytes[from as usize..to as usize]);
        }
        self.advance(end);
    }

    /// The next frame begins at `base`.
    pub(crate) fn advance(&mut self, base: u64) {
        self.filled.remove_below(base);
        let gone = (base - self.base).min(self.bytes.len() as u64) as usize;
        self.bytes.drain(..gone);
        self.base = base;
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_ready_once_there_is_no_hole() {
        let mut inbox = Inbox::new(8);
        inbox.insert(3, b"def").expect("room");
        assert_eq!(inbox.ready(), b"");
        inbox.insert(0, b"abc").expect("room");
        assert_eq!(inbox.ready(), b"abcdef");
        inbox.advance(2);
        inbox.insert(8, b"ij").expect("room again");
        assert_eq!(inbox.ready(), b"cdef");
        let mut taken = Vec::new();
        inbox.hand_over(9, |offset, bytes| taken.push((offset, bytes.to_vec())));
        assert_eq!(taken, [(2, b"cdef".to_vec()), (8, b"i".to_vec())]);
        assert_eq!((inbox.base(), inbox.ready()), (9, b"j".as_slice()));
    }

    #[test]
    fn it_takes_no_more_than_it_may() {
        let mut inbox = Inbox::new(4);
        assert!(inbox.insert(2, b"abc").is_err());
        inbox.widen(5);
        inbox.insert(2, b"abc").expect("allowed now");
        assert!(inbox.insert(u64::MAX - 8, b"x").is_err());
    }
}
