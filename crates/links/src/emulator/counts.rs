//! What the packets of a flow show whose ends are other projects' programs.
//!
//! Of TCP, sequence numbers separate retransmissions from new data, and acknowledgements show what has
//! arrived in order. UDP carries transports whose headers are encrypted (RFC 9001 §5.4): what arrives is
//! counted with their headers and repeats.

use std::collections::BTreeMap;

use weir_scene::{Direction, Packet};
use weir_units::{Duration, Instant};

use super::load::Load;
use super::view::{IpPacket, TCP};

/// Counters of a flow's packets. Data is sent forward.
#[derive(Clone, Debug, Default)]
pub struct FlowCounts {
    /// Packets with payload that entered the first link.
    pub segments: u64,
    /// Their payload.
    pub bytes: u64,
    /// Their length with the IP header.
    pub ip_bytes: u64,
    /// Packets of TCP with payload that was sent before.
    pub retransmits: u64,
    /// When a packet with payload last arrived; of TCP, when data was last acknowledged.
    pub last_delivery: Option<Instant>,
    /// Payload of UDP that arrived.
    arrived: u64,
    /// Delay of the newest packet that arrived, by direction.
    delays: [Option<Duration>; 2],
    /// By the ports of sender and receiver.
    connections: BTreeMap<(u16, u16), Connection>,
}

/// Positions in the stream that a TCP connection sends forward; 0 is the first byte.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// The sequence number of the first byte.
    first: u32,
    sent: u64,
    acked: u64,
}

impl FlowCounts {
    /// Bytes that arrived: of TCP in order, as acknowledged, of UDP all.
    pub fn delivered(&self) -> u64 {
        self.arrived + self.connections.values().map(|connection| connection.acked).sum::<u64>()
    }

    /// Whether it was TCP that carried data.
    pub fn is_tcp(&self) -> bool {
        self.connections.values().any(|connection| connection.sent > 0)
    }

    /// The time that the newest packets took from one end to the other and back, without the
    /// receiver's.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.delays[0]? + self.delays[1]?)
    }

    /// A packet is about to enter its first link.
    pub(super) fn on_entry(&mut self, view: &IpPacket, packet: &Packet<Load>) {
        let payload = packet.payload();
        let forward = packet.direction == Direction::Forward;
        if forward && payload > 0 {
            self.segments += 1;
            self.bytes += u64::from(payload);
            self.ip_bytes += u64::from(packet.ip_len);
        }
        let Some((source, destination)) = view.ports.filter(|_| view.protocol == TCP) else {
            return;
        };
        if forward {
            // The first part's sequence number is that of the headers.
            let seq = view.seq.wrapping_add(packet.load.part().offset);
            let connection = self.connections.entry((source, destination)).or_default();
            if view.is_syn {
                *connection = Connection { first: seq.wrapping_add(1), ..Connection::default() };
            } else if payload > 0 {
                self.retransmits += u64::from(connection.send(seq, payload));
            }
        } else if let Some(ack) = view.ack
            && let Some(connection) = self.connections.get_mut(&(destination, source))
            && connection.acknowledge(ack)
        {
            self.last_delivery = Some(packet.sent);
        }
    }

    /// A packet left its last link.
    pub(super) fn on_arrival(&mut self, packet: &Packet<Load>, at: Instant) {
        self.delays[packet.direction as usize] = Some(at.saturating_since(packet.sent));
        let payload = packet.payload();
        if packet.direction == Direction::Forward
            && payload > 0
            && !packet.corrupted
            && self.connections.is_empty()
        {
            self.arrived += u64::from(payload);
            self.last_delivery = Some(at);
        }
    }
}

impl Connection {
    /// Data is sent; returns whether some of it was sent before.
    fn send(&mut self, seq: u32, payload: u32) -> bool {
        let start = position(seq.wrapping_sub(self.first), self.sent);
        let is_repeat = start < self.sent;
        self.sent = self.sent.max(start + u64::from(payload));
        is_repeat
    }

    /// Everything before a sequence number has arrived; returns whether there is data among it that
    /// had not. The end of the stream takes a number, too.
    fn acknowledge(&mut self, ack: u32) -> bool {
        let until = position(ack.wrapping_sub(self.first), self.acked).min(self.sent);
        let is_new = until > self.acked;
        self.acked = self.acked.max(until);
        is_new
    }
}

/// The position with these lowest 32 bits that is nearest to another.
fn position(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_sequence_numbers_begin_again() {
        let mut connection = Connection { first: u32::MAX - 999, ..Connection::default() };
        assert!(!connection.send(u32::MAX - 999, 1_000));
        assert!(!connection.send(0, 1_000), "new data after the wrap");
        assert!(connection.send(0, 1_000), "sent again");
        assert!(connection.send(u32::MAX - 999, 1_000));
        assert_eq!(connection.sent, 2_000);
        assert!(connection.acknowledge(500));
        assert_eq!(connection.acked, 1_500);
        assert!(!connection.acknowledge(500), "acknowledged before");
        assert!(connection.acknowledge(1_001), "the end of the stream is no byte");
        assert_eq!(connection.acked, 2_000);
        assert_eq!(position(0, (1 << 32) + 5), 1 << 32);
    }
}
