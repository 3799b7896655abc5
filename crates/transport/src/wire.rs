//! The TCP segment in bytes (RFC 9293 §3.1), as it travels inside a UDP datagram.
//!
//! The checksum is TCP's own. A UDP payload does not know the addresses that it travels between, so
//! the pseudo-header is IPv4's with both addresses zero, protocol 6 and the segment's length: the
//! check is over the same bytes at both ends and survives address translation on the way.
//!
//! Urgent data is not carried: the pointer is sent as zero and ignored on arrival.

use thiserror::Error;

use crate::segment::{Flags, Options, SackBlock, Segment, SeqNum, Timestamps};

/// The port fields of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

/// What a datagram holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The header.
    pub segment: Segment,
    /// Its port fields.
    pub ports: Ports,
    /// The bytes behind the header, `segment.payload_len` of them.
    pub payload: &'a [u8],
}

/// Why a datagram is not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// It ends within its header.
    #[error("the datagram of {len} bytes ends within its TCP header")]
    Truncated {
        /// The datagram's length.
        len: usize,
    },
    /// The header claims to be shorter than its fixed part.
    #[error("the TCP header claims {len} bytes, at least 20 are needed")]
    HeaderLength {
        /// The header's length as it claims.
        len: usize,
    },
    /// Some bytes changed on the way.
    #[error("the TCP checksum does not match")]
    Checksum,
    /// An option's length does not fit its kind or the header.
    #[error("the TCP option of kind {kind} has a wrong length")]
    Option {
        /// The option's kind.
        kind: u8,
    },
}

