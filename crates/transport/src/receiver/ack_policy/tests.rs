//! When segments are acknowledged, by each rule.

use super::*;

const MSS: u64 = 1_000;

fn in_order(rcv_nxt: u64) -> Progress {
    Progress {
        rcv_nxt,
        advanced: MSS,
        missing: false,
        selective: true,
        released: false,
        growing: false,
        hampered: false,
        window: 128 * MSS,
        rtt: None,
        position: Position { start: rcv_nxt - MSS, end: rcv_nxt, missing: None },
    }
}

/// The policy, once a full segment has shown how long they are.
fn measured(mode: DelayedAck, host_profile: HostProfile) -> AckPolicy {
    let mut policy = AckPolicy::new(mode, MSS, host_profile);
    policy.measure(MSS, false);
    policy
}

fn linux() -> AckPolicy {
    measured(DelayedAck::Linux, HostProfile::Kernel)
}

/// How many of `segments`, `gap` apart, are acknowledged at once or by the timer.
fn acks(policy: &mut AckPolicy, segments: u64, gap: Duration) -> u64 {
    let mut now = Instant::ZERO;
    let mut acks = 0;
    for n in 1..=segments {
        if policy.deadline().is_some_and(|at| at <= now) {
            policy.on_ack_sent();
            acks += 1;
        }
        policy.on_data(now, &in_order(n * MSS));
        if policy.is_due(now) {
            policy.on_ack_sent();
            acks += 1;
        }
        now += gap;
    }
    acks
}

#[test]
fn off_acknowledges_every_segment() {
    let mut policy = AckPolicy::new(DelayedAck::Off, MSS, HostProfile::Kernel);
    assert_eq!(acks(&mut policy, 100, Duration::from_millis(1)), 100);
}

#[test]
fn rfc1122_acknowledges_every_second_segment_or_after_40_ms() {
    let mut policy = AckPolicy::new(DelayedAck::Rfc1122, MSS, HostProfile::Kernel);
    assert_eq!(acks(&mut policy, 100, Duration::from_millis(1)), 50);
    let mut policy = AckPolicy::new(DelayedAck::Rfc1122, MSS, HostProfile::Kernel);
    policy.on_data(Instant::ZERO, &in_order(MSS));
    assert!(!policy.is_due(Instant::ZERO + Duration::from_millis(39)));
    assert!(policy.is_due(Instant::ZERO + Duration::from_millis(40)));
}

#[test]
fn linux_acknowledges_sixteen_at_once_then_every_second() {
    let mut policy = linux();
    assert_eq!(acks(&mut policy, 116, Duration::from_millis(1)), 16 + 50);
}

#[test]
fn linux_acknowledges_at_once_while_its_window_grows() {
    let mut policy = linux();
    for n in 1..=100 {
        policy.on_data(Instant::ZERO, &Progress { growing: true, ..in_order(n * MSS) });
        assert!(policy.is_due(Instant::ZERO));
        policy.on_ack_sent();
    }
}

#[test]
fn sixteen_more_follow_the_growth_of_the_window() {
    let mut policy = linux();
    let grow = |n| Progress { growing: true, ..in_order(n * MSS) };
    for n in 1..=100 {
        policy.on_data(Instant::ZERO, &grow(n));
        policy.on_ack_sent();
    }
    assert_eq!(acks(&mut policy, 16 + 20, Duration::ZERO), 16 + 10);
}

#[test]
fn no_delay_exceeds_the_longest() {
    for mode in [DelayedAck::Rfc1122, DelayedAck::Linux] {
        let mut policy = measured(mode, HostProfile::UserSpace);
        let longest = HostProfile::UserSpace.longest_ack_delay();
        acks(&mut policy, 100, Duration::from_millis(1));
        let now = Instant::ZERO + Duration::from_millis(101);
        policy.on_data(now, &in_order(101 * MSS));
        assert_eq!(policy.deadline(), Some(now + longest), "{mode:?}");
    }
}

/// `tcp_send_delayed_ack` sets a timer of the wheel: 40 ticks and the rest of one.
#[test]
fn linux_delays_up_to_a_tick() {
    let mut policy = linux();
    acks(&mut policy, 100, Duration::ZERO);
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    policy.on_data(at(10_100), &in_order(101 * MSS));
    assert_eq!(policy.deadline(), Some(at(50_750)));
}

