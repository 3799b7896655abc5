//! What a sender has sent and the other end has not acknowledged: ranges of sequence numbers.

use std::collections::VecDeque;

/// The ranges between the first unacknowledged and the last sent byte, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    /// By their places.
    ranges: VecDeque<Range>,
    /// The first byte that is not acknowledged.
    una: i64,
    /// The byte after the last one sent.
    next: i64,
    sacked: u64,
    /// The blocks of the last acknowledgement, which the next one often repeats.
    known: Vec<(i64, i64)>,
    /// End of the highest block.
    highest_sacked: i64,
}

/// A range that was sent, or that must have been sent although the capture does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// When it was first sent; when the gap was noticed, if it was not captured.
    pub(crate) first_sent: u64,
    pub(crate) last_sent: u64,
    /// How often it was captured.
    pub(crate) sends: u32,
    pub(crate) is_sacked: bool,
    /// Its place in the list of packets (see `Passed`), and that of its first transmission.
    pub(crate) number: u32,
    pub(crate) first_number: u32,
}

impl Range {
    /// Whether the capture does not have it.
    pub(crate) fn is_missing(&self) -> bool {
        self.sends == 0
    }
}

impl Scoreboard {
    /// Begins at `place`.
    pub(crate) fn new(place: i64) -> Self {
        Self { una: place, next: place, highest_sacked: place, ..Self::default() }
    }

    pub(crate) fn una(&self) -> i64 {
        self.una
    }

    pub(crate) fn next(&self) -> i64 {
        self.next
    }

    /// Sent and neither acknowledged nor selectively acknowledged.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.next - self.una).max(0) as u64 - self.sacked
    }

    /// Sent and not cumulatively acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        (self.next - self.una).max(0) as u64
    }

    /// End of the highest selectively acknowledged block.
    pub(crate) fn highest_sacked(&self) -> i64 {
        self.highest_sacked
    }

    /// The range that has `place`.
    pub(crate) fn first_from(&self, place: i64) -> Option<&Range> {
        let behind = self.ranges.partition_point(|range| range.start <= place);
        self.ranges.get(behind.checked_sub(1)?)
    }

    /// Whether a byte after `place` is selectively acknowledged.
    pub(crate) fn is_sacked_above(&self, place: i64) -> bool {
        self.sacked > 0 && self.highest_sacked > place
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.len() * 2 * size_of::<Range>()
    }

    /// Whether the number of ranges is at its limit.
    pub(crate) fn is_full(&self) -> bool {
        self.ranges.len() >= MOST_RANGES
    }

    /// Adds `from..to`, which begins where the last range ends.
    pub(crate) fn append(&mut self, to: i64, range: Range) {
        self.ranges.push_back(Range { start: self.next, end: to, ..range });
        self.next = to;
    }

    /// The ranges that lie in `from..to`, which are cut at these places first.
    pub(crate) fn within(&mut self, from: i64, to: i64) -> impl Iterator<Item = &mut Range> {
        let first = self.cut(from);
        let more = self.ranges.range(first..).take_while(|range| range.start < to).count();
        if more > 0 {
            self.divide(first + more - 1, to);
        }
        self.ranges.range_mut(first..first + more)
    }

    /// Moves the first unacknowledged byte to `to`. Calls `acked` with every range before it, in order.
    pub(crate) fn acknowledge(&mut self, to: i64, mut acked: impl FnMut(&Range)) {
        while let Some(first) = self.ranges.front_mut().filter(|first| first.start < to) {
            let range = Range { end: first.end.min(to), ..*first };
            first.start = range.end;
            if first.start >= first.end {
                self.ranges.pop_front();
            }
            if range.is_sacked {
                self.sacked -= (range.end - range.start) as u64;
            }
            acked(&range);
        }
        self.una = to;
        self.next = self.next.max(to);
        self.highest_sacked = self.highest_sacked.max(to);
    }

    /// Processes SACK blocks. Calls `sacked` with every range that they cover for the first time.
    pub(crate) fn sack(
        &mut self,
        blocks: impl Iterator<Item = (i64, i64)>,
        mut sacked: impl FnMut(&Range, i64),
    ) {
        let highest_before = self.highest_sacked;
        let mut now = Vec::with_capacity(4);
        for (left, right) in blocks {
            let (left, right) = (left.max(self.una), right.min(self.next));
            if left >= right {
                continue;
            }
            now.push((left, right));
            // Only what lies outside the block that was known can be new.
            let known = self.known.iter().find(|(l, r)| *l <= right && left <= *r).copied();
            let (l, r) =
                known.map_or((right, right), |(l, r)| (l.clamp(left, right), r.clamp(left, right)));
            for (from, to) in [(left, l), (r, right)] {
                self.sack_range(from, to, |range| sacked(range, highest_before));
            }
            self.highest_sacked = self.highest_sacked.max(right);
        }
        if !now.is_empty() {
            self.known = now;
        }
    }

    fn sack_range(&mut self, from: i64, to: i64, mut sacked: impl FnMut(&Range)) {
        if from >= to {
            return;
        }
        let mut more = 0;
        for range in self.within(from, to) {
            if !range.is_sacked {
                range.is_sacked = true;
                more += (range.end - range.start) as u64;
                sacked(range);
            }
        }
        self.sacked += more;
    }

    /// Makes `place` a border between two ranges, unless there are too many. Returns the number of the range behind it.
    fn cut(&mut self, place: i64) -> usize {
        let behind = self.ranges.partition_point(|range| range.start < place);
        if let Some(before) = behind.checked_sub(1) {
            self.divide(before, place);
        }
        behind
    }

    /// Divides the range of this number at `place`, if that is inside.
    fn divide(&mut self, number: usize, place: i64) {
        let range = self.ranges[number];
        if range.start < place && place < range.end && !self.is_full() {
            self.ranges[number].end = place;
            self.ranges.insert(number + 1, Range { start: place, ..range });
        }
    }
}

