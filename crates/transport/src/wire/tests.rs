use proptest::prelude::*;
use weir_units::Echo;
use weir_units::feedback::{Drai, Headroom, NONCE, QuickStart, RateCode, Rcp, Xcp};

use super::*;
use crate::segment::SackBlocks;

fn emitted(segment: &Segment, ports: Ports, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(segment, ports, payload, &mut bytes);
    bytes
}

/// Puts the right checksum over whatever the bytes hold.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let sum = !checksum(&bytes);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A header of the given flags around these option bytes.
fn with_options(flags: Flags, options: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0, "the caller pads");
    let mut bytes = emitted(&Segment { flags, ..Segment::default() }, Ports::default(), &[]);
    bytes[12] = (5 + options.len() as u8 / 4) << 4;
    bytes.extend(options);
    with_checksum(bytes)
}

fn parsed_options(flags: Flags, options: &[u8]) -> Result<Options, WireError> {
    parse(&with_options(flags, options)).map(|parsed| parsed.segment.options)
}

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start: SeqNum(start), end: SeqNum(end) }
}

fn blocks(list: &[SackBlock]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    list.iter().for_each(|block| blocks.push(*block));
    blocks
}

/// RFC 1071 as it is written: sixteen bits at a time, in the network's order.
fn naive_checksum(segment: &[u8]) -> u16 {
    let words =
        segment.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    let sum: u64 = words.map(u64::from).sum::<u64>() + PROTOCOL + segment.len() as u64;
    let once = (sum & 0xffff) + (sum >> 16);
    let twice = (once & 0xffff) + (once >> 16);
    ((twice & 0xffff) + (twice >> 16)) as u16
}

#[test]
fn the_checksum_of_extremes_is_the_plain_one() {
    for len in [0, 1, 2, 31, 32, 33, 65_507, 65_535] {
        for byte in [0, 1, 0x80, 0xff] {
            let bytes = vec![byte; len];
            assert_eq!(checksum(&bytes), naive_checksum(&bytes), "{len} times {byte}");
        }
    }
}

#[test]
fn an_error_of_the_payloads_writer_is_passed_on() {
    let segment = Segment { payload_len: 3, ..Segment::default() };
    let mut space = [0; 40];
    assert_eq!(emit_into(&segment, Ports::default(), &mut space, |_| Err("full")), Err("full"));
}

