//! Files of captures: pcap, pcapng and snoop, also compressed by gzip or zstd, record by record.
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. The crate `pcap-parser` reads the blocks. Memory is the
//! buffer of one block, and the interfaces of a section.

use std::io::Read;
use std::ops::Range;

use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, UnknownBlock};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};

use crate::decompress::Opened;
use crate::error::{Cut, ReadError};
use crate::unread::{Unread, UnreadCounts};

/// A packet as a capture has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// When it was captured, in nanoseconds since 1970 or since what the capture counts from.
    pub nanos: u64,
    /// Whether the capture has a time for it.
    pub is_timed: bool,
    /// The number of its interface in the capture.
    pub interface: u32,
    /// The kind of its first header, a number of the list of link types.
    pub link_type: i32,
    /// The bytes that were kept.
    pub bytes: &'a [u8],
    /// Its length on the link.
    pub wire_len: u32,
    /// Whether the capture marks it as damaged.
    pub is_damaged: bool,
}

/// Reads the records of a capture.
pub(crate) struct CaptureReader<'r> {
    blocks: Box<dyn PcapReaderIterator + 'r>,
    interfaces: Vec<Interface>,
    /// Length of the block that the last record is part of.
    unread: usize,
    /// Packets that the interfaces dropped, as their statistics say.
    dropped: u64,
    /// Blocks that are no packets and are not read.
    skipped: UnreadCounts,
    cut: Option<Cut>,
    is_compressed: bool,
}

/// What the packets of an interface share.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: i32,
    /// Units of its times per second.
    resolution: u64,
    /// Seconds to add to its times.
    offset: i64,
    snap_len: u32,
}

impl<'r> CaptureReader<'r> {
    /// Begins to read a file whose format its first bytes show.
    ///
    /// # Errors
    /// If it is no capture, or cannot be read.
    pub(crate) fn of(opened: Opened<'r>) -> Result<Self, ReadError> {
        let Opened { is_compressed, magic, source } = opened;
        let source = Filling(source);
        let opened: Result<Box<dyn PcapReaderIterator + 'r>, _> = match magic {
            SECTION_HEADER => PcapNGReader::new(BUFFER, source).map(|reader| Box::new(reader) as _),
            _ if PCAP.contains(&magic) => {
                LegacyPcapReader::new(BUFFER, source).map(|reader| Box::new(reader) as _)
            }
            _ => return Err(ReadError::Format),
        };
        let blocks = opened.map_err(|error| match error {
            PcapError::Incomplete(_) | PcapError::Eof | PcapError::UnexpectedEof => {
                ReadError::Empty
            }
            _ => ReadError::Format,
        })?;
        Ok(Self {
            blocks,
            interfaces: Vec::new(),
            unread: 0,
            dropped: 0,
            skipped: UnreadCounts::default(),
            cut: None,
            is_compressed,
        })
    }

    /// Reads the next packet; none at the end, or where the rest is not valid (see [`Self::cut`]).
    pub(crate) fn next_record(&mut self) -> Option<Record<'_>> {
        loop {
            self.blocks.consume(std::mem::take(&mut self.unread));
            match self.step() {
                Step::Packet { head, bytes } => {
                    let bytes = self.blocks.data().get(bytes)?;
                    return Some(Record { bytes, ..head });
                }
                Step::Again => {}
                Step::End => return None,
            }
        }
    }

    /// Why reading ended early, if it did.
    pub(crate) fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Packets that the capturing system dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Blocks that are not read.
    pub(crate) fn unread(&self) -> &UnreadCounts {
        &self.skipped
    }

    /// Looks at the next block and reads more of the file where it is incomplete.
    fn step(&mut self) -> Step {
        let offset = self.blocks.consumed() as u64;
        let data = self.blocks.data().as_ptr() as usize;
        match self.blocks.next() {
            Ok((len, block)) => {
                self.unread = len;
                if let Some(record) = record(&block, &self.interfaces) {
                    // The block borrows the reader: its bytes are taken by their place in the buffer.
                    let start = (record.bytes.as_ptr() as usize).wrapping_sub(data);
                    let bytes = start..start.wrapping_add(record.bytes.len());
                    return Step::Packet { head: Record { bytes: &[], ..record }, bytes };
                }
                learn(&block, &mut self.interfaces, &mut self.dropped);
                if let Some(kind) = unread_kind(&block) {
                    self.skipped.add(Unread::Block(kind));
                }
                Step::Again
            }
            Err(PcapError::Eof) => Step::End,
            Err(PcapError::Incomplete(_)) => self.refill(offset),
            Err(PcapError::BufferTooSmall) => self.grow(offset),
            Err(PcapError::UnexpectedEof) => self.end(Cut::Incomplete { offset }),
            Err(PcapError::ReadError) => self.end(Cut::Compression),
            Err(_) => self.end(Cut::Invalid { offset }),
        }
    }

    fn refill(&mut self, offset: u64) -> Step {
        let before = self.blocks.data().len();
        if self.blocks.refill().is_err() {
            return self.end(Cut::Compression);
        }
        if self.blocks.data().len() > before {
            return Step::Again;
        }
        if before == 0 {
            return Step::End;
        }
        // Nothing more came: the file ends here, or the block is longer than the buffer.
        if self.blocks.reader_exhausted() {
            return self.end(Cut::Incomplete { offset });
        }
        self.grow(offset)
    }

    fn grow(&mut self, offset: u64) -> Step {
        let size = self.blocks.data().len().max(BUFFER) * 2;
        if size > LONGEST_BLOCK || !self.blocks.grow(size) {
            return self.end(Cut::Invalid { offset });
        }
        self.refill(offset)
    }

    fn end(&mut self, cut: Cut) -> Step {
        let cut = match cut {
            // Offsets in what a file unpacks to are of no use, and a decoder that failed gave its reason before.
            Cut::Incomplete { .. } if self.is_compressed => Cut::Compression,
            cut => cut,
        };
        self.cut = Some(cut);
        Step::End
    }
}

