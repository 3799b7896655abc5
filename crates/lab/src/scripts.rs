//! Controllers in files: a stack names one, the scenario's canonical form holds the file's text, so
//! that a run needs no file and its key changes with the text.

use std::path::Path;

use serde_json::{Map, Value};
use weir_cc::{CcConfig, Script};

use crate::error::Problem;
use crate::files;
use crate::flow::Protocol;

/// Adds the text of every file that a flow's stack names and `[controllers]` does not have. Files are
/// looked up next to the scenario file `source`.
pub(crate) fn load(tree: &mut Map<String, Value>, source: &str) -> Result<(), Problem> {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    let flows = tree.get("flow").and_then(Value::as_array).into_iter().flatten().enumerate();
    let named: Vec<_> = flows.filter_map(|(index, flow)| Some((index, script(flow)?))).collect();
    if named.is_empty() {
        return Ok(());
    }
    let controllers = tree.entry("controllers").or_insert_with(|| Map::new().into());
    let Some(controllers) = controllers.as_object_mut() else { return Ok(()) };
    for (index, script) in named {
        if !controllers.contains_key(script.file()) {
            let text = read(&folder.join(script.file()))
                .map_err(|message| Problem::new(format!("flow.{index}.stack"), message))?;
            controllers.insert(script.file().to_owned(), text.into());
        }
    }
    Ok(())
}

/// The class in a file that a flow's stack names, if it does.
fn script(flow: &Value) -> Option<Script> {
    match flow.get("stack")?.as_str()?.parse().ok()? {
        Protocol::Reliable(stack) => match stack.controller {
            CcConfig::Script(script) => Some(script),
            _ => None,
        },
        Protocol::Udp | Protocol::Foreign(_) | Protocol::Contender(_) => None,
    }
}

/// The text of a controller's file.
///
/// # Errors
/// If it cannot be read or is no text of a reasonable length, in one line.
pub fn read(path: &Path) -> Result<String, String> {
    files::read_bounded(path, MAX_BYTES)
}

/// More than this is taken for a slip.
const MAX_BYTES: u64 = 1 << 20;
