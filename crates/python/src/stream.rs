//! Results that are read while the query runs: rows as tuples, or an Arrow stream.
//!
//! Whoever waits for rows does so without the GIL, and checks for signals: one whose handler raises cancels
//! the query. `interrupt()` of the connection ends it, too.

use crate::cursor::described;
use crate::errors::{InterfaceError, raised_by};
use crate::fetch::count;
use crate::rows::{self, RowFactory};
use crate::run::Session;
use crate::{arrow, batches, values};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use entasis_vector::{Chunk, Error, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Rows between two looks for signals.
const LOOK: usize = 1 << 14;
/// Time between two looks for signals while there are no rows.
const WAIT: Duration = Duration::from_millis(20);

/// The rows of a query, which are read while it runs. Closing it, or dropping it, ends the query.
#[pyclass(frozen, module = "entasis")]
pub struct Stream {
    state: Mutex<State>,
    schema: Schema,
    session: Arc<Session>,
    /// The text of the query.
    query: String,
    factory: RowFactory,
}

/// What has been read.
struct State {
    /// `None` after it was closed, or given to an Arrow consumer.
    stream: Option<Running>,
    /// The chunk that is being read, and its next row.
    chunk: Chunk,
    row: usize,
}

impl State {
    /// True if the next row is there, or there is none.
    fn is_ready(&self) -> bool {
        let stream = self.stream.as_ref().and_then(|running| running.0.as_ref());
        self.row < self.chunk.len() || stream.is_none_or(entasis::Stream::has_run)
    }

    /// Makes the next row one of the chunk; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        let Some(stream) = self.stream.as_mut().and_then(|running| running.0.as_mut()) else {
            return Ok(false);
        };
        while self.row >= self.chunk.len() {
            let Some(chunk) = stream.next_chunk()? else { return Ok(false) };
            (self.chunk, self.row) = (chunk, 0);
        }
        Ok(true)
    }

    /// The next row of the chunk; `None` if it has no more.
    fn take_row<'py>(&mut self, py: Python<'py>, schema: &Schema) -> Option<PyResult<Bound<'py, PyTuple>>> {
        if self.stream.is_none() || self.row >= self.chunk.len() {
            return None;
        }
        self.row += 1;
        Some(values::row(py, &self.chunk, self.row - 1, schema))
    }
}

impl Stream {
    /// The stream of `query`, run by `session`, of which nothing has been read yet.
    pub fn new(stream: entasis::Stream, query: &str, session: Arc<Session>, factory: RowFactory) -> Stream {
        let schema = stream.schema().clone();
        let state = State { stream: Some(Running(Some(stream))), chunk: Chunk::new(), row: 0 };
        Stream { state: Mutex::new(state), schema, session, query: query.to_owned(), factory }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next row.
    fn one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        loop {
            // PERF: most rows are there already, and letting go of the GIL takes longer than reading one.
            if let Ok(mut state) = self.state.try_lock()
                && let Some(row) = state.take_row(py, &self.schema)
            {
                return row.map(Some);
            }
            if !py.detach(|| self.advance())? {
                return Ok(None);
            }
        }
    }

