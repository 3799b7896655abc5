//! The kernel's TCP moving files.

use std::net::SocketAddr;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use weir_sockets::clock;
use weir_transfer::tcp::{self, Listener, SendMethod, TcpError, TransferTimes};
use weir_units::{Duration, Instant};

/// What a transfer over the kernel's TCP moved, and when.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct TcpTransfer(TransferTimes);

#[pymethods]
impl TcpTransfer {
    /// The file's size.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// When it began, in nanoseconds of `CLOCK_MONOTONIC`.
    #[getter]
    fn began_ns(&self) -> u64 {
        self.0.began
    }

    /// When it ended, in nanoseconds of `CLOCK_MONOTONIC`.
    #[getter]
    fn ended_ns(&self) -> u64 {
        self.0.ended
    }
}

/// Sends a file over the kernel's TCP; by sendfile unless `write_size` says how much to write at a time.
#[pyfunction]
#[pyo3(signature = (path, address, *, controller = None, write_size = None, timeout_s = None))]
pub(crate) fn tcp_send(
    py: Python<'_>,
    path: PathBuf,
    address: &str,
    controller: Option<&str>,
    write_size: Option<usize>,
    timeout_s: Option<f64>,
) -> PyResult<TcpTransfer> {
    let to = parse_address(address)?;
    let handover = write_size.map_or(SendMethod::Sendfile, SendMethod::Write);
    let mut guard = Guard::new(timeout_s);
    let moved = py.detach(|| tcp::send(&path, to, controller, handover, &mut |_| guard.look()));
    guard.conclude(moved)
}

/// Waits for files over the kernel's TCP.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct TcpReceiver(Listener);

#[pymethods]
impl TcpReceiver {
    #[new]
    #[pyo3(signature = (address, *, controller = None))]
    fn new(address: &str, controller: Option<&str>) -> PyResult<Self> {
        tcp::listen(parse_address(address)?, controller).map(Self).map_err(to_python)
    }

    /// Where it listens, as `host:port`.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.0.local_addr()?.to_string())
    }

    /// Receives one file.
    #[pyo3(signature = (path, *, timeout_s = None))]
    fn receive(
        &self,
        py: Python<'_>,
        path: PathBuf,
        timeout_s: Option<f64>,
    ) -> PyResult<TcpTransfer> {
        let mut guard = Guard::new(timeout_s);
        let moved = py.detach(|| tcp::receive(&path, &self.0, &mut |_| guard.look()));
        guard.conclude(moved)
    }
}

/// Ends a long call when a signal has come or its time is over.
struct Guard {
    deadline: Option<Instant>,
    /// When to look for signals again.
    next_look: Instant,
    /// Why the call was ended.
    why: Option<PyErr>,
}

impl Guard {
    fn new(timeout_s: Option<f64>) -> Self {
        let now = clock::now();
        // As a cast does: too long is the longest, what is no number is none.
        let nanos = timeout_s.map(|seconds| (seconds * 1e9) as u64);
        let deadline = nanos.map(|nanos| now.saturating_add(Duration::from_nanos(nanos)));
        Self { deadline, next_look: now, why: None }
    }

    fn look(&mut self) -> std::io::Result<()> {
        let now = clock::now();
        if self.deadline.is_some_and(|at| at <= now) {
            self.why = Some(PyTimeoutError::new_err("the transfer did not end in time"));
        } else if self.next_look <= now {
            self.next_look = now + Duration::from_millis(100);
            self.why = Python::attach(|py| py.check_signals()).err();
        }
        if self.why.is_some() { Err(std::io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    fn conclude(self, moved: Result<TransferTimes, TcpError>) -> PyResult<TcpTransfer> {
        moved.map(TcpTransfer).map_err(|error| self.why.unwrap_or_else(|| to_python(error)))
    }
}

fn parse_address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        PyValueError::new_err(format!("'{text}' is no address; 127.0.0.1:9000 and [::1]:9000 are"))
    })
}

fn to_python(error: TcpError) -> PyErr {
    match error {
        TcpError::Controller { .. } => PyValueError::new_err(error.to_string()),
        TcpError::System { .. } => PyOSError::new_err(error.to_string()),
    }
}
