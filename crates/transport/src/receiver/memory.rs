//! What segments in the receiver's memory take from the window, as in Linux.
//!
//! ```text
//! memory = (mss + 512 to a power of two) + 256         a segment; one that grows the window by its own length
//! taken  = memory / 2, or since Linux 6.5 memory ((mss << 8) / memory) / 256
//! window = min(limit, buffer - taken * segments)       at each acknowledgement, never less than was offered
//! up to a unit of the scale                            or whole segments, without scaling (`__tcp_select_window`)
//! limit += min(2 segments, window - limit)             for each segment (`tcp_grow_window`), small ones only while
//!                                                      the limit is a like part of the largest buffer
//! limit <= buffer - mss                                before it grows, or is measured
//! ```
//!
//! Source: Linux 6.1 and 6.12, `tcp_grow_window`, `tcp_win_from_space`, `__tcp_select_window`, `tcp_init_buffer_space`.

use super::Receiver;
use crate::sender::segment_memory;

impl Receiver {
    /// Segments in the kernel's memory while this one is taken in: those that are not read, those behind a hole, and
    /// itself if it is next (`sk_rmem_alloc`). Nothing asks for them once the window has its size.
    pub(super) fn held(&self, offset: u64, len: u32) -> u64 {
        if self.window_limit >= self.window_clamp {
            return 0;
        }
        let next = if offset <= self.rcv_nxt() { u64::from(len) } else { 0 };
        (self.readable() + self.reassembly.ahead() + next).div_ceil(self.mss)
    }

    /// Linux's `tcp_grow_window`: by two segments for each that arrives, out of order too unless duplicates must look
    /// alike, as far as `held` segments leave space. Returns whether there was any.
    pub(super) fn grow_window(&mut self, len: u32, held: u64) -> bool {
        if self.window_limit >= self.window_clamp {
            return false;
        }
        let (len, full) = (u64::from(len), self.segment_window());
        let free = self.buffer.saturating_sub(held * full);
        let space = free.min(self.window_clamp).saturating_sub(self.window_limit);
        let taken = if len == self.mss { full } else { self.window_of(segment_memory(len)) };
        let step = self.growth(len, taken);
        self.window_limit += step.min(space);
        space > 0 && step > 0
    }

    /// What a segment of `len` bytes that takes `taken` of the window lets it grow by: nothing if it wastes memory, but
    /// where the window is half of the largest it may have half as much as it takes, and so on (`__tcp_grow_window`).
    fn growth(&self, len: u64, taken: u64) -> u64 {
        if taken <= len {
            return 2 * self.mss.max(len);
        }
        let (mut taken, mut most) = (taken / 2, self.largest_window() / 2);
        while self.window_limit <= most && taken > len {
            (taken, most) = (taken / 2, most / 2);
        }
        if self.window_limit <= most { 2 * self.policy.mss().max(len) } else { 0 }
    }

    /// What windows may have of the largest buffer (`tcp_rmem`), of which the configuration knows half.
    fn largest_window(&self) -> u64 {
        match self.is_measured {
            true => 2 * self.largest * self.segment_window() / segment_memory(self.mss),
            false => self.largest,
        }
    }

    /// What a full segment in memory takes from the window.
    fn segment_window(&self) -> u64 {
        self.window_of(segment_memory(self.mss))
    }

    /// What `memory` takes from the window: the share of the memory that windows may have (`tcp_win_from_space`), half
    /// of it, or since Linux 6.5 what was measured, as `mss << 8` over the memory of a full segment.
    fn window_of(&self, memory: u64) -> u64 {
        let share = if self.is_measured { (self.mss << 8) / segment_memory(self.mss) } else { 128 };
        (memory * share) >> 8
    }

    /// The window that Linux offers (`__tcp_select_window`): 0 where little is free, which leaves what was offered.
    /// Where windows are scaled it is rounded up to the scale's unit. Where not, it has whole segments, after the first,
    /// and stays while it is within one of them.
    pub(super) fn selected_window(&self) -> u64 {
        let space = self.free_space();
        if space < self.mss.max(self.buffer / 16) {
            return 0;
        }
        let free = space.min(self.window_limit);
        if self.offered_edge == 0 {
            return free;
        }
        if self.offer_limit.is_scaled() {
            return self.offer_limit.rounded_up(free);
        }
        let stays = (free.saturating_sub(self.mss) + 1..=free).contains(&self.offered);
        if stays { self.offered } else { free - free % self.mss }
    }

    /// What unread data leaves of the buffer, and segments behind a hole, and those of a filled one, which is
    /// acknowledged before the application reads them (`tcp_space`).
    pub(super) fn free_space(&self) -> u64 {
        let unread = (self.read + self.buffer).saturating_sub(self.rcv_nxt());
        let held = self.unread.max(self.readable()) + self.reassembly.ahead();
        if held == 0 {
            // Nearly always: nothing is to be divided.
            return unread.min(self.buffer);
        }
        let taken = held.div_ceil(self.mss) * self.segment_window();
        self.buffer.saturating_sub(taken).min(unread)
    }
}
