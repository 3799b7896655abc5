//! The documents cannot drift from the code: the key reference in docs/scenario.md and the columns
//! in docs/results.md are compared with it. `WEIR_BLESS=1 cargo test -p weir-lab --test docs`
//! rewrites the key reference.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use weir_cc::CcConfig;
use weir_lab::{Scenario, World, run, sections};

const BEGIN: &str = "<!-- keys: written by a test from the code -->\n";
const END: &str = "<!-- end of keys -->\n";

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// A default as the reference shows it.
fn default(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::Array(items) if items.is_empty() => "empty".to_owned(),
        Value::Object(_) => "as listed".to_owned(),
        other => format!("`{other}`"),
    }
}

fn reference() -> String {
    let mut text = String::new();
    for section in sections() {
        let defaults = (section.defaults)();
        text += &format!("\n### {}\n\n| key | value | default | meaning |\n", section.title);
        text += "|---|---|---|---|\n";
        for key in section.keys {
            let default = default(&defaults[key.name]);
            let only = key.only.map(|only| format!(" Only with {}.", only()));
            let about = key.about.trim().to_owned() + &only.unwrap_or_default();
            text += &format!("| `{}` | {} | {default} | {about} |\n", key.name, key.value());
        }
    }
    text
}

#[test]
fn the_key_reference_is_that_of_the_code() {
    let path = document("scenario.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    let reference = reference();
    assert!(reference.lines().count() > 80, "the reference lists every section");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, [before, BEGIN, &reference, "\n", END, after].concat()).unwrap();
    } else {
        let stale = reference.lines().find(|line| !listed.contains(line));
        let same = listed.trim() == reference.trim();
        assert!(same, "WEIR_BLESS=1 rewrites it; first line that is missing: {stale:?}");
    }
}

#[test]
fn every_example_in_the_scenario_guide_is_valid() {
    let text = fs::read_to_string(document("scenario.md")).unwrap();
    let examples: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(examples.len() >= 5, "{} examples", examples.len());
    for example in examples {
        let complete = if example.contains("[[flow]]") {
            example.into()
        } else {
            format!("{example}\n[[flow]]\n")
        };
        if let Err(error) = Scenario::parse(&complete, &[], "docs/scenario.md") {
            panic!("{error}\n{complete}");
        }
    }
}

/// `name`, type and whether it may be null, as docs/results.md lists them below `## name`.
fn listed_columns(text: &str, table: &str) -> Vec<(String, String)> {
    let heading = format!("## `{table}`\n");
    let (_, rest) = text.split_once(&heading).expect("every table has a section");
    let section = rest.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().replace('`', ""));
            (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
        })
        .collect()
}

#[test]
fn the_documented_columns_are_those_of_the_tables() {
    let text = fs::read_to_string(document("results.md")).unwrap();
    let scenario = Scenario::parse("[[flow]]\n", &[("measure.duration".into(), "1s".into())], "");
    let results = run(&scenario.unwrap(), 1, World::Sim).unwrap();
    assert_eq!(results.tables().len(), 11);
    for table in results.tables() {
        let columns: Vec<(String, String)> = table
            .batch
            .schema()
            .fields()
            .iter()
            .filter(|field| !field.name().starts_with("cc."))
            .map(|field| {
                let null = if field.is_nullable() { "?" } else { "" };
                (field.name().clone(), format!("{}{null}", short(&field.data_type().to_string())))
            })
            .collect();
        assert_eq!(listed_columns(&text, table.name), columns, "table {}", table.name);
    }
}

/// The columns `cc.NAME` that the controllers of a lossy path have, and those that docs/results.md lists for them.
#[test]
fn internal_variables_are_columns_of_samples() {
    let text = fs::read_to_string(document("results.md")).unwrap();
    let listed = listed_columns(&text, "cc.NAME");
    let mut reporting = 0;
    for entry in CcConfig::CATALOGUE {
        let keys = [
            ("measure.duration", "4s"),
            ("topology.forward.loss", "0.3%"),
            ("flow.0.stack", entry.examples[0]),
        ];
        let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
        // Those that need feedback of routers do not run on this path, and have no variable without it.
        let Ok(scenario) = Scenario::parse("[[flow]]\n", &keys, "") else { continue };
        let results = run(&scenario, 1, World::Sim).unwrap();
        let samples = results.tables().iter().find(|table| table.name == "samples").unwrap();
        let schema = samples.batch.schema();
        let names = schema.fields().iter().filter_map(|field| field.name().strip_prefix("cc."));
        // The wrapper has those of the controller in it, which is CUBIC without a choice.
        let is_own =
            |name: &str| name == entry.name || (entry.name == "careful-resume" && name == "cubic");
        let own: Vec<&str> = listed
            .iter()
            .filter(|(controller, _)| is_own(controller))
            .flat_map(|(_, names)| names.split(", "))
            .collect();
        for name in names {
            assert!(own.contains(&name), "{}: {name} is not in docs/results.md", entry.name);
            reporting += 1;
        }
    }
    assert!(reporting > 40, "{reporting}");
}

fn short(arrow: &str) -> &str {
    match arrow {
        "UInt32" => "u32",
        "UInt64" => "u64",
        "Float64" => "f64",
        "Utf8" => "text",
        "Boolean" => "bool",
        other => other,
    }
}
