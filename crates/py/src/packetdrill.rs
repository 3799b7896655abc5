//! packetdrill's scripts.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir_cc::CcConfig;
#[cfg(target_os = "linux")]
use weir_kernel::packetdrill::KernelEndpoint;
use weir_packetdrill::{ExceptionKind, RunError, Script, Settings, Simulated, parse, run};

use crate::congestion::host_controller;

/// A script that was read without errors.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct PacketScript(Script);

#[pymethods]
impl PacketScript {
    /// Reads a script.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let read = py.detach(|| parse(text));
        read.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The ids of its cases.
    #[getter]
    fn cases(&self) -> Vec<String> {
        self.0.head.cases.clone()
    }

    /// Section of an RFC, or title of the test that it restates.
    #[getter]
    fn source(&self) -> &str {
        &self.0.head.source
    }

    /// What it shows.
    #[getter]
    fn title(&self) -> &str {
        &self.0.head.title
    }

    /// Loss recovery and congestion control.
    #[getter]
    fn stack(&self) -> String {
        self.0.settings.stack.to_string()
    }

    /// Why `world` is an exception, if it is: `skip` or `known`, and the reason.
    fn exception(&self, world: &str) -> Option<(&'static str, String)> {
        let exception = self.0.head.exception(world)?;
        let kind = match exception.kind {
            ExceptionKind::Skip => "skip",
            ExceptionKind::Known => "known",
        };
        Some((kind, exception.reason.clone()))
    }

    /// Runs it against Weir's transport, with another stack if `stack` is given, also a controller in Python. Returns
    /// where and how the transport departs from it: `failed` or `refused`, the line and the message.
    #[pyo3(signature = (stack = None))]
    fn run(&self, py: Python<'_>, stack: Option<&str>) -> PyResult<Option<Departure>> {
        let mut settings = self.settings(stack)?;
        let faults = Arc::default();
        let controller = &mut settings.stack.controller;
        if stack.is_none() && matches!(controller, CcConfig::Script(_)) {
            let problem =
                "a script names no controller in Python: give it as the stack of the call";
            return Err(PyValueError::new_err(problem));
        }
        host_controller(py, controller, &faults).map_err(PyValueError::new_err)?;
        let found = py.detach(|| run(&self.0, &mut Simulated::new(&settings)));
        faults.take().map_or(Ok(outcome(found)), |fault| Err(fault.into()))
    }

    /// Runs it against the TCP of the kernel that this process runs on, with another controller or its
    /// switches of recovery if `stack` is given. Requires root.
    #[cfg(target_os = "linux")]
    #[pyo3(signature = (stack = None))]
    fn run_on_kernel(&self, py: Python<'_>, stack: Option<&str>) -> PyResult<Option<Departure>> {
        let settings = self.settings(stack)?;
        Ok(outcome(py.detach(|| {
            let opened = KernelEndpoint::open(&settings);
            let mut endpoint = opened.map_err(|error| RunError::Endpoint { line: 1, error })?;
            run(&self.0, &mut endpoint)
        })))
    }
}

impl PacketScript {
    fn settings(&self, stack: Option<&str>) -> PyResult<Settings> {
        let mut settings = self.0.settings.clone();
        if let Some(stack) = stack {
            let read = stack.parse();
            settings.stack =
                read.map_err(|error| PyValueError::new_err(format!("stack {stack}: {error}")))?;
        }
        Ok(settings)
    }
}

/// Where a stack departs from a script: the kind, the line and the message.
type Departure = (&'static str, u32, String);

/// A run's outcome as Python has it.
fn outcome(result: Result<(), RunError>) -> Option<Departure> {
    match result {
        Ok(()) => None,
        Err(RunError::Failed(failure)) => Some(("failed", failure.line, failure.message)),
        Err(RunError::Endpoint { line, error }) => Some(("refused", line, error.to_string())),
    }
}