enum Step {
    /// A packet without its bytes, and their place in the buffer.
    Packet {
        head: Record<'static>,
        bytes: Range<usize>,
    },
    Again,
    End,
}

/// Remembers what a block says of the packets after it, or of those that were dropped.
fn learn(block: &PcapBlockOwned<'_>, interfaces: &mut Vec<Interface>, dropped: &mut u64) {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { NANOS } else { MICROS };
            let link_type = header.network.0 & LINK_TYPE_BITS;
            let snap_len = header.snaplen;
            *interfaces = vec![Interface { link_type, resolution, offset: 0, snap_len }];
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < MOST_INTERFACES {
                interfaces.push(interface(description));
            }
        }
        PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
            let option = statistics.options.iter().find(|option| option.code.0 == DROPPED);
            let value = option.and_then(|option| option.value.get(..8)?.try_into().ok());
            // The crate reads the type of a block as little-endian.
            let is_little_endian = statistics.block_type == STATISTICS;
            *dropped = dropped.saturating_add(value.map_or(0, |eight: [u8; 8]| {
                if is_little_endian { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) }
            }));
        }
        PcapBlockOwned::Legacy(_) | PcapBlockOwned::NG(_) => {}
    }
}

/// The type of a block that is not read and may have more than notes.
fn unread_kind(block: &PcapBlockOwned<'_>) -> Option<u32> {
    match block {
        PcapBlockOwned::NG(Block::SystemdJournalExport(_)) => Some(JOURNAL),
        // The crate reads the type of a block as little-endian. Types in use are small numbers.
        PcapBlockOwned::NG(Block::Unknown(block)) if Obsolete::of(block).is_none() => {
            Some(block.block_type.min(block.block_type.swap_bytes()))
        }
        _ => None,
    }
}

/// The packet block of pcapng before 2009 (draft-ietf-opsawg-pcapng, appendix A).
struct Obsolete<'a> {
    interface: usize,
    time: u64,
    wire_len: u32,
    bytes: &'a [u8],
}

