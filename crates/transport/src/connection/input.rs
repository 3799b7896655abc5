//! Segments that arrive (RFC 9293 §3.10.7).

use weir_cc::AckTimestamps;
use weir_units::feedback::Telemetry;
use weir_units::{Duration, Ecn, Instant};

use super::{Arrived, Connection, Event, State};
use crate::segment::{Flags, SackBlocks, Segment, SeqNum, Timestamps};
use crate::sender::IncomingAck;
use crate::{HostProfile, timestamp_ms};

impl Connection {
    /// Processes a segment whose checksum was right, from a packet with such an ECN field. Returns the
    /// part of its payload that is to be stored.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment, ecn: Ecn) -> Option<Arrived> {
        self.stats.segments_received += 1;
        match self.state {
            State::Closed => None,
            State::Listen => self.on_segment_listening(now, segment, ecn),
            State::SynSent => self.on_segment_syn_sent(now, segment, ecn),
            _ => self.on_segment_synchronised(now, segment, ecn),
        }
    }

    /// The segment that follows returns these records of hops (`Echo::Int`), of which the controller makes use.
    pub fn handle_telemetry(&mut self, records: &Telemetry) {
        self.sender.on_telemetry(records);
    }

    fn on_segment_synchronised(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
    ) -> Option<Arrived> {
        let offset = self.acceptable(now, segment)?;
        if segment.flags.contains(Flags::RST) {
            self.on_reset(now, segment);
            return None;
        }
        if segment.flags.contains(Flags::SYN) {
            // RFC 5961 §4: a SYN in a synchronised state is challenged. In SYN-RECEIVED it is the
            // peer's retransmission, or its half of a simultaneous open.
            let again = self.state == State::SynReceived || self.is_unconfirmed();
            if again && segment.seq == self.irs {
                return self.on_syn_again(now, segment);
            }
            self.challenge(now);
            return None;
        }
        if !segment.flags.contains(Flags::ACK) {
            self.reject();
            return None;
        }
        if self.state == State::SynReceived {
            if segment.ack != self.iss + 1 && self.sender_offset(segment.ack).is_none() {
                self.reject();
                return None;
            }
            self.establish(now, segment);
        }
        if !self.on_acknowledgement(now, segment) {
            return None;
        }
        if self.is_unconfirmed() {
            self.confirm(now, segment);
        }
        // After the check of the acknowledgement, as in Linux's `tcp_ack`: a forged timestamp would have
        // all that the peer sends look stale (RFC 5961 §5).
        self.note_timestamp(now, segment, offset);
        self.on_payload(now, segment, offset, ecn)
    }

    /// RFC 9293 §3.10.7.4's first check, and PAWS (RFC 7323 §5). Returns where the segment lies in the
    /// peer's stream: an offset that is negative by one belongs to the SYN or to a window probe.
    fn acceptable(&mut self, now: Instant, segment: &Segment) -> Option<i64> {
        if self.lacks_timestamps(segment) {
            self.reject();
            return None;
        }
        let distance = segment.seq.since(self.rcv_seq());
        let offset = self.receiver.ack_offset() as i64 + i64::from(distance);
        let end = offset + i64::from(segment.seq_len());
        let expected = self.receiver.ack_offset() as i64;
        let edge = (self.receiver.edge() as i64).max(expected);
        let outside = if segment.seq_len() == 0 {
            offset < expected || offset > edge
        } else {
            // Payload from before the stream has no place in it.
            offset < 0
                || (end <= expected && self.is_old(end))
                || offset > edge
                || (offset == edge && edge == expected && segment.payload_len > 0)
        };
        let syn_again = segment.flags.contains(Flags::SYN)
            && (self.state == State::SynReceived || self.is_unconfirmed());
        let stale = self.terms.timestamps
            && !segment.flags.contains(Flags::RST)
            && segment.options.timestamps.is_some_and(|ts| self.is_stale(now, ts.value));
        if (outside || stale) && !syn_again {
            return self.on_unacceptable(now, segment, offset);
        }
        Some(offset)
    }

    /// Whether what has arrived before is refused. Linux refuses what ends below its last acknowledgement
    /// (`tcp_sequence`). It takes in the rest, and finds then that nothing is new.
    fn is_old(&self, end: i64) -> bool {
        match self.config.host_profile {
            HostProfile::Kernel if self.is_receiving() => end < self.last_ack_sent as i64,
            _ => true,
        }
    }

    /// Whether data may still come.
    #[inline]
    fn is_receiving(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// RFC 7323 §3.2 drops what lacks the timestamps that were agreed upon, without an answer. Linux takes it: some
    /// boxes on the way remove options.
    fn lacks_timestamps(&self, segment: &Segment) -> bool {
        self.terms.timestamps
            && self.config.host_profile == HostProfile::UserSpace
            && segment.options.timestamps.is_none()
            && !segment.flags.contains(Flags::RST)
    }

    /// Old or misplaced: the sender learns where we stand (RFC 9293 §3.10.7.4), unless it was a reset.
    fn on_unacceptable(&mut self, now: Instant, segment: &Segment, offset: i64) -> Option<i64> {
        if segment.flags.contains(Flags::RST) {
            self.reject();
            return None;
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            // The peer has not heard our last acknowledgement (RFC 9293 §3.10.7.4).
            self.time_wait_until = Some(now.saturating_add(self.config.time_wait));
        }
        if segment.payload_len > 0 && offset >= 0 {
            if self.config.host_profile == HostProfile::UserSpace
                && self.may_be_a_copy(segment, offset)
            {
                self.note_timestamp(now, segment, offset);
            }
            // Data seen before is reported as such (RFC 2883).
            let known = self.receiver.rcv_nxt();
            let len = u64::from(segment.payload_len).min(known.saturating_sub(offset as u64));
            self.receiver.on_acknowledged_data(offset as u64, len as u32);
        } else if segment.seq_len() == 0 {
            self.challenge(now);
        } else {
            self.receiver.demand_ack();
        }
        // What it acknowledges is still news when only its data is old (Linux drops it; a peer that
        // retransmits with fresh acknowledgements would otherwise be ignored).
        let fresh = segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::SYN);
        if fresh && segment.payload_len > 0 && offset >= 0 && self.state != State::SynReceived {
            self.on_acknowledgement(now, segment);
        }
        None
    }

    /// Whether old data is as hard to forge as new: it lies no further back than what is expected may lie
    /// ahead, and acknowledges what can be (RFC 5961 §5). A forged timestamp would have all that the peer
    /// sends look stale.
    fn may_be_a_copy(&self, segment: &Segment, offset: i64) -> bool {
        let expected = self.receiver.ack_offset() as i64;
        let ahead = (self.receiver.edge() as i64 - expected).max(1 << 16);
        expected - offset <= ahead
            && segment.flags.contains(Flags::ACK)
            && self.sender_offset(segment.ack).is_some()
    }

    /// RFC 5961 §3: a reset counts only at exactly the next sequence number.
    fn on_reset(&mut self, now: Instant, segment: &Segment) {
        if segment.seq != self.rcv_seq() {
            return self.challenge(now);
        }
        self.handle_reset(now);
    }

    fn on_syn_again(&mut self, now: Instant, segment: &Segment) -> Option<Arrived> {
        let acks_syn = segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1;
        if acks_syn && self.state == State::SynReceived {
            self.establish(now, segment);
            self.receiver.demand_ack();
        } else {
            if self.config.host_profile == HostProfile::UserSpace {
                self.note_timestamp(now, segment, 0);
            }
            self.handshake.due = true;
        }
        None
    }

    /// RFC 7323 §4.3 step 2: the newest timestamp that covers what was acknowledged last.
    fn note_timestamp(&mut self, now: Instant, segment: &Segment, offset: i64) {
        if let Some(ts) = segment.options.timestamps
            && offset <= self.last_ack_sent as i64
            && !self.is_stale(now, ts.value)
        {
            self.ts_recent = ts.value;
            self.ts_recent_at = now;
        }
    }

    /// PAWS (RFC 7323 §5.3); after 24 days of silence the clocks may have wrapped, and nothing is known
    /// (§5.5).
    fn is_stale(&self, now: Instant, value: u32) -> bool {
        is_older(value, self.ts_recent)
            && now.saturating_since(self.ts_recent_at) < TIMESTAMP_LIFETIME
    }

    /// What is not right is answered with where we stand, so that an honest peer finds its way (RFC 5961 §3,
    /// §4, §5), but not without bound.
    fn challenge(&mut self, now: Instant) {
        if self.challenges.admit(now) {
            self.receiver.demand_ack();
        }
        self.reject();
    }

    /// Returns whether the segment's payload may be looked at.
    pub(super) fn on_acknowledgement(&mut self, now: Instant, segment: &Segment) -> bool {
        let Some(ack) = self.sender_offset(segment.ack) else {
            // It acknowledges what was never sent, or is too old to be true (RFC 5961 §5).
            self.challenge(now);
            return false;
        };
        if self.is_mere_data(segment, ack) {
            return true;
        }
        let incoming = self.read_acknowledgement(now, segment, ack);
        if ack < self.sender.una() {
            self.sender.on_old_ack(now, &incoming, &mut self.stats);
            return true;
        }
        if let Some(sample) = self.sender.on_ack(now, &incoming, &mut self.stats) {
            self.rtt_sample = Some(sample);
        }
        self.report_route_states();
        if self.sender.fin_acked() {
            self.on_fin_acked(now);
        }
        true
    }

    /// Header prediction: data to an end that sends none says nothing new in its other fields (Linux's
    /// `tcp_rcv_established` then leaves out `tcp_ack`).
    fn is_mere_data(&self, segment: &Segment, ack: u64) -> bool {
        segment.payload_len > 0
            && segment.options.sack.is_empty()
            && !segment.flags.contains(Flags::ECE)
            && self.sender.knows(ack, self.window_of(segment))
    }

    fn read_acknowledgement(&self, now: Instant, segment: &Segment, ack: u64) -> IncomingAck {
        let mut sack = [const { 0..0 }; SackBlocks::MAX];
        let mut sack_len = 0;
        if self.terms.sack {
            for block in segment.options.sack.as_slice() {
                let start = self.sender_offset(block.start);
                let end = self.sender_offset(block.end);
                if let (Some(start), Some(end)) = (start, end)
                    && start < end
                {
                    sack[sack_len] = start..end;
                    sack_len += 1;
                }
            }
        }
        IncomingAck {
            ack,
            sack,
            sack_len,
            window: Some(self.window_of(segment)),
            carries_data: segment.seq_len() > 0,
            echo: self.echo(now, segment),
            timestamps: self.timestamps(segment),
            ece: segment.flags.contains(Flags::ECE),
            feedback: segment.options.echo.filter(|_| self.terms.feedback.is_some()),
        }
    }

    /// A segment's timestamps, where both ends agreed on them.
    fn timestamps(&self, segment: &Segment) -> Option<AckTimestamps> {
        let Timestamps { value, echo } =
            segment.options.timestamps.filter(|_| self.terms.timestamps)?;
        Some(AckTimestamps { value, echo })
    }

    /// The timestamp that a segment echoes, and the round trip that this implies, if it can be true.
    pub(super) fn echo(&self, now: Instant, segment: &Segment) -> Option<(u32, Duration)> {
        let ts = self.timestamps(segment)?;
        // Less than a tick counts as one (Linux's tcp_rtt_tsopt_us): no path takes no time.
        let elapsed = timestamp_ms(now).wrapping_sub(ts.echo).max(1);
        let rtt = Duration::from_millis(u64::from(elapsed));
        (rtt < Duration::from_secs(3600)).then_some((ts.echo, rtt))
    }

    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.events.push_back(Event::Flushed);
            }
            State::Closing => {
                self.events.push_back(Event::Flushed);
                self.enter_time_wait(now);
            }
            State::LastAck => {
                self.events.push_back(Event::Flushed);
                self.end(now);
            }
            _ => {}
        }
    }

    /// Data arrives at an end that sends data too.
    #[inline(never)]
    fn note_own_rtt(&mut self) {
        if let Some((srtt, rto)) = self.sender.measured() {
            self.receiver.on_own_rtt(srtt, rto);
        }
    }

    /// The window that a segment offers. On a SYN it is never scaled (RFC 7323 §2.2).
    #[inline]
    pub(super) fn window_of(&self, segment: &Segment) -> u64 {
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { self.terms.peer_scale };
        u64::from(segment.window) << scale
    }

    pub(super) fn on_payload(
        &mut self,
        now: Instant,
        segment: &Segment,
        offset: i64,
        ecn: Ecn,
    ) -> Option<Arrived> {
        let fin = segment.flags.contains(Flags::FIN);
        let receiving = self.is_receiving();
        if self.terms.ecn && segment.flags.contains(Flags::CWR) {
            self.receiver.on_cwr(segment.seq_len() > 0);
        }
        if segment.seq_len() > 0 && self.state == State::TimeWait {
            // Whatever comes after the end: the peer is to know that all is acknowledged (RFC 9293 §3.10.7.4,
            // Linux's tcp_timewait_state_process).
            self.time_wait_until = Some(now.saturating_add(self.config.time_wait));
            self.receiver.demand_ack();
        }
        if segment.seq_len() == 0 || !receiving {
            return None;
        }
        // What has arrived before tells nothing of the path (Linux's `tcp_event_data_recv` does not see it).
        let end = offset + i64::from(segment.payload_len);
        if segment.payload_len > 0 && end > self.receiver.ack_offset() as i64 {
            self.receiver.on_ecn(ecn);
            if self.terms.feedback.is_some()
                && let Some(feedback) = &segment.options.feedback
            {
                self.receiver.on_feedback(feedback);
            }
        }
        if segment.payload_len > 0
            && self.config.max_recv_buffer.is_some()
            && let Some((echo, rtt)) = self.echo(now, segment)
        {
            self.receiver.on_echo(echo, rtt, segment.payload_len);
        }
        // The first check let nothing through that starts before the stream.
        let start = offset as u64;
        let space = self.receiver.edge().saturating_sub(start);
        let len = u64::from(segment.payload_len).min(space) as u32;
        let whole = len == segment.payload_len;
        if self.sender.has_sent() {
            self.note_own_rtt();
        }
        let flags = if fin && whole { segment.flags } else { segment.flags.without(Flags::FIN) };
        let received = self.receiver.on_data(now, start, len, flags);
        self.stats.delivered_bytes += received.delivered;
        if received.delivered > 0 {
            self.on_readable();
        }
        if received.finished {
            self.on_fin_received(now);
        }
        received.store
    }

    /// Says so once, unless something else has happened since.
    #[inline]
    fn on_readable(&mut self) {
        if self.events.is_empty() {
            self.readable_first = true;
        } else if self.events.back() != Some(&Event::Readable) {
            self.events.push_back(Event::Readable);
        }
    }

    fn on_fin_received(&mut self, now: Instant) {
        self.events.push_back(Event::Finished);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.sender.stop(now, &mut self.stats);
        self.state = State::TimeWait;
        self.time_wait_until = Some(now.saturating_add(self.config.time_wait));
    }

    /// Where in our stream a sequence number from the peer lies, if it can be true: from one window
    /// before the oldest unacknowledged byte to the newest sent.
    fn sender_offset(&self, number: SeqNum) -> Option<u64> {
        let una = self.sender.una();
        let una_seq = self.iss + 1 + una as u32;
        let offset = una as i64 + i64::from(number.since(una_seq));
        let oldest = una as i64 - self.sender.max_window().max(1 << 16) as i64;
        let possible = offset >= oldest.max(0) && offset <= self.sender.nxt() as i64;
        possible.then_some(offset as u64)
    }

    /// The sequence number that is expected next.
    pub(super) fn rcv_seq(&self) -> SeqNum {
        self.irs + 1 + self.receiver.ack_offset() as u32
    }

    pub(super) fn reject(&mut self) {
        self.stats.segments_rejected += 1;
    }
}

/// RFC 7323 §5.5.
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

fn is_older(value: u32, than: u32) -> bool {
    (value.wrapping_sub(than) as i32) < 0
}
