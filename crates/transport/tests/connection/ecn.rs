//! Explicit congestion notification: RFC 3168 as Linux does it, and DCTCP's echo (RFC 8257).

use weir_cc::RecoveryState;
use weir_transport::{Config, Flags};
use weir_units::{Bytes, Duration, Ecn};

use super::pair::Side::{Client, Server};
use super::pair::{Pair, Passing, RTT, Verdict};
use super::{has_data, is_syn, is_syn_ack, with_stack};

const MSS: u64 = 1_448;

fn ecn(stack: &str) -> Config {
    Config { ecn: Some(true), ..with_stack(stack) }
}

/// A transfer of `segments` over a connection on whose way those picked are marked.
fn marked(config: &Config, segments: u64, which: impl Fn(u64) -> bool + 'static) -> Pair {
    let mut pair = Pair::connected(config);
    pair.network(move |p| {
        if has_data(p) && which(p.offset / MSS) { Verdict::Mark } else { Verdict::Deliver }
    });
    pair.write(Client, segments * MSS);
    pair.drive();
    assert_eq!(pair.server.read, segments * MSS);
    pair
}

fn echoes(passing: &Passing) -> bool {
    passing.from == Server && passing.segment.flags.contains(Flags::ECE)
}

#[test]
fn it_is_used_if_both_sides_want_it_and_by_default_if_the_controller_needs_it() {
    let (on, off) = (ecn("reno"), with_stack("reno"));
    for (client, server, agreed) in [(&on, &on, true), (&on, &off, false), (&off, &on, false)] {
        let mut pair = Pair::with_configs(client, server);
        pair.write(Client, 10 * MSS);
        pair.drive();
        assert!(pair.log.iter().filter(|p| has_data(p)).all(|p| (p.ecn == Ecn::Ect0) == agreed));
    }
    let refusing = Config { ecn: Some(false), ..with_stack("dctcp") };
    for (config, offered) in [(with_stack("dctcp"), true), (refusing, false)] {
        let mut pair = Pair::new(&config);
        pair.drive();
        let offer = Flags::ECE.with(Flags::CWR);
        let syn = pair.log.iter().find(|p| is_syn(p)).expect("a SYN");
        assert_eq!(syn.segment.flags.contains(offer), offered);
    }
}

/// RFC 3168 §6.1.1.1: what dropped the first SYN may have disliked the offer.
#[test]
fn a_syn_that_is_sent_again_offers_nothing() {
    let mut pair = Pair::new(&ecn("reno"));
    pair.lose_first(is_syn);
    pair.drive();
    let offers: Vec<bool> = pair
        .log
        .iter()
        .filter(|p| is_syn(p))
        .map(|p| p.segment.flags.contains(Flags::ECE))
        .collect();
    assert_eq!(offers, [true, false]);
}

/// RFC 3168 §6.1.1, §6.1.4, §6.1.5; with DCTCP and Prague everything can carry a mark (RFC 8257 §3.6),
/// Prague's as ECT(1) (RFC 9331 §4.1).
#[test]
fn only_new_data_can_carry_a_mark_unless_the_controller_lives_on_marks() {
    let cases = [
        ("reno", Ecn::NotEct, Ecn::Ect0),
        ("dctcp", Ecn::Ect0, Ecn::Ect0),
        ("prague", Ecn::Ect1, Ecn::Ect1),
    ];
    for (stack, usual, of_new_data) in cases {
        let mut pair = Pair::new(&ecn(stack));
        pair.lose_nth(20, has_data);
        pair.write(Client, 100 * MSS);
        pair.drive();
        let mut highest = 0;
        let mut resent = 0;
        for passing in &pair.log {
            let again = has_data(passing) && passing.offset < highest;
            highest = highest.max(passing.offset + u64::from(passing.segment.payload_len));
            resent += u32::from(again);
            let expected = if has_data(passing) && !again { of_new_data } else { usual };
            assert_eq!(passing.ecn, expected, "{stack}: {passing:?}");
        }
        assert!(resent == 1 && pair.log.iter().any(is_syn_ack), "{stack}");
    }
}

