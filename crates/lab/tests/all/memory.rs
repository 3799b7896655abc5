//! Memory that the ports of a switch share, from the scenario to the tables.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use weir_lab::{Results, World, run};

use crate::common::{self, table};

/// One switch with eight hosts. Pairs of hosts send to one host each, twice as much as its port can send.
const OVERLOAD: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 1
hosts = 8
spines = 1
rate = "1gbit"
delay = "1us"
host_queue = "infinite"
buffer = { total = "600kb", alpha = "1/2" }
[measure]
duration = "40ms"
sample_interval = "1ms"
"#;

fn overload(receivers: u32, overrides: &[(&str, &str)]) -> Results {
    let flow = |sender: u32, receiver: u32| {
        format!(
            "[[flow]]\nname = \"f{sender}\"\nstack = \"udp\"\nfrom = \"h{sender}\"\nto = \"h{receiver}\"\n\
             workload = {{ kind = \"rate\", rate = \"900mbit\", size = \"1472b\" }}\n"
        )
    };
    let pairs = (0..receivers).map(|n| flow(2 + 2 * n, n) + &flow(3 + 2 * n, n));
    results(&(OVERLOAD.to_owned() + &pairs.collect::<String>()), overrides)
}

fn results(text: &str, overrides: &[(&str, &str)]) -> Results {
    let scenario = common::parse(text, overrides, "memory.toml");
    run(&scenario.unwrap_or_else(|error| panic!("{error}")), 1, World::Sim)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str, overrides: &[(&str, &str)]) -> String {
    common::parse(text, overrides, "memory.toml").unwrap_err()
}

fn whole(table: &RecordBatch, name: &str) -> Vec<u64> {
    table.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec()
}

/// A column of table `links`, by the names of links.
fn by_link(results: &Results, column: &str) -> BTreeMap<String, u64> {
    let links = table(results, "links");
    let names = links.column_by_name("name").unwrap().as_string::<i32>();
    names.iter().flatten().map(str::to_owned).zip(whole(links, column)).collect()
}

/// The most bytes that a link's queue held at a sample.
fn most_bytes(results: &Results, name: &str) -> u64 {
    let links = table(results, "links");
    let names = links.column_by_name("name").unwrap().as_string::<i32>();
    let index = names.iter().position(|own| own == Some(name)).unwrap() as u32;
    let queues = table(results, "queues");
    let of = queues.column_by_name("link").unwrap().as_primitive::<UInt32Type>().values();
    let bytes = whole(queues, "bytes");
    of.iter().zip(bytes).filter(|(link, _)| **link == index).map(|(_, bytes)| bytes).max().unwrap()
}

/// Choudhury and Hahne (1998), §III: `S` ports that are overloaded hold `alpha B / (1 + alpha S)` each.
#[test]
fn overloaded_ports_hold_what_the_dynamic_threshold_leaves_them() {
    const FULL_PACKET: u64 = 1_500;
    for (alpha, multiple) in [("1/8", 0.125), ("1/2", 0.5), ("1", 1.0), ("4", 4.0)] {
        for receivers in [1, 2, 3] {
            let results = overload(receivers, &[("topology.buffer.alpha", alpha)]);
            let expected = multiple * 600_000.0 / (1.0 + multiple * f64::from(receivers));
            // A port takes a packet while it is below; what the other ports hold varies as much.
            let slack = FULL_PACKET as f64 * (1.0 + multiple * f64::from(receivers));
            for receiver in 0..receivers {
                let port = format!("leaf0-h{receiver}");
                let held = most_bytes(&results, &port) as f64;
                assert!(
                    (held - expected).abs() <= slack,
                    "alpha {alpha}, {receivers} ports: {held} of {expected}"
                );
                assert!(by_link(&results, "dropped_buffer")[&port] > 1_000);
                assert_eq!(by_link(&results, "dropped_queue")[&port], 0);
            }
        }
    }
}

