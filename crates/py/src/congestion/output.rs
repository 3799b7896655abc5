//! What a controller in Python says: its window, threshold, pacing rate and phase, checked.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};
use weir_cc::Variable;
use weir_units::{Bytes, Rate};

/// What was read last.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) cwnd: Bytes,
    pub(super) ssthresh: Option<Bytes>,
    pub(super) pacing_rate: Option<Rate>,
    pub(super) phase: &'static str,
}

/// Why what a controller says cannot be used.
pub(super) enum Refusal {
    /// Reading an attribute raised.
    Raised(PyErr),
    /// An attribute's value is not allowed.
    Value(String),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Output {
    /// Of a controller that never was.
    pub(super) fn initial(cwnd: Bytes) -> Self {
        Self { cwnd, ssthresh: None, pacing_rate: None, phase: SLOW_START }
    }

    /// Reads the attributes of `controller`. A window below a segment of `mss` counts as one.
    pub(super) fn read(controller: &Bound<'_, PyAny>, mss: Bytes) -> Result<Self, Refusal> {
        let py = controller.py();
        let cwnd = whole(&controller.getattr(intern!(py, "cwnd"))?, "cwnd", BYTES)?;
        let ssthresh = controller.getattr(intern!(py, "ssthresh"))?;
        let ssthresh = optional(&ssthresh, "ssthresh", BYTES)?.map(Bytes);
        let pacing_rate = controller.getattr(intern!(py, "pacing_rate_bps"))?;
        let pacing_rate = optional(&pacing_rate, "pacing_rate_bps", RATE)?;
        let cwnd = Bytes(cwnd).max(mss);
        let in_slow_start = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh);
        let usual = if in_slow_start { SLOW_START } else { AVOIDANCE };
        let phase = controller.getattr(intern!(py, "phase"))?;
        let phase = if phase.is_none() { usual } else { phase_name(&phase)? };
        let pacing_rate = pacing_rate.map(Rate::from_bits_per_sec);
        Ok(Self { cwnd, ssthresh, pacing_rate, phase })
    }
}

/// A range of whole numbers, and its description for messages.
type Range = (u64, &'static str);

fn optional(value: &Bound<'_, PyAny>, name: &str, range: Range) -> Result<Option<u64>, Refusal> {
    if value.is_none() { Ok(None) } else { whole(value, name, range).map(Some) }
}

/// A whole number from one on; of a float, what is before the point.
fn whole(value: &Bound<'_, PyAny>, name: &str, (most, allowed): Range) -> Result<u64, Refusal> {
    let number = match value.cast::<PyFloat>() {
        // Out of range is refused below, and so is what is no number.
        Ok(float) => Some(float.value()).filter(|float| *float >= 1.0).map(|float| float as u64),
        Err(_) => value.extract().ok(),
    };
    number.filter(|number| (1..=most).contains(number)).ok_or_else(|| {
        Refusal::Value(format!("{name} = {} is not allowed; it is {allowed}", shown(value)))
    })
}

fn phase_name(value: &Bound<'_, PyAny>) -> Result<&'static str, Refusal> {
    let refusal = || {
        Refusal::Value(format!(
            "phase = {} is not allowed; it is None or a word of {LONGEST_NAME} letters at most, \
             {MOST_NAMES} different ones",
            shown(value)
        ))
    };
    let text = value.cast::<PyString>().map_err(|_| refusal())?.to_str()?;
    if text == SLOW_START || text == AVOIDANCE {
        return Ok(if text == SLOW_START { SLOW_START } else { AVOIDANCE });
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    static_name(text, fits).ok_or_else(refusal)
}

/// Reads the internal variables that a controller returns: a dictionary of finite numbers by name.
pub(super) fn variables(found: &Bound<'_, PyAny>) -> Result<Vec<Variable>, Refusal> {
    let refusal = |what: &str, value: &Bound<'_, PyAny>, allowed: &str| {
        Refusal::Value(format!("{what} {} is not allowed; it is {allowed}", shown(value)))
    };
    let Ok(dict) = found.cast::<PyDict>() else {
        return Err(refusal("the result", found, "a dictionary"));
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let read = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let text = key.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
        let name = text.and_then(|text| static_name(text, fits)).ok_or_else(|| {
            let allowed = format!(
                "a word of {LONGEST_NAME} small letters, digits and _ at most, {MOST_NAMES} different ones"
            );
            refusal("the name", &key, &allowed)
        })?;
        let number = value.extract::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| refusal(name, &value, "a finite number"))?;
        Ok((name, number))
    };
    dict.iter().map(read).collect()
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    text.chars().take(LONGEST_SHOWN).collect()
}

/// A name as it stands in tables, where names live as long as the program does. None if it is too long, has other letters
/// than those that fit, or is one too many.
fn static_name(text: &str, fits: impl Fn(char) -> bool) -> Option<&'static str> {
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(fits) {
        return None;
    }
    let mut known = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(name) = known.get(text) {
        return Some(name);
    }
    if known.len() >= MOST_NAMES {
        return None;
    }
    let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(name);
    Some(name)
}

/// The names that controllers of this process have given: a cache that no result depends on.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

const SLOW_START: &str = "slow_start";
const AVOIDANCE: &str = "congestion_avoidance";
/// Sums of windows stay far from overflow.
const BYTES: Range = (1 << 40, "a number of bytes from 1 to 2**40");
const RATE: Range = (1_000_000_000_000_000, "a number of bits per second from 1 to 10**15");
const LONGEST_NAME: usize = 32;
const MOST_NAMES: usize = 256;
const LONGEST_SHOWN: usize = 60;
