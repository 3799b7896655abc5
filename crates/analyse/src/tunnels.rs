//! Packets inside others: GRE, and tunnels over UDP.
//!
//! Sources: RFC 2784 and 2890 (GRE), RFC 7637 (NVGRE), RFC 7348 (VXLAN), RFC 8926 (Geneve), 3GPP TS 29.281 (GTP-U).

use crate::layers::{self, Rest};
use crate::unread::Unread;

/// After the header of GRE.
pub(crate) fn gre(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let (flags, protocol) = (rest.half(0)?, rest.half(2)?);
    if flags & VERSION != 0 {
        return Err(Unread::Protocol(GRE));
    }
    let optional = [CHECKSUM, KEY, SEQUENCE].iter().filter(|flag| flags & **flag != 0).count();
    inner(protocol, rest.after(4 + 4 * optional)?)
}

/// After the headers of a tunnel over UDP, if it is one by its port and its first bytes.
pub(crate) fn of_udp(rest: Rest<'_>) -> Option<Rest<'_>> {
    let header = rest.bytes.get(..UDP_HEADER + 8)?;
    let (port, first) = (u16::from_be_bytes([header[2], header[3]]), header[UDP_HEADER]);
    let found = match port {
        VXLAN | OLD_VXLAN if first & !VXLAN_FLAGS == 0 && first & VXLAN_ID != 0 => {
            layers::ethernet(rest.after(UDP_HEADER + 8).ok()?)
        }
        GENEVE if first >> 6 == 0 => {
            let options = 4 * usize::from(first & 0x3f);
            let protocol = u16::from_be_bytes([header[UDP_HEADER + 2], header[UDP_HEADER + 3]]);
            inner(protocol, rest.after(UDP_HEADER + 8 + options).ok()?)
        }
        // Version 1 with the protocol of users' packets; extensions are left alone.
        GTP_USER if first & 0xf0 == 0x30 && header[UDP_HEADER + 1] == 0xff && first & 4 == 0 => {
            let optional = if first & 3 != 0 { 4 } else { 0 };
            rest.after(UDP_HEADER + 8 + optional)
        }
        _ => return None,
    };
    found.ok()
}

/// What follows a tunnel's header: a frame of Ethernet, or what has a number there.
fn inner(protocol: u16, rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    if protocol == BRIDGED { layers::ethernet(rest) } else { layers::above(protocol, rest) }
}

const GRE: u8 = 47;
const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const VERSION: u16 = 0x0007;
const UDP_HEADER: usize = 8;
const VXLAN: u16 = 4789;
/// Linux's default port.
const OLD_VXLAN: u16 = 8472;
const VXLAN_ID: u8 = 0x08;
const VXLAN_FLAGS: u8 = 0x0c;
const GENEVE: u16 = 6081;
const GTP_USER: u16 = 2152;
const BRIDGED: u16 = 0x6558;
