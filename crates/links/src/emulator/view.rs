//! What a link must know of an IP packet: whose it is, what it carries, and its ECN field.
//!
//! Every length and offset comes from the network, so nothing here trusts any of them.

use weir_net::{Ecn, Hosts};

/// An IP packet, as far as it can be read: what is missing or strange reads as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IpPacket {
    /// Its ECN field; what is neither IPv4 nor IPv6 is not capable.
    pub(super) ecn: Ecn,
    /// The protocol that it carries, by IANA's number.
    pub(super) protocol: u8,
    /// Source and destination port, of TCP and UDP.
    pub(super) ports: Option<(u16, u16)>,
    /// TCP's sequence number, or IPv4's identification.
    pub(super) seq: u32,
    /// TCP's acknowledgement number, where it is valid.
    pub(super) ack: Option<u32>,
    /// Whether TCP opens a connection: the sequence number is the initial one.
    pub(super) is_syn: bool,
    /// Bytes behind the headers of TCP or UDP, or else behind IP's.
    pub(super) payload: u32,
    /// Equal for all packets with the same addresses, protocol and ports.
    pub(super) conversation: u32,
    /// Its addresses; what has none is its own host.
    pub(super) hosts: Option<Hosts>,
}

impl IpPacket {
    /// Reads a packet.
    pub(super) fn of(packet: &[u8]) -> Self {
        let Some(ip) = Ip::of(packet) else { return Self::default() };
        let body = packet.get(ip.header..).unwrap_or_default();
        // Only a first fragment has ports.
        let transport = body.first_chunk::<8>().filter(|_| ip.is_first);
        let transport = transport.filter(|_| matches!(ip.protocol, TCP | UDP));
        let header = match ip.protocol {
            TCP => body.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4),
            UDP => UDP_HEADER,
            _ => 0,
        };
        let header = if transport.is_some() { header } else { 0 };
        let (from, to) = ip.addresses.split_at(ip.addresses.len() / 2);
        let number = |address: &[u8]| fnv1a(address.iter().copied());
        let seq = transport.filter(|_| ip.protocol == TCP).map(|start| word(start, 4));
        let ports = transport.map_or(&[][..], |start| &start[..4]);
        // Acknowledgement number and flags (RFC 9293 §3.1).
        let tcp = body.first_chunk::<14>().filter(|_| transport.is_some() && ip.protocol == TCP);
        let has = |flag: u8| tcp.is_some_and(|start| start[13] & flag != 0);
        Self {
            ecn: ecn(packet),
            protocol: ip.protocol,
            ports: transport.map(|start| (half(start, 0), half(start, 2))),
            seq: seq.unwrap_or(ip.identification),
            ack: tcp.filter(|_| has(ACK)).map(|start| word(start, 8)),
            is_syn: has(SYN),
            payload: body.len().saturating_sub(header) as u32,
            conversation: fnv1a(ip.addresses.iter().chain(ports).copied().chain([ip.protocol])),
            hosts: Some(Hosts { from: number(from), to: number(to) }),
        }
    }
}

