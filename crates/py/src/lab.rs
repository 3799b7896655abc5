//! Scenarios in, results out.

use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use weir_lab::{Results, RunError, Scenario};

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

/// Runs a scenario in its canonical form. Other Python threads go on meanwhile.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, scenario: &str, seed: u64) -> PyResult<RunResult> {
    py.detach(|| {
        let scenario = Scenario::from_json(scenario)?;
        weir_lab::run(&scenario, seed)
    })
    .map(RunResult)
    .map_err(|error| match error {
        RunError::Scenario(error) => ScenarioError::new_err(error.to_string()),
        RunError::Simulation(_) => PyRuntimeError::new_err(error.to_string()),
    })
}

/// What a scenario may name: JSON, one list per kind.
#[pyfunction]
pub(crate) fn catalogue() -> String {
    weir_lab::catalogue()
}
