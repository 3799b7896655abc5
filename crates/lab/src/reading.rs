//! Reads values, and says in plain words what is wrong with them.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Deserializer as PathDeserializer, Track};
use weir_units::known;

use crate::error::Problem;

/// Reads a value, and names the key where that fails.
pub(crate) fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    deserialize_with(value, |value| T::deserialize(value))
}

/// The same, where `read` says how it is read.
pub(crate) fn deserialize_with<T>(
    value: Value,
    read: impl FnOnce(PathDeserializer<'_, '_, Value>) -> Result<T, serde_json::Error>,
) -> Result<T, Problem> {
    let mut track = Track::new();
    read(PathDeserializer::new(value, &mut track)).map_err(|error| {
        let key = match track.path().to_string() {
            path if path == "." => String::new(),
            path => path.replace('[', ".").replace(']', ""),
        };
        let text = error.to_string();
        Problem::from_custom(&key, &text).unwrap_or_else(|| Problem::new(key, in_our_words(&text)))
    })
}

/// serde's wording, shorter and without the names of our types.
fn in_our_words(message: &str) -> String {
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let value = what.split_once(['`', '"']).map_or("this", |(_, rest)| &rest[..rest.len() - 1]);
    let allowed = expected.trim_start_matches("one of ").replace('`', "");
    if what.starts_with("unknown field") {
        return format!("there is no such key; {}", known(value, allowed.split(", ")));
    }
    if what.starts_with("unknown variant") {
        return format!("'{value}' is not allowed; {}", known(value, allowed.split(", ")));
    }
    if what.starts_with("missing field") {
        return format!("{value} is missing");
    }
    if !what.starts_with("invalid") {
        return message.to_owned();
    }
    let needed = match expected {
        "u32" | "u64" => "it is a whole number, not negative",
        "a boolean" => "it is true or false",
        "a string" => "it is text in quotes",
        "a sequence" => "it is a list",
        section if section == "a map" || section.starts_with("struct") => {
            "it is a section with keys of its own"
        }
        other => other,
    };
    format!("{value} is not allowed; {needed}")
}