#[test]
fn linux_acknowledges_a_push_when_all_is_read() {
    for (mode, due) in [(DelayedAck::Linux, true), (DelayedAck::Rfc1122, false)] {
        let mut policy = measured(mode, HostProfile::Kernel);
        acks(&mut policy, 16, Duration::from_millis(1));
        let now = Instant::ZERO + Duration::from_millis(17);
        policy.on_data(now, &in_order(17 * MSS));
        policy.on_read(true);
        assert!(!policy.is_due(now), "{mode:?}: nothing was pushed");
        policy.measure(MSS, true);
        policy.on_read(true);
        assert_eq!(policy.is_due(now), due, "{mode:?}");
    }
}

#[test]
fn linux_compresses_no_sacks_while_its_window_grows() {
    let mut policy = linux();
    assert_eq!(acks(&mut policy, 16, Duration::from_millis(1)), 16);
    let hole = Progress { advanced: 0, missing: true, growing: true, ..in_order(16 * MSS) };
    let now = Instant::ZERO + Duration::from_secs(1);
    for _ in 0..50 {
        policy.on_data(now, &hole);
        assert!(policy.is_due(now));
        policy.on_ack_sent();
    }
}

#[test]
fn sacks_wait_a_twentieth_of_a_short_round_trip() {
    let mut policy = linux();
    policy.on_handshake_rtt(Duration::from_millis(4));
    let hole = Progress { advanced: 0, missing: true, ..in_order(MSS) };
    let now = Instant::ZERO + Duration::from_secs(1);
    for _ in 0..3 {
        policy.on_data(now, &hole);
        policy.on_ack_sent();
    }
    policy.on_data(now, &hole);
    assert_eq!(policy.deadline(), Some(now + Duration::from_micros(200 + 100)));
    policy.on_ack_sent();
    // Timestamps show whole milliseconds.
    policy.on_data(now, &Progress { rtt: Some(Duration::from_millis(3)), ..hole });
    assert_eq!(policy.deadline(), Some(now + Duration::from_micros(150 + 100)));
    policy.on_ack_sent();
    // An end that sends requests measures longer round trips than the handshake's.
    policy.on_own_rtt(Duration::from_millis(8), Duration::from_millis(208));
    policy.on_data(now, &hole);
    assert_eq!(policy.deadline(), Some(now + Duration::from_micros(400 + 100)));
}

/// `tcp_compressed_ack_kick`: the timestamp of an acknowledgement that a timer lets go is that of the last arrival.
#[test]
fn a_compressed_acknowledgement_has_the_time_of_the_last_arrival() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    for (profile, stamp) in [(HostProfile::Kernel, at(4)), (HostProfile::UserSpace, at(6))] {
        let mut policy = measured(DelayedAck::Linux, profile);
        policy.on_handshake_rtt(Duration::from_millis(40));
        policy.quick = 0;
        let hole = Progress { advanced: 0, missing: true, ..in_order(100 * MSS) };
        for millis in 1..=4 {
            policy.on_data(at(millis), &hole);
            assert_eq!(policy.stamp(at(millis)), at(millis));
            if millis < 4 {
                policy.on_ack_sent();
            }
        }
        assert!(policy.is_due(at(6)));
        assert_eq!(policy.stamp(at(6)), stamp);
    }
}

/// A read acknowledges more than a segment, as far as none was (`tcp_cleanup_rbuf`).
#[test]
fn a_read_answers_more_than_a_segment() {
    for (mode, answers) in [(DelayedAck::Linux, true), (DelayedAck::Rfc1122, false)] {
        let mut policy = measured(mode, HostProfile::Kernel);
        (policy.quick, policy.unacked) = (0, 2 * MSS);
        policy.on_read(false);
        assert_eq!(policy.is_due(Instant::ZERO), answers);
        policy.on_ack_sent();
        policy.on_read(true);
        assert!(!policy.is_due(Instant::ZERO));
    }
}

