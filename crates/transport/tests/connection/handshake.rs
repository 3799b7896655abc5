use weir_transport::{
    Config, Connection, ConnectionError, Event, Flags, Options, Segment, SeqNum, Stack, Timestamps,
};
use weir_units::{Duration, Ecn, Instant, stream};

use super::pair::Side::{Client, Server};
use super::pair::{ONE_WAY, Pair, RTT, Verdict};
use super::{has_data, is_pure_ack, is_syn, is_syn_ack};

/// Linux's timers for a second fire on one tick in 64.
const TICK: Duration = Duration::from_millis(64);

#[test]
fn three_segments_open_a_connection() {
    let mut pair = Pair::new(&Config::default());
    let start = pair.now;
    pair.drive();
    let sent: Vec<_> = pair.log.iter().map(|p| (p.at - start, p.from, p.segment.flags)).collect();
    let expected = [
        (Duration::ZERO, Client, Flags::SYN),
        (ONE_WAY, Server, Flags::SYN.with(Flags::ACK)),
        (RTT, Client, Flags::ACK),
    ];
    assert_eq!(sent, expected);
    assert_eq!(pair.client.events, [Event::Connected]);
    assert_eq!(pair.server.events, [Event::Connected]);
}

#[test]
fn options_are_used_only_if_both_sides_offer_them() {
    let all = Config::default();
    let none = Config { sack: false, timestamps: false, mss: 536, ..Config::default() };
    for (client, server) in [(&all, &none), (&none, &all)] {
        let mut pair = Pair::with_configs(client, server);
        pair.drive();
        pair.log.clear();
        pair.network({
            let mut data = 0;
            move |p| {
                data += usize::from(p.segment.payload_len > 0);
                if data == 3 { Verdict::Drop } else { Verdict::Deliver }
            }
        });
        pair.write(Client, 20_000);
        pair.drive();
        assert_eq!(pair.server.read, 20_000);
        for passing in &pair.log {
            assert_eq!(passing.segment.options, Default::default());
            assert!(passing.segment.payload_len <= 536, "the smaller of the two");
        }
    }
}

#[test]
fn a_lost_syn_or_answer_costs_the_initial_timeout() {
    for lost in [is_syn, is_syn_ack] {
        let mut pair = Pair::new(&Config::default());
        let start = pair.now;
        pair.lose_first(lost);
        pair.drive();
        assert_eq!(pair.client.events, [Event::Connected]);
        assert_eq!(pair.server.events, [Event::Connected]);
        let handshake_ack = pair.log.iter().find(|p| p.from == Client && is_pure_ack(p));
        let connected_at = handshake_ack.expect("sent").at;
        let expected = start + Duration::from_secs(1) + RTT;
        // Where the answer was lost, the server's timer is the later one by half a round trip.
        let last = expected + ONE_WAY + TICK;
        assert!((expected..=last).contains(&connected_at), "{connected_at}");
    }
}

/// RFC 7323 §4.1: an echo tells which of two SYNs was answered, so the timeout is known despite Karn's
/// rule; without it data starts with 3 s (RFC 6298 §5.7).
#[test]
fn an_echo_measures_the_round_trip_of_a_repeated_syn() {
    for (timestamps, rto) in
        [(true, Duration::from_millis(200) + RTT), (false, Duration::from_secs(3))]
    {
        let mut pair = Pair::new(&Config { timestamps, ..Config::default() });
        pair.lose_first(is_syn);
        pair.drive();
        let snapshot = pair.client.connection.snapshot();
        assert_eq!((snapshot.srtt, snapshot.rto), (timestamps.then_some(RTT), rto));
    }
}

#[test]
fn a_lost_third_segment_is_asked_for_again() {
    let mut pair = Pair::new(&Config::default());
    pair.lose_first(|p| p.from == Client && is_pure_ack(p));
    pair.drive();
    assert_eq!(pair.server.events, [Event::Connected]);
    let answers = pair.log.iter().filter(|p| is_syn_ack(p)).map(|p| p.at).collect::<Vec<_>>();
    assert_eq!(answers.len(), 2);
    let second = Duration::from_secs(1);
    assert!((second..=second + TICK).contains(&(answers[1] - answers[0])), "{answers:?}");
}

