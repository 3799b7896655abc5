//! Connections and links from files of other simulators: what is run, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use weir_lab::{Results, Scenario, World, check, run};

use crate::common::{self, table};

/// 16 hosts, whose connections are those of `matrix.cm`.
const LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 4
spines = 4
rate = "10gbit"
delay = "1us"
queue = { kind = "ecn-step", threshold = "65p", limit = "1000p" }
routing = "ecmp"
[[flow]]
name = "f"
stack = "rack/dctcp"
min_rto = "1ms"
workload = { kind = "connections", list = "matrix.cm" }
[measure]
duration = "20ms"
sample_interval = "0s"
"#;

const MATRIX: &str = "Nodes 16\nConnections 4\n\
    0->13 id 1 start 2000000 size 100000\n\
    13->0 id 2 start 0 size 20000\n\
    5->13 id 3 start 2000000 size 3000\n\
    1->2 id 4 start 1000000000 size 1\n";

/// Two racks of two hosts as HPCC describes them, with a flow in each direction.
const RACKS: &str = r#"
[topology]
kind = "graph"
link = "topology.txt"
queue = { kind = "ecn-step", threshold = "300kb", limit = "2mb" }
routing = "ecmp"
[[flow]]
name = "f"
stack = "rack/dctcp"
min_rto = "1ms"
workload = { kind = "connections", list = "flow.txt" }
[measure]
duration = "3s"
sample_interval = "0s"
"#;

const TOPOLOGY: &str = "6 2 5\n4 5\n\
    0 4 10Gbps 0.001ms 0\n1 4 10Gbps 0.001ms 0\n2 5 10Gbps 1000ns 0\n3 5 10Gbps 1us 0\n\
    4 5 40Gbps 0.002ms 0\n";
const FLOWS: &str = "2\n0 3 3 100 100000 2\n2 1 3 100 5000 2.000001\n";

/// A folder with these files, for one test.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("imports-{name}"));
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

fn parse(text: &str, folder: &Path, keys: &[(&str, &str)]) -> Result<Scenario, String> {
    common::parse(text, keys, &folder.join("test.toml").display().to_string())
}

/// Ends, start in nanoseconds and size of each connection, all of which have ended.
fn connections(results: &Results) -> Vec<(u32, u32, u64, u64)> {
    let rows = table(results, "arrivals");
    let node = |name| rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values();
    let times = |name| rows.column_by_name(name).unwrap().as_primitive::<Float64Type>();
    let sizes = rows.column_by_name("size_bytes").unwrap().as_primitive::<UInt64Type>();
    assert_eq!(times("fct_s").iter().flatten().count(), rows.num_rows(), "every one has ended");
    let starts = times("start_s").values().iter().map(|start| (start * 1e9).round() as u64);
    let ends = node("from_node").iter().zip(node("to_node"));
    ends.zip(starts)
        .zip(sizes.values())
        .map(|(((from, to), start), size)| (*from, *to, start, *size))
        .collect()
}

#[test]
fn a_connection_matrix_runs_in_a_fabric() {
    let folder = folder("matrix", &[("matrix.cm", MATRIX)]);
    let scenario = parse(LEAVES, &folder, &[]).unwrap();
    let results = run(&scenario, 1, World::Sim).unwrap();
    let expected =
        [(13, 0, 0, 20_000), (0, 13, 2_000, 100_000), (5, 13, 2_000, 3_000), (1, 2, 1_000_000, 1)];
    assert_eq!(connections(&results), expected, "in the order of starts");
    let flows = table(&results, "flows");
    assert!(flows.column_by_name("completed").unwrap().as_boolean().value(0));
    let end = table(&results, "summary").column_by_name("sim_s").unwrap();
    assert!(end.as_primitive::<Float64Type>().value(0) < 0.002, "it ends with the last one");
}

#[test]
fn the_start_of_the_flow_counts_for_all_and_its_stop_ends_them() {
    let folder = folder("shifted", &[("matrix.cm", MATRIX)]);
    let keys = [("flow.0.start", "3ms"), ("flow.0.stop", "3500us")];
    let results = run(&parse(LEAVES, &folder, &keys).unwrap(), 1, World::Sim).unwrap();
    let starts: Vec<u64> = connections(&results).iter().map(|(_, _, start, _)| *start).collect();
    assert_eq!(starts, [3_000_000, 3_002_000, 3_002_000]);
    let jitter = parse(LEAVES, &folder, &[("flow.0.start_jitter", "100us")]).unwrap();
    let starts = |seed| -> Vec<u64> {
        let results = run(&jitter, seed, World::Sim).unwrap();
        connections(&results).iter().map(|(_, _, start, _)| *start).collect()
    };
    assert!(starts(1)[1] != starts(1)[2] && starts(1) != starts(2));
}

