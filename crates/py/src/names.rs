//! Names of stacks and controllers.

use pyo3::prelude::*;
use weir_lab::StackParts;

/// The parts of a stack as a scenario writes it: host, recovery, controller, algorithm.
#[pyfunction]
pub(crate) fn stack_parts(stack: &str) -> (String, String, String, Option<String>) {
    let StackParts { host, recovery, controller, algorithm } = weir_lab::stack_parts(stack);
    (host, recovery, controller, algorithm)
}

/// The kind of routers' feedback that the controller of a stack goes by.
#[pyfunction]
pub(crate) fn router_feedback(stack: &str) -> Option<&'static str> {
    weir_lab::router_feedback(stack)
}

/// Linux's own congestion controls.
#[pyfunction]
pub(crate) fn kernel_controllers() -> [&'static str; 17] {
    weir_cc::KERNEL_CONTROLLERS
}
