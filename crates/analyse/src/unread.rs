//! What a capture has that is not read: named and counted, never left out in silence.

use std::collections::BTreeMap;
use std::fmt;

/// Why a packet or a block is not part of a connection or flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unread {
    /// Its link type is not read.
    LinkType(i32),
    /// Its protocol above the link is none of IP, by its number in Ethernet.
    EtherType(u16),
    /// The same by its access point in a header of LLC.
    Llc(u8),
    /// The same by its number in PPP.
    Ppp(u16),
    /// Its protocol above IP is none of TCP and UDP.
    Protocol(u8),
    /// Too little of it was kept to see the header of TCP or UDP.
    Short,
    /// Its headers contradict its length.
    Invalid,
    /// A fragment of IP whose first or last fragment is missing.
    Fragment,
    /// A frame of 802.11 that manages or controls the radio, or has no data.
    Wireless,
    /// A frame of 802.11 that is encrypted.
    Encrypted,
    /// A packet without a time, in a simple packet block of pcapng.
    Untimed,
    /// A block of pcapng of this type.
    Block(u32),
    /// Further kinds: there are too many.
    Other,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LinkType(number) => write!(f, "link type {number}"),
            Self::EtherType(number) => match ether_type(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "Ethernet type 0x{number:04x}"),
            },
            Self::Llc(SPANNING_TREE) => f.write_str("spanning tree"),
            Self::Llc(point) => write!(f, "LLC access point 0x{point:02x}"),
            Self::Ppp(number) => write!(f, "PPP protocol 0x{number:04x}"),
            Self::Protocol(number) => match protocol(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "IP protocol {number}"),
            },
            Self::Short => f.write_str("too little of the packet was kept"),
            Self::Invalid => f.write_str("headers that contradict the length"),
            Self::Fragment => f.write_str("IP fragments without the others of their packet"),
            Self::Wireless => f.write_str("802.11 frames without data"),
            Self::Encrypted => f.write_str("encrypted 802.11 frames"),
            Self::Untimed => f.write_str("packets without a time (simple packet blocks)"),
            Self::Block(JOURNAL) => f.write_str("journal blocks"),
            Self::Block(number) => write!(f, "pcapng blocks of type 0x{number:x}"),
            Self::Other => f.write_str("further kinds"),
        }
    }
}

/// How often each of them was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadCounts(BTreeMap<Unread, u64>);

impl UnreadCounts {
    /// Counts one more.
    pub(crate) fn add(&mut self, what: Unread) {
        let is_new = self.0.len() >= MOST_KINDS && !self.0.contains_key(&what);
        let what = if is_new { Unread::Other } else { what };
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds those of a file.
    pub(crate) fn add_all(&mut self, others: &Self) {
        for (what, count) in &others.0 {
            let is_new = self.0.len() >= MOST_KINDS && !self.0.contains_key(what);
            *self.0.entry(if is_new { Unread::Other } else { *what }).or_default() += count;
        }
    }

    /// How many of these there are.
    pub fn of(&self, what: Unread) -> u64 {
        self.0.get(&what).copied().unwrap_or(0)
    }

    /// What was found and how often, the most frequent first.
    pub fn named(&self) -> Vec<(String, u64)> {
        let mut found: Vec<_> =
            self.0.iter().map(|(what, count)| (what.to_string(), *count)).collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    }
}

/// Protocols above Ethernet that are usual in captures (IEEE 802 numbers of IANA).
fn ether_type(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x809b | 0x80f3 => "AppleTalk",
        0x8137 => "IPX",
        0x8809 => "link aggregation",
        0x8863 => "PPPoE discovery",
        0x888e => "802.1X",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0x9000 => "loopback tests",
        _ => return None,
    })
}

/// Protocols above IP (protocol numbers of IANA).
fn protocol(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "ICMP",
        2 => "IGMP",
        33 => "DCCP",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        59 => "IPv6 without a payload",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return None,
    })
}

/// Kinds that are counted each.
const MOST_KINDS: usize = 64;
const SPANNING_TREE: u8 = 0x42;
const JOURNAL: u32 = 9;
