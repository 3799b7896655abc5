//! Files over reliable UDP: weir send and weir recv.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{Py, PyAny, create_exception};
use weir_transfer::file::{
    IncomingFile, IncomingKind, Omitted, OutgoingFile, OutgoingKind, Tally, Verdict,
};
use weir_transfer::seal::{Key, Keys};
use weir_transfer::{
    self as transfer, Carrier, Progress, Receiving, RecvOptions, SendOptions, Sent,
};
use weir_units::{Bytes, Duration, Rate};

use crate::congestion::{Fault, Faults, host_controller};
use crate::quantity::quantity;

create_exception!(
    weir,
    TransferError,
    pyo3::exceptions::PyException,
    "A transfer that did not happen: why, in one line."
);

/// Sends files and says what became of them: a row per file, and facts about the whole. `on_event` is
/// called several times a second; what it raises ends the transfer.
#[pyfunction]
#[pyo3(signature = (paths, target, *, stack, mss, initial_window, rate, pacing, max_retransmits, max_wait, on_event, key_file=None))]
#[allow(clippy::too_many_arguments, reason = "the options of weir send, by keyword")]
pub(crate) fn send_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    target: &str,
    stack: &str,
    mss: &str,
    initial_window: u32,
    rate: Option<&str>,
    pacing: bool,
    max_retransmits: u32,
    max_wait: &str,
    on_event: Py<PyAny>,
    key_file: Option<PathBuf>,
) -> PyResult<(Vec<Bound<'py, PyDict>>, Bound<'py, PyDict>)> {
    let bad = |error: String| PyValueError::new_err(error);
    let faults = Arc::default();
    let options = SendOptions {
        carrier: carrier(py, stack, &faults).map_err(bad)?,
        mss: u32::try_from(quantity::<Bytes>("mss", mss)?.get()).unwrap_or(u32::MAX),
        initial_window,
        max_rate: rate.map(|rate| quantity("rate", rate)).transpose()?,
        pacing,
        max_retransmits,
        max_wait: quantity("max_wait", max_wait)?,
        key: read_key(key_file)?,
    };
    options.validate().map_err(bad)?;
    let mut reporter = ProgressReporter { on_event, raised: None, faults: Arc::clone(&faults) };
    let sent = py.detach(|| {
        let remotes = transfer::resolve(target)?;
        let mut watch = |progress: &Progress| reporter.on_progress(progress);
        transfer::send(&paths, &remotes, &options, &mut watch)
    });
    if let Some(raised) =
        reporter.raised.filter(|raised| !raised.is_instance_of::<PyKeyboardInterrupt>(py))
    {
        return Err(raised);
    }
    if let Some(Fault::Error(text)) = faults.take() {
        return Err(TransferError::new_err(text));
    }
    let sent = sent.map_err(failure)?;
    // The end of a folder is a row of its own only if that failed.
    let is_row = |file: &&OutgoingFile| {
        let kept = matches!(file.verdict, None | Some(Verdict::Kept { .. }));
        file.kind != OutgoingKind::FolderEnd || !kept
    };
    let rows = sent.files.iter().filter(is_row).map(|file| sent_row(py, file, &sent));
    let rows = rows.collect::<PyResult<_>>()?;
    Ok((rows, sent_facts(py, &sent)?))
}

/// Receives files until interrupted, or with `once` until the first session is over. `on_event` is called
/// with what happens: `listening`, `progress`, `ended`; what it raises ends the receiver.
#[pyfunction]
#[pyo3(signature = (folder, bind, *, max_size, max_files, folders, once, on_event, memory, quota, partial_expiry, key_file=None, key_dir=None))]
#[allow(clippy::too_many_arguments, reason = "the options of weir recv, by keyword")]
pub(crate) fn receive_files(
    py: Python<'_>,
    folder: PathBuf,
    bind: &str,
    max_size: Option<&str>,
    max_files: u32,
    folders: bool,
    once: bool,
    on_event: Py<PyAny>,
    memory: &str,
    quota: Option<&str>,
    partial_expiry: &str,
    key_file: Option<PathBuf>,
    key_dir: Option<PathBuf>,
) -> PyResult<()> {
    let memory_size: Bytes = quantity("memory", memory)?;
    if memory_size < LEAST_MEMORY {
        let problem = format!("memory='{memory}': at least 4mib are needed, for one sender");
        return Err(PyValueError::new_err(problem));
    }
    let bind: SocketAddr = bind.parse().map_err(|_| {
        let problem =
            format!("'{bind}' is no ADDR:PORT to listen on, as 0.0.0.0:9000 and [::]:9000 are");
        PyValueError::new_err(problem)
    })?;
    let size = |name, text: Option<&str>| text.map(|text| quantity(name, text)).transpose();
    let options = RecvOptions {
        bind,
        folder,
        max_size: size("max_size", max_size)?,
        max_files,
        takes_folders: folders,
        memory: memory_size,
        quota: size("quota", quota)?,
        expiry: quantity("partial_expiry", partial_expiry)?,
        once,
        keys: read_keys(key_file, key_dir)?,
    };
    let mut reporter = ProgressReporter { on_event, raised: None, faults: Arc::default() };
    let received = py.detach(|| transfer::recv(&options, &mut |what| reporter.on_receiving(&what)));
    match (reporter.raised, received) {
        (Some(raised), _) => Err(raised),
        (None, result) => result.map_err(failure),
    }
}

