//! The scenarios that come with Weir: each is valid, with every value it sweeps, and runs.

use std::fs;
use std::path::PathBuf;

use weir_lab::{Results, Scenario, World, run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn library() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder()).expect("there is a library");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(files.len() >= 15, "{} scenarios", files.len());
    files
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(path).expect("it can be read")))
        .collect()
}

fn goodput(results: &Results) -> Vec<f64> {
    let flows = results.tables().iter().find(|table| table.name == "flows");
    let column = flows.and_then(|table| table.batch.column_by_name("goodput_mbps").cloned());
    let column = column.expect("there is such a column").to_data();
    column.buffers()[0].typed_data::<f64>().to_vec()
}

#[test]
fn every_scenario_is_valid_and_each_of_its_flows_gets_through() {
    for (path, text) in library() {
        let scenario = Scenario::parse(&text, &[], &path.to_string_lossy());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            Some(scenario.file().name.as_str()),
            path.file_stem().and_then(|stem| stem.to_str())
        );
        assert!(
            !scenario.file().description.is_empty(),
            "{} has a description",
            scenario.file().name
        );
        let results = run(&scenario, scenario.file().measure.seed, World::Sim);
        let results = results.unwrap_or_else(|error| panic!("{}: {error}", scenario.file().name));
        let goodput = goodput(&results);
        assert!(goodput.iter().all(|mbps| *mbps > 0.0), "{}: {goodput:?}", scenario.file().name);
    }
}

/// The formula in scenarios/cellular-trace.toml.
fn cellular() -> String {
    const STEPS_PER_MS: u32 = 100;
    let (mut bits, mut text) = (0.0, String::new());
    for step in 1..=10_000 * STEPS_PER_MS {
        let t = f64::from(step) / f64::from(STEPS_PER_MS) / 1_000.0;
        let swing = 0.7 * libm::sin(2.0 * std::f64::consts::PI * t / 10.0)
            + 0.25 * libm::sin(14.0 * std::f64::consts::PI * t / 10.0);
        let fails = (7.5..7.9).contains(&t);
        if !fails {
            bits += 4e6 * (1.0 + swing) / 1_000.0 / f64::from(STEPS_PER_MS);
        }
        if bits >= 12_000.0 {
            bits -= 12_000.0;
            text += &format!("{}\n", step.div_ceil(STEPS_PER_MS));
        }
    }
    text + "10000\n"
}

#[test]
fn the_cellular_trace_follows_its_formula() {
    let path = folder().join("traces/cellular.trace");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, cellular()).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == cellular(), "WEIR_BLESS=1 writes it anew");
}
