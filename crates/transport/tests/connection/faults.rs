//! Whatever the network does: first everything at once while it misbehaves, then it heals, and every
//! byte must have arrived once and in order and both ends must have closed.

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use weir_transport::{Config, DelayedAck, Event, RecoveryConfig};
use weir_units::{Bytes, Duration, stream};

use super::pair::Side::{self, Client, Server};
use super::pair::{Pair, Passing, Verdict};
use super::with_stack;

const CONTROLLERS: [&str; 5] = ["none", "none(12)", "reno", "cubic", "muzha"];

/// How the network misbehaves: the number of segments per hundred that are …
#[derive(Clone, Copy, Debug)]
struct Conditions {
    lost: u64,
    duplicated: u64,
    late: u64,
    corrupted: u64,
    /// … until this many segments have passed.
    lasts: u32,
    seed: u64,
}

impl Conditions {
    fn into_network(self) -> impl FnMut(&Passing) -> Verdict {
        let mut rng = stream(self.seed, "network");
        let (mut passed, mut missing_in_a_row) = (0, [0u32; 2]);
        move |passing| {
            passed += 1;
            if passed > self.lasts {
                return Verdict::Deliver;
            }
            let later = rng.duration_up_to(Duration::from_millis(60));
            let bit = rng.below(1 << 20) as usize;
            let verdict = self.pick(rng.below(100), later, bit);
            // Not for ever: a connection may give up, and the side that closed first may forget.
            let row = &mut missing_in_a_row[passing.from as usize];
            let missing = matches!(verdict, Verdict::Drop | Verdict::Corrupt(_));
            *row = if missing { *row + 1 } else { 0 };
            if *row > 4 { Verdict::Deliver } else { verdict }
        }
    }

    fn pick(&self, drawn: u64, later: Duration, bit: usize) -> Verdict {
        let mut bound = 0;
        let mut below = |share| {
            bound += share;
            drawn < bound
        };
        if below(self.lost) {
            Verdict::Drop
        } else if below(self.duplicated) {
            Verdict::Twice(later)
        } else if below(self.late) {
            Verdict::Late(later)
        } else if below(self.corrupted) {
            Verdict::Corrupt(bit)
        } else {
            Verdict::Deliver
        }
    }
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let shares = (0..25u64, 0..15u64, 0..15u64, 0..10u64);
    (shares, 0..400u32, any::<u64>()).prop_map(
        |((lost, duplicated, late, corrupted), lasts, seed)| Conditions {
            lost,
            duplicated,
            late,
            corrupted,
            lasts,
            seed,
        },
    )
}

fn config(stack: String) -> impl Strategy<Value = Config> {
    let delayed_ack = prop_oneof![
        Just(None),
        Just(Some(DelayedAck::Off)),
        Just(Some(DelayedAck::Rfc1122)),
        Just(Some(DelayedAck::Linux))
    ];
    let flags = any::<(bool, bool, bool)>();
    let buffer = prop_oneof![Just(8u64 << 10), Just(64 << 10), Just(1 << 20)];
    let mss = prop_oneof![Just(100u32), Just(536), Just(1_448)];
    (delayed_ack, flags, buffer, mss).prop_map(
        move |(delayed_ack, (sack, timestamps, limited_transmit), buffer, mss)| Config {
            delayed_ack,
            sack,
            timestamps,
            limited_transmit,
            recv_buffer: Bytes(buffer),
            mss,
            max_retransmits: 100,
            time_wait: Duration::from_secs(1_000),
            ..with_stack(&stack)
        },
    )
}

fn transfer(config: &Config, conditions: Conditions, bytes: [u64; 2]) {
    let mut pair = Pair::new(config);
    pair.network(conditions.into_network());
    for (side, bytes) in [Client, Server].into_iter().zip(bytes) {
        pair.write(side, bytes);
    }
    pair.close(Client);
    pair.drive();
    for (side, bytes) in [Client, Server].into_iter().zip(bytes) {
        assert_eq!(pair.end(side.other()).read, bytes, "from {side:?}");
        let events = &pair.end(side).events;
        assert_eq!(events.len(), 4, "{side:?}: {events:?}");
        assert_eq!((&events[0], &events[3]), (&Event::Connected, &Event::Closed), "{side:?}");
        assert!(pair.end(side).connection.is_closed());
    }
    assert_bounds(&mut pair, bytes);
}

