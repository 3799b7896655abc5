//! Flows of a graph that draw hosts: the same as in a fabric with the same links, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use weir_lab::{Results, World, check, run};

use crate::common::{self, LEAVES, table};

/// A flow between hosts that are drawn, and the end of the run.
const FLOW: &str = r#"
[[flow]]
name = "f"
stack = "rack/dctcp"
min_rto = "1ms"
from = "*"
to = "*"
[measure]
duration = "20ms"
sample_interval = "0s"
"#;

/// Two racks of two hosts as HPCC describes them. A switch without hosts has one number below theirs.
const RACKS: &str = "7 3 6\n0 4 6\n1 4 10Gbps 1us 0\n2 4 10Gbps 1us 0\n3 6 10Gbps 1us 0\n\
    5 6 5Gbps 1us 0.000001\n4 0 40Gbps 1us 0\n0 6 40Gbps 1us 0\n";

const WORKLOADS: &[&str] = &[
    r#"{ kind = "permutation", size = "200kb" }"#,
    r#"{ kind = "incast", senders = 10, size = "100kb", load = "20%" }"#,
    r#"{ kind = "flow-sizes", sizes = "google-rpc", load = "30%" }"#,
    r#"{ kind = "all-reduce", size = "500kb", order = "random" }"#,
];

/// The links of the fabric in `LEAVES`, in its order, as a graph.
fn leaves_as_graph() -> String {
    let mut text = "[topology]\nkind = \"graph\"\n\
        queue = { kind = \"ecn-step\", threshold = \"65p\", limit = \"1000p\" }\n"
        .to_owned();
    let hosts = (0..16).map(|host| (format!("h{host}"), format!("leaf{}", host / 4)));
    let uplinks = (0..16).map(|way| (format!("leaf{}", way / 4), format!("spine{}", way % 4)));
    for (from, to) in hosts.chain(uplinks) {
        writeln!(text, "[[topology.link]]\nfrom = \"{from}\"\nto = \"{to}\"").unwrap();
        text.push_str("rate = \"10gbit\"\ndelay = \"1us\"\n");
    }
    text + FLOW
}

