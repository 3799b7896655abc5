//! A sender that prepares one packet after the other, by closed forms.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use weir_net::{DropList, Impairments, LinkConfig, Numbering, Service};
use weir_scene::topology::{LabRouter, Relay};
use weir_scene::{Ends, FlowSpec, MeasureSpec, RunSpec, TransportSpec, Workload};
use weir_sim::run;
use weir_trace::FlowRow;
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant};

const MSS: u32 = 1_000;
const PREPARATION: Duration = Duration::from_millis(5);
const DELAY: Duration = Duration::from_millis(4);

/// A file of `segments` over a path of pure delay, sent by a host that needs 5 ms per packet.
fn transfer(stack: &str, segments: u64, spread: Duration, drops: Vec<u64>) -> FlowRow {
    let stack = stack.parse().unwrap();
    send(Config { stack, mss: MSS, ..Config::default() }, segments, spread, drops)
}

fn send(config: Config, segments: u64, spread: Duration, drops: Vec<u64>) -> FlowRow {
    let line = LinkConfig {
        service: Service::Infinite,
        delay: DELAY.into(),
        impairments: Impairments {
            drops: vec![DropList { counts: Numbering::Data, numbers: drops }],
            ..Impairments::default()
        },
        ..LinkConfig::default()
    };
    let relay = Relay::DelayLine { forward: line, reverse: LinkConfig::default() };
    let mut topology = LabRouter { relay, forward: None, reverse: None, flows: 1 }.build();
    topology.add_preparation(0, PREPARATION, spread);
    let route = topology.routes.remove(0);
    let flow = FlowSpec {
        name: "f".into(),
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: TransportSpec::Reliable(Box::new(config)),
        workload: Workload::File { size: Bytes(u64::from(MSS) * segments) },
        start: Instant::ZERO,
        stop: None,
        start_jitter: Duration::ZERO,
        ends: Ends::Kernel,
    };
    let spec = RunSpec {
        radio: None,
        fabric: None,
        links: topology.links,
        flows: vec![flow],
        measure: MeasureSpec::default(),
    };
    run(&spec, 1).unwrap().flows.remove(0)
}

/// The SYN is prepared as well; its answer takes no time.
fn handshake() -> Duration {
    PREPARATION + DELAY
}

fn assert_takes(row: &FlowRow, expected: Duration) {
    let (took, expected) = (row.fct_s.unwrap(), expected.as_secs_f64());
    assert!((took - expected).abs() < 1e-9, "took {took} s, not {expected} s");
}

#[test]
fn a_window_is_sent_at_the_pace_of_preparation() {
    let row = transfer("go-back-n(30)/none", 20, Duration::ZERO, vec![]);
    assert_takes(&row, handshake() + PREPARATION * 20 + DELAY);
}

#[test]
fn stop_and_wait_prepares_once_per_round_trip() {
    let row = transfer("stop-and-wait/none", 20, Duration::ZERO, vec![]);
    assert_takes(&row, handshake() + (PREPARATION + DELAY) * 20);
}

#[test]
fn going_back_resends_only_what_was_prepared_by_then() {
    // The duplicates of the next three arrive 14, 19 and 24 ms after the lost one was begun; by then
    // the sender has begun with the fifth, although its window is 30.
    let row = transfer("go-back-n(30)/none", 20, Duration::ZERO, vec![7]);
    assert_eq!(row.retransmits, 5);
}

#[test]
fn a_spread_keeps_the_mean() {
    let spread = Duration::from_millis(3);
    let row = transfer("go-back-n(30)/none", 1_000, spread, vec![]);
    let expected = handshake() + PREPARATION * 1_000 + DELAY;
    let (took, expected) = (row.fct_s.unwrap(), expected.as_secs_f64());
    assert!((took / expected - 1.0).abs() < 0.03, "took {took} s, not about {expected} s");
    assert!(took != expected);
}

#[test]
fn a_window_that_preparation_keeps_empty_grows_only_without_validation() {
    let [validated, free] = [true, false].map(|cwnd_validation| {
        let stack = "go-back-n/reno".parse().unwrap();
        let config = Config { stack, mss: MSS, cwnd_validation, ..Config::default() };
        send(config, 200, Duration::ZERO, vec![]).cwnd_bytes_max.unwrap() / u64::from(MSS)
    });
    // Ten at first, of which two are ever out; RFC 5681 adds one for each acknowledgement.
    assert_eq!((validated, free), (10, 210));
}
