//! Headers between a link and IP, by the number of what follows.
//!
//! Sources: IEEE 802.3, 802.1Q and 802.2; RFC 1042 (SNAP), RFC 1661 and 1662 (PPP), RFC 2516 (PPPoE), RFC 3032 (MPLS).

use crate::unread::Unread;

/// What is left of a packet: its kept bytes from a header on, and its length from there on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) wire_len: u32,
}

impl<'a> Rest<'a> {
    /// The rest without the first `count` bytes.
    pub(crate) fn after(self, count: usize) -> Result<Self, Unread> {
        let bytes = self.bytes.get(count..).ok_or(Unread::Short)?;
        let wire_len = self.wire_len.checked_sub(count as u32).ok_or(Unread::Invalid)?;
        Ok(Self { bytes, wire_len })
    }

    pub(crate) fn byte(self, at: usize) -> Result<u8, Unread> {
        self.bytes.get(at).copied().ok_or(Unread::Short)
    }

    pub(crate) fn half(self, at: usize) -> Result<u16, Unread> {
        let two = self.bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
        two.map(u16::from_be_bytes).ok_or(Unread::Short)
    }

    /// Two bytes in the order of the machines that write most captures.
    pub(crate) fn little_half(self, at: usize) -> Result<u16, Unread> {
        self.half(at).map(u16::swap_bytes)
    }

    pub(crate) fn little_word(self, at: usize) -> Result<u32, Unread> {
        let four = self.bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(u32::from_le_bytes).ok_or(Unread::Short)
    }
}

/// After the header of Ethernet, whose last field is a type or the length of what follows.
pub(crate) fn ethernet(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    above(rest.half(12)?, rest.after(14)?)
}

/// After a header that says which protocol follows, by its number in Ethernet.
pub(crate) fn above(protocol: u16, rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let (mut protocol, mut rest) = (protocol, rest);
    for _ in 0..MOST_TAGS {
        match protocol {
            IPV4_PROTOCOL | IPV6_PROTOCOL => return Ok(rest),
            VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN => {
                (protocol, rest) = (rest.half(2)?, rest.after(4)?);
            }
            MPLS | MPLS_MULTICAST => return mpls(rest),
            PPPOE_SESSION => return pppoe(rest),
            ..=LONGEST_LENGTH => return llc(rest),
            other => return Err(Unread::EtherType(other)),
        }
    }
    Err(Unread::EtherType(protocol))
}

/// After LLC: SNAP, or an access point that is IP's.
pub(crate) fn llc(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    match rest.byte(0)? {
        // Two access points, control, organisation, type of Ethernet.
        SNAP => match rest.half(6)? {
            ..=LONGEST_LENGTH => Err(Unread::Llc(SNAP)),
            protocol => above(protocol, rest.after(8)?),
        },
        LLC_IP => rest.after(3),
        other => Err(Unread::Llc(other)),
    }
}

/// Behind the label at the bottom of the stack there is IP, as its version shows, or a frame in a pseudowire, whose control
/// word begins with 0 (RFC 4385).
fn mpls(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let mut rest = rest;
    for _ in 0..MOST_LABELS {
        let is_bottom = rest.byte(2)? & 1 == 1;
        rest = rest.after(4)?;
        if is_bottom {
            return match rest.byte(0)? >> 4 {
                4 | 6 => Ok(rest),
                0 => ethernet(rest.after(4)?),
                _ => Err(Unread::EtherType(MPLS)),
            };
        }
    }
    Err(Unread::EtherType(MPLS))
}

/// Version and type, code, session, length; then PPP without address and control.
pub(crate) fn pppoe(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    ppp(rest.after(6)?)
}

/// Address and control may be left out, and the protocol may have one byte: its last one is odd (RFC 1661 §2).
pub(crate) fn ppp(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let rest = if rest.half(0)? == ADDRESS_AND_CONTROL { rest.after(2)? } else { rest };
    let first = rest.byte(0)?;
    let (protocol, rest) = if first & 1 == 1 {
        (u16::from(first), rest.after(1)?)
    } else {
        (rest.half(0)?, rest.after(2)?)
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok(rest),
        PPP_MPLS | PPP_MPLS_MULTICAST => mpls(rest),
        other => Err(Unread::Ppp(other)),
    }
}

// Protocols of Ethernet.
const IPV4_PROTOCOL: u16 = 0x0800;
const IPV6_PROTOCOL: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const OLD_SERVICE_VLAN: u16 = 0x9100;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
/// A smaller value is the length of a frame with LLC (IEEE 802.3).
const LONGEST_LENGTH: u16 = 0x05ff;

const SNAP: u8 = 0xaa;
const LLC_IP: u8 = 0x06;
const ADDRESS_AND_CONTROL: u16 = 0xff03;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;
const PPP_MPLS_MULTICAST: u16 = 0x0283;
/// Tags of virtual LANs that are skipped, and labels.
const MOST_TAGS: usize = 5;
const MOST_LABELS: usize = 16;
