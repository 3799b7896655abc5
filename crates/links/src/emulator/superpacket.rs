//! Superpackets: what the kernel hands over in one piece for a device to cut (`virtio_net_hdr`).
//!
//! A device with offloads reads up to 64 KB of one TCP flow at once, with one header, no checksum and
//! the size of the segments to make of it. Here each becomes the packets of the wire again: they share
//! the bytes, and each has a header of its own when it is written. What leaves together and would be
//! one superpacket is written as one ([`super::outlet`]).

use super::view::{Ip, TCP, UDP, ones_sum};

/// What a device puts in front of a packet: what is left to do, and how to cut it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    flags: u8,
    kind: u8,
    header_len: u16,
    segment: u16,
    sum_from: u16,
    sum_at: u16,
}

/// How a packet is made up, as far as it has been checked against its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of the network header; 0 of a packet that is only passed on as it is.
    ip_header: usize,
    /// Bytes of all headers.
    header: usize,
    /// Bytes of payload in each part but the last; 0 if there is only one.
    segment: usize,
    protocol: u8,
}

/// One packet of a superpacket, for its headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The headers of the superpacket as they were read.
    pub(super) template: &'a [u8],
    pub(super) number: u32,
    /// Bytes of payload in front of it.
    pub(super) offset: u32,
    pub(super) is_last: bool,
}

impl Prefix {
    /// Its length.
    pub(super) const LEN: usize = 10;

    /// Takes it off a packet.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, packet) = bytes.split_first_chunk::<{ Self::LEN }>()?;
        let half = |at: usize| u16::from_ne_bytes([prefix[at], prefix[at + 1]]);
        let [flags, kind, ..] = *prefix;
        let (header_len, segment) = (half(2), half(4));
        Some((
            Self { flags, kind, header_len, segment, sum_from: half(6), sum_at: half(8) },
            packet,
        ))
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        (bytes[0], bytes[1]) = (self.flags, self.kind);
        let halves = [self.header_len, self.segment, self.sum_from, self.sum_at];
        for (place, half) in bytes[2..].chunks_exact_mut(2).zip(halves) {
            place.copy_from_slice(&half.to_ne_bytes());
        }
        bytes
    }

    fn needs_sum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }
}

impl Layout {
    /// That of a packet as it was read; one whose prefix does not fit it is taken as it is, with its
    /// checksum completed where that is possible.
    pub(super) fn of(prefix: &Prefix, packet: &mut [u8]) -> Self {
        let whole = Self::default();
        if !prefix.needs_sum() {
            return whole;
        }
        let Some(found) = Self::read(prefix, packet) else {
            complete_at(packet, usize::from(prefix.sum_from), usize::from(prefix.sum_at));
            return whole;
        };
        let kind = match (found.protocol, packet[0] >> 4) {
            (TCP, 4) => GSO_TCPV4,
            (TCP, _) => GSO_TCPV6,
            _ => GSO_UDP_L4,
        };
        let is_cut = prefix.kind & !GSO_ECN == kind;
        Self { segment: if is_cut { usize::from(prefix.segment) } else { 0 }, ..found }
    }

    fn read(prefix: &Prefix, packet: &[u8]) -> Option<Self> {
        let ip = Ip::of(packet).filter(|ip| ip.is_first)?;
        let body = packet.get(ip.header..)?;
        let (len, sum_at) = match ip.protocol {
            TCP => (usize::from(body.get(12)? >> 4) * 4, TCP_SUM),
            UDP => (UDP_HEADER, UDP_SUM),
            _ => return None,
        };
        let fits = len >= if ip.protocol == TCP { TCP_HEADER } else { UDP_HEADER };
        let is_there =
            usize::from(prefix.sum_from) == ip.header && usize::from(prefix.sum_at) == sum_at;
        let header = ip.header + len;
        let is_whole = fits && is_there && header <= packet.len() && ip.header >= ip.least;
        is_whole.then_some(Self { ip_header: ip.header, header, segment: 0, protocol: ip.protocol })
    }

    /// How many packets of the wire it is.
    pub(super) fn parts(&self, len: usize) -> usize {
        if self.segment == 0 { 1 } else { (len - self.header).div_ceil(self.segment).max(1) }
    }

