//! Pacing that the configuration asks for.

use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rate};

use super::pair::Side::Client;
use super::pair::{Pair, RTT};
use super::{has_data, with_stack};

fn departures(pair: &Pair) -> Vec<Instant> {
    pair.log.iter().filter(|p| p.from == Client && has_data(p)).map(|p| p.at).collect()
}

/// Every stack keeps to it, also those that pace by themselves or not at all.
#[test]
fn no_stack_exceeds_the_largest_pacing_rate() {
    const SEGMENTS: u64 = 1_000;
    for stack in ["rack/bbr", "rack/cubic", "sack/reno", "go-back-n/none", "stop-and-wait/none"] {
        let config = Config { max_pacing_rate: Some(Rate::from_mbit(10)), ..with_stack(stack) };
        let mut pair = Pair::connected(&config);
        pair.write(Client, SEGMENTS * 1_448);
        pair.drive();
        assert_eq!(pair.server.read, SEGMENTS * 1_448);
        let sent = departures(&pair);
        // The first ten leave at once (Linux's initial window).
        let took = *sent.last().expect("sent") - sent[0];
        let least = Rate::from_mbit(10).transmit_time(Bytes((SEGMENTS - 11) * 1_448), &mut 0);
        assert!(took >= least, "{stack}: {took} for what takes {least}");
    }
}

/// RFC 9000 §7.7: a large first window is spread over the handshake's round trip.
#[test]
fn a_large_first_window_is_spread_over_a_round_trip() {
    const SEGMENTS: u32 = 200;
    for (pace, shortest) in [(false, Duration::ZERO), (true, RTT.mul_ratio(9, 10))] {
        let config = Config {
            initial_window: SEGMENTS,
            pace_initial_window: pace,
            delayed_ack: Some(weir_transport::DelayedAck::Off),
            ..with_stack("rack/cubic")
        };
        let mut pair = Pair::connected(&config);
        // The server's first acknowledgement opens a window that 16 bits cannot.
        pair.write(Client, 1);
        pair.drive();
        pair.log.clear();
        pair.write(Client, u64::from(SEGMENTS) * 1_448);
        pair.drive_for(RTT + RTT / 2);
        let sent = departures(&pair);
        assert!(sent.len() >= SEGMENTS as usize, "{}", sent.len());
        let took = sent[SEGMENTS as usize - 1] - sent[0];
        assert!(took >= shortest && took <= RTT, "{pace}: {took}");
        let at_once = sent.iter().filter(|at| **at == sent[0]).count();
        assert!(pace == (at_once <= 10), "{at_once} at once");
    }
}

/// RFC 9002 §7.7: without it the acknowledgements of a flight that arrive together release the next at once.
#[test]
fn a_window_is_spread_over_its_round_trip() {
    for (pace_window, most) in [(false, 20), (true, 2)] {
        let config = Config { pace_window, ..with_stack("rack/none(40)") };
        let mut pair = Pair::connected(&config);
        pair.write(Client, 400 * 1_448);
        pair.drive();
        let sent = departures(&pair);
        // The first ten leave at once.
        let at_once = sent[10..].chunk_by(|one, next| one == next).map(<[_]>::len).max();
        let at_once = at_once.expect("sent");
        assert!(if pace_window { at_once <= most } else { at_once >= most }, "{at_once}");
    }
}

/// After a pause the sender makes up for the configured time, and for no more.
#[test]
fn a_pause_is_made_up_for_as_far_as_configured() {
    for (millis, expected) in [(0, 1), (10, 10)] {
        let config = Config {
            max_pacing_rate: Some(Rate::from_mbit(12)),
            pacing_catch_up: Duration::from_millis(millis),
            mss: 1_500,
            ..with_stack("rack/none(100)")
        };
        let at_once = sent_at_once(&mut Pair::connected(&config));
        assert!((expected..=expected + 1).contains(&at_once), "{millis}: {at_once} at once");
    }
}

/// How many of 50 segments leave at once after a pause of 100 ms.
fn sent_at_once(pair: &mut Pair) -> usize {
    pair.write(Client, 50 * 1_500);
    pair.drive();
    pair.drive_for(Duration::from_millis(100));
    pair.log.clear();
    pair.write(Client, 50 * 1_500);
    pair.drive();
    let sent = departures(pair);
    sent.iter().filter(|at| **at == sent[0]).count()
}

/// What was lost may have been a burst too large for a queue: the sender makes up for less from then on.
#[test]
fn after_a_loss_less_of_a_pause_is_made_up_for() {
    for (loses, after_loss, expected) in [(false, 3, 10), (true, 3, 3), (true, 20, 10)] {
        let config = Config {
            max_pacing_rate: Some(Rate::from_mbit(12)),
            pacing_catch_up: Duration::from_millis(10),
            pacing_catch_up_after_loss: Some(Duration::from_millis(after_loss)),
            mss: 1_500,
            ..with_stack("rack/none(100)")
        };
        let mut pair = Pair::connected(&config);
        if loses {
            pair.lose_nth(5, |passing| passing.from == Client);
        }
        let at_once = sent_at_once(&mut pair);
        assert!(
            (expected..=expected + 1).contains(&at_once),
            "{loses}, {after_loss} ms: {at_once}"
        );
    }
}

/// Linux's `tcp_tsq_write`: pacing's timer sends new data too, after RACK's timer has found a loss. BBR's window stands
/// meanwhile.
#[test]
fn new_data_goes_on_after_racks_timer_where_it_is_paced() {
    let config = Config {
        max_pacing_rate: Some(Rate::from_mbit(10)),
        host_profile: weir_transport::HostProfile::Kernel,
        ..with_stack("rack/bbr")
    };
    let mut pair = Pair::connected(&config);
    pair.write(Client, 12 * 1_448);
    pair.drive();
    pair.log.clear();
    pair.lose_first(has_data);
    pair.write(Client, 2 * 1_448);
    pair.drive_for(RTT + Duration::from_millis(2));
    pair.write(Client, 200 * 1_448);
    pair.drive_for(RTT - Duration::from_millis(3));
    let sent = departures(&pair);
    let from = sent[0] + RTT + RTT / 4 + Duration::from_millis(3);
    let later = sent.iter().filter(|at| **at > from).count();
    assert!(later > 5, "{later} of {}", sent.len());
}
