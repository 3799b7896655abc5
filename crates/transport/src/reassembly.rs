//! The receiver's account of the byte stream: what is next, what arrived ahead of it, what to tell
//! the sender about that.
//!
//! Only ranges are kept; the driver of the connection stores the bytes at their offset.

use std::ops::Range;

use crate::ranges::RangeSet;

/// What a receiver does with data that is not next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfOrder {
    /// Keeps it and delivers it once the hole is filled.
    #[default]
    Keep,
    /// Drops it: the receiver of go-back-N and of stop-and-wait.
    Discard,
}

/// What an arriving segment's payload meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// Bytes that became readable: those that arrived and those that they joined up with.
    pub delivered: u64,
    /// The part to store: offset in the stream, bytes of payload to skip, length. Where the payload
    /// overlaps what was there before in its middle, that middle is stored again.
    pub store: Option<Stored>,
    /// The first part that had arrived before (RFC 2883 §4).
    pub duplicate: Option<Range<u64>>,
    /// Whether data is missing before it.
    pub out_of_order: bool,
    /// Whether it filled a hole, wholly or in part: then an acknowledgement must go out at once
    /// (RFC 5681 §4.2).
    pub fills_hole: bool,
}

/// A part of a segment's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it belongs in the stream.
    pub offset: u64,
    /// How many bytes of payload come before it.
    pub skip: u32,
    /// Its length.
    pub len: u32,
}

/// Arrived byte ranges and the blocks that report them.
///
/// ```
/// use weir_transport::{OutOfOrder, Reassembly};
///
/// let mut stream = Reassembly::new(OutOfOrder::Keep);
/// assert!(stream.insert(1_000, 500).out_of_order);
/// assert!(stream.sack_ranges(3).eq([1_000..1_500]));
/// assert_eq!(stream.insert(0, 1_000).delivered, 1_500, "the hole is filled");
/// assert_eq!(stream.rcv_nxt(), 1_500);
/// ```
#[derive(Clone, Debug)]
pub struct Reassembly {
    policy: OutOfOrder,
    /// Everything below has been delivered in order.
    rcv_nxt: u64,
    ahead: RangeSet,
    /// What was reported most recently, newest first.
    recent: Recent,
    /// Not reported yet.
    duplicate: Option<Range<u64>>,
}

impl Reassembly {
    /// Maximum number of separate ranges; data that would make one more is dropped as if the
    /// network had lost it.
    pub const MAX_RANGES: usize = 4096;

    /// A stream of which nothing has arrived.
    pub const fn new(policy: OutOfOrder) -> Self {
        Self { policy, rcv_nxt: 0, ahead: RangeSet::new(), recent: Recent::new(), duplicate: None }
    }

    /// Remembers the ranges of all arrivals until they are reported: where many segments arrive at
    /// once, more ranges change than an acknowledgement has blocks.
    #[must_use]
    pub fn with_all_ranges(mut self) -> Self {
        self.recent.most = Recent::A_BATCH;
        self
    }

    /// The first byte from `at` on that is missing below something that arrived.
    pub(crate) fn first_missing(&self, at: u64) -> Option<u64> {
        let end = self.ahead.iter().next_back()?.end;
        self.ahead.missing_in(at.max(self.rcv_nxt)..end).next().map(|gap| gap.start)
    }

    /// Whether ranges have changed that no call of [`sack_ranges`](Self::sack_ranges) has returned.
    pub fn has_unreported(&self) -> bool {
        self.recent.most > Recent::USUAL && self.recent.unreported > 0
    }

    /// Processes `len` bytes at `offset`. The caller has cut them to the receive window.
    pub fn insert(&mut self, offset: u64, len: u32) -> Arrival {
        let arrived = offset..offset.saturating_add(u64::from(len));
        if arrived.is_empty() {
            return Arrival::default();
        }
        if offset == self.rcv_nxt && self.ahead.is_empty() && self.recent.blocks.is_empty() {
            // What is next, with nothing missing: nearly always.
            self.duplicate = None;
            self.rcv_nxt = arrived.end;
            let store = Some(Stored { offset, skip: 0, len });
            return Arrival { delivered: arrived.end - offset, store, ..Arrival::default() };
        }
        let duplicate = self.known_part(&arrived);
        self.duplicate.clone_from(&duplicate);
        let mut arrival = Arrival { duplicate, ..Arrival::default() };
        if arrived.start > self.rcv_nxt {
            arrival.out_of_order = true;
            arrival.store = self.keep_ahead(&arrived);
        } else if arrived.end > self.rcv_nxt {
            arrival.store = self.new_part(&arrived);
            arrival.fills_hole = !self.ahead.is_empty();
            arrival.delivered = self.advance(arrived.end);
        }
        arrival
    }

