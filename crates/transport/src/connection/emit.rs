//! Segments that leave.

use std::ops::Range;

use weir_units::{Ecn, Feedback, Instant};

use super::{Connection, State, Transmit};
use crate::receiver::{Flush, window_scale};
use crate::segment::{Flags, Options, SackBlock, Segment, SeqNum, Timestamps};
use crate::sender::{Kind, OutgoingRange};
use crate::{HostProfile, timestamp_ms};

impl Connection {
    /// The next segment to send, if there is one. Ask until there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        // Not `?`: the segment would be copied once more.
        let transmit = self.next_segment(now);
        self.stats.segments_sent += u64::from(transmit.is_some());
        transmit
    }

    #[inline(always)]
    fn next_segment(&mut self, now: Instant) -> Option<Transmit> {
        // Checked first: `take` copies a whole segment even where there is none.
        if self.reset_due.is_some() {
            let reset = self.reset_due.take();
            return reset.map(|segment| Transmit { segment, offset: 0, ecn: Ecn::NotEct });
        }
        if let Some(flush) = self.receiver.take_flush() {
            return Some(self.emit_flush(now, flush));
        }
        match self.state {
            State::Listen | State::Closed => None,
            State::SynSent | State::SynReceived => self.emit_handshake(now),
            State::TimeWait => self.emit_ack_if_due(now),
            // A connection that was opened by data on a SYN still answers it.
            _ if self.handshake.due => self.emit_handshake(now),
            _ => {
                // News of a hole fits no data segment: it goes first, alone. So may the handshake's end.
                let confirms = std::mem::take(&mut self.handshake.confirmation_due);
                if (confirms || self.receiver.has_news()) && self.receiver.ack_is_due(now) {
                    return self.emit_ack_if_due(now);
                }
                let departure = self.sender.poll(now, &mut self.stats);
                self.report_route_states();
                match departure {
                    Some(departure) => Some(self.emit_data(now, &departure)),
                    None => self.emit_ack_if_due(now),
                }
            }
        }
    }

    fn emit_handshake(&mut self, now: Instant) -> Option<Transmit> {
        if !std::mem::take(&mut self.handshake.due) {
            return None;
        }
        self.handshake.sent_at = Some(now);
        let answering = self.state != State::SynSent;
        let mut flags = Flags::SYN;
        if answering {
            flags = flags.with(Flags::ACK);
            self.receiver.on_ack_sent();
        }
        // RFC 3168 §6.1.1.1: whatever dropped the first SYN may have disliked the offer.
        let offers = self.offers_ecn() && self.handshake.retries == 0;
        let ecn = if answering { self.terms.ecn } else { offers };
        if ecn {
            // RFC 3168 §6.1.1: the offer sets both bits, the answer only the echo.
            flags = flags.with(if answering { Flags::ECE } else { Flags::ECE.with(Flags::CWR) });
        }
        let offers_timestamps =
            if answering { self.terms.timestamps } else { self.config.timestamps };
        let offers_scale = self.config.window_scaling && (!answering || self.terms.scaling);
        let options = Options {
            mss: Some(u16::try_from(self.config.mss).unwrap_or(u16::MAX)),
            window_scale: offers_scale.then(|| window_scale(&self.config)),
            sack_permitted: if answering { self.terms.sack } else { self.config.sack },
            timestamps: offers_timestamps
                .then(|| Timestamps { value: timestamp_ms(now), echo: self.handshake_echo(now) }),
            feedback: if answering { None } else { self.offered_feedback(now) },
            echo: self.terms.feedback.or(self.terms.approval).filter(|_| answering),
            ..Options::default()
        };
        // Not scaled (RFC 7323 §2.2).
        let window = self.receiver.offer_at_most(u64::from(u16::MAX)) as u16;
        let ack = if answering { self.rcv_seq() } else { SeqNum::default() };
        // Data on a SYN that is lost may be what a box on the way dislikes (RFC 7413 §4.1.3.1).
        let data = self.handshake.syn_data.filter(|_| self.handshake.retries == 0);
        let payload_len = data.unwrap_or_default();
        self.last_ack_sent = self.receiver.ack_offset();
        let segment = Segment { seq: self.iss, ack, flags, window, payload_len, options };
        let ecn = if ecn { self.sender.needed_ecn() } else { Ecn::NotEct };
        Some(Transmit { segment, offset: 0, ecn })
    }

    /// What the SYN carries past the routers: what the controller asks, or a request for a rate, which
    /// whatever dropped the first SYN may have disliked (RFC 4782 §4.7.2).
    fn offered_feedback(&mut self, now: Instant) -> Option<Feedback> {
        let first = self.handshake.retries == 0;
        let request = self.quick_start.as_ref().filter(|_| first);
        let rate = request.map(|request| Feedback::QuickStart(request.asked()));
        self.sender.request(now).or(rate)
    }

    /// The peer's timestamp in an answer to its SYN. Sent again by a timer, the answer would measure that wait
    /// too, and cannot be distinguished from the path: the user-space profile leaves the wait out.
    fn handshake_echo(&self, now: Instant) -> u32 {
        let waited = match self.config.host_profile {
            HostProfile::UserSpace if self.state == State::SynReceived => {
                timestamp_ms(now).wrapping_sub(timestamp_ms(self.ts_recent_at))
            }
            _ => 0,
        };
        self.ts_recent.wrapping_add(waited)
    }

    #[inline(always)]
    fn emit_data(&mut self, now: Instant, departure: &OutgoingRange) -> Transmit {
        let mut flags = Flags::ACK;
        if departure.fin {
            flags = flags.with(Flags::FIN);
        }
        if departure.push {
            flags = flags.with(Flags::PSH);
        }
        if departure.cwr {
            flags = flags.with(Flags::CWR);
        }
        let mut segment = self.header(now, self.seq_of(departure.start), flags);
        segment.payload_len = departure.len;
        if departure.len > 0 {
            self.receiver.on_data_sent(now);
        }
        if departure.len > 0 && self.terms.feedback.is_some() {
            segment.options.feedback = self.sender.request(now);
        }
        if departure.kind == Kind::WindowProbe {
            // One before what is expected: the answer is an acknowledgement with the window.
            segment.seq = segment.seq - 1;
        }
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable.
        let is_new = departure.kind == Kind::New && departure.len > 0;
        let ecn = match self.common_ecn() {
            Ecn::NotEct if self.terms.ecn && is_new => Ecn::Ect0,
            common => common,
        };
        Transmit { segment, offset: departure.start, ecn }
    }

    #[inline]
    fn emit_ack_if_due(&mut self, now: Instant) -> Option<Transmit> {
        if !self.receiver.ack_is_due(now) {
            return None;
        }
        let stamp = self.receiver.ack_stamp(now);
        let mut segment = self.header(stamp, self.seq_of(self.sender.nxt()), Flags::ACK);
        self.add_sack_blocks(&mut segment);
        let offset = self.receiver.ack_offset();
        Some(Transmit { segment, offset, ecn: self.common_ecn() })
    }

    /// What a delayed acknowledgement would have said.
    fn emit_flush(&mut self, now: Instant, flush: Flush) -> Transmit {
        let flags = if flush.echo { Flags::ACK.with(Flags::ECE) } else { Flags::ACK };
        let mut segment = self.plain_header(now, self.seq_of(self.sender.nxt()), flags);
        segment.ack = self.irs + 1 + flush.ack_offset as u32;
        if self.terms.sack {
            let space = segment.options.sack_space();
            for range in flush.ranges.iter().take(space) {
                segment.options.sack.push(sack_block(self.irs + 1, range));
            }
        }
        Transmit { segment, offset: flush.ack_offset, ecn: self.common_ecn() }
    }

    fn add_sack_blocks(&mut self, segment: &mut Segment) {
        if self.terms.sack && self.receiver.has_reports() {
            let space = segment.options.sack_space();
            let origin = self.irs + 1;
            for range in self.receiver.sack_ranges(space) {
                segment.options.sack.push(sack_block(origin, &range));
            }
            if space > 0 {
                self.receiver.on_blocks_sent();
            }
        }
    }

    /// Controllers that live on marks have every packet ECN-capable (RFC 8257 §3.6, Linux's
    /// `tcp_ca_needs_ecn`): bare acknowledgements and retransmissions too.
    fn common_ecn(&self) -> Ecn {
        if self.terms.ecn { self.sender.needed_ecn() } else { Ecn::NotEct }
    }

    /// A header with everything that each segment carries; it acknowledges what has arrived.
    #[inline(always)]
    fn header(&mut self, now: Instant, seq: SeqNum, flags: Flags) -> Segment {
        let echo = self.terms.ecn && self.receiver.echoes_ecn();
        let flags = if echo { flags.with(Flags::ECE) } else { flags };
        let mut segment = self.plain_header(now, seq, flags);
        segment.options.echo = self.receiver.take_feedback();
        self.receiver.on_ack_sent();
        self.last_ack_sent = self.receiver.ack_offset();
        segment
    }

    #[inline(always)]
    fn plain_header(&mut self, now: Instant, seq: SeqNum, flags: Flags) -> Segment {
        let window = self.receiver.offer() >> self.terms.our_scale;
        let timestamps = self.timestamps_now(now);
        Segment {
            seq,
            ack: self.irs + 1 + self.receiver.ack_offset() as u32,
            flags,
            window: window.min(u64::from(u16::MAX)) as u16,
            payload_len: 0,
            options: Options { timestamps, ..Options::default() },
        }
    }

    /// With timestamps, where they were agreed upon (RFC 7323 §3.2): without them a peer might take it for
    /// an old one.
    pub(super) fn reset_segment(&self, now: Instant) -> Segment {
        Segment {
            options: Options { timestamps: self.timestamps_now(now), ..Options::default() },
            seq: self.seq_of(self.sender.nxt()),
            ack: self.irs + 1 + self.receiver.ack_offset() as u32,
            flags: Flags::RST.with(Flags::ACK),
            ..Segment::default()
        }
    }

    #[inline(always)]
    fn timestamps_now(&self, now: Instant) -> Option<Timestamps> {
        self.terms.timestamps.then(|| Timestamps { value: timestamp_ms(now), echo: self.ts_recent })
    }

    fn seq_of(&self, offset: u64) -> SeqNum {
        // Sequence numbers are stream offsets modulo 2^32.
        self.iss + 1 + offset as u32
    }
}

/// A range of the stream, whose first byte has the number `origin`.
fn sack_block(origin: SeqNum, range: &Range<u64>) -> SackBlock {
    SackBlock { start: origin + range.start as u32, end: origin + range.end as u32 }
}
