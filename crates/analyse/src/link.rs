//! Headers in front of IP, by link type.
//!
//! Source: the list of link types of libpcap (www.tcpdump.org/linktypes.html).

use crate::file::Record;
use crate::layers::{Rest, above, ethernet, ppp, pppoe};
use crate::unread::Unread;
use crate::wireless;

/// The packet from its IP header on.
pub(crate) fn network_layer<'a>(record: &Record<'a>) -> Result<Rest<'a>, Unread> {
    let rest = Rest { bytes: record.bytes, wire_len: record.wire_len };
    of_type(record.link_type, rest)
}

fn of_type(link_type: i32, rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    match link_type {
        ETHERNET => ethernet(rest),
        // Packet type, address type, address length, address, protocol.
        LINUX_COOKED => above(rest.half(14)?, rest.after(16)?),
        LINUX_COOKED_2 => above(rest.half(0)?, rest.after(20)?),
        RAW | RAW_OF_BSD | RAW_OF_OPENBSD | IPV4 | IPV6 => Ok(rest),
        // A protocol family, in the byte order of the machine or of the network: IP's version says more.
        NULL | LOOPBACK => rest.after(4),
        PPP | PPP_HDLC => ppp(rest),
        // The direction in front.
        PPP_WITH_DIRECTION => ppp(rest.after(1)?),
        PPP_ETHER => pppoe(rest),
        // Address, control, type of Ethernet.
        CISCO_HDLC => above(rest.half(2)?, rest.after(4)?),
        NFLOG => nflog(rest),
        PKTAP => pktap(rest),
        // Its length first, without what fills it to a word.
        PFLOG => rest.after(usize::from(rest.byte(0)?).next_multiple_of(4)),
        // Family, index and flags.
        ENC => rest.after(12),
        IEEE_802_11 => wireless::frame(rest),
        RADIOTAP => wireless::frame(rest.after(usize::from(rest.little_half(2)?))?),
        PRISM => wireless::frame(rest.after(wireless::PRISM_LEN)?),
        AVS => wireless::frame(rest.after(wireless::AVS_LEN)?),
        other => Err(Unread::LinkType(other)),
    }
}

/// Family, version, resource; then fields of length, type and value, in the byte order of the machine.
fn nflog(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let mut rest = rest.after(4)?;
    for _ in 0..MOST_FIELDS {
        let (len, kind) = (rest.little_half(0)?, rest.little_half(2)?);
        if kind == NFLOG_PAYLOAD {
            return rest.after(4);
        }
        rest = rest.after(usize::from(len.max(4)).next_multiple_of(4))?;
    }
    Err(Unread::Invalid)
}

/// Length of the header, type of the record, link type of what follows.
fn pktap(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let (len, link_type) = (rest.little_word(0)?, rest.little_word(8)?);
    if link_type as i32 == PKTAP {
        return Err(Unread::LinkType(PKTAP));
    }
    of_type(link_type as i32, rest.after(len as usize)?)
}

const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const PPP: i32 = 9;
const RAW_OF_BSD: i32 = 12;
const RAW_OF_OPENBSD: i32 = 14;
const PPP_HDLC: i32 = 50;
const PPP_ETHER: i32 = 51;
const RAW: i32 = 101;
const CISCO_HDLC: i32 = 104;
const IEEE_802_11: i32 = 105;
const LOOPBACK: i32 = 108;
const ENC: i32 = 109;
const LINUX_COOKED: i32 = 113;
const PFLOG: i32 = 117;
const PRISM: i32 = 119;
const RADIOTAP: i32 = 127;
const AVS: i32 = 163;
const PPP_WITH_DIRECTION: i32 = 204;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const NFLOG: i32 = 239;
const PKTAP: i32 = 258;
const LINUX_COOKED_2: i32 = 276;

const NFLOG_PAYLOAD: u16 = 9;
/// Fields before the payload.
const MOST_FIELDS: usize = 32;