/// Written out by hand from RFC 9293 §3.1: header fields, MSS 1448, SACK-permitted and
/// timestamps, window scale 7; the checksum was computed by another program.
#[test]
fn a_syn_looks_as_the_standard_draws_it() {
    let segment = Segment {
        seq: SeqNum(0x0102_0304),
        ack: SeqNum(0),
        flags: Flags::SYN,
        window: 0xfaf0,
        payload_len: 0,
        options: Options {
            mss: Some(1448),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            ..Options::default()
        },
    };
    let bytes = emitted(&segment, Ports { source: 0x1234, destination: 80 }, &[]);
    #[rustfmt::skip]
    let expected = [
        0x12, 0x34, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04, 0, 0, 0, 0,
        0xa0, 0x02, 0xfa, 0xf0, 0x36, 0x91, 0, 0,
        2, 4, 0x05, 0xa8, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn options_take_the_space_that_the_segment_counts() {
    let choices = [None, Some(())];
    let mut combinations = 0;
    for mss in choices.map(|c| c.map(|()| 536)) {
        for window_scale in choices.map(|c| c.map(|()| 7)) {
            for timestamps in choices.map(|c| c.map(|()| Timestamps { value: 3, echo: 4 })) {
                for sack_permitted in [false, true] {
                    for count in 0..=SackBlocks::MAX {
                        let sack = blocks(&[block(1, 2); SackBlocks::MAX][..count]);
                        let options = Options {
                            mss,
                            window_scale,
                            sack_permitted,
                            timestamps,
                            sack,
                            ..Options::default()
                        };
                        let mut space = [0; 100];
                        let mut rest = Writer(&mut space);
                        emit_options(&options, &mut rest);
                        let written = 100 - rest.0.len();
                        assert_eq!(written, options.wire_len(), "{options:?}");
                        assert_eq!(written % 4, 0, "{options:?}");
                        combinations += 1;
                    }
                }
            }
        }
    }
    assert_eq!(combinations, 80);
}

#[test]
fn a_segment_is_appended_behind_what_is_there() {
    let segment = Segment { payload_len: 3, ..Segment::default() };
    let mut bytes = b"before".to_vec();
    emit(&segment, Ports::default(), b"abc", &mut bytes);
    assert!(bytes.starts_with(b"before"));
    assert_eq!(parse(&bytes[6..]).expect("intact").payload, b"abc");
}

#[test]
fn unknown_options_are_skipped() {
    let options = [253, 6, 0xab, 0xcd, 1, 2, kind::MSS, 4, 0x05, 0xb4, kind::NOP, kind::NOP];
    assert_eq!(parsed_options(Flags::SYN, &options).map(|o| o.mss), Ok(Some(1460)));
}

#[test]
fn nothing_is_read_behind_the_end_of_options() {
    let options = [kind::END, 77, 99, 255];
    assert_eq!(parsed_options(Flags::ACK, &options), Ok(Options::default()));
}

#[test]
fn options_count_only_where_they_belong() {
    let syn_only = [2, 4, 5, 180, 4, 2, 1, 1, 1, 3, 3, 7];
    assert_eq!(parsed_options(Flags::ACK, &syn_only), Ok(Options::default()));
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(parsed_options(Flags::SYN, &sack), Ok(Options::default()));
    assert_eq!(parsed_options(Flags::ACK, &sack).map(|o| o.sack), Ok(blocks(&[block(1, 2)])));
}

#[test]
fn a_window_scale_beyond_the_largest_is_taken_as_the_largest() {
    let options = parsed_options(Flags::SYN, &[kind::NOP, kind::WINDOW_SCALE, 3, 200]);
    assert_eq!(options.map(|o| o.window_scale), Ok(Some(14)));
}

#[test]
fn wrong_option_lengths_are_refused() {
    for options in [
        [kind::NOP, kind::NOP, kind::NOP, kind::MSS],
        [kind::MSS, 3, 0, 0],
        [kind::MSS, 0, 0, 0],
        [kind::MSS, 1, 0, 0],
        [kind::MSS, 5, 0, 0],
        [kind::WINDOW_SCALE, 2, 0, 0],
        [kind::SACK_PERMITTED, 3, 0, 0],
        [kind::TIMESTAMPS, 4, 0, 0],
        [kind::SACK, 2, 0, 0],
        [kind::SACK, 4, 0, 0],
        [253, 40, 0, 0],
    ] {
        let kind = if options[3] == kind::MSS { kind::MSS } else { options[0] };
        assert_eq!(parsed_options(Flags::SYN, &options), Err(WireError::Option { kind }));
    }
}

#[test]
fn short_datagrams_are_refused() {
    let bytes = with_options(Flags::SYN, &[1, 3, 3, 7]);
    for len in 0..bytes.len() {
        assert_eq!(parse(&bytes[..len]), Err(WireError::Truncated { len }));
    }
    let mut short_header = bytes;
    short_header[12] = 4 << 4;
    let refused = parse(&with_checksum(short_header)).map(|parsed| parsed.segment);
    assert_eq!(refused, Err(WireError::HeaderLength { len: 16 }));
}

#[test]
#[should_panic(expected = "68 bytes of header")]
fn options_beyond_the_header_are_a_mistake_of_the_sender() {
    let sack = blocks(&[block(1, 2); SackBlocks::MAX]);
    let options = Options { timestamps: Some(Timestamps::default()), sack, ..Options::default() };
    emitted(&Segment { options, ..Segment::default() }, Ports::default(), &[]);
}

#[test]
fn feedback_looks_as_it_is_drawn() {
    let options = Options {
        feedback: Some(Feedback::Drai(Drai { level: 5, hops: 2 })),
        echo: Some(Echo::Xcp(-2)),
        ..Options::default()
    };
    let mut space = [0; 40];
    let mut rest = Writer(&mut space);
    emit_options(&options, &mut rest);
    let written = 40 - rest.0.len();
    let expected = [1, 253, 11, 0xc7, 0x31, 0x14, 5, 2, 0xff, 0xff, 0xff, 0xfe];
    assert_eq!(space[..written], expected);
    assert_eq!(options.wire_len(), written);
}

#[test]
fn the_longest_header_with_feedback_is_full() {
    let xcp = Feedback::Xcp(Xcp { rtt_micros: 1, spacing_nanos: 2, delta: 3 });
    let syn = Options {
        mss: Some(1_448),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps::default()),
        feedback: Some(xcp),
        ..Options::default()
    };
    assert_eq!(syn.wire_len(), 40);
    let data = Options {
        timestamps: Some(Timestamps::default()),
        feedback: Some(xcp),
        echo: Some(Echo::Xcp(1)),
        ..Options::default()
    };
    assert_eq!((data.wire_len(), data.sack_space()), (36, 0));
}

#[test]
fn feedback_that_cannot_be_is_refused() {
    for [kinds, bytes @ ..] in [
        [0x00, 0, 0, 0, 0, 0, 0],
        [0x60, 0, 0, 0, 0, 0, 0],
        [0x06, 0, 0, 0, 0, 0, 0],
        [0x10, 5, 0, 0, 0, 0, 0],
        [0x40, 0, 0, 0, 0, 0, 0],
        [0x22, 1, 2, 0, 0, 0, 0],
        [0x03, 16, 0, 0, 0, 0, 0],
        [0x03, 1, 0, 0x40, 0, 0, 0],
    ] {
        let mut options = vec![feedback::KIND, 11, 0xc7, 0x31, kinds];
        options.extend(bytes);
        options.push(0);
        let refused = parsed_options(Flags::ACK, &options);
        assert_eq!(refused, Err(WireError::Option { kind: 253 }), "{kinds:#x} {bytes:?}");
    }
    let level_zero = [feedback::KIND, 7, 0xc7, 0x31, 0x10, 0, 0, 0];
    assert!(parsed_options(Flags::ACK, &level_zero).is_err());
}

#[test]
fn what_we_could_not_lay_out_ourselves_is_no_feedback() {
    let mut options = vec![kind::SACK, 34];
    options.extend([0; 32]);
    options.extend([feedback::KIND, 6, 0xc7, 0x31, 0x20, 1]);
    let options = parsed_options(Flags::ACK, &options).expect("well-formed");
    assert_eq!((options.sack.as_slice().len(), options.feedback), (4, None));
}

#[test]
fn other_experiments_are_no_feedback() {
    for options in [[253, 2, 1, 1], [253, 3, 9, 1], [253, 4, 0xc7, 0x31]] {
        assert_eq!(parsed_options(Flags::ACK, &options), Ok(Options::default()), "{options:?}");
    }
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    prop::option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }))
}

