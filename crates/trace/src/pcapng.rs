//! Packet captures as pcapng files: what Wireshark reads, packets of several interfaces in one.
//!
//! Source: draft-ietf-opsawg-pcapng. A file is one section: its header, a description of each
//! interface, an enhanced packet block per packet. Blocks are little-endian, padded to 32 bits and
//! begin and end with their length. Packets begin with their IP header (`LINKTYPE_RAW`), times are in
//! nanoseconds.

use std::io::{self, Write};

/// Writes a capture block by block: it remembers nothing of the packets.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    sink: W,
    interfaces: u32,
    snap_len: u32,
    /// The block at hand; as long as the longest so far.
    block: Vec<u8>,
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// The number of its interface.
    pub interface: u32,
    /// When it was there, in nanoseconds since 1970, or since whatever the capture begins with.
    pub nanos: u64,
    /// The packet from its IP header on, at least as much as the capture keeps.
    pub bytes: &'a [u8],
    /// How long it is altogether.
    pub len: u32,
    /// Whether it is known to have been damaged.
    pub is_damaged: bool,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a capture of up to `snap_len` bytes of each packet at interfaces of these names;
    /// `program` is said to have made it.
    ///
    /// # Errors
    /// What `sink` refuses.
    pub fn new(sink: W, program: &str, interfaces: &[String], snap_len: u32) -> io::Result<Self> {
        let mut writer =
            Self { sink, interfaces: interfaces.len() as u32, snap_len, block: Vec::new() };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER);
        writer.halves(MAJOR, MINOR);
        // The length of the section is not known yet.
        writer.block.extend((-1i64).to_le_bytes());
        writer.options(&[(USER_APPLICATION, program.as_bytes())]);
        writer.end()?;
        for name in interfaces {
            writer.begin(INTERFACE);
            writer.halves(LINKTYPE_RAW, 0);
            writer.word(snap_len);
            let name = (INTERFACE_NAME, name.as_bytes());
            writer.options(&[name, (TIME_RESOLUTION, &[NANOSECONDS])]);
            writer.end()?;
        }
        Ok(writer)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// What the sink refuses.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn write(&mut self, packet: &CapturedPacket<'_>) -> io::Result<()> {
        assert!(packet.interface < self.interfaces, "interface {}", packet.interface);
        let kept = packet.bytes.len().min(self.snap_len as usize);
        self.begin(ENHANCED_PACKET);
        self.word(packet.interface);
        self.word((packet.nanos >> 32) as u32);
        self.word(packet.nanos as u32);
        self.word(kept as u32);
        self.word(packet.len);
        self.padded(&packet.bytes[..kept]);
        if packet.is_damaged {
            self.options(&[(PACKET_FLAGS, &CHECKSUM_ERROR.to_le_bytes())]);
        }
        self.end()
    }

    /// Hands everything to the sink's own sink.
    ///
    /// # Errors
    /// What the sink refuses.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The sink with all that was written.
    pub fn into_inner(self) -> W {
        self.sink
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // The length comes when it is known.
        self.word(0);
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_le_bytes());
    }

    fn halves(&mut self, first: u16, second: u16) {
        self.word(u32::from(second) << 16 | u32::from(first));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn options(&mut self, list: &[(u16, &[u8])]) {
        for (code, value) in list {
            let value = &value[..value.len().min(usize::from(u16::MAX))];
            self.halves(*code, value.len() as u16);
            self.padded(value);
        }
        self.halves(END_OF_OPTIONS, 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.word(len);
        self.sink.write_all(&self.block)
    }
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
const LINKTYPE_RAW: u16 = 101;

// Options.
const END_OF_OPTIONS: u16 = 0;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// The negative power of ten that times count.
const NANOSECONDS: u8 = 9;
/// "CRC error" among a packet's flags.
const CHECKSUM_ERROR: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes a file apart: kind and body of each block, whose lengths agree.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let len = word(file, 4) as usize;
            assert_eq!((len % 4, word(file, len - 4) as usize), (0, len));
            blocks.push((word(file, 0), file[8..len - 4].to_vec()));
            file = &file[len..];
        }
        blocks
    }

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn written(interfaces: &[&str], snap_len: u32, packets: &[CapturedPacket<'_>]) -> Vec<u8> {
        let names: Vec<String> = interfaces.iter().map(|name| (*name).to_owned()).collect();
        let mut file = Vec::new();
        let mut writer = PcapngWriter::new(&mut file, "weir", &names, snap_len).unwrap();
        packets.iter().for_each(|packet| writer.write(packet).unwrap());
        writer.flush().unwrap();
        file
    }

    #[test]
    fn a_capture_of_nothing_is_what_the_draft_says() {
        let file = written(&["before a"], 128, &[]);
        let expected = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8],
            &[4, 0, 4, 0, b'w', b'e', b'i', b'r', 0, 0, 0, 0, 40, 0, 0, 0],
            &[1, 0, 0, 0, 44, 0, 0, 0, 101, 0, 0, 0, 128, 0, 0, 0, 2, 0, 8, 0],
            b"before a",
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0],
        ];
        assert_eq!(file, expected.concat());
    }

    #[test]
    fn what_is_damaged_says_so() {
        let packet =
            CapturedPacket { interface: 0, nanos: 0, bytes: &[1], len: 1, is_damaged: true };
        let file = written(&["a"], 128, &[packet]);
        let (_, body) = blocks(&file).pop().unwrap();
        assert_eq!(body[20..], [1, 0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_sink_that_refuses_is_an_error() {
        let names = ["a".to_owned()];
        assert!(PcapngWriter::new(&mut [0u8; 40][..], "weir", &names, 128).is_err());
    }

    proptest! {
        #[test]
        fn every_packet_comes_back(
            snap_len in 0u32..300,
            list in prop::collection::vec(
                (0u32..3, any::<u64>(), prop::collection::vec(any::<u8>(), 0..400), 0u32..9_000),
                0..20,
            ),
        ) {
            let packets: Vec<_> = list.iter().map(|(interface, nanos, bytes, more)| CapturedPacket {
                interface: *interface,
                nanos: *nanos,
                bytes,
                len: bytes.len() as u32 + more,
                is_damaged: false,
            }).collect();
            let blocks = blocks(&written(&["one", "two", "three"], snap_len, &packets));
            let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
            prop_assert_eq!(&kinds[..4], &[SECTION_HEADER, 1, 1, 1]);
            prop_assert_eq!(kinds.len(), 4 + packets.len());
            for ((kind, body), packet) in blocks[4..].iter().zip(&packets) {
                let kept = packet.bytes.len().min(snap_len as usize);
                let nanos = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
                prop_assert_eq!((*kind, word(body, 0), nanos), (6, packet.interface, packet.nanos));
                prop_assert_eq!((word(body, 12) as usize, word(body, 16)), (kept, packet.len));
                prop_assert_eq!(&body[20..20 + kept], &packet.bytes[..kept]);
                prop_assert_eq!(body.len(), 20 + kept.next_multiple_of(4));
            }
        }
    }
}
