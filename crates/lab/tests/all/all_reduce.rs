//! All-reduce in a fabric: what waits for what, how long it takes where nothing is in its way, and errors.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use proptest::prelude::*;
use weir_lab::{Results, Scenario, World, run};

use crate::common::{self, LEAVES, table};

/// Of 1448 bytes, the payload of a full packet.
const PACKET: u64 = 1_448;

fn parse(keys: &[(&str, &str)]) -> Result<Scenario, String> {
    common::parse(LEAVES, &[&[("measure.duration", "1s")], keys].concat(), "ring.toml")
}

fn results(keys: &[(&str, &str)], seed: u64) -> Results {
    run(&parse(keys).unwrap(), seed, World::Sim).unwrap_or_else(|error| panic!("{error}"))
}

/// An all-reduce with these keys.
fn all_reduce(keys: &str, others: &[(&str, &str)], seed: u64) -> Results {
    let workload = format!("{{ kind = \"all-reduce\", {keys} }}");
    results(&[&[("flow.0.workload", workload.as_str())], others].concat(), seed)
}

fn float(results: &Results, name: &str, column: &str) -> Option<f64> {
    let column = table(results, name).column_by_name(column).unwrap();
    column.as_primitive::<Float64Type>().iter().next().flatten()
}

fn trace_hash(results: &Results) -> String {
    let rows = table(results, "summary");
    rows.column_by_name("trace_hash").unwrap().as_string::<i32>().value(0).to_owned()
}

/// A connection, with its times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    from: u32,
    to: u32,
    start: u64,
    end: u64,
    size: u64,
}

/// All connections, which have ended.
fn connections(results: &Results) -> Vec<Connection> {
    let rows = table(results, "arrivals");
    let node = |name| rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values();
    let time = |name| rows.column_by_name(name).unwrap().as_primitive::<Float64Type>();
    let sizes = rows.column_by_name("size_bytes").unwrap().as_primitive::<UInt64Type>().values();
    let (from, to) = (node("from_node"), node("to_node"));
    let (start, fct) = (time("start_s"), time("fct_s"));
    let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
    let connection = |row: usize| {
        assert!(fct.iter().nth(row).flatten().is_some(), "connection {row} has not ended");
        let start_s = start.value(row);
        let end = nanos(start_s + fct.value(row));
        Connection { from: from[row], to: to[row], start: nanos(start_s), end, size: sizes[row] }
    };
    (0..rows.num_rows()).map(connection).collect()
}

/// A host begins a step when its own part and the previous host's part of the step before have arrived.
fn check_ring(rows: &[Connection], hosts: u32, size: u64) {
    let steps = 2 * (hosts as usize - 1);
    assert_eq!(rows.len(), steps * hosts as usize);
    assert_eq!(rows.iter().map(|row| row.size).sum::<u64>(), steps as u64 * size);
    let successors: BTreeMap<u32, u32> = rows.iter().map(|row| (row.from, row.to)).collect();
    assert_eq!(successors.len() as u32, hosts);
    for (host, next) in &successors {
        assert!(rows.iter().all(|row| row.from != *host || row.to == *next));
        let begun = times(rows, |row| (row.from == *host).then_some(row.start));
        let sent = times(rows, |row| (row.from == *host).then_some(row.end));
        let arrived = times(rows, |row| (row.to == *host).then_some(row.end));
        assert_eq!((begun.len(), arrived.len()), (steps, steps));
        for step in 1..steps {
            let both = sent[step - 1].max(arrived[step - 1]);
            assert_eq!(begun[step], both, "{host}, step {step}: {sent:?} and {arrived:?}");
        }
    }
}

/// A host sends up when all its children have, and down when the sum has come down.
fn check_tree(rows: &[Connection], hosts: u32, size: u64) {
    assert_eq!(rows.len() as u32, 2 * (hosts - 1));
    assert!(rows.iter().all(|row| row.size == size));
    let way = |from, to| rows.iter().find(|row| row.from == from && row.to == to).unwrap();
    let (up, down): (Vec<Connection>, Vec<Connection>) =
        rows.iter().partition(|row| row.start < way(row.to, row.from).start);
    assert_eq!(up.len(), down.len());
    for row in &up {
        let children = times(&up, |other| (other.to == row.from).then_some(other.end));
        assert!(children.len() <= 2);
        assert_eq!(row.start, children.last().copied().unwrap_or(0), "{row:?}");
    }
    for row in &down {
        let sum = down.iter().find(|other| other.to == row.from).map(|other| other.end);
        let at_root = || times(&up, |other| (other.to == row.from).then_some(other.end)).pop();
        assert_eq!(Some(row.start), sum.or_else(at_root), "{row:?}");
    }
}

fn times(rows: &[Connection], time: impl Fn(&Connection) -> Option<u64>) -> Vec<u64> {
    let mut times: Vec<u64> = rows.iter().filter_map(time).collect();
    times.sort_unstable();
    times
}

