//! Fabrics of data centres: routing, workloads and errors, from the scenario to the tables.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use weir_lab::{Results, Scenario, World, check, run};

use crate::common::{self, LEAVES, table};

/// Two ways of the same length from `a` to `b`.
const DIAMOND: &str = r#"
[topology]
kind = "graph"
rtt = "200us"
link = [
    { from = "a", to = "s", rate = "1gbit", delay = "50us" },
    { from = "a", to = "t", rate = "1gbit", delay = "50us" },
    { from = "s", to = "b", rate = "1gbit", delay = "50us" },
    { from = "t", to = "b", rate = "1gbit", delay = "50us" },
]
[[flow]]
name = "f"
stack = "rack/dctcp"
from = "a"
to = "b"
[measure]
duration = "20ms"
sample_interval = "0s"
"#;

fn parse(text: &str, keys: &[(&str, &str)]) -> Scenario {
    common::parse(text, keys, "fabric.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn results(text: &str, seed: u64, overrides: &[(&str, &str)]) -> Results {
    run(&parse(text, overrides), seed, World::Sim).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::parse(text, &overrides, "fabric.toml").unwrap_err().to_string()
}

/// Data packets that left each link.
fn delivered(results: &Results) -> BTreeMap<String, u64> {
    let links = table(results, "links");
    let names = links.column_by_name("name").unwrap().as_string::<i32>();
    let counts = links.column_by_name("delivered_packets").unwrap();
    let counts = counts.as_primitive::<UInt64Type>().values();
    names.iter().flatten().map(str::to_owned).zip(counts.iter().copied()).collect()
}

/// The hosts of each connection.
fn pairs(results: &Results) -> Vec<(u32, u32)> {
    let rows = table(results, "arrivals");
    let column = |name| rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values();
    column("from_node").iter().copied().zip(column("to_node").iter().copied()).collect()
}

fn completion_times(results: &Results) -> Vec<f64> {
    let rows = table(results, "arrivals");
    let times = rows.column_by_name("fct_s").unwrap().as_primitive::<Float64Type>();
    assert_eq!(times.iter().flatten().count(), times.len(), "every connection has ended");
    times.values().to_vec()
}

fn trace_hash(results: &Results) -> String {
    let rows = table(results, "summary");
    rows.column_by_name("trace_hash").unwrap().as_string::<i32>().value(0).to_owned()
}

#[test]
fn one_flow_keeps_to_one_way_and_sprayed_packets_do_not() {
    let used = |routing: &str| {
        let links = delivered(&results(DIAMOND, 1, &[("topology.routing", routing)]));
        let mut ways = [links["a-s"], links["a-t"]];
        ways.sort_unstable();
        (ways[0] as f64 / (ways[0] + ways[1]) as f64, ways[0] + ways[1])
    };
    for routing in ["single", "ecmp", "flowlet(10ms)"] {
        assert_eq!(used(routing).0, 0.0, "{routing}");
    }
    for routing in ["spray", "spray-rr", "packet-ecmp(paths=128)"] {
        let (share, packets) = used(routing);
        // Half, within four standard deviations of a binomial distribution.
        let tolerance = 2.0 / (packets as f64).sqrt();
        assert!((share - 0.5).abs() < tolerance, "{routing}: {share} of {packets}");
    }
}

#[test]
fn a_pause_begins_another_flowlet() {
    let requests = r#"{ kind = "request", request = "1kb", response = "1kb", gap = "100us" }"#;
    let keys = [("flow.0.workload", requests), ("topology.routing", "flowlet(50us)")];
    let links = delivered(&results(DIAMOND, 1, &keys));
    assert!(links["a-s"] > 5 && links["a-t"] > 5, "{links:?}");
}

/// The ways of connections depend on the seed and their names, not on what controls them.
#[test]
fn another_controller_keeps_the_ways_and_another_seed_does_not() {
    let used = |stack: &str, seed: u64| {
        let keys = [("topology.routing", "ecmp"), ("flow.0.stack", stack), ("flow.0.count", "12")];
        let links = delivered(&results(DIAMOND, seed, &keys));
        ["a-s", "a-t", "b-s", "b-t"].map(|link| links[link] > 0)
    };
    let whole = |seed| ["rack/reno", "rack/cubic", "rack/dctcp"].map(|stack| used(stack, seed));
    for seed in 1..5 {
        let ways = whole(seed);
        assert!(ways.iter().all(|found| *found == ways[0]), "{ways:?}");
    }
    // A flow's own way: alone, each seed sends it one way or the other.
    let alone =
        |seed| delivered(&results(DIAMOND, seed, &[("topology.routing", "ecmp")]))["a-s"] > 0;
    let first = (0..32).filter(|seed| alone(*seed)).count();
    assert!((6..=26).contains(&first), "{first} of 32 seeds");
}

#[test]
fn equal_seeds_give_equal_traces_in_every_routing() {
    for routing in ["single", "ecmp", "spray", "spray-rr", "flowlet(5us)", "packet-ecmp(paths=4)"] {
        let workload = r#"{ kind = "flow-sizes", sizes = "google-rpc", load = 0.3 }"#;
        let keys = [
            ("topology.routing", routing),
            ("flow.0.workload", workload),
            ("measure.duration", "1ms"),
        ];
        let hash = |seed| trace_hash(&results(LEAVES, seed, &keys));
        assert_eq!(hash(1), hash(1), "{routing}");
        assert_ne!(hash(1), hash(2), "{routing}");
    }
}

#[test]
fn a_permutation_has_every_host_once_at_each_end() {
    let workload = r#"{ kind = "permutation", size = "200kb" }"#;
    let keys = [("flow.0.workload", workload), ("topology.routing", "ecmp")];
    let results = results(LEAVES, 3, &keys);
    let pairs = pairs(&results);
    assert!(pairs.iter().map(|(from, _)| *from).eq(0..16));
    let mut to: Vec<u32> = pairs.iter().map(|(_, to)| *to).collect();
    to.sort_unstable();
    assert!(to.into_iter().eq(0..16));
    assert!(pairs.iter().all(|(from, to)| from != to));
    // 139 packets at 10 Gbit/s take 166 us.
    assert!(completion_times(&results).iter().all(|time| *time > 166e-6));
}

#[test]
fn an_incast_is_as_slow_as_its_receivers_link() {
    let workload = r#"{ kind = "incast", senders = 10, size = "100kb", arrivals = 1 }"#;
    let results =
        results(LEAVES, 1, &[("flow.0.workload", workload), ("topology.routing", "spray")]);
    let pairs = pairs(&results);
    assert!(pairs.len() == 10 && pairs.iter().all(|(from, to)| *to == pairs[0].1 && from != to));
    let last = completion_times(&results).into_iter().fold(0.0, f64::max);
    // 70 packets for each sender, with 52 bytes of headers: 829 us.
    assert!((829e-6..1_000e-6).contains(&last), "{last}");
}

/// When connections arrive depends on the load alone, and that on the hosts' links, however slow the others are.
#[test]
fn slow_links_between_switches_leave_the_load_as_it_is() {
    let sizes = r#"{ kind = "flow-sizes", sizes = [[2000, 1]], load = 0.2 }"#;
    let incast = r#"{ kind = "incast", senders = 3, size = "5kb", load = "4%" }"#;
    let degraded = r#"[{ link = "leaf0-spine0", impair = { rate = "500mbit" } }]"#;
    let slow_host = r#"[{ link = "h9-leaf2", impair = { rate = "5gbit" } }]"#;
    let starts = |workload: &str, keys: &[(&str, &str)]| -> Vec<f64> {
        let keys = [&[("flow.0.workload", workload), ("measure.duration", "2ms")], keys].concat();
        let results = results(LEAVES, 1, &keys);
        let column = table(&results, "arrivals").column_by_name("start_s").unwrap();
        column.as_primitive::<Float64Type>().values().to_vec()
    };
    for (workload, ends) in [
        (sizes, [("flow.0.from", "*"), ("flow.0.to", "*")]),
        (sizes, [("flow.0.from", "h1"), ("flow.0.to", "*")]),
        (sizes, [("flow.0.from", "*"), ("flow.0.to", "h14")]),
        (incast, [("flow.0.from", "*"), ("flow.0.to", "*")]),
        (incast, [("flow.0.from", "*"), ("flow.0.to", "h0")]),
    ] {
        let with = |key, value| starts(workload, &[&ends[..], &[(key, value)]].concat());
        let usual = starts(workload, &ends);
        assert!(usual.len() > 8, "{ends:?}: {}", usual.len());
        for (key, value) in [
            ("topology.uplink_rate", "40gbit"),
            ("topology.uplink_rate", "1gbit"),
            ("topology.port", degraded),
        ] {
            assert!(with(key, value) == usual, "{workload}, {ends:?}, {value}");
        }
        // As in a graph: of all hosts' links the slowest has the load.
        let is_drawn = ends.iter().all(|(_, end)| *end == "*");
        let (few, many) = (with("topology.port", slow_host).len(), usual.len());
        assert!(if is_drawn { few < many * 2 / 3 } else { few == many }, "{ends:?}: {few}");
    }
    // Between two hosts the slowest link on the way has it, as in other networks.
    let ends = [("flow.0.from", "h0"), ("flow.0.to", "h15")];
    let slow = starts(sizes, &[&ends[..], &[("topology.uplink_rate", "1gbit")]].concat());
    assert!(slow.len() < starts(sizes, &ends).len() / 5);
}

/// Every host's link has the load, in both directions.
#[test]
fn connections_load_the_hosts_links() {
    let workload = r#"{ kind = "flow-sizes", sizes = [[20000, 1]], load = 0.4 }"#;
    let keys =
        [("flow.0.workload", workload), ("topology.routing", "ecmp"), ("measure.duration", "50ms")];
    let results = results(LEAVES, 1, &keys);
    let arrivals = table(&results, "arrivals").num_rows() as f64;
    // 20000 bytes in 14 segments with 52 bytes of headers.
    let expected = 0.4 * 10e9 * 16.0 * 0.05 / (8.0 * (20_000.0 + 14.0 * 52.0));
    assert!((arrivals / expected - 1.0).abs() < 4.0 / expected.sqrt(), "{arrivals} of {expected}");
    let one = [("flow.0.to", "h3"), keys[0], keys[1], keys[2]];
    let to_one = drawn(&one);
    assert!(to_one.iter().all(|(from, to)| *to == 3 && *from != 3));
    let expected = expected / 16.0;
    let count = to_one.len() as f64;
    assert!((count / expected - 1.0).abs() < 4.0 / expected.sqrt(), "{count} of {expected}");
}

fn drawn(keys: &[(&str, &str)]) -> Vec<(u32, u32)> {
    pairs(&results(LEAVES, 1, keys))
}

#[test]
fn a_port_that_differs_is_the_only_one() {
    let workload = r#"{ kind = "permutation", size = "500kb" }"#;
    let slow = r#"[{ link = "leaf0-spine0", impair = { rate = "1gbit" } }]"#;
    let keys =
        [("flow.0.workload", workload), ("topology.routing", "spray"), ("topology.port", slow)];
    let results = results(LEAVES, 1, &keys);
    let links = table(&results, "links");
    let names = links.column_by_name("name").unwrap().as_string::<i32>();
    let rates = links.column_by_name("capacity_mbps").unwrap().as_primitive::<Float64Type>();
    let slow: Vec<&str> = names
        .iter()
        .zip(rates.values())
        .filter_map(|(name, rate)| name.filter(|_| *rate < 9_999.0))
        .collect();
    assert_eq!(slow, ["leaf0-spine0"]);
}

#[test]
fn only_the_simulator_has_switches() {
    let refused = check(&parse(LEAVES, &[]), World::Udp).unwrap_err().to_string();
    assert!(refused.contains("only world sim has switches"), "{refused}");
    let single = parse(DIAMOND, &[("topology.routing", "single"), ("flow.0.stack", "cubic")]);
    assert!(check(&single, World::Udp).is_ok(), "one way for each flow is as before");
}

#[test]
fn what_makes_no_sense_is_refused_by_key_and_value() {
    let incast = r#"{ kind = "incast", senders = 16 }"#;
    let cases: &[(&str, &[(&str, &str)])] = &[
        (LEAVES, &[("topology.leafs", "3")]),
        (LEAVES, &[("topology.k", "4")]),
        (LEAVES, &[("topology.leaves", "0")]),
        (LEAVES, &[("topology.rtt", "1ms")]),
        (LEAVES, &[("topology.leaves", "1"), ("topology.hosts", "1")]),
        (
            LEAVES,
            &[("topology.leaves", "4096"), ("topology.hosts", "1"), ("topology.spines", "64")],
        ),
        (LEAVES, &[("topology.routing", "ecpm")]),
        (LEAVES, &[("topology.routing", "flowlet(fast)")]),
        (LEAVES, &[("topology.delay", "0s"), ("topology.queue", "1bdp")]),
        (LEAVES, &[("topology.queue", "0kb")]),
        (LEAVES, &[("topology.port", r#"[{ link = "leaf0-leaf1" }]"#)]),
        (LEAVES, &[("topology.port", r#"[{ link = "h0-leaf0" }, { link = "h0-leaf0" }]"#)]),
        (LEAVES, &[("flow.0.to", "h16")]),
        (LEAVES, &[("flow.0.from", "h1"), ("flow.0.to", "h1")]),
        (LEAVES, &[("flow.0.workload", incast)]),
        (LEAVES, &[("flow.0.workload", r#"{ kind = "incast" }"#), ("flow.0.from", "h1")]),
        (LEAVES, &[("flow.0.workload", r#"{ kind = "permutation" }"#), ("flow.0.to", "h1")]),
        (LEAVES, &[("flow.0.workload", r#"{ kind = "incast" }"#), ("flow.0.host_time", "1us")]),
        (DIAMOND, &[("flow.0.workload", r#"{ kind = "permutation" }"#)]),
        (DIAMOND, &[("flow.0.from", "*")]),
        (DIAMOND, &[("topology.kind", "fat-tree")]),
        ("[topology]\nkind = \"fat-tree\"\nk = 5\ndelay = \"1us\"\n[[flow]]\n", &[]),
        ("[topology]\nrouting = \"ecmp\"\n[[flow]]\n", &[]),
    ];
    let refusals: Vec<String> = cases.iter().map(|(text, keys)| refusal(text, keys)).collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn other_worlds_name_the_workload_that_they_do_not_have() {
    for kind in ["incast", "permutation", "all-reduce", "flow-sizes"] {
        let workload = format!(r#"{{ kind = "{kind}" }}"#);
        let scenario = parse(LEAVES, &[("flow.0.workload", &workload)]);
        let said = check(&scenario, World::Udp).unwrap_err().to_string();
        assert!(said.contains(&format!("workload.kind = '{kind}' is not allowed here")), "{said}");
    }
}

/// One connection from `h0` to `to`, next to its own arithmetic: `there_us` and `hops_us` are its delay and
/// the transmission of 1448 bytes over its links, `bits_us` that of its bytes and headers over the slowest.
fn slowdown_by_hand(to: &str, size: u32, [there_us, hops_us, bits_us]: [f64; 3]) -> [f64; 2] {
    let workload =
        format!(r#"{{ kind = "flow-sizes", sizes = [[{size}, 1.0]], load = "1%", arrivals = 1 }}"#);
    let keys = [
        ("topology.leaves", "2"),
        ("topology.hosts", "2"),
        ("topology.uplink_rate", "4gbit"),
        ("topology.uplink_delay", "50us"),
        ("flow.0.from", "h0"),
        ("flow.0.to", to),
        ("flow.0.workload", &workload),
        ("measure.duration", "1s"),
        ("measure.events", "100"),
    ];
    let results = results(LEAVES, 1, &keys);
    let number = |name: &str| {
        let column = table(&results, "arrivals").column_by_name(name).unwrap();
        column.as_primitive::<Float64Type>().value(0)
    };
    let events = table(&results, "events");
    let kinds = events.column_by_name("kind").unwrap().as_string::<i32>();
    let connected = kinds.iter().position(|kind| kind == Some("connected")).unwrap();
    let times = events.column_by_name("t_s").unwrap().as_primitive::<Float64Type>();
    let handshake = times.value(connected) - number("start_s");
    assert!(handshake > 2e-6 * there_us, "{handshake}");
    let completion_us = (number("fct_s") - handshake) * 1e6 + there_us;
    [number("slowdown_hpcc"), completion_us / (2.0 * there_us + hops_us + bits_us)]
}

#[test]
fn hpccs_slowdown_of_a_pair_counts_its_distance_its_hops_and_its_headers() {
    // Below one leaf: 1 us and 1448 · 8 / 10 Gbit/s = 1.1584 us for each of two links. Four packets with 52
    // bytes of headers: 5208 · 8 / 10 Gbit/s = 4.1664 us.
    let [printed, ratio] = slowdown_by_hand("h1", 5_000, [2.0, 2.3168, 4.1664]);
    assert!(ratio < 1.0 && printed == 1.0, "{printed}, {ratio}");
    // 140 packets, 207_280 · 8 / 10 Gbit/s = 165.824 us.
    let [printed, ratio] = slowdown_by_hand("h1", 200_000, [2.0, 2.3168, 165.824]);
    assert!((printed / ratio.max(1.0) - 1.0).abs() < CAPACITY, "{printed}, {ratio}");
    // From leaf to leaf: 1 + 50 + 50 + 1 us, 2 · 1.1584 + 2 · 2.896 us. 70 packets, 103_640 · 8 / 4 Gbit/s =
    // 207.28 us. The first windows are smaller than the path, so it takes longer than that.
    let [printed, ratio] = slowdown_by_hand("h3", 100_000, [102.0, 8.1088, 207.28]);
    assert!(ratio > 1.01 && (printed / ratio - 1.0).abs() < CAPACITY, "{printed}, {ratio}");
}

/// Links count their capacity over a time in whole bytes.
const CAPACITY: f64 = 1e-4;
