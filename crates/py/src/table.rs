//! Result tables for Python, through Arrow's PyCapsule interface: polars, pyarrow and pandas read
//! them without copying.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A result table. Hand it to `polars.DataFrame` or `pyarrow.table`.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

#[pymethods]
impl Table {
    /// A capsule with an Arrow C stream over the rows. A consumer that asks for another schema
    /// converts the rows itself, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
