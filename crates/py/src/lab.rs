//! Scenarios in, results out.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use weir_lab::{Capture, Epoch, Results, Router, RunError, Scenario, World};
use weir_units::Instant;

use crate::table::Table;

create_exception!(
    weir,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run: where the mistake is, the key, the value and what is allowed."
);

/// The tables of one run.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct RunResult(Results);

#[pymethods]
impl RunResult {
    /// The names of the tables.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        self.0.tables().iter().map(|table| table.name).collect()
    }

    /// The table called `name`, for anything that reads Arrow's C stream.
    fn table(&self, name: &str) -> PyResult<Table> {
        let found = self.0.tables().iter().find(|table| table.name == name);
        found.map(|table| Table::new(table.batch.clone())).ok_or_else(|| {
            let known = self.tables().join(", ");
            PyKeyError::new_err(format!("there is no table '{name}'; there are {known}"))
        })
    }

    /// Writes every table into `folder`, as an Arrow IPC file `NAME.arrow`.
    fn write_to(&self, folder: PathBuf) -> PyResult<()> {
        Ok(self.0.write_to(&folder)?)
    }
}

/// Reads a scenario in TOML with `overrides` on top of it; `source` is its path, for messages and
/// for the trace files beside it. Returns the canonical form in JSON.
#[pyfunction]
pub(crate) fn parse_scenario(
    toml_text: &str,
    overrides: Vec<(String, String)>,
    source: &str,
) -> PyResult<String> {
    Scenario::parse(toml_text, &overrides, source)
        .map(|scenario| scenario.to_json())
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// A run in real time, as seen and broken off from another thread. One serves several runs too; then
/// the time is that of whichever spoke last.
#[pyclass(frozen, module = "weir._native")]
#[derive(Default)]
pub(crate) struct RunControl(Arc<Control>);

#[derive(Default)]
struct Control {
    stopped: AtomicBool,
    elapsed: AtomicU64,
}

#[pymethods]
impl RunControl {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Breaks the runs off that are under way, and those that begin later.
    fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the runs have been broken off.
    #[getter]
    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// How long the run under way has lasted, in seconds.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        Instant::from_nanos(self.0.elapsed.load(Ordering::Relaxed)).as_secs_f64()
    }
}

impl Control {
    fn look(&self, now: Instant) -> ControlFlow<()> {
        self.elapsed.store(now.as_nanos(), Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Runs a scenario in its canonical form. Other Python threads go on meanwhile. Without a `control` a
/// run in real time looks for signals itself. In world `kernel` packets are recorded in the file
/// `capture`, with times from 1970, or with `capture_from_zero` from the beginning of the run.
#[pyfunction]
#[pyo3(signature = (
    scenario, seed, world = "sim", control = None, capture = None, *, capture_from_zero = false
))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    world: &str,
    control: Option<Bound<'_, RunControl>>,
    capture: Option<PathBuf>,
    capture_from_zero: bool,
) -> PyResult<RunResult> {
    let world = parse_world(world)?;
    let control = control.map(|control| Arc::clone(&control.get().0));
    let epoch = if capture_from_zero { Epoch::Run } else { Epoch::WallClock };
    let capture = capture.map(|path| Capture::of_headers(path, epoch));
    let mut signal = None;
    let mut watch = |now| match &control {
        Some(control) => control.look(now),
        None => match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                signal = Some(error);
                ControlFlow::Break(())
            }
        },
    };
    let result = py.detach(|| {
        let scenario = Scenario::from_json(scenario)?;
        weir_lab::run_watched(&scenario, seed, world, capture.as_ref(), &mut watch)
    });
    result.map(RunResult).map_err(|error| match error {
        RunError::Scenario(error) => ScenarioError::new_err(error.to_string()),
        RunError::Stopped => signal.unwrap_or_else(|| PyRuntimeError::new_err(error.to_string())),
        _ => PyRuntimeError::new_err(error.to_string()),
    })
}

/// Refuses a scenario in its canonical form that `world` cannot run as it is.
#[pyfunction]
pub(crate) fn check_world(scenario: &str, world: &str) -> PyResult<()> {
    let world = parse_world(world)?;
    Scenario::from_json(scenario)
        .and_then(|scenario| weir_lab::check(&scenario, world))
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// Refuses a scenario in its canonical form that a kernel with these congestion controls, wherever it
/// is, cannot run as it is; or not with its own netem for a router.
#[pyfunction]
#[pyo3(signature = (scenario, controllers, *, netem = false))]
pub(crate) fn check_kernel(scenario: &str, controllers: Vec<String>, netem: bool) -> PyResult<()> {
    let router = if netem { Router::Netem } else { Router::Weir };
    Scenario::from_json(scenario)
        .and_then(|scenario| weir_lab::check_kernel(&scenario, router, &controllers))
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

fn parse_world(name: &str) -> PyResult<World> {
    name.parse().map_err(PyValueError::new_err)
}

/// What a scenario may name: JSON, one list per kind.
#[pyfunction]
pub(crate) fn catalogue() -> String {
    weir_lab::catalogue()
}
