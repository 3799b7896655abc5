//! Links in real time: between network namespaces, and between UDP programs.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_lab::{RelayKind, relay_links};
#[cfg(target_os = "linux")]
use weir_links::emulator::{self, Namespace, Offload};
use weir_links::relay::{
    self, Background, CheckSpec, DirectionReport, HostedLink, RelaySpec, Report, Route,
};
use weir_units::Duration;

use crate::lab::ScenarioError;

/// A link between two network namespaces of its own, at work until it is stopped.
#[pyclass(module = "weir._native")]
pub(crate) struct TunLink {
    work: Option<Background>,
    #[cfg(target_os = "linux")]
    namespaces: Vec<Namespace>,
}

#[pymethods]
impl TunLink {
    /// Makes two namespaces and joins them; `addresses` are those of their devices. `options` hold for
    /// both directions, the two of `directions` (up, from the first to the second, and down) for one each.
    #[cfg(target_os = "linux")]
    #[new]
    fn new(
        py: Python<'_>,
        addresses: [String; 2],
        mtu: u16,
        options: Vec<(String, String)>,
        directions: [String; 2],
        seed: u64,
        offload: &str,
    ) -> PyResult<Self> {
        let (links, route) = hosted_for_packets(&options, &directions[0], &directions[1])?;
        let offload = match offload {
            "auto" => Offload::Auto,
            "off" => Offload::Off,
            "on" => Offload::On,
            other => {
                let problem = format!("offload = {other}: auto, off or on");
                return Err(PyValueError::new_err(problem));
            }
        };
        let mut options = emulator::Options { mtu, offload, ..Default::default() };
        for (device, text) in options.devices.iter_mut().zip(&addresses) {
            device.address = text
                .parse()
                .map_err(|_| PyValueError::new_err(format!("{text}: no IPv4 address")))?;
        }
        py.detach(|| {
            let namespaces = [namespace()?, namespace()?];
            let [left, right] = &namespaces;
            let link = emulator::TunLink::open([left, right], &links, route, seed, &options)
                .map_err(|error| PyOSError::new_err(error.to_string()))?;
            Ok(Self { work: Some(Background::start(link)), namespaces: namespaces.into() })
        })
    }

    /// The files that stand for the namespaces: `nsenter --net=FILE` enters one until it is stopped.
    #[cfg(target_os = "linux")]
    #[getter]
    fn namespaces(&self) -> Vec<PathBuf> {
        self.namespaces.iter().map(|namespace| namespace.file().to_owned()).collect()
    }

    /// What it did so far.
    fn report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report(py, &mut self.work)
    }

    /// Stops it and says what it did. Its namespaces are given up.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        #[cfg(target_os = "linux")]
        self.namespaces.clear();
        stop(py, &mut self.work)
    }
}

#[cfg(target_os = "linux")]
fn namespace() -> PyResult<Namespace> {
    Namespace::new().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// A relay between UDP programs, at work until it is stopped.
#[pyclass(module = "weir._native")]
pub(crate) struct UdpRelay {
    work: Option<Background>,
    address: SocketAddr,
}

#[pymethods]
impl UdpRelay {
    /// Listens at the first of two `addresses` and relays to the second. `options` hold for both
    /// directions, the two of `directions` (up, down) for one each. Corruption flips 1 to `corrupt_bits` bits.
    #[new]
    #[pyo3(signature = (addresses, options, directions, serial, seed, clients, idle, corrupt_bits=1))]
    #[allow(clippy::too_many_arguments, reason = "the options of weir relay")]
    fn new(
        addresses: [String; 2],
        options: Vec<(String, String)>,
        directions: [String; 2],
        serial: bool,
        seed: u64,
        clients: usize,
        idle: &str,
        corrupt_bits: u8,
    ) -> PyResult<Self> {
        let kind = if serial { RelayKind::Serial } else { RelayKind::DelayLine };
        let (links, route) = hosted(kind, &options, &directions[0], &directions[1])?;
        let listen = resolve("--listen", &addresses[0])?;
        let to = resolve("--to", &addresses[1])?;
        if to.port() == 0 || to.ip().is_unspecified() {
            let problem = format!("--to {to}: a host and a port above 0 are needed");
            return Err(PyValueError::new_err(problem));
        }
        let idle: Duration = duration("--idle", idle)?;
        let relay = relay::UdpRelay::bind(RelaySpec {
            listen,
            to,
            links,
            route,
            corrupt_bits,
            seed,
            clients,
            idle,
        })
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
        let address = relay.local_addr();
        Ok(Self { work: Some(Background::start(relay)), address })
    }

    /// Where clients send to.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// What it did so far.
    fn report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report(py, &mut self.work)
    }

    /// Stops it and says what it did.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stop(py, &mut self.work)
    }
}

