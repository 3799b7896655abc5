//! Runs between hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use weir_analyse::{ConnectionRow, Reading};
use weir_kernel::{PathLog, SharedPathLog};
use weir_lab::{FIRST_CAPTURED_PORT, RunError};

use crate::lab::{CheckedScenario, RunControl, RunResult, refused};
use crate::path::PathSocket;

/// The ends of a scenario's flows that are on this host.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct HostPart {
    part: Mutex<Option<weir_lab::HostPart>>,
    moved: Arc<AtomicU64>,
    log: SharedPathLog,
}

type Limits = (usize, Option<&'static str>, Option<f64>, Option<f64>, Option<u64>, Option<u64>);

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
        part.map(Self::new_of).map_err(failed)
    }

    /// The ends of flows of our own transport on one side of a path, which takes its socket: of those in
    /// `sends` the sending ones, which are recorded, of all others the receiving ones.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "they come from Python")]
    fn on_path(
        path: &PathSocket,
        scenario: &CheckedScenario,
        seed: u64,
        sends: BTreeSet<usize>,
    ) -> PyResult<Self> {
        let part = weir_lab::HostPart::over(scenario.scenario(), seed, path.take()?, &sends);
        let (part, log) = part.map_err(failed)?;
        Ok(Self { log, ..Self::new_of(part) })
    }

    /// What limited the flows of a path that were sent here, by the rules of `weir read`, after the run:
    /// index of the flow, limit, capacity in Mbit/s, rate of a policer in Mbit/s, its burst and its bucket in bytes.
    fn limits(&self, py: Python<'_>) -> PyResult<Vec<Limits>> {
        let packets = std::mem::take(&mut self.log().packets);
        if packets.is_empty() {
            return Ok(Vec::new());
        }
        py.detach(|| {
            let mut reading = Reading::default();
            let cut =
                reading.read("packets", Cursor::new(&packets[..]), || ControlFlow::Continue(()));
            cut.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            let rows = reading.finish().connections.into_iter();
            Ok(rows.filter_map(|row| limits(&row)).collect())
        })
    }

    /// Round trips of requests that share a flow of a path with its other data, after the run: index of the flow,
    /// when it was made, and how long it took, in nanoseconds.
    fn latencies(&self) -> Vec<(u32, u64, u64)> {
        let latencies = std::mem::take(&mut self.log().latencies).into_iter();
        latencies.map(|one| (one.flow, one.asked.as_nanos(), one.latency.as_nanos())).collect()
    }

    /// Number of datagrams of a path that a packet filter of this host dropped, after the run.
    #[getter]
    fn refused(&self) -> u64 {
        self.log().refused
    }

    /// Number of bytes that flows of our own transport have sent or received so far.
    #[getter]
    fn bytes_transferred(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
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
        let peers = addresses::<SocketAddr>(peers)?;
        let part = self.part.lock().expect("no thread panics with it").take();
        let part = part.ok_or_else(|| PyRuntimeError::new_err("the part was run already"))?;
        let control = control.get().shared();
        py.detach(|| part.run(start, &peers, &mut |now| control.look(now))).map_err(failed)
    }
}

/// Of the flow that its ports name.
fn limits(row: &ConnectionRow) -> Option<Limits> {
    let port: usize = row.client.rsplit_once(':')?.1.parse().ok()?;
    let flow = port.checked_sub(usize::from(FIRST_CAPTURED_PORT))?;
    let policer = (row.policer_mbps, row.policer_burst_bytes, row.policer_bucket_bytes);
    Some((flow, row.limit, row.capacity_mbps, policer.0, policer.1, policer.2))
}

fn addresses<T: FromStr>(texts: BTreeMap<usize, String>) -> PyResult<BTreeMap<usize, T>> {
    let parsed = texts.into_iter().map(|(flow, text)| match text.parse() {
        Ok(address) => Ok((flow, address)),
        Err(_) => Err(PyValueError::new_err(format!("{text}: no such address"))),
    });
    parsed.collect()
}

impl HostPart {
    fn new_of(part: weir_lab::HostPart) -> Self {
        Self { moved: part.moved(), part: Mutex::new(Some(part)), log: SharedPathLog::default() }
    }

    fn log(&self) -> MutexGuard<'_, PathLog> {
        self.log.lock().expect("no thread panics with it")
    }

    fn with<T>(&self, read: fn(&weir_lab::HostPart) -> Result<T, RunError>) -> PyResult<T> {
        let part = self.part.lock().expect("no thread panics with it");
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