/// A connection of `packets` full packets over `links` links of 10 Gbit/s and 1 us, in nanoseconds: a handshake of
/// packets of 60 bytes, and all packets in the first window.
fn alone(links: u64, packets: u64) -> u64 {
    assert!(packets <= 10);
    let handshake = 2 * links * (48 + 1_000);
    handshake + packets * 1_200 + (links - 1) * 1_200 + links * 1_000
}

/// What acknowledgements and ends of connections, of 52 bytes each, add to a step at most: 10 packets are
/// acknowledged by up to 10, and three more belong to the handshake and the end of another connection. They are in the way of
/// one packet of each trip on each link at most.
fn in_the_way(links: u64) -> u64 {
    links * 13 * 42
}

#[test]
fn a_ring_below_one_switch_takes_its_steps() {
    let size = 4 * 10 * PACKET;
    let results = all_reduce(&format!("size = \"{size}b\", hosts = 4"), &[], 1);
    check_ring(&connections(&results), 4, size);
    let ideal = 6 * alone(2, 10);
    let took = float(&results, "flows", "fct_s").unwrap() * 1e9;
    let bound = ideal + 6 * in_the_way(2);
    assert!((ideal as f64..bound as f64).contains(&took), "{ideal} <= {took} < {bound}");
    // nccl-tests: bus bandwidth is 2 (n - 1) / n times size over time.
    let bus = 2.0 * 3.0 / 4.0 * size as f64 * 8.0 / took * 1e3;
    let goodput = float(&results, "flows", "goodput_mbps").unwrap();
    assert!((goodput / 4.0 / bus - 1.0).abs() < 1e-9, "{goodput} and {bus}");
}

/// In the order of hosts each leaf has one connection up and one down at a time, even if all take the same spine.
/// Hosts whose hop is short are ahead of others in a step: what answers a handshake shares its host's link with that host's
/// own part then, of 10 packets.
#[test]
fn a_ring_in_host_order_takes_the_steps_of_its_longest_hop() {
    let size = 16 * 10 * PACKET;
    let results = all_reduce(&format!("size = \"{size}b\""), &[("topology.routing", "single")], 1);
    check_ring(&connections(&results), 16, size);
    let ideal = 30 * alone(4, 10);
    let took = float(&results, "flows", "fct_s").unwrap() * 1e9;
    let bound = ideal + 30 * (in_the_way(4) + 10 * 1_200);
    assert!((ideal as f64..bound as f64).contains(&took), "{ideal} <= {took} < {bound}");
}

#[test]
fn a_tree_takes_the_whole_buffer_up_and_down() {
    let size = 10 * PACKET;
    let took = |hosts: u32| {
        let keys = format!("algorithm = \"tree\", size = \"{size}b\", hosts = {hosts}");
        let results = all_reduce(&keys, &[], 1);
        check_tree(&connections(&results), hosts, size);
        float(&results, "flows", "fct_s").unwrap() * 1e9
    };
    let (two, four) = (took(2), took(4));
    let bound = |ideal: u64, levels: u64| ideal as f64..(ideal + levels * in_the_way(2)) as f64;
    assert!(bound(2 * alone(2, 10), 2).contains(&two), "{two}");
    // Two levels up and down. The root sends to two children at once, over one link.
    let ideal = 4 * alone(2, 10);
    assert!((ideal as f64..bound(ideal + 10 * 1_200, 4).end).contains(&four), "{four}");
}

#[test]
fn where_connections_share_links_they_still_wait_for_what_they_need() {
    for routing in ["single", "ecmp", "spray"] {
        for seed in 1..4 {
            let keys = [("topology.routing", routing)];
            let ring = |seed| all_reduce("size = \"2mb\", order = \"random\"", &keys, seed);
            let results = ring(seed);
            check_ring(&connections(&results), 16, 2_000_000);
            assert_eq!(trace_hash(&results), trace_hash(&ring(seed)), "{routing}");
            assert_ne!(trace_hash(&results), trace_hash(&ring(seed + 10)), "{routing}");
            // 30 steps of 125000 bytes at 10 Gbit/s.
            assert!(float(&results, "flows", "fct_s").unwrap() > 30.0 * 100e-6);
            let keys_of_tree = "algorithm = \"tree\", size = \"500kb\", order = \"random\"";
            let tree = all_reduce(keys_of_tree, &keys, seed);
            check_tree(&connections(&tree), 16, 500_000);
        }
    }
}

#[test]
fn an_iteration_begins_when_the_one_before_has_ended_everywhere() {
    let one = all_reduce("size = \"100kb\", hosts = 5", &[], 1);
    let three = all_reduce("size = \"100kb\", hosts = 5, iterations = 3", &[], 1);
    let rows = connections(&three);
    assert_eq!(rows.len(), 3 * 40);
    let mut begins = 0;
    let first_ends = rows[..40].iter().map(|row| row.end).max().unwrap() as f64;
    for rows in rows.chunks(40) {
        let first = rows.iter().map(|row| row.start).min();
        assert_eq!(first, Some(begins));
        let moved: Vec<Connection> =
            rows.iter().map(|row| Connection { start: row.start - begins, ..*row }).collect();
        let moved: Vec<Connection> =
            moved.iter().map(|row| Connection { end: row.end - begins, ..*row }).collect();
        check_ring(&moved, 5, 100_000);
        begins = rows.iter().map(|row| row.end).max().unwrap();
    }
    let took = |results| float(results, "flows", "fct_s").unwrap();
    assert!((took(&three) * 1e9 - begins as f64).abs() < 1.0);
    assert!((took(&one) * 1e9 - first_ends).abs() < 1.0, "the first is as if it were alone");
}