/// Sends `count` datagrams of `size` bytes, one per `gap`, through a relay with this `delay`.
#[pyfunction]
pub(crate) fn relay_check<'py>(
    py: Python<'py>,
    delay: &str,
    gap: &str,
    size: usize,
    count: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (delay, gap) = (duration("--delay", delay)?, duration("gap", gap)?);
    let found = py
        .detach(|| relay::check(&CheckSpec { delay, gap, size, count }))
        .map_err(|error| PyOSError::new_err(error.to_string()))?;
    let dict = PyDict::new(py);
    dict.set_item("sent", found.sent)?;
    dict.set_item("received", found.received)?;
    dict.set_item("rate_pps", found.rate)?;
    dict.set_item("good_ms", relay::GOOD_LATENESS_MS)?;
    for (name, spread) in [("direct", found.direct), ("added", found.added)] {
        dict.set_item(format!("{name}_ms_p50"), spread.p50_ms)?;
        dict.set_item(format!("{name}_ms_p99"), spread.p99_ms)?;
        dict.set_item(format!("{name}_ms_max"), spread.max_ms)?;
    }
    dict.set_item("relay", as_dict(py, &found.relay)?)?;
    Ok(dict)
}

fn duration(option: &str, text: &str) -> PyResult<Duration> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{option}: {error}")))
}

/// The first address that a host and a port stand for.
fn resolve(option: &str, text: &str) -> PyResult<SocketAddr> {
    let refuse = |why: String| PyValueError::new_err(format!("{option} {text}: {why}"));
    let mut found = text.to_socket_addrs().map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => {
            refuse("an address is HOST:PORT, as in 127.0.0.1:9000 or [::1]:9000".to_owned())
        }
        _ => refuse(format!("there is no such host ({error})")),
    })?;
    found.next().ok_or_else(|| refuse("there is no such host".to_owned()))
}

/// The links that options describe, with the route over them.
pub(crate) fn hosted(
    kind: RelayKind,
    options: &[(String, String)],
    up: &str,
    down: &str,
) -> PyResult<(Vec<HostedLink>, Route)> {
    let found = relay_links(kind, options, up, down)
        .map_err(|error| ScenarioError::new_err(error.to_string()))?;
    let hosted =
        |link: weir_lab::RelayLink| HostedLink { name: link.name.into(), config: link.config };
    let links = found.links.into_iter().map(hosted).collect();
    Ok((links, Route { up: found.up, down: found.down }))
}

/// The same for links that carry IP packets, in which no feedback is sought.
#[cfg(target_os = "linux")]
pub(crate) fn hosted_for_packets(
    options: &[(String, String)],
    up: &str,
    down: &str,
) -> PyResult<(Vec<HostedLink>, Route)> {
    let (links, route) = hosted(RelayKind::DelayLine, options, up, down)?;
    if links.iter().any(|link| link.config.feedback.is_some()) {
        let problem = "feedback: this link carries IP packets, into which none is written; weir relay does it";
        return Err(ScenarioError::new_err(problem));
    }
    Ok((links, route))
}

pub(crate) fn report<'py>(
    py: Python<'py>,
    work: &mut Option<Background>,
) -> PyResult<Bound<'py, PyDict>> {
    let background = work.as_ref().ok_or_else(|| PyRuntimeError::new_err("it has been stopped"))?;
    match py.detach(|| background.report()) {
        Some(report) => as_dict(py, &report),
        // It ended by itself: stopping it says why.
        None => stop(py, work),
    }
}

fn stop<'py>(py: Python<'py>, work: &mut Option<Background>) -> PyResult<Bound<'py, PyDict>> {
    let work = work.take().ok_or_else(|| PyRuntimeError::new_err("it has been stopped"))?;
    let report = py.detach(|| work.stop())?;
    as_dict(py, &report)
}

fn as_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("elapsed_s", report.elapsed.as_secs_f64())?;
    dict.set_item("clients", report.clients)?;
    dict.set_item("up", way_dict(py, &report.up)?)?;
    dict.set_item("down", way_dict(py, &report.down)?)?;
    dict.set_item("warnings", report.warnings())?;
    Ok(dict)
}

fn way_dict<'py>(py: Python<'py>, way: &DirectionReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counters = [
        ("received", way.received),
        ("received_bytes", way.received_bytes),
        ("sent", way.sent),
        ("sent_bytes", way.sent_bytes),
        ("queued", way.queued),
        ("lost", way.lost),
        ("queue_dropped", way.queue_dropped),
        ("too_long", way.too_long),
        ("duplicated", way.duplicated),
        ("corrupted", way.corrupted),
        ("reordered", way.reordered),
        ("marked", way.marked),
        ("overflow", way.unintended.overflow),
        ("memory_full", way.unintended.memory_full),
        ("send_errors", way.unintended.send_errors),
        ("unknown_client", way.unintended.unknown_client),
    ];
    for (name, count) in counters {
        dict.set_item(name, count)?;
    }
    dict.set_item("stamped", way.feedback.stamped)?;
    dict.set_item("lowest_index", way.feedback.lowest_index)?;
    dict.set_item("late_ms_p50", way.lateness.p50_ms)?;
    dict.set_item("late_ms_p99", way.lateness.p99_ms)?;
    dict.set_item("late_ms_max", way.lateness.max_ms)?;
    Ok(dict)
}
