//! What builds the controllers that are classes in files.

use std::sync::Arc;

use weir_cc::{BuildScripted, CcConfig, Script};
use weir_scene::TransportSpec;

use crate::error::{Problem, ScenarioError};
use crate::flow::Protocol;
use crate::scenario::Scenario;

/// Finds what builds the controllers of a script, whose file has this text; or says why that is not
/// possible.
pub type ScriptHost<'a> = dyn FnMut(&Script, &str) -> Result<Arc<dyn BuildScripted>, String> + 'a;

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
