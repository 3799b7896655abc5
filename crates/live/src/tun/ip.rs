//! What a link must know of an IP packet: its ECN field, and whose it is.

use weir_net::Ecn;

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
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 0b11;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&updated(checksum, old, new).to_be_bytes());
        }
        Some(Version::V6) => packet[1] |= 0b11 << 4,
        None => {}
    }
}

/// A number that packets of one flow share: addresses, protocol and ports, hashed (FNV-1a).
pub(super) fn flow(packet: &[u8]) -> u32 {
    let (addresses, protocol, header) = match version(packet) {
        Some(Version::V4) => (&packet[12..20], packet[9], usize::from(packet[0] & 0x0f) * 4),
        Some(Version::V6) => (&packet[8..40], packet[6], 40),
        None => return 0,
    };
    let has_ports = matches!(protocol, TCP | UDP);
    let ports = packet.get(header..header + 4).filter(|_| has_ports).unwrap_or_default();
    let bytes = addresses.iter().chain(ports).copied().chain([protocol]);
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// The version of a packet that has a whole header.
fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => Some(Version::V4),
        6 if packet.len() >= 40 => Some(Version::V6),
        _ => None,
    }
}

/// The checksum of a header in which `old` has become `new` (RFC 1624 §3).
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16 + (folded >> 16) as u16)
}

const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header_sum(packet: &[u8]) -> u16 {
        let words = packet[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded & 0xffff) as u16 + (folded >> 16) as u16
    }

    fn ipv4(tos: u8, ports: [u8; 4]) -> Vec<u8> {
        let mut packet =
            vec![0x45, tos, 0, 24, 1, 2, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = !header_sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(ports);
        packet
    }

    #[test]
    fn a_mark_keeps_the_header_valid() {
        for tos in 0..=255 {
            let mut packet = ipv4(tos, [1; 4]);
            assert_eq!(header_sum(&packet), 0xffff);
            mark_ce(&mut packet);
            assert_eq!((ecn(&packet), header_sum(&packet)), (Ecn::Ce, 0xffff), "tos {tos}");
        }
    }

    #[test]
    fn fields_of_ipv6_are_found() {
        let mut packet = vec![0; 44];
        (packet[0], packet[1], packet[6]) = (0x60, 0b0010_0000, TCP);
        assert_eq!(ecn(&packet), Ecn::Ect0);
        let before = flow(&packet);
        mark_ce(&mut packet);
        assert_eq!((ecn(&packet), flow(&packet)), (Ecn::Ce, before));
        packet[43] = 1;
        assert_ne!(flow(&packet), before, "ports tell flows apart");
    }

    #[test]
    fn flows_differ_by_address_and_port() {
        let packet = ipv4(0, [1, 2, 3, 4]);
        assert_eq!(flow(&packet), flow(&ipv4(3, [1, 2, 3, 4])));
        assert_ne!(flow(&packet), flow(&ipv4(0, [1, 2, 3, 5])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (ecn(&packet), flow(&packet));
            mark_ce(&mut packet);
        }
    }
}
