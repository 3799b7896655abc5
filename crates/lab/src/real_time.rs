//! The world of UDP sockets, for systems that have it and for those that do not.

#[cfg(unix)]
mod host {
    use weir_links::world::WorldError;
    pub(crate) use weir_links::world::run;
    use weir_scene::RunSpec;

    use crate::error::ScenarioError;
    use crate::run_error::{RunError, unfit};

    /// Says whether sockets can carry it.
    pub(crate) fn check(spec: &RunSpec) -> Result<(), ScenarioError> {
        weir_links::world::check(spec).map_err(|error| unfit(&error))
    }

    impl From<WorldError> for RunError {
        fn from(error: WorldError) -> Self {
            match error {
                WorldError::Spec(_) | WorldError::Unfit { .. } => unfit(&error).into(),
                WorldError::Stopped => Self::Stopped,
                _ => Self::RealTime(error.to_string()),
            }
        }
    }
}

#[cfg(not(unix))]
mod host {
    use weir_scene::{Outcome, RunSpec};

    use crate::error::{Problem, ScenarioError};
    use crate::run_error::{RunError, Watch};

    pub(crate) fn run(_: &RunSpec, _: u64, _: &mut Watch<'_>) -> Result<Outcome, RunError> {
        Err(missing().into())
    }

    pub(crate) fn check(_: &RunSpec) -> Result<(), ScenarioError> {
        Err(missing())
    }

    fn missing() -> ScenarioError {
        let message = "world udp needs Linux or macOS. Without them world sim works";
        ScenarioError::nowhere(Problem::new("", message))
    }
}

pub(crate) use host::{check, run};
