//! The segment as the state machines see it: header fields and options, no payload bytes.

use std::fmt;
use std::ops::{Add, Sub};

use weir_units::{Echo, Feedback, FeedbackKind};

/// A sequence number modulo 2^32 (RFC 9293 §3.4).
///
/// ```
/// use weir_transport::SeqNum;
///
/// let late = SeqNum(u32::MAX) + 3;
/// assert_eq!((late, late.since(SeqNum(u32::MAX))), (SeqNum(2), 3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// The signed distance from `earlier` to `self`; right while they are less than 2^31 apart.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    fn add(self, by: u32) -> Self {
        Self(self.0.wrapping_add(by))
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    fn sub(self, by: u32) -> Self {
        Self(self.0.wrapping_sub(by))
    }
}

/// The control bits (RFC 9293 §3.1), as on the wire.
///
/// ```
/// use weir_transport::Flags;
///
/// let flags = Flags::SYN.with(Flags::ACK);
/// assert!(flags.contains(Flags::ACK) && !flags.contains(Flags::FIN));
/// assert_eq!(format!("{flags:?}"), "SYN|ACK");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant; ignored here.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1);
        let names: Vec<&str> = set.map(|(_, name)| *name).collect();
        f.write_str(if names.is_empty() { "-" } else { "" })?;
        f.write_str(&names.join("|"))
    }
}

/// RFC 7323's timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// The sender's clock, in milliseconds.
    pub value: u32,
    /// The newest value received from the other side.
    pub echo: u32,
}

/// A half-open range of sequence numbers that arrived (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlock {
    /// The first.
    pub start: SeqNum,
    /// One past the last.
    pub end: SeqNum,
}

/// Up to four SACK blocks, the newest first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MAX],
    len: u8,
}

impl SackBlocks {
    /// As many as the option space holds without timestamps; three fit with timestamps.
    pub const MAX: usize = 4;

    /// Appends a block; a block too many is left out.
    pub fn push(&mut self, block: SackBlock) {
        if usize::from(self.len) < Self::MAX {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|b| (b.start.0, b.end.0))).finish()
    }
}

/// The options that are understood.
///
/// ```
/// use weir_transport::{Options, SackBlock, SeqNum, Timestamps};
///
/// let mut options = Options { timestamps: Some(Timestamps::default()), ..Options::default() };
/// assert_eq!(options.wire_len(), 12);
/// options.sack.push(SackBlock { start: SeqNum(100), end: SeqNum(200) });
/// assert_eq!(options.wire_len(), 24);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// RFC 9293 §3.7.1, on a SYN.
    pub mss: Option<u16>,
    /// RFC 7323 §2, on a SYN; at most 14.
    pub window_scale: Option<u8>,
    /// RFC 2018 §2, on a SYN.
    pub sack_permitted: bool,
    /// RFC 7323 §3.
    pub timestamps: Option<Timestamps>,
    /// RFC 2018 §3.
    pub sack: SackBlocks,
    /// What routers rewrite on the way: with data, and on a SYN to ask for it. Together with `echo` it
    /// is an experimental option (RFC 6994).
    pub feedback: Option<Feedback>,
    /// What is returned of it.
    pub echo: Option<Echo>,
}

impl Options {
    /// The bytes that these options take in a header, padding included. Laid out as Linux does it:
    /// timestamps and SACK blocks are each preceded by two NOPs for alignment.
    pub const fn wire_len(&self) -> usize {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.timestamps.is_some() {
            // With SACK-permitted the two padding bytes are put to use.
            len += 12;
        } else if self.sack_permitted {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.len as usize;
        }
        len + self.feedback_len().next_multiple_of(4)
    }

    /// The experimental option's length without padding; 0 where it is absent.
    pub(crate) const fn feedback_len(&self) -> usize {
        if self.feedback.is_none() && self.echo.is_none() {
            return 0;
        }
        let record = match self.feedback {
            Some(feedback) => record_len(feedback.kind()),
            None => 0,
        };
        let echo = match self.echo {
            Some(echo) => echo_len(echo.kind()),
            None => 0,
        };
        Self::FEEDBACK_HEADER_LEN + record + echo
    }

    /// The space that feedback of this kind takes in a data segment that also echoes it, padding
    /// included.
    pub(crate) const fn feedback_space(kind: FeedbackKind) -> usize {
        (Self::FEEDBACK_HEADER_LEN + record_len(kind) + echo_len(kind)).next_multiple_of(4)
    }

    /// How many SACK blocks fit in the remaining option space.
    pub(crate) fn sack_space(&self) -> usize {
        Self::MAX_LEN.saturating_sub(self.wire_len() + 4) / 8
    }

    /// Kind, length, identifier, and what follows.
    pub(crate) const FEEDBACK_HEADER_LEN: usize = 5;
    /// A header of 60 bytes less its fixed part.
    const MAX_LEN: usize = 40;
}

/// The bytes of a [`Feedback`] of this kind in the option.
pub(crate) const fn record_len(kind: FeedbackKind) -> usize {
    match kind {
        FeedbackKind::Drai => 2,
        FeedbackKind::AntiEcn => 1,
        FeedbackKind::QuickStart => 7,
        FeedbackKind::Xcp => 12,
        FeedbackKind::Rcp => 8,
        // The records lie next to the packet.
        FeedbackKind::Int => 0,
    }
}

/// The bytes of an [`Echo`] of this kind in the option.
pub(crate) const fn echo_len(kind: FeedbackKind) -> usize {
    match kind {
        FeedbackKind::Drai => 2,
        FeedbackKind::AntiEcn => 1,
        FeedbackKind::QuickStart => 6,
        FeedbackKind::Xcp | FeedbackKind::Rcp => 4,
        FeedbackKind::Int => 0,
    }
}

/// A segment without its payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The sequence number of the first payload byte, or of the SYN.
    pub seq: SeqNum,
    /// The next sequence number expected, where [`Flags::ACK`] is set.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: Flags,
    /// The receive window, as on the wire: not yet scaled.
    pub window: u16,
    /// How many bytes of payload follow the header.
    pub payload_len: u32,
    /// The options.
    pub options: Options,
}

impl Segment {
    /// A TCP header without options.
    pub const BASE_HEADER_LEN: usize = 20;

    /// The header's length with options.
    pub const fn header_len(&self) -> usize {
        Self::BASE_HEADER_LEN + self.options.wire_len()
    }

    /// Sequence numbers that the segment occupies: payload, plus one each for SYN and FIN.
    pub const fn seq_len(&self) -> u32 {
        let syn = self.flags.contains(Flags::SYN) as u32;
        let fin = self.flags.contains(Flags::FIN) as u32;
        self.payload_len + syn + fin
    }
}
