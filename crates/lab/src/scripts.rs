//! Controllers in files: a stack names one, the scenario's canonical form holds the file's text, so
//! that a run needs no file and its key changes with the text.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use weir_cc::{BuildScripted, CcConfig, Script};
use weir_scene::TransportSpec;

use crate::error::{Problem, ScenarioError};
use crate::files;
use crate::flow::Protocol;
use crate::scenario::Scenario;

/// Finds what builds the controllers of a script, whose file has this text; or says why that is not
/// possible.
pub type ScriptHost<'a> = dyn FnMut(&Script, &str) -> Result<Arc<dyn BuildScripted>, String> + 'a;

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
        Protocol::Udp => None,
    }
}

/// The text of a controller's file.
///
/// # Errors
/// If it cannot be read or is no text of a reasonable length, in one line.
pub fn read(path: &Path) -> Result<String, String> {
    files::read_bounded(path, MAX_BYTES)
}

impl Scenario {
    /// Lets `host` build the controllers that are classes in files. Flows with the same stack share
    /// what it finds.
    ///
    /// # Errors
    /// What `host` says, with the flow's key.
    pub fn host_scripts(&mut self, host: &mut ScriptHost<'_>) -> Result<(), ScenarioError> {
        let mut found: Vec<(Script, Arc<dyn BuildScripted>)> = Vec::new();
        let (file, spec) = self.parts_mut();
        for (index, flow) in file.flow.iter().enumerate() {
            let Protocol::Reliable(stack) = &flow.stack else { continue };
            let CcConfig::Script(script) = &stack.controller else { continue };
            if !found.iter().any(|(known, _)| known == script) {
                let text = file.controllers.get(script.file()).map(String::as_str);
                let built = text
                    .ok_or_else(|| format!("there is no text of '{}'", script.file()))
                    .and_then(|text| host(script, text))
                    .map_err(|message| {
                        let message = format!("'{stack}' is not allowed; {message}");
                        let key = format!("flow.{index}.stack");
                        ScenarioError::nowhere(Problem::new(key, message))
                    })?;
                found.push((script.clone(), built));
            }
        }
        for flow in &mut spec.flows {
            let TransportSpec::Reliable(config) = &mut flow.transport else { continue };
            let CcConfig::Script(script) = &mut config.stack.controller else { continue };
            if let Some((_, built)) = found.iter().find(|(known, _)| known == script) {
                script.set_host(Arc::clone(built));
            }
        }
        Ok(())
    }
}

/// More than this is taken for a slip.
const MAX_BYTES: u64 = 1 << 20;
