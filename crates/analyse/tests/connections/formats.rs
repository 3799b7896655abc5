//! The same packets in every format that is read.

use std::io::{Cursor, Write};
use std::ops::ControlFlow;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_analyse::{Cut, ReadError, Reading, Tables};

use crate::script::Script;

fn script() -> Script {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..100 {
        script.data(50.0 + f64::from(number), number);
        script.ack(90.0 + f64::from(number), number + 1, &[]);
    }
    script
}

fn read(file: &[u8]) -> Result<(Tables, Option<Cut>), ReadError> {
    let mut reading = Reading::default();
    let cut = reading.read("test", Cursor::new(file), || ControlFlow::Continue(()))?;
    Ok((reading.finish(), cut))
}

/// The packets of `pcapng` as pcap in a link type whose header is `header`.
fn pcap(link_type: u32, header: &[u8], is_big_endian: bool) -> Vec<u8> {
    pcap_of(link_type, header, is_big_endian, u32::MAX)
}

/// The same with `most` bytes of each packet.
fn pcap_of(link_type: u32, header: &[u8], is_big_endian: bool, most: u32) -> Vec<u8> {
    let word = |value: u32| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = Vec::new();
    file.extend(word(0xa1b2_3c4d));
    file.extend(half(2));
    file.extend(half(4));
    [0, 0, 262_144, link_type].into_iter().for_each(|value| file.extend(word(value)));
    let source = script().pcapng();
    let mut at = 0;
    while at < source.len() {
        let field =
            |place: usize| u32::from_le_bytes(source[at + place..][..4].try_into().expect("4"));
        if field(0) == 6 {
            let nanos = u64::from(field(12)) << 32 | u64::from(field(16));
            let (kept, len) = (field(20).min(most), field(24));
            let more = header.len() as u32;
            file.extend(word((nanos / 1_000_000_000) as u32));
            file.extend(word((nanos % 1_000_000_000) as u32));
            file.extend(word(kept + more));
            file.extend(word(len + more));
            file.extend(header);
            file.extend(&source[at + 28..at + 28 + kept as usize]);
        }
        at += field(4) as usize;
    }
    file
}

/// Without options the scale of windows is unknown. With a scale of 1 the windows would limit everything.
#[test]
fn a_capture_without_options_knows_no_scale() {
    for (most, is_known) in [(52, true), (51, false), (40, false)] {
        let (tables, _) = read(&pcap_of(101, &[], false, most)).expect("a capture");
        let row = &tables.connections[0];
        assert_eq!(row.has_handshake, is_known, "{most}");
        assert_eq!(row.window_bytes_max.is_some(), is_known, "{most}");
        assert_eq!(row.limited_receiver_window, Some(0.0), "{most}");
        assert_eq!(row.delivered_bytes, script().row().delivered_bytes);
    }
}

