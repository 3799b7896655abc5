//! Events of a log: their times and their names, in the forms of all versions.

use serde_json::{Map, Value};

/// Fields of a JSON object.
pub(crate) type Fields = Map<String, Value>;

/// What happened, and when.
#[derive(Debug)]
pub(crate) struct Event {
    /// In nanoseconds.
    pub(crate) time: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
    /// Which connection of the log.
    pub(crate) group: Option<String>,
}

/// What a trace says of all its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) title: Option<String>,
    /// The kind of the end that wrote it: `client`, `server`, `network` or `unknown`.
    pub(crate) vantage: Option<String>,
    /// Of a log of neither end, the end that its events are about.
    pub(crate) flow: Option<String>,
    /// Whether the log is of TCP: lengths have headers of IP, payloads are those of segments.
    pub(crate) is_tcp: bool,
    /// The congestion control, in our export.
    pub(crate) controller: Option<String>,
    /// Milliseconds per unit of time.
    pub(crate) scale: f64,
    is_delta: bool,
    /// Names of the fields of events that are lists.
    fields: Vec<String>,
    group: Option<String>,
    /// The time of the last event, if times are relative to it.
    now: f64,
}

impl Trace {
    /// Milliseconds since the trace began.
    pub(crate) fn new() -> Self {
        Self { scale: 1.0, ..Self::default() }
    }

    /// Processes a field of the trace.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        match name {
            "title" => self.title = text(value).or(self.title.take()),
            "vantage_point" => {
                let part = |name| value.get(name).and_then(text).map(|text| text.to_lowercase());
                self.vantage = part("type");
                self.flow = part("flow");
            }
            "configuration" => {
                let is_micros = value.get("time_units").and_then(Value::as_str) == Some("us");
                self.scale = if is_micros { 1e-3 } else { 1.0 };
            }
            "event_fields" => {
                let names = value.as_array().map(Vec::as_slice).unwrap_or_default();
                self.fields = names.iter().filter_map(text).take(MOST_FIELDS).collect();
                self.is_delta |= self.fields.iter().any(|field| field == "delta_time");
            }
            "common_fields" => {
                let format = value.get("time_format").and_then(Value::as_str).unwrap_or_default();
                self.is_delta |= format.contains("delta") || format.contains("previous");
                let protocols = value.get("protocol_types").and_then(Value::as_array);
                self.is_tcp = protocols.is_some_and(|list| list.iter().any(|name| name == "TCP"));
                self.group = group(value).or(self.group.take());
                self.controller = value.get("congestion_control").and_then(text);
            }
            _ => {}
        }
    }

    /// An event, which is an object, or a list in the order of the trace's fields.
    ///
    /// # Errors
    /// If it is neither, or has no time. The message has the value.
    pub(crate) fn event(&mut self, value: Value) -> Result<Event, String> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Array(values) => self.named(values),
            other => {
                return Err(format!(
                    "{} is no event: allowed are objects and lists",
                    shown(&other)
                ));
            }
        };
        let time = ["time", "relative_time", "delta_time"]
            .iter()
            .find_map(|name| fields.get(*name))
            .ok_or("an event has no time")?;
        let time = self.time(time)?;
        let part = |names: [&str; 3]| names.iter().find_map(|name| fields.get(*name)?.as_str());
        let name = part(["name", "event", "event_type"]).unwrap_or_default();
        // Those of qlog 0.0 are in capitals.
        let name = short(name).to_lowercase();
        let group = group_of(&fields).or_else(|| self.group.clone());
        let data = fields.get_mut("data").map(Value::take).unwrap_or_default();
        Ok(Event { time, name, data, group })
    }

    fn named(&self, values: Vec<Value>) -> Fields {
        let names = self.fields.iter().map(|name| name.to_lowercase());
        names.zip(values).collect()
    }

    fn time(&mut self, value: &Value) -> Result<u64, String> {
        let found = number(value).filter(|time| time.is_finite());
        let time = found
            .ok_or_else(|| format!("the time {} of an event: allowed are numbers", shown(value)))?;
        let time = time * self.scale;
        self.now = if self.is_delta { self.now + time } else { time };
        Ok((self.now * NANOS_PER_MS).clamp(0.0, LATEST) as u64)
    }
}

/// The number of a value, which some stacks write as text. Too large numbers stand for none.
pub(crate) fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (number.abs() < NO_NUMBER).then_some(number)
}

/// A count or an amount of bytes among `fields`, by the first of `names` that is there.
pub(crate) fn amount(fields: &Value, names: &[&str]) -> Option<u64> {
    let value = names.iter().find_map(|name| fields.get(*name))?;
    number(value).filter(|number| *number >= 0.0).map(|number| number as u64)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(|text| text.chars().take(MOST_LETTERS).collect())
}

fn group(value: &Value) -> Option<String> {
    value.as_object().and_then(group_of)
}

fn group_of(fields: &Fields) -> Option<String> {
    ["group_id", "ODCID", "odcid"].iter().find_map(|name| fields.get(*name)).and_then(text)
}

/// The name without its namespace.
fn short(name: &str) -> &str {
    let name = name.rsplit(':').next().unwrap_or(name);
    name.char_indices().nth(MOST_LETTERS).map_or(name, |(end, _)| &name[..end])
}

/// The beginning of a value, for messages.
fn shown(value: &Value) -> String {
    let text: String = value.to_string().chars().take(40).collect();
    format!("'{text}'")
}

const NANOS_PER_MS: f64 = 1e6;
/// Larger numbers stand for "none yet", as of a threshold.
const NO_NUMBER: f64 = 1e15;
/// Half of the nanoseconds that fit into 64 bits.
const LATEST: f64 = (u64::MAX / 2) as f64;
/// Fields of an event that is a list: all versions have fewer.
const MOST_FIELDS: usize = 32;
/// Letters of titles and names that are kept.
const MOST_LETTERS: usize = 100;
