//! The TCP segment in bytes (RFC 9293 §3.1), as it travels inside a UDP datagram.
//!
//! The checksum is TCP's own. A UDP payload does not know the addresses that it travels between, so
//! the pseudo-header is IPv4's with both addresses zero, protocol 6 and the segment's length: the
//! check is over the same bytes at both ends and survives address translation on the way.
//!
//! What routers tell the ends travels in an experimental option (`feedback.rs`), which a router in user
//! space rewrites with [`stamp`].
//!
//! Urgent data is not carried: the pointer is sent as zero and ignored on arrival.

mod feedback;

use std::convert::Infallible;

use thiserror::Error;
use weir_units::Feedback;

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
///
/// ```
/// use weir_transport::Segment;
/// use weir_transport::wire::{Ports, WireError, emit, parse};
///
/// let mut datagram = Vec::new();
/// emit(&Segment::default(), Ports::default(), b"", &mut datagram);
/// assert_eq!(parse(&datagram[..10]), Err(WireError::Truncated { len: 10 }));
/// datagram[4] ^= 1;
/// assert_eq!(parse(&datagram), Err(WireError::Checksum));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
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
/// mistakes of the segment's author.
///
/// ```
/// use weir_transport::wire::{Ports, emit, parse};
/// use weir_transport::{Flags, Segment, SeqNum};
///
/// let segment = Segment { seq: SeqNum(7), flags: Flags::ACK, payload_len: 5, ..Segment::default() };
/// let ports = Ports { source: 9000, destination: 9001 };
/// let mut datagram = Vec::new();
/// emit(&segment, ports, b"hello", &mut datagram);
/// assert_eq!(datagram.len(), 25);
///
/// let parsed = parse(&datagram)?;
/// assert_eq!((parsed.segment, parsed.ports, parsed.payload), (segment, ports, &b"hello"[..]));
/// # Ok::<(), weir_transport::wire::WireError>(())
/// ```
pub fn emit(segment: &Segment, ports: Ports, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + segment.header_len() + segment.payload_len as usize, 0);
    let copied = emit_into(segment, ports, &mut out[start..], |space| {
        space.copy_from_slice(payload);
        Ok::<(), Infallible>(())
    });
    match copied {
        Ok(len) => debug_assert_eq!(start + len, out.len()),
    }
}

/// Writes the segment to the beginning of `out` and returns its length. `fill` puts the payload where
/// it belongs, so that nothing is copied; its error is returned, and `out` is then of no use.
///
/// # Panics
/// If `out` is too short, or the options exceed TCP's 40 bytes.
pub fn emit_into<E>(
    segment: &Segment,
    ports: Ports,
    out: &mut [u8],
    fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<usize, E> {
    let header_len = segment.header_len();
    assert!(header_len <= MAX_HEADER_LEN, "{header_len} bytes of header: {segment:?}");
    let len = header_len + segment.payload_len as usize;
    let out = &mut out[..len];
    let (header, payload) = out.split_at_mut(header_len);
    let mut fields = Writer(header);
    fields.put(ports.source.to_be_bytes());
    fields.put(ports.destination.to_be_bytes());
    fields.put(segment.seq.0.to_be_bytes());
    fields.put(segment.ack.0.to_be_bytes());
    fields.put([(header_len as u8 / 4) << 4, segment.flags.0]);
    fields.put(segment.window.to_be_bytes());
    fields.put([0; 4]);
    emit_options(&segment.options, &mut fields);
    fill(payload)?;
    let sum = !checksum(out);
    out[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(len)
}

/// The part of a header that is still to be written.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put<const LEN: usize>(&mut self, bytes: [u8; LEN]) {
        let rest = std::mem::take(&mut self.0);
        let (field, rest) = rest.split_at_mut(LEN);
        field.copy_from_slice(&bytes);
        self.0 = rest;
    }
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

/// Lets a router rewrite what `segment` carries past it, if it carries anything, without a look at the
/// rest: the checksum changes by what changes (RFC 1624). Returns whether there was anything.
pub fn stamp(segment: &mut [u8], rewrite: impl FnOnce(&mut Feedback)) -> bool {
    feedback::stamp(segment, rewrite).is_some()
}

fn emit_options(options: &Options, out: &mut Writer<'_>) {
    if let Some(mss) = options.mss {
        out.put([kind::MSS, 4]);
        out.put(mss.to_be_bytes());
    }
    if let Some(timestamps) = options.timestamps {
        let padding = if options.sack_permitted { SACK_PERMITTED } else { PADDING };
        out.put(padding);
        out.put([kind::TIMESTAMPS, 10]);
        out.put(timestamps.value.to_be_bytes());
        out.put(timestamps.echo.to_be_bytes());
    } else if options.sack_permitted {
        out.put(PADDING);
        out.put(SACK_PERMITTED);
    }
    if let Some(shift) = options.window_scale {
        out.put([kind::NOP, kind::WINDOW_SCALE, 3, shift]);
    }
    if !options.sack.is_empty() {
        let blocks = options.sack.as_slice();
        out.put(PADDING);
        out.put([kind::SACK, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            out.put(block.start.0.to_be_bytes());
            out.put(block.end.0.to_be_bytes());
        }
    }
    feedback::emit(options, out);
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
    if options.wire_len() > MAX_HEADER_LEN - Segment::BASE_HEADER_LEN {
        // Without padding more fits than we would send: not feedback.
        (options.feedback, options.echo) = (None, None);
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
        feedback::KIND => feedback::parse(data, options)?,
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
    // RFC 1071 §2(B): the sum of words in the machine's order is the sum in the network's, swapped.
    let words = u64::from(u16::from_be(fold(sum_of_words(segment))));
    fold(u128::from(words + PROTOCOL + segment.len() as u64))
}

/// The sum of the eight-byte words, the last one padded with zeros. In four lanes, whose carries do
/// not wait for each other: 22 GB/s here instead of 3 for one word of two bytes after the other.
fn sum_of_words(bytes: &[u8]) -> u128 {
    const LANES: usize = 4;
    let mut lanes = [0u128; LANES];
    let mut add = |block: &[u8; LANES * 8]| {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks().0) {
            *lane += u128::from(u64::from_ne_bytes(*word));
        }
    };
    let (blocks, rest) = bytes.as_chunks();
    blocks.iter().for_each(&mut add);
    let mut padded = [0; LANES * 8];
    padded[..rest.len()].copy_from_slice(rest);
    add(&padded);
    lanes.iter().sum()
}

/// Adds up the sixteen-bit words of a sum of eight-byte words (RFC 1071 §2(C)), halving it as long as
/// it may be longer.
fn fold(sum: u128) -> u16 {
    let halves = [64, 32, 16, 16, 16];
    halves.iter().fold(sum, |sum, bits| (sum & ((1 << bits) - 1)) + (sum >> bits)) as u16
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
