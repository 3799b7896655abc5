//! What a controller in Python says: its window, threshold, pacing rate and phase, checked.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};
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
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let shown: String = shown.chars().take(LONGEST_SHOWN).collect();
        Refusal::Value(format!("{name} = {shown} is not allowed; it is {allowed}"))
    })
}

/// A phase as it stands in tables, where names live as long as the program does.
fn phase_name(value: &Bound<'_, PyAny>) -> Result<&'static str, Refusal> {
    let refusal = || {
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let shown: String = shown.chars().take(LONGEST_SHOWN).collect();
        Refusal::Value(format!(
            "phase = {shown} is not allowed; it is None or a word of {LONGEST_PHASE} letters at most, \
             {MOST_PHASES} different ones"
        ))
    };
    let text = value.cast::<PyString>().map_err(|_| refusal())?.to_str()?;
    if text == SLOW_START || text == AVOIDANCE {
        return Ok(if text == SLOW_START { SLOW_START } else { AVOIDANCE });
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if text.is_empty() || text.len() > LONGEST_PHASE || !text.chars().all(fits) {
        return Err(refusal());
    }
    let mut known = PHASES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(name) = known.get(text) {
        return Ok(name);
    }
    if known.len() >= MOST_PHASES {
        return Err(refusal());
    }
    let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(name);
    Ok(name)
}

/// The phases that controllers of this process have named: a cache that no result depends on.
static PHASES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

const SLOW_START: &str = "slow_start";
const AVOIDANCE: &str = "congestion_avoidance";
/// Sums of windows stay far from overflow.
const BYTES: Range = (1 << 40, "a number of bytes from 1 to 2**40");
const RATE: Range = (1_000_000_000_000_000, "a number of bits per second from 1 to 10**15");
const LONGEST_PHASE: usize = 32;
const MOST_PHASES: usize = 256;
const LONGEST_SHOWN: usize = 60;
