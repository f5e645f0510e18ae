//! Results that are read while the query runs: rows as tuples, or an Arrow stream.
//!
//! Whoever waits for rows does so without the GIL. `interrupt()` of the connection ends the query.

use crate::arrow;
use crate::cursor::count;
use crate::errors::{InterfaceError, raised};
use crate::values;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use entasis_vector::{Chunk, DataType, Error, Value};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

/// The rows of a query, which are read while it runs. Closing it, or dropping it, ends the query.
#[pyclass(frozen, module = "entasis")]
pub struct Stream(Mutex<State>);

/// What has been read.
struct State {
    /// `None` after it was closed, or given to an Arrow consumer.
    stream: Option<entasis::Stream>,
    /// The chunk that is being read, and its next row.
    chunk: Chunk,
    row: usize,
}

impl State {
    /// Makes the next row one of the chunk; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        while self.row >= self.chunk.len() {
            let Some(chunk) = stream.next_chunk()? else { return Ok(false) };
            (self.chunk, self.row) = (chunk, 0);
        }
        Ok(true)
    }

    /// The values of the next row, with their types; `None` if the chunk has no more.
    fn take_row(&mut self) -> Option<Vec<(Value, DataType)>> {
        let stream = self.stream.as_ref().filter(|_| self.row < self.chunk.len())?;
        let cells = stream.schema().iter().enumerate();
        let cells = cells.map(|(at, field)| (self.chunk.value(self.row, at, field.ty), field.ty)).collect();
        self.row += 1;
        Some(cells)
    }
}

impl Stream {
    /// Nothing has been read yet.
    pub fn new(stream: entasis::Stream) -> Stream {
        Stream(Mutex::new(State { stream: Some(stream), chunk: Chunk::new(), row: 0 }))
    }

    /// The next row.
    fn one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        loop {
            // PERF: most rows are there already, and letting go of the GIL takes longer than reading one.
            if let Ok(mut state) = self.0.try_lock()
                && let Some(cells) = state.take_row()
            {
                let cells: PyResult<Vec<_>> =
                    cells.iter().map(|(value, ty)| values::to_python(py, value, *ty)).collect();
                return PyTuple::new(py, cells?).map(Some);
            }
            let wait = || self.0.lock().unwrap_or_else(PoisonError::into_inner).advance();
            if !py.detach(wait).map_err(|error| raised(&error))? {
                return Ok(None);
            }
        }
    }

    /// Takes the stream.
    fn take(&self) -> Option<entasis::Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stream.take()
    }
}

/// The query's thread may need the GIL to end.
impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(stream) = self.take() {
            Python::try_attach(|py| py.detach(|| drop(stream)));
        }
    }
}

#[pymethods]
impl Stream {
    /// Fetches the next row as a tuple, or None if there are no more.
    fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.one(py)
    }

    /// Fetches the next `size` rows.
    fn fetchmany<'py>(&self, py: Python<'py>, size: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (list, size) = (PyList::empty(py), count(size)?);
        while list.len() < size
            && let Some(row) = self.one(py)?
        {
            list.append(row)?;
        }
        Ok(list)
    }

    /// The Arrow PyCapsule interface: the rows that have not been read, in batches that are made when they
    /// are asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A schema request that cannot be fulfilled may be ignored.
        drop(requested_schema);
        let stream = self.take();
        let stream =
            stream.ok_or_else(|| InterfaceError::new_err("the stream has been closed or given away"))?;
        let schema = stream.arrow_schema();
        arrow::reader_capsule(py, Box::new(Batches { stream, schema }))
    }

    /// Ends the query, if it still runs.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.one(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// A stream as batches of Arrow.
struct Batches {
    stream: entasis::Stream,
    schema: SchemaRef,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.stream.next_batch().transpose()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(error.to_string().into())))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