#[test]
fn linux_compresses_sacks_after_the_third() {
    let mut policy = linux();
    assert_eq!(acks(&mut policy, 16, Duration::from_millis(1)), 16);
    let hole = Progress { advanced: 0, missing: true, ..in_order(16 * MSS) };
    let mut now = Instant::ZERO + Duration::from_secs(1);
    for _ in 0..3 {
        policy.on_data(now, &hole);
        assert!(policy.is_due(now));
        policy.on_ack_sent();
    }
    policy.on_data(now, &hole);
    assert!(!policy.is_due(now));
    now += COMPRESSION_DELAY + COMPRESSION_SLACK;
    assert!(policy.is_due(now));
}

fn hole(rcv_nxt: u64) -> Progress {
    Progress { advanced: 0, missing: true, ..in_order(rcv_nxt) }
}

/// `tcp_delack_timer_handler`: an acknowledgement does not stop the timer, which then releases what is held back.
#[test]
fn an_old_timer_releases_sacks() {
    let mut policy = linux();
    acks(&mut policy, 16, Duration::ZERO);
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    policy.on_data(at(10_100), &in_order(17 * MSS));
    assert_eq!(policy.deadline(), Some(at(50_750)));
    policy.on_data(at(10_200), &in_order(18 * MSS));
    policy.on_ack_sent();
    assert_eq!(policy.deadline(), None);
    for _ in 0..3 {
        policy.on_data(at(11_000), &hole(18 * MSS));
        policy.on_ack_sent();
    }
    policy.on_data(at(50_000), &hole(18 * MSS));
    assert_eq!(policy.deadline(), Some(at(50_750)));
    policy.on_ack_sent();
    policy.on_data(at(50_800), &hole(18 * MSS));
    assert_eq!(policy.deadline(), Some(at(50_800 + 1_100)), "it fires once");
}

/// RFC 5681 §4.2, and `ICSK_ACK_NOW` of Linux.
#[test]
fn what_is_answered_at_once_sets_no_timer() {
    let mut policy = linux();
    acks(&mut policy, 16, Duration::ZERO);
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    policy.demand();
    policy.on_data(at(10_100), &in_order(17 * MSS));
    policy.on_ack_sent();
    for _ in 0..3 {
        policy.on_data(at(11_000), &hole(17 * MSS));
        policy.on_ack_sent();
    }
    policy.on_data(at(50_000), &hole(17 * MSS));
    assert_eq!(policy.deadline(), Some(at(50_000 + 1_100)));
}

/// A segment with CWR demands an answer before its own marks are read (`tcp_ecn_accept_cwr`).
#[test]
fn what_is_demanded_later_was_still_put_off() {
    let mut policy = linux();
    acks(&mut policy, 16, Duration::ZERO);
    policy.on_data(Instant::ZERO, &in_order(17 * MSS));
    policy.demand();
    assert!(policy.is_delaying());
    policy.on_ack_sent();
    assert!(!policy.is_delaying());
}

#[test]
fn a_timer_that_fires_doubles_the_delay() {
    let mut policy = linux();
    acks(&mut policy, 16, Duration::ZERO);
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    policy.on_data(at(10_100), &in_order(17 * MSS));
    policy.on_timeout(at(50_750));
    assert!(policy.is_due(at(50_750)));
    policy.on_ack_sent();
    // 60 ms later: half of 80 ms and these 60.
    policy.on_data(at(70_100), &in_order(18 * MSS));
    assert_eq!(policy.deadline(), Some(on_tick(at(70_100), Duration::from_millis(100))));
}

/// `tcp_event_data_recv` counts in ticks: from 9.6 to 45.2 ms are 36 of them, and half of 55 are 27.
#[test]
fn the_delay_follows_arrivals_in_ticks() {
    let mut policy = linux();
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    policy.on_data(at(9_600), &in_order(MSS));
    policy.delay = Some(Duration::from_millis(55));
    policy.on_data(at(45_200), &in_order(2 * MSS));
    assert_eq!(policy.delay, Some(Duration::from_millis(27 + 36)));
}