    /// Where the payload of a part lies in `bytes` bytes.
    pub(super) fn payload(&self, part: usize, len: usize) -> std::ops::Range<usize> {
        if self.segment == 0 {
            return self.header..len;
        }
        let start = (self.header + part * self.segment).min(len);
        start..(start + self.segment).min(len)
    }

    pub(super) fn header(&self) -> usize {
        self.header
    }

    /// Whether it may become part of a superpacket: TCP whose checksum was left to us.
    pub(super) fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }

    pub(super) fn ip_header(&self) -> usize {
        self.ip_header
    }

    /// Writes the headers of a part for `bytes` bytes of payload; the checksum of the transport covers
    /// only the pseudo-header, as the kernel leaves it. Of what is passed on as it is there are none.
    pub(super) fn write_header<'a>(
        &self,
        part: &Part<'_>,
        payload: usize,
        out: &'a mut [u8; MAX_HEADER],
    ) -> &'a mut [u8] {
        let out = &mut out[..self.header];
        out.copy_from_slice(part.template);
        if out.is_empty() {
            return out;
        }
        let (ip, transport) = out.split_at_mut(self.ip_header);
        let len = (transport.len() + payload) as u16;
        if ip[0] >> 4 == 4 {
            put(ip, 2, ip.len() as u16 + len);
            let identification =
                u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(part.number as u16);
            put(ip, 4, identification);
            put(ip, 10, 0);
            put(ip, 10, !ones_sum(ip, 0));
        } else {
            put(ip, 4, ip.len() as u16 - V6_HEADER + len);
        }
        let sum_at = if self.protocol == TCP {
            let seq = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let seq = seq.wrapping_add(part.offset);
            transport[4..8].copy_from_slice(&seq.to_be_bytes());
            transport[FLAGS] = part.flags(transport[FLAGS]);
            TCP_SUM
        } else {
            put(transport, 4, len);
            UDP_SUM
        };
        let addresses = if ip[0] >> 4 == 4 { &ip[12..20] } else { &ip[8..40] };
        put(transport, sum_at, ones_sum(addresses, u32::from(self.protocol) + u32::from(len)));
        out
    }

    /// Completes the checksum of a packet that [`Self::write_header`] began.
    pub(super) fn complete(&self, packet: &mut [u8]) {
        if self.header > 0 {
            complete_at(packet, self.ip_header, self.sum_at());
        }
    }

    /// What stands in front of a packet: nothing is left to do, or its checksum; and if it is a
    /// superpacket, the bytes of payload in each segment.
    pub(super) fn prefix(&self, is_v4: bool, segment: Option<usize>) -> Prefix {
        if self.header == 0 {
            return Prefix::default();
        }
        Prefix {
            flags: NEEDS_CSUM,
            kind: segment.map_or(0, |_| if is_v4 { GSO_TCPV4 } else { GSO_TCPV6 }),
            header_len: self.header as u16,
            segment: segment.unwrap_or_default() as u16,
            sum_from: self.ip_header as u16,
            sum_at: self.sum_at() as u16,
        }
    }

    fn sum_at(&self) -> usize {
        if self.protocol == TCP { TCP_SUM } else { UDP_SUM }
    }
}

impl Part<'_> {
    /// The flags of a part of a superpacket with these: an end is one of the last, and the answer to a
    /// mark is said once.
    pub(super) fn flags(&self, flags: u8) -> u8 {
        let ends = if self.is_last { 0 } else { FIN | PSH };
        let answer = if self.number == 0 { 0 } else { CWR };
        flags & !(ends | answer)
    }
}

/// Sums up a packet from `from` on and puts the checksum `at` this many bytes behind that.
fn complete_at(packet: &mut [u8], from: usize, at: usize) {
    let Some(summed) = packet.get_mut(from..).filter(|summed| at + 2 <= summed.len()) else {
        return;
    };
    let sum = !ones_sum(summed, 0);
    // UDP's zero means that there is none (RFC 768).
    put(summed, at, if sum == 0 { 0xffff } else { sum });
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The longest headers: IPv4 with options or IPv6, and TCP with options.
pub(super) const MAX_HEADER: usize = 60 + 60;

/// Where TCP has its flags.
pub(super) const FLAGS: usize = 13;
const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const V6_HEADER: u16 = 40;
/// Where the checksums are in the headers.
const TCP_SUM: usize = 16;
const UDP_SUM: usize = 6;

// linux/virtio_net.h.
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
