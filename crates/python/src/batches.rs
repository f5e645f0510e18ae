//! Results as batches of Arrow of a chosen size, made when they are asked for.

use crate::arrow;
use crate::errors::InterfaceError;
use crate::fetch::count;
use crate::package::package;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Mutex, PoisonError};

/// Rows of a batch if the caller does not say how many.
pub const ROWS: usize = 1 << 17;

/// The batches of `source`, cut and joined so that all but the last have `rows` rows.
pub struct Rebatched<S> {
    source: S,
    schema: SchemaRef,
    rows: usize,
    /// Rows that wait for others, in order.
    waiting: Vec<RecordBatch>,
}

impl<S: Iterator<Item = Result<RecordBatch, ArrowError>>> Rebatched<S> {
    /// Nothing has been read yet.
    pub fn new(source: S, schema: SchemaRef, rows: usize) -> Rebatched<S> {
        Rebatched { source, schema, rows, waiting: Vec::new() }
    }
}

impl<S: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Rebatched<S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows: usize = self.waiting.iter().map(RecordBatch::num_rows).sum();
        while rows < self.rows {
            match self.source.next() {
                Some(Ok(batch)) => {
                    rows += batch.num_rows();
                    self.waiting.push(batch);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        let first = match self.waiting.len() {
            0 => return None,
            1 => self.waiting.remove(0),
            _ => match arrow_select::concat::concat_batches(&self.schema, &self.waiting) {
                Ok(all) => all,
                Err(error) => return Some(Err(error)),
            },
        };
        self.waiting.clear();
        if first.num_rows() <= self.rows {
            return Some(Ok(first)).filter(|batch| batch.as_ref().is_ok_and(|batch| batch.num_rows() > 0));
        }
        self.waiting.push(first.slice(self.rows, first.num_rows() - self.rows));
        Some(Ok(first.slice(0, self.rows)))
    }
}

impl<S: Iterator<Item = Result<RecordBatch, ArrowError>>> RecordBatchReader for Rebatched<S> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// A reader that a library of Python takes over, once.
#[pyclass(frozen)]
struct ArrowStream(Mutex<Option<Box<dyn RecordBatchReader + Send>>>);

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A schema request that cannot be fulfilled may be ignored.
        drop(requested_schema);
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| InterfaceError::new_err("the batches have been given away"))?;
        arrow::reader_capsule(py, reader)
    }
}

/// A `pyarrow.RecordBatchReader` of the batches of `source` with `rows_per_batch` rows each.
///
/// # Errors
/// Not supported, without pyarrow; interface, if that is no number of rows.
pub fn reader<'py>(
    py: Python<'py>,
    source: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    schema: SchemaRef,
    rows_per_batch: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = rows_per_batch.map_or(Ok(ROWS), count)?;
    if rows == 0 {
        return Err(InterfaceError::new_err("a batch has at least one row"));
    }
    let reader = package(py, "pyarrow", "fetch_record_batch")?.getattr("RecordBatchReader")?;
    let stream = ArrowStream(Mutex::new(Some(Box::new(Rebatched::new(source, schema, rows)))));
    reader.call_method1("from_stream", (Bound::new(py, stream)?,))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array};
    use std::sync::Arc;

    #[test]
    fn batches_have_the_size_that_was_asked_for() {
        let batch = |from: i64, rows: i64| {
            let column = Arc::new(Int64Array::from_iter_values(from..from + rows)) as ArrayRef;
            RecordBatch::try_from_iter([("n", column)]).unwrap()
        };
        let parts = [batch(0, 3), batch(3, 0), batch(3, 5), batch(8, 1)];
        for (rows, expected) in [(1, vec![1; 9]), (4, vec![4, 4, 1]), (9, vec![9]), (100, vec![9])] {
            let source = parts.clone().into_iter().map(Ok);
            let made: Vec<RecordBatch> =
                Rebatched::new(source, parts[0].schema(), rows).collect::<Result<_, _>>().unwrap();
            assert_eq!(made.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), expected);
            let all = arrow_select::concat::concat_batches(&parts[0].schema(), &made).unwrap();
            assert_eq!(all, batch(0, 9));
        }
    }
}
