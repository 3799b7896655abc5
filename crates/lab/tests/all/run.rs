//! A run from the file to the tables.

use arrow_array::UInt64Array;
use weir_lab::{Results, Scenario, World, run};

const TWO_FLOWS: &str = "
[topology]
rate = \"10mbit\"
rtt = \"20ms\"
[[flow]]
stack = \"reno\"
count = 2
start_jitter = \"100ms\"
[measure]
duration = \"3s\"
warmup = \"1s\"
events = 100
";

fn results(overrides: &[(&str, &str)], seed: u64) -> Results {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::parse(TWO_FLOWS, &overrides, "two-flows.toml");
    run(&scenario.expect("it is valid"), seed, World::Sim).expect("it runs")
}

fn rows(results: &Results, table: &str) -> usize {
    let found = results.tables().iter().find(|t| t.name == table);
    found.expect("there is such a table").batch.num_rows()
}

#[test]
fn every_table_is_filled() {
    let results = results(&[], 1);
    assert_eq!(rows(&results, "summary"), 1);
    assert_eq!(rows(&results, "flows"), 2);
    assert_eq!(rows(&results, "links"), 2);
    assert!(rows(&results, "samples") >= 2 * 20, "{}", rows(&results, "samples"));
    assert!(rows(&results, "queues") >= 20);
    assert!(rows(&results, "events") > 2);
    assert_eq!(rows(&results, "requests"), 0);
}

#[test]
fn the_same_seed_gives_the_same_tables_and_another_seed_others() {
    let batches = |seed| -> Vec<_> {
        results(&[], seed).tables().iter().map(|table| table.batch.clone()).collect()
    };
    assert_eq!(batches(7), batches(7));
    assert_ne!(batches(7), batches(8));
}

#[test]
fn requests_are_recorded() {
    let request = "{ kind = 'request', request = '100b', response = '20kb', gap = '10ms' }";
    let results = results(&[("flow.0.workload", request)], 1);
    assert!(rows(&results, "requests") > 20, "{}", rows(&results, "requests"));
}

/// A policer passes its rate and one burst, a shaper the link's rate; a greedy sender of datagrams is
/// without any signal to slow down.
#[test]
fn datagrams_pass_at_the_rate_of_the_tokens() {
    let delivered = |policer: &str, burst: &str| {
        let keys = [
            ("flow.0.stack", "udp"),
            ("flow.0.count", "1"),
            ("flow.0.start_jitter", "0s"),
            ("measure.warmup", "0s"),
            (policer, "{ rate = '4mbit', burst = '30kb' }"),
            (burst, "30kb"),
        ];
        let set: Vec<(&str, &str)> = keys.into_iter().filter(|(key, _)| !key.is_empty()).collect();
        let results = results(&set, 1);
        let links = results.tables().iter().find(|table| table.name == "links").unwrap();
        let column = links.batch.column_by_name("delivered_bytes").unwrap();
        column.as_any().downcast_ref::<UInt64Array>().unwrap().value(0) as f64
    };
    let policed = delivered("topology.forward.policer", "");
    // 4 Mbit/s in 3 seconds less half the round trip; a packet of tokens may be left over.
    let expected = 30_000.0 + 500_000.0 * 2.99;
    assert!((policed - expected).abs() < 6_000.0, "{policed} of {expected}");
    let shaped = delivered("", "topology.burst");
    let expected = 1_250_000.0 * 2.99;
    assert!((shaped - expected).abs() < 31_500.0, "{shaped} of {expected}");
}
