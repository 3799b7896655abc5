//! JSON of a log, event by event, so that memory does not grow with the log.
//!
//! Sources: draft-ietf-quic-qlog-main-schema (a document with traces, or a sequence of records), RFC 7464 (sequences).

use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, ErrorKind, Read};
use std::rc::Rc;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

/// Takes what a document has. An error ends reading.
pub(crate) trait Sink {
    /// The next trace begins.
    fn begin_trace(&mut self);
    /// A field of the trace, if [`Self::wants_events`] is false.
    fn field(&mut self, name: &str, value: &Value);
    /// An event of the trace, if [`Self::wants_events`] is true.
    fn event(&mut self, value: Value) -> Result<(), String>;
    /// Called before every event, also where events are not read.
    fn pass(&mut self) -> Result<(), String>;
    /// Whether events are read, or the other fields.
    fn wants_events(&self) -> bool;
}

/// Reads one document from `source` into `sink`.
///
/// # Errors
/// If it is no JSON, or ends early, or the sink refuses an event.
pub(crate) fn document(source: impl BufRead, sink: &mut dyn Sink) -> serde_json::Result<()> {
    let left = Rc::new(Cell::new(LONGEST));
    let source = Limited { source, left: left.clone() };
    let mut json = serde_json::Deserializer::from_reader(source);
    Part { sink, left: &left, level: Level::Document }.deserialize(&mut json)
}

/// Reads the next record of a sequence; none at the end. `separator` is what follows a record.
///
/// # Errors
/// If the record is longer than is read, or the source fails.
pub(crate) fn record(
    source: &mut impl BufRead,
    separator: u8,
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<Ending>> {
    loop {
        buffer.clear();
        let read = source.by_ref().take(LONGEST).read_until(separator, buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let ending = match buffer.pop_if(|last| *last == separator) {
            Some(_) => Ending::Complete,
            None if read as u64 == LONGEST => return Err(too_long()),
            None => Ending::Open,
        };
        if !buffer.trim_ascii().is_empty() {
            return Ok(Some(ending));
        }
    }
}

/// How a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A separator follows.
    Complete,
    /// The file ends.
    Open,
}

fn too_long() -> std::io::Error {
    let message = format!("a value is longer than {} KiB", LONGEST >> 10);
    std::io::Error::new(TOO_LONG, message)
}

/// The kind of the error of a value that is too long.
pub(crate) const TOO_LONG: ErrorKind = ErrorKind::FileTooLarge;

/// A source that ends with an error where one value is longer than [`LONGEST`].
struct Limited<R> {
    source: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64).ok_or_else(too_long)?;
        self.left.set(left);
        Ok(read)
    }
}

/// A part of a document.
struct Part<'a> {
    sink: &'a mut dyn Sink,
    left: &'a Cell<u64>,
    level: Level,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Document,
    Traces,
    Trace,
    Events,
}

impl Part<'_> {
    fn inner(&mut self, level: Level) -> Part<'_> {
        self.left.set(LONGEST);
        Part { sink: self.sink, left: self.left, level }
    }

    /// Reads or skips an event. Returns whether there was one.
    fn next_event<'de, A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<bool, A::Error> {
        self.sink.pass().map_err(A::Error::custom)?;
        if !self.sink.wants_events() {
            return Ok(list.next_element::<IgnoredAny>()?.is_some());
        }
        let Some(event) = list.next_element()? else { return Ok(false) };
        self.sink.event(event).map_err(A::Error::custom)?;
        Ok(true)
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.level {
            Level::Document | Level::Trace => json.deserialize_map(self),
            Level::Traces | Level::Events => json.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Document => "an object with traces",
            Level::Traces => "a list of traces",
            Level::Trace => "a trace",
            Level::Events => "a list of events",
        })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        if self.level == Level::Trace {
            self.sink.begin_trace();
        }
        while let Some(key) = map.next_key::<String>()? {
            match (self.level, key.as_str()) {
                (Level::Document, "traces") => map.next_value_seed(self.inner(Level::Traces))?,
                (Level::Document, "trace") => map.next_value_seed(self.inner(Level::Trace))?,
                (Level::Trace, "events") => map.next_value_seed(self.inner(Level::Events))?,
                (Level::Trace, name) if !self.sink.wants_events() => {
                    self.left.set(LONGEST);
                    self.sink.field(name, &map.next_value()?);
                }
                _ => {
                    self.left.set(LONGEST);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        loop {
            self.left.set(LONGEST);
            let has_more = match self.level {
                Level::Traces => list.next_element_seed(self.inner(Level::Trace))?.is_some(),
                _ => self.next_event(&mut list)?,
            };
            if !has_more {
                return Ok(());
            }
        }
    }
}

/// Bytes of one event, or of one field of a trace.
const LONGEST: u64 = 1 << 20;
