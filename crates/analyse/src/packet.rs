//! From the bytes of a packet to what the analysis needs of it.
//!
//! Lengths come from the IP header, never from the bytes that were kept: captures often keep headers only. Sources:
//! RFC 791, RFC 8200, RFC 9293 §3.1, RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 9000 §17
//! (QUIC).

use crate::end::End;
use crate::file::Record;
use crate::layers::Rest;
use crate::link;
use crate::tunnels;
use crate::unread::Unread;

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// When it was captured.
    pub nanos: u64,
    /// The number of its interface in the capture.
    pub interface: u32,
    /// Address and port of its sender.
    pub source: End,
    /// Address and port of its receiver.
    pub destination: End,
    /// IPv4's identification; with IPv6 0.
    pub id: u16,
    /// What it carries.
    pub content: Content,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A segment of TCP.
    Tcp(Segment),
    /// A datagram of UDP.
    Udp(Datagram),
}

/// A datagram of UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Bytes after the UDP header.
    pub payload: u32,
    /// The header of QUIC that they may begin with. Other protocols can look the same.
    pub quic: Option<QuicHeader>,
}

/// What a header of QUIC shows (RFC 9000 §17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuicHeader {
    /// Of the handshake.
    Long {
        /// The version.
        version: u32,
    },
    /// Of data.
    Short {
        /// The spin bit.
        spin: bool,
    },
}

impl QuicHeader {
    /// The header at the start of `bytes`, if the fixed bit is set.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? {
            // Google's first versions: flags, connection, version, of which the first two letters are fixed.
            first if first & OF_GOOGLE == VERSION_OF_GOOGLE && bytes.get(9..11)? == b"Q0" => {
                Some(Self::Long { version: word(bytes, 9)? })
            }
            first if first & FIXED_BIT == 0 => None,
            first if first & LONG == 0 => Some(Self::Short { spin: first & SPIN != 0 }),
            _ => Some(Self::Long { version: word(bytes, 1)? }),
        }
    }
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The eight flags, as in the header.
    pub flags: u8,
    /// Window as in the header, without its scale.
    pub window: u16,
    /// Bytes of data.
    pub payload: u32,
    /// Largest segment, of a SYN.
    pub mss: Option<u16>,
    /// Window scale, of a SYN.
    pub window_scale: Option<u8>,
    /// Whether a SYN allows SACK.
    pub sack_permitted: bool,
    /// Timestamp and echoed timestamp.
    pub timestamps: Option<(u32, u32)>,
    /// Edges of the SACK blocks.
    pub sack: SackBlocks,
    /// Whether the capture ends before the last option.
    pub is_cut: bool,
}

/// Up to four SACK blocks: no more fit into the options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlocks {
    blocks: [(u32, u32); 4],
    len: u8,
}

impl SackBlocks {
    /// The blocks in the order of the header.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks[..usize::from(self.len)].iter().copied()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, block: (u32, u32)) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }
}

/// Flag FIN.
pub(crate) const FIN: u8 = 1;
/// Flag SYN.
pub(crate) const SYN: u8 = 2;
/// Flag RST.
pub(crate) const RST: u8 = 4;
/// Flag ACK.
pub(crate) const ACK: u8 = 16;
/// Flag ECE.
pub(crate) const ECE: u8 = 64;

impl Segment {
    /// Whether one of `flags` is set.
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) key: FragmentKey,
    /// Bytes of the packet that it has.
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) is_last: bool,
}

/// What the fragments of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentKey {
    pub(crate) ends: (End, End),
    pub(crate) id: u32,
    pub(crate) protocol: u8,
}

/// What a record is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decoded {
    /// A packet of TCP or UDP.
    Packet(Packet),
    /// A fragment of one; the first has its headers.
    Fragment(Part, Option<Packet>),
}

/// Reads a record, also inside the headers of tunnels.
///
/// # Errors
/// What it is, if it is no packet of TCP or UDP.
pub(crate) fn decode(record: &Record<'_>) -> Result<Decoded, Unread> {
    ip(record, link::network_layer(record)?, 0)
}

