//! Loads of path tests over UDP.

use std::net::SocketAddr;
use std::sync::Mutex;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_links::datagrams::{self, LoadSpec, Received};
use weir_units::{Duration, Rate};

/// A UDP socket that takes datagrams from one address only.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct PathSocket {
    socket: Mutex<Option<datagrams::PathSocket>>,
    remote: String,
}

#[pymethods]
impl PathSocket {
    /// Opens a socket to `remote`, at `local` or at a free port.
    #[new]
    #[pyo3(signature = (remote, local = None))]
    fn new(remote: &str, local: Option<&str>) -> PyResult<Self> {
        let local = local.map(parse).transpose()?;
        let opened = datagrams::PathSocket::open(local, parse(remote)?);
        let opened = opened.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let remote = opened.remote().to_string();
        Ok(Self { socket: Mutex::new(Some(opened)), remote })
    }

    /// The address of the other end.
    #[getter]
    fn remote(&self) -> &str {
        &self.remote
    }

    /// Sends `datagram` until the other end returns one with the same first bytes, for `wait_s` at most.
    fn handshake(&self, py: Python<'_>, datagram: &[u8], wait_s: f64) -> PyResult<bool> {
        let wait = Duration::from_nanos((wait_s * 1e9) as u64);
        py.detach(|| {
            let socket = self.socket.lock().expect("no thread panics with it");
            let introduced = socket.as_ref().map(|socket| socket.introduce(datagram, wait));
            introduced.transpose()
        })?
        .ok_or_else(taken)
    }
}

impl PathSocket {
    /// For the load that uses it.
    pub(crate) fn take(&self) -> PyResult<datagrams::PathSocket> {
        self.socket.lock().expect("no thread panics with it").take().ok_or_else(taken)
    }
}

/// One end of a load of datagrams.
#[pyclass(module = "weir._native")]
pub(crate) struct DatagramLoad(datagrams::DatagramLoad);

#[pymethods]
impl DatagramLoad {
    /// Starts to receive over a socket, which it takes, and to send datagrams of `length` bytes at
    /// `rate_bps`.
    #[new]
    #[pyo3(signature = (path, token, kind, length, rate_bps = None))]
    fn new(
        path: &PathSocket,
        token: [u8; 16],
        kind: u8,
        length: usize,
        rate_bps: Option<f64>,
    ) -> PyResult<Self> {
        let rate = rate_bps.map(|rate| Rate::from_bits_per_sec(rate as u64));
        let spec = LoadSpec { token, kind, length, rate };
        Ok(Self(datagrams::DatagramLoad::start(path.take()?, spec)?))
    }

    /// Number of datagrams sent so far.
    #[getter]
    fn sent(&self) -> u64 {
        self.0.sent()
    }

    /// Bytes received so far.
    #[getter]
    fn received_bytes(&self) -> u64 {
        self.0.received_bytes()
    }

    /// Ends the sending; returns how many datagrams were sent, and how many of them were refused here.
    fn end_sending(&mut self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let sent = py.detach(|| self.0.end_sending())?;
        Ok(sent.map(|sent| (sent.sent, sent.refused)))
    }

    /// Ends the receiving; returns what was received.
    fn end_receiving<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let received = py.detach(|| self.0.end_receiving())?;
        received.map(|received| as_dict(py, received)).transpose()
    }
}

fn as_dict(py: Python<'_>, received: Received) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("received", received.received)?;
    found.set_item("bytes", received.bytes)?;
    found.set_item("reordered", received.reordered)?;
    found.set_item("dropped", received.dropped)?;
    found.set_item("jitter_ns", received.jitter.round() as u64)?;
    found.set_item("log", received.log)?;
    found.set_item("transits", received.transits)?;
    let first = received.first.iter().map(|one| (one.number, one.sent, one.arrived));
    found.set_item("first", first.collect::<Vec<_>>())?;
    Ok(found)
}

fn parse(address: &str) -> PyResult<SocketAddr> {
    address.parse().map_err(|_| PyValueError::new_err(format!("{address}: no address with a port")))
}

fn taken() -> PyErr {
    PyRuntimeError::new_err("a load has taken the socket")
}
