//! What tests of scenarios share.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use arrow_array::RecordBatch;
use weir_lab::{Results, Scenario};

/// 16 hosts, as many ways up as hosts of a leaf.
pub(crate) const LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 4
spines = 4
rate = "10gbit"
delay = "1us"
queue = { kind = "ecn-step", threshold = "65p", limit = "1000p" }
[[flow]]
name = "f"
stack = "rack/dctcp"
min_rto = "1ms"
[measure]
duration = "20ms"
sample_interval = "0s"
"#;

/// A scenario of `text` with these keys set, or the error in one line. `source` is the name of its file.
pub(crate) fn parse(text: &str, keys: &[(&str, &str)], source: &str) -> Result<Scenario, String> {
    let keys: Vec<(String, String)> =
        keys.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::parse(text, &keys, source).map_err(|error| error.to_string())
}

pub(crate) fn table<'a>(results: &'a Results, name: &str) -> &'a RecordBatch {
    &results.tables().iter().find(|table| table.name == name).unwrap().batch
}
