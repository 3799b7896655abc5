use weir_transport::{Config, DelayedAck, Event};
use weir_units::{Bytes, Duration, Instant};

use super::pair::Side::{Client, Server};
use super::pair::{ONE_WAY, Pair, RTT, Reading, Verdict};
use super::{has_data, is_pure_ack, with_stack};

/// When the client sent data, in milliseconds since `start`.
fn data_times(pair: &Pair, start: Instant) -> Vec<u64> {
    let data = pair.log.iter().filter(|p| p.from == Client && has_data(p));
    data.map(|p| (p.at - start).as_millis()).collect()
}

/// When the server acknowledged, since `start`.
fn ack_times(pair: &Pair, start: Instant) -> Vec<Duration> {
    let acks = pair.log.iter().filter(|p| p.from == Server && is_pure_ack(p));
    acks.map(|p| p.at - start).collect()
}

#[test]
fn the_timeout_doubles_until_the_connection_fails() {
    let config = Config { max_retransmits: 5, ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 1_000);
    pair.drive();
    // RFC 6298 with one sample of 20 ms: the minimum of 200 ms.
    assert_eq!(data_times(&pair, start), [0, 200, 600, 1_400, 3_000, 6_200]);
    let Some(Event::Failed(error)) = pair.client.events.last() else {
        panic!("{:?}", pair.client.events);
    };
    assert!(error.to_string().contains('5'), "the message says how many: {error}");
    assert_eq!(pair.now - start, Duration::from_millis(12_600));
    assert_eq!(pair.client.connection.stats().timeouts, 6);
}

#[test]
fn linux_probes_where_the_timeout_would_be_and_then_backs_off() {
    let mut pair = Pair::connected(&with_stack("rack/reno"));
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 1_000);
    pair.drive_for(Duration::from_secs(2));
    // 200 ms above srtt; the probe of a lone segment waits for a delayed acknowledgement, so the
    // timeout, being earlier, bounds it (RFC 8985 §7.2). Each is on the tick after it: those for more than 63 ms
    // are 8 ms apart, those for more than 503 ms 64.
    assert_eq!(data_times(&pair, start), [0, 225, 449, 897, 1_833]);
    let stats = pair.client.connection.stats();
    assert_eq!((stats.retransmits_tlp, stats.timeouts), (1, 3), "{stats:?}");
}

/// RFC 8985 §7.2 to the nanosecond: two round trips after the last of several segments.
#[test]
fn a_probe_in_user_space_waits_for_no_tick() {
    let config = Config { stack: "rack/reno".parse().expect("a stack"), ..Config::for_datagrams() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 5_000);
    pair.drive_for(RTT * 2);
    let sent = pair.log.iter().filter(|p| p.from == Client && has_data(p));
    let times: Vec<Duration> = sent.map(|p| p.at - start).collect();
    assert_eq!(times[3..], [Duration::ZERO, RTT * 2], "{times:?}");
}

/// RFC 9002 §6.2.4. A lone segment leaves twice; of several, or with data that waits, two different ones do.
#[test]
fn a_timeout_in_user_space_sends_two_segments() {
    let sent_by_timeouts = |stack: &str, written: u64| {
        let config = Config { stack: stack.parse().expect("a stack"), ..Config::for_datagrams() };
        let mut pair = Pair::connected(&config);
        pair.network(|_| Verdict::Drop);
        pair.write(Client, written);
        let late = pair.now + Duration::from_millis(75);
        pair.drive_for(Duration::from_millis(300));
        // `rack`'s probe left before that, 50 ms after the data at most, and its second timeout is over after 230.
        let sent = pair.log.iter().filter(|p| p.at > late && has_data(p));
        sent.map(|p| p.offset / u64::from(config.mss)).collect::<Vec<_>>()
    };
    assert_eq!(sent_by_timeouts("rack/reno", 1_000), [0, 0, 0, 0]);
    assert_eq!(sent_by_timeouts("rack/bbr", 5 * 1_448), [0, 1, 0, 1]);
    let full = 20 * 1_448;
    assert_eq!(sent_by_timeouts("rack/cubic", full), [0, 1, 0, 1]);
    assert_eq!(sent_by_timeouts("sack/cubic", full), [0]);
}