/// Hosts `a`, `b` and `c` at switch `s`, another switch behind it, and `c`'s link with half the rate.
fn star() -> String {
    let link = |from: &str, to: &str, rate: &str| {
        format!(r#"{{ from = "{from}", to = "{to}", rate = "{rate}", delay = "5us" }}"#)
    };
    let links = [
        link("s", "a", "1gbit"),
        link("s", "t", "1gbit"),
        link("b", "s", "1gbit"),
        link("s", "t", "1gbit"),
        link("t", "c", "500mbit"),
    ];
    // Two links in parallel lead to one neighbour, and need names.
    let named = links[3].replacen('{', r#"{ name = "second","#, 1);
    let links = [&links[0], &links[1], &links[2], &named, &links[4]].map(String::as_str).join(", ");
    format!("[topology]\nkind = \"graph\"\nqueue = \"100p\"\nlink = [{links}]\n{FLOW}")
}

fn results(text: &str, seed: u64, keys: &[(&str, &str)]) -> Results {
    let scenario = common::parse(text, keys, "graph.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, seed, World::Sim).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, keys: &[(&str, &str)]) -> String {
    common::parse(text, keys, "graph.toml").unwrap_err()
}

/// The hosts of each connection.
fn pairs(results: &Results) -> Vec<(u32, u32)> {
    let rows = table(results, "arrivals");
    let column = |name| rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values();
    column("from_node").iter().copied().zip(column("to_node").iter().copied()).collect()
}

fn floats(results: &Results, column: &str) -> Vec<f64> {
    let column = table(results, "arrivals").column_by_name(column).unwrap();
    column.as_primitive::<Float64Type>().iter().flatten().collect()
}

fn trace_hash(results: &Results) -> String {
    let rows = table(results, "summary");
    rows.column_by_name("trace_hash").unwrap().as_string::<i32>().value(0).to_owned()
}

/// Hosts have the numbers 0 to `hosts` - 1: all of them begin and end connections, and no other node does.
fn assert_only_hosts(pairs: &[(u32, u32)], hosts: u32) {
    let all: BTreeSet<u32> = (0..hosts).collect();
    assert_eq!(pairs.iter().map(|(from, _)| *from).collect::<BTreeSet<u32>>(), all);
    assert_eq!(pairs.iter().map(|(_, to)| *to).collect::<BTreeSet<u32>>(), all);
    assert!(pairs.iter().all(|(from, to)| from != to));
}

/// With the same names and the same order of links, every draw and every packet is the same.
#[test]
fn a_graph_with_a_fabrics_links_gives_the_fabrics_results() {
    let graph = leaves_as_graph();
    for workload in WORKLOADS {
        for routing in ["single", "ecmp", "spray", "spray-rr"] {
            let keys = [("flow.0.workload", *workload), ("topology.routing", routing)];
            let [graph, fabric] = [graph.as_str(), LEAVES].map(|text| results(text, 2, &keys));
            let of = format!("{workload}, {routing}");
            assert_eq!(trace_hash(&graph), trace_hash(&fabric), "{of}");
            assert_only_hosts(&pairs(&graph), 16);
            assert_eq!(pairs(&graph), pairs(&fabric), "{of}");
            for column in ["start_s", "fct_s", "slowdown", "slowdown_hpcc"] {
                assert_eq!(floats(&graph, column), floats(&fabric, column), "{of}: {column}");
            }
            assert!(floats(&graph, "slowdown").len() * 100 > pairs(&graph).len() * 95, "{of}");
        }
    }
}

/// The same with one end given, with memory that ports share, and with ends that are drawn once.
#[test]
fn other_keys_have_the_same_effect_as_in_a_fabric() {
    let graph = leaves_as_graph();
    let sizes = r#"{ kind = "flow-sizes", sizes = [[20000, 1]], load = 0.4 }"#;
    let incast = r#"{ kind = "incast", senders = 15, size = "50kb", load = "20%" }"#;
    let buffer = r#"{ total = "100kb", alpha = "1/2" }"#;
    let cases: &[&[(&str, &str)]] = &[
        &[("flow.0.to", "h3"), ("flow.0.workload", sizes)],
        &[("flow.0.from", "h15"), ("flow.0.workload", sizes)],
        &[("flow.0.to", "h3"), ("flow.0.workload", incast)],
        &[("flow.0.workload", incast), ("topology.buffer", buffer)],
        &[("flow.0.workload", r#"{ kind = "file", size = "1mb" }"#), ("flow.0.count", "9")],
    ];
    for keys in cases {
        let from = [("flow.0.from", "*"), ("flow.0.to", "*"), ("topology.routing", "ecmp")];
        let keys = [&from[..], keys].concat();
        let [graph, fabric] = [graph.as_str(), LEAVES].map(|text| results(text, 1, &keys));
        assert_eq!(trace_hash(&graph), trace_hash(&fabric), "{keys:?}");
        assert_eq!(pairs(&graph), pairs(&fabric), "{keys:?}");
    }
}

/// Nodes have numbers in the order of links, but hosts come first: `a`, `b`, `c`. The other ones are no hosts,
/// though two links in parallel lead from `t` to `s`.
#[test]
fn hosts_are_the_nodes_with_one_neighbour() {
    let drawn = |keys: &[(&str, &str)]| pairs(&results(&star(), 1, keys));
    let sizes = r#"{ kind = "flow-sizes", sizes = [[2000, 1]], load = "20%" }"#;
    for routing in ["single", "ecmp"] {
        let keys = [("flow.0.workload", sizes), ("topology.routing", routing)];
        assert_only_hosts(&drawn(&keys), 3);
        assert_only_hosts(
            &drawn(&[keys[0], keys[1], ("topology.buffer", "{ total = \"1mb\" }")]),
            3,
        );
    }
    let permutation = drawn(&[("flow.0.workload", r#"{ kind = "permutation", size = "9kb" }"#)]);
    assert_only_hosts(&permutation, 3);
    assert_eq!(permutation.len(), 3);
    // A node that is named may be any: `s` has the first number after the hosts.
    let incast = r#"{ kind = "incast", senders = 3, size = "9kb", arrivals = 1 }"#;
    let to_switch = drawn(&[("flow.0.workload", incast), ("flow.0.to", "s")]);
    assert_eq!(BTreeSet::from_iter(to_switch), BTreeSet::from([(0, 3), (1, 3), (2, 3)]));
}

/// A slowdown is one of the pair that was drawn: `c` has half the rate.
#[test]
fn slowdowns_count_the_way_between_the_hosts_that_were_drawn() {
    let file = r#"{ kind = "flow-sizes", sizes = [[1000000, 1]], load = "1%", arrivals = 12 }"#;
    let keys = [("flow.0.workload", file), ("measure.duration", "10s")];
    let results = results(&star(), 1, &keys);
    let times = floats(&results, "fct_s");
    for ((pair, time), slowdown) in
        pairs(&results).into_iter().zip(times).zip(floats(&results, "slowdown"))
    {
        // Links of 5 us, two between `a` and `b`, and three to `c`.
        let ideal = match pair {
            (2, _) | (_, 2) => 8e6 / 500e6 + 30e-6,
            _ => 8e6 / 1e9 + 20e-6,
        };
        assert!((slowdown * ideal / time - 1.0).abs() < CAPACITY, "{pair:?}: {slowdown}");
    }
}

/// Links count their capacity over a time in whole bytes.
const CAPACITY: f64 = 1e-4;

/// Each host's link carries as much, so the slowest one has the load.
#[test]
fn the_slowest_of_the_hosts_links_has_the_load() {
    let sizes = r#"{ kind = "flow-sizes", sizes = [[2000, 1]], load = 0.4 }"#;
    // 2000 bytes in 2 segments with 52 bytes of headers.
    let of_rate = |mbit: f64| 0.4 * mbit * 1e6 / (8.0 * (2_000.0 + 2.0 * 52.0));
    let count = |keys: &[(&str, &str)], expected: f64| {
        let keys = [&[("flow.0.workload", sizes), ("measure.duration", "100ms")], keys].concat();
        let found = pairs(&results(&star(), 1, &keys)).len() as f64;
        let expected = expected * 0.1;
        let tolerance = 4.0 * expected.sqrt();
        assert!((found - expected).abs() < tolerance, "{keys:?}: {found} of {expected}");
    };
    count(&[], 3.0 * of_rate(500.0));
    count(&[("flow.0.from", "a")], of_rate(1_000.0));
    count(&[("flow.0.to", "c")], of_rate(500.0));
}

#[test]
fn hpccs_topology_has_hosts_to_draw() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("graph-hosts");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("topology.txt"), RACKS).unwrap();
    let text = format!(
        "[topology]\nkind = \"graph\"\nlink = \"topology.txt\"\nqueue = \"300kb\"\nrouting = \"ecmp\"\n{FLOW}"
    );
    let source = folder.join("hpcc.toml").display().to_string();
    let workloads = [
        (r#"{ kind = "flow-sizes", sizes = "google-rpc", load = "20%", arrivals = 300 }"#, 300),
        (r#"{ kind = "incast", senders = 3, size = "20kb", arrivals = 40 }"#, 120),
        (r#"{ kind = "permutation", size = "100kb" }"#, 4),
        (r#"{ kind = "all-reduce", size = "100kb" }"#, 24),
    ];
    for (workload, count) in workloads {
        let keys = [("flow.0.workload", workload), ("measure.duration", "10s")];
        let scenario = common::parse(&text, &keys, &source).unwrap();
        let results = run(&scenario, 1, World::Sim).unwrap();
        assert_eq!(
            floats(&results, "fct_s").len(),
            count,
            "every connection has ended: {workload}"
        );
        assert_only_hosts(&pairs(&results), 4);
    }
    let refused = check(&common::parse(&text, &[], &source).unwrap(), World::Udp).unwrap_err();
    assert!(refused.to_string().contains("only world sim has switches"), "{refused}");
}

#[test]
fn what_cannot_be_drawn_is_refused_by_key_and_value() {
    let pair = |rate: &str| format!(r#"[{{ from = "a", to = "s", rate = "{rate}" }}]"#);
    let line = r#"[{ from = "a", to = "s" }, { from = "s", to = "t" }, { from = "t", to = "s", name = "b" }]"#;
    let one_host =
        r#"[{ from = "a", to = "s" }, { from = "s", to = "t" }, { from = "s", to = "u" },
        { from = "t", to = "u" }]"#
            .replace('\n', "");
    let apart = r#"[{ from = "a", to = "b" }, { from = "c", to = "d" }]"#;
    let one_way = r#"[{ from = "a", to = "s" }, { from = "b", to = "s", duplex = false }]"#;
    let star = star();
    let listed = r#"{ kind = "connections", list = ["a b 0s 1mb"] }"#;
    let cases: &[&[(&str, &str)]] = &[
        &[("topology.link", &one_host)],
        &[("topology.link", &one_host), ("flow.0.from", "s")],
        &[("topology.link", &one_host), ("flow.0.workload", r#"{ kind = "permutation" }"#)],
        &[("topology.link", &one_host), ("flow.0.workload", r#"{ kind = "all-reduce" }"#)],
        &[("topology.link", apart)],
        &[("topology.link", one_way)],
        &[("topology.link", r#"[{ from = "a", to = "*" }]"#)],
        &[("flow.0.workload", r#"{ kind = "incast", senders = 3 }"#)],
        &[("flow.0.workload", r#"{ kind = "all-reduce", hosts = 4 }"#)],
        &[("flow.0.workload", r#"{ kind = "permutation" }"#), ("flow.0.to", "a")],
        &[("flow.0.workload", r#"{ kind = "incast", senders = 2 }"#), ("flow.0.from", "a")],
        &[("flow.0.from", "d")],
        &[("flow.0.from", "a"), ("flow.0.to", "a")],
        &[("topology.access_rate", "1gbit")],
        &[("flow.0.workload", r#"{ kind = "permutation" }"#), ("flow.0.send_time", "1us")],
        &[("flow.0.workload", listed), ("flow.0.from", "a")],
    ];
    let mut refusals: Vec<String> = cases.iter().map(|keys| refusal(&star, keys)).collect();
    refusals.push(refusal(&star.replace("from = \"*\"\n", ""), &[]));
    insta::assert_snapshot!(refusals.join("\n"));
    // Two hosts are enough, with a switch between them or without.
    for enough in [&pair("1gbit"), line] {
        let two = common::parse(&star, &[("topology.link", enough)], "graph.toml");
        assert!(two.is_ok(), "{enough}: {two:?}");
    }
}
