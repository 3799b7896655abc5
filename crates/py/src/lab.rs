//! Scenarios in, results out.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pythonize::pythonize;

use weir_lab::{Capture, Epoch, Results, Router, RunError, Scenario, World};
use weir_units::Instant;

use crate::congestion::{self, Faults};
use crate::programs::Programs;
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

    /// Every table as one JSON object: name, then column, then the column's type and cells.
    fn to_json(&self) -> String {
        self.0.to_json()
    }
}

/// A run in real time, as seen and broken off from another thread. One serves several runs too; then
/// the time is that of whichever spoke last.
#[pyclass(frozen, module = "weir._native")]
#[derive(Default)]
pub(crate) struct RunControl(Arc<Control>);

#[derive(Default)]
pub(crate) struct Control {
    stopped: AtomicBool,
    elapsed: AtomicU64,
}

impl RunControl {
    /// What a run looks at.
    pub(crate) fn shared(&self) -> Arc<Control> {
        Arc::clone(&self.0)
    }
}

impl RunResult {
    pub(crate) fn new(results: Results) -> Self {
        Self(results)
    }
}

#[pymethods]
impl RunControl {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops runs in progress, and those that begin later.
    fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the runs have been broken off.
    #[getter]
    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// Duration of the run in progress, in seconds.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        Instant::from_nanos(self.0.elapsed.load(Ordering::Relaxed)).as_secs_f64()
    }
}

impl Control {
    pub(crate) fn look(&self, now: Instant) -> ControlFlow<()> {
        self.elapsed.store(now.as_nanos(), Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A scenario that has been checked, ready to run.
#[pyclass(frozen, module = "weir._native", name = "Scenario")]
pub(crate) struct CheckedScenario(Scenario);

#[pymethods]
impl CheckedScenario {
    /// Reads a scenario in TOML with `overrides` on top of it; `source` is its path, for messages and
    /// for the trace files next to it.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        toml_text: &str,
        overrides: Vec<(String, String)>,
        source: &str,
    ) -> PyResult<Self> {
        py.detach(|| Scenario::parse(toml_text, &overrides, source)).map(Self).map_err(refused)
    }

    /// Reads its canonical form.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| Scenario::from_json(text)).map(Self).map_err(refused)
    }

    /// The canonical form, as a dictionary.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.0.file().to_value())?)
    }

    /// The scenario at a point of a sweep: dotted keys and values.
    fn at(&self, py: Python<'_>, point: Vec<(String, String)>) -> PyResult<Self> {
        py.detach(|| self.0.at(&point)).map(Self).map_err(refused)
    }

    /// Refuses what `world` cannot run as it is.
    fn check(&self, py: Python<'_>, world: &str) -> PyResult<()> {
        let world = parse_world(world)?;
        let (scenario, _) = self.hosted(py)?;
        weir_lab::check(&scenario, world).map_err(refused)
    }

