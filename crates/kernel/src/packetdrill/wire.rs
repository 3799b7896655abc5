//! Segments as IPv4 packets.
//!
//! The transport's wire format is TCP's, with a checksum whose pseudo-header has no addresses. Here they are
//! added to it and taken out of it (RFC 1624).

use weir_transport::Segment;
use weir_transport::wire;
use weir_units::Ecn;

use super::{LOCAL, REMOTE};
use weir_links::emulator::ones_sum;

/// The ports of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) kernel: u16,
    pub(super) script: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { kernel: SERVER_PORT, script: SERVER_PORT }
    }
}

/// An IPv4 packet from the script's side with a payload of zeros.
pub(super) fn emit(segment: &Segment, ecn: Ecn, ports: Ports) -> Vec<u8> {
    let len = IP_HEADER + segment.header_len() + segment.payload_len as usize;
    let mut packet = vec![0; IP_HEADER];
    packet[0] = 0x45;
    packet[1] = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    // The parser bounds a payload by what a packet holds.
    packet[2..4].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
    (packet[8], packet[9]) = (64, TCP);
    packet[12..16].copy_from_slice(&REMOTE.octets());
    packet[16..20].copy_from_slice(&LOCAL.octets());
    let sum = !ones_sum(&packet, 0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let ports = wire::Ports { source: ports.script, destination: ports.kernel };
    wire::emit(segment, ports, &vec![0; segment.payload_len as usize], &mut packet);
    shift_checksum(&mut packet[IP_HEADER..], addresses_sum());
    packet
}

/// A TCP segment that the kernel sent; none for other packets.
pub(super) fn parse(packet: &mut [u8]) -> Option<(Segment, Ecn, wire::Ports)> {
    let header: &[u8; IP_HEADER] = packet.first_chunk()?;
    if header[0] >> 4 != 4 || header[9] != TCP {
        return None;
    }
    let ecn = match header[1] & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    let start = usize::from(header[0] & 15) * 4;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let tcp = packet.get_mut(start..len)?;
    shift_checksum(tcp, !addresses_sum());
    let parsed = wire::parse(tcp).ok()?;
    Some((parsed.segment, ecn, parsed.ports))
}

/// The addresses' part of the pseudo-header.
fn addresses_sum() -> u16 {
    let addresses = [LOCAL.octets(), REMOTE.octets()].concat();
    ones_sum(&addresses, 0)
}

/// Adds `by` to what the checksum covers.
fn shift_checksum(tcp: &mut [u8], by: u16) {
    let Some(field) = tcp.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) else { return };
    let before = !u16::from_be_bytes([field[0], field[1]]);
    let after = !ones_sum(&before.to_be_bytes(), u32::from(by));
    field.copy_from_slice(&after.to_be_bytes());
}

/// Where a server of a script listens, and where its client connects to.
pub(super) const SERVER_PORT: u16 = 8_080;
const IP_HEADER: usize = 20;
const TCP: u8 = 6;
const CHECKSUM_AT: usize = 16;

#[cfg(test)]
mod tests {
    use weir_transport::{Flags, SeqNum};

    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let segment = Segment {
            seq: SeqNum(7),
            ack: SeqNum(9),
            flags: Flags::ACK,
            window: 300,
            payload_len: 11,
            ..Segment::default()
        };
        let mut packet = emit(&segment, Ecn::Ce, Ports { kernel: 5, script: 6 });
        // The sum over header and pseudo-header, which a receiver checks (RFC 9293 §3.1).
        let pseudo = ones_sum(&packet[12..20], u32::from(TCP) + (packet.len() - 20) as u32);
        assert_eq!(ones_sum(&packet[20..], u32::from(pseudo)), 0xffff);
        assert_eq!(ones_sum(&packet[..20], 0), 0xffff);
        let ports = wire::Ports { source: 6, destination: 5 };
        assert_eq!(parse(&mut packet), Some((segment, Ecn::Ce, ports)));
        packet[9] = 17;
        assert_eq!(parse(&mut packet), None);
    }
}
