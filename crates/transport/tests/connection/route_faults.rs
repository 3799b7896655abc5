//! Route-failure policies through any break and any notice: nothing is sent that the windows forbid, and
//! the transfer completes once the route is good.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use weir_transport::{Config, Event, PathEvent, RecoveryConfig, RouteState};
use weir_units::{Bytes, Duration};

use super::pair::Side::{Client, Server};
use super::pair::{Pair, Verdict};
use super::{has_data, with_stack};

const POLICIES: [&str; 7] =
    ["none", "tcp-f", "tcp-f(timer=1s)", "elfn", "elfn(window=one,rto=reset)", "atcp", "bus"];

const MSS: u32 = 1_000;

fn recoveries() -> impl Iterator<Item = &'static str> {
    RecoveryConfig::CATALOGUE.iter().map(|entry| entry.name)
}

fn config(recovery: &str, controller: &str, policy: &str) -> Config {
    Config {
        mss: MSS,
        route_policy: policy.parse().expect("a policy"),
        recv_buffer: Bytes(20 * u64::from(MSS)),
        max_retransmits: 1_000,
        max_rto: Duration::from_secs(10),
        ..with_stack(&format!("{recovery}/{controller}"))
    }
}

/// Who tells the sender of a break and of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notices {
    Both,
    Break,
    Nothing,
}

/// A file of which the route breaks in the middle, for 5 s.
fn survive(config: &Config, notices: Notices, lost: Lost) {
    const BYTES: u64 = 300_000;
    let label = format!("{} {} {notices:?} {lost:?}", config.stack, config.route_policy);
    let mut pair = Pair::connected(config);
    let broken = Rc::new(Cell::new(false));
    let is_broken = Rc::clone(&broken);
    pair.network(move |passing| {
        let hit = match lost {
            Lost::Everything => true,
            Lost::Data => has_data(passing),
            Lost::Acknowledgements => passing.from == Server,
        };
        if hit && is_broken.get() { Verdict::Drop } else { Verdict::Deliver }
    });
    pair.write(Client, BYTES);
    pair.close(Client);
    pair.drive_for(Duration::from_millis(95));
    assert!(pair.server.read > 0 && pair.server.read < BYTES, "{label}");
    broken.set(true);
    pair.drive_for(Duration::from_millis(12));
    if notices != Notices::Nothing {
        pair.notify(Client, PathEvent::RouteFailed { sequence: pair.server.read });
    }
    pair.drive_for(Duration::from_millis(4_988));
    broken.set(false);
    if notices == Notices::Both {
        pair.notify(Client, PathEvent::RouteRestored { expected: Some(pair.server.read) });
    }
    pair.drive();
    assert_eq!(pair.server.read, BYTES, "{label}");
    assert_eq!(pair.client.events.last(), Some(&Event::Closed), "{label}");
}

/// What a broken route loses.
#[derive(Clone, Copy, Debug)]
enum Lost {
    Everything,
    Data,
    Acknowledgements,
}

#[test]
fn every_policy_survives_a_break_with_every_recovery_scheme() {
    for policy in POLICIES {
        for recovery in recoveries() {
            for notices in [Notices::Both, Notices::Break, Notices::Nothing] {
                for lost in [Lost::Everything, Lost::Data, Lost::Acknowledgements] {
                    survive(&config(recovery, "reno", policy), notices, lost);
                }
            }
        }
        for controller in ["none(12)", "cubic", "vegas", "bbr", "westwood"] {
            survive(&config("rack", controller, policy), Notices::Both, Lost::Everything);
        }
    }
}

/// One thing that happens to a transfer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Notice(Notice),
    /// Time passes, while `share` in 16 segments are lost each way.
    Pass {
        millis: u64,
        lost: [u8; 2],
    },
    Write(u64),
}

#[derive(Clone, Copy, Debug)]
enum Notice {
    /// At this many segments from the oldest that the peer expects.
    Failed(i8),
    Restored(Option<i8>),
    Unreachable,
    Hops(u8),
    Extreme,
}