/// Reads a packet from its IP header on, inside `depth` others.
fn ip(record: &Record<'_>, rest: Rest<'_>, depth: u8) -> Result<Decoded, Unread> {
    if depth > MOST_TUNNELS {
        return Err(Unread::Protocol(IPV4_IN_IP));
    }
    match rest.byte(0)? >> 4 {
        4 => ipv4(record, rest, depth),
        6 => ipv6(record, rest, depth),
        _ => Err(Unread::Invalid),
    }
}

/// What an IP header says of what follows it.
struct Above<'a> {
    id: u16,
    protocol: u8,
    ends: (End, End),
    bytes: &'a [u8],
    len: u32,
}

fn ipv4(record: &Record<'_>, rest: Rest<'_>, depth: u8) -> Result<Decoded, Unread> {
    let bytes = rest.bytes;
    let header = usize::from(bytes[0] & 15) * 4;
    if header < IPV4_HEADER {
        return Err(Unread::Invalid);
    }
    if bytes.len() < header {
        return Err(Unread::Short);
    }
    let total = u32::from(rest.half(2)?);
    // BIG TCP's packets and those whose length the network card fills in have 0 here.
    let total = if total == 0 { rest.wire_len } else { total };
    let len = total.checked_sub(header as u32).ok_or(Unread::Invalid)?;
    let address = |at| word(bytes, at).map(End::of_ipv4);
    let (Some(source), Some(destination)) = (address(12), address(16)) else {
        return Err(Unread::Short);
    };
    let (id, protocol, field) = (rest.half(4)?, bytes[9], rest.half(6)?);
    let from = u32::from(field & 0x1fff) * 8;
    let has_more = field & MORE_FRAGMENTS != 0;
    let ends = (source, destination);
    let part = (has_more || from > 0).then(|| Part {
        key: FragmentKey { ends, id: u32::from(id), protocol },
        from,
        to: from.saturating_add(len),
        is_last: !has_more,
    });
    let bytes = &bytes[header..];
    transport(record, &Above { id, protocol, ends, bytes, len }, part.as_ref(), depth)
}

fn ipv6(record: &Record<'_>, rest: Rest<'_>, depth: u8) -> Result<Decoded, Unread> {
    let bytes = rest.bytes;
    let address = |at: usize| -> Result<End, Unread> {
        let octets = bytes.get(at..at + 16).and_then(|octets| octets.try_into().ok());
        octets.map(u128::from_be_bytes).map(End::of_ipv6).ok_or(Unread::Short)
    };
    let ends = (address(8)?, address(24)?);
    let length = u32::from(rest.half(4)?);
    // A jumbogram has 0 here (RFC 2675).
    let length =
        if length == 0 { rest.wire_len.checked_sub(IPV6_HEADER as u32) } else { Some(length) };
    let mut len = length.ok_or(Unread::Invalid)?;
    let (mut next, mut at, mut part) = (bytes[6], IPV6_HEADER, None);
    for _ in 0..MOST_EXTENSIONS {
        let header = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(rest.byte(at + 1)?) + 1) * 8,
            FRAGMENT => 8,
            _ => break,
        };
        len = len.checked_sub(header as u32).ok_or(Unread::Invalid)?;
        let protocol = rest.byte(at)?;
        if next == FRAGMENT {
            let (field, id) = (rest.half(at + 2)?, word(bytes, at + 4).ok_or(Unread::Short)?);
            let (from, has_more) = (u32::from(field & 0xfff8), field & 1 != 0);
            // A header without others to the packet (RFC 6946) is no fragment.
            part = (has_more || from > 0).then_some(Part {
                key: FragmentKey { ends, id, protocol },
                from,
                to: from.saturating_add(len),
                is_last: !has_more,
            });
        }
        next = protocol;
        at += header;
    }
    let bytes = bytes.get(at..).ok_or(Unread::Short)?;
    transport(record, &Above { id: 0, protocol: next, ends, bytes, len }, part.as_ref(), depth)
}