    /// Waits for the next row; false at the end. Only the thread that Python runs its signal handlers on can
    /// check for them, so another one waits for the query while it does.
    fn advance(&self) -> PyResult<bool> {
        let failed = |error: Error| {
            let raised = raised_by(&error, &self.query);
            Python::attach(|py| self.session.with_cause(py, raised))
        };
        let mut state = self.state();
        if state.is_ready() {
            return state.advance().map_err(failed);
        }
        drop(state);
        thread::scope(|scope| {
            let (answer, wait) = channel();
            scope.spawn(move || answer.send(self.state().advance()));
            let mut signal = None;
            loop {
                match wait.recv_timeout(WAIT) {
                    Ok(advanced) => return signal.map_or(advanced.map_err(failed), Err),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            signal = Some(raised);
                            self.session.interrupt();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(failed(Error::internal("the thread that waits for a query ended")));
                    }
                }
            }
        })
    }

    fn some<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        while list.len() < most
            && let Some(row) = self.one(py)?
        {
            list.append(row)?;
            if list.len() % LOOK == 0 {
                py.check_signals()?;
            }
        }
        Ok(list)
    }

    /// Takes the stream.
    fn take(&self) -> Option<Running> {
        self.state().stream.take()
    }

    /// Takes what has not been read, as batches of Arrow.
    fn batches(&self) -> PyResult<Unread> {
        let mut state = self.state();
        if state.stream.is_some() && state.row < state.chunk.len() {
            return Err(InterfaceError::new_err(
                "rows of this stream have been fetched one by one, and the next ones belong to the same \
                 batch: fetch all of them so, or none",
            ));
        }
        match state.stream.take().map(|mut running| (running.0.take(), running)) {
            Some((Some(stream), _)) => {
                let schema = stream.arrow_schema();
                Ok(Unread { running: Running(Some(stream)), schema })
            }
            _ => Err(InterfaceError::new_err("the stream has been closed or given away")),
        }
    }
}

/// A query that runs, or has run.
struct Running(Option<entasis::Stream>);

/// The query's thread may need the GIL to end.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            Python::try_attach(|py| py.detach(|| drop(stream)));
        }
    }
}

#[pymethods]
impl Stream {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.iter().map(|field| field.name.to_string()).collect()
    }

    /// SQL types of the columns.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.iter().map(|field| field.ty.to_string()).collect()
    }

    /// DB-API's description of the columns, as for a cursor.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        described(py, &self.schema)
    }

    /// Fetches the next row as a tuple, or None if there are no more.
    fn fetchone<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = slf.get().one(slf.py())?;
        row.map(|row| slf.get().factory.made(slf.as_any(), row)).transpose()
    }

    /// Fetches the next `size` rows.
    #[pyo3(signature = (size=None))]
    fn fetchmany<'py>(
        slf: &Bound<'py, Self>,
        size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = slf.get().some(slf.py(), size.map_or(Ok(1), count)?)?;
        slf.get().factory.all(slf.as_any(), rows)
    }

    /// Fetches all remaining rows.
    fn fetchall<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let rows = slf.get().some(slf.py(), usize::MAX)?;
        slf.get().factory.all(slf.as_any(), rows)
    }

    /// Fetches the next row and returns the value in its first column; None if there is no row.
    fn fetchval<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        rows::first(self.one(py)?)
    }

    /// Returns a `pyarrow.RecordBatchReader` of the rows, in batches of `rows_per_batch` rows that are made
    /// when they are asked for.
    #[pyo3(signature = (rows_per_batch=None))]
    fn fetch_record_batch<'py>(
        &self,
        py: Python<'py>,
        rows_per_batch: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let unread = py.detach(|| self.batches())?;
        let schema = unread.schema.clone();
        batches::reader(py, unread, schema, rows_per_batch)
    }

    /// The Arrow PyCapsule interface: the rows, in batches that are made when they are asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A schema request that cannot be fulfilled may be ignored.
        drop(requested_schema);
        arrow::reader_capsule(py, Box::new(py.detach(|| self.batches())?))
    }

    /// Ends the query, if it still runs.
    fn close(&self, py: Python<'_>) {
        // Whoever waits for rows holds the lock, and the query may need the GIL to make them.
        py.detach(|| drop(self.take()));
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::fetchone(slf)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// The rest of a stream as batches of Arrow.
struct Unread {
    running: Running,
    schema: SchemaRef,
}

impl Iterator for Unread {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Whoever asks may hold the GIL, which a function that the query calls needs.
        let stream = self.running.0.as_mut()?;
        let batch = Python::attach(|py| py.detach(|| stream.next_batch())).transpose()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(error.to_string().into())))
    }
}

impl RecordBatchReader for Unread {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