/// A session holds up to 1 MiB of early data, and its buffers may be twice as large. Idle connections take at most half.
const LEAST_MEMORY: Bytes = Bytes(4 << 20);

/// What carries the files; a controller in Python is read from its file.
fn carrier(py: Python<'_>, stack: &str, faults: &Arc<Faults>) -> Result<Carrier, String> {
    let mut carrier = stack.parse::<Carrier>().map_err(|error| error.to_string())?;
    if let Carrier::Stack(stack) = &mut carrier {
        host_controller(py, &mut stack.controller, faults)?;
    }
    Ok(carrier)
}

fn read_key(file: Option<PathBuf>) -> PyResult<Option<Key>> {
    let key = file.map(|file| Key::read(&file)).transpose();
    key.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The keys of a receiver: one, or those in a folder.
fn read_keys(file: Option<PathBuf>, folder: Option<PathBuf>) -> PyResult<Option<Keys>> {
    let Some(folder) = folder else { return Ok(read_key(file)?.map(Keys::from)) };
    let keys = Keys::read_folder(&folder);
    keys.map(Some).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn failure(error: transfer::TransferError) -> PyErr {
    let text = error.to_string();
    match error {
        transfer::TransferError::Interrupted => PyKeyboardInterrupt::new_err(text),
        transfer::TransferError::Address(_) | transfer::TransferError::NoSuchHost { .. } => {
            PyValueError::new_err(text)
        }
        _ => TransferError::new_err(text),
    }
}

/// Passes on what happens, and looks for signals.
struct ProgressReporter {
    on_event: Py<PyAny>,
    raised: Option<PyErr>,
    /// What a controller in Python did wrong.
    faults: Arc<Faults>,
}

impl ProgressReporter {
    fn on_progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        if self.faults.any() {
            return ControlFlow::Break(());
        }
        self.call("progress", |facts| progress_facts(facts, progress))
    }

    fn on_receiving(&mut self, what: &Receiving<'_>) -> ControlFlow<()> {
        match what {
            Receiving::Listening(address) => {
                self.call("listening", |facts| facts.set_item("address", address.to_string()))
            }
            Receiving::Progress(progress) => self.on_progress(progress),
            Receiving::Warning(text) => self.call("warning", |facts| facts.set_item("text", text)),
            Receiving::Ended { remote, key_name, files, omitted, failure } => {
                self.call("ended", |facts| {
                    let py = facts.py();
                    let row = |file| {
                        let row = received_row(py, file, *remote)?;
                        row.set_item("key", key_name)?;
                        Ok(row)
                    };
                    facts.set_item("sender", remote.to_string())?;
                    facts.set_item("key", key_name)?;
                    facts.set_item("failure", failure.as_deref())?;
                    facts.set_item("omitted", omitted_facts(py, *omitted)?)?;
                    facts.set_item("rows", files.iter().map(row).collect::<PyResult<Vec<_>>>()?)
                })
            }
        }
    }

    fn call(
        &mut self,
        kind: &str,
        fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
    ) -> ControlFlow<()> {
        let outcome = Python::attach(|py| {
            let facts = PyDict::new(py);
            fill(&facts)?;
            py.check_signals()?;
            self.on_event.call1(py, (kind, facts)).map(drop)
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn omitted_facts(py: Python<'_>, omitted: Omitted) -> PyResult<Bound<'_, PyDict>> {
    let Omitted { kept, already, mismatch, refused, incomplete } = omitted;
    let facts = PyDict::new(py);
    facts.set_item("kept", kept)?;
    facts.set_item("already", already)?;
    facts.set_item("mismatch", mismatch)?;
    facts.set_item("refused", refused)?;
    facts.set_item("incomplete", incomplete)?;
    Ok(facts)
}

fn progress_facts(facts: &Bound<'_, PyDict>, progress: &Progress) -> PyResult<()> {
    facts.set_item("name", &progress.name)?;
    facts.set_item("hashing", progress.hashing)?;
    facts.set_item("files_done", progress.files_done)?;
    facts.set_item("files", progress.files)?;
    facts.set_item("bytes_done", progress.bytes_done)?;
    facts.set_item("bytes", progress.bytes)?;
    facts.set_item("peers", progress.peers)?;
    facts.set_item("cwnd_bytes", progress.cwnd.map(Bytes::get))?;
    facts.set_item("srtt_ms", progress.srtt.map(Duration::as_millis_f64))?;
    facts.set_item("pacing_mbps", progress.pacing_rate.map(Rate::as_mbit_f64))?;
    facts.set_item("segments", progress.segments)?;
    facts.set_item("retransmits", progress.retransmits)?;
    facts.set_item("reconnects", progress.reconnects)
}

fn sent_row<'py>(
    py: Python<'py>,
    file: &OutgoingFile,
    sent: &Sent,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("file", file.path.display().to_string())?;
    let kind = match &file.kind {
        OutgoingKind::File => "file",
        OutgoingKind::Folder | OutgoingKind::FolderEnd => "folder",
        OutgoingKind::Link { .. } => "link",
    };
    row.set_item("kind", kind)?;
    row.set_item("receiver", sent.remote.to_string())?;
    row.set_item("size_bytes", file.header.size)?;
    row.set_item("blake3", file.is_file().then(|| hex(&file.header.hash)))?;
    set_verdict(&row, file.verdict.as_ref())?;
    row.set_item("changed", file.has_changed())?;
    row.set_item("resumed_from_bytes", file.resumed_from)?;
    row.set_item("arrived_bytes", file.arrived)?;
    row.set_item("began_ns", sent.began_ns)?;
    row.set_item("ended_ns", file.ended_ns)?;
    let time = file.ended_ns.map(|at| at.saturating_sub(sent.began_ns) as f64 / 1e9);
    row.set_item("time_s", time)?;
    set_tally(&row, file.tally)?;
    Ok(row)
}

fn sent_facts<'py>(py: Python<'py>, sent: &Sent) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("complete", sent.is_complete())?;
    let interrupted = matches!(sent.error, Some(transfer::TransferError::Interrupted));
    facts.set_item("interrupted", interrupted)?;
    facts.set_item("problem", sent.error.as_ref().map(ToString::to_string))?;
    facts.set_item("receiver", sent.remote.to_string())?;
    let skipped = sent.skipped.iter().map(|skipped| {
        let facts = PyDict::new(py);
        facts.set_item("file", skipped.path.display().to_string())?;
        facts.set_item("reason", &skipped.reason)?;
        facts.set_item("missing", skipped.is_missing)?;
        Ok(facts)
    });
    facts.set_item("skipped", skipped.collect::<PyResult<Vec<_>>>()?)?;
    facts.set_item("began_ns", sent.began_ns)?;
    facts.set_item("ended_ns", sent.ended_ns)?;
    facts.set_item("segments", sent.segments)?;
    facts.set_item("retransmits", sent.retransmits)?;
    facts.set_item("sent_bytes", sent.bytes_sent)?;
    facts.set_item("timeouts", sent.timeouts)?;
    facts.set_item("reconnects", sent.reconnects)?;
    facts.set_item("srtt_ms", sent.srtt.map(Duration::as_millis_f64))?;
    Ok(facts)
}

fn received_row<'py>(
    py: Python<'py>,
    file: &IncomingFile,
    remote: SocketAddr,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("file", &file.name)?;
    let kind = match file.kind {
        IncomingKind::File => "file",
        IncomingKind::Folder | IncomingKind::FolderEnd => "folder",
        IncomingKind::Link => "link",
    };
    row.set_item("kind", kind)?;
    row.set_item("sender", remote.to_string())?;
    row.set_item("size_bytes", file.size)?;
    set_verdict(&row, file.verdict.as_ref())?;
    row.set_item("resumed_from_bytes", file.resumed_from)?;
    row.set_item("arrived_bytes", file.arrived)?;
    row.set_item("began_ns", file.began_ns)?;
    row.set_item("arrived_ns", file.arrived_ns)?;
    row.set_item("verified_ns", file.verified_ns)?;
    let time = file.arrived_ns.map(|at| at.saturating_sub(file.began_ns) as f64 / 1e9);
    row.set_item("time_s", time)?;
    set_tally(&row, file.tally)?;
    Ok(row)
}

/// What became of the datagrams of a file over bare UDP. Its time is the receiver's then, from the offer to
/// the last datagram: when to stop waiting for more is a matter of taste.
fn set_tally(row: &Bound<'_, PyDict>, tally: Option<Tally>) -> PyResult<()> {
    row.set_item("datagrams_sent", tally.map(|tally| tally.sent))?;
    row.set_item("datagrams_arrived", tally.map(|tally| tally.arrived))?;
    row.set_item("datagrams_again", tally.map(|tally| tally.duplicates))?;
    tally.map_or(Ok(()), |tally| row.set_item("time_s", tally.span.as_secs_f64()))
}

/// What became of a file: `kept`, `already`, `mismatch`, `refused`, or `incomplete`.
fn set_verdict(row: &Bound<'_, PyDict>, verdict: Option<&Verdict>) -> PyResult<()> {
    let (word, saved_as, reason) = match verdict {
        Some(Verdict::Kept { name }) => ("kept", Some(name), None),
        Some(Verdict::Already { name }) => ("already", Some(name), None),
        Some(Verdict::Mismatch) => ("mismatch", None, None),
        Some(Verdict::Refused { reason }) => ("refused", None, Some(reason)),
        None => ("incomplete", None, None),
    };
    row.set_item("verdict", word)?;
    row.set_item("saved_as", saved_as)?;
    row.set_item("reason", reason)
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
