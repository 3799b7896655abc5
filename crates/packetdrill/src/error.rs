//! Why a script cannot be read.

/// Where a script cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: u32,
    /// The key, the value and what is allowed.
    pub message: String,
}
