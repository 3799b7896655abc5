use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    SetWindow(u64),
    /// So far into the window, so long.
    Arrive(u64, u32),
    Read(u64),
    Acknowledge,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..200_000u64).prop_map(Op::SetWindow),
        (0..3_000u64, 1..2_000u32).prop_map(|(at, len)| Op::Arrive(at, len)),
        (0..50_000u64).prop_map(Op::Read),
        Just(Op::Acknowledge),
    ]
}

#[test]
fn what_a_syn_has_no_space_to_say_is_not_offered() {
    let config = Config {
        recv_buffer: Bytes(1 << 20),
        delayed_ack: Some(DelayedAck::Off),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    assert_eq!(receiver.offer_at_most(65_535), 65_535);
    receiver.set_window(100_000);
    assert_eq!(receiver.offer(), 100_000);
}

#[test]
fn a_window_begins_as_configured_and_grows_by_twice_what_arrives() {
    let config = Config {
        recv_buffer: Bytes(1 << 20),
        initial_recv_window: Some(Bytes(500_000)),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    // Whole segments; then a segment without options is kept back until the first has come.
    assert_eq!(receiver.offer(), 345 * 1_448);
    receiver.on_established(Instant::ZERO);
    receiver.on_data(Instant::ZERO, 0, 1_448, Flags::ACK);
    receiver.read(Instant::ZERO, 1_448);
    // In units of 8 bytes.
    assert_eq!(receiver.offer(), (500_000_u64 - 1_460 + 2 * 1_448).next_multiple_of(8));
    let before_6_11 = Config { initial_recv_window: None, ..config };
    assert_eq!(Receiver::new(&before_6_11).offer(), 65_535);
}

/// `tcp_grow_window`: as far as the segments behind a hole leave space.
#[test]
fn a_window_grows_no_further_than_held_segments_let_it() {
    let config = Config {
        recv_buffer: Bytes(5 << 20),
        max_recv_buffer: Some(Bytes(6 << 20)),
        initial_recv_window: Some(Bytes((5 << 20) - 100 * 1_440)),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    receiver.agree(true, EchoMode::Off);
    for segment in 1..200 {
        receiver.on_data(Instant::ZERO, segment * 1_448, 1_448, Flags::ACK);
    }
    // Each takes 1440 bytes and adds 2896, the 34th the 912 that are left.
    let grown = receiver.window_limit - ((5 << 20) - 100 * 1_440);
    assert_eq!(grown, 33 * 2_896 + 912);
}

/// `tcp_init_buffer_space`. Since Linux 6.5 that ends when the memory of segments is measured.
#[test]
fn a_segment_of_a_buffer_is_kept_back_until_the_buffer_grows() {
    let config = Config {
        recv_buffer: Bytes(100 * 1_448),
        max_recv_buffer: Some(Bytes(1 << 20)),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    let mut arrive = |count: u64| {
        for _ in 0..count {
            let (at, now) = (receiver.rcv_nxt(), Instant::ZERO);
            receiver.on_data(now, at, 1_448, Flags::ACK);
            receiver.read(now, 1_448);
        }
        (receiver.window_limit, receiver.buffer)
    };
    // The segment is one without options.
    assert_eq!(arrive(50), (99 * 1_448 - 12, 100 * 1_448));
    receiver.on_echo(1, Duration::from_millis(1), 1_448);
    receiver.read(Instant::ZERO, 0);
    let at = receiver.rcv_nxt();
    let later = Instant::ZERO + Duration::from_millis(2);
    receiver.on_data(later, at, 1_448, Flags::ACK);
    receiver.read(later, 1_448);
    assert!(receiver.buffer > 100 * 1_448);
    assert_eq!(receiver.window_clamp, receiver.buffer);
    let newer = Config { initial_recv_window: Some(Bytes(65_536)), ..config };
    assert_eq!(Receiver::new(&newer).window_clamp, 100 * 1_448);
}

/// `__tcp_select_window` without scaling. The segment that is kept back leaves 7,000 - 1,460 bytes.
#[test]
fn a_window_that_needs_no_scaling_has_whole_segments() {
    let mut receiver = Receiver::new(&Config { recv_buffer: Bytes(7_000), ..Config::default() });
    assert_eq!(receiver.offer_at_most(65_535), 4 * 1_448);
    receiver.on_established(Instant::ZERO);
    receiver.on_data(Instant::ZERO, 0, 1_448, Flags::ACK);
    receiver.read(Instant::ZERO, 1_448);
    assert_eq!(receiver.offer(), 3 * 1_448, "5,540 bytes, and no less than was offered");
    receiver.on_ack_sent();
    receiver.on_data(Instant::ZERO, 1_448, 700, Flags::ACK);
    receiver.read(Instant::ZERO, 700);
    assert_eq!(receiver.offer(), 3 * 1_448);
    let large = Config { recv_buffer: Bytes(70_001), ..Config::default() };
    let mut scaled = Receiver::new(&large);
    scaled.window_limit = 70_001;
    assert_eq!(scaled.offer(), 70_001);
}

/// `tcp_select_initial_window`, `tcp_measure_rcv_mss`, `tcp_incr_quickack`: since Linux 6.11 a buffer of 21,000 bytes of memory
/// offers seven segments at first, and eight when it has seen that five eighths of it may be payload. Half of the seven
/// are acknowledged at once.
#[test]
fn a_small_buffer_offers_more_segments_once_it_has_measured_one() {
    let config = Config {
        recv_buffer: Bytes(13_125),
        initial_recv_window: Some(Bytes(10_500)),
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config);
    receiver.agree(true, EchoMode::Off);
    assert_eq!(receiver.offer_at_most(65_535), 7 * 1_448);
    receiver.on_established(Instant::ZERO);
    let mut acknowledged = Vec::new();
    for segment in 0..7 {
        receiver.on_data(Instant::ZERO, segment * 1_448, 1_448, Flags::ACK);
        receiver.read(Instant::ZERO, 1_448);
        if receiver.ack_is_due(Instant::ZERO) {
            acknowledged.push((segment, receiver.offer() / 1_448));
            receiver.on_ack_sent();
        }
    }
    assert_eq!(acknowledged, [(0, 8), (1, 8), (2, 8), (4, 8), (6, 8)]);
}

/// `tcp_cleanup_rbuf`: what a repair made readable shrank the window of its acknowledgement, and is read right
/// after it.
#[test]
fn a_window_that_doubles_when_data_is_read_is_announced() {
    let mut receiver = Receiver::new(&Config { recv_buffer: Bytes(6_000), ..Config::default() });
    receiver.agree(true, EchoMode::Off);
    receiver.offer_at_most(65_535);
    receiver.on_established(Instant::ZERO);
    for at in [1_448, 2_896] {
        receiver.on_data(Instant::ZERO, at, 1_448, Flags::ACK);
        receiver.offer();
        receiver.on_ack_sent();
    }
    receiver.on_data(Instant::ZERO, 0, 1_448, Flags::ACK);
    receiver.read(Instant::ZERO, 3 * 1_448);
    assert_eq!(receiver.offer(), 1_448);
    receiver.on_ack_sent();
    assert!(receiver.ack_is_due(Instant::ZERO));
    assert_eq!(receiver.offer(), 3 * 1_448);
    receiver.on_ack_sent();
    assert!(!receiver.ack_is_due(Instant::ZERO));
}

/// `tcp_sack_compress_send_ack`: what was held back leaves before the segment that opens another gap, which asks
/// for no acknowledgement itself.
#[test]
fn another_gap_releases_what_was_held_back() {
    let mut receiver = Receiver::new(&Config { mss: 1_000, ..Config::default() });
    receiver.window_limit = receiver.buffer;
    receiver.agree(true, EchoMode::Off);
    let mut arrive = |segment: u64| {
        receiver.on_data(Instant::ZERO, segment * 1_000, 1_000, Flags::ACK);
        let flush = receiver.take_flush();
        let due = receiver.ack_is_due(Instant::ZERO);
        if due {
            receiver.on_ack_sent();
        }
        (flush.map(|flush| flush.ranges), due)
    };
    for segment in (0..20).chain([21, 23, 25]) {
        arrive(segment);
    }
    assert_eq!(arrive(27), (None, false));
    let blocks = [27, 25, 23, 21].map(|at: u64| at * 1_000..(at + 1) * 1_000);
    assert_eq!(arrive(29), (Some(blocks.to_vec()), false));
    assert_eq!(arrive(31), (None, false), "nothing was held back");
    assert!(arrive(33).0.is_some());
}

proptest! {
    #[test]
    fn an_edge_that_was_offered_stands_and_exceeds_the_buffer_by_a_sixteenth_and_a_unit_at_most(
        ops in prop::collection::vec(op(), 1..200),
    ) {
        const LARGEST: u64 = 100_000;
        const UNIT: u64 = 2;
        let config = Config { recv_buffer: Bytes(LARGEST), ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.agree(true, EchoMode::Off);
        let (mut offered, mut asked) = (receiver.offer(), LARGEST);
        for op in ops {
            match op {
                Op::SetWindow(bytes) => {
                    receiver.set_window(bytes);
                    asked = bytes;
                }
                Op::Arrive(ahead, len) => {
                    let at = receiver.rcv_nxt() + ahead;
                    let space = receiver.edge().saturating_sub(at).min(u64::from(len)) as u32;
                    receiver.on_data(Instant::ZERO, at, space, Flags::ACK);
                }
                Op::Read(max) => {
                    receiver.read(Instant::ZERO, max);
                }
                Op::Acknowledge => {
                    let edge = receiver.rcv_nxt() + receiver.offer();
                    receiver.on_ack_sent();
                    prop_assert!(edge == receiver.offered_edge);
                    prop_assert!(edge == offered || edge < receiver.read + asked + asked / 16 + UNIT);
                    prop_assert!(edge >= offered);
                    offered = edge;
                }
            }
            prop_assert!(receiver.edge() >= offered);
            prop_assert!(receiver.edge() < receiver.read + LARGEST + LARGEST / 16 + UNIT);
        }
    }
}

/// Which of the segments `arrivals` are acknowledged at once.
fn acknowledged(policy: &str, arrivals: &[u64]) -> Vec<u64> {
    let delayed_ack = Some(policy.parse().expect("a policy"));
    let mut receiver = Receiver::new(&Config { mss: 1_000, delayed_ack, ..Config::default() });
    receiver.agree(true, EchoMode::Off);
    let mut answered = |segment: &&u64| {
        receiver.on_data(Instant::ZERO, **segment * 1_000, 1_000, Flags::ACK);
        let due = receiver.ack_is_due(Instant::ZERO);
        if due {
            receiver.on_ack_sent();
        }
        due
    };
    arrivals.iter().filter(|segment| answered(segment)).copied().collect()
}

/// The examples of draft-ietf-quic-ack-frequency for reordering thresholds 3 and 5.
#[test]
fn a_gap_is_reported_when_it_is_a_threshold_behind() {
    let acks = acknowledged("frequency(100,3)", &[0, 1, 3, 4, 5, 8, 9, 10]);
    assert_eq!(acks, [5, 9, 10]);
    assert_eq!(acknowledged("frequency(100,5)", &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    // What was reported and arrives after all is news; what was not, is none.
    assert_eq!(acknowledged("frequency(100,3)", &[0, 2, 3, 4, 1]), [4, 1]);
    assert_eq!(acknowledged("frequency(100,3)", &[0, 2, 3, 1]), [] as [u64; 0]);
    assert_eq!(acknowledged("frequency(100,0)", &[0, 9, 8, 7, 1]), [] as [u64; 0]);
}

#[test]
fn one_more_segment_than_the_threshold_is_acknowledged() {
    let arrivals: Vec<u64> = (0..12).collect();
    assert_eq!(acknowledged("frequency(0)", &arrivals), arrivals);
    assert_eq!(acknowledged("frequency", &arrivals), [1, 3, 5, 7, 9, 11]);
    assert_eq!(acknowledged("frequency(3)", &arrivals), [3, 7, 11]);
}

/// Linux answers what asks for it, as the segment that fills a hole, before its application reads: what is unread
/// takes from the window, which a sender with header prediction notices.
#[test]
fn what_asks_for_an_answer_has_it_before_it_is_read() {
    // A segment of 2304 bytes takes half of that from the window, or since Linux 6.5 160 / 256 of it.
    for (policy, first, lack) in [
        (DelayedAck::Linux, None, 7 * 1_152),
        (DelayedAck::Linux, Some(Bytes(50_000)), 7 * 1_440),
        (DelayedAck::Rfc1122, None, 0),
    ] {
        let config = Config {
            recv_buffer: Bytes(50_000),
            initial_recv_window: first,
            delayed_ack: Some(policy),
            ..Config::default()
        };
        let mut receiver = Receiver::new(&config);
        receiver.offer_at_most(65_535);
        let mut answer = |segment: u64| {
            receiver.on_data(Instant::ZERO, segment * 1_448, 1_448, Flags::ACK);
            receiver.read(Instant::ZERO, u64::MAX);
            let offer = receiver.offer();
            receiver.on_ack_sent();
            offer
        };
        // Linux offers whole segments where windows are not scaled.
        let whole = |window: u64| match policy {
            DelayedAck::Linux => window - window % 1_448,
            _ => window,
        };
        let at_first = whole(50_000 - lack / 7);
        assert_eq!(answer(0), at_first);
        for segment in 2..8 {
            assert_eq!(answer(segment), at_first);
        }
        // No window is taken back.
        let offered_before = at_first - 7 * 1_448;
        assert_eq!(answer(1), whole(50_000 - lack).max(offered_before), "{policy:?}");
        assert_eq!(answer(8), at_first);
    }
}

/// `tcp_grow_window`, `__tcp_grow_window`: 1,448 bytes take 1,440 of the window and let it grow by two segments; of 1,000 bytes
/// so does each while the window is at most half of what the largest buffer gives, and of 300, which take 1,280 bytes of
/// memory and so 800, while it is a quarter; 100 in order never.
#[test]
fn a_window_grows_by_two_measured_segments_while_small_ones_leave_it_a_part() {
    let grown = |first: u64, lens: &[u32]| {
        let mut receiver = Receiver::new(&Config {
            recv_buffer: Bytes(4 << 20),
            max_recv_buffer: Some(Bytes(4 << 20)),
            initial_recv_window: Some(Bytes(first)),
            ..Config::default()
        });
        receiver.agree(true, EchoMode::Off);
        receiver.offer_at_most(65_535);
        receiver.on_established(Instant::ZERO);
        receiver.on_data(Instant::ZERO, 0, 1_448, Flags::ACK);
        receiver.read(Instant::ZERO, 1_448);
        let (mut at, before) = (1_448, receiver.window_limit);
        for len in lens {
            receiver.on_data(Instant::ZERO, at, *len, Flags::ACK);
            receiver.read(Instant::ZERO, u64::from(*len));
            at += u64::from(*len);
        }
        receiver.window_limit - before
    };
    // Windows may have 1440/2304 of 8 MiB.
    let most = (8 << 20) * 1_440 / 2_304;
    assert_eq!(grown(100_000, &[1_448, 1_000]), 4 * 1_448);
    assert_eq!(grown(100_000, &[1_000, 1_000]), 2 * 1_448 + 2 * 1_000, "the second is measured");
    assert_eq!(grown(most / 2 - 10_000, &[1_000]), 2 * 1_448);
    assert_eq!(grown(most / 2 + 10_000, &[1_448]), 2 * 1_448);
    assert_eq!(grown(most / 2 + 10_000, &[1_000]), 0);
    assert_eq!(grown(most / 4 - 10_000, &[300]), 2 * 1_448);
    assert_eq!(grown(most / 4 + 10_000, &[300]), 0);
    assert_eq!(grown(100_000, &[100]), 0);
}
