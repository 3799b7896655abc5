//! The one entry point of every experiment.

use weir_scene::Outcome;
use weir_sim::SimError;

use crate::error::{Problem, ScenarioError};
use crate::scenario::Scenario;
use crate::table::{self, Table};
use crate::world;

/// What a run found out.
#[derive(Clone, Debug)]
pub struct Results {
    tables: Vec<Table>,
}

/// A run that did not come to an end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be built.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A checker of the simulated world found something that cannot be.
    #[error("the simulation failed: {0}")]
    Simulation(String),
}

/// Runs `scenario` in the simulated world. The same scenario and seed give the same tables, on
/// every machine.
///
/// # Errors
/// If the network cannot be built, or a checker finds that the simulation went wrong.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Results, RunError> {
    let spec = world::build(scenario).map_err(ScenarioError::nowhere)?;
    let outcome = weir_sim::run(&spec, seed).map_err(|error| match error {
        SimError::Check { .. } => RunError::Simulation(error.to_string()),
        _ => ScenarioError::nowhere(Problem::new("", error.to_string())).into(),
    })?;
    Ok(Results::new(&outcome))
}

impl Results {
    fn new(outcome: &Outcome) -> Self {
        let tables = vec![
            table::summary(&outcome.summary),
            table::flows(&outcome.flows),
            table::samples(&outcome.samples),
            table::acks(&outcome.acks),
            table::queues(&outcome.queues),
            table::links(&outcome.links),
            table::requests(&outcome.requests),
            table::events(&outcome.events),
        ];
        Self { tables }
    }

    /// Every table: `summary` with its one row, `flows`, `samples`, `acks`, `queues`, `links`,
    /// `requests`, `events`.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }
}
