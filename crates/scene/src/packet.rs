//! A packet on its way through the network.

use std::fmt::Debug;

use weir_net::{Ecn, Hosts, Parcel};
use weir_transport::Segment;
use weir_units::feedback::Telemetry;
use weir_units::{Bytes, Duration, Feedback, Instant};

/// A packet: the description of a segment or a datagram, and with it a load: nothing where time is
/// virtual, its bytes where they are real. It stays in one place while it crosses links, and queues
/// hold its address.
#[derive(Clone, Copy, Debug)]
pub struct Packet<L = ()> {
    /// Its flow's index.
    pub flow: u32,
    /// Which way it travels.
    pub direction: Direction,
    /// The position on its route of the link that it is on; on arrival, how many it has crossed.
    pub hop: u8,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whether a link has damaged it.
    pub corrupted: bool,
    /// Length of the IP packet.
    pub ip_len: u32,
    /// Its place in the order in which packets entered the link that it is on.
    pub stamp: u32,
    /// When it left its sender.
    pub sent: Instant,
    /// Time that it spent waiting in queues so far.
    pub queued: Duration,
    /// What it carries.
    pub body: Body,
    /// Its bytes, if they are real.
    pub load: L,
}

/// What a packet carries besides its description: nothing, real bytes, or telemetry.
pub trait Load: Clone + Debug {
    /// Whether its packets carry telemetry.
    const HAS_TELEMETRY: bool = false;

    /// Where hops record themselves.
    fn telemetry(&mut self) -> Option<&mut Telemetry> {
        None
    }
}

impl Load for () {}

impl Load for Vec<u8> {}

impl Load for Telemetry {
    const HAS_TELEMETRY: bool = true;

    fn telemetry(&mut self) -> Option<&mut Telemetry> {
        Some(self)
    }
}

/// Which way a packet travels on its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the flow's receiver.
    Forward,
    /// Back to the flow's sender.
    Reverse,
}

/// What the packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A segment and where its payload lies in the sender's stream.
    Segment {
        /// The header.
        segment: Segment,
        /// Where the payload begins in the stream; of an acknowledgement alone, what of the other stream
        /// it expects next.
        offset: u64,
    },
    /// The datagram with this number.
    Datagram {
        /// Counted from 0.
        number: u64,
        /// Bytes of payload.
        payload: u32,
    },
    /// What a program sent that is none of ours, as Linux's TCP does.
    Foreign {
        /// What identifies it as far as its headers tell: a sequence number, or another number.
        seq: u64,
        /// Bytes of payload.
        payload: u32,
        /// The same for all packets of one conversation: queues that tell flows apart go by it.
        conversation: u32,
        /// The hosts between which it travels, if it has addresses.
        hosts: Option<Hosts>,
    },
}

/// IPv4 without options.
pub const IP_HEADER: u32 = 20;
/// UDP.
pub const UDP_HEADER: u32 = 8;

impl<L> Packet<L> {
    /// The same packet with another load.
    #[inline]
    pub fn with<M>(self, load: M) -> Packet<M> {
        let Self {
            flow, direction, hop, ecn, corrupted, ip_len, stamp, sent, queued, body, ..
        } = self;
        Packet { flow, direction, hop, ecn, corrupted, ip_len, stamp, sent, queued, body, load }
    }

    /// Puts `packet` here, part by part: copied as a whole it would be read back before its parts, just
    /// written, can be read together.
    #[inline(always)]
    pub(crate) fn put(&mut self, packet: Self) {
        let Self { flow, direction, hop, ecn, corrupted, ip_len, stamp, sent, queued, body, load } =
            packet;
        self.flow = flow;
        self.direction = direction;
        self.hop = hop;
        self.ecn = ecn;
        self.corrupted = corrupted;
        self.ip_len = ip_len;
        self.stamp = stamp;
        self.sent = sent;
        self.queued = queued;
        self.body = body;
        self.load = load;
    }

    /// What identifies it on its flow: where its payload begins, or the datagram's number.
    pub fn seq(&self) -> u64 {
        match self.body {
            Body::Segment { offset, .. } => offset,
            Body::Datagram { number, .. } => number,
            Body::Foreign { seq, .. } => seq,
        }
    }

    /// Bytes of payload.
    pub fn payload(&self) -> u32 {
        match self.body {
            Body::Segment { segment, .. } => segment.payload_len,
            Body::Datagram { payload, .. } | Body::Foreign { payload, .. } => payload,
        }
    }
}

impl<L: Load> Parcel for Packet<L> {
    fn len(&self) -> Bytes {
        Bytes(u64::from(self.ip_len))
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn conversation(&self) -> u32 {
        match self.body {
            Body::Foreign { conversation, .. } => conversation,
            _ => self.flow,
        }
    }

    fn hosts(&self) -> Option<Hosts> {
        match self.body {
            Body::Foreign { hosts, .. } => hosts,
            _ => None,
        }
    }

    fn is_forward(&self) -> bool {
        self.direction == Direction::Forward
    }

    fn carries_data(&self) -> bool {
        self.payload() > 0
    }

    fn sequence(&self) -> u64 {
        self.seq()
    }

    fn stamp(&self) -> u32 {
        self.stamp
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    /// What a router would find in the segment's option.
    fn feedback(&mut self) -> Option<&mut Feedback> {
        match &mut self.body {
            Body::Segment { segment, .. } => segment.options.feedback.as_mut(),
            Body::Datagram { .. } | Body::Foreign { .. } => None,
        }
    }

    fn telemetry(&mut self) -> Option<&mut Telemetry> {
        self.load.telemetry()
    }

    fn corrupt(&mut self) {
        self.corrupted = true;
    }

    fn add_queue_delay(&mut self, waited: Duration) {
        self.queued += waited;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_small() {
        // Of these, XCP's header and the time of departure take 40.
        assert!(size_of::<Packet>() <= 136, "{} bytes", size_of::<Packet>());
    }
}
