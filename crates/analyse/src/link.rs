//! Headers below IP, by link type.
//!
//! Source: the list of link types of libpcap (www.tcpdump.org/linktypes.html).

use crate::file::Record;

/// The packet from its IP header on, and its length from there on. None if it is not of IP, or of a link type that is
/// not read.
pub(crate) fn network_layer<'a>(record: &Record<'a>) -> Option<(&'a [u8], u32)> {
    let bytes = record.bytes;
    let at = match record.link_type {
        ETHERNET => after_ethernet(bytes)?,
        // Packet type, address type, address length, address, protocol.
        LINUX_COOKED => after_protocol(bytes, 14)?,
        LINUX_COOKED_2 => is_ip(protocol(bytes, 0)?).then_some(20)?,
        RAW | RAW_OF_BSD | RAW_OF_OPENBSD | IPV4 | IPV6 => 0,
        // A protocol family, in the byte order of the machine or of the network: IP's version says more.
        NULL | LOOPBACK => 4,
        _ => return None,
    };
    Some((bytes.get(at..)?, record.wire_len.checked_sub(at as u32)?))
}

/// Whether packets of this link type are read.
pub(crate) fn is_known(link_type: i32) -> bool {
    KNOWN.contains(&link_type)
}

fn after_ethernet(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    for _ in 0..MOST_TAGS {
        match protocol(bytes, at)? {
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => at += 4,
            found => return is_ip(found).then_some(at + 2),
        }
    }
    None
}

fn after_protocol(bytes: &[u8], at: usize) -> Option<usize> {
    is_ip(protocol(bytes, at)?).then_some(at + 2)
}

fn protocol(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn is_ip(protocol: u16) -> bool {
    protocol == IPV4_PROTOCOL || protocol == IPV6_PROTOCOL
}

const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const RAW_OF_BSD: i32 = 12;
const RAW_OF_OPENBSD: i32 = 14;
const RAW: i32 = 101;
const LOOPBACK: i32 = 108;
const LINUX_COOKED: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_COOKED_2: i32 = 276;
const KNOWN: [i32; 10] = [
    NULL,
    ETHERNET,
    RAW_OF_BSD,
    RAW_OF_OPENBSD,
    RAW,
    LOOPBACK,
    LINUX_COOKED,
    IPV4,
    IPV6,
    LINUX_COOKED_2,
];

// Protocols of Ethernet.
const IPV4_PROTOCOL: u16 = 0x0800;
const IPV6_PROTOCOL: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const OLD_SERVICE_VLAN: u16 = 0x9100;
/// Tags of virtual LANs that are skipped.
const MOST_TAGS: usize = 4;