#[test]
fn marks_of_one_window_cost_one_reduction_and_are_echoed_until_it_is_confirmed() {
    let pair = marked(&ecn("reno"), 300, |segment| (60..75).contains(&segment));
    let stats = pair.client.connection.stats();
    assert_eq!((stats.reductions, stats.retransmits), (1, 0), "{stats:?}");
    let confirmations = pair.log.iter().filter(|p| p.segment.flags.contains(Flags::CWR));
    let [cwr] = confirmations.collect::<Vec<_>>()[..] else { panic!("one confirmation") };
    assert!(cwr.from == Client && has_data(cwr) && cwr.ecn == Ecn::Ect0);
    let first = pair.log.iter().find(|p| echoes(p)).expect("an echo");
    let last = pair.log.iter().rfind(|p| echoes(p)).expect("an echo");
    assert!(first.at < cwr.at && cwr.at < last.at && last.at <= cwr.at + RTT / 2);
}

/// Linux's `tcp_enter_cwr`: PRR spreads the reduction over a round trip and ends at `ssthresh`.
#[test]
fn the_window_arrives_at_ssthresh_a_round_trip_after_the_mark() {
    let mut pair = Pair::connected(&ecn("reno"));
    pair.network(|p| {
        let hit = has_data(p) && p.offset / MSS == 100;
        if hit { Verdict::Mark } else { Verdict::Deliver }
    });
    pair.write(Client, 2_000 * MSS);
    let snapshot = |pair: &Pair| pair.client.connection.snapshot();
    while snapshot(&pair).state != RecoveryState::Cwr {
        pair.drive_for(Duration::from_micros(100));
    }
    let ssthresh = snapshot(&pair).ssthresh.expect("a threshold");
    assert!(snapshot(&pair).cwnd > ssthresh, "not at once");
    pair.drive_for(RTT * 3 / 2);
    assert_eq!((snapshot(&pair).state, snapshot(&pair).cwnd), (RecoveryState::Open, ssthresh));
}

/// Linux's `tcp_enter_quickack_mode` at the first mark, and an answer at once to CWR: neither waits
/// for a second segment, nor for 40 ms.
#[test]
fn a_mark_and_its_confirmation_are_acknowledged_without_delay() {
    for parity in [0, 1] {
        // Later than the quick acknowledgements of the start; segments come one by one.
        let config = Config { recv_buffer: Bytes(65_535), ..ecn("none(1)") };
        let pair = marked(&config, 60, move |segment| segment == 50 + parity);
        let answer = |n: u64| {
            let sent = pair.log.iter().find(|p| has_data(p) && p.offset / MSS == n).expect("data");
            let arrival = sent.at + RTT / 2;
            let ack = pair.log.iter().find(|p| p.from == Server && p.at >= arrival);
            ack.expect("an answer").at - arrival
        };
        assert!(answer(48) > Duration::ZERO, "delayed: one segment at a time");
        assert_eq!(answer(50 + parity), Duration::ZERO);
    }
}

/// RFC 8257 §3.2: each acknowledgement covers marked bytes only, or unmarked ones only.
#[test]
fn marks_are_echoed_exactly_where_the_controller_lives_on_them() {
    let patterns: [fn(u64) -> bool; 4] =
        [|n| n % 5 == 0, |n| n % 2 == 1, |n| n % 7 < 3, |n| (50..60).contains(&n)];
    let cases = ["dctcp", "prague"].map(|stack| patterns.map(|which| (stack, which)));
    for (index, (stack, which)) in cases.into_iter().flatten().enumerate() {
        let pair = marked(&with_stack(stack), 300, which);
        let mut acked = pair.log.iter().find(|p| has_data(p)).expect("data").segment.seq;
        let mut covered = [0; 2];
        for ack in pair.log.iter().filter(|p| p.from == Server) {
            let moved = ack.segment.ack.since(acked);
            assert!(moved >= 0);
            covered[usize::from(echoes(ack))] += moved as u64;
            acked = ack.segment.ack;
        }
        let marks = (0..300).filter(|n| which(*n)).count() as u64;
        assert_eq!(covered, [(300 - marks) * MSS, marks * MSS], "pattern {index}");
        assert_eq!(pair.client.connection.stats().retransmits, 0);
    }
}

