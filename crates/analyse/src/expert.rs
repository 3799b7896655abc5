//! Counts by the rules of tshark, so that the two can be compared.
//!
//! Source: Wireshark's user guide, section "TCP Analysis". The rules look at each packet in the order of the file; the
//! kinds of [`crate::sender`] also look at what the sender knew.

use crate::packet::{ACK, FIN, RST, SYN, Segment};

/// How many packets have which flag of tshark's analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertCounts {
    /// `tcp.analysis.retransmission`: all kinds but out of order.
    pub retransmissions: u64,
    /// `tcp.analysis.fast_retransmission`.
    pub fast_retransmissions: u64,
    /// `tcp.analysis.spurious_retransmission`.
    pub spurious_retransmissions: u64,
    /// `tcp.analysis.out_of_order`.
    pub out_of_order: u64,
    /// `tcp.analysis.duplicate_ack`.
    pub duplicate_acks: u64,
    /// `tcp.analysis.lost_segment`: the segment before was not captured.
    pub previous_not_captured: u64,
    /// `tcp.analysis.zero_window`.
    pub zero_windows: u64,
    /// `tcp.analysis.window_full`.
    pub window_full: u64,
    /// `tcp.analysis.keep_alive`.
    pub keep_alives: u64,
}

/// The state of both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expert {
    sides: [Side; 2],
    counts: ExpertCounts,
    /// The handshake's RTT: a gap that closes sooner counts as out of order.
    first_rtt: Option<u64>,
    has_handshake: bool,
}

#[derive(Clone, Debug, Default)]
struct Side {
    /// The number expected next, and when it was raised.
    next: Option<(u32, u64)>,
    ack: Option<u32>,
    ack_time: u64,
    window: Option<u16>,
    scale: u8,
    duplicate_acks: u32,
    /// The last packet was a keep-alive, or a probe of a zero window.
    was_keep_alive: bool,
    was_probe: bool,
}

/// One packet as the rules see it.
struct Seen<'a> {
    time: u64,
    segment: &'a Segment,
    is_keep_alive: bool,
    is_probe: bool,
}

impl Expert {
    pub(crate) fn counts(&self) -> ExpertCounts {
        self.counts
    }

    /// The handshake that began at `syn` is complete. tshark takes a SYN at 0, as simulations have it, for a missing one.
    pub(crate) fn set_handshake(&mut self, syn: u64, rtt: u64, scales: [u8; 2]) {
        self.has_handshake = true;
        self.first_rtt = (syn > 0).then_some(rtt);
        self.sides[0].scale = scales[0];
        self.sides[1].scale = scales[1];
    }

    /// Processes a packet from side `from`.
    pub(crate) fn handle(&mut self, time: u64, from: usize, segment: &Segment) {
        let seen = self.look(time, from, segment);
        let is_answer_to_probe = self.count_acks(from, &seen);
        if !is_answer_to_probe && segment.ack != self.sides[from].ack.unwrap_or(segment.ack) {
            self.sides[from].duplicate_acks = 0;
        }
        self.count_repeats(from, &seen);
        self.update(from, &seen);
    }

