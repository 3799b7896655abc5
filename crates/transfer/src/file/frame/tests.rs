use std::fmt::Debug;

use proptest::prelude::*;
use weir_units::Duration;

use super::*;

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Zäß€ ._-]{1,60}"
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let attributes = |(mode, seconds, nanos)| Attributes { mode, modified: (seconds, nanos) };
    (0..=0o777u16, any::<i64>(), 0..1_000_000_000u32).prop_map(attributes)
}

fn header() -> impl Strategy<Value = Header> {
    (any::<u32>(), text(), 0..=i64::MAX as u64, any::<Hash>(), attributes()).prop_map(
        |(number, name, size, hash, attributes)| Header { number, name, size, hash, attributes },
    )
}

fn entry() -> impl Strategy<Value = EntryHeader> {
    let kind = prop_oneof![
        Just(EntryKind::Folder),
        Just(EntryKind::FolderEnd),
        text().prop_map(|target| EntryKind::Link { target }),
    ];
    (any::<u32>(), text(), attributes(), kind)
        .prop_map(|(number, path, attributes, kind)| EntryHeader { number, path, attributes, kind })
}

fn announcement() -> impl Strategy<Value = Announcement> {
    prop_oneof![
        any::<u32>().prop_map(|files| Announcement::Hello { files }),
        header().prop_map(Announcement::File),
        header().prop_map(Announcement::Ask),
        entry().prop_map(Announcement::Entry),
        (0..1u64 << 62, 1..1u64 << 61).prop_map(|(offset, len)| Announcement::Hole { offset, len }),
        header().prop_map(Announcement::Repair),
        prop::collection::vec(any::<Hash>(), 1..=MAX_PARTS).prop_map(Announcement::Parts),
        (header(), any::<u32>())
            .prop_map(|(header, piece)| Announcement::Datagram { header, piece }),
        any::<u64>().prop_map(|datagrams| Announcement::Sent { datagrams }),
        (0..1u64 << 62, 1..1u64 << 61).prop_map(|(offset, len)| Announcement::Data { offset, len }),
        Just(Announcement::End),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let verdict = prop_oneof![
        text().prop_map(|name| Verdict::Kept { name }),
        text().prop_map(|name| Verdict::Already { name }),
        Just(Verdict::Mismatch),
        text().prop_map(|reason| Verdict::Refused { reason }),
    ];
    prop_oneof![
        any::<(u32, u64)>().prop_map(|(file, prefix)| Answer::Have { file, prefix }),
        (any::<u32>(), verdict).prop_map(|(file, verdict)| Answer::Verdict { file, verdict }),
        text().prop_map(|reason| Answer::Failed { reason }),
        text().prop_map(|reason| Answer::Broken { reason }),
        any::<(u32, [u64; 5])>().prop_map(|(file, [sent, arrived, bytes, duplicates, span])| {
            let span = Duration::from_nanos(span);
            Answer::Count { file, tally: Tally { sent, arrived, bytes, duplicates, span } }
        }),
        Just(Answer::Working),
        any::<u32>().prop_map(|file| Answer::Wait { file }),
        any::<u32>().prop_map(|file| Answer::Wanted { file }),
        (any::<u32>(), 0..1u64 << 62, 1..1u64 << 61)
            .prop_map(|(file, offset, len)| Answer::Damaged { file, offset, len }),
    ]
}

fn reads_back<F: Frame + PartialEq + Debug>(frame: &F, rest: &[u8]) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    let len = bytes.len();
    assert!(len <= MAX_FRAME);
    for cut in 0..len {
        assert!(F::parse(&bytes[..cut]).expect("a valid beginning").is_none(), "at {cut}");
    }
    bytes.extend(rest);
    let (read, used) = F::parse(&bytes).expect("valid").expect("whole");
    assert_eq!((&read, used), (frame, len));
}

proptest! {
    #[test]
    fn frames_read_back_and_wait_for_all_their_bytes(
        said in announcement(), answered in answer(), rest in any::<[u8; 3]>(),
    ) {
        reads_back(&said, &rest);
        reads_back(&answered, &rest);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for used in [
            Announcement::parse(&bytes).ok().flatten().map(|(_, used)| used),
            Answer::parse(&bytes).ok().flatten().map(|(_, used)| used),
        ].into_iter().flatten() {
            prop_assert!((1..=MAX_FRAME).contains(&used) && used <= bytes.len());
        }
    }
}

#[test]
fn what_breaks_the_rules_is_an_error_as_soon_as_it_shows() {
    assert_eq!(Announcement::parse(b"WEIR\x01"), Err(FrameError::Version(1)));
    assert_eq!(Announcement::parse(b"WERE"), Err(FrameError::Magic));
    assert_eq!(Announcement::parse(b"GET / HTTP/1.1"), Err(FrameError::Kind(b'G')));
    let mut data = vec![kind::DATA];
    data.extend([0; 16]);
    assert_eq!(Announcement::parse(&data), Err(FrameError::Piece { offset: 0, len: 0 }));
    data[1..].fill(0xff);
    assert!(matches!(Announcement::parse(&data), Err(FrameError::Piece { .. })));
    let mut file = vec![kind::FILE];
    file.extend([0; 60]);
    assert_eq!(Announcement::parse(&file), Err(FrameError::NoName));
    assert_eq!(Answer::parse(&[kind::FILE]), Err(FrameError::Kind(kind::FILE)));
}

#[test]
fn texts_are_cut_and_made_printable() {
    let mut bytes = Vec::new();
    let reason = format!("\x1b[31mred\n{}", "ä".repeat(4_000));
    Answer::Failed { reason }.encode(&mut bytes);
    let Ok(Some((Answer::Failed { reason }, _))) = Answer::parse(&bytes) else {
        panic!("it is a whole frame");
    };
    assert!(reason.starts_with("[31mredä"), "{reason}");
    assert!(reason.len() <= MAX_PATH);
}

/// A checksum of 16 bits misses some of them.
#[test]
fn a_frame_with_flipped_bits_is_none() {
    let header = Header::new("report.txt".to_owned(), 5, [7; 32]);
    let mut bytes = Vec::new();
    Announcement::File(header).encode(&mut bytes);
    for bit in 0..bytes.len() * 8 {
        for other in [bit, (bit + 17) % (bytes.len() * 8)] {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            damaged[other / 8] ^= u8::from(other != bit) << (other % 8);
            let read = Announcement::parse(&damaged);
            assert!(!matches!(read, Ok(Some(_))), "bits {bit} and {other}: {read:?}");
        }
    }
}
