//! A packet on its way through the simulated network.

use weir_net::{Ecn, Parcel};
use weir_transport::Segment;
use weir_units::{Bytes, Duration};

/// A packet, passed by value from queue to queue: a segment or a datagram without its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    pub(crate) direction: Direction,
    /// The position on its route of the link that it is on.
    pub(crate) hop: u8,
    pub(crate) ecn: Ecn,
    pub(crate) corrupted: bool,
    /// Length of the IP packet.
    pub(crate) ip_len: u32,
    /// Its place in the order in which packets entered the link that it is on.
    pub(crate) stamp: u32,
    /// Time that it spent waiting in queues so far.
    pub(crate) queued: Duration,
    pub(crate) body: Body,
}

/// Which way a packet travels on its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards the flow's receiver.
    Forward,
    /// Back to the flow's sender.
    Reverse,
}

/// What the packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// A segment and where its payload lies in the sender's stream.
    Segment { segment: Segment, offset: u64 },
    /// The datagram with this number.
    Datagram { number: u64, payload: u32 },
}

/// IPv4 without options.
pub(crate) const IP_HEADER: u32 = 20;
/// UDP.
pub(crate) const UDP_HEADER: u32 = 8;

impl Packet {
    /// What identifies it on its flow: where its payload begins, or the datagram's number.
    pub(crate) fn seq(&self) -> u64 {
        match self.body {
            Body::Segment { offset, .. } => offset,
            Body::Datagram { number, .. } => number,
        }
    }

    /// Bytes of payload.
    pub(crate) fn payload(&self) -> u32 {
        match self.body {
            Body::Segment { segment, .. } => segment.payload_len,
            Body::Datagram { payload, .. } => payload,
        }
    }
}

impl Parcel for Packet {
    fn len(&self) -> Bytes {
        Bytes(u64::from(self.ip_len))
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn is_forward(&self) -> bool {
        self.direction == Direction::Forward
    }

    fn carries_data(&self) -> bool {
        self.payload() > 0
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
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
        assert!(size_of::<Packet>() <= 128, "{} bytes", size_of::<Packet>());
    }
}
