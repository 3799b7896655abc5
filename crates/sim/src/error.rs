//! Why a run could not be made, or must not be believed.

use weir_scene::SpecError;
use weir_units::Instant;

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The description cannot be run.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Something happened that must never happen: the simulator is at fault, not the scenario.
    #[error("seed {seed}, at {time}: {what}")]
    Check {
        /// The run's seed.
        seed: u64,
        /// When it was noticed.
        time: Instant,
        /// What was violated.
        what: String,
    },
}
