//! A scenario: the complete description of an experiment, checked, and lowered to what worlds run.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_scene::{RunSpec, TransportSpec};
use weir_units::Rng;

use crate::check::check;
use crate::document::Document;
use crate::error::{Problem, ScenarioError};
use crate::imports;
use crate::lower;
use crate::overrides;
use crate::scenario_file::ScenarioFile;
use crate::scripts;
use crate::sizes;
use crate::traces;

/// A scenario that has been checked. A clone shares what it holds.
#[derive(Clone, Debug)]
pub struct Scenario {
    lowered: Lowered,
    written: Option<Arc<Written>>,
}

/// The keys of a scenario, and what worlds run of it: made once.
#[derive(Clone, Debug)]
struct Lowered {
    file: Arc<ScenarioFile>,
    spec: Arc<RunSpec>,
}

/// What a person wrote, and what was checked of it: a point of a sweep that is among this is not
/// lowered again.
#[derive(Debug)]
struct Written {
    text: String,
    overrides: Vec<(String, String)>,
    source: String,
    checked: Vec<(Map<String, Value>, Lowered)>,
}

/// Equal where every key has the same value.
impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.file() == other.file()
    }
}

impl Scenario {
    /// Reads a scenario file with `overrides` (dotted keys with values) on top of it. `source` is
    /// the file's path: it stands in messages, and trace files are found next to it.
    ///
    /// # Errors
    /// For anything that is not allowed, with its place, key and value.
    pub fn parse(
        text: &str,
        overrides: &[(String, String)],
        source: &str,
    ) -> Result<Self, ScenarioError> {
        let document = Document::parse(text, overrides, source)?;
        let mut checked = Vec::new();
        let lowered = load(&document)
            .and_then(|tree| lower_tree(tree, &mut checked))
            .map_err(|problem| document.error(problem))?;
        let (text, overrides, source) = (text.to_owned(), overrides.to_vec(), source.to_owned());
        let written = Written { text, overrides, source, checked };
        Ok(Self { lowered, written: Some(Arc::new(written)) })
    }

    /// Reads the canonical form that [`Self::to_json`] writes.
    ///
    /// # Errors
    /// If the text is something else.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let lowered = serde_json::from_str(text)
            .map_err(|error| Problem::new("", format!("this is not a canonical scenario: {error}")))
            .and_then(|tree| lower_tree(tree, &mut Vec::new()))
            .map_err(ScenarioError::nowhere)?;
        Ok(Self { lowered, written: None })
    }

    /// The scenario at a point of a sweep, as if each key of `point` had been overridden. The keys of a
    /// scenario that was read from its canonical form cannot be changed.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn at(&self, point: &[(String, String)]) -> Result<Self, ScenarioError> {
        let Some(written) = &self.written else {
            return if point.is_empty() { Ok(self.clone()) } else { Err(unwritten(point)) };
        };
        let overrides = [written.overrides.as_slice(), point].concat();
        let document = Document::parse(&written.text, &overrides, &written.source)?;
        let tree = load(&document).map_err(|problem| document.error(problem))?;
        match written.checked.iter().find(|(known, _)| *known == tree) {
            Some((_, lowered)) => Ok(Self { lowered: lowered.clone(), written: None }),
            None => lower_tree(tree, &mut Vec::new())
                .map(|lowered| Self { lowered, written: None })
                .map_err(|problem| document.error(problem)),
        }
    }

    /// Its keys, with every default filled in.
    pub fn file(&self) -> &ScenarioFile {
        &self.lowered.file
    }

    /// The random numbers of the controller in the simulator, if there is one connection alone.
    pub fn lone_draws(&self, seed: u64) -> Option<Rng> {
        let [flow] = &*self.spec().flows else { return None };
        let is_one = matches!(flow.transport, TransportSpec::Reliable(_))
            && !flow.workload.makes_connections();
        is_one.then(|| {
            let mut rng = flow.sender_stream(seed);
            rng.next_u32();
            rng
        })
    }

    /// What worlds run.
    pub fn spec(&self) -> &RunSpec {
        &self.lowered.spec
    }

    /// The same, for who keeps it.
    pub(crate) fn shared_spec(&self) -> &Arc<RunSpec> {
        &self.lowered.spec
    }

    /// The same, to change what is not written in a file.
    pub(crate) fn parts_mut(&mut self) -> (&ScenarioFile, &mut RunSpec) {
        (&self.lowered.file, Arc::make_mut(&mut self.lowered.spec))
    }

    /// The canonical form: every key that means something, with its value, in one order and one
    /// spelling. Two scenarios that mean the same have the same canonical form.
    pub fn to_json(&self) -> String {
        self.file().to_value().to_string()
    }
}