/// The second copy is answered by a DSACK, which does not say that the timeout was unfounded; a second DSACK does.
#[test]
fn two_copies_of_a_lost_segment_undo_nothing() {
    for (original, undone) in [(Verdict::Drop, 0), (Verdict::Late(Duration::from_millis(125)), 1)] {
        let config =
            Config { stack: "rack/reno".parse().expect("a stack"), ..Config::for_datagrams() };
        let mut pair = Pair::connected(&config);
        let end = pair.now + Duration::from_millis(100);
        pair.network(move |p| if has_data(p) && p.at < end { original } else { Verdict::Deliver });
        pair.write(Client, 1_000);
        pair.drive();
        let stats = pair.client.connection.stats();
        assert_eq!((stats.retransmits_rto, stats.undone), (2, undone), "{stats:?}");
    }
}

/// The wait for the timeout is not in the samples: what is answered was sent long after, and the answer says so.
#[test]
fn lost_acknowledgements_lengthen_no_round_trip_in_user_space() {
    let last_srtt = |config: Config, bytes: u64| {
        let mut pair = Pair::connected(&config);
        let until = pair.now + Duration::from_secs(1);
        pair.network(move |p| {
            if p.from == Server && p.at < until { Verdict::Drop } else { Verdict::Deliver }
        });
        pair.write(Client, bytes);
        pair.drive();
        let stats = pair.client.connection.stats();
        assert!(stats.retransmits > 0 && stats.acked_bytes == bytes, "{stats:?}");
        pair.client.connection.snapshot().srtt.expect("measured")
    };
    // Linux takes in again what it has acknowledged last, with its timestamp, and refuses what lies below that.
    assert!(last_srtt(with_stack("rack/reno"), 1_000) < RTT * 2);
    assert!(last_srtt(with_stack("rack/reno"), 2_000) > RTT * 2);
    for stack in
        ["rack/reno", "sack/reno", "newreno/reno", "go-back-n(4)/none", "stop-and-wait/none"]
    {
        let config = Config { stack: stack.parse().expect("a stack"), ..Config::for_datagrams() };
        let srtt = last_srtt(config, 2_000);
        assert!(srtt < RTT * 2, "{stack}: {srtt:?}");
    }
}

/// Linux's stamps are whole microseconds (`tcp_mstamp`), and round trips their differences: also of a path whose round
/// trip is none.
#[test]
fn a_kernel_measures_whole_microseconds() {
    let mut pair = Pair::connected(&with_stack("rack/reno"));
    let late = Duration::from_nanos(700);
    pair.network(move |p| if p.from == Server { Verdict::Late(late) } else { Verdict::Deliver });
    pair.write(Client, 100_000);
    pair.drive();
    let srtt = pair.client.connection.snapshot().latest_rtt.expect("measured");
    assert_eq!(srtt, Duration::from_micros(srtt.as_micros()));
}

/// Neither is the wait of a server that answers a SYN again when nothing follows.
#[test]
fn lost_answers_to_a_syn_lengthen_no_round_trip_in_user_space() {
    for side in [Client, Server] {
        let config =
            Config { stack: "rack/reno".parse().expect("a stack"), ..Config::for_datagrams() };
        let mut pair = Pair::new(&config);
        let until = pair.now + Duration::from_millis(200);
        let mut spared = false;
        pair.network(move |p| {
            // One SYN comes through; until later, nothing else does of what this side sends.
            let spare = side == Client && p.from == Client && !std::mem::replace(&mut spared, true);
            let lost = p.from == side && p.at < until && !spare;
            if lost { Verdict::Drop } else { Verdict::Deliver }
        });
        pair.drive();
        pair.write(Client, 1_000);
        pair.drive();
        let srtt = pair.client.connection.snapshot().srtt.expect("measured");
        assert!(srtt < RTT * 2, "{side:?}: {srtt:?}");
    }
}

#[test]
fn a_fixed_timeout_neither_adapts_nor_backs_off() {
    let config = Config {
        fixed_rto: Some(Duration::from_millis(100)),
        max_retransmits: 4,
        ..with_stack("stop-and-wait/none")
    };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 1_000);
    pair.drive();
    assert_eq!(data_times(&pair, start), [0, 100, 200, 300, 400]);
}

/// Four segments share their timers' patience: what counts is the oldest.
#[test]
fn selective_repeat_gives_up_on_its_oldest_segment() {
    let config = Config {
        fixed_rto: Some(Duration::from_millis(100)),
        max_retransmits: 4,
        ..with_stack("selective-repeat(4)/none")
    };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 4 * 1_448);
    pair.drive();
    assert!(
        matches!(pair.client.events.last(), Some(Event::Failed(_))),
        "{:?}",
        pair.client.events
    );
    let expected = [0, 100, 200, 300, 400].map(|at| [at; 4]).concat();
    assert_eq!(data_times(&pair, start), expected);
}

