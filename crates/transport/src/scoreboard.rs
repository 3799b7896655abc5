//! What is outstanding: every segment between `una` and `nxt`, with its fate so far.
//!
//! Positions are stream offsets: byte 0 is the first byte of data, and a FIN counts as one byte
//! after the last. The recovery schemes mark segments here; who may send reads the sums.

mod covered;
mod losses;
mod sent;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use weir_cc::LossSample;
use weir_units::{Bytes, Instant};

pub(crate) use self::covered::{AckTime, Covered, Dsack};
pub(crate) use self::sent::{Fate, Sent, Transmission};

use crate::pause::Pause;
use crate::ranges::RangeSet;
use weir_cc::host::SendRecord;

/// The sender's record of outstanding segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    una: u64,
    nxt: u64,
    /// Each segment counts for at least as many bytes: Linux counts segments, and a short one as any other. 0 where
    /// bytes count.
    unit: u32,
    /// What is outstanding, as it counts. The sums below count likewise.
    total: u64,
    sacked_ranges: RangeSet,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Copies of segments that are not declared lost any more, until these are acknowledged cumulatively; and, until
    /// nothing is outstanding, those that a timeout sent once more (Linux's `retrans_out` beyond the segments tagged lost).
    doubled: u64,
    /// Bytes that duplicate acknowledgements say have left the path, where nothing is selective.
    duplicates: u64,
    /// No segment before this position is lost and unsent.
    lost_hint: u64,
    /// No segment before this position is in flight for the first time ([`Sent::is_in_flight`]).
    in_flight_hint: u64,
    /// Bytes declared lost so far, each time anew.
    ever_lost: u64,
    /// The last segment declared lost that has not been taken yet.
    last_loss: Option<(u64, SendRecord)>,
    /// Transmissions so far.
    transmissions: u64,
    /// Retransmissions in order of time; those acknowledged or lost since are skipped when met.
    retransmissions: VecDeque<Transmission>,
}

/// More SACK holes than this are not remembered; the rest waits for the cumulative acknowledgement.
const MAX_SACK_RANGES: usize = 4096;

impl Scoreboard {
    /// From now on each segment counts for at least as many bytes.
    pub(crate) fn count_segments_as(&mut self, bytes: u64) {
        self.unit = bytes as u32;
    }

    /// What a segment of `len` bytes counts for.
    pub(crate) fn weight(&self, len: u64) -> u64 {
        len.max(u64::from(self.unit))
    }

    /// Appends a segment that is sent for the first time.
    pub(crate) fn push(&mut self, now: Instant, len: u32, record: SendRecord) {
        let start = self.nxt;
        let weight = len.max(self.unit);
        self.total += u64::from(weight);
        self.transmissions += 1;
        self.segments.push_back(Sent {
            start,
            len,
            weight,
            transmissions: 1,
            sent_at: now,
            number: self.transmissions,
            record,
            fate: Fate::InFlight,
            is_timed: true,
            is_pushed: false,
        });
        self.nxt += u64::from(len);
    }

    /// The newest segment is pushed.
    pub(crate) fn push_last(&mut self) {
        if let Some(last) = self.segments.back_mut() {
            last.is_pushed = true;
        }
    }

    /// Notes that the segment at `start`, which is lost, or the last one as a probe, goes out again;
    /// returns its length and whether it is pushed. A probe's copy counts in place of the first (Linux's
    /// `tcp_send_loss_probe` tags nothing).
    pub(crate) fn resend(&mut self, now: Instant, start: u64, record: SendRecord) -> (u32, bool) {
        let index = self.index_of(start);
        self.transmissions += 1;
        let segment = &mut self.segments[index];
        segment.transmissions += 1;
        segment.sent_at = now;
        segment.number = self.transmissions;
        segment.record = record;
        segment.is_timed = true;
        let (len, is_pushed, sent) = (segment.len, segment.is_pushed, segment.transmission());
        if segment.fate == Fate::Lost {
            segment.fate = Fate::Resent;
            self.resent += u64::from(segment.weight);
        }
        if segment.fate == Fate::Resent {
            self.retransmissions.push_back(sent);
        }
        (len, is_pushed)
    }