    /// Refuses what a kernel with these congestion controls, wherever it is, cannot run as it is; or not
    /// with its own netem for a router.
    #[pyo3(signature = (controllers, *, netem = false))]
    #[allow(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn check_kernel(&self, controllers: Vec<String>, netem: bool) -> PyResult<()> {
        let router = if netem { Router::Netem } else { Router::Weir };
        weir_lab::check_kernel(&self.0, router, &controllers).map_err(refused)
    }

    /// Refuses what the simulator cannot record packets of.
    fn check_capture(&self) -> PyResult<()> {
        weir_lab::check_capture(&self.0).map_err(refused)
    }

    /// Runs it. Other Python threads go on meanwhile, but for the moments in which a controller in Python
    /// is called. Without a `control` the run looks for signals itself. In the worlds `sim` and `kernel`
    /// packets are recorded in the file `capture`, with times from 1970, or in the simulator and with
    /// `capture_from_zero` from the beginning of the run. `programs` has the commands of each flow between
    /// programs.
    #[pyo3(signature = (
        seed, world = "sim", control = None, capture = None, *, capture_from_zero = false, programs = Vec::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn run(
        &self,
        py: Python<'_>,
        seed: u64,
        world: &str,
        control: Option<Bound<'_, RunControl>>,
        capture: Option<PathBuf>,
        capture_from_zero: bool,
        programs: Vec<Programs>,
    ) -> PyResult<RunResult> {
        let world = parse_world(world)?;
        let control = control.map(|control| control.get().shared());
        let epoch = if capture_from_zero { Epoch::Run } else { Epoch::WallClock };
        let capture = capture.map(|path| Capture::of_headers(path, epoch));
        let (mut scenario, faults) = self.hosted(py)?;
        let programs =
            programs.into_iter().map(Programs::commands).collect::<PyResult<Vec<_>>>()?;
        scenario.set_programs(programs).map_err(refused)?;
        execute(py, &faults, control.as_deref(), |watch| {
            weir_lab::run_watched(&scenario, seed, world, capture.as_ref(), watch)
        })
    }

    /// What the controller draws from in the simulator, if there is one connection alone: the state of the
    /// generator, in 32 hexadecimal digits.
    fn lone_draws(&self, seed: u64) -> Option<String> {
        Some(format!("{:032x}", self.0.lone_draws(seed)?.state()))
    }

    /// Runs it in the simulator and records what passes every interface, a file for each:
    /// `STEM-INTERFACE.pcapng` in `folder`.
    fn record(
        &self,
        py: Python<'_>,
        seed: u64,
        folder: PathBuf,
        stem: &str,
    ) -> PyResult<RunResult> {
        let (scenario, faults) = self.hosted(py)?;
        execute(py, &faults, None, |watch| weir_lab::record(&scenario, seed, &folder, stem, watch))
    }
}

impl CheckedScenario {
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.0
    }

    /// The same, whose controllers in Python can be built, and where they say what went wrong.
    fn hosted(&self, py: Python<'_>) -> PyResult<(Scenario, Arc<Faults>)> {
        let mut scenario = self.0.clone();
        let faults = Arc::default();
        congestion::host(py, &mut scenario, &faults).map_err(refused)?;
        Ok((scenario, faults))
    }
}

/// How many scenarios this process has lowered to what worlds run; for tests.
#[pyfunction]
#[pyo3(name = "_lowered")]
pub(crate) fn lowered() -> u64 {
    weir_lab::lowered()
}

/// Lets `work` go on while Python's threads do, until a controller in Python fails, or `control` or a signal
/// breaks it off.
fn execute(
    py: Python<'_>,
    faults: &Faults,
    control: Option<&Control>,
    work: impl FnOnce(&mut dyn FnMut(Instant) -> ControlFlow<()>) -> Result<Results, RunError> + Send,
) -> PyResult<RunResult> {
    let mut signal = None;
    let mut watch = |now| match control {
        _ if faults.any() => ControlFlow::Break(()),
        Some(control) => control.look(now),
        None => match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                signal = Some(error);
                ControlFlow::Break(())
            }
        },
    };
    let result = py.detach(|| work(&mut watch));
    if let Some(fault) = faults.take() {
        return Err(fault.into());
    }
    result.map(RunResult).map_err(|error| match error {
        RunError::Scenario(error) => refused(error),
        RunError::Stopped => signal.unwrap_or_else(|| PyRuntimeError::new_err(error.to_string())),
        _ => PyRuntimeError::new_err(error.to_string()),
    })
}

/// What `tc` says of one direction of a link, as options of `weir link` in its spelling.
#[pyfunction]
pub(crate) fn tc_options(text: &str) -> PyResult<Vec<(&'static str, String)>> {
    weir_lab::tc_options(text).map_err(PyValueError::new_err)
}

/// What `tc` says of the way of the data and of the way back, as keys of `[topology]`.
#[pyfunction]
#[pyo3(signature = (forward, reverse = None))]
pub(crate) fn tc_keys(forward: &str, reverse: Option<&str>) -> PyResult<Vec<(String, String)>> {
    weir_lab::tc_keys(forward, reverse).map_err(PyValueError::new_err)
}

#[allow(clippy::needless_pass_by_value, reason = "a result's error is mapped")]
pub(crate) fn refused(error: weir_lab::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn parse_world(name: &str) -> PyResult<World> {
    name.parse().map_err(PyValueError::new_err)
}

/// What a scenario may name: one list per kind.
#[pyfunction]
pub(crate) fn catalogue(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, &weir_lab::catalogue())?)
}
