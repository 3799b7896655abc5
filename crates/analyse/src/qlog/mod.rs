//! Logs of connections in qlog, as their ends wrote them.
//!
//! Sources: draft-ietf-quic-qlog-main-schema (files, times), draft-ietf-quic-qlog-quic-events (events). Names with and without a
//! namespace are read, and events as lists of qlog 0.2 and earlier. A document is read twice: what holds for its events may follow
//! them.

mod connection;
mod event;
mod fields;
mod flight;
mod hold;
mod json;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::ops::ControlFlow;

use serde_json::Value;

use crate::decompress;
use crate::error::{Cut, ReadError};
use crate::rows::Rows;
use connection::LoggedConnection;
use event::Trace;
use json::{Ending, Sink};

/// Whether a file whose first bytes are `start` may be a log: JSON, or a sequence of JSON texts.
pub(crate) fn is_log(start: &[u8]) -> bool {
    matches!(start.trim_ascii_start().first(), Some(b'{' | &RECORD_SEPARATOR))
        || start.starts_with(&BYTE_ORDER_MARK)
}

/// Reads a log that is called `name`. `watch` is called every few thousand events, and may end it.
///
/// # Errors
/// If it is no log.
pub(crate) fn read(
    name: &str,
    source: &mut (impl Read + Seek),
    watch: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<LogRows, ReadError> {
    let mut log = Log {
        traces: Vec::new(),
        open: Vec::new(),
        refused: BTreeSet::new(),
        events: 0,
        passed: 0,
        watch,
        is_stopped: false,
        begun: 0,
        reads_events: false,
    };
    let (start, mut whole) = started(source)?;
    let cut = if is_sequence(&start) {
        let is_separated = start.starts_with(&[RECORD_SEPARATOR]);
        log.read_sequence(&mut whole, if is_separated { RECORD_SEPARATOR } else { b'\n' })?
    } else {
        let first = log.read_document(&mut whole)?;
        drop(whole);
        if log.is_stopped {
            first
        } else {
            (log.begun, log.reads_events) = (0, true);
            log.read_document(started(source)?.1)?.or(first)
        }
    };
    if log.events == 0 && !log.is_stopped {
        return Err(ReadError::Log("it has no events, so it is no qlog".to_owned()));
    }
    let connections = log.open.into_iter();
    let rows = connections
        .map(|(_, group, connection)| connection.into_rows(name, group.as_deref()))
        .collect();
    Ok(LogRows { rows, events: log.events, dropped: log.refused.len() as u64, cut })
}

/// What a log contains.
pub(crate) struct LogRows {
    pub(crate) rows: Vec<Rows>,
    pub(crate) events: u64,
    /// Connections that have no row, because there are too many; at most [`MOST_REFUSED`].
    pub(crate) dropped: u64,
    pub(crate) cut: Option<Cut>,
}

/// A log that is being read.
struct Log<'w> {
    traces: Vec<Trace>,
    /// The number of the trace, and the group of its events.
    open: Vec<(usize, Option<String>, LoggedConnection)>,
    /// The same of connections beyond the largest number.
    refused: BTreeSet<(usize, Option<String>)>,
    events: u64,
    /// Events and records passed, also those of a document that is read for its other fields.
    passed: u64,
    watch: &'w mut dyn FnMut() -> ControlFlow<()>,
    is_stopped: bool,
    /// Traces of a document that have begun.
    begun: usize,
    /// Whether events of a document are read, or what is around them.
    reads_events: bool,
}

