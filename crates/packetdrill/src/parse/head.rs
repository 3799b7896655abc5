//! The head: comments `# key: value` before the first event.

use crate::error::ScriptError;
use crate::script::{Exception, ExceptionKind, Head};

/// Reads the head. Other comments are free.
pub(super) fn head(comments: &[(u32, &str)]) -> Result<Head, ScriptError> {
    let mut head = Head::default();
    for (line, comment) in comments {
        let Some((key, value)) = comment.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "case" => head.cases = value.split_whitespace().map(str::to_owned).collect(),
            "source" => head.source = value.to_owned(),
            "title" => head.title = value.to_owned(),
            "skip" => head.exceptions.push(exception(*line, ExceptionKind::Skip, value)?),
            "known" => head.exceptions.push(exception(*line, ExceptionKind::Known, value)?),
            _ => {}
        }
    }
    Ok(head)
}

/// `kernel: Linux has no such controller`.
fn exception(line: u32, kind: ExceptionKind, text: &str) -> Result<Exception, ScriptError> {
    let (world, reason) = text.split_once(':').unwrap_or((text, ""));
    let (world, reason) = (world.trim(), reason.trim());
    let series = world.strip_prefix("kernel-").is_some_and(|series| !series.is_empty());
    if !(series || ["sim", "kernel"].contains(&world)) || reason.is_empty() {
        let allowed = "'WORLD: REASON' with sim, kernel or kernel-SERIES";
        return Err(ScriptError { line, message: format!("'{text}': allowed is {allowed}") });
    }
    Ok(Exception { world: world.to_owned(), kind, reason: reason.to_owned() })
}