#[test]
fn data_stands_in_for_a_lost_third_segment() {
    let mut pair = Pair::new(&Config::default());
    pair.lose_first(|p| p.from == Client && is_pure_ack(p));
    let start = pair.now;
    pair.write(Client, 5_000);
    pair.drive();
    assert_eq!((pair.server.read, pair.client.connection.stats().retransmits), (5_000, 0));
    let answers = pair.log.iter().filter(|p| is_syn_ack(p)).count();
    assert_eq!(answers, 1);
    assert!(pair.log.last().expect("sent").at - start < Duration::from_millis(200));
}

#[test]
fn a_controller_that_cannot_be_built_ends_the_connection_with_its_reason() {
    let stack = Stack::parse_also_kernels("rack/bpf_vegas").expect("a kernel may have it");
    let config = Config { stack, ..Config::default() };
    let now = Instant::from_nanos(1);
    let ends = [
        Connection::connect(&config, now, stream(1, "client")),
        Connection::listen(&config, stream(1, "server")),
    ];
    for mut connection in ends {
        assert!(connection.is_closed());
        let Some(Event::Failed(error)) = connection.poll_event() else { panic!("it is usable") };
        assert!(error.to_string().contains("only a kernel's TCP has 'bpf_vegas'"), "{error}");
        connection.write(now, 1_000);
        assert_eq!((connection.poll_transmit(now), connection.next_timeout(now)), (None, None));
    }
}

#[test]
fn opening_gives_up_after_the_allowed_retries() {
    let mut pair = Pair::new(&Config { max_retransmits: 3, ..Config::default() });
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.drive();
    let sent: Vec<u64> = pair.log.iter().map(|p| (p.at - start).as_millis()).collect();
    // On the ticks that a wait of 1, 2 and 4 s has, 64 ms apart.
    assert_eq!(sent, [0, 1_031, 3_079, 7_111]);
    let [Event::Failed(error)] = &pair.client.events[..] else {
        panic!("{:?}", pair.client.events);
    };
    assert!(error.to_string().contains('3'), "the message says how many: {error}");
    // Ticks for 8 s are 512 ms apart.
    let last = (pair.now - start).as_millis();
    assert_eq!(last, 15_175, "the last try has its time, too");
    assert!(pair.client.connection.is_closed());
}