    /// The segment at `start`, about to be sent again, takes in those after it that have not arrived, up to `mss`
    /// bytes in all (Linux's `tcp_retrans_try_collapse`). Where segments count; the others stay as they were sent.
    pub(crate) fn collapse(&mut self, start: u64, mss: u64) {
        if self.unit == 0 {
            return;
        }
        let index = self.index_of(start);
        while let Some(next) = self.segments.get(index + 1).copied() {
            let len = self.segments[index].len + next.len;
            if u64::from(len) > mss || next.is_sacked() || self.segments[index].is_sacked() {
                break;
            }
            self.uncount(&next, u64::MAX);
            self.segments.remove(index + 1);
            let whole = &mut self.segments[index];
            whole.len = len;
            whole.is_pushed |= next.is_pushed;
        }
    }

    /// Marks what a SACK block newly covers. `high` is the recovery point.
    pub(crate) fn sack(&mut self, block: Range<u64>, high: u64, cx: &AckTime, out: &mut Covered) {
        let block = block.start.max(self.una)..block.end.min(self.nxt);
        if block.is_empty() {
            return;
        }
        let highest = self.highest_sacked();
        let mut gap = self.sacked_ranges.missing_in(block.clone()).next();
        if gap.is_none() {
            return; // Most blocks repeat what an earlier acknowledgement said (RFC 2018 §4).
        }
        while let Some(missing) = gap {
            let first = self.segments.partition_point(|s| s.start < missing.start);
            let mut index = first;
            while index < self.segments.len() && self.segments[index].end() <= missing.end {
                self.sack_segment(index, high, highest, cx, out);
                index += 1;
            }
            // Whole segments only: a block that ends inside one is remembered up to its start.
            if first < index {
                let covered = self.segments[first].start..self.segments[index - 1].end();
                self.sacked_ranges.insert(covered, MAX_SACK_RANGES);
            }
            gap = self.sacked_ranges.missing_in(missing.end..block.end).next();
        }
    }

    fn sack_segment(
        &mut self,
        index: usize,
        high: u64,
        highest: u64,
        cx: &AckTime,
        out: &mut Covered,
    ) {
        let segment = self.segments[index];
        let weight = u64::from(segment.weight);
        if segment.is_sacked() {
            return;
        }
        if segment.fate == Fate::Doubled {
            self.segments[index].fate = Fate::DoubledSacked;
        } else {
            self.forget(segment.fate, weight);
            self.segments[index].fate = Fate::Sacked;
        }
        self.sacked += weight;
        out.sacked += weight;
        out.delivered += weight;
        if !segment.was_retransmitted() {
            let first = out.sack_sent.map_or(segment.sent_at, |(first, _)| first);
            out.sack_sent = Some((first, segment.sent_at));
            out.original_acked |= segment.end() <= high;
            if segment.end() <= highest {
                out.note_late(segment.start);
            }
        }
        out.note(&segment, cx, None);
    }

    /// Moves `una` to `to` and removes what lies before.
    pub(crate) fn ack_to(&mut self, to: u64, high: u64, cx: &AckTime, out: &mut Covered) {
        debug_assert!(to <= self.nxt);
        if to <= self.una {
            return;
        }
        out.cum_acked = to - self.una;
        let mut karn = false;
        while let Some(segment) = self.segments.front().copied() {
            if segment.start >= to {
                break;
            }
            let covered = u64::from(segment.len).min(to - segment.start);
            // The rest of a segment counts for what is left, where segments count for all of it.
            let part = if covered < u64::from(segment.len) { covered } else { u64::MAX };
            let counted = self.uncount(&segment, part);
            karn |= segment.was_retransmitted();
            if !segment.is_sacked() {
                out.delivered += counted;
                out.note(&segment, cx, cx.echo_ms);
                if !segment.was_retransmitted() {
                    let first = out.cum_sent.map_or(segment.sent_at, |(first, _)| first);
                    out.cum_sent = Some((first, segment.sent_at));
                    out.original_acked |= segment.end() <= high;
                    if segment.end() <= cx.highest {
                        out.note_late(segment.start);
                    }
                }
            }
            if covered < u64::from(segment.len) {
                self.trim_front(covered, counted);
                break;
            }
            out.segments += 1;
            self.segments.pop_front();
        }
        if karn {
            out.cum_sent = None;
        }
        if self.segments.is_empty() {
            self.doubled = 0;
        }
        self.una = to;
        self.sacked_ranges.remove_below(to);
        self.lost_hint = self.lost_hint.max(to);
        self.in_flight_hint = self.in_flight_hint.max(to);
        while self.retransmissions.front().is_some_and(|sent| sent.end <= to) {
            self.retransmissions.pop_front();
        }
    }