#[test]
fn a_connection_without_progress_fails_after_the_longest_wait() {
    let config = Config { max_wait: Some(Duration::from_secs(3)), ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.network(|_| Verdict::Drop);
    pair.write(Client, 1_000);
    pair.drive();
    let Some(Event::Failed(error)) = pair.client.events.last() else {
        panic!("{:?}", pair.client.events);
    };
    assert!(error.to_string().contains('3'), "the message says how long: {error}");
    assert_eq!(pair.now - start, Duration::from_secs(3));
}

/// Without timestamps an acknowledgement of a segment sent twice measures nothing, and the timeout
/// stays backed off until one of a segment sent once comes in (RFC 6298 §3, §5.7 note).
#[test]
fn karn() {
    let config = Config { timestamps: false, ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    pair.write(Client, 1_000);
    pair.drive();
    let before = pair.client.connection.snapshot();
    pair.lose_first(|p| p.from == Client && has_data(p));
    pair.write(Client, 1_000);
    pair.drive();
    let after = pair.client.connection.snapshot();
    assert_eq!((after.srtt, after.latest_rtt), (before.srtt, before.latest_rtt));
    assert_eq!(after.rto.as_nanos(), 2 * before.rto.as_nanos());
    pair.write(Client, 1_000);
    pair.drive();
    assert_eq!(pair.client.connection.snapshot().rto, before.rto);
}

#[test]
fn timestamps_measure_a_retransmission() {
    let mut pair = Pair::connected(&with_stack("sack/reno"));
    pair.lose_first(|p| p.from == Client && has_data(p));
    pair.write(Client, 1_000);
    pair.drive();
    let snapshot = pair.client.connection.snapshot();
    assert_eq!(snapshot.rto, Duration::from_millis(200), "the back-off has ended: {snapshot:?}");
    assert!(snapshot.latest_rtt < Some(RTT + Duration::from_millis(41)), "{snapshot:?}");
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let config = Config { delayed_ack: Some(DelayedAck::Off), ..Config::default() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.write(Client, 7 * 1_448);
    pair.drive();
    assert_eq!(ack_times(&pair, start), [ONE_WAY; 7]);
}

#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_after_40_ms() {
    let config = Config { delayed_ack: Some(DelayedAck::Rfc1122), ..Config::default() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.write(Client, 7 * 1_448);
    pair.drive();
    let late = ONE_WAY + Duration::from_millis(40);
    assert_eq!(ack_times(&pair, start), [ONE_WAY, ONE_WAY, ONE_WAY, late]);
}

#[test]
fn linux_is_quick_at_first_and_delays_later() {
    // So small a buffer that its window does not grow: news of a larger one is not delayed either.
    let config = Config { recv_buffer: Bytes(64 << 10), ..Config::default() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.write(Client, 10 * 1_448);
    pair.drive();
    assert_eq!(ack_times(&pair, start), [ONE_WAY; 10], "each of the first is acknowledged");
    pair.write(Client, 200 * 1_448);
    pair.drive();
    // A lone segment, which is pushed: at once where it is read, else later.
    let mut delay = |reading| {
        pair.server.reading = reading;
        pair.log.clear();
        let start = pair.now;
        pair.write(Client, 1_448);
        pair.drive();
        let [lone] = ack_times(&pair, start)[..] else { panic!("{:?}", pair.log) };
        lone - ONE_WAY
    };
    assert_eq!(delay(Reading::Eager), Duration::ZERO);
    let unread = delay(Reading::Manual);
    assert!(
        (Duration::from_millis(4)..=Duration::from_millis(200)).contains(&unread),
        "{unread:?}"
    );
}

/// RFC 5681 §4.2: out of order, filling a hole, or a repetition: no delay.
#[test]
fn anything_irregular_is_acknowledged_at_once() {
    let config = Config { delayed_ack: Some(DelayedAck::Rfc1122), ..with_stack("sack/none(20)") };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.lose_first(has_data);
    pair.write(Client, 5 * 1_448);
    pair.drive();
    let acks = ack_times(&pair, start);
    assert_eq!(acks[..4], [ONE_WAY; 4], "one for each segment behind the hole");
    assert_eq!(acks[4..], [ONE_WAY + RTT], "and one when it is filled");
}

#[test]
fn an_idle_connection_has_no_timer() {
    let mut pair = Pair::connected(&Config::default());
    pair.write(Client, 10_000);
    pair.drive();
    assert_eq!(pair.client.connection.next_timeout(pair.now), None);
    assert_eq!(pair.server.connection.next_timeout(pair.now), None);
}
