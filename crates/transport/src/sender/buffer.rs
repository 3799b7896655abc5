//! The memory in which what was written waits until it is acknowledged, and the pushes that come of it.
//!
//! Linux's writer fills the buffer until no segment fits, and is woken when a third of
//! it is free. The last segment that fitted is pushed each time, and a receiver acknowledges such a
//! segment at once: a bounded buffer moves acknowledgements, though no window ever waits for it.
//!
//! A buffer that may grow does so when it is full and holds less than the congestion window lets leave: to twice
//! the window, each segment in memory of a power of two bytes.
//!
//! Source: Linux 6.1, `tcp_sendmsg_locked`, `forced_push`, `sk_stream_is_writeable`, `tcp_sndbuf_expand`. Deviations:
//! what `gso` puts into one buffer of the kernel's is charged here as segments of their own. BBR's buffer is three
//! times the window there.

use std::collections::VecDeque;

use weir_units::Bytes;

/// What an application has written, as far as it does not follow from the stream's positions.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    /// Linux's `sk_sndbuf`.
    size: u64,
    /// Up to where it grows (`tcp_wmem`).
    most: u64,
    /// What a segment takes beyond its payload (`SKB_TRUESIZE` of an empty one with space for headers).
    overhead: u64,
    mss: u64,
    /// Bytes that the application has for the stream and that have not fitted yet.
    waiting: u64,
    /// The writer waits for space (`SOCK_NOSPACE`).
    is_full: bool,
    /// Where the last segment begins.
    tail: u64,
    /// Where pushed segments end, up to the acknowledged.
    pushed: VecDeque<u64>,
    /// The stream's end at the last push (`pushed_seq`).
    last_push: u64,
}

/// What of the stream the buffer holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Bytes that are not acknowledged.
    pub(super) bytes: u64,
    /// Pieces of memory in which these are.
    pub(super) pieces: u64,
    /// What follows was not sent.
    pub(super) nxt: u64,
    /// What follows was not written.
    pub(super) written: u64,
}

impl SendBuffer {
    /// Of `size`, which grows up to `most`; a segment takes `overhead` beyond its payload.
    pub(super) fn new(size: Bytes, most: Bytes, overhead: Bytes, mss: u64) -> Self {
        Self {
            size: size.get(),
            most: most.get(),
            overhead: overhead.get(),
            mss,
            waiting: 0,
            is_full: false,
            tail: 0,
            pushed: VecDeque::new(),
            last_push: 0,
        }
    }

    pub(super) fn set_size(&mut self, size: Bytes) {
        (self.size, self.most) = (size.get(), size.get());
    }