/// The values of a document, with the contents of the files that it names.
fn load(document: &Document<'_>) -> Result<Map<String, Value>, Problem> {
    let mut tree = document.tree().clone();
    let source = document.source();
    name_after_file(&mut tree, source);
    traces::load(&mut tree, source)?;
    scripts::load(&mut tree, source)?;
    sizes::load(&mut tree, source)?;
    imports::load(&mut tree, source)?;
    if tree.get("sweep").and_then(Value::as_object).is_some_and(Map::is_empty) {
        tree.remove("sweep");
    }
    Ok(tree)
}

/// Lowers a tree, after each value of its sweep was tried on its own; combinations of values are
/// checked when they are run. What was lowered is added to `checked`.
fn lower_tree(
    tree: Map<String, Value>,
    checked: &mut Vec<(Map<String, Value>, Lowered)>,
) -> Result<Lowered, Problem> {
    let lowered = Lowered::new(tree.clone())?;
    let sweep = &lowered.file.sweep;
    if sweep.is_empty() {
        checked.push((tree, lowered.clone()));
        return Ok(lowered);
    }
    for (key, values) in sweep {
        try_values(&tree, key, values, checked)?;
    }
    Ok(lowered)
}

impl Lowered {
    fn new(tree: Map<String, Value>) -> Result<Self, Problem> {
        let file = ScenarioFile::from_tree(tree)?;
        check(&file)?;
        let spec = lower::lower(&file)?;
        Ok(Self { file: Arc::new(file), spec: Arc::new(spec) })
    }
}

/// This many values of sweeps are kept lowered.
const MAX_KEPT: usize = 1_000;

/// A scenario without a name is called as its file is.
fn name_after_file(tree: &mut Map<String, Value>, source: &str) {
    let path = Path::new(source);
    if let (Some(stem), Some("toml")) =
        (path.file_stem(), path.extension().and_then(|e| e.to_str()))
    {
        tree.entry("name").or_insert_with(|| stem.to_string_lossy().into());
    }
}

/// Tries each value of a swept key on its own.
fn try_values(
    tree: &Map<String, Value>,
    key: &str,
    values: &Value,
    checked: &mut Vec<(Map<String, Value>, Lowered)>,
) -> Result<(), Problem> {
    let at = format!("sweep.{key}");
    let values = match values {
        Value::Array(values) if !values.is_empty() => values,
        other => {
            let message = format!("{other} is not a list of values, as in [\"1bdp\", \"2bdp\"]");
            return Err(Problem::new(at, message));
        }
    };
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(Problem::new(at, format!("{value} appears twice")));
        }
        let mut point = tree.clone();
        point.remove("sweep");
        let value = match value {
            Value::String(text) if key.ends_with(".stack") => overrides::value(unlabelled(text)),
            Value::String(text) => overrides::value(text),
            other => other.clone(),
        };
        let lowered = overrides::apply(&mut point, key, value)
            .and_then(|()| Lowered::new(point.clone()))
            .map_err(|problem| Problem::new(&at, problem.to_string()))?;
        if checked.len() < MAX_KEPT {
            checked.push((point, lowered));
        }
    }
    Ok(())
}

/// The stack of `label=stack`: what is before an `=` is a label, unless a path or parameters begin before it. Who
/// shows labels checks them.
fn unlabelled(stack: &str) -> &str {
    match stack.find(['=', '(', '/', ':']) {
        Some(at) if stack[at..].starts_with('=') => stack[at + 1..].trim_start(),
        _ => stack,
    }
}

fn unwritten(point: &[(String, String)]) -> ScenarioError {
    let key = point.first().map_or("", |(key, _)| key);
    ScenarioError::nowhere(Problem::new(key, "this scenario was read without its text"))
}