/// Any record that a packet may carry.
fn record() -> impl Strategy<Value = Feedback> {
    let rate = (0..=15u8).prop_map(|code| RateCode::new(code).expect("four bits"));
    let request = (rate, any::<(u8, u8)>(), 0..=NONCE).prop_map(|(rate, (ttl, hops), nonce)| {
        Feedback::QuickStart(QuickStart { rate, ttl, hops, nonce })
    });
    prop_oneof![
        (1..=15u8, any::<u8>()).prop_map(|(level, hops)| Feedback::Drai(Drai { level, hops })),
        prop_oneof![Just(Headroom::Spare), Just(Headroom::Scarce)].prop_map(Feedback::AntiEcn),
        request,
        any::<(u32, u32, i32)>().prop_map(|(rtt_micros, spacing_nanos, delta)| {
            Feedback::Xcp(Xcp { rtt_micros, spacing_nanos, delta })
        }),
        any::<(u32, u32)>().prop_map(|(rate, rtt_micros)| Feedback::Rcp(Rcp { rate, rtt_micros })),
    ]
}

fn syn_options() -> impl Strategy<Value = Options> {
    let fields = (prop::option::of(any::<u16>()), prop::option::of(0..=14u8), any::<bool>());
    let feedback = prop::option::of(record());
    (fields, timestamps(), feedback).prop_map(
        |((mss, window_scale, sack_permitted), timestamps, feedback)| Options {
            feedback,
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            ..Options::default()
        },
    )
}