    pub(super) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
    }

    /// The application has `bytes` more.
    pub(super) fn write(&mut self, bytes: u64) {
        self.waiting += bytes;
    }

    /// What did not fit is not to be sent.
    pub(super) fn withdraw(&mut self) {
        self.waiting = 0;
    }

    /// Bytes of what was written that did not fit.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether the segment that ends here was pushed when it was written.
    pub(super) fn is_pushed(&self, end: u64) -> bool {
        self.pushed.binary_search(&end).is_ok()
    }

    /// Everything before `una` is acknowledged.
    pub(super) fn on_acked(&mut self, una: u64) {
        while self.pushed.front().is_some_and(|end| *end <= una) {
            self.pushed.pop_front();
        }
    }

    /// The buffer is full and holds less than a window of `segments` lets leave.
    pub(super) fn on_shortage(&mut self, segments: u64) {
        if self.is_full {
            let wanted = 2 * segments.max(LEAST_SEGMENTS) * segment_memory(self.mss);
            self.size = self.size.max(wanted.min(self.most));
        }
    }

    /// Whether a writer who waits is woken.
    pub(super) fn has_space(&self, held: &Held) -> bool {
        self.waiting == 0 && self.is_writeable(held.bytes + self.overhead * held.pieces)
    }

    /// Takes what fits, as writes of 64 KiB in a row; returns how many bytes. `max_window` is
    /// the largest window that the peer has offered.
    pub(super) fn fill(&mut self, held: &Held, max_window: u64) -> u64 {
        // As the kernel charges it (`sk_wmem_queued`).
        let mut memory = held.bytes + self.overhead * held.pieces;
        if self.waiting == 0 || (self.is_full && !self.is_writeable(memory)) {
            return 0;
        }
        self.is_full = false;
        let mut end = held.written;
        let mut write_end = end + WRITE;
        // A segment that has left is not appended to.
        if held.nxt > self.tail {
            self.tail = end;
        }
        while self.waiting > 0 {
            if end == self.tail || end - self.tail >= self.mss {
                if memory >= self.size {
                    self.is_full = true;
                    break;
                }
                memory += self.overhead;
                self.tail = end;
            }
            let space = self.tail + self.mss - end;
            let copied = space.min(self.waiting).min(write_end - end);
            end += copied;
            memory += copied;
            self.waiting -= copied;
            let is_segment_full = end - self.tail >= self.mss;
            let is_written = end == write_end || self.waiting == 0;
            let is_forced = end - self.last_push > max_window / 2;
            if is_segment_full && (is_written || is_forced) {
                self.push(end);
            } else if is_written {
                // The mark goes when the next write appends to the segment, if that has not left.
                self.last_push = end;
            }
            if is_written {
                write_end = end + WRITE;
            }
        }
        if self.is_full && end > held.written {
            self.push(end);
        }
        end - held.written
    }

    /// `sk_stream_is_writeable`: a third is free.
    fn is_writeable(&self, memory: u64) -> bool {
        memory < self.size && self.size - memory >= memory / 2
    }

    fn push(&mut self, end: u64) {
        self.last_push = end;
        if self.pushed.back() != Some(&end) {
            self.pushed.push_back(end);
        }
    }
}

/// What a full segment takes of a kernel's memory, in a buffer of a power of two bytes (`truesize`).
pub(crate) fn segment_memory(mss: u64) -> u64 {
    (mss + HEAD).next_power_of_two() + BUFFER_HEAD
}

/// Whether Linux pushes the segment though its buffer has no bound here: an application that writes
/// 64 KiB at a time fills the first 4.3 MB while the first window, of as much, is all that is known of
/// the peer, and the middle of each write is pushed too (`forced_push`).
pub(super) fn is_forced_at_first(start: u64, end: u64) -> bool {
    end <= FIRST_FILL && start + WRITE - (start + WRITE / 2) % WRITE <= end
}