/// Who listens in the end is found, whenever that was.
#[test]
fn in_user_space_a_second_never_passes_without_a_try() {
    let wait = Duration::from_secs(10);
    let config = Config { max_wait: Some(wait), max_retransmits: 100, ..Config::for_datagrams() };
    let mut pair = Pair::new(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.drive();
    assert!(matches!(pair.client.events[..], [Event::Failed(ConnectionError::NoAnswer { .. })]));
    let mut tries: Vec<_> = pair.log.iter().map(|passing| passing.at).collect();
    tries.push(start + wait);
    let gaps = tries.windows(2).map(|two| two[1] - two[0]);
    assert!(gaps.max() <= Some(Duration::from_secs(1)), "{tries:?}");
    assert!(tries.len() < 25, "no flood: {}", tries.len());
}

#[test]
fn initial_sequence_numbers_are_drawn() {
    let first = |name: &str| {
        let now = Instant::ZERO;
        let mut connection = Connection::connect(&Config::default(), now, stream(1, name));
        connection.poll_transmit(now).expect("a SYN").segment.seq
    };
    assert_eq!(first("a"), first("a"));
    assert_ne!(first("a"), first("b"));
}

#[test]
fn a_listener_waits_without_a_timer_and_ignores_strays() {
    let mut pair = Pair::connected(&Config::default());
    pair.write(Client, 1);
    pair.drive();
    let stray = pair.log[0].segment;
    let mut listener = Connection::listen(&Config::default(), stream(2, "listener"));
    assert_eq!(listener.next_timeout(Instant::ZERO), None);
    assert_eq!(listener.handle_segment(Instant::ZERO, &stray, Ecn::NotEct), None);
    assert_eq!(listener.poll_event(), None);
    assert!(!listener.is_closed());
}

#[test]
fn payload_from_before_the_stream_is_refused() {
    let mut pair = Pair::connected(&Config::default());
    pair.lose_first(has_data);
    pair.write(Client, 100);
    pair.drive_for(Duration::from_nanos(1));
    let mut early = pair.log.iter().find(|p| has_data(p)).expect("sent").segment;
    early.seq = early.seq - 1;
    assert_eq!(pair.server.connection.handle_segment(pair.now, &early, Ecn::NotEct), None);
    assert_eq!(pair.server.connection.readable(), 0);
}

#[test]
fn a_duplicated_handshake_opens_one_connection() {
    let mut pair = Pair::new(&Config::default());
    pair.network(|_| Verdict::Twice(Duration::from_millis(3)));
    pair.write(Client, 3_000);
    pair.drive();
    assert_eq!(pair.client.events, [Event::Connected]);
    assert_eq!(pair.server.events, [Event::Connected]);
    assert_eq!(pair.server.read, 3_000);
}

/// As from a host whose application writes once it is connected.
#[test]
fn the_handshake_ends_before_data_begins() {
    let mut pair = Pair::new(&Config::default());
    pair.write(Client, 3_000);
    pair.drive();
    let sent: Vec<_> = pair.log.iter().filter(|p| p.from == Client).take(3).collect();
    assert!(is_syn(sent[0]) && is_pure_ack(sent[1]) && has_data(sent[2]), "{sent:?}");
    assert_eq!(sent[1].at, sent[2].at);
}

/// RFC 9293 §3.5.1: an end that has lost its memory and begins anew has the other's old connection reset.
#[test]
fn a_connection_that_one_end_has_forgotten_is_reset() {
    let config = Config::default();
    let mut pair = Pair::connected(&config);
    let rng = stream(7, "reborn");
    pair.client.connection = Connection::connect(&config, pair.now, rng);
    pair.drive_for(Duration::from_millis(100));
    let reset = pair.log.iter().find(|p| p.segment.flags.contains(Flags::RST)).expect("a reset");
    let challenge = pair.log.iter().find(|p| p.from == Server).expect("a challenge");
    assert_eq!((reset.from, reset.segment.seq), (Client, challenge.segment.ack));
    assert_eq!(pair.server.events.last(), Some(&Event::Failed(ConnectionError::Reset)));
}

/// The longest segment that is sent within five seconds to a peer with this SYN, whose acknowledgement has the
/// same window and timestamps.
fn longest_segment_after(syn: &Segment) -> u32 {
    let now = Instant::from_nanos(5_000_000_000);
    let mut server = Connection::listen(&Config::default(), stream(1, "server"));
    server.handle_segment(now, syn, Ecn::NotEct);
    let answer = server.poll_transmit(now).expect("an answer").segment;
    let options = Options { timestamps: syn.options.timestamps, ..Options::default() };
    let (seq, ack) = (syn.seq + 1, answer.seq + 1);
    let confirmation = Segment { flags: Flags::ACK, seq, ack, options, ..*syn };
    server.handle_segment(now, &confirmation, Ecn::NotEct);
    server.write(now, 3_000);
    let (mut at, mut longest) = (now, 0);
    loop {
        while let Some(transmit) = server.poll_transmit(at) {
            longest = longest.max(transmit.segment.payload_len);
        }
        let next = server.next_timeout(at).filter(|next| *next < now + Duration::from_secs(5));
        let Some(next) = next else { return longest };
        at = next.max(at);
        server.handle_timeout(at);
    }
}

/// Whatever a peer puts into the fields of its SYN and of its acknowledgement: as soon as its window is open, data
/// leaves, in segments of a sane length.
#[test]
fn no_value_of_a_field_stops_the_sender() {
    let sizes = [None, Some(0), Some(1), Some(47), Some(1_000), Some(u16::MAX)];
    let scales = [None, Some(0), Some(14), Some(u8::MAX)];
    for (mss, window_scale) in sizes.into_iter().flat_map(|mss| scales.map(|scale| (mss, scale))) {
        for (window, value) in [(0, 0), (1, u32::MAX), (535, 0), (1_000, 1), (u16::MAX, u32::MAX)] {
            let timestamps = Some(Timestamps { value, echo: value });
            let options = Options { mss, window_scale, timestamps, ..Options::default() };
            let seq = SeqNum(value);
            let syn = Segment { flags: Flags::SYN, seq, window, options, ..Segment::default() };
            let longest = longest_segment_after(&syn);
            assert_eq!(longest > 0, window > 0, "{syn:?}: {longest}");
            assert!(longest <= 1_448, "{syn:?}: {longest}");
        }
    }
}
