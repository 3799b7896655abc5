//! Reading `careful-resume(CONTROLLER,cwnd=300,rtt=100ms)`, whose controller may have parameters of its own.

use std::fmt;

use super::describe::{millis, segments};
use super::{CcConfig, CcConfigError};
use crate::{CubicShape, Hystart, SavedPath};

/// Reads it, if `text` names it.
pub(super) fn read(text: &str) -> Option<Result<CcConfig, CcConfigError>> {
    let rest = text.trim().strip_prefix(NAME)?.trim();
    if rest.is_empty() {
        return Some(Ok(CcConfig::CarefulResume { controller: Box::new(CUBIC), saved: None }));
    }
    let given = rest.strip_prefix('(')?.strip_suffix(')');
    let malformed = || CcConfigError::Malformed { text: text.to_string() };
    Some(given.ok_or_else(malformed).and_then(read_parts))
}

fn read_parts(given: &str) -> Result<CcConfig, CcConfigError> {
    let refuse = |allowed: &str| CcConfigError::Parameters {
        controller: NAME,
        given: given.to_string(),
        allowed: allowed.to_string(),
    };
    let (mut controller, mut cwnd, mut rtt) = (None, None, None);
    for (index, part) in parts(given).into_iter().enumerate() {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match (key.trim(), value.trim()) {
            ("cwnd", value) if cwnd.is_none() => {
                let allowed = "a whole number of segments from 2 to 1000000";
                cwnd = Some(segments(value, 2).ok_or_else(|| bad_value("cwnd", value, allowed))?);
            }
            ("rtt", value) if rtt.is_none() => {
                let allowed = "whole milliseconds from 1ms to 60000ms";
                let read = millis(value, 1..=60_000);
                rtt = Some(read.ok_or_else(|| bad_value("rtt", value, allowed))?);
            }
            _ if index == 0 => controller = Some(CcConfig::parse(part)?),
            _ => return Err(refuse(TAKES)),
        }
    }
    let controller = Box::new(controller.unwrap_or(CUBIC));
    if !controller.has_slow_start() || matches!(*controller, CcConfig::CarefulResume { .. }) {
        return Err(refuse("its controller is one of the catalogue that has a slow start"));
    }
    let saved = match (cwnd, rtt) {
        (None, None) => None,
        (Some(cwnd), Some(rtt)) => Some(SavedPath { cwnd, rtt }),
        _ => return Err(refuse("cwnd and rtt need each other")),
    };
    Ok(CcConfig::CarefulResume { controller, saved })
}

/// Splits at the commas outside parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let split = |c: char| {
        depth = (depth + u32::from(c == '(')).saturating_sub(u32::from(c == ')'));
        c == ',' && depth == 0
    };
    text.split(split).map(str::trim).collect()
}

fn bad_value(parameter: &'static str, value: &str, allowed: &'static str) -> CcConfigError {
    CcConfigError::Value { controller: NAME, parameter, value: value.to_string(), allowed }
}

/// Writes it as it is read.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    controller: &CcConfig,
    saved: Option<SavedPath>,
) -> fmt::Result {
    match saved {
        None if *controller == CUBIC => f.write_str(NAME),
        None => write!(f, "{NAME}({controller})"),
        Some(SavedPath { cwnd, rtt }) => {
            write!(f, "{NAME}({controller},cwnd={cwnd},rtt={}ms)", rtt.as_millis())
        }
    }
}

const NAME: &str = "careful-resume";
const TAKES: &str = "it takes a controller, then cwnd=300,rtt=100ms";
const CUBIC: CcConfig = CcConfig::Cubic { hystart: Hystart::Linux, shape: CubicShape::LINUX };
