//! From the bytes of a packet to what the analysis needs of it.
//!
//! Lengths come from the IP header, never from the bytes that were kept: captures often keep headers only. Sources:
//! RFC 791, RFC 8200, RFC 9293 §3.1, RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 9000 §17
//! (QUIC).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::file::Record;
use crate::link;

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured.
    pub nanos: u64,
    /// The number of its interface in the capture.
    pub interface: u32,
    /// Address and port of its sender.
    pub source: SocketAddr,
    /// Address and port of its receiver.
    pub destination: SocketAddr,
    /// IPv4's identification; with IPv6 0.
    pub id: u16,
    /// What it carries.
    pub content: Content,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A segment of TCP.
    Tcp(Segment),
    /// A datagram of UDP.
    Udp(Datagram),
}

/// A datagram of UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes after the UDP header.
    pub payload: u32,
    /// The header of QUIC that they may begin with. Other protocols can look the same.
    pub quic: Option<QuicHeader>,
}

/// What a header of QUIC shows (RFC 9000 §17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicHeader {
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
            first if first & FIXED_BIT == 0 => None,
            first if first & LONG == 0 => Some(Self::Short { spin: first & SPIN != 0 }),
            _ => Some(Self::Long { version: word(bytes, 1)? }),
        }
    }
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
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
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    len: u8,
}

impl SackBlocks {
    /// The blocks in the order of the header.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks[..usize::from(self.len)].iter().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
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
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// Reads a record. Returns none if it is not the first fragment of a packet of TCP or UDP, or if too few bytes were
/// kept.
pub fn decode(record: &Record<'_>) -> Option<Packet> {
    let (bytes, wire_len) = link::network_layer(record)?;
    match bytes.first()? >> 4 {
        4 => ipv4(record, bytes, wire_len),
        6 => ipv6(record, bytes, wire_len),
        _ => None,
    }
}

fn ipv4(record: &Record<'_>, bytes: &[u8], wire_len: u32) -> Option<Packet> {
    let header = usize::from(bytes[0] & 15) * 4;
    if header < IPV4_HEADER || bytes.len() < header {
        return None;
    }
    let total = u32::from(half(bytes, 2)?);
    // BIG TCP's packets and those whose length the network card fills in have 0 here.
    let total = if total == 0 { wire_len } else { total };
    let is_later_fragment = half(bytes, 6)? & 0x1fff != 0;
    if is_later_fragment {
        return None;
    }
    let source = Ipv4Addr::from(word(bytes, 12)?);
    let destination = Ipv4Addr::from(word(bytes, 16)?);
    let payload = total.checked_sub(header as u32)?;
    let ends = (IpAddr::V4(source), IpAddr::V4(destination));
    transport(record, half(bytes, 4)?, bytes[9], ends, &bytes[header..], payload)
}

fn ipv6(record: &Record<'_>, bytes: &[u8], wire_len: u32) -> Option<Packet> {
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let ends = (address(8)?, address(24)?);
    let length = u32::from(half(bytes, 4)?);
    // A jumbogram has 0 here (RFC 2675).
    let mut payload = if length == 0 { wire_len.checked_sub(IPV6_HEADER as u32)? } else { length };
    let (mut next, mut at) = (bytes[6], IPV6_HEADER);
    for _ in 0..MOST_EXTENSIONS {
        let len = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(*bytes.get(at + 1)?) + 1) * 8,
            FRAGMENT if half(bytes, at + 2)? & 0xfff8 != 0 => return None,
            FRAGMENT => 8,
            _ => break,
        };
        next = *bytes.get(at)?;
        at += len;
        payload = payload.checked_sub(len as u32)?;
    }
    transport(record, 0, next, ends, bytes.get(at..)?, payload)
}

fn transport(
    record: &Record<'_>,
    id: u16,
    protocol: u8,
    ends: (IpAddr, IpAddr),
    bytes: &[u8],
    len: u32,
) -> Option<Packet> {
    let ports = (half(bytes, 0)?, half(bytes, 2)?);
    let content = match protocol {
        TCP => Content::Tcp(segment(bytes, len)?),
        UDP => Content::Udp(Datagram {
            payload: len.checked_sub(UDP_HEADER as u32)?,
            quic: bytes.get(UDP_HEADER..).and_then(QuicHeader::of),
        }),
        _ => return None,
    };
    Some(Packet {
        nanos: record.nanos,
        interface: record.interface,
        source: SocketAddr::new(ends.0, ports.0),
        destination: SocketAddr::new(ends.1, ports.1),
        id,
        content,
    })
}

fn segment(bytes: &[u8], len: u32) -> Option<Segment> {
    if bytes.len() < TCP_HEADER {
        return None;
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < TCP_HEADER {
        return None;
    }
    let mut segment = Segment {
        seq: word(bytes, 4)?,
        ack: word(bytes, 8)?,
        flags: bytes[13],
        window: half(bytes, 14)?,
        payload: len.checked_sub(header as u32)?,
        is_cut: bytes.len() < header,
        ..Segment::default()
    };
    read_options(&mut segment, &bytes[TCP_HEADER..header.min(bytes.len())]);
    Some(segment)
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
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

// The first byte of QUIC's headers.
const LONG: u8 = 0x80;
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
