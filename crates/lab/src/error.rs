//! What is wrong with a scenario, in one line: where, which key, which value, what is allowed.

use std::fmt;

/// A scenario that cannot be run, with the place of the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    pub(crate) place: Place,
    pub(crate) problem: Problem,
}

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a line of a file, counted from 1.
    Line { source: String, line: usize },
    /// Somewhere in a file, or nowhere in particular.
    File { source: String },
    /// On top of a file: `--set key=value`, a flag, a point of a sweep.
    Override { key: String, value: String },
}

/// A mistake at a key, wherever that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The dotted key, `flow.0.stack`; empty for the scenario as a whole.
    pub(crate) key: String,
    /// The value, and what is allowed.
    pub(crate) message: String,
}

impl ScenarioError {
    /// A problem of a scenario whose text is gone.
    pub(crate) fn nowhere(problem: Problem) -> Self {
        Self { place: Place::File { source: "scenario".to_owned() }, problem }
    }
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// Whether keys are as they may be.
pub(crate) type Checked = Result<(), Problem>;

/// Demands something of a key's value.
pub(crate) fn require(
    holds: bool,
    key: String,
    value: impl ToString,
    allowed: impl ToString,
) -> Checked {
    if holds {
        return Ok(());
    }
    Err(Problem::new(key, format!("{} is not allowed; {}", value.to_string(), allowed.to_string())))
}

/// Separates key and message of a problem that serde carries, whose errors are only text.
const SEPARATOR: char = '\u{1f}';

impl Problem {
    /// As an error of serde, whose path becomes the beginning of the key.
    pub(crate) fn into_custom<E: serde::de::Error>(self) -> E {
        E::custom(format!("{}{SEPARATOR}{}", self.key, self.message))
    }

    /// The problem that [`Self::into_custom`] wrote, at `path`.
    pub(crate) fn from_custom(path: &str, text: &str) -> Option<Self> {
        let (key, message) = text.split_once(SEPARATOR)?;
        let parts = [path, key].into_iter().filter(|part| !part.is_empty());
        Some(Self::new(parts.collect::<Vec<_>>().join("."), message))
    }
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, problem } = self;
        match place {
            Place::Override { key, .. } if *key == problem.key => {
                write!(f, "{place}: {}", problem.message)
            }
            _ => write!(f, "{place}: {problem}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { source, line } => write!(f, "{source}, line {line}"),
            Self::File { source } => f.write_str(source),
            Self::Override { key, value } => write!(f, "{key}={value}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}
