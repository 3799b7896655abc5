use std::collections::BTreeSet;

use weir_transport::{Config, DelayedAck, Flags, SackBlock, Segment, Timestamps};
use weir_units::{Bytes, Duration, Ecn, Instant};

use super::pair::Side::{Client, Server};
use super::pair::{Pair, Passing, RTT, Verdict};
use super::{has_data, is_syn, with_stack};

const MSS: u64 = 1_448;

/// A connection with a window of 20 segments and `segments` segments to send, the network losing first
/// transmissions of those listed.
fn sending(stack: &str, segments: u64, lost: &'static [u64]) -> Pair {
    let mut pair = Pair::connected(&with_stack(stack));
    let mut highest = 0;
    pair.network(move |p| {
        let first = p.offset >= highest;
        highest = highest.max(p.offset + u64::from(p.segment.payload_len));
        let hit = has_data(p) && first && lost.contains(&(p.offset / MSS));
        if hit { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.write(Client, segments * MSS);
    pair.drive();
    assert_eq!(pair.server.read, segments * MSS, "{stack}");
    pair
}

/// The transmissions of a segment.
fn transmissions(pair: &Pair, segment: u64) -> Vec<Instant> {
    let data = pair.log.iter().filter(|p| p.from == Client && has_data(p));
    data.filter(|p| p.offset / MSS == segment).map(|p| p.at).collect()
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    for stack in [
        "stop-and-wait/none",
        "go-back-n(20)/none",
        "selective-repeat(20)/none",
        "reno/none(20)",
        "newreno/none(20)",
        "sack/none(20)",
        "rack/none(20)",
    ] {
        let pair = sending(stack, 100, &[]);
        let stats = pair.client.connection.stats();
        assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "{stack}");
        assert_eq!(stats.data_segments_sent, 100, "{stack}");
    }
}

/// Three duplicates arrive one round trip after the segment left: no timer is needed.
#[test]
fn three_duplicates_reveal_a_loss_within_a_round_trip() {
    for stack in [
        "go-back-n(20)/none",
        "reno/none(20)",
        "newreno/none(20)",
        "sack/none(20)",
        "rack/none(20)",
    ] {
        let pair = sending(stack, 100, &[30]);
        let sent = transmissions(&pair, 30);
        assert_eq!(sent.len(), 2, "{stack}");
        // Delayed acknowledgements may hold the segments before it back by a millisecond or so.
        assert!((RTT..RTT * 2).contains(&(sent[1] - sent[0])), "{stack}: {:?}", sent[1] - sent[0]);
        let stats = pair.client.connection.stats();
        assert_eq!(stats.timeouts, 0, "{stack}");
        assert!(stats.retransmits_fast >= 1, "{stack}");
        let again = if stack.starts_with("go-back-n") { 2..=20 } else { 1..=1 };
        assert!(again.contains(&stats.retransmits), "{stack}: {}", stats.retransmits);
    }
}

/// The state machine of `reno-002`: in slow start duplicates only count, so the timer reveals the loss.
#[test]
fn a_controller_may_keep_duplicates_from_revealing_a_loss() {
    for recovery in ["go-back-n(20)", "reno", "newreno"] {
        let waits = sending(&format!("{recovery}/reno-002"), 100, &[30]);
        assert_eq!(waits.client.connection.stats().timeouts, 1, "{recovery}");
        let sent = transmissions(&waits, 30);
        assert!(sent[1] - sent[0] >= Duration::from_millis(200), "{recovery}");
        let fast = sending(&format!("{recovery}/reno-002(ssthresh=4)"), 100, &[30]);
        assert_eq!(fast.client.connection.stats().timeouts, 0, "{recovery}");
    }
}

/// What makes go-back-N go back is a parameter. In a window of five at most four duplicates follow.
#[test]
fn go_back_n_goes_back_after_as_many_duplicates_as_its_parameter_says() {
    for (stack, timeouts) in [
        ("go-back-n(5)/none", 0),
        ("go-back-n(5,duplicates=2)/none", 0),
        ("go-back-n(5,duplicates=5)/none", 1),
        ("go-back-n(20,duplicates=off)/none", 1),
    ] {
        let pair = sending(stack, 100, &[30]);
        let stats = pair.client.connection.stats();
        assert_eq!((pair.server.read, stats.timeouts), (100 * MSS, timeouts), "{stack}");
        let sent = transmissions(&pair, 30);
        assert_eq!(sent.len(), 2, "{stack}");
        assert_eq!(sent[1] - sent[0] >= Duration::from_millis(200), timeouts > 0, "{stack}");
    }
}

#[test]
fn schemes_without_duplicates_wait_for_a_timer_and_resend_one_segment() {
    for stack in ["stop-and-wait/none", "selective-repeat(20)/none"] {
        let pair = sending(stack, 100, &[30]);
        let sent = transmissions(&pair, 30);
        assert_eq!(sent.len(), 2, "{stack}");
        assert!(sent[1] - sent[0] >= Duration::from_millis(200), "{stack}");
        assert_eq!(pair.client.connection.stats().retransmits, 1, "{stack}");
    }
}

/// Two holes in one window: with SACK both are known at once, NewReno learns of the second when the
/// first is filled (RFC 6582 §1), neither needs a timer.
#[test]
fn two_losses_in_a_window() {
    for (stack, round_trips) in
        [("sack/none(20)", 1), ("rack/none(20)", 1), ("newreno/none(20)", 2)]
    {
        let pair = sending(stack, 200, &[60, 64]);
        let (first, second) = (transmissions(&pair, 60), transmissions(&pair, 64));
        assert_eq!((first.len(), second.len()), (2, 2), "{stack}");
        let between = second[1] - first[1];
        let expected = RTT * (round_trips - 1);
        assert!(between >= expected && between < expected + RTT, "{stack}: {between:?}");
        assert_eq!(pair.client.connection.stats().timeouts, 0, "{stack}");
    }
}

#[test]
fn a_lost_retransmission_is_noticed_by_rack_without_a_timer() {
    let mut pair = Pair::connected(&with_stack("rack/none(20)"));
    let mut copies = 0;
    pair.network(move |p| {
        let chosen = has_data(p) && p.offset / MSS == 30;
        copies += usize::from(chosen);
        if chosen && copies <= 2 { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.write(Client, 200 * MSS);
    pair.drive();
    assert_eq!(transmissions(&pair, 30).len(), 3);
    assert_eq!(pair.client.connection.stats().timeouts, 0);
}

#[test]
fn a_lost_tail_is_probed_by_rack_and_timed_out_by_sack() {
    let tail: &[u64] = &[98, 99];
    let rack = sending("rack/none(20)", 100, tail);
    let stats = rack.client.connection.stats();
    assert_eq!((stats.retransmits_tlp, stats.retransmits_fast, stats.timeouts), (1, 1, 0));
    let sack = sending("sack/none(20)", 100, tail);
    let stats = sack.client.connection.stats();
    assert_eq!((stats.retransmits_rto, stats.timeouts), (2, 1));
    let [probed, timed_out] = [&rack, &sack].map(|pair| {
        let sent = transmissions(pair, 98);
        sent[1] - sent[0]
    });
    // RFC 8985 §7.2: two round trips; then one more until the probe's answer reveals the other loss.
    assert!((RTT * 3..RTT * 5).contains(&probed), "{probed:?}");
    assert!(timed_out >= Duration::from_millis(200), "{timed_out:?}");
}

/// Segments that arrive one place late cause fewer than three duplicates.
#[test]
fn slight_reordering_causes_no_retransmission() {
    for stack in ["reno/none(20)", "newreno/none(20)", "sack/none(20)", "rack/none(20)"] {
        let mut pair = Pair::connected(&with_stack(stack));
        let spaced = Duration::from_micros(100);
        let mut n = 0;
        pair.network(move |p| {
            n += u64::from(has_data(p));
            match has_data(p) {
                // Spaced out, with every tenth behind the one that follows it.
                true if n % 10 == 0 => Verdict::Late(spaced * (n % 20) + spaced * 3 / 2),
                true => Verdict::Late(spaced * (n % 20)),
                false => Verdict::Deliver,
            }
        });
        pair.write(Client, 20 * MSS);
        pair.drive();
        assert_eq!(pair.server.read, 20 * MSS);
        assert_eq!(pair.client.connection.stats().retransmits, 0, "{stack}");
    }
}

/// A path that pauses for longer than the timeout, then delivers everything: F-RTO or timestamps show
/// that nothing was lost, and the reduction is taken back.
#[test]
fn rack_undoes_a_spurious_timeout() {
    let mut pair = Pair::connected(&with_stack("rack/reno"));
    pair.write(Client, 100 * MSS);
    pair.drive();
    let before = pair.client.connection.snapshot().cwnd;
    let pause_ends = pair.now + Duration::from_millis(900);
    pair.network(move |p| {
        let wait = pause_ends.saturating_since(p.at);
        if has_data(p) { Verdict::Late(wait) } else { Verdict::Deliver }
    });
    pair.write(Client, 10 * MSS);
    pair.drive();
    let stats = *pair.client.connection.stats();
    assert!(stats.timeouts >= 1, "{stats:?}");
    assert!(stats.undone >= 1, "{stats:?}");
    let after = pair.client.connection.snapshot().cwnd;
    assert!(after >= before, "{after:?} against {before:?}");
}

#[test]
fn a_duplicated_segment_is_no_sign_of_loss() {
    for stack in ["reno/none(20)", "newreno/none(20)", "sack/none(20)", "rack/none(20)"] {
        let mut pair = Pair::connected(&with_stack(stack));
        pair.network(|p| {
            if has_data(p) { Verdict::Twice(Duration::from_micros(1)) } else { Verdict::Deliver }
        });
        pair.write(Client, MSS);
        pair.drive();
        pair.write(Client, 2 * MSS);
        pair.drive();
        assert_eq!(pair.client.connection.stats().retransmits, 0, "{stack}");
    }
}

/// What the network doubles was not sent twice: such reports neither count as needless
/// retransmissions nor undo a reduction that real losses caused.
#[test]
fn duplicates_of_the_network_are_not_taken_for_spurious_retransmissions() {
    let mut pair = Pair::connected(&with_stack("rack/none(20)"));
    let mut n = 0;
    pair.network(move |p| {
        n += u64::from(has_data(p));
        match n {
            50 if has_data(p) => Verdict::Drop,
            _ if has_data(p) => Verdict::Twice(Duration::from_micros(1)),
            _ => Verdict::Deliver,
        }
    });
    pair.write(Client, 100 * MSS);
    pair.drive();
    let stats = pair.client.connection.stats();
    assert_eq!(stats.retransmits, 1);
    assert!(stats.retransmits_spurious <= stats.retransmits, "{stats:?}");
}

/// What was sent during an episode and lost opens the next one (Linux's `tcp_time_to_recover`). The
/// first lasts long enough to see that because its retransmission is lost too; that of the second as
/// well, lest it be repaired by then.
#[test]
fn a_loss_during_recovery_is_a_reduction_of_its_own() {
    let [one, two] = [&[30, 30][..], &[30, 30, 80, 80]].map(|lost: &'static [u64]| {
        let mut pair = Pair::connected(&with_stack("rack/reno"));
        let mut left = lost.to_vec();
        pair.network(move |p| {
            let hit = left.iter().position(|segment| has_data(p) && p.offset / MSS == *segment);
            hit.map_or(Verdict::Deliver, |index| {
                left.remove(index);
                Verdict::Drop
            })
        });
        pair.write(Client, 200 * MSS);
        pair.drive();
        let stats = *pair.client.connection.stats();
        assert_eq!((stats.retransmits_fast, stats.timeouts), (lost.len() as u64, 0), "{stats:?}");
        stats.reductions
    });
    assert_eq!((one, two), (1, 2));
}

/// Linux's switches: without probes a lost tail waits for the timeout; counting finds a loss with the
/// third SACK, but never a retransmission that is lost.
#[test]
fn parts_of_rack_can_be_switched_off() {
    let tail: &[u64] = &[98, 99];
    let pair = sending("rack(tlp=off)/none(20)", 100, tail);
    let stats = pair.client.connection.stats();
    assert_eq!((stats.retransmits_tlp, stats.timeouts), (0, 1));
    for (stack, timeouts) in [("rack/none(20)", 0), ("rack(detection=count)/none(20)", 1)] {
        let mut pair = Pair::connected(&with_stack(stack));
        let mut copies = 0;
        pair.network(move |p| {
            let chosen = has_data(p) && p.offset / MSS == 30;
            copies += usize::from(chosen);
            if chosen && copies <= 2 { Verdict::Drop } else { Verdict::Deliver }
        });
        pair.write(Client, 200 * MSS);
        pair.drive();
        let stats = pair.client.connection.stats();
        assert_eq!((transmissions(&pair, 30).len(), stats.timeouts), (3, timeouts), "{stack}");
    }
}

/// RFC 9002 §7.3.2: without metering the smaller window holds at once, so that the sender pauses for half a flight.
/// PRR sends on every second acknowledgement.
#[test]
fn without_prr_a_sender_pauses_until_its_flight_fits_the_smaller_window() {
    let [metered, cut] = ["rack/reno", "rack(prr=off)/reno"].map(|stack| {
        let mut pair = Pair::connected(&with_stack(stack));
        let (mut free, mut lost) = (Instant::ZERO, None);
        pair.network(move |p| {
            if !has_data(p) {
                return Verdict::Deliver;
            }
            if lost.is_none() && p.offset / MSS == 200 {
                lost = Some(p.at);
                return Verdict::Drop;
            }
            free = free.max(p.at) + Duration::from_millis(1);
            Verdict::Late(free - p.at)
        });
        pair.write(Client, 600 * MSS);
        pair.drive();
        assert_eq!(pair.client.connection.stats().reductions, 1, "{stack}");
        let during = transmissions(&pair, 200)[0]..=transmissions(&pair, 200)[1] + RTT;
        let data = pair.log.iter().filter(|p| p.from == Client && has_data(p));
        let left: Vec<_> = data.map(|p| p.at).filter(|at| during.contains(at)).collect();
        left.windows(2).map(|two| two[1] - two[0]).max().expect("pauses")
    });
    assert!(cut > metered * 10, "{metered} {cut}");
}

/// Linux meters NewReno's reduction too: the duplicates that stand for deliveries let new data out
/// while the hole is filled (RFC 6937 §3.1).
#[test]
fn without_sack_rack_still_meters_its_reduction() {
    let mut pair = Pair::connected(&Config { sack: false, ..with_stack("rack/reno") });
    let mut lost = false;
    pair.network(move |p| {
        let hit = !lost && has_data(p) && p.offset / MSS == 50;
        lost |= hit;
        if hit { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.write(Client, 400 * MSS);
    pair.drive();
    let stats = pair.client.connection.stats();
    assert_eq!((stats.retransmits, stats.timeouts, stats.reductions), (1, 0, 1), "{stats:?}");
    let again = transmissions(&pair, 50)[1];
    let data = pair.log.iter().filter(|p| p.from == Client && has_data(p));
    let during = data.filter(|p| (again..again + RTT).contains(&p.at)).count();
    assert!(during > 10, "{during} left while the hole was filled");
}

/// A peer without SACK is served by NewReno: no timeout for a single loss.
#[test]
fn without_selective_acknowledgements_duplicates_reveal_a_loss() {
    for stack in ["sack/none(20)", "rack/none(20)"] {
        let mut pair = Pair::connected(&Config { sack: false, ..with_stack(stack) });
        pair.lose_nth(30, has_data);
        pair.write(Client, 100 * MSS);
        pair.drive();
        let stats = pair.client.connection.stats();
        assert_eq!((stats.retransmits_fast, stats.timeouts), (1, 0), "{stack}: {stats:?}");
    }
}

/// RFC 2018 §8: a receiver may discard what it acknowledged selectively; a timeout sends it again.
#[test]
fn what_a_receiver_takes_back_is_sent_again() {
    let mut pair = Pair::connected(&with_stack("sack/none(20)"));
    pair.lose_first(has_data);
    pair.write(Client, MSS);
    pair.drive_for(Duration::from_nanos(1));
    let sent = pair.log.iter().find(|p| has_data(p)).expect("sent").segment;
    let seen = sent.options.timestamps.expect("agreed");
    let mut lie = Segment { seq: sent.ack, ack: sent.seq, flags: Flags::ACK, ..sent };
    lie.payload_len = 0;
    lie.options.timestamps = Some(Timestamps { value: seen.echo, echo: seen.value });
    lie.options.sack.push(SackBlock { start: sent.seq, end: sent.seq + sent.payload_len });
    pair.client.connection.handle_segment(pair.now, &lie, Ecn::NotEct);
    pair.drive();
    assert_eq!(pair.server.read, MSS);
}

/// One episode, one cut: however many segments of a window are lost (RFC 6582, RFC 6675 §5).
#[test]
fn a_window_is_cut_once_per_episode() {
    for stack in ["newreno/reno", "sack/reno", "rack/reno"] {
        let pair = sending(stack, 400, &[100, 102, 105]);
        let stats = pair.client.connection.stats();
        assert_eq!((stats.reductions, stats.timeouts), (1, 0), "{stack}: {stats:?}");
    }
}

#[test]
fn a_congestion_mark_cuts_without_retransmission() {
    let config = Config { ecn: Some(true), ..with_stack("rack/reno") };
    let mut pair = Pair::connected(&config);
    let marked = |p: &Passing| p.from == Client && p.offset / MSS == 40;
    pair.network(move |p| if marked(p) { Verdict::Mark } else { Verdict::Deliver });
    pair.write(Client, 200 * MSS);
    pair.drive();
    assert_eq!(pair.server.read, 200 * MSS);
    let stats = pair.client.connection.stats();
    assert_eq!((stats.reductions, stats.retransmits), (1, 0), "{stats:?}");
}

#[test]
fn slow_start_doubles_per_round_trip() {
    let config =
        Config { delayed_ack: Some(DelayedAck::Off), initial_window: 2, ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.write(Client, 1_000 * MSS);
    for round in 0..6 {
        pair.drive_for(Duration::from_nanos(1));
        let cwnd = pair.client.connection.snapshot().cwnd;
        assert_eq!(cwnd, Bytes((2 * MSS) << round), "round {round}");
        pair.drive_for(RTT - Duration::from_nanos(1));
    }
    assert_eq!(pair.now - start, RTT * 6);
    assert_eq!(pair.server.events.len(), 1, "still open: {:?}", Server);
}

/// Segments resent in vain are answered by duplicates; these must not make the sender go back again,
/// and again.
#[test]
fn going_back_in_vain_does_not_feed_on_itself() {
    for late in 1..40 {
        let mut pair = Pair::connected(&with_stack("go-back-n(12)/none"));
        let mut n = 0;
        pair.network(move |p| {
            n += u64::from(has_data(p));
            let hit = has_data(p) && n < 200 && n % 7 == 0;
            if hit { Verdict::Late(Duration::from_millis(late)) } else { Verdict::Deliver }
        });
        pair.write(Client, 400 * MSS);
        pair.drive();
        // 28 late segments, each of which may cost two windows of 12.
        let retransmits = pair.client.connection.stats().retransmits;
        assert!((100..28 * 2 * 12).contains(&retransmits), "{late} ms: {retransmits}");
    }
}

/// The same where a queue of half a second has come up since the shortest round trip was measured.
#[test]
fn going_back_in_vain_does_not_feed_on_itself_behind_a_queue() {
    let mut pair = Pair::connected(&with_stack("go-back-n(12)/none"));
    let (mut sent, mut free) = (0, pair.now);
    pair.network(move |p| {
        if !has_data(p) {
            return Verdict::Deliver;
        }
        sent += 1;
        let jam = if sent == 100 { Duration::from_millis(500) } else { Duration::ZERO };
        free = free.max(p.at) + jam + Duration::from_millis(1);
        Verdict::Late(free - p.at)
    });
    pair.write(Client, 2_000 * MSS);
    pair.drive();
    // Two timeouts while the queue is there, and one window for the duplicates of each.
    let stats = pair.client.connection.stats();
    assert_eq!(pair.server.read, 2_000 * MSS);
    assert!((12..5 * 12).contains(&stats.retransmits), "{stats:?}");
}

/// The same before a round trip could be measured: no timestamps, and the SYN was sent twice.
#[test]
fn going_back_before_a_round_trip_is_known_does_not_feed_on_itself_either() {
    let config = Config { timestamps: false, ..with_stack("go-back-n(12)/none") };
    let mut pair = Pair::new(&config);
    let mut n = 0;
    pair.network(move |p| {
        n += u32::from(has_data(p) || is_syn(p));
        match n {
            // The SYN and the first segment.
            1 | 3 => Verdict::Drop,
            4..200 if has_data(p) => Verdict::Twice(Duration::from_millis(2)),
            _ => Verdict::Deliver,
        }
    });
    pair.write(Client, 100 * MSS);
    pair.drive();
    let retransmits = pair.client.connection.stats().retransmits;
    assert!((1..300).contains(&retransmits), "{retransmits}");
}

/// RFC 5681 §3.2: fast recovery ends with the first new acknowledgement, so a loss after that is the
/// next one, though it hits what was outstanding at the first.
#[test]
fn go_back_n_ends_its_recovery_with_the_first_progress() {
    let mut pair = Pair::connected(&with_stack("go-back-n(20)/reno"));
    let mut sent = [0; 100];
    pair.network(move |p| {
        if !has_data(p) {
            return Verdict::Deliver;
        }
        let segment = (p.offset / MSS) as usize;
        sent[segment] += 1;
        let hit = (segment, sent[segment]) == (30, 1) || (segment, sent[segment]) == (34, 2);
        if hit { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.write(Client, 100 * MSS);
    pair.drive();
    let stats = pair.client.connection.stats();
    assert_eq!((pair.server.read, stats.reductions, stats.timeouts), (100 * MSS, 2, 0));
}

/// `tcp_rate_check_app_limited` asks when the application comes with more: what is sent again
/// meanwhile is bounded by the network, and may lower the estimate of its rate.
#[test]
fn a_repair_bounds_the_delivery_rate_and_a_short_message_does_not() {
    let mut pair = Pair::connected(&with_stack("rack/bbr"));
    for _ in 0..3 {
        pair.write(Client, 10_000);
        pair.drive_for(RTT * 5);
    }
    let before = pair.client.connection.delivery_rate().expect("a rate");
    pair.write(Client, 1_000);
    pair.drive_for(RTT * 5);
    assert_eq!(pair.client.connection.delivery_rate(), Some(before));
    pair.lose_nth(3, |p| p.from == Client && has_data(p));
    pair.write(Client, 10_000);
    pair.drive_for(RTT * 5);
    let after = pair.client.connection.delivery_rate().expect("a rate");
    assert!(after < before, "{after} after {before}");
}

/// Segments that arrive in one batch are acknowledged together. More ranges than an acknowledgement has
/// blocks for follow in the next: what the sender never hears of it sends again.
#[test]
fn a_batch_with_many_holes_is_reported_whole() {
    let holes = 10;
    let mut pair = Pair::connected(&Config::for_datagrams());
    pair.write(Client, 1_000);
    pair.drive();
    let data = pair.log.iter().find(|p| p.from == Client && has_data(p)).expect("sent").segment;
    let (now, server) = (pair.now, &mut pair.server.connection);
    for n in 1..=holes {
        let ahead = Segment { seq: data.seq + 1_000 + n * 2_000, ..data };
        server.handle_segment(now, &ahead, Ecn::NotEct);
    }
    let acks: Vec<_> = std::iter::from_fn(|| server.poll_transmit(now)).collect();
    let blocks = acks.iter().flat_map(|ack| ack.segment.options.sack.as_slice());
    let reported: BTreeSet<_> = blocks.map(|block| block.start.0).collect();
    assert_eq!(reported.len(), holes as usize, "{reported:?}");
    assert_eq!(acks.len(), 4, "three blocks each");
}
