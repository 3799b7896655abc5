//! Flows of many connections, from the file to the table.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use weir_lab::{Results, Scenario, World, check, run};

const WEB: &str = "
[topology]
rate = \"1gbit\"
rtt = \"1ms\"
[[flow]]
name = \"web\"
stack = \"rack/cubic\"
workload = { kind = \"flow-sizes\", sizes = [[1000, 0.3], [20000, 1]], load = 0.5, arrivals = 2000 }
[measure]
duration = \"30s\"
";

fn results(overrides: &[(&str, &str)], source: &str) -> Results {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    run(&Scenario::parse(WEB, &overrides, source).unwrap(), 1, World::Sim).unwrap()
}

/// Start and size of each connection.
fn offered(results: &Results) -> Vec<(f64, u64)> {
    let table = results.tables().iter().find(|table| table.name == "arrivals").unwrap();
    let column = |name| table.batch.column_by_name(name).unwrap();
    let starts = column("start_s").as_primitive::<Float64Type>().values();
    let sizes = column("size_bytes").as_primitive::<UInt64Type>().values();
    starts.iter().copied().zip(sizes.iter().copied()).collect()
}

#[test]
fn connections_load_the_slowest_link_as_asked() {
    // 0.3 have 1000 bytes in one segment; of the others, uniform up to 20000, the mean is 10500, in
    // 7.74 segments: the sum of ceil(x / 1448) from 1001 to 20000 over their number.
    let segments = (1_001..=20_000u32).map(|size| f64::from(size.div_ceil(1_448))).sum::<f64>();
    let wire = 0.3 * 1_052.0 + 0.7 * (10_500.5 + 52.0 * segments / 19_000.0);
    for (load, access) in [("0.5", "10gbit"), ("0.2", "10gbit"), ("50%", "500mbit")] {
        let results =
            results(&[("flow.0.workload.load", load), ("topology.access_rate", access)], "");
        let offered = offered(&results);
        assert_eq!(offered.len(), 2_000);
        let slowest = if access == "500mbit" { 500e6 } else { 1e9 };
        let share = if load == "0.2" { 0.2 } else { 0.5 };
        let gap = wire * 8.0 / (share * slowest);
        let mean = offered.last().unwrap().0 / 2_000.0;
        // Four standard deviations of the mean of that many exponential times.
        assert!((mean / gap - 1.0).abs() < 4.0 / 2_000f64.sqrt(), "{load}: {mean} against {gap}");
    }
}

#[test]
fn headers_that_are_not_sent_do_not_count() {
    let last = |key: &str, value: &str| offered(&results(&[(key, value)], "")).last().unwrap().0;
    let plain = last("flow.0.stack", "rack/cubic");
    assert!(last("flow.0.timestamps", "false") < plain, "shorter packets may come more often");
    assert!(last("topology.overhead", "38b") > plain);
}

#[test]
fn a_file_of_sizes_is_found_beside_the_scenario() {
    let folder = std::env::temp_dir().join(format!("weir-sizes-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine.cdf"), "# bytes, percent\n1000 30\n20000, 100\n").unwrap();
    let source = folder.join("web.toml");
    let found = results(&[("flow.0.workload.sizes", "mine.cdf")], &source.to_string_lossy());
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(offered(&found), offered(&results(&[], "")));
}

#[test]
fn the_distributions_that_come_with_weir_are_drawn_from() {
    for (sizes, largest) in [("web-search", 30_000_000), ("data-mining", 1_000_000_000)] {
        let keys = [("flow.0.workload.sizes", sizes), ("flow.0.workload.arrivals", "40")];
        let offered = offered(&results(&[keys[0], keys[1], ("measure.duration", "100ms")], ""));
        assert!(offered.iter().all(|(_, size)| *size <= largest), "{sizes}");
    }
}

#[test]
fn only_the_simulator_makes_connections() {
    let scenario = Scenario::parse(WEB, &[], "web.toml").unwrap();
    assert!(check(&scenario, World::Sim).is_ok());
    let refused = check(&scenario, World::Udp).unwrap_err().to_string();
    assert!(refused.contains("web: workload.kind = 'flow-sizes' is not allowed here"), "{refused}");
    assert_eq!(
        run(&scenario, 1, World::Udp).unwrap_err(),
        check(&scenario, World::Udp).unwrap_err().into()
    );
}