/// The ECN field of an IPv4 (RFC 3168 §5) or IPv6 packet; what is neither is not capable.
pub(super) fn ecn(packet: &[u8]) -> Ecn {
    let bits = match version(packet) {
        Some(Version::V4) => packet[1],
        Some(Version::V6) => packet[1] >> 4,
        None => 0,
    };
    match bits & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Writes "congestion experienced" into a packet.
pub(super) fn mark_ce(packet: &mut [u8]) {
    match version(packet) {
        Some(Version::V4) => {
            let old = half(packet, 0);
            packet[1] |= 0b11;
            let sum = updated(half(packet, 10), old, half(packet, 0));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(Version::V6) => packet[1] |= 0b11 << 4,
        None => {}
    }
}

/// The network layer of a packet.
pub(super) struct Ip<'a> {
    /// How long its header says that it is, and how long it is at least.
    pub(super) header: usize,
    pub(super) least: usize,
    pub(super) protocol: u8,
    addresses: &'a [u8],
    identification: u32,
    /// Whether it begins what it carries: it is no later fragment.
    pub(super) is_first: bool,
}

impl<'a> Ip<'a> {
    pub(super) fn of(packet: &'a [u8]) -> Option<Self> {
        Some(match version(packet)? {
            Version::V4 => Self {
                header: usize::from(packet[0] & 0x0f) * 4,
                least: V4_HEADER,
                protocol: packet[9],
                addresses: &packet[12..20],
                identification: u32::from(half(packet, 4)),
                is_first: half(packet, 6) & 0x1fff == 0,
            },
            Version::V6 => Self {
                header: V6_HEADER,
                least: V6_HEADER,
                protocol: packet[6],
                addresses: &packet[8..40],
                identification: 0,
                is_first: true,
            },
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// The version of a packet that has a whole header.
fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 if packet.len() >= V4_HEADER => Some(Version::V4),
        6 if packet.len() >= V6_HEADER => Some(Version::V6),
        _ => None,
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) << 16 | u32::from(half(bytes, at + 2))
}

/// The checksum of a header in which `old` has become `new` (RFC 1624 §3).
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16 + (folded >> 16) as u16)
}

/// The sum of the Internet's checksums (RFC 1071) over `bytes`, begun with `sum` and folded.
pub fn ones_sum(bytes: &[u8], sum: u32) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    let mut sum = words + last + u64::from(sum);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header_sum(packet: &[u8]) -> u16 {
        ones_sum(&packet[..20], 0)
    }

    /// A header that carries `body`.
    fn ipv4(tos: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
        let len = (20 + body.len()) as u8;
        let mut packet =
            vec![0x45, tos, 0, len, 1, 2, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = !header_sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(body);
        packet
    }

    const UDP_BODY: [u8; 11] = [0x17, 0x70, 0, 9, 0, 11, 0, 0, 1, 2, 3];

    #[test]
    fn a_mark_keeps_the_header_valid() {
        for tos in 0..=255 {
            let mut packet = ipv4(tos, UDP, &UDP_BODY);
            assert_eq!(header_sum(&packet), 0xffff);
            mark_ce(&mut packet);
            assert_eq!((ecn(&packet), header_sum(&packet)), (Ecn::Ce, 0xffff), "tos {tos}");
        }
    }

    #[test]
    fn headers_are_read_and_payload_is_what_is_behind_them() {
        let view = IpPacket::of(&ipv4(0b10, UDP, &UDP_BODY));
        assert_eq!((view.ports, view.payload, view.ecn), (Some((6_000, 9)), 3, Ecn::Ect0));
        // Ports, sequence number 0x01020304, acknowledgement; a header of 24 bytes, one of payload.
        let mut tcp = [0; 25];
        (tcp[3], tcp[12]) = (80, 6 << 4);
        tcp[4..8].copy_from_slice(&[1, 2, 3, 4]);
        let view = IpPacket::of(&ipv4(0, TCP, &tcp));
        assert_eq!((view.ports, view.seq, view.payload), (Some((0, 80)), 0x0102_0304, 1));
        assert_eq!((view.ack, view.is_syn), (None, false));
        (tcp[11], tcp[13]) = (7, SYN | ACK);
        let view = IpPacket::of(&ipv4(0, TCP, &tcp));
        assert_eq!((view.ack, view.is_syn), (Some(7), true));
        let icmp = IpPacket::of(&ipv4(0, 1, &[8; 16]));
        assert_eq!((icmp.ports, icmp.seq, icmp.payload), (None, 0x0102, 16));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = ipv4(0, UDP, &UDP_BODY);
        packet[7] = 1;
        let view = IpPacket::of(&packet);
        assert_eq!((view.ports, view.payload), (None, 11));
    }

    #[test]
    fn fields_of_ipv6_are_found() {
        let mut packet = vec![0; 60];
        (packet[0], packet[1], packet[6], packet[52]) = (0x60, 0b0010_0000, TCP, 5 << 4);
        let before = IpPacket::of(&packet);
        assert_eq!((before.ecn, before.payload), (Ecn::Ect0, 0));
        mark_ce(&mut packet);
        assert_eq!(IpPacket::of(&packet), IpPacket { ecn: Ecn::Ce, ..before });
        packet[43] = 1;
        let other = IpPacket::of(&packet);
        assert_ne!(other.conversation, before.conversation, "ports tell conversations apart");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let view = IpPacket::of(&packet);
            prop_assert!(view.payload as usize <= packet.len());
            mark_ce(&mut packet);
        }

        #[test]
        fn whatever_is_cut_off_a_packet_it_is_read_without_harm(kept in 0usize..31, ihl: u8) {
            let mut packet = ipv4(0, TCP, &UDP_BODY);
            packet[0] = 0x40 | ihl & 0x0f;
            packet.truncate(kept);
            let view = IpPacket::of(&packet);
            prop_assert!(view.payload as usize <= packet.len());
        }
    }
}
