//! Prints the trace hashes of ten scenarios as JSON, for the page to compare with its own.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

#[path = "../tests/ten/mod.rs"]
mod ten;

fn main() {
    let rows = ten::SCENARIOS.map(|name| {
        serde_json::json!({
            "name": name,
            "text": ten::text(name),
            "overrides": ten::OVERRIDES.map(|(key, value)| format!("{key}={value}")),
            "seed": ten::SEED,
            "hash": ten::native(name),
        })
    });
    println!("{}", serde_json::Value::from(rows.to_vec()));
}