/// What no sequence of faults may break.
fn assert_bounds(pair: &mut Pair, bytes: [u64; 2]) {
    for (side, bytes) in [Client, Server].into_iter().zip(bytes) {
        let peer_delivered = pair.end(side.other()).connection.stats().delivered_bytes;
        let stats = *pair.end(side).connection.stats();
        assert_eq!(peer_delivered, bytes);
        assert_eq!(stats.acked_bytes, bytes, "{side:?}");
        assert_eq!(stats.data_bytes_sent, bytes + stats.retransmitted_bytes, "{side:?}");
        let causes = stats.retransmits_fast + stats.retransmits_rto + stats.retransmits_tlp;
        let causes = causes + stats.retransmits_route;
        assert_eq!(stats.retransmits, causes, "every retransmission has a cause: {stats:?}");
        let sent = pair.log.iter().filter(|p| p.from == side).count() as u64;
        assert_eq!(stats.segments_sent, sent, "{side:?}");
    }
}

#[test]
fn every_stack_delivers_through_any_conditions() {
    for recovery in RecoveryConfig::CATALOGUE.iter().flat_map(|entry| entry.examples) {
        for controller in CONTROLLERS {
            let stack = format!("{recovery}/{controller}");
            let inputs = (config(stack.clone()), conditions(), [0..120_000u64, 0..20_000u64]);
            let cases = Cases { cases: CASES, failure_persistence: None, ..Cases::default() };
            let outcome = TestRunner::new(cases).run(&inputs, |(config, conditions, bytes)| {
                transfer(&config, conditions, bytes);
                Ok(())
            });
            if let Err(failure) = outcome {
                panic!("{stack}: {failure}");
            }
        }
    }
}

/// The FIN is lost and lost again, and a copy of it is counted that fills the window of one segment.
#[test]
fn a_fin_leaves_although_a_copy_fills_the_window() {
    let config = Config {
        delayed_ack: Some(DelayedAck::Off),
        sack: false,
        recv_buffer: Bytes(8 << 10),
        max_retransmits: 100,
        time_wait: Duration::from_secs(1_000),
        ..with_stack("rack(detection=count)/none")
    };
    let seed = 5_287_206_168_342_425_640;
    let conditions = Conditions { lost: 13, duplicated: 0, late: 0, corrupted: 0, lasts: 25, seed };
    transfer(&config, conditions, [7_240, 7_241]);
}

/// The rules of user space are as sound as a kernel's.
#[test]
fn what_is_meant_for_datagrams_delivers_through_any_conditions() {
    for stack in ["rack/bbr(overflow=avoid)", "rack/cubic", "sack/reno"] {
        let inputs = (config(stack.to_owned()), conditions(), [0..120_000u64, 0..20_000u64]);
        let cases = Cases { cases: CASES, failure_persistence: None, ..Cases::default() };
        let outcome = TestRunner::new(cases).run(&inputs, |(config, conditions, bytes)| {
            let Config { host_profile, min_rto, initial_rto, gso, .. } = Config::for_datagrams();
            transfer(
                &Config { host_profile, min_rto, initial_rto, gso, ..config },
                conditions,
                bytes,
            );
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{stack}: {failure}");
        }
    }
}

/// Per stack: 36 of them.
const CASES: u32 = 48;

#[test]
fn two_sides_may_speak_different_stacks() {
    for (client, server) in
        [("rack/cubic", "stop-and-wait/none"), ("go-back-n(5)/none", "sack/reno")]
    {
        let mut pair = Pair::with_configs(&with_stack(client), &with_stack(server));
        let conditions =
            Conditions { lost: 5, duplicated: 5, late: 5, corrupted: 0, lasts: 200, seed: 7 };
        pair.network(conditions.into_network());
        pair.write(Client, 100_000);
        pair.write(Side::Server, 50_000);
        pair.close(Client);
        pair.drive();
        assert_eq!((pair.server.read, pair.client.read), (100_000, 50_000), "{client} {server}");
    }
}