/// Ranges of one direction: a window of 95 MB in segments of 1448 bytes. Later segments are not added, and ranges are not
/// divided: each division moves up to half of them.
const MOST_RANGES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(board: &mut Scoreboard, len: i64) {
        let range = Range {
            start: 0,
            end: 0,
            first_sent: 0,
            last_sent: 0,
            sends: 1,
            is_sacked: false,
            number: 0,
            first_number: 0,
        };
        board.append(board.next() + len, range);
    }

    #[test]
    fn an_acknowledgement_in_the_middle_of_a_segment_splits_it() {
        let mut board = Scoreboard::new(0);
        sent(&mut board, 64_000);
        let mut acked = Vec::new();
        board.acknowledge(1_000, |range| acked.push((range.start, range.end)));
        assert_eq!((acked, board.in_flight()), (vec![(0, 1_000)], 63_000));
    }

    proptest! {
        /// Compared with a flag per byte.
        #[test]
        fn bytes_in_flight_are_those_of_a_model(
            steps in prop::collection::vec((0u8..3, 0i64..60, 1i64..40), 1..60),
        ) {
            let mut board = Scoreboard::new(0);
            let mut bytes: Vec<bool> = Vec::new();
            let mut una = 0;
            for (kind, at, len) in steps {
                match kind {
                    0 => {
                        sent(&mut board, len);
                        bytes.resize(bytes.len() + len as usize, false);
                    }
                    1 => {
                        let to = (una + at).min(bytes.len() as i64);
                        board.acknowledge(to, |_| {});
                        una = to.max(una);
                    }
                    _ => {
                        let left = (una + at).min(bytes.len() as i64);
                        let right = (left + len).min(bytes.len() as i64);
                        board.sack([(left, right)].into_iter(), |_, _| {});
                        bytes[left as usize..right as usize].fill(true);
                    }
                }
                let free = bytes[una as usize..].iter().filter(|sacked| !**sacked).count();
                prop_assert_eq!(board.in_flight(), free as u64);
            }
        }
    }
}