fn step() -> impl Strategy<Value = Step> {
    let notice = prop_oneof![
        (-3i8..30).prop_map(Notice::Failed),
        proptest::option::of(-3i8..30).prop_map(Notice::Restored),
        Just(Notice::Unreachable),
        any::<u8>().prop_map(Notice::Hops),
        Just(Notice::Extreme),
    ];
    let share = || prop_oneof![Just(0u8), Just(2), Just(16)];
    let pass = (0u64..3_000, share(), share());
    prop_oneof![
        notice.prop_map(Step::Notice),
        pass.prop_map(|(millis, there, back)| Step::Pass { millis, lost: [there, back] }),
        (1u64..60_000).prop_map(Step::Write),
    ]
}

fn event(notice: Notice, expected: u64) -> PathEvent {
    let near = |by: i8| expected.saturating_add_signed(i64::from(by) * i64::from(MSS));
    match notice {
        Notice::Failed(by) => PathEvent::RouteFailed { sequence: near(by) },
        Notice::Restored(by) => PathEvent::RouteRestored { expected: by.map(near) },
        Notice::Unreachable => PathEvent::Unreachable,
        Notice::Hops(hops) => PathEvent::Hops(hops),
        Notice::Extreme => PathEvent::RouteFailed { sequence: u64::MAX },
    }
}

/// Everything that the client has sent lies within the windows that the server had offered; the limit
/// next to it is two segments at least.
fn assert_within_windows(pair: &Pair) {
    let mut edge = None;
    let mut checked = 0;
    for passing in &pair.log {
        let segment = passing.segment;
        if passing.from == Server {
            let offered = segment.ack + u32::from(segment.window);
            if edge.is_none_or(|edge| offered.since(edge) > 0) {
                edge = Some(offered);
            }
        } else if let Some(edge) = edge
            && segment.payload_len > 0
        {
            let end = segment.seq + segment.payload_len;
            assert!(edge.since(end) >= 0, "{passing:?} ends beyond what was offered");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

fn scramble(config: &Config, steps: &[Step], seed: u64) {
    let mut pair = Pair::connected(config);
    let conditions = Rc::new(Cell::new([0u8; 2]));
    let lost = Rc::clone(&conditions);
    let mut rng = weir_units::stream(seed, "network");
    pair.network(move |passing| {
        let share = lost.get()[passing.from as usize];
        if rng.below(16) < u64::from(share) { Verdict::Drop } else { Verdict::Deliver }
    });
    let mut written = 100_000;
    pair.write(Client, written);
    for step in steps {
        match *step {
            Step::Notice(notice) => pair.notify(Client, event(notice, pair.server.read)),
            Step::Write(bytes) => {
                written += bytes;
                pair.write(Client, bytes);
            }
            Step::Pass { millis, lost } => {
                conditions.set(lost);
                pair.client.events.clear();
                let before = pair.client.connection.snapshot().route;
                let (since, logged) = (pair.now, pair.log.len());
                pair.drive_for(Duration::from_millis(millis));
                let silent = before == RouteState::Snooze && pair.client.events.is_empty();
                let sent = pair.log[logged..].iter().any(|p| p.from == Client);
                assert!(!silent || !sent, "sent in snooze, after {since:?}");
            }
        }
    }
    conditions.set([0; 2]);
    pair.close(Client);
    pair.drive();
    assert_eq!(pair.server.read, written);
    assert_eq!(pair.client.events.last(), Some(&Event::Closed));
    let stats = pair.client.connection.stats();
    assert_eq!(stats.data_bytes_sent, written + stats.retransmitted_bytes);
    assert_within_windows(&pair);
}

#[test]
fn any_notices_in_any_conditions_end_in_a_complete_transfer() {
    for policy in POLICIES {
        for recovery in recoveries() {
            for controller in ["reno", "cubic"] {
                let limit = [None, Some("cwl".parse().expect("a limit"))][policy.len() % 2];
                let config = Config { window_limit: limit, ..config(recovery, controller, policy) };
                let inputs = (proptest::collection::vec(step(), 0..14), any::<u64>());
                let cases = Cases { cases: CASES, failure_persistence: None, ..Cases::default() };
                let outcome = TestRunner::new(cases).run(&inputs, |(steps, seed)| {
                    scramble(&config, &steps, seed);
                    Ok(())
                });
                if let Err(failure) = outcome {
                    panic!("{} {policy}: {failure}", config.stack);
                }
            }
        }
    }
}

/// Per policy and stack: 98 of them.
const CASES: u32 = 12;