/// A host that is late has nothing to add to what arrives.
#[test]
fn with_a_jitter_no_host_sends_before_it_is_ready() {
    for (size, jitter) in [("1mb", "50us"), ("10kb", "1ms")] {
        let keys = [("flow.0.start_jitter", jitter), ("flow.0.start", "1ms")];
        let rows = connections(&all_reduce(&format!("size = \"{size}\", hosts = 4"), &keys, 1));
        let (first, others) = rows.split_at(4);
        assert!(first.iter().all(|row| (1_000_000..2_000_000).contains(&row.start)), "{first:?}");
        assert!(first.windows(2).all(|pair| pair[0].start != pair[1].start), "{first:?}");
        for row in others {
            assert!(row.start >= first[row.from as usize].start, "{row:?} before {first:?}");
        }
    }
}

#[test]
fn what_is_stopped_or_fails_begins_nothing_more() {
    let flow = |results: &Results| {
        let flows = table(results, "flows");
        let completed = flows.column_by_name("completed").unwrap().as_boolean().value(0);
        let failure = flows.column_by_name("failure").unwrap().as_string::<i32>();
        (completed, failure.iter().next().flatten().map(str::to_owned))
    };
    let stopped = all_reduce("size = \"1mb\"", &[("flow.0.stop", "300us")], 1);
    let rows = connections(&stopped);
    assert!(rows.len() > 16 && rows.len() < 480, "{}", rows.len());
    assert!(rows.iter().all(|row| row.start < 300_000));
    assert_eq!(flow(&stopped), (false, None));
    assert_eq!(float(&stopped, "flows", "fct_s"), None);
    assert!(float(&stopped, "summary", "sim_s").unwrap() < 0.1, "it ends with the last of them");
    let lost = r#"[{ link = "h2-leaf0", impair = { loss = "100%" } }]"#;
    let keys = [("topology.port", lost), ("flow.0.max_wait", "10ms")];
    let failed = all_reduce("size = \"1mb\"", &keys, 1);
    // Parts of the others move on until they come to that host. Its predecessor's handshake fails, too.
    let (completed, failure) = flow(&failed);
    assert!(!completed && failure.unwrap().ends_with("connections failed"));
    assert!(float(&failed, "summary", "sim_s").unwrap() < 0.5, "nothing waits for what has failed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_all_reduce_moves_its_bytes_in_its_order(
        hosts in 2u32..17,
        size in 16u64..60_000,
        routing in prop::sample::select(vec!["single", "ecmp", "packet-ecmp(paths=8)"]),
        (ring, drawn) in (any::<bool>(), any::<bool>()),
        seed in 0u64..1_000,
    ) {
        let (algorithm, order) =
            (if ring { "ring" } else { "tree" }, if drawn { "random" } else { "host" });
        let keys = format!(
            "algorithm = \"{algorithm}\", order = \"{order}\", size = \"{size}b\", hosts = {hosts}"
        );
        let results = all_reduce(&keys, &[("topology.routing", routing)], seed);
        let rows = connections(&results);
        if ring { check_ring(&rows, hosts, size) } else { check_tree(&rows, hosts, size) }
        let last = rows.iter().map(|row| row.end).max().unwrap();
        let took = float(&results, "flows", "fct_s").unwrap() * 1e9;
        prop_assert!((took - last as f64).abs() < 1.0, "{} and {}", took, last);
    }
}

#[test]
fn what_cannot_be_is_refused_by_key_and_value() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("hosts = 1", &[]),
        ("hosts = 17", &[]),
        ("size = \"0b\"", &[]),
        ("size = \"15b\"", &[]),
        ("algorithm = \"rings\"", &[]),
        ("algorithm = \"butterfly\"", &[]),
        ("order = \"sorted\"", &[]),
        ("iterations = 0", &[]),
        ("iterations = 100000", &[]),
        ("ranks = 4", &[]),
        ("load = \"30%\"", &[]),
        ("size = \"1mb\"", &[("flow.0.from", "h1")]),
    ];
    let refused = cases.iter().map(|(keys, others)| {
        let workload = format!("{{ kind = \"all-reduce\", {keys} }}");
        parse(&[&[("flow.0.workload", workload.as_str())], *others].concat()).unwrap_err()
    });
    let whole = [
        "[[flow]]\nworkload = { kind = \"all-reduce\" }\n",
        "[topology]\nkind = \"fat-tree\"\ndelay = \"1us\"\n[[flow]]\nstack = \"udp\"\nworkload = { kind = \"all-reduce\" }\n",
    ];
    let whole = whole.map(|text| Scenario::parse(text, &[], "ring.toml").unwrap_err().to_string());
    let refused: Vec<String> = refused.chain(whole).collect();
    insta::assert_snapshot!(refused.join("\n"));
}
