//! The native module `weir._native`. It converts arguments, errors and tables, and holds no logic.

use pyo3::prelude::*;

mod quantity;

/// The Rust core of Weir; use the package `weir` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{quantity::parse_quantity, version};
}

/// The version of the compiled core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
