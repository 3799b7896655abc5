//! What routers tell the sender by way of the receiver.

use weir_transport::{Config, DelayedAck, Options};
use weir_units::feedback::Drai;
use weir_units::{Duration, Echo, Feedback};

use super::pair::Side::{Client, Server};
use super::pair::{ONE_WAY, Pair, Passing};
use super::{has_data, is_pure_ack, is_syn, is_syn_ack, with_stack};

/// What is left of a segment's 1448 bytes next to an index and the echo of one.
const PAYLOAD: u32 = 1_448 - 12;

fn muzha(delayed_ack: DelayedAck) -> Config {
    Config { delayed_ack: Some(delayed_ack), ..with_stack("newreno/muzha") }
}

/// A router whose indices come in turn, one for each packet that carries any; 3 after the last.
fn says(levels: &'static [u8]) -> impl FnMut(&mut Feedback) + 'static {
    let mut levels = levels.iter();
    move |feedback| match feedback {
        Feedback::Drai(drai) => drai.stamp(levels.next().copied().unwrap_or(3)),
        other => panic!("{other:?}"),
    }
}

fn echoed(pair: &Pair) -> Vec<u8> {
    let acks = pair.log.iter().filter(|p| p.from == Server && is_pure_ack(p));
    acks.filter_map(|p| match p.segment.options.echo {
        Some(Echo::Drai(Drai { level, hops: 1 })) => Some(level),
        None => None,
        other => panic!("{other:?}"),
    })
    .collect()
}

fn option(passing: &Passing) -> (bool, bool) {
    let Options { feedback, echo, .. } = passing.segment.options;
    (feedback.is_some(), echo.is_some())
}

#[test]
fn it_is_offered_on_the_syn_and_carried_by_data_alone() {
    let mut pair = Pair::new(&muzha(DelayedAck::Off));
    pair.write(Client, 20_000);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.server.read, 20_000);
    let mut seen = 0;
    for passing in &pair.log {
        let expected = match passing.from {
            Client => (is_syn(passing) || has_data(passing), false),
            // The answer to the confirmation of the handshake, if any, has nothing to return.
            Server => (false, option(passing).1),
        };
        assert_eq!(option(passing), expected, "{passing:?}");
        seen += usize::from(has_data(passing));
    }
    assert!(seen > 10);
    assert!(pair.log.iter().any(|p| is_syn_ack(p) && option(p) == (false, true)));
    let acks = pair.log.iter().filter(|p| p.from == Server && option(p).1).count();
    assert_eq!(acks, seen + 1, "each acknowledgement returns what it answers");
}

#[test]
fn who_asks_no_router_bears_nothing() {
    let mut pair = Pair::connected(&with_stack("newreno/reno"));
    pair.write(Client, 20_000);
    pair.drive();
    assert!(pair.log.iter().all(|passing| option(passing) == (false, false)));
}

/// A peer that needs nothing itself still answers, and one that is not asked does not.
#[test]
fn either_side_may_want_it_alone() {
    let (wants, bears) = (muzha(DelayedAck::Off), with_stack("newreno/reno"));
    for (client, server, offered) in [(&wants, &bears, true), (&bears, &wants, false)] {
        let mut pair = Pair::with_configs(client, server);
        pair.write(Client, 20_000);
        pair.write(Server, 20_000);
        pair.drive_for(Duration::from_secs(2));
        assert_eq!((pair.server.read, pair.client.read), (20_000, 20_000));
        let carried = |side| pair.log.iter().any(|p| p.from == side && has_data(p) && option(p).0);
        assert_eq!((carried(Client), carried(Server)), (offered, false));
    }
}

/// An answer that comes before the delayed acknowledgement of its question.
#[test]
fn data_both_carries_and_returns() {
    let mut pair = Pair::connected(&muzha(DelayedAck::Rfc1122));
    pair.router(says(&[4, 5]));
    pair.write(Client, 100);
    pair.drive_for(ONE_WAY + Duration::from_millis(1));
    pair.write(Server, 100);
    pair.drive();
    let answer = pair.log.iter().find(|p| p.from == Server && has_data(p)).expect("an answer");
    let Options { feedback, echo, .. } = answer.segment.options;
    assert_eq!(feedback, Some(Feedback::Drai(Drai { level: 5, hops: 0 })));
    assert_eq!(echo, Some(Echo::Drai(Drai { level: 4, hops: 1 })));
}

#[test]
fn segments_are_shorter_by_what_the_option_takes() {
    let mut pair = Pair::connected(&muzha(DelayedAck::Rfc1122));
    pair.write(Client, 100_000);
    pair.drive();
    let longest = pair.log.iter().filter(|p| has_data(p)).map(|p| p.segment.payload_len).max();
    assert_eq!(longest, Some(PAYLOAD));
    let plain = 20 + 12 + 1_448;
    let fits = |p: &Passing| p.segment.header_len() as u32 + p.segment.payload_len <= plain;
    assert!(pair.log.iter().all(fits));
}

#[test]
fn each_acknowledgement_returns_the_index_of_its_packet() {
    let mut pair = Pair::connected(&muzha(DelayedAck::Off));
    pair.router(says(&[5, 4, 2, 5, 1]));
    pair.write(Client, 5 * u64::from(PAYLOAD));
    pair.drive();
    assert_eq!(echoed(&pair), [5, 4, 2, 5, 1]);
}

#[test]
fn one_for_two_packets_returns_the_smaller() {
    let mut pair = Pair::connected(&muzha(DelayedAck::Rfc1122));
    pair.router(says(&[5, 4, 2, 5, 3, 3]));
    pair.write(Client, 6 * u64::from(PAYLOAD));
    pair.drive();
    assert_eq!(echoed(&pair), [4, 2, 3]);
}

#[test]
fn the_window_follows_what_routers_say() {
    let mut pair = Pair::connected(&muzha(DelayedAck::Off));
    pair.router(says(&[5; 62]));
    pair.write(Client, 1_000_000);
    pair.drive();
    assert_eq!(pair.server.read, 1_000_000);
    // 2, 4, 8, 16 and 32 packets for the doublings, then the routers say 3.
    let cwnd = pair.client.connection.snapshot().cwnd.get() / u64::from(PAYLOAD);
    assert_eq!(cwnd, 64);
}

/// Losses between two acknowledgements that speed up are taken for the fault of the medium.
#[test]
fn a_loss_without_a_warning_leaves_the_window_alone() {
    for (levels, shrinks) in [(&[5; 62], false), (&[1; 62], true)] {
        let mut pair = Pair::connected(&muzha(DelayedAck::Off));
        pair.router(says(&[5; 62]));
        pair.write(Client, 62 * u64::from(PAYLOAD));
        pair.drive();
        let before = pair.client.connection.snapshot().cwnd;
        pair.router(says(levels));
        pair.lose_first(|p| has_data(p) && p.offset == 65 * u64::from(PAYLOAD));
        pair.write(Client, 20 * u64::from(PAYLOAD));
        pair.drive();
        let stats = pair.client.connection.stats();
        assert_eq!((stats.retransmits_fast, stats.timeouts), (1, 0));
        let after = pair.client.connection.snapshot().cwnd;
        assert_eq!(after < before, shrinks, "{before:?} to {after:?}");
    }
}