    /// What a report that the segments in `copy` arrived twice says of them. One that was acknowledged
    /// selectively below others, before its repetition arrived, was late and not lost
    /// (`tcp_sacktag_one`).
    pub(crate) fn report_twice(&mut self, copy: &Range<u64>, out: &mut Covered) -> Dsack {
        // Of those no longer outstanding nothing is known.
        let mut was_resent = copy.end <= self.una;
        let highest = self.highest_sacked();
        let from = self.segments.partition_point(|sent| sent.end() <= copy.start);
        let those = self.segments.range_mut(from..).take_while(|sent| sent.start < copy.end);
        for segment in those.filter(|s| s.was_retransmitted()) {
            was_resent = true;
            if segment.is_sacked() && segment.end() < highest {
                out.note_late(segment.start);
            }
            // Both copies have arrived.
            let now = match segment.fate {
                Fate::Doubled => Fate::InFlight,
                Fate::DoubledSacked => Fate::Sacked,
                other => other,
            };
            if now != segment.fate {
                self.doubled -= u64::from(segment.weight);
                segment.fate = now;
            }
        }
        Dsack { end: copy.end, was_resent }
    }

    /// Takes `len` bytes of a segment out of the sums.
    fn forget(&mut self, fate: Fate, len: u64) {
        match fate {
            Fate::InFlight => {}
            Fate::Sacked => self.sacked -= len,
            Fate::Lost => self.lost -= len,
            Fate::Resent => {
                self.lost -= len;
                self.resent -= len;
            }
            Fate::Doubled => self.doubled -= len,
            Fate::DoubledSacked => {
                self.doubled -= len;
                self.sacked -= len;
            }
        }
    }

    /// Takes a segment of which `part` bytes are acknowledged out of the sums, or all of it; returns what it counted
    /// for. Where segments count, one does so until it is whole.
    fn uncount(&mut self, segment: &Sent, part: u64) -> u64 {
        let weight = u64::from(segment.weight);
        let counted = match part {
            u64::MAX => weight,
            _ if self.unit > 0 => 0,
            part => part,
        };
        self.total -= counted;
        self.forget(segment.fate, counted);
        counted
    }

    fn trim_front(&mut self, by: u64, counted: u64) {
        if let Some(front) = self.segments.front_mut() {
            front.start += by;
            front.len -= by as u32;
            front.weight -= counted as u32;
        }
    }

    /// Notes a duplicate acknowledgement: one more segment has left the path.
    pub(crate) fn duplicate_ack(&mut self, mss: u64) {
        // Linux's tcp_limit_reno_sacked: something must be missing for a duplicate to exist.
        let holes = self.lost.max(mss.min(self.total));
        self.duplicates = (self.duplicates + mss).min(self.total - holes);
    }

    /// A partial acknowledgement of `acked` bytes: one segment filled the hole, the rest were
    /// duplicates already counted (RFC 6582 §3.2 step 3).
    pub(crate) fn consume_duplicates(&mut self, acked: u64, mss: u64) {
        self.duplicates = self.duplicates.saturating_sub(acked.saturating_sub(mss));
        self.duplicates = self.duplicates.min(self.total);
    }

    pub(crate) fn clear_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Takes every loss mark back.
    pub(crate) fn unmark_losses(&mut self) {
        for segment in &mut self.segments {
            segment.fate = match segment.fate {
                Fate::Resent if self.unit > 0 => Fate::Doubled,
                Fate::Lost | Fate::Resent => Fate::InFlight,
                other => other,
            };
        }
        if self.unit > 0 {
            self.doubled += self.resent;
        }
        self.lost = 0;
        self.resent = 0;
        self.in_flight_hint = self.una;
        if self.unit == 0 {
            self.retransmissions.clear();
        }
    }

    /// The sender's time stood still: what it sent before counts from the pause's end.
    pub(crate) fn postpone(&mut self, pause: Pause) {
        for segment in self.segments.iter_mut().filter(|s| s.sent_at <= pause.from) {
            segment.sent_at = pause.shift(segment.sent_at);
        }
        for sent in self.retransmissions.iter_mut().filter(|sent| sent.sent_at <= pause.from) {
            sent.sent_at = pause.shift(sent.sent_at);
        }
    }

    /// Whether the oldest segment was acknowledged selectively, but not cumulatively by the time of a
    /// timeout: the receiver no longer has what it reported.
    pub(crate) fn is_reneged(&self) -> bool {
        self.first().is_some_and(Sent::is_sacked)
    }

    /// Takes every selective acknowledgement back (RFC 2018 §8).
    pub(crate) fn forget_sacks(&mut self) {
        for segment in self.segments.iter_mut().filter(|s| s.is_sacked()) {
            let is_doubled = segment.fate == Fate::DoubledSacked;
            segment.fate = if is_doubled { Fate::Doubled } else { Fate::InFlight };
        }
        self.sacked = 0;
        self.sacked_ranges.clear();
        self.in_flight_hint = self.una;
    }