/// Appends the segment to `out`. Options are laid out as [`Options::wire_len`] counts them.
///
/// # Panics
/// If `payload` is not `segment.payload_len` long, or the options exceed TCP's 40 bytes: both are
/// mistakes of whoever made the segment.
pub fn emit(segment: &Segment, ports: Ports, payload: &[u8], out: &mut Vec<u8>) {
    assert_eq!(payload.len(), segment.payload_len as usize, "payload and its stated length");
    let header_len = segment.header_len();
    assert!(header_len <= MAX_HEADER_LEN, "{header_len} bytes of header: {segment:?}");
    let start = out.len();
    out.reserve(header_len + payload.len());
    out.extend(ports.source.to_be_bytes());
    out.extend(ports.destination.to_be_bytes());
    out.extend(segment.seq.0.to_be_bytes());
    out.extend(segment.ack.0.to_be_bytes());
    out.extend([(header_len as u8 / 4) << 4, segment.flags.0]);
    out.extend(segment.window.to_be_bytes());
    out.extend([0; 4]);
    emit_options(&segment.options, out);
    out.extend(payload);
    let sum = !checksum(&out[start..]);
    out[start + CHECKSUM_AT..start + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Reads a segment. Unknown options are skipped. MSS, window scale and SACK-permitted count only
/// together with SYN, SACK blocks only without (RFC 9293 §3.7.1, RFC 7323 §2.2, RFC 2018 §2).
pub fn parse(datagram: &[u8]) -> Result<Parsed<'_>, WireError> {
    let truncated = WireError::Truncated { len: datagram.len() };
    let fixed: &[u8; Segment::BASE_HEADER_LEN] = datagram.first_chunk().ok_or(truncated)?;
    let header_len = usize::from(fixed[12] >> 4) * 4;
    let options_len = header_len
        .checked_sub(Segment::BASE_HEADER_LEN)
        .ok_or(WireError::HeaderLength { len: header_len })?;
    let (options, payload) =
        datagram[Segment::BASE_HEADER_LEN..].split_at_checked(options_len).ok_or(truncated)?;
    if checksum(datagram) != 0xffff {
        return Err(WireError::Checksum);
    }
    let u16_at = |at| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let flags = Flags(fixed[13]);
    let segment = Segment {
        seq: SeqNum(u32_at(fixed, 4)),
        ack: SeqNum(u32_at(fixed, 8)),
        flags,
        window: u16_at(14),
        // A datagram is shorter than 64 KiB.
        payload_len: payload.len() as u32,
        options: parse_options(options, flags)?,
    };
    Ok(Parsed { segment, ports: Ports { source: u16_at(0), destination: u16_at(2) }, payload })
}

fn emit_options(options: &Options, out: &mut Vec<u8>) {
    if let Some(mss) = options.mss {
        out.extend([kind::MSS, 4]);
        out.extend(mss.to_be_bytes());
    }
    if let Some(timestamps) = options.timestamps {
        let padding = if options.sack_permitted { SACK_PERMITTED } else { PADDING };
        out.extend(padding);
        out.extend([kind::TIMESTAMPS, 10]);
        out.extend(timestamps.value.to_be_bytes());
        out.extend(timestamps.echo.to_be_bytes());
    } else if options.sack_permitted {
        out.extend(PADDING);
        out.extend(SACK_PERMITTED);
    }
    if let Some(shift) = options.window_scale {
        out.extend([kind::NOP, kind::WINDOW_SCALE, 3, shift]);
    }
    if !options.sack.is_empty() {
        let blocks = options.sack.as_slice();
        out.extend(PADDING);
        out.extend([kind::SACK, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            out.extend(block.start.0.to_be_bytes());
            out.extend(block.end.0.to_be_bytes());
        }
    }
}

fn parse_options(mut bytes: &[u8], flags: Flags) -> Result<Options, WireError> {
    let mut options = Options::default();
    let syn = flags.contains(Flags::SYN);
    while let [kind, rest @ ..] = bytes {
        match *kind {
            kind::END => break,
            kind::NOP => bytes = rest,
            kind => {
                let malformed = WireError::Option { kind };
                let [len, rest @ ..] = rest else { return Err(malformed) };
                let len = usize::from(*len).checked_sub(2).ok_or(malformed)?;
                let (data, rest) = rest.split_at_checked(len).ok_or(malformed)?;
                parse_option(kind, data, syn, &mut options).ok_or(malformed)?;
                bytes = rest;
            }
        }
    }
    Ok(options)
}

/// `None` where `data` does not have the length that `kind` asks for.
fn parse_option(kind: u8, data: &[u8], syn: bool, options: &mut Options) -> Option<()> {
    match kind {
        kind::MSS => {
            let mss = u16::from_be_bytes(data.try_into().ok()?);
            options.mss = syn.then_some(mss);
        }
        kind::WINDOW_SCALE => {
            let [shift] = data.try_into().ok()?;
            // RFC 7323 §2.3: a larger shift is taken as the largest allowed.
            options.window_scale = syn.then_some(shift.min(MAX_WINDOW_SCALE));
        }
        kind::SACK_PERMITTED => {
            let []: [u8; 0] = data.try_into().ok()?;
            options.sack_permitted = syn;
        }
        kind::TIMESTAMPS => {
            let fields: &[u8; 8] = data.try_into().ok()?;
            options.timestamps =
                Some(Timestamps { value: u32_at(fields, 0), echo: u32_at(fields, 4) });
        }
        kind::SACK => {
            let (blocks, []) = data.as_chunks::<8>() else { return None };
            if blocks.is_empty() {
                return None;
            }
            for block in blocks.iter().filter(|_| !syn) {
                options.sack.push(SackBlock {
                    start: SeqNum(u32_at(block, 0)),
                    end: SeqNum(u32_at(block, 4)),
                });
            }
        }
        _ => {}
    }
    Some(())
}

/// The number at `at`; callers pass an `at` that lies within.
fn u32_at<const LEN: usize>(bytes: &[u8; LEN], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The one's complement sum (RFC 1071) over the pseudo-header and `segment`: all ones if the
/// segment carries its right checksum.
fn checksum(segment: &[u8]) -> u16 {
    let (words, odd) = segment.as_chunks::<2>();
    let padded = odd.first().map(|byte| [*byte, 0]);
    let words: u64 = words.iter().chain(&padded).map(|w| u64::from(u16::from_be_bytes(*w))).sum();
    let mut sum = words + PROTOCOL + segment.len() as u64;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Option kinds.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

const PADDING: [u8; 2] = [kind::NOP; 2];
const SACK_PERMITTED: [u8; 2] = [kind::SACK_PERMITTED, 2];
const CHECKSUM_AT: usize = 16;
const MAX_HEADER_LEN: usize = 60;
const MAX_WINDOW_SCALE: u8 = 14;
/// TCP's number in the pseudo-header.
const PROTOCOL: u64 = 6;

#[cfg(test)]
mod tests;
