//! The world of the kernel's TCP, for systems that have it and for those that do not.

use weir_scene::{Outcome, Router, RunSpec};
use weir_trace::Capture;

use crate::error::ScenarioError;
use crate::run_error::{RunError, Watch};

#[cfg(target_os = "linux")]
mod host {
    use weir_kernel::KernelError;

    use super::*;
    use crate::run_error::unfit;

    /// Runs it over this kernel's TCP.
    pub(crate) fn run(
        spec: &RunSpec,
        seed: u64,
        router: Router,
        capture: Option<&Capture>,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, RunError> {
        Ok(weir_kernel::run(spec, seed, router, capture, watch)?)
    }

    /// Says whether this machine can run it.
    pub(crate) fn check(spec: &RunSpec, router: Router) -> Result<(), ScenarioError> {
        weir_kernel::check(spec, router).map_err(|error| unfit(&error))
    }

    /// Says whether a kernel with these congestion controls can run it.
    pub(crate) fn check_for(
        spec: &RunSpec,
        router: Router,
        controllers: &[String],
    ) -> Result<(), ScenarioError> {
        weir_kernel::check_for(spec, router, controllers).map_err(|error| unfit(&error))
    }

    /// Says whether hosts with the right kernels can run it.
    pub(crate) fn check_between_hosts(spec: &RunSpec) -> Result<(), ScenarioError> {
        weir_kernel::check_between_hosts(spec).map_err(|error| unfit(&error))
    }

    impl From<KernelError> for RunError {
        fn from(error: KernelError) -> Self {
            match error {
                KernelError::Spec(_)
                | KernelError::Unfit { .. }
                | KernelError::Netem { .. }
                | KernelError::Missing(_) => unfit(&error).into(),
                KernelError::Stopped => Self::Stopped,
                _ => Self::RealTime(error.to_string()),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod host {
    use super::*;
    use crate::error::Problem;

    pub(crate) fn run(
        _: &RunSpec,
        _: u64,
        _: Router,
        _: Option<&Capture>,
        _: &mut Watch<'_>,
    ) -> Result<Outcome, RunError> {
        Err(missing().into())
    }

    pub(crate) fn check(_: &RunSpec, _: Router) -> Result<(), ScenarioError> {
        Err(missing())
    }

    pub(crate) fn check_for(_: &RunSpec, _: Router, _: &[String]) -> Result<(), ScenarioError> {
        Err(missing())
    }

    pub(crate) fn check_between_hosts(_: &RunSpec) -> Result<(), ScenarioError> {
        let message = "runs between hosts need Linux on this machine and on every host";
        Err(ScenarioError::nowhere(Problem::new("", message)))
    }

    fn missing() -> ScenarioError {
        let message =
            "world kernel needs Linux. Without it world sim works, and on macOS world udp";
        ScenarioError::nowhere(Problem::new("", message))
    }
}

pub(crate) use host::{check, check_between_hosts, check_for, run};
