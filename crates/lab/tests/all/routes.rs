//! Transfers over radio: every route-failure policy lives through a break of its route.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use weir_lab::{Results, Scenario, World, run};

use crate::common::table;

/// 300 kB over three hops; from 4 s to 9 s the second node is out of reach.
fn scenario(routing: &str, notices: &str, policy: &str) -> Scenario {
    let text = format!(
        r#"
        [topology]
        kind = "radio"
        [topology.radio]
        arp = false
        routing = "{routing}"
        notices = "{notices}"
        mobility = "trace"
        trace = [
            "t, node, x, y",
            "0, 0, 0, 0", "0, 1, 200, 0", "0, 2, 400, 0", "0, 3, 600, 0",
            "4, 1, 200, 0", "4.1, 1, 200, 900", "9, 1, 200, 900", "9.1, 1, 200, 0",
        ]
        [[flow]]
        stack = "newreno/reno"
        mss = 1000
        window_limit = 8
        route_policy = "{policy}"
        workload = {{ kind = "file", size = "300kb" }}
        [measure]
        duration = "120s"
        events = 100000
        "#
    );
    Scenario::parse(&text, &[], "radio").unwrap_or_else(|error| panic!("{error}"))
}

fn outcome(scenario: &Scenario) -> Results {
    run(scenario, 1, World::Sim).unwrap_or_else(|error| panic!("{error}"))
}

/// Time, kind and detail of all that happened to the flow.
fn events(results: &Results) -> Vec<(f64, String)> {
    let rows = table(results, "events");
    let column = |name: &str| rows.column_by_name(name).expect("it is there");
    let times = column("t_s").as_primitive::<Float64Type>().values();
    let kinds = column("kind").as_string::<i32>();
    times.iter().zip(kinds).map(|(t, kind)| (*t, kind.unwrap_or_default().to_owned())).collect()
}

fn first(events: &[(f64, String)], kind: &str) -> Option<f64> {
    events.iter().find(|(_, found)| found == kind).map(|(t, _)| *t)
}

#[test]
fn every_policy_survives_a_break_of_its_route() {
    let cases = [
        ("aodv", "none", "none", None),
        ("aodv", "rfn", "tcp-f", Some("snooze")),
        ("aodv", "elfn", "elfn", Some("standby")),
        ("dsr", "elfn", "elfn", Some("standby")),
        ("aodv", "unreachable", "atcp", Some("disconnected")),
        ("abr", "bus", "bus", Some("reestablishing")),
    ];
    for (routing, notices, policy, state) in cases {
        let results = outcome(&scenario(routing, notices, policy));
        let case = format!("{policy} with {notices} over {routing}");
        let delivered = table(&results, "flows").column_by_name("delivered_bytes");
        let delivered = delivered.expect("it is there").as_primitive::<UInt64Type>().value(0);
        assert_eq!(delivered, 300_000, "{case}");
        let events = events(&results);
        let seen: Vec<_> = events.iter().map(|(t, kind)| format!("{t:.2} {kind}")).collect();
        let reported = first(&events, "route-failed");
        assert_eq!(reported.is_some(), notices != "none", "{case}: {seen:?}");
        if let Some(state) = state {
            let entered = first(&events, state).unwrap_or_else(|| panic!("{case}: {seen:?}"));
            assert!((4.0..9.5).contains(&entered), "{case}: {state} at {entered}");
            let left = events.iter().find(|(t, kind)| kind == "normal" && *t > entered);
            assert!(left.is_some_and(|(t, _)| *t > 9.0), "{case}: {seen:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_frames_and_another_does_not() {
    let scenario = scenario("aodv", "elfn", "elfn");
    let hash = |seed| {
        let results = run(&scenario, seed, World::Sim).expect("it runs");
        let column = table(&results, "summary").column_by_name("trace_hash").expect("it is there");
        column.as_string::<i32>().value(0).to_owned()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn nodes_and_frames_tell_of_the_same_transfer() {
    let text = r#"
        [topology]
        kind = "radio"
        [topology.radio]
        hops = 2
        routing = "static"
        arp = false
        [[flow]]
        stack = "udp"
        mss = 1000
        workload = { kind = "rate", rate = "100kbit", size = "1000b" }
        [measure]
        duration = "2s"
        frames = 100000
    "#;
    let results = outcome(&Scenario::parse(text, &[], "radio").expect("a scenario"));
    let column = |of: &str, name: &str| {
        table(&results, of).column_by_name(name).expect("it is there").clone()
    };
    let nodes = column("nodes", "data_frames");
    let nodes: Vec<u64> = nodes.as_primitive::<UInt64Type>().values().to_vec();
    // 25 datagrams over two hops, none lost.
    assert_eq!(nodes, [25, 25, 0]);
    let kinds = column("frames", "kind");
    let data = kinds.as_string::<i32>().iter().filter(|kind| *kind == Some("data")).count();
    assert_eq!(data, 50);
    let hops = column("flows", "hops_mean");
    assert_eq!(hops.as_primitive::<Float64Type>().value(0), 2.0);
}