#[test]
fn a_port_keeps_the_limit_and_the_marks_of_its_own_queue() {
    let limited = overload(1, &[("topology.queue", "100p")]);
    assert!(by_link(&limited, "dropped_queue")["leaf0-h0"] > 1_000);
    assert_eq!(by_link(&limited, "dropped_buffer")["leaf0-h0"], 0);
    assert!(most_bytes(&limited, "leaf0-h0") <= 150_000);
    let queue = r#"{ kind = "ecn-step", threshold = "20p", limit = "infinite" }"#;
    let text = OVERLOAD.to_owned()
        + "[[flow]]\nname = \"f\"\ncount = 2\nstack = \"rack/dctcp\"\nmin_rto = \"1ms\"\nto = \"h0\"\n";
    let marked = results(&text, &[("topology.queue", queue)]);
    assert!(by_link(&marked, "marked")["leaf0-h0"] > 0);
    assert_eq!(by_link(&marked, "dropped_buffer").values().sum::<u64>(), 0);
}

#[test]
fn a_run_with_shared_memory_repeats_itself() {
    let hash = |results: &Results| {
        let summary = table(results, "summary").column_by_name("trace_hash").unwrap();
        summary.as_string::<i32>().value(0).to_owned()
    };
    assert_eq!(hash(&overload(3, &[])), hash(&overload(3, &[])));
    // How often the ports are looked at changes nothing.
    for alpha in ["1/8", "1/2", "4"] {
        let sampled = |interval| {
            let set = [("topology.buffer.alpha", alpha), ("measure.sample_interval", interval)];
            hash(&overload(3, &set))
        };
        assert_eq!(sampled("0s"), sampled("7us"), "alpha {alpha}");
    }
    let unlimited = overload(1, &[("topology.buffer", r#"{ total = "1gb", alpha = "1024" }"#)]);
    assert_eq!(by_link(&unlimited, "dropped_buffer").values().sum::<u64>(), 0);
}

/// In a graph, nodes where no flow begins or ends are switches.
const GRAPH: &str = r#"
[topology]
kind = "graph"
buffer = { total = "60kb", alpha = "1" }
link = [
    { from = "a", to = "s", rate = "1gbit", delay = "5us", queue = "infinite" },
    { from = "b", to = "s", rate = "1gbit", delay = "5us", queue = "infinite" },
    { from = "s", to = "c", rate = "1gbit", delay = "5us", queue = "infinite" },
]
[[flow]]
name = "f"
stack = "rack/cubic"
from = "a"
to = "c"
[[flow]]
name = "g"
stack = "rack/cubic"
from = "b"
to = "c"
[measure]
duration = "200ms"
sample_interval = "1ms"
"#;

#[test]
fn a_switch_of_a_graph_has_memory_too() {
    let results = results(GRAPH, &[]);
    assert!(by_link(&results, "dropped_buffer")["s-c"] > 0);
    assert!((27_000..=30_000).contains(&most_bytes(&results, "s-c")), "half of it");
    assert_eq!(by_link(&results, "dropped_buffer")["a-s"], 0, "hosts have no such bound");
}

#[test]
fn memory_that_cannot_be_is_refused() {
    let flow = "[[flow]]\nstack = \"rack/cubic\"\n";
    let fabric = OVERLOAD.to_owned() + flow;
    let refused = |key: &str, value: &str| refusal(&fabric, &[(key, value)]);
    let alpha = "write a fraction or a number from 1/1024 to 1024, as in 1/8, 0.5 or 2";
    insta::assert_snapshot!(refused("topology.buffer.alpha", "0"));
    insta::assert_snapshot!(refused("topology.buffer.total", "1kb"));
    insta::assert_snapshot!(refused("topology.buffer.size", "1mb"));
    let jumbo = [("topology.buffer.total", "4kb"), ("flow.0.mss", "8960")];
    insta::assert_snapshot!(refusal(&fabric, &jumbo));
    assert!(refused("topology.buffer.alpha", "1/0").contains(alpha));
    let dumbbell = "[topology]\nbuffer = { total = \"1mb\" }\n[[flow]]\nstack = \"rack/cubic\"\n";
    insta::assert_snapshot!(refusal(dumbbell, &[]));
    let direct = GRAPH.replace("to = \"c\"\n[[flow]]", "to = \"s\"\n[[flow]]");
    insta::assert_snapshot!(refusal(&direct, &[]));
    let impair = r#"[{ link = "leaf0-h0", impair = { duplicate = "1%" } }]"#;
    insta::assert_snapshot!(refused("topology.port", impair));
}
