//! Data on the SYN (RFC 7413).
//!
//! The connection sends, receives and repeats it. Whether a peer may send data so early is for the host to decide,
//! which has the cookies: they are no part of a segment here.
//!
//! Source: RFC 7413 §4.2; Linux 6.1, `tcp_send_syn_data`, `tcp_rcv_fastopen_synack`, `tcp_fastopen_create_child`.

use weir_units::{Ecn, Instant};

use super::{Arrived, Connection, Event, State};
use crate::DelayedAck;
use crate::segment::{Flags, Segment};

/// How a listener treats data on a SYN, and how far the handshake of a connection with such data has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Early {
    /// Data waits for the end of the handshake.
    #[default]
    No,
    /// The next SYN opens the connection at once.
    Allowed,
    /// The connection transfers data, and its SYN is not acknowledged.
    Unconfirmed,
}

impl Connection {
    /// Sends the first `bytes` of what was written, at most a segment, with the SYN (RFC 7413 §4.2.1); with 0 it may ask for a cookie. A
    /// SYN that is sent again has no data. Without effect once the SYN has left.
    pub fn send_with_syn(&mut self, bytes: u32) {
        if self.state == State::SynSent && self.handshake.sent_at.is_none() {
            let most = self.sender.written().min(u64::from(self.config.mss));
            let bytes = u64::from(bytes).min(most) as u32;
            self.handshake.syn_data = Some(bytes);
        }
    }

    /// The SYN to come opens the connection at once: its data is taken, and data may be sent before the handshake
    /// is over (RFC 7413 §4.2.2). Without effect after that SYN.
    pub fn open_with_syn(&mut self) {
        if self.state == State::Listen {
            self.handshake.early = Early::Allowed;
        }
    }

    /// Whether data of a SYN was accepted: the peer's by us, or ours by the peer.
    pub fn syn_data_accepted(&self) -> bool {
        self.handshake.data_accepted
    }

    /// Whether the connection transfers data although its SYN is not acknowledged.
    pub fn is_unconfirmed(&self) -> bool {
        self.handshake.early == Early::Unconfirmed
    }

    /// The peer's SYN opens the connection.
    pub(super) fn open_early(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
    ) -> Option<Arrived> {
        self.handshake.early = Early::Unconfirmed;
        self.handshake.data_accepted = segment.payload_len > 0;
        self.start_transfer(now, segment);
        self.state = State::Established;
        self.events.push_back(Event::Connected);
        self.on_payload(now, segment, 0, ecn)
    }

    /// The SYN of a connection that was opened early is acknowledged.
    pub(super) fn confirm(&mut self, now: Instant, segment: &Segment) {
        self.handshake.early = Early::No;
        self.handshake.due = false;
        self.measure_handshake(now, segment);
    }

    /// The peer has answered our SYN: processes what it says of the data on it, and its own data.
    pub(super) fn on_syn_answered(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
    ) -> Option<Arrived> {
        self.receiver.demand_ack();
        let asked = self.handshake.syn_data.take();
        let sent = asked.unwrap_or_default();
        if sent > 0 {
            self.settle_syn_data(now, segment, u64::from(sent));
        }
        // As a host does whose application writes once it is connected; a first course's program
        // that is its own transport need not. What a writer waits to send carries the acknowledgement.
        let waiting =
            asked.is_some() && (self.sender.may_send_new() || self.sender.repairs_early());
        let linux = self.config.delayed_ack() == DelayedAck::Linux;
        self.handshake.confirmation_due = linux && !waiting;
        if waiting && !self.sender.repairs_early() {
            self.receiver.wait_for_data(now);
        }
        let carries = segment.payload_len > 0 || segment.flags.contains(Flags::FIN);
        if sent > 0 && carries { self.on_payload(now, segment, 0, ecn) } else { None }
    }

    /// Of the data on our SYN the peer has acknowledged a part. The rest goes at once.
    fn settle_syn_data(&mut self, now: Instant, segment: &Segment, sent: u64) {
        // Its caller has checked that it is no more than was sent.
        let acked = segment.ack.since(self.iss + 1) as u64;
        let sent_at = self.handshake.sent_at.unwrap_or(now);
        // Up to the acknowledged byte it is one segment, as Linux cuts it.
        self.sender.left_with_syn(sent_at, acked);
        self.sender.left_with_syn(sent_at, sent - acked);
        if acked > 0 {
            self.on_acknowledgement(now, segment);
        }
        self.sender.resend_early();
        self.handshake.data_accepted = acked == sent;
    }
}
