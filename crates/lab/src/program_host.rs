//! How the programs of flows are started, which the reader of their definitions sets.

use std::sync::Arc;

use weir_scene::{ProgramCommands, TransportSpec};

use crate::error::{Problem, ScenarioError};
use crate::scenario::Scenario;

impl Scenario {
    /// Sets how the programs of flows are started, each flow given by its index among all flows of the run.
    ///
    /// # Errors
    /// If a flow is not between programs.
    pub fn set_programs(
        &mut self,
        programs: impl IntoIterator<Item = (u32, ProgramCommands)>,
    ) -> Result<(), ScenarioError> {
        let (_, spec) = self.parts_mut();
        for (index, commands) in programs {
            let transport = spec.flows.get_mut(index as usize).map(|flow| &mut flow.transport);
            let Some(TransportSpec::Program(found)) = transport else {
                let message = format!("flow {index} is not between programs");
                return Err(ScenarioError::nowhere(Problem::new("", message)));
            };
            found.commands = Some(Arc::new(commands));
        }
        Ok(())
    }
}
