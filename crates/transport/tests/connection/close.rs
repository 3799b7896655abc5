use weir_transport::{Config, Event, Flags};
use weir_units::{Duration, Ecn};

use super::pair::Side::{Client, Server};
use super::pair::{ONE_WAY, Pair, Passing, RTT, Reading, Verdict};
use super::{has_data, is_fin, is_pure_ack};

/// The client closes, half a second later the server does: four separate segments.
fn close_one_after_the_other(pair: &mut Pair) {
    pair.server.reading = Reading::Manual;
    pair.close(Client);
    pair.drive_for(Duration::from_millis(500));
    pair.close(Server);
    pair.drive();
}

fn assert_both_closed(pair: &Pair) {
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.events.last(), Some(&Event::Closed), "{:?}", end.events);
        assert!(end.connection.is_closed());
    }
}

#[test]
fn four_segments_close_a_connection() {
    let mut pair = Pair::connected(&Config::default());
    let start = pair.now;
    close_one_after_the_other(&mut pair);
    let sent: Vec<_> = pair.log.iter().map(|p| (p.at - start, p.from, is_fin(p))).collect();
    let later = Duration::from_millis(500);
    let expected = [
        (Duration::ZERO, Client, true),
        (ONE_WAY, Server, false),
        (later, Server, true),
        (later + ONE_WAY, Client, false),
    ];
    assert_eq!(sent, expected);
    assert_both_closed(&pair);
    use Event::{Closed, Connected, Finished, Flushed};
    assert_eq!(pair.client.events, [Connected, Flushed, Finished, Closed]);
    assert_eq!(pair.server.events, [Connected, Finished, Flushed, Closed]);
    let time_wait = later + ONE_WAY + Config::default().time_wait;
    assert_eq!(pair.now - start, time_wait, "the side that closed first waits");
}

#[test]
fn each_of_the_four_may_be_lost() {
    let picks: [fn(&Passing) -> bool; 4] = [
        |p| p.from == Client && is_fin(p),
        |p| p.from == Server && is_pure_ack(p),
        |p| p.from == Server && is_fin(p),
        |p| p.from == Client && is_pure_ack(p),
    ];
    for (n, lost) in picks.into_iter().enumerate() {
        let mut pair = Pair::connected(&Config::default());
        pair.lose_first(lost);
        close_one_after_the_other(&mut pair);
        assert_both_closed(&pair);
        let fins = pair.log.iter().filter(|p| is_fin(p)).count();
        assert_eq!(fins, 3, "segment {n}: one FIN had to be sent again");
    }
}

#[test]
fn both_sides_may_close_at_once() {
    let mut pair = Pair::connected(&Config::default());
    let start = pair.now;
    pair.close(Client);
    pair.close(Server);
    pair.drive();
    assert_both_closed(&pair);
    assert_eq!(pair.log.iter().filter(|p| is_fin(p)).count(), 2);
    use Event::{Closed, Connected, Finished, Flushed};
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.events, [Connected, Finished, Flushed, Closed]);
    }
    assert_eq!(pair.now - start, RTT + Config::default().time_wait, "both wait (RFC 9293 §3.6)");
}

#[test]
fn data_goes_before_the_end_of_the_stream() {
    let mut pair = Pair::connected(&Config::default());
    pair.write(Client, 100_000);
    pair.close(Client);
    pair.drive();
    assert_eq!(pair.server.read, 100_000);
    assert_both_closed(&pair);
}

#[test]
fn one_direction_may_stay_open() {
    let mut pair = Pair::connected(&Config::default());
    pair.server.reading = Reading::Manual;
    pair.close(Client);
    pair.drive_for(Duration::from_secs(1));
    pair.write(Server, 200_000);
    pair.close(Server);
    pair.drive();
    assert_eq!(pair.client.read, 200_000);
    assert_both_closed(&pair);
}

#[test]
fn time_wait_answers_a_repeated_end_and_starts_over() {
    let mut pair = Pair::connected(&Config::default());
    let start = pair.now;
    pair.lose_nth(0, |p| p.from == Client && is_pure_ack(p));
    close_one_after_the_other(&mut pair);
    let acks: Vec<_> = pair.log.iter().filter(|p| p.from == Client && is_pure_ack(p)).collect();
    assert_eq!(acks.len(), 2);
    assert!(acks[1].at > acks[0].at);
    assert_eq!(pair.now, acks[1].at + Config::default().time_wait);
    assert!(pair.now > start);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = Pair::connected(&Config::default());
    pair.server.reading = Reading::Manual;
    pair.write(Client, 50_000);
    pair.drive_for(RTT);
    pair.abort(Client);
    pair.drive();
    assert!(pair.log.iter().any(|p| p.segment.flags.contains(Flags::RST)));
    let [Event::Connected, Event::Failed(error)] = &pair.server.events[..] else {
        panic!("{:?}", pair.server.events);
    };
    assert!(error.to_string().contains("reset"), "{error}");
    for end in [&pair.client, &pair.server] {
        assert!(end.connection.is_closed());
        assert_eq!(end.connection.next_timeout(pair.now), None);
    }
}

#[test]
fn a_reset_from_outside_the_window_is_ignored() {
    let mut pair = Pair::connected(&Config::default());
    pair.write(Client, 1);
    pair.drive();
    let now = pair.now;
    let mut forged = pair.log.iter().find(|p| has_data(p)).expect("sent").segment;
    forged.flags = Flags::RST;
    forged.payload_len = 0;
    // RFC 5961 §3.2: before the window nothing happens; within, but not at its start, a challenge.
    for ahead in [0u32, 1_000] {
        let mut segment = forged;
        segment.seq = forged.seq + ahead;
        pair.server.connection.handle_segment(now, &segment, Ecn::NotEct);
        assert!(!pair.server.connection.is_closed(), "{ahead}");
    }
    forged.seq = forged.seq + 1;
    pair.server.connection.handle_segment(now, &forged, Ecn::NotEct);
    assert!(pair.server.connection.is_closed(), "exactly the next number expected");
}

#[test]
fn a_corrupted_end_is_sent_again() {
    let mut pair = Pair::connected(&Config::default());
    let mut corrupted = 0;
    pair.network(move |p| {
        corrupted += usize::from(is_fin(p));
        if is_fin(p) && corrupted == 1 { Verdict::Corrupt(107) } else { Verdict::Deliver }
    });
    pair.close(Client);
    pair.drive();
    assert_eq!(pair.server.malformed, 1);
    assert_both_closed(&pair);
}
