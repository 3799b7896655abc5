//! The bytes that a packet of the simulator would have on a wire: IPv4 (RFC 791), and TCP (RFC 9293)
//! or UDP (RFC 768) behind it, with valid checksums.
//!
//! Packets of the simulator carry descriptions, so their payload is zeros here, and addresses and
//! ports follow from the flow: flow `n` goes from 10.0.0.0 + n + 1 to 10.128.0.0 + n + 1, with port
//! 49152 + n mod 16384 at both ends. The time to live began with 64, fragments are not allowed, and so
//! the identification is 0 (RFC 6864 §4.1). A damaged packet is whole.

use std::convert::Infallible;

use weir_net::Ecn;
use weir_transport::wire::{Ports, emit_into};

use crate::packet::{Body, Direction, IP_HEADER, Packet, UDP_HEADER};

/// Writes packets into one buffer after the other.
#[derive(Debug, Default)]
pub struct Wire {
    buffer: Vec<u8>,
}

impl Wire {
    /// The packet's bytes, all of them; empty where it is no packet of ours, or longer than IP allows.
    pub fn bytes<L>(&mut self, packet: &Packet<L>) -> &[u8] {
        self.buffer.clear();
        if u16::try_from(packet.ip_len).is_err() || matches!(packet.body, Body::Foreign { .. }) {
            return &[];
        }
        self.buffer.resize(packet.ip_len as usize, 0);
        let (ip, rest) = self.buffer.split_at_mut(IP_HEADER as usize);
        let protocol = match packet.body {
            Body::Segment { segment, .. } => {
                let empty = |_: &mut [u8]| Ok::<(), Infallible>(());
                let written = emit_into(&segment, ports(packet), rest, empty);
                debug_assert_eq!(written, Ok(rest.len()));
                TCP
            }
            _ => {
                write_udp(ports(packet), rest);
                UDP
            }
        };
        write_ip(packet, protocol, ip);
        let checksum = if protocol == TCP { TCP_CHECKSUM } else { UDP_CHECKSUM };
        // The codec's checksum is that of addresses of zeros, and the other is none yet.
        rest[checksum..checksum + 2].fill(0);
        let pseudo = sum(&ip[12..20]) + u32::from(protocol) + rest.len() as u32;
        let value = match !fold(pseudo + sum(rest)) {
            // RFC 768: zero says that there is no checksum.
            0 if protocol == UDP => 0xffff,
            value => value,
        };
        rest[checksum..checksum + 2].copy_from_slice(&value.to_be_bytes());
        &self.buffer
    }
}

fn ports<L>(packet: &Packet<L>) -> Ports {
    let port = FIRST_CAPTURED_PORT + (packet.flow % u32::from(FIRST_PORTS)) as u16;
    Ports { source: port, destination: port }
}

