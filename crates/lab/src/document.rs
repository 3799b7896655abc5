//! A scenario as it was written: a tree of values, and where each of them came from.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::error::{Place, Problem, ScenarioError};
use crate::overrides;

/// The text of a scenario with overrides applied, not yet checked.
pub(crate) struct Document<'a> {
    source: &'a str,
    text: &'a str,
    overrides: &'a [(String, String)],
    tree: Map<String, Value>,
}

impl<'a> Document<'a> {
    /// Reads TOML and applies `overrides`, dotted keys with values, in their order.
    pub(crate) fn parse(
        text: &'a str,
        overrides: &'a [(String, String)],
        source: &'a str,
    ) -> Result<Self, ScenarioError> {
        let tree = toml::from_str(text).map_err(|error| syntax_error(text, source, &error))?;
        let mut document = Self { source, text, overrides, tree };
        flatten_sweep(&mut document.tree);
        for (key, value) in overrides {
            overrides::apply(&mut document.tree, key, overrides::value(value))
                .map_err(|problem| document.error(problem))?;
        }
        Ok(document)
    }

    /// The values, with the keys of `[sweep]` in dotted form.
    pub(crate) fn tree(&self) -> &Map<String, Value> {
        &self.tree
    }

    /// The path of the file.
    pub(crate) fn source(&self) -> &str {
        self.source
    }

    /// Adds the place to a problem: the last override that touches its key, else the line of the
    /// file, where a key that was not written counts as the section around it.
    pub(crate) fn error(&self, problem: Problem) -> ScenarioError {
        let source = self.source.to_owned();
        let given =
            self.overrides.iter().rev().find(|(key, _)| overrides::touches(key, &problem.key));
        let place = match (given, span_of(self.text, &problem.key)) {
            (Some((key, value)), _) => Place::Override { key: key.clone(), value: value.clone() },
            (None, Some(span)) => Place::Line { source, line: line_of(self.text, &span) },
            (None, None) => Place::File { source },
        };
        ScenarioError { place, problem }
    }
}

fn syntax_error(text: &str, source: &str, error: &toml::de::Error) -> ScenarioError {
    let source = source.to_owned();
    let place = match error.span() {
        Some(span) => Place::Line { source, line: line_of(text, &span) },
        None => Place::File { source },
    };
    let message = format!("this is not TOML: {}", error.message().replace('\n', ", "));
    ScenarioError { place, problem: Problem::new("", message) }
}

/// `[sweep]` may spell a dotted key in quotes or as nested tables; afterwards it is one map from
/// dotted keys to lists.
fn flatten_sweep(tree: &mut Map<String, Value>) {
    fn collect(prefix: &str, table: Map<String, Value>, flat: &mut Map<String, Value>) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match value {
                Value::Object(inner) => collect(&key, inner, flat),
                leaf => drop(flat.insert(key, leaf)),
            }
        }
    }
    if let Some(Value::Object(sweep)) = tree.get_mut("sweep") {
        let mut flat = Map::new();
        collect("", std::mem::take(sweep), &mut flat);
        *sweep = flat;
    }
}

/// Where `key`, or the innermost written section around it, stands in the text.
fn span_of(text: &str, key: &str) -> Option<Range<usize>> {
    let mut value = DeValue::Table(DeTable::parse(text).ok()?.into_inner());
    let mut found = None;
    let mut rest: Vec<&str> = key.split('.').collect();
    while !rest.is_empty() {
        let (taken, span, inner) = match step(value, &rest) {
            Some(inner) => inner,
            None => break,
        };
        found = Some(span);
        value = inner;
        rest.drain(..taken);
    }
    found
}

/// One level down along `rest`: how many parts of it that took (a quoted key may hold dots), where
/// the key stands, and the value there.
fn step<'a>(value: DeValue<'a>, rest: &[&str]) -> Option<(usize, Range<usize>, DeValue<'a>)> {
    match value {
        DeValue::Table(table) => table.into_iter().find_map(|(name, inner)| {
            let parts = name.get_ref().split('.').count();
            let here = rest.get(..parts)?.join(".") == *name.get_ref();
            here.then(|| (parts, name.span(), inner.into_inner()))
        }),
        DeValue::Array(items) => {
            let inner = items.into_iter().nth(rest[0].parse().ok()?)?;
            Some((1, inner.span(), inner.into_inner()))
        }
        _ => None,
    }
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text[..span.start.min(text.len())].matches('\n').count() + 1
}