impl Log<'_> {
    /// Reads a document, its events or what is around them. Returns where it is cut.
    fn read_document(&mut self, source: impl BufRead) -> Result<Option<Cut>, ReadError> {
        match json::document(source, self) {
            Ok(()) => Ok(None),
            Err(_) if self.is_stopped => Ok(None),
            Err(error) if error.is_eof() => Ok(Some(Cut::Event)),
            Err(error) if error.io_error_kind() == Some(decompress::EXPANDS) => {
                Err(ReadError::Log(error.to_string()))
            }
            Err(error) if error.io_error_kind().is_some_and(|kind| kind != json::TOO_LONG) => {
                Ok(Some(Cut::Compression))
            }
            Err(error) => Err(ReadError::Log(format!("it is no valid qlog: {error}"))),
        }
    }

    fn read_sequence(
        &mut self,
        source: &mut impl BufRead,
        separator: u8,
    ) -> Result<Option<Cut>, ReadError> {
        self.traces.push(Trace::new());
        let mut buffer = Vec::new();
        let mut records = 0u64;
        loop {
            let invalid = |what: &dyn std::fmt::Display| {
                ReadError::Log(format!("record {} of this qlog: {what}", records + 1))
            };
            if self.pass().is_err() {
                return Ok(None);
            }
            let ending = match json::record(source, separator, &mut buffer) {
                Ok(Some(ending)) => ending,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == decompress::EXPANDS => {
                    return Err(ReadError::Log(error.to_string()));
                }
                Err(error) if error.kind() != json::TOO_LONG => {
                    return Ok(Some(Cut::Compression));
                }
                Err(error) => return Err(invalid(&error)),
            };
            let value = match serde_json::from_slice(buffer.trim_ascii()) {
                Ok(value) => value,
                Err(error) if ending == Ending::Open && error.is_eof() => {
                    return Ok(Some(Cut::Event));
                }
                Err(error) => return Err(invalid(&error)),
            };
            self.take_record(value).map_err(|what| invalid(&what))?;
            records += 1;
        }
    }

    /// An event, or what holds for those that follow.
    fn take_record(&mut self, value: Value) -> Result<(), String> {
        if value.is_array() || value.get("name").is_some() {
            return self.take_event(0, value);
        }
        let trace = &mut self.traces[0];
        for (name, value) in value.as_object().into_iter().flatten() {
            trace.set(name, value);
            if name == "trace" {
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(name, value)| trace.set(name, value));
            }
        }
        Ok(())
    }

    fn take_event(&mut self, trace: usize, value: Value) -> Result<(), String> {
        // Writers of qlog 0.1 end a list with an empty event.
        let is_empty = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if is_empty {
            return Ok(());
        }
        self.events += 1;
        let event = self.traces[trace].event(value)?;
        let is_its = |(of, group, _): &&mut (usize, Option<String>, LoggedConnection)| {
            *of == trace && *group == event.group
        };
        if let Some((_, _, connection)) = self.open.iter_mut().find(is_its) {
            connection.handle(&event);
        } else if self.open.len() < MOST_CONNECTIONS {
            let mut connection = LoggedConnection::new(event.time, &self.traces[trace]);
            connection.handle(&event);
            self.open.push((trace, event.group, connection));
        } else {
            self.refuse(trace, event.group);
        }
        Ok(())
    }

    fn refuse(&mut self, trace: usize, group: Option<String>) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.insert((trace, group));
        }
    }

    /// The number of the trace that is being read.
    fn at(&self) -> Option<usize> {
        self.begun.checked_sub(1)
    }
}

impl Sink for Log<'_> {
    fn begin_trace(&mut self) {
        self.begun += 1;
        if !self.reads_events && self.begun <= MOST_TRACES {
            self.traces.push(Trace::new());
        }
    }

    fn field(&mut self, name: &str, value: &Value) {
        if let Some(trace) = self.at().and_then(|at| self.traces.get_mut(at)) {
            trace.set(name, value);
        }
    }

    fn event(&mut self, value: Value) -> Result<(), String> {
        let Some(trace) = self.at() else { return Ok(()) };
        if trace < self.traces.len() {
            return self.take_event(trace, value);
        }
        self.events += 1;
        self.refuse(trace, None);
        Ok(())
    }

    fn pass(&mut self) -> Result<(), String> {
        self.passed += 1;
        self.is_stopped = self.passed.is_multiple_of(WATCH_EVERY) && (self.watch)().is_break();
        if self.is_stopped { Err("stopped".to_owned()) } else { Ok(()) }
    }

    fn wants_events(&self) -> bool {
        self.reads_events
    }
}

/// The first bytes of a log, and the whole of it. Both are without what some systems write before text.
fn started<S: Read + Seek>(
    source: &mut S,
) -> Result<(Vec<u8>, impl BufRead + use<'_, S>), ReadError> {
    source.rewind()?;
    let mut source = decompress::open_bounded(source)?.source;
    let mut start = Vec::new();
    let read = source.by_ref().take(START).read_to_end(&mut start);
    read.map_err(|_| ReadError::Log(Cut::Compression.to_string()))?;
    if start.starts_with(&BYTE_ORDER_MARK) {
        start.drain(..BYTE_ORDER_MARK.len());
    }
    let blank = start.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    start.drain(..blank);
    let whole = BufReader::new(Cursor::new(start.clone()).chain(source));
    Ok((start, whole))
}

/// Whether a log that begins with `start` is a sequence of records: it has a separator, or its first line says so.
fn is_sequence(start: &[u8]) -> bool {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    start.first() == Some(&RECORD_SEPARATOR)
        || ["\"JSON-SEQ\"", "\"NDJSON\"", "file:sequential\""]
            .iter()
            .any(|word| line.contains(word))
}

const RECORD_SEPARATOR: u8 = 0x1e;
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// Bytes that show what a log is.
const START: u64 = 4_096;
/// Connections of a log that are read, each of up to 15 MB.
const MOST_CONNECTIONS: usize = 32;
/// Connections beyond these that are counted.
const MOST_REFUSED: usize = 10_000;
const MOST_TRACES: usize = 1_000;
const WATCH_EVERY: u64 = 4_096;