fn data_options() -> impl Strategy<Value = Options> {
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=SackBlocks::MAX);
    let returned = prop::option::of(record().prop_map(|record| Echo::of(&record)));
    let feedback = prop::option::of(record());
    (timestamps(), sack, feedback, returned).prop_map(|(timestamps, sack, feedback, echo)| {
        let options = Options { timestamps, feedback, echo, ..Options::default() };
        let sack: Vec<_> = sack.into_iter().map(|(start, end)| block(start, end)).collect();
        let sack = blocks(&sack[..sack.len().min(options.sack_space())]);
        Options { sack, ..options }
    })
}

/// Any segment that a connection may send, with its payload.
fn segment() -> impl Strategy<Value = (Segment, Ports, Vec<u8>)> {
    let options = prop_oneof![
        syn_options().prop_map(|options| (Flags::SYN, options)),
        data_options().prop_map(|options| (Flags::default(), options)),
    ];
    let payload = prop::collection::vec(any::<u8>(), 0..70);
    let numbers = any::<(u32, u32, u16, u8, u16, u16)>();
    (options, numbers, payload).prop_map(|((syn, options), numbers, payload)| {
        let (seq, ack, window, flags, source, destination) = numbers;
        let segment = Segment {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags: Flags(flags & !Flags::SYN.0).with(syn),
            window,
            payload_len: payload.len() as u32,
            options,
        };
        (segment, Ports { source, destination }, payload)
    })
}

proptest! {
    #[test]
    fn what_is_emitted_parses_to_the_same((segment, ports, payload) in segment()) {
        let bytes = emitted(&segment, ports, &payload);
        prop_assert_eq!(bytes.len(), segment.header_len() + payload.len());
        prop_assert_eq!(parse(&bytes), Ok(Parsed { segment, ports, payload: &payload }));
    }

    #[test]
    fn the_checksum_is_the_plain_one(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        prop_assert_eq!(checksum(&bytes), naive_checksum(&bytes));
    }

    #[test]
    fn a_payload_filled_in_place_is_as_good_as_one_copied((segment, ports, payload) in segment()) {
        let mut space = vec![0xaa; 4_096 + payload.len()];
        let len = emit_into(&segment, ports, &mut space, |part| {
            part.copy_from_slice(&payload);
            Ok::<(), ()>(())
        });
        prop_assert_eq!(&space[..len.unwrap_or(0)], &emitted(&segment, ports, &payload));
    }

    /// A router that rewrites the record makes what the sender would have made of the new one.
    #[test]
    fn a_stamp_is_as_good_as_a_new_segment(
        (segment, ports, payload) in segment(),
        seed in record(),
    ) {
        let mut bytes = emitted(&segment, ports, &payload);
        let mut expected = segment;
        let mut applied = false;
        let found = stamp(&mut bytes, |record| {
            if record.kind() == seed.kind() {
                *record = seed;
                applied = true;
            }
        });
        prop_assert_eq!(found, segment.options.feedback.is_some());
        if applied {
            expected.options.feedback = Some(seed);
        }
        prop_assert_eq!(parse(&bytes).map(|parsed| parsed.segment), Ok(expected));
    }

    /// Whatever the bytes are, and even if the rewriting goes astray.
    #[test]
    fn stamping_anything_is_harmless(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        options in prop::collection::vec(any::<u8>(), 0..40),
        seed in record(),
    ) {
        stamp(&mut bytes, |record| *record = seed);
        let mut ours = with_options(Flags::ACK, &[]);
        ours.extend([feedback::KIND, 11, 0xc7, 0x31]);
        ours.extend(options);
        ours[12] = 0xf0;
        let len = ours.len();
        stamp(&mut ours, |record| *record = seed);
        prop_assert_eq!(ours.len(), len);
    }

    #[test]
    fn every_flipped_bit_is_noticed((segment, ports, payload) in segment()) {
        let mut bytes = emitted(&segment, ports, &payload);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(parse(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