#[test]
fn every_link_type_and_byte_order_gives_the_same_row() {
    let expected = script().tables().connections;
    let mut tagged = vec![0; 12];
    tagged.extend([0x81, 0x00, 0, 5, 0x08, 0x00]);
    let mut plain = vec![0; 12];
    plain.extend([0x08, 0x00]);
    let mut cooked = vec![0; 14];
    cooked.extend([0x08, 0x00]);
    let mut cooked_2 = vec![0x08, 0x00];
    cooked_2.resize(20, 0);
    let ethernet = |protocol: [u8; 2], rest: &[u8]| [&[0; 12][..], &protocol, rest].concat();
    let pppoe = ethernet([0x88, 0x64], &[0x11, 0, 0, 1, 0, 0, 0x00, 0x21]);
    let mpls = ethernet([0x88, 0x47], &[0, 1, 0x00, 64, 0, 2, 0x01, 64]);
    let snap = ethernet([0, 200], &[0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00]);
    let mut wireless = vec![0x08, 0x02];
    wireless.resize(24, 0);
    wireless.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00]);
    let mut quality = vec![0x88, 0x03];
    quality.resize(32, 0);
    quality.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00]);
    let radiotap = [&[0, 0, 8, 0, 0, 0, 0, 0][..], &wireless].concat();
    let nflog = [2, 0, 0, 7, 8, 0, 1, 0, 0, 0, 0, 0, 4, 0, 9, 0];
    let pktap = [&[20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 8], &plain].concat();
    let types: [(u32, &[u8]); 22] = [
        // The upper bits have the length of a checksum.
        (0x2400_0001, &plain),
        (1, &pppoe),
        (1, &mpls),
        (1, &snap),
        (9, &[0xff, 3, 0, 0x21]),
        (9, &[0x21]),
        (50, &[0xff, 3, 0, 0x21]),
        (51, &[0x11, 0, 0, 1, 0, 0, 0x00, 0x21]),
        (104, &[0x0f, 0, 0x08, 0x00]),
        (105, &wireless),
        (105, &quality),
        (127, &radiotap),
        (239, &nflog),
        (258, &pktap),
        (101, &[]),
        (228, &[]),
        (1, &plain),
        (1, &tagged),
        (113, &cooked),
        (276, &cooked_2),
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
    ];
    for (link_type, header) in types {
        for is_big_endian in [false, true] {
            let (tables, cut) = read(&pcap(link_type, header, is_big_endian)).expect("a capture");
            assert_eq!((&tables.connections, cut), (&expected, None), "{link_type}");
        }
    }
}

#[test]
fn compressed_captures_are_read() {
    let file = script().pcapng();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&file).expect("memory");
    let gzip = encoder.finish().expect("memory");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&file[..], level);
    for compressed in [&gzip, &zstd] {
        let (tables, cut) = read(compressed).expect("a capture");
        assert_eq!((tables.connections, cut), (script().tables().connections, None));
    }
    // RFC 8878 §3.1: frames follow each other, and some are skipped.
    let half = file.len() / 2;
    let frame = |part: &[u8]| ruzstd::encoding::compress_to_vec(part, level);
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let frames = [&skipped[..], &frame(&file[..half]), &skipped, &frame(&file[half..])].concat();
    let (tables, cut) = read(&frames).expect("a capture");
    assert_eq!((tables.connections, cut), (script().tables().connections, None));
    // Up to the frame that is cut.
    let (tables, cut) = read(&frames[..frames.len() - 9]).expect("a capture");
    assert_eq!((tables.connections.len(), cut), (1, Some(Cut::Compression)));
    let (tables, cut) = read(&gzip[..gzip.len() / 2]).expect("a capture");
    assert_eq!((tables.connections.len(), cut), (1, Some(Cut::Compression)));
}

/// A program that was killed leaves half a packet.
#[test]
fn a_capture_that_ends_inside_a_packet_is_read_up_to_it() {
    let file = script().pcapng();
    let (tables, cut) = read(&file[..file.len() - 10]).expect("a capture");
    assert_eq!(tables.counts.packets, 202);
    assert!(matches!(cut, Some(Cut::Incomplete { .. })), "{cut:?}");
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    assert!(matches!(read(b"hello, this is a text file"), Err(ReadError::Format)));
    for file in [&[0x1f, 0x8b, 1, 2, 3][..], &[0x28, 0xb5, 0x2f, 0xfd, 4, 0]] {
        assert!(matches!(read(file), Err(ReadError::Broken)));
    }
    for file in [&b""[..], &[0x0a, 0x0d, 0x0d, 0x0a, 1]] {
        assert!(matches!(read(file), Err(ReadError::Empty)));
    }
}

/// More connections than are followed at a time: the idle ones end, and none is missing.
#[test]
fn idle_connections_make_space() {
    let mut reading = Reading::with_limit(1);
    for _ in 0..3 {
        let file = script().pcapng();
        reading.read("a", Cursor::new(&file), || ControlFlow::Continue(())).expect("a capture");
    }
    assert_eq!(reading.finish().connections.len(), 3);
}