/// `tcp_set_rto` after the handshake: a round trip and twice as much, or 200 ms.
#[test]
fn acknowledgements_are_quick_after_a_pause_of_an_rto() {
    for (pause, quick) in [(300, 0), (301, QUICK_ACKS)] {
        let mut policy = linux();
        policy.on_handshake_rtt(Duration::from_millis(100));
        policy.on_data(Instant::ZERO, &in_order(MSS));
        policy.quick = 0;
        policy.on_data(Instant::ZERO + Duration::from_millis(pause), &in_order(2 * MSS));
        assert_eq!(policy.quick, quick, "{pause} ms");
    }
}

/// `tcp_send_delayed_ack` waits no longer than a round trip, or 40 ms.
#[test]
fn a_delay_is_no_longer_than_a_round_trip() {
    let mut policy = linux();
    policy.on_handshake_rtt(Duration::from_micros(50_100));
    policy.quick = 0;
    policy.delay = Some(Duration::from_millis(120));
    policy.last_arrival = Instant::ZERO;
    let now = Instant::ZERO + Duration::from_millis(130);
    policy.on_data(now, &in_order(MSS));
    assert_eq!(policy.deadline(), Some(on_tick(now, Duration::from_millis(51))));
}

/// `__tcp_ack_snd_check`: what a partly filled hole made readable is answered as one of the three.
#[test]
fn a_window_that_cannot_advance_leaves_the_answer_to_the_compression() {
    let mut policy = linux();
    acks(&mut policy, 16, Duration::ZERO);
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut at_once = |hampered| {
        let filled = Progress { advanced: 9 * MSS, missing: true, hampered, ..in_order(30 * MSS) };
        policy.compression = Compression::default();
        policy.on_data(now, &filled);
        let mut acks = 0;
        while policy.is_due(now) {
            policy.on_ack_sent();
            policy.on_data(now, &hole(30 * MSS));
            acks += 1;
        }
        policy.on_ack_sent();
        acks
    };
    assert_eq!((at_once(false), at_once(true)), (4, 3));
}

#[test]
fn a_sender_that_counts_duplicates_gets_each() {
    let mut policy = linux();
    assert_eq!(acks(&mut policy, 16, Duration::from_millis(1)), 16);
    let hole = Progress { advanced: 0, missing: true, selective: false, ..in_order(16 * MSS) };
    let now = Instant::ZERO + Duration::from_secs(1);
    for _ in 0..50 {
        policy.on_data(now, &hole);
        assert!(policy.is_due(now));
        policy.on_ack_sent();
    }
}

/// `tcp_event_data_sent`: an answer within the delay ends quick acknowledgements, one after it does not.
#[test]
fn acknowledgements_wait_for_answers_after_one_in_time() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    for (answer, quick) in [(39, false), (41, true)] {
        let mut policy = linux();
        policy.on_data(at(0), &in_order(MSS));
        policy.on_ack_sent();
        policy.on_data_sent(at(answer));
        policy.on_data(at(100), &in_order(2 * MSS));
        assert_eq!(policy.is_due(at(100)), quick, "{answer} ms");
    }
}

/// `tcp_delack_timer_handler`: the ends no longer answer each other, and the delay is not doubled.
#[test]
fn a_missing_answer_ends_the_wait_for_answers() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut policy = linux();
    policy.on_data(at(0), &in_order(MSS));
    policy.on_ack_sent();
    policy.on_data_sent(at(1));
    policy.on_data(at(100), &in_order(2 * MSS));
    policy.on_timeout(policy.deadline().expect("it waits"));
    policy.on_ack_sent();
    assert_eq!((policy.answers, policy.delay), (false, Some(DELAY)));
}

/// `tcp_enter_quickack_mode` after a segment that had arrived before.
#[test]
fn sixteen_follow_old_data() {
    let mut policy = linux();
    acks(&mut policy, 100, Duration::ZERO);
    policy.on_data_sent(Instant::ZERO);
    policy.on_old_data(100 * MSS);
    policy.on_data(Instant::ZERO, &Progress { advanced: 0, ..in_order(100 * MSS) });
    assert!(policy.is_due(Instant::ZERO));
    policy.on_ack_sent();
    assert_eq!(acks(&mut policy, 115, Duration::ZERO), 15 + 50);
}

