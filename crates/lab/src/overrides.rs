//! Setting single values by dotted key: `topology.queue`, `flow.0.stack`, `flow.*.stack`.

use serde_json::{Map, Value, json};

use crate::error::Problem;

/// Reads the value of an override. JSON literals and TOML lists, tables and strings are what they
/// say; everything else is text, so `2bdp` needs no quotes.
pub(crate) fn value(text: &str) -> Value {
    let text = text.trim();
    if let Ok(literal) = serde_json::from_str(text) {
        return literal;
    }
    let structured = text.starts_with(['[', '{', '"', '\'']);
    let read = || toml::from_str::<Map<String, Value>>(&format!("value = {text}")).ok();
    let value = structured.then(read).flatten().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Sets `key` to `value`. A swept key that is set is swept no longer.
pub(crate) fn apply(tree: &mut Map<String, Value>, key: &str, value: Value) -> Result<(), Problem> {
    if key.split('.').any(str::is_empty) {
        let message = "a key has names joined by dots, as in topology.rate";
        return Err(Problem::new(key, message));
    }
    if let Some(swept) = key.strip_prefix("sweep.") {
        let sweep = tree.entry("sweep").or_insert_with(|| Map::new().into());
        return set(sweep, &[swept], value).map_err(|message| Problem::new(key, message));
    }
    if let Some(Value::Object(sweep)) = tree.get_mut("sweep") {
        sweep.retain(|swept, _| !same(key, swept));
    }
    let mut root = Value::Object(std::mem::take(tree));
    let parts: Vec<&str> = key.split('.').collect();
    let result = set(&mut root, &parts, value);
    if let Value::Object(changed) = root {
        *tree = changed;
    }
    result.map_err(|message| Problem::new(key, message))
}

/// Whether the override `pattern` sets `key`, something inside it, or something around it.
pub(crate) fn touches(pattern: &str, key: &str) -> bool {
    pattern.split('.').zip(key.split('.')).all(|(set, part)| set == part || set == "*")
}

fn same(pattern: &str, key: &str) -> bool {
    touches(pattern, key) && pattern.split('.').count() == key.split('.').count()
}

fn set(at: &mut Value, parts: &[&str], value: Value) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        *at = value;
        return Ok(());
    };
    match at {
        Value::Object(table) => {
            let inner = table.entry(*part).or_insert_with(|| Map::new().into());
            if *part == "queue" && !rest.is_empty() && inner.is_string() {
                // A size is short for a table with a limit, so its other keys can be set.
                *inner = json!({ "limit": inner.take() });
            }
            set(inner, rest, value)
        }
        Value::Array(items) if *part == "*" => {
            items.iter_mut().try_for_each(|item| set(item, rest, value.clone()))
        }
        Value::Array(items) => {
            let count = items.len();
            let item = part.parse().ok().and_then(|index: usize| items.get_mut(index));
            match item {
                Some(item) => set(item, rest, value),
                None => {
                    Err(format!("there is no number {part}; there are {count}, counted from 0"))
                }
            }
        }
        _ => Err(format!("'{part}' cannot be set inside the value {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Map<String, Value> {
        toml::from_str(text).unwrap()
    }

    fn after(text: &str, key: &str, text_value: &str) -> Result<Map<String, Value>, String> {
        let mut tree = tree(text);
        apply(&mut tree, key, value(text_value)).map_err(|problem| problem.to_string())?;
        Ok(tree)
    }

    #[test]
    fn values_are_what_they_look_like() {
        assert_eq!(value("2bdp"), Value::from("2bdp"));
        assert_eq!(value("10"), Value::from(10));
        assert_eq!(value("true"), Value::from(true));
        assert_eq!(value("[1, 2]"), Value::from(vec![1, 2]));
        assert_eq!(value("\"10\""), Value::from("10"));
        assert_eq!(value("{ kind = 'file' }")["kind"], Value::from("file"));
        assert_eq!(value("go-back-n(30)/none"), Value::from("go-back-n(30)/none"));
    }

    #[test]
    fn a_dotted_key_reaches_into_tables_and_lists() {
        let flows = "[[flow]]\nstack = 'a'\n[[flow]]\nstack = 'b'\n";
        assert_eq!(after("", "topology.rate", "5mbit"), Ok(tree("topology.rate = '5mbit'")));
        assert_eq!(
            after("queue = '2bdp'", "queue.kind", "codel"),
            Ok(tree("queue = { limit = '2bdp', kind = 'codel' }"))
        );
        assert_eq!(
            after(flows, "flow.1.stack", "c"),
            Ok(tree("[[flow]]\nstack = 'a'\n[[flow]]\nstack = 'c'\n"))
        );
        assert_eq!(
            after(flows, "flow.*.stack", "c"),
            Ok(tree("[[flow]]\nstack = 'c'\n[[flow]]\nstack = 'c'\n"))
        );
        assert_eq!(
            after(flows, "flow.2.stack", "c").unwrap_err(),
            "flow.2.stack: there is no number 2; there are 2, counted from 0"
        );
        assert_eq!(
            after("name = 'x'", "name.first", "c").unwrap_err(),
            "name.first: 'first' cannot be set inside the value \"x\""
        );
    }

    #[test]
    fn a_key_that_is_set_is_no_longer_swept() {
        let swept =
            after("[sweep]\n'topology.queue' = ['1bdp']\n", "topology.queue", "2bdp").unwrap();
        assert_eq!(swept["sweep"], Value::Object(Map::new()));
    }
}
