//! Quantities with units and an index of fairness, as plain numbers for Python.

use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir_units::{Bytes, Duration, Rate, Ratio, UnitError};

/// Reads `text` as a quantity of `kind` and returns it in its base unit: `time` in seconds, `rate`
/// in bits per second, `size` in bytes, `ratio` as a fraction.
#[pyfunction]
pub(crate) fn parse_quantity(kind: &str, text: &str) -> PyResult<f64> {
    let value = match kind {
        "time" => text.parse().map(Duration::as_secs_f64),
        "rate" => text.parse().map(|rate: Rate| rate.as_bits_per_sec() as f64),
        "size" => text.parse().map(|size: Bytes| size.get() as f64),
        "ratio" => text.parse().map(Ratio::as_f64),
        _ => {
            let problem = format!("unknown kind '{kind}'; there are time, rate, size, ratio");
            return Err(PyValueError::new_err(problem));
        }
    };
    value.map_err(|error: UnitError| PyValueError::new_err(error.to_string()))
}

/// Reads an argument; the error names it.
pub(crate) fn quantity<T: FromStr<Err = UnitError>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// Jain's index from the sums of `count` values and of their squares.
#[pyfunction]
pub(crate) fn jain_of_sums(count: usize, total: f64, squares: f64) -> Option<f64> {
    weir_trace::jain_of_sums(count, total, squares)
}