/// What an application hands over at once.
const WRITE: u64 = 64 << 10;
/// The amount that fits a send buffer of 8 MiB, which charges each segment about 2.7 KB.
const FIRST_FILL: u64 = 68 * WRITE;
/// What a segment has in addition to its payload where the buffer's size is computed: space for headers (`MAX_TCP_HEADER`)
/// and `skb_shared_info`, and a `sk_buff` of its own.
const HEAD: u64 = 192 + 320;
const BUFFER_HEAD: u64 = 256;
/// `TCP_INIT_CWND`.
const LEAST_SEGMENTS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;
    const ENDLESS: u64 = 1 << 60;

    /// A stream of full segments, all written, of which `una` is acknowledged and `nxt` sent.
    fn held(una: u64, nxt: u64, written: u64) -> Held {
        Held { bytes: written - una, pieces: (written - una).div_ceil(MSS), nxt, written }
    }

    fn buffer(size: u64) -> SendBuffer {
        charging(size, 768)
    }

    fn charging(size: u64, overhead: u64) -> SendBuffer {
        let mut buffer = SendBuffer::new(Bytes(size), Bytes(size), Bytes(overhead), MSS);
        buffer.write(ENDLESS);
        buffer
    }

    /// `sk_stream_memory_free`: as long as it is not full, one segment more.
    #[test]
    fn eight_mebibytes_hold_3786_segments_of_an_ethernet() {
        let mut buffer = buffer(8 << 20);
        let taken = buffer.fill(&held(0, 0, 0), 65_535);
        assert_eq!(taken, 3_786 * MSS);
        assert!(buffer.is_pushed(taken));
    }

    /// Linux 6.12 charges 64 bytes more: a head of 512 bytes comes from a cache of 576 (`skbuff_small_head`).
    #[test]
    fn of_segments_that_take_more_fewer_fit() {
        let mut buffer = charging(8 << 20, 832);
        assert_eq!(buffer.fill(&held(0, 0, 0), 65_535), 3_680 * MSS);
    }

    /// `forced_push`: in the middle of a write, once half of the window is behind the last push.
    #[test]
    fn half_a_window_without_a_push_forces_one() {
        let mut buffer = buffer(8 << 20);
        let taken = buffer.fill(&held(0, 0, 0), 65_535);
        let pushed: Vec<u64> = buffer.pushed.iter().copied().take(3).collect();
        assert_eq!(pushed, [23 * MSS, 68 * MSS, 114 * MSS]);
        assert_eq!(buffer.pushed.len() as u64, taken / WRITE + 2);
    }

    /// `sk_stream_is_writeable`.
    #[test]
    fn the_writer_is_woken_when_a_third_is_free() {
        let mut buffer = buffer(8 << 20);
        let first = buffer.fill(&held(0, 0, 0), 65_535);
        let later = |acked: u64| held(acked * MSS, (acked + 30) * MSS, first);
        assert_eq!(buffer.fill(&later(1_262), 4 << 20), 0);
        let taken = buffer.fill(&later(1_263), 4 << 20);
        assert_eq!(taken, 1_263 * MSS);
        assert!(buffer.is_pushed(first + taken));
    }

    /// `tcp_shifted_skb` merges what is acknowledged selectively, and frees what that saves.
    #[test]
    fn fewer_pieces_leave_space_for_more() {
        let mut buffer = buffer(8 << 20);
        let first = buffer.fill(&held(0, 0, 0), 65_535);
        let merged = Held { pieces: 2_000, ..held(1_000 * MSS, 1_100 * MSS, first) };
        assert!(buffer.fill(&merged, 4 << 20) > 1_000 * MSS);
    }

    #[test]
    fn a_write_appends_to_a_segment_that_has_not_left() {
        let mut buffer = SendBuffer::new(Bytes(1 << 20), Bytes(1 << 20), Bytes(768), MSS);
        buffer.write(2_000);
        assert_eq!(buffer.fill(&held(0, 0, 0), 65_535), 2_000);
        buffer.write(2_000);
        assert_eq!(buffer.fill(&held(0, 0, 2_000), 65_535), 2_000);
        assert_eq!(buffer.tail, 2 * MSS);
        buffer.write(100);
        assert_eq!(buffer.fill(&held(0, 4_000, 4_000), 65_535), 100);
        assert_eq!(buffer.tail, 4_000);
    }

    #[test]
    fn pushes_are_forgotten_when_they_are_acknowledged() {
        let mut buffer = buffer(8 << 20);
        let taken = buffer.fill(&held(0, 0, 0), 65_535);
        assert!(buffer.is_pushed(23 * MSS));
        buffer.on_acked(taken);
        assert!(buffer.pushed.is_empty());
    }

    /// `tcp_sndbuf_expand`: 4,000 segments of 2,048 and 256 bytes, twice.
    #[test]
    fn a_full_buffer_grows_to_twice_the_window() {
        let mut buffer = SendBuffer::new(Bytes(8 << 20), Bytes(32 << 20), Bytes(768), MSS);
        buffer.on_shortage(4_000);
        assert_eq!(buffer.size, 8 << 20, "it is not full");
        buffer.write(ENDLESS);
        let first = buffer.fill(&held(0, 0, 0), 65_535);
        buffer.on_shortage(1_000);
        assert_eq!(buffer.size, 8 << 20, "it never shrinks");
        buffer.on_shortage(4_000);
        assert_eq!(buffer.size, 2 * 4_000 * (2_048 + 256));
        assert!(buffer.fill(&held(0, first, first), 65_535) > 0, "the writer is woken");
        buffer.on_shortage(100_000);
        assert_eq!(buffer.size, 32 << 20);
    }
}