    /// The FIN after `end` arrived behind a hole: in Linux's blocks it counts as a byte.
    pub(crate) fn note_fin_ahead(&mut self, end: u64) {
        if self.recent.is_linuxs() && self.policy == OutOfOrder::Keep && end > self.rcv_nxt {
            self.recent.extend(&(end..end + 1));
        }
    }

    /// The next offset expected: everything below was delivered.
    pub const fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// One past the highest byte that has arrived.
    pub fn highest(&self) -> u64 {
        self.ahead.last().map_or(self.rcv_nxt, |range| range.end)
    }

    /// Whether data waits behind a hole.
    pub fn has_hole(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Bytes that wait behind a hole.
    pub(crate) fn ahead(&self) -> u64 {
        self.ahead.total()
    }

    /// Whether there are ranges for an acknowledgement's SACK blocks.
    pub fn has_reports(&self) -> bool {
        self.duplicate.is_some() || !self.recent.blocks.is_empty()
    }

    /// The ranges for an acknowledgement's SACK blocks, at most `max`: a duplicate that has not been
    /// reported, once (RFC 2883 §4), then the range of the newest arrival, then those reported
    /// before it (RFC 2018 §4). As in Linux, the last four are remembered: what was reported earlier, and joins
    /// with one of them now, is not reported with it. With [`with_all_ranges`](Self::with_all_ranges) whole ranges are
    /// reported, and all are remembered that no call has returned yet.
    pub fn sack_ranges(&mut self, max: usize) -> impl Iterator<Item = Range<u64>> + '_ {
        let duplicate = self.duplicate.take();
        let space = max.saturating_sub(usize::from(duplicate.is_some()));
        let recent = self.recent.report(space.min(Recent::USUAL));
        let recent = recent.filter_map(|block| self.reported(block));
        duplicate.into_iter().chain(recent).take(max)
    }

    /// The same without a duplicate, for an acknowledgement of what had arrived before.
    pub(crate) fn newest_ranges(&self) -> Vec<Range<u64>> {
        let blocks = self.recent.blocks.iter().take(Recent::USUAL);
        blocks.filter_map(|block| self.reported(block.clone())).collect()
    }

    /// What is reported of a remembered block.
    fn reported(&self, block: Range<u64>) -> Option<Range<u64>> {
        if self.recent.is_linuxs() { Some(block) } else { self.ahead.range_at(block.start) }
    }

    /// The first part of `arrived` that had arrived before.
    fn known_part(&self, arrived: &Range<u64>) -> Option<Range<u64>> {
        if arrived.start < self.rcv_nxt {
            return Some(arrived.start..arrived.end.min(self.rcv_nxt));
        }
        let missing = self.ahead.missing_in(arrived.clone()).next();
        match missing {
            Some(gap) if gap.start > arrived.start => Some(arrived.start..gap.start),
            Some(gap) if gap.end < arrived.end => {
                let known = self.ahead.range_at(gap.end)?;
                Some(known.start..known.end.min(arrived.end))
            }
            Some(_) => None,
            None => Some(arrived.clone()),
        }
    }

    /// From the first to the last byte of `arrived` that has not arrived before.
    fn new_part(&self, arrived: &Range<u64>) -> Option<Stored> {
        let mut gaps = self.ahead.missing_in(arrived.start.max(self.rcv_nxt)..arrived.end);
        let first = gaps.next()?;
        let end = gaps.last().map_or(first.end, |last| last.end);
        // Both fit: `arrived` is as long as a segment's payload.
        let (skip, len) = ((first.start - arrived.start) as u32, (end - first.start) as u32);
        Some(Stored { offset: first.start, skip, len })
    }

