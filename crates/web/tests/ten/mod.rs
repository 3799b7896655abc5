//! Ten scenarios that come with Weir, cut to twenty seconds, and their runs through the one entry point.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use weir_lab::{Scenario, World};

/// A network of each kind, and what changes or disturbs it.
pub(crate) const SCENARIOS: [&str; 10] = [
    "two-flows",
    "bufferbloat",
    "bursty-loss",
    "parking-lot",
    "path-change",
    "radio-chain",
    "reordering",
    "rpc-mix",
    "satellite",
    "wifi-fade",
];
pub(crate) const OVERRIDES: [(&str, &str); 2] =
    [("measure.duration", "20s"), ("measure.warmup", "0s")];
pub(crate) const SEED: u64 = 7;

pub(crate) fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/weir/library");
    std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("it comes with Weir")
}

pub(crate) fn overrides() -> Vec<(String, String)> {
    OVERRIDES.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// The trace hash of a run as `weir run` makes it.
pub(crate) fn native(name: &str) -> String {
    let summary = table(name, "summary", &[]);
    let column = summary.column_by_name("trace_hash").expect("a column");
    assert_eq!(column.len(), 1);
    column.as_string::<i32>().value(0).to_owned()
}

/// The number of frames in a run of a radio network as `weir run` makes it.
#[allow(dead_code, reason = "only tests count frames")]
pub(crate) fn frames(name: &str) -> usize {
    table(name, "frames", &[("measure.frames", "1000000")]).num_rows()
}

fn table(scenario: &str, wanted: &str, more: &[(&str, &str)]) -> RecordBatch {
    let more = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let overrides: Vec<_> = overrides().into_iter().chain(more).collect();
    let parsed = Scenario::parse(&text(scenario), &overrides, scenario).expect("a scenario");
    let results = weir_lab::run(&parsed, SEED, World::Sim).expect("a run");
    let found = results.tables().iter().find(|table| table.name == wanted).expect("a table");
    found.batch.clone()
}
