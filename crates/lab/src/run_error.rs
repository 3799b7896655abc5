//! A run that did not end, and why.

use std::ops::ControlFlow;

use weir_sim::SimError;
use weir_units::Instant;

use crate::error::{Problem, ScenarioError};

/// A run that did not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be built, or not be run in this world.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A checker of the simulated world found something that cannot be.
    #[error("the simulation failed: {0}")]
    Simulation(String),
    /// The world in real time could not go on.
    #[error("the run in real time failed: {0}")]
    RealTime(String),
    /// The system refused to record packets.
    #[error("packets cannot be recorded: {0}")]
    Capture(String),
    /// Its watcher stopped it.
    #[error("the run was broken off")]
    Stopped,
}

/// Callback that receives the run's time many times a second and may stop the run.
pub type Watch<'a> = dyn FnMut(Instant) -> ControlFlow<()> + 'a;

/// A scenario that a world cannot run.
pub(crate) fn unfit(error: &dyn std::error::Error) -> ScenarioError {
    ScenarioError::nowhere(Problem::new("", error.to_string()))
}

impl From<SimError> for RunError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Check(_) => Self::Simulation(error.to_string()),
            SimError::Spec(_) => unfit(&error).into(),
            SimError::Stopped => Self::Stopped,
        }
    }
}