    fn look<'a>(&self, time: u64, from: usize, segment: &'a Segment) -> Seen<'a> {
        let [own, other] = [&self.sides[from], &self.sides[1 - from]];
        let is_plain = !segment.has(SYN | FIN | RST);
        let expected = own.next.map(|(next, _)| next);
        let is_probe =
            segment.payload == 1 && expected == Some(segment.seq) && other.window == Some(0);
        let is_keep_alive = segment.payload <= 1
            && is_plain
            && expected.is_some_and(|next| segment.seq == next.wrapping_sub(1));
        Seen { time, segment, is_keep_alive, is_probe }
    }

    /// Counts what the acknowledgement and the window show. Returns whether it answers a probe or a keep-alive.
    fn count_acks(&mut self, from: usize, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        let [own, other] = if from == 0 { [0, 1] } else { [1, 0] }.map(|side| &self.sides[side]);
        let expected = own.next.map(|(next, _)| next);
        let is_plain = !segment.has(SYN | FIN | RST);
        let counts = &mut self.counts;
        counts.zero_windows += u64::from(segment.window == 0 && is_plain);
        counts.keep_alives += u64::from(seen.is_keep_alive);
        let is_gap = expected.is_some_and(|next| is_after(segment.seq, next));
        counts.previous_not_captured += u64::from(is_gap && !segment.has(RST));
        if let (Some(ack), Some(window)) = (other.ack, other.window) {
            let edge = ack.wrapping_add(u32::from(window) << other.scale);
            let is_full = segment.payload > 0
                && is_plain
                && self.has_handshake
                && segment.seq.wrapping_add(segment.payload) == edge;
            counts.window_full += u64::from(is_full);
        }
        let repeats_ack = segment.payload == 0
            && is_plain
            && own.window == Some(segment.window)
            && expected == Some(segment.seq)
            && own.ack == Some(segment.ack);
        if repeats_ack && segment.window > 0 && other.was_keep_alive {
            return true;
        }
        if repeats_ack && segment.window == 0 && other.was_probe {
            return true;
        }
        if repeats_ack && segment.window > 0 {
            counts.duplicate_acks += 1;
            self.sides[from].duplicate_acks += 1;
        }
        false
    }

    fn count_repeats(&mut self, from: usize, seen: &Seen<'_>) {
        let segment = seen.segment;
        if segment.payload == 0 && !segment.has(SYN | FIN) || seen.is_keep_alive {
            return;
        }
        let [own, other] = [&self.sides[from], &self.sides[1 - from]];
        let Some((next, raised)) = own.next else { return };
        let end = segment.seq.wrapping_add(segment.payload);
        let is_all_acked = other.ack.is_some_and(|ack| !is_after(end, ack));
        if segment.payload > 0 && is_all_acked {
            self.counts.spurious_retransmissions += 1;
            self.counts.retransmissions += 1;
            return;
        }
        // One byte below is a probe's; what is longer adds data.
        let is_repeat = is_after(next, segment.seq)
            && !(segment.payload > 1 && next.wrapping_sub(1) == segment.seq);
        if !is_repeat {
            return;
        }
        let is_recent = seen.time.saturating_sub(other.ack_time) < FAST_WITHIN;
        if is_recent && other.duplicate_acks >= 2 && other.ack == Some(segment.seq) {
            self.counts.fast_retransmissions += 1;
            self.counts.retransmissions += 1;
            return;
        }
        let end = end.wrapping_add(u32::from(segment.has(SYN | FIN)));
        let within = self.first_rtt.unwrap_or(OUT_OF_ORDER_WITHIN);
        if seen.time.saturating_sub(raised) < within && next != end {
            self.counts.out_of_order += 1;
        } else {
            self.counts.retransmissions += 1;
        }
    }

    fn update(&mut self, from: usize, seen: &Seen<'_>) {
        let (segment, side) = (seen.segment, &mut self.sides[from]);
        let end = segment
            .seq
            .wrapping_add(segment.payload)
            .wrapping_add(u32::from(segment.has(SYN | FIN)));
        if side.next.is_none_or(|(next, _)| is_after(end, next)) && !seen.is_probe {
            side.next = Some((end, seen.time));
        }
        if segment.has(ACK) {
            side.ack = Some(segment.ack);
        }
        side.ack_time = seen.time;
        side.window = Some(segment.window);
        (side.was_keep_alive, side.was_probe) = (seen.is_keep_alive, seen.is_probe);
    }
}

/// Whether `one` is after `other`, modulo 2^32.
fn is_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

const FAST_WITHIN: u64 = 20_000_000;
const OUT_OF_ORDER_WITHIN: u64 = 3_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SackBlocks;

    /// Of a hole of two segments the first is awaited, and sent again fast. The second is not, whatever SACK reports.
    #[test]
    fn only_the_awaited_segment_is_sent_again_fast() {
        let mut expert = Expert::default();
        let data =
            |seq| Segment { seq, flags: ACK, window: 63, payload: 100, ..Segment::default() };
        let ack = |ack, sack| Segment { ack, flags: ACK, window: 500, sack, ..Segment::default() };
        let mut above = SackBlocks::default();
        above.push((400, 600));
        for at in 0..10 {
            expert.handle(u64::from(at), 0, &data(at * 100));
        }
        for at in 10..14 {
            expert.handle(at, 1, &ack(200, above));
        }
        expert.handle(14, 0, &data(200));
        expert.handle(15, 0, &data(300));
        let counts = expert.counts();
        assert_eq!((counts.duplicate_acks, counts.fast_retransmissions), (3, 1));
        assert_eq!((counts.retransmissions, counts.out_of_order), (1, 1));
    }
}