fn write_udp(ports: Ports, out: &mut [u8]) {
    debug_assert!(out.len() >= UDP_HEADER as usize);
    let len = out.len() as u16;
    out[0..2].copy_from_slice(&ports.source.to_be_bytes());
    out[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    out[4..6].copy_from_slice(&len.to_be_bytes());
}

fn write_ip<L>(packet: &Packet<L>, protocol: u8, out: &mut [u8]) {
    let sender = SENDERS + (packet.flow & HOSTS) + 1;
    let receiver = sender + RECEIVERS - SENDERS;
    let (from, to) = match packet.direction {
        Direction::Forward => (sender, receiver),
        Direction::Reverse => (receiver, sender),
    };
    out[0] = 0x45;
    out[1] = match packet.ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    out[2..4].copy_from_slice(&(packet.ip_len as u16).to_be_bytes());
    out[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    out[8] = TIME_TO_LIVE.saturating_sub(packet.hop);
    out[9] = protocol;
    out[12..16].copy_from_slice(&from.to_be_bytes());
    out[16..20].copy_from_slice(&to.to_be_bytes());
    let checksum = !fold(sum(out));
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of the two-byte words (RFC 1071), the last one padded with a zero. Of at most 64 KiB, so
/// that it fits.
fn sum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |last| u32::from(*last) << 8)
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const TIME_TO_LIVE: u8 = 64;

const SENDERS: u32 = 10 << 24;
const RECEIVERS: u32 = SENDERS + (128 << 16);
/// Number of bits of a flow's number in its addresses.
const HOSTS: u32 = (1 << 22) - 1;
/// Port of the first flow in captures: the first of the dynamic ports (RFC 6335 §6).
pub const FIRST_CAPTURED_PORT: u16 = 49_152;
const FIRST_PORTS: u16 = 16_384;

#[cfg(test)]
mod tests {
    use weir_transport::{Flags, Options, Segment, SeqNum};
    use weir_units::{Duration, Instant};

    use super::*;

    fn packet(body: Body, ip_len: u32) -> Packet {
        Packet {
            flow: 256,
            direction: Direction::Forward,
            hop: 2,
            ecn: Ecn::Ect0,
            corrupted: false,
            ip_len,
            stamp: 0,
            sent: Instant::ZERO,
            queued: Duration::ZERO,
            body,
            load: (),
        }
    }

    fn segment(payload_len: u32) -> Packet {
        let options = Options { mss: Some(1_448), ..Options::default() };
        let flags = Flags::SYN;
        let segment = Segment { seq: SeqNum(7), flags, payload_len, options, ..Segment::default() };
        packet(Body::Segment { segment, offset: 0 }, 44 + payload_len)
    }

    /// The folded sum over everything that a checksum covers: all ones if it is right.
    fn checked(bytes: &[u8]) -> (u16, u16) {
        let (ip, rest) = bytes.split_at(20);
        let pseudo = sum(&ip[12..20]) + u32::from(ip[9]) + rest.len() as u32;
        (fold(sum(ip)), fold(pseudo + sum(rest)))
    }

    #[test]
    fn a_segment_is_an_ipv4_packet_with_valid_checksums() {
        let mut wire = Wire::default();
        let bytes = wire.bytes(&segment(1_001));
        assert_eq!(bytes.len(), 1_045);
        assert_eq!(bytes[..10], [0x45, 2, 4, 21, 0, 0, 0x40, 0, 62, 6]);
        assert_eq!(bytes[12..20], [10, 0, 1, 1, 10, 128, 1, 1]);
        assert_eq!(bytes[20..28], [0xc1, 0, 0xc1, 0, 0, 0, 0, 7]);
        assert_eq!(checked(bytes), (0xffff, 0xffff));
        // A shorter one after it has nothing of it left.
        assert_eq!(wire.bytes(&segment(0)), Wire::default().bytes(&segment(0)));
    }

    #[test]
    fn what_comes_back_has_its_addresses_changed_round() {
        let back = Packet { direction: Direction::Reverse, ..segment(0) };
        let mut wire = Wire::default();
        let bytes = wire.bytes(&back);
        assert_eq!(bytes[12..20], [10, 128, 1, 1, 10, 0, 1, 1]);
        assert_eq!(checked(bytes), (0xffff, 0xffff));
    }

    #[test]
    fn a_datagram_has_a_udp_header() {
        let datagram = packet(Body::Datagram { number: 3, payload: 100 }, 128);
        let mut wire = Wire::default();
        let bytes = wire.bytes(&datagram);
        assert_eq!((bytes.len(), bytes[9], &bytes[24..26]), (128, 17, &[0, 108][..]));
        assert_eq!(checked(bytes), (0xffff, 0xffff));
    }

    #[test]
    fn what_is_none_of_ours_has_no_bytes() {
        let body = Body::Foreign { seq: 0, payload: 9, conversation: 0, hosts: None };
        assert!(Wire::default().bytes(&packet(body, 60)).is_empty());
        let too_long = Body::Datagram { number: 0, payload: 65_600 };
        assert!(Wire::default().bytes(&packet(too_long, 65_628)).is_empty());
    }
}