impl<'a> Obsolete<'a> {
    fn of(block: &UnknownBlock<'a>) -> Option<Self> {
        let is_little_endian = match block.block_type {
            OBSOLETE_PACKET => true,
            kind if kind.swap_bytes() == OBSOLETE_PACKET => false,
            _ => return None,
        };
        let data = block.data;
        let word = |at: usize| -> Option<u32> {
            let four = data.get(at..at + 4)?.try_into().ok()?;
            Some(if is_little_endian { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
        };
        let first = word(0)?;
        // The interface is the first half, and drops are the second.
        let interface = if is_little_endian { first & 0xffff } else { first >> 16 } as usize;
        let (time, kept) = (u64::from(word(4)?) << 32 | u64::from(word(8)?), word(12)? as usize);
        let wire_len = word(16)?;
        let bytes = data.get(20..)?;
        Some(Self { interface, time, wire_len, bytes: &bytes[..kept.min(bytes.len())] })
    }
}

fn interface(description: &InterfaceDescriptionBlock<'_>) -> Interface {
    Interface {
        link_type: description.linktype.0,
        resolution: description.ts_resolution().filter(|per_s| *per_s > 0).unwrap_or(MICROS),
        offset: description.ts_offset(),
        snap_len: description.snaplen,
    }
}

/// The packet that a block is, if its interface is known.
fn record<'a>(block: &PcapBlockOwned<'a>, interfaces: &[Interface]) -> Option<Record<'a>> {
    match block {
        PcapBlockOwned::Legacy(frame) => {
            let from = interfaces.first()?;
            let fraction = u64::from(frame.ts_usec) * (NANOS / from.resolution);
            let bytes = &frame.data[..frame.data.len().min(frame.caplen as usize)];
            Some(Record {
                nanos: u64::from(frame.ts_sec) * NANOS + fraction,
                is_timed: true,
                interface: 0,
                link_type: from.link_type,
                bytes,
                wire_len: frame.origlen.max(bytes.len() as u32),
                is_damaged: false,
            })
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let from = interfaces.get(packet.if_id as usize)?;
            let kept = packet.data.len().min(packet.caplen as usize);
            let kept = if from.snap_len > 0 { kept.min(from.snap_len as usize) } else { kept };
            let flags = packet.options.iter().find(|option| option.code.0 == PACKET_FLAGS);
            let flags = flags.and_then(|option| option.value.get(..4)?.try_into().ok());
            let is_big_endian = packet.big_endian();
            let flags = flags.map_or(0, |four: [u8; 4]| {
                if is_big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
            });
            Some(Record {
                nanos: from.nanos(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)),
                is_timed: true,
                interface: packet.if_id,
                link_type: from.link_type,
                bytes: &packet.data[..kept],
                wire_len: packet.origlen.max(kept as u32),
                is_damaged: flags & LINK_ERRORS != 0,
            })
        }
        PcapBlockOwned::NG(Block::Unknown(block)) => {
            let packet = Obsolete::of(block)?;
            let from = interfaces.get(packet.interface)?;
            Some(Record {
                nanos: from.nanos(packet.time),
                is_timed: true,
                interface: packet.interface as u32,
                link_type: from.link_type,
                bytes: packet.bytes,
                wire_len: packet.wire_len.max(packet.bytes.len() as u32),
                is_damaged: false,
            })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let from = interfaces.first()?;
            let kept = packet.data.len().min(packet.origlen as usize);
            Some(Record {
                nanos: 0,
                is_timed: false,
                interface: 0,
                link_type: from.link_type,
                bytes: &packet.data[..kept],
                wire_len: packet.origlen,
                is_damaged: false,
            })
        }
        _ => None,
    }
}

impl Interface {
    /// A time of this interface in nanoseconds; the last one that there is if it is too late.
    fn nanos(&self, time: u64) -> u64 {
        if self.offset == 0 && NANOS.is_multiple_of(self.resolution) {
            return time.saturating_mul(NANOS / self.resolution).min(LATEST as u64);
        }
        let nanos = u128::from(time) * u128::from(NANOS) / u128::from(self.resolution);
        let shifted = nanos as i128 + i128::from(self.offset) * i128::from(NANOS);
        shifted.clamp(0, LATEST) as u64
    }
}

/// Returns less than what is requested only at the end: `pcap-parser` reads a header by one call.
struct Filling<R>(R);

impl<R: Read> Read for Filling<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // What came before the error is valid; the next call returns the error.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Microseconds, nanoseconds and the modified format, in both byte orders.
const PCAP: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
];

/// Bytes of the file that are held, unless a packet is longer: few enough for the cache of a core.
const BUFFER: usize = 256 << 10;
/// A block that is longer is not valid.
const LONGEST_BLOCK: usize = 16 << 20;
/// Interfaces of a section that are read.
const MOST_INTERFACES: usize = 4096;
/// The rest of the field has the length of frame checksums (draft-ietf-opsawg-pcap §4).
const LINK_TYPE_BITS: i32 = 0xffff;

// Types of blocks: with an interface's statistics, with a packet, with entries of a journal.
const STATISTICS: u32 = 5;
const OBSOLETE_PACKET: u32 = 2;
const JOURNAL: u32 = 9;

// Options of pcapng.
const PACKET_FLAGS: u16 = 2;
const DROPPED: u16 = 5;
/// Errors of the link layer among a packet's flags.
const LINK_ERRORS: u32 = 0xffff_0000;

const NANOS: u64 = 1_000_000_000;
const MICROS: u64 = 1_000_000;
/// Later times are clamped: twice as many nanoseconds fit into 64 bits.
const LATEST: i128 = (u64::MAX / 2) as i128;