fn transport(
    record: &Record<'_>,
    above: &Above<'_>,
    part: Option<&Part>,
    depth: u8,
) -> Result<Decoded, Unread> {
    let protocol = above.protocol;
    if let Some(part) = part.filter(|part| part.from > 0) {
        return match protocol {
            TCP | UDP => Ok(Decoded::Fragment(*part, None)),
            other => Err(Unread::Protocol(other)),
        };
    }
    let rest = Rest { bytes: above.bytes, wire_len: above.len };
    let content = match protocol {
        TCP => Content::Tcp(segment(rest)?),
        UDP => match tunnels::of_udp(rest).and_then(|inner| ip(record, inner, depth + 1).ok()) {
            Some(inner) => return Ok(inner),
            None => Content::Udp(datagram(rest)?),
        },
        IPV4_IN_IP | IPV6_IN_IP => return ip(record, rest, depth + 1),
        GRE => return ip(record, tunnels::gre(rest)?, depth + 1),
        other => return Err(Unread::Protocol(other)),
    };
    let packet = Packet {
        nanos: record.nanos,
        interface: record.interface,
        source: above.ends.0.with_port(rest.half(0)?),
        destination: above.ends.1.with_port(rest.half(2)?),
        id: above.id,
        content,
    };
    Ok(match part {
        None => Decoded::Packet(packet),
        Some(part) => Decoded::Fragment(*part, Some(packet)),
    })
}

fn datagram(rest: Rest<'_>) -> Result<Datagram, Unread> {
    let payload = rest.wire_len.checked_sub(UDP_HEADER as u32).ok_or(Unread::Invalid)?;
    let quic = rest.bytes.get(UDP_HEADER..).and_then(QuicHeader::of);
    Ok(Datagram { payload, quic })
}

fn segment(rest: Rest<'_>) -> Result<Segment, Unread> {
    let bytes = rest.bytes;
    if bytes.len() < TCP_HEADER {
        return Err(Unread::Short);
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < TCP_HEADER {
        return Err(Unread::Invalid);
    }
    let mut segment = Segment {
        seq: word(bytes, 4).ok_or(Unread::Short)?,
        ack: word(bytes, 8).ok_or(Unread::Short)?,
        flags: bytes[13],
        window: rest.half(14)?,
        payload: rest.wire_len.checked_sub(header as u32).ok_or(Unread::Invalid)?,
        is_cut: bytes.len() < header,
        ..Segment::default()
    };
    read_options(&mut segment, &bytes[TCP_HEADER..header.min(bytes.len())]);
    Ok(segment)
}

/// Reads the options up to the first that is not valid.
fn read_options(segment: &mut Segment, mut options: &[u8]) {
    while let [kind, rest @ ..] = options {
        match *kind {
            END_OF_OPTIONS => return,
            NO_OPERATION => options = rest,
            kind => {
                let len = usize::from(*rest.first().unwrap_or(&0));
                let Some(value) = options.get(2..len) else { return };
                read_option(segment, kind, value);
                options = &options[len..];
            }
        }
    }
}

fn read_option(segment: &mut Segment, kind: u8, value: &[u8]) {
    match (kind, value.len()) {
        (MSS, 2) => segment.mss = half(value, 0),
        (WINDOW_SCALE, 1) => segment.window_scale = Some(value[0].min(MOST_SCALE)),
        (SACK_PERMITTED, 0) => segment.sack_permitted = true,
        (SACK, _) => {
            for block in value.chunks_exact(8) {
                if let (Some(left), Some(right)) = (word(block, 0), word(block, 4)) {
                    segment.sack.push((left, right));
                }
            }
        }
        (TIMESTAMPS, 8) => {
            if let (Some(value_), Some(echo)) = (word(value, 0), word(value, 4)) {
                segment.timestamps = Some((value_, echo));
            }
        }
        _ => {}
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MORE_FRAGMENTS: u16 = 0x2000;
/// Tunnels inside each other that are read.
const MOST_TUNNELS: u8 = 3;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

// The first byte of QUIC's headers.
const LONG: u8 = 0x80;
/// Of Google's flags: neither reset nor multipath, with a version and a connection of eight bytes.
const OF_GOOGLE: u8 = 0xcb;
const VERSION_OF_GOOGLE: u8 = 0x09;
const FIXED_BIT: u8 = 0x40;
const SPIN: u8 = 0x20;

// Extension headers of IPv6.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
const MOST_EXTENSIONS: usize = 8;

// Options of TCP.
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// RFC 7323 §2.3: a larger shift is read as 14.
const MOST_SCALE: u8 = 14;
