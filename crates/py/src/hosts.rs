//! Runs between hosts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use weir_lab::RunError;

use crate::lab::{CheckedScenario, RunControl, RunResult, refused};

/// The ends of a scenario's flows that are on this host.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct HostPart(Mutex<Option<weir_lab::HostPart>>);

#[pymethods]
impl HostPart {
    /// Opens the sockets of the flows that begin here, each with the address of the other host, and of
    /// those that end here.
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "they come from Python")]
    fn new(
        scenario: &CheckedScenario,
        seed: u64,
        sends: BTreeMap<usize, String>,
        receives: Vec<usize>,
        controllers: Vec<String>,
    ) -> PyResult<Self> {
        let sends = addresses::<Ipv4Addr>(sends)?;
        let part =
            weir_lab::HostPart::open(scenario.scenario(), seed, &sends, &receives, &controllers);
        part.map(|part| Self(Mutex::new(Some(part)))).map_err(failed)
    }

    /// The address and port that each flow comes from.
    fn sources(&self) -> PyResult<BTreeMap<usize, String>> {
        let sources = self.with(weir_lab::HostPart::sources)?;
        Ok(sources.into_iter().map(|(flow, address)| (flow, address.to_string())).collect())
    }

    /// The port at which each flow arrives.
    fn ports(&self) -> PyResult<BTreeMap<usize, u16>> {
        self.with(weir_lab::HostPart::ports)
    }

    /// Runs from `start`, in nanoseconds of the monotonic clock; returns the record, as JSON. `peers` has
    /// where each flow goes, and where each comes from.
    #[allow(clippy::needless_pass_by_value, reason = "they come from Python")]
    fn run(
        &self,
        py: Python<'_>,
        start: u64,
        peers: BTreeMap<usize, String>,
        control: Bound<'_, RunControl>,
    ) -> PyResult<String> {
        let peers = addresses::<SocketAddrV4>(peers)?;
        let part = self.0.lock().expect("no thread panics with it").take();
        let part = part.ok_or_else(|| PyRuntimeError::new_err("the part was run already"))?;
        let control = control.get().shared();
        py.detach(|| part.run(start, &peers, &mut |now| control.look(now))).map_err(failed)
    }
}

fn addresses<T: FromStr>(texts: BTreeMap<usize, String>) -> PyResult<BTreeMap<usize, T>> {
    let parsed = texts.into_iter().map(|(flow, text)| match text.parse() {
        Ok(address) => Ok((flow, address)),
        Err(_) => Err(PyValueError::new_err(format!("{text}: no such address"))),
    });
    parsed.collect()
}

impl HostPart {
    fn with<T>(&self, read: fn(&weir_lab::HostPart) -> Result<T, RunError>) -> PyResult<T> {
        let part = self.0.lock().expect("no thread panics with it");
        let part =
            part.as_ref().ok_or_else(|| PyRuntimeError::new_err("the part was run already"))?;
        read(part).map_err(failed)
    }
}

/// The tables of a run from the records of its hosts: name, error of the clock in nanoseconds, record.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "they come from Python")]
pub(crate) fn merge_hosts(
    py: Python<'_>,
    scenario: &CheckedScenario,
    seed: u64,
    hosts: Vec<(String, u64, String)>,
) -> PyResult<RunResult> {
    let scenario = scenario.scenario();
    py.detach(|| weir_lab::merge_hosts(scenario, seed, &hosts)).map(RunResult::new).map_err(failed)
}

fn failed(error: RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => refused(error),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}