    fn keep_ahead(&mut self, arrived: &Range<u64>) -> Option<Stored> {
        if self.policy == OutOfOrder::Discard {
            return None;
        }
        let store = self.new_part(arrived);
        self.ahead.insert(arrived.clone(), Self::MAX_RANGES)?;
        if self.recent.is_linuxs() {
            self.recent.extend(arrived);
        } else {
            let newest = self.ahead.range_at(arrived.start)?;
            self.recent.put_first(newest);
        }
        store
    }

    /// How many ranges were reported more recently than the one that `arrived` touches; one that touches none
    /// comes after all of them.
    pub(crate) fn rank(&self, arrived: &Range<u64>) -> usize {
        let blocks = &self.recent.blocks;
        let touches = |block: &Range<u64>| {
            self.reported(block.clone()).is_some_and(|range| touch(&range, arrived))
        };
        blocks.iter().position(touches).unwrap_or(blocks.len())
    }

    /// Everything below `end` is there; returns how far the stream moved.
    fn advance(&mut self, end: u64) -> u64 {
        let before = self.rcv_nxt;
        // The byte at `end` may have come before, then the hole is closed up to its range's end.
        self.rcv_nxt = self.ahead.range_at(end).map_or(end, |range| range.end);
        self.ahead.remove_below(self.rcv_nxt);
        self.recent.forget_below(self.rcv_nxt);
        self.rcv_nxt - before
    }
}

/// Whether two ranges overlap, or one begins where the other ends.
const fn touch(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// The last few blocks, newest first.
#[derive(Clone, Debug)]
struct Recent {
    blocks: Vec<Range<u64>>,
    /// How many of the first ones were not reported yet.
    unreported: usize,
    /// The most that are kept; of those that were reported the usual number.
    most: usize,
}

impl Recent {
    /// As many as there are SACK blocks in a segment.
    const USUAL: usize = 4;
    /// As many as segments arrive in one batch.
    const A_BATCH: usize = 64;

    const fn new() -> Self {
        Self { blocks: Vec::new(), unreported: 0, most: Self::USUAL }
    }

    /// Whether blocks are Linux's (`selective_acks`): four, which nothing widens but what arrives next to them.
    const fn is_linuxs(&self) -> bool {
        self.most == Self::USUAL
    }

    /// Widens the newest block that touches what `arrived`, with all others that it then touches, or puts a new one
    /// first (`tcp_sack_new_ofo_skb`).
    fn extend(&mut self, arrived: &Range<u64>) {
        let mut newest = arrived.clone();
        while let Some(at) = self.blocks.iter().position(|block| touch(block, &newest)) {
            let block = self.blocks.remove(at);
            newest = newest.start.min(block.start)..newest.end.max(block.end);
        }
        self.put_first(newest);
    }

    /// Puts `block` first; those within it go, and the oldest if there are too many.
    fn put_first(&mut self, block: Range<u64>) {
        self.retain(|other| !block.contains(&other.start));
        self.blocks.insert(0, block);
        self.unreported += 1;
        self.shorten();
    }

    /// Takes the first `count`, at most the usual number. Those not reported come first the next time.
    fn report(&mut self, count: usize) -> impl Iterator<Item = Range<u64>> + use<> {
        let mut taken = [const { None }; Self::USUAL];
        for (slot, block) in taken.iter_mut().zip(&self.blocks).take(count) {
            *slot = Some(block.clone());
        }
        if !self.is_linuxs() {
            let fresh = count.min(self.unreported);
            self.blocks[..self.unreported].rotate_left(fresh);
            self.unreported -= fresh;
            self.shorten();
        }
        taken.into_iter().flatten()
    }

    fn shorten(&mut self) {
        let most = self.unreported.max(Self::USUAL).min(self.most);
        self.blocks.truncate(most);
        self.unreported = self.unreported.min(most);
    }

    fn forget_below(&mut self, bound: u64) {
        // A FIN alone may begin at the bound.
        self.retain(|block| block.start > bound);
    }

    fn retain(&mut self, keep: impl Fn(&Range<u64>) -> bool) {
        let (mut at, mut gone) = (0, 0);
        let unreported = self.unreported;
        self.blocks.retain(|block| {
            let keeps = keep(block);
            gone += usize::from(!keeps && at < unreported);
            at += 1;
            keeps
        });
        self.unreported -= gone;
    }
}

#[cfg(test)]
mod tests;