    /// The first segment that is lost and has not been sent again, unless as much as is lost counts as sent again
    /// (Linux's `tcp_xmit_retransmit_queue`).
    pub(crate) fn first_lost(&mut self) -> Option<Sent> {
        if self.lost <= self.resent() {
            return None;
        }
        let from = self.index_at_or_after(self.lost_hint);
        let found = self.segments.iter().skip(from).find(|s| s.fate == Fate::Lost).copied();
        self.lost_hint = found.map_or(self.nxt, |s| s.start);
        found
    }

    /// The newest segment.
    pub(crate) fn last(&self) -> Option<&Sent> {
        self.segments.back()
    }

    /// The oldest segment.
    pub(crate) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The outstanding segments that overlap a range, oldest first.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = &Sent> {
        let from = self.segments.partition_point(|sent| sent.end() <= range.start);
        self.segments.range(from..).take_while(move |sent| sent.start < range.end)
    }

    /// All outstanding segments, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.segments.iter()
    }

    /// The highest range start at and above which more than `bytes` bytes are selectively
    /// acknowledged.
    pub(crate) fn sacked_above(&self, bytes: u64) -> Option<u64> {
        let mut above = 0;
        for range in self.sacked_ranges.iter().rev() {
            above += range.end - range.start;
            if above > bytes {
                return Some(range.start);
            }
        }
        None
    }

    /// The start of the `n`-th separate selectively acknowledged range from the top.
    pub(crate) fn nth_sacked_range_from_top(&self, n: usize) -> Option<u64> {
        self.sacked_ranges.iter().rev().nth(n - 1).map(|range| range.start)
    }

    /// The end of the highest segment selectively acknowledged; `una` when there is none.
    pub(crate) fn highest_sacked(&self) -> u64 {
        self.sacked_ranges.last().map_or(self.una, |range| range.end)
    }

    /// How far the newest delivery lies above `low`, which was delivered after it (Linux's
    /// `tcp_check_sack_reordering`).
    pub(crate) fn distance_above(&self, low: u64, mss: u64) -> u64 {
        let top =
            self.sacked_ranges.last().map_or(self.una, |range| range.end - mss.min(range.end));
        top.saturating_sub(low)
    }

    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// `nxt - una`.
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// How many segments are outstanding.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// How many segments of `mss` follow another that was selectively acknowledged, as they were: Linux
    /// keeps such a run as one (`tcp_shift_skb_data`).
    pub(crate) fn merged(&self, mss: u64) -> u64 {
        (self.sacked / mss).saturating_sub(self.sacked_ranges.len() as u64)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether any range is selectively acknowledged.
    pub(crate) fn has_sacked_ranges(&self) -> bool {
        !self.sacked_ranges.is_empty()
    }

    pub(crate) fn sacked(&self) -> u64 {
        self.sacked + self.duplicates
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes declared lost so far, each time anew.
    pub(crate) fn ever_lost(&self) -> u64 {
        self.ever_lost
    }

    /// What is known of the last segment declared lost since this was last asked.
    pub(crate) fn take_last_loss(&mut self) -> Option<LossSample> {
        self.last_loss.take().map(|(size, record)| record.loss(Bytes(size), Bytes(self.ever_lost)))
    }

    /// Bytes that were sent again and are on their way.
    pub(crate) fn resent(&self) -> u64 {
        self.resent + self.doubled
    }

    /// Sent, neither acknowledged nor declared lost; retransmissions count again.
    pub(crate) fn in_flight(&self) -> Bytes {
        let left = self.sacked + self.duplicates + self.lost;
        Bytes((self.total + self.resent + self.doubled).saturating_sub(left))
    }

    fn index_of(&self, start: u64) -> usize {
        let index = self.index_at_or_after(start);
        assert!(
            self.segments.get(index).is_some_and(|s| s.start == start),
            "a segment starts there"
        );
        index
    }

    fn index_at_or_after(&self, start: u64) -> usize {
        match self.segments.front() {
            Some(front) if front.start >= start => 0,
            _ => self.segments.partition_point(|s| s.start < start),
        }
    }

    fn find_ending_at(&self, end: u64) -> Option<usize> {
        let index = self.segments.partition_point(|s| s.end() < end);
        (index < self.segments.len() && self.segments[index].end() == end).then_some(index)
    }
}
