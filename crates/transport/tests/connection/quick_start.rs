//! Quick-Start (RFC 4782).

use weir_transport::{Config, DelayedAck};
use weir_units::feedback::{QuickStart, RateCode};
use weir_units::{Echo, Feedback, Rate};

use super::pair::Side::Client;
use super::pair::{Pair, RTT, Verdict};
use super::{has_data, is_syn, is_syn_ack, with_stack};

/// 10.24 Mbit/s over 20 ms is 25,600 bytes, or 17 packets of 1,500.
const ASKED: Rate = Rate::from_mbit(11);
const MSS: u64 = 1_448;
const WINDOW: u64 = 17 * MSS;

fn quick(stack: &str) -> Config {
    Config { quick_start: Some(ASKED), delayed_ack: Some(DelayedAck::Off), ..with_stack(stack) }
}

/// A connection whose SYN passes a router that does so.
fn through(config: &Config, router: impl Fn(&mut QuickStart) + 'static) -> Pair {
    let mut pair = Pair::new(config);
    pair.router(move |feedback| match feedback {
        Feedback::QuickStart(request) => router(request),
        other => panic!("{other:?}"),
    });
    pair.drive();
    pair
}

fn agree(request: &mut QuickStart) {
    request.hops += 1;
    request.ttl = request.ttl.wrapping_sub(1);
}

fn cwnd(pair: &Pair) -> u64 {
    pair.client.connection.snapshot().cwnd.get()
}

#[test]
fn an_approved_rate_takes_the_place_of_the_initial_window() {
    for stack in ["reno", "cubic", "newreno/vegas"] {
        let pair = through(&quick(stack), agree);
        let asked = pair.log.iter().find(|p| is_syn(p)).and_then(|p| p.segment.options.feedback);
        assert!(
            matches!(asked, Some(Feedback::QuickStart(r)) if r.rate == RateCode::at_most(ASKED))
        );
        let answer = pair.log.iter().find(|p| is_syn_ack(p)).and_then(|p| p.segment.options.echo);
        assert!(matches!(answer, Some(Echo::QuickStart { .. })));
        assert_eq!(cwnd(&pair), WINDOW, "{stack}");
    }
}

#[test]
fn it_is_spread_over_a_round_trip_and_no_other_segment_carries_anything() {
    let mut pair = through(&quick("reno"), agree);
    pair.log.clear();
    let start = pair.now;
    pair.write(Client, 40 * MSS);
    pair.drive();
    assert!(
        pair.log
            .iter()
            .all(|p| { p.segment.options.feedback.is_none() && p.segment.options.echo.is_none() })
    );
    let first: Vec<_> = pair.log.iter().filter(|p| has_data(p) && p.at < start + RTT).collect();
    assert_eq!(first.len(), 17);
    // The first ten leave at once, as they would without; the others in their time.
    assert!(first[16].at - start > RTT / 4, "{}", first[16].at - start);
}

#[test]
fn a_path_without_routers_approves_everything() {
    assert_eq!(cwnd(&through(&quick("reno"), |_| {})), WINDOW);
}

#[test]
fn what_cannot_be_true_is_not_believed() {
    for (name, router) in [
        ("refused", (|r| r.lower_to(RateCode::NONE, 0)) as fn(&mut QuickStart)),
        ("a router does not take part", |r| r.hops += 1),
        ("a router agrees twice", |r| {
            agree(r);
            r.ttl = r.ttl.wrapping_sub(1);
        }),
        ("the nonce is another", |r| {
            agree(r);
            r.nonce ^= 1;
        }),
        ("more than was asked", |r| {
            agree(r);
            r.rate = RateCode::MAX;
        }),
    ] {
        assert_eq!(cwnd(&through(&quick("reno"), router)), 10 * MSS, "{name}");
    }
}

/// A router that lowers the rate hides the nonce of the higher ones: a router that raises it again does not know
/// them.
#[test]
fn a_lowered_rate_is_taken_and_cannot_be_raised_again() {
    let lower = RateCode::at_most(Rate::from_mbit(6));
    // 5.12 Mbit/s are eight packets, less than the usual ten.
    let pair = through(&quick("reno"), move |request| {
        agree(request);
        request.lower_to(lower, 0x1234_5678);
    });
    assert_eq!(cwnd(&pair), 10 * MSS);
    let pair = through(&Config { initial_window: 2, ..quick("reno") }, move |request| {
        agree(request);
        request.lower_to(lower, 0x1234_5678);
    });
    assert_eq!(cwnd(&pair), 8 * MSS);
    let pair = through(&quick("reno"), move |request| {
        let asked = request.rate;
        agree(request);
        let known = request.nonce;
        request.lower_to(lower, !known);
        request.rate = asked;
    });
    assert_eq!(cwnd(&pair), 10 * MSS);
}

#[test]
fn a_loss_takes_it_back() {
    let mut pair = through(&quick("newreno/reno"), agree);
    pair.lose_first(|p| has_data(p) && p.offset == 3 * MSS);
    pair.write(Client, 17 * MSS);
    pair.drive();
    let snapshot = pair.client.connection.snapshot();
    assert_eq!((snapshot.ssthresh, pair.client.connection.stats().retransmits), (None, 1));
    // Ten, and in slow start one for each of the fourteen that the repair acknowledges.
    assert_eq!(snapshot.cwnd.get(), 24 * MSS);
}

#[test]
fn a_loss_behind_it_is_like_any_other() {
    let mut pair = through(&quick("newreno/reno"), agree);
    pair.lose_first(|p| has_data(p) && p.offset == 30 * MSS);
    pair.write(Client, 60 * MSS);
    pair.drive();
    assert!(pair.client.connection.snapshot().ssthresh.is_some());
}

/// The second SYN asks for nothing: a box on the way may dislike the option.
#[test]
fn a_lost_syn_is_repeated_without_it() {
    let mut pair = Pair::new(&quick("reno"));
    pair.network(|p| match p.segment.options.feedback {
        Some(_) => Verdict::Drop,
        None => Verdict::Deliver,
    });
    pair.drive();
    assert_eq!(pair.client.events, [weir_transport::Event::Connected]);
    assert_eq!(cwnd(&pair), 10 * MSS);
}

#[test]
fn a_controller_that_asks_routers_itself_goes_first() {
    let pair = Pair::connected(&quick("newreno/muzha"));
    assert_eq!(cwnd(&pair), 2 * (MSS - 12));
}