/// `tcp_sequence`, `tcp_send_dupack`: what ends below the last acknowledgement is answered out of turn, so sixteen more
/// follow; with half a window of three segments, two (`tcp_incr_quickack`).
#[test]
fn sixteen_follow_the_answer_to_what_was_acknowledged() {
    for (window, quick) in [(100 * MSS, 16), (6 * MSS, 3), (MSS, 2)] {
        let mut policy = linux();
        acks(&mut policy, 100, Duration::ZERO);
        policy.on_old_data(window);
        policy.answer();
        assert!(policy.is_due(Instant::ZERO));
        policy.on_ack_sent();
        assert_eq!(policy.quick, quick);
    }
}

/// Data that leaves carries an acknowledgement. It counts only if one is owed (`tcp_dec_quickack_mode`).
#[test]
fn what_acknowledges_nothing_leaves_the_next_quick() {
    let mut policy = linux();
    policy.on_data(Instant::ZERO, &in_order(MSS));
    for _ in 0..20 {
        policy.on_ack_sent();
    }
    assert_eq!(policy.quick, QUICK_ACKS - 1);
}

/// `tcp_measure_rcv_mss`: two short segments of one length in a row are taken for the sender's full ones, a longer one ends
/// that; those too short for a path's are not.
#[test]
fn linux_measures_how_long_segments_are() {
    let mut policy = linux();
    policy.measure(600, true);
    policy.measure(MSS, false);
    policy.measure(600, true);
    assert_eq!(policy.mss(), MSS, "not in a row");
    policy.measure(600, true);
    assert_eq!(policy.mss(), 600);
    policy.measure(700, false);
    assert_eq!(policy.mss(), 700);
    policy.measure(2 * MSS, false);
    assert_eq!(policy.mss(), MSS, "segments that a driver has put together");
    for len in [100, 100, 60, 60] {
        policy.measure(len, true);
    }
    assert_eq!(policy.mss(), MSS, "pushed, they say nothing of the path");
    policy.measure(100, false);
    policy.measure(100, false);
    assert_eq!(policy.mss(), 100);
    let mut small = AckPolicy::new(DelayedAck::Linux, MSS, HostProfile::Kernel);
    assert_eq!(small.mss(), FIRST_MSS);
    small.measure(100, true);
    assert_eq!(small.mss(), FIRST_MSS, "before a full segment has shown more");
}

/// `tcp_cleanup_rbuf`: ends that answer each other acknowledge a read of two short segments, not of one.
#[test]
fn two_short_segments_are_acknowledged_though_an_answer_may_follow() {
    let mut policy = linux();
    policy.wait_for_data(Instant::ZERO);
    let short = |n| Progress { advanced: 100, ..in_order(n * MSS) };
    policy.measure(100, true);
    policy.on_data(Instant::ZERO, &short(1));
    policy.on_read(true);
    assert!(!policy.is_due(Instant::ZERO));
    policy.measure(90, true);
    policy.on_data(Instant::ZERO, &short(2));
    policy.on_read(true);
    assert!(policy.is_due(Instant::ZERO));
}

/// `__tcp_ack_snd_check`: what must be answered now, as a change of marks, is not one of the three that may follow a gap
/// at once.
#[test]
fn what_is_demanded_is_not_one_of_the_three() {
    let mut policy = linux();
    assert_eq!(acks(&mut policy, 16, Duration::from_millis(1)), 16);
    let now = Instant::ZERO + Duration::from_secs(1);
    policy.demand();
    let answered: Vec<bool> = (0..5)
        .map(|_| {
            policy.on_data(now, &hole(16 * MSS));
            let due = policy.is_due(now);
            policy.on_ack_sent();
            due
        })
        .collect();
    assert_eq!(answered, [true, true, true, true, false]);
}

/// RFC 5681 §4.2 asks for an answer to each repair, Linux's `tcp_data_queue` to the last.
#[test]
fn linux_answers_the_last_repair_at_once() {
    for (mode, more) in [(DelayedAck::Rfc1122, true), (DelayedAck::Linux, false)] {
        let policy = measured(mode, HostProfile::Kernel);
        assert_eq!((policy.answers_repair(true), policy.answers_repair(false)), (more, true));
    }
}