/// Linux calls `dctcp_update_alpha` for the next request too, because nothing is charged to the socket, and
/// nothing is between `snd_una` and the end of the window: an empty window has no marks.
#[test]
fn a_request_to_an_idle_connection_ends_a_window_of_dctcp() {
    let alpha_after = |requests: usize| {
        let mut pair = Pair::connected(&with_stack("dctcp"));
        for _ in 0..requests {
            pair.write(Client, MSS);
            pair.drive();
            pair.write(Server, 1);
            pair.drive();
        }
        let found = pair.client.connection.variables();
        found.iter().find(|(name, _)| *name == "alpha").expect("DCTCP's alpha").1
    };
    // Each answer and each request: alpha - alpha / 16, in 1/1024.
    let decayed = |windows: usize| {
        (0..windows).fold(1_024_u32, |alpha, _| alpha - (alpha >> 4)) as f64 / 1_024.0
    };
    assert_eq!([1, 2, 10].map(alpha_after), [2, 4, 20].map(decayed));
}

#[test]
fn dctcp_without_ecn_is_reno() {
    let transfer = |config: &Config| {
        let mut pair = Pair::connected(config);
        let mut data = 0;
        pair.network(move |p| {
            data += u64::from(has_data(p));
            if has_data(p) && data % 97 == 0 { Verdict::Drop } else { Verdict::Deliver }
        });
        pair.write(Client, 1_000 * MSS);
        pair.drive();
        pair.log.iter().map(|p| (p.at, p.from, p.segment)).collect::<Vec<_>>()
    };
    let dctcp = Config { ecn: Some(false), ..with_stack("dctcp") };
    assert_eq!(transfer(&dctcp), transfer(&with_stack("reno")));
}

/// A loss inside an episode that a mark began: Reno has halved its window already, DCTCP not yet.
#[test]
fn a_loss_after_a_mark_halves_dctcps_window_too() {
    let threshold = |stack: &str, lost: Option<u64>| {
        let mut pair = Pair::connected(&ecn(stack));
        let mut highest = 0;
        pair.network(move |p| {
            let first = p.offset >= highest;
            highest = highest.max(p.offset + u64::from(p.segment.payload_len));
            match p.offset / MSS {
                100 if has_data(p) => Verdict::Mark,
                n if has_data(p) && first && Some(n) == lost => Verdict::Drop,
                _ => Verdict::Deliver,
            }
        });
        pair.write(Client, 600 * MSS);
        pair.drive();
        let connection = &pair.client.connection;
        assert_eq!(connection.stats().reductions, 1, "{stack}");
        connection.snapshot().ssthresh.expect("a threshold").get() as f64
    };
    for (stack, ratio) in [("dctcp(alpha0=0)", 0.5), ("reno", 1.0)] {
        let measured = threshold(stack, Some(110)) / threshold(stack, None);
        assert!((measured - ratio).abs() < 0.1, "{stack}: {measured}");
    }
}

/// Linux's `tcp_fastretrans_alert`: an echo proves that the reduction was right, whatever the losses
/// that began it turn out to be.
#[test]
fn a_reduction_during_which_a_mark_is_echoed_is_never_taken_back() {
    for (marked, undone) in [(None, 1), (Some(105), 0)] {
        let mut pair = Pair::connected(&ecn("rack/reno"));
        let mut first = true;
        pair.network(move |p| match p.offset / MSS {
            // So late that it seems lost; what it overtook arrives before its repair.
            100 if has_data(p) && std::mem::take(&mut first) => Verdict::Late(RTT * 3 / 4),
            n if has_data(p) && Some(n) == marked => Verdict::Mark,
            _ => Verdict::Deliver,
        });
        pair.write(Client, 300 * MSS);
        pair.drive();
        let stats = pair.client.connection.stats();
        assert_eq!((stats.retransmits, stats.undone), (1, undone), "{marked:?}: {stats:?}");
    }
}

/// What a probe sends again in a reduction is not counted as sent (`prr_out`): its acknowledgement lets a segment more
/// leave.
#[test]
fn a_probe_does_not_use_up_a_reduction() {
    let mut pair = Pair::connected(&ecn("rack/reno"));
    let mut lost = false;
    pair.network(move |p| match (has_data(p), p.offset / MSS) {
        (true, 1) => Verdict::Mark,
        (true, 2) if !lost => {
            lost = true;
            Verdict::Drop
        }
        _ => Verdict::Deliver,
    });
    pair.write(Client, 3 * MSS);
    pair.drive();
    let stats = pair.client.connection.stats();
    assert_eq!((stats.retransmits_tlp, stats.timeouts, stats.reductions), (1, 0, 1));
    let before = pair.log.len();
    pair.write(Client, 5 * MSS);
    pair.drive_for(RTT / 4);
    assert_eq!(pair.log[before..].iter().filter(|p| has_data(p)).count(), 3);
}