#[test]
fn hpccs_topology_and_flows_run_as_a_graph() {
    let folder = folder("hpcc", &[("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)]);
    for routing in ["single", "ecmp", "spray"] {
        let scenario = parse(RACKS, &folder, &[("topology.routing", routing)]).unwrap();
        let results = run(&scenario, 1, World::Sim).unwrap();
        // Nodes are numbered in the order of the links: h0, s4, h1, h2, s5, h3.
        let expected = [(0, 5, 2_000_000_000, 100_000), (3, 2, 2_000_001_000, 5_000)];
        assert_eq!(connections(&results), expected, "{routing}");
        let links = table(&results, "links");
        let names = links.column_by_name("name").unwrap().as_string::<i32>();
        let packets = links.column_by_name("delivered_packets").unwrap();
        let packets = packets.as_primitive::<UInt64Type>();
        let crossed =
            |link: &str| packets.value(names.iter().position(|name| name == Some(link)).unwrap());
        // 70 segments of 1448 bytes and their handshake one way, 4 and theirs the other.
        assert!(crossed("s4-s5") >= 70 && crossed("h0-s4") >= 70, "{routing}");
        assert!(crossed("h2-s5") >= 4 && crossed("s4-h1") >= 4, "{routing}");
    }
}

/// Two flows of a scenario with one file, a class each, make the connections of the file.
#[test]
fn classes_of_hpccs_flows_are_separate() {
    let flows = "3\n0 3 3 100 100000 2\n2 1 3 200 5000 2.000001\n0 1 3 200 700 2.000001\n";
    let folder = folder("classes", &[("topology.txt", TOPOLOGY), ("flow.txt", flows)]);
    let second = RACKS.replace("[measure]", "[[flow]]\nmin_rto = \"1ms\"\n[measure]");
    let class =
        |dport: u32| format!(r#"{{ kind = "connections", list = "flow.txt", dport = {dport} }}"#);
    let (others, incasts) = (class(100), class(200));
    let keys = [("flow.0.workload", others.as_str()), ("flow.1.workload", &incasts)];
    let scenario = parse(&second, &folder, &keys).unwrap();
    let rows = run(&scenario, 1, World::Sim).unwrap();
    let column = table(&rows, "arrivals").column_by_name("flow").unwrap();
    let classes = column.as_primitive::<UInt32Type>().values().to_vec();
    assert_eq!(classes, [0, 1, 1]);
    let whole = run(&parse(RACKS, &folder, &[]).unwrap(), 1, World::Sim).unwrap();
    assert_eq!(connections(&rows), connections(&whole));
    assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    let refused =
        |workload: &str| parse(RACKS, &folder, &[("flow.0.workload", workload)]).unwrap_err();
    for (workload, says) in [
        (class(7), "no flow has dport 7; there are 100, 200"),
        (class(70_000), "no flow has dport 70000"),
        (
            r#"{ kind = "connections", list = ["h0 h1 0s 1b"], dport = 100 }"#.to_owned(),
            "workload.dport: 100 is not allowed; only a file of HPCC's flows has it",
        ),
    ] {
        assert!(refused(&workload).contains(says), "{workload}: {}", refused(&workload));
    }
}

/// What stands in the canonical form needs no file, and gives the same run.
#[test]
fn the_canonical_form_has_the_contents_of_files() {
    let files = [("matrix.cm", MATRIX), ("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)];
    let folder = folder("canonical", &files);
    for text in [LEAVES, RACKS] {
        let scenario = parse(text, &folder, &[]).unwrap();
        let again = Scenario::from_json(&scenario.to_json()).unwrap();
        assert_eq!(again, scenario);
        assert_eq!(again.to_json(), scenario.to_json());
        assert!(!scenario.to_json().contains(".txt") && !scenario.to_json().contains(".cm"));
        let hash = |scenario: &Scenario| {
            let results = run(scenario, 1, World::Sim).unwrap();
            let rows = table(&results, "summary").column_by_name("trace_hash").unwrap();
            rows.as_string::<i32>().value(0).to_owned()
        };
        assert_eq!(hash(&scenario), hash(&again));
    }
    // A list in the scenario is the same as its file.
    let inline = r#"["h13 h0 0s 20kb", "h0 h13 2us 100kb", "h5 h13 2us 3kb", "h1 h2 1ms 1b"]"#;
    let workload = format!(r#"{{ kind = "connections", list = {inline} }}"#);
    let inline = parse(LEAVES, &folder, &[("flow.0.workload", &workload)]).unwrap();
    let results = run(&inline, 1, World::Sim).unwrap();
    let listed = run(&parse(LEAVES, &folder, &[]).unwrap(), 1, World::Sim).unwrap();
    assert_eq!(connections(&results), connections(&listed));
}

#[test]
fn the_queue_of_a_graph_is_that_of_links_without_their_own() {
    let folder = folder("queues", &[("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)]);
    let limits = |keys: &[(&str, &str)]| {
        let json = parse(RACKS, &folder, keys).unwrap().to_json();
        let tree: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(tree["topology"].get("queue").is_none(), "its links have it");
        let links = tree["topology"]["link"].as_array().unwrap().clone();
        assert_eq!(links.len(), 5);
        links.iter().map(|link| link["queue"].clone()).collect::<Vec<_>>()
    };
    assert!(limits(&[("topology.queue", "70p")]).iter().all(|queue| queue == "70p"));
    let swept = format!("{RACKS}[sweep]\n\"topology.queue\" = [\"70p\", \"80p\"]\n");
    let swept = parse(&swept, &folder, &[]).unwrap();
    let point = swept.at(&[("topology.queue".to_owned(), "80p".to_owned())]).unwrap();
    assert!(point.to_json().contains("80p"));
    let text = RACKS.replace("queue = {", "# {");
    assert_eq!(
        parse(&text, &folder, &[]).unwrap_err().split_once(": topology.link: ").unwrap().1,
        "the file says nothing of queues: set topology.queue, topology.buffer, or topology.rtt, to \
         which queues of 1bdp refer"
    );
    let shared = parse(&text, &folder, &[("topology.buffer", r#"{ total = "2mb" }"#)]).unwrap();
    assert!(shared.to_json().contains(r#""queue":"infinite""#));
    assert!(parse(&text, &folder, &[("topology.rtt", "13us")]).is_ok());
}

#[test]
fn what_cannot_be_read_or_run_is_refused_with_file_and_line() {
    let files = [
        ("matrix.cm", MATRIX),
        ("topology.txt", TOPOLOGY),
        ("flow.txt", FLOWS),
        ("far.cm", "Nodes 17\nConnections 1\n16->0 start 0 size 1\n"),
        ("waits.cm", "Nodes 2\nConnections 1\n0->1 id 1 trigger 2 size 1\n"),
        ("late.cm", "Nodes 2\nConnections 1\n0->1 start 20000000000 size 1\n"),
        ("bad.txt", "2 1 1\n1\n0 1 10 1us 0\n"),
        ("apart.txt", "4 0 2\n0 1 1Gbps 1us 0\n2 3 1Gbps 1us 0\n"),
        ("far.txt", "1\n0 2 3 100 5 0\n"),
        ("switch.txt", "1\n0 4 3 100 5 0\n"),
    ];
    let folder = folder("refused", &files);
    let refused = |text: &str, keys: &[(&str, &str)]| parse(text, &folder, keys).unwrap_err();
    let list = |file: &str| format!(r#"{{ kind = "connections", list = "{file}" }}"#);
    let place = |file: &str| format!("'{}', ", folder.join(file).display());
    for (text, file, says) in [
        (LEAVES, "waits.cm", format!("{}line 3: `trigger` is not supported", place("waits.cm"))),
        (LEAVES, "far.cm", "'h16' is not allowed; the network has 16 nodes, h0 to h15".to_owned()),
        (LEAVES, "late.cm", "20ms is not allowed; the first one starts before the end".to_owned()),
        (LEAVES, "none.cm", "none.cm' cannot be read".to_owned()),
        (RACKS, "switch.txt", "'h4' is not allowed; the network has 6 nodes, h0 to h3".to_owned()),
    ] {
        let message = refused(text, &[("flow.0.workload", &list(file))]);
        assert!(message.contains("flow.0.workload.list: ") && message.contains(&says), "{message}");
    }
    let message = refused(RACKS, &[("topology.link", "bad.txt")]);
    let says =
        format!("{}line 3: rate 10 is not allowed; it is above 0, as in 100Gbps", place("bad.txt"));
    assert!(message.ends_with(&says), "{message}");
    let apart = [("topology.link", "apart.txt"), ("flow.0.workload", &list("far.txt"))];
    assert!(refused(RACKS, &apart).contains("no way leads"), "{}", refused(RACKS, &apart));
    let one = r#"{ kind = "connections", list = ["a b 0s 1mb"] }"#;
    let bare = LEAVES.replace("min_rto = \"1ms\"\n", "");
    for (text, key, value, says) in [
        (LEAVES, "flow.0.from", "h1", "each connection of the list has its own ends"),
        (&*bare, "flow.0.stack", "udp", "over udp no connection tells when it is done"),
        (LEAVES, "flow.0.host_time", "1us", "connections between hosts of their own"),
        (LEAVES, "flow.0.workload", r#"{ kind = "connections" }"#, "there is none; name a file"),
        (LEAVES, "flow.0.workload.list", r#"["h0 h1 0s"]"#, "connection 1: a connection has FROM"),
        (
            RACKS,
            "topology.access_rate",
            "1gbit",
            "connections of a list have no links of their own",
        ),
        ("[[flow]]\n", "flow.0.workload", one, "it needs the nodes of a leaf-spine, a fat-tree or"),
    ] {
        let message = refused(text, &[(key, value)]);
        assert!(message.contains(says), "{key} = {value}: {message}");
    }
    let scenario = parse(LEAVES, &folder, &[]).unwrap();
    let message = check(&scenario, World::Udp).unwrap_err().to_string();
    assert!(message.contains("f: workload.kind = 'connections' is not allowed here"), "{message}");
}
