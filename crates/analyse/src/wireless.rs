//! Frames of 802.11: where their data begins.
//!
//! Source: IEEE 802.11-2020 §9.2.4 (fields), §9.3.2.2 (A-MSDU).

use crate::layers::{Rest, llc};
use crate::unread::Unread;

/// After the header of a frame of data, and LLC behind it.
pub(crate) fn frame(rest: Rest<'_>) -> Result<Rest<'_>, Unread> {
    let (kind, flags) = (rest.byte(0)?, rest.byte(1)?);
    let is_data = kind & TYPE == DATA && kind & NO_DATA == 0;
    if !is_data {
        return Err(Unread::Wireless);
    }
    if flags & PROTECTED != 0 {
        return Err(Unread::Encrypted);
    }
    let mut len = HEADER;
    if flags & BOTH_SYSTEMS == BOTH_SYSTEMS {
        len += 6;
    }
    let mut is_aggregate = false;
    if kind & QUALITY_OF_SERVICE != 0 {
        is_aggregate = rest.byte(len)? & AGGREGATE != 0;
        len += 2;
        if flags & ORDER != 0 {
            len += 4;
        }
    }
    // Of an aggregate the first part is read: two addresses and a length in front.
    let len = if is_aggregate { len + 14 } else { len };
    llc(rest.after(len)?)
}

/// Headers that drivers put in front.
pub(crate) const PRISM_LEN: usize = 144;
pub(crate) const AVS_LEN: usize = 64;

/// Frame control, duration, three addresses, sequence.
const HEADER: usize = 24;
// Bits of the first byte.
const TYPE: u8 = 0x0c;
const DATA: u8 = 0x08;
const NO_DATA: u8 = 0x40;
const QUALITY_OF_SERVICE: u8 = 0x80;
// Bits of the second byte.
const BOTH_SYSTEMS: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// Of the field with the quality of service: an aggregate of several packets.
const AGGREGATE: u8 = 0x80;
