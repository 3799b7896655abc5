//! Why a run could not be made, or must not be believed.

use weir_scene::{SpecError, Violation};

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The description cannot be run.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A checker found the program at fault, not the description.
    #[error(transparent)]
    Check(#[from] Violation),
    /// Its watcher stopped it.
    #[error("the run was broken off")]
    Stopped,
}
