//! Results: a `Cursor` runs statements and returns their rows; a `Relation` is a whole result.

use crate::arrow::{self, FrameStream};
use crate::errors::{DataError, InterfaceError, ProgrammingError, raised};
use crate::fetch::{self, Fetch, count};
use crate::package::package;
use crate::parameters;
use crate::rows::{self, RowFactory};
use crate::run::{Session, seconds};
use crate::{batches, numpy, show};
use entasis::{Rows, Schema};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// DB-API's `description`: name, type and five unknowns for each column; `None` for statements without a
/// result.
pub(crate) fn described<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Option<Bound<'py, PyList>>> {
    if schema.is_empty() {
        return Ok(None);
    }
    let none = || py.None();
    let columns = schema.iter().map(|field| {
        let (name, ty) = (field.name.to_string(), field.ty.to_string());
        (name, ty, none(), none(), none(), none(), field.nullable)
    });
    PyList::new(py, columns).map(Some)
}

fn capsule<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = py.detach(|| rows.record_batches()).map_err(|error| raised(&error))?;
    arrow::capsule(py, rows.arrow_schema(), batches)
}

/// The batches of a result, `rows_per_batch` rows each.
fn record_batches<'py>(
    py: Python<'py>,
    rows: &Rows,
    rows_per_batch: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = py.detach(|| rows.record_batches()).map_err(|error| raised(&error))?;
    batches::reader(py, made.into_iter().map(Ok), rows.arrow_schema(), rows_per_batch)
}

fn to_numpy<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyAny>> {
    package(py, "numpy", "fetchnumpy")?;
    rows::names(rows.schema())?;
    py.import("entasis._numpy")?.call_method1("arrays", (numpy::columns(py, rows)?,))
}

fn to_arrow<'py>(result: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    package(result.py(), "pyarrow", "arrow")?.call_method1("table", (result,))
}

fn to_pandas<'py>(py: Python<'py>, rows: &Rows, exact: bool) -> PyResult<Bound<'py, PyAny>> {
    package(py, "pandas", "df")?;
    package(py, "pyarrow", "df")?;
    py.import("entasis._frames")?.call_method1("to_pandas", (frame_stream(py, rows)?, exact))
}

fn to_polars<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyAny>> {
    let polars = package(py, "polars", "pl")?;
    let stream = frame_stream(py, rows)?;
    // Polars would make a NULL of it.
    if let Some(column) = stream.end_of_day() {
        return Err(DataError::new_err(format!(
            "column \"{column}\" has the TIME 24:00:00, which polars cannot represent; cast it to VARCHAR"
        )));
    }
    polars.call_method1("DataFrame", (stream,))
}

fn frame_stream(py: Python<'_>, rows: &Rows) -> PyResult<FrameStream> {
    let batches = py.detach(|| rows.record_batches()).map_err(|error| raised(&error))?;
    FrameStream::new(&rows.arrow_schema(), batches)
}

/// Runs statements and returns the rows of the last one.
#[pyclass(frozen, module = "entasis")]
pub struct Cursor {
    /// The connection, as Python sees it.
    owner: Py<PyAny>,
    session: Arc<Session>,
    state: Mutex<State>,
    size: AtomicUsize,
    factory: RowFactory,
}

#[derive(Default)]
struct State {
    fetch: Option<Fetch>,
    rowcount: i64,
    closed: bool,
}

impl Cursor {
    /// A new cursor of `owner`.
    pub fn new(owner: Py<PyAny>, session: Arc<Session>, factory: RowFactory) -> Cursor {
        let state = State { rowcount: -1, ..State::default() };
        Cursor { owner, session, state: Mutex::new(state), size: AtomicUsize::new(1), factory }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Making rows may let others run, who must not wait for the lock with the GIL.
        Python::attach(|py| self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self) -> PyResult<MutexGuard<'_, State>> {
        let state = self.state();
        if state.closed { Err(ProgrammingError::new_err("the cursor is closed")) } else { Ok(state) }
    }

    fn some<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        fetch::many(py, &self.session, most, &|with| self.fetching(with))
    }

    fn result(&self) -> PyResult<Arc<Rows>> {
        let state = self.open()?;
        let fetch = state.fetch.as_ref().filter(|fetch| !fetch.rows.schema().is_empty());
        fetch.map(|fetch| fetch.rows.clone()).ok_or_else(no_result)
    }

    fn fetching<T>(&self, fetch: impl FnOnce(&mut Fetch) -> PyResult<T>) -> PyResult<T> {
        match self.open()?.fetch.as_mut().filter(|fetch| !fetch.rows.schema().is_empty()) {
            Some(rows) => fetch(rows),
            None => Err(no_result()),
        }
    }

    fn finish(&self, rows: Rows) {
        let mut state = self.state();
        state.rowcount = match rows.changed() {
            Some(changed) => changed as i64,
            None if rows.schema().is_empty() => -1,
            None => rows.rows() as i64,
        };
        state.fetch = Some(Fetch::new(rows));
    }

    /// As the method below; also for the connection's shortcut.
    pub fn run(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        drop(self.open()?);
        let timeout = seconds(timeout)?.or_else(|| self.session.timeout());
        let arguments = self.session.arguments(operation, parameters)?;
        let rows = match self.session.run_at_once(py, operation, &arguments)? {
            Some(rows) => rows,
            None => {
                let work = move |connection: &entasis::Connection, sql: &str| {
                    arguments.run(|arguments| connection.query_with(sql, arguments))
                };
                self.session.run(py, operation, timeout, work)?
            }
        };
        let note = rows.note().map(str::to_owned);
        self.finish(rows);
        match note {
            Some(note) => PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(note)?, 1),
            None => Ok(()),
        }
    }

    /// As the method below; also for the connection's shortcut.
    pub fn run_many(
        &self,
        py: Python<'_>,
        operation: &str,
        sets: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        drop(self.open()?);
        let timeout = seconds(timeout)?.or_else(|| self.session.timeout());
        let sets = self.session.many_arguments(operation, sets)?;
        let work = move |connection: &entasis::Connection, sql: &str| {
            parameters::run_many(sets, |sets| connection.execute_many(sql, sets))
        };
        let changed = self.session.run(py, operation, timeout, work)?;
        let mut state = self.state();
        state.rowcount = changed as i64;
        state.fetch = None;
        Ok(())
    }
}

fn no_result() -> PyErr {
    InterfaceError::new_err("there are no rows to fetch: no query has been run")
}

#[pymethods]
impl Cursor {
    /// Runs SQL, with values for its parameters `?` or `$1`, or a dict of values for `$name`, and returns the
    /// cursor itself. It may take `timeout` seconds.
    #[pyo3(signature = (operation, parameters=None, *, timeout=None))]
    fn execute<'py>(
        slf: PyRef<'py, Self>,
        operation: &str,
        parameters: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.run(slf.py(), operation, parameters, timeout)?;
        Ok(slf)
    }

    /// Runs one statement once for each set of parameters, all or nothing. All together may take `timeout`
    /// seconds.
    #[pyo3(signature = (operation, seq_of_parameters, *, timeout=None))]
    fn executemany<'py>(
        slf: PyRef<'py, Self>,
        operation: &str,
        seq_of_parameters: &Bound<'py, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.run_many(slf.py(), operation, seq_of_parameters, timeout)?;
        Ok(slf)
    }

    /// Fetches the next row as a tuple, or as `row_factory` makes it; None if there are no more.
    fn fetchone<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = slf.get().fetching(|fetch| fetch.one(slf.py()))?;
        row.map(|row| slf.get().factory.made(slf.as_any(), row)).transpose()
    }

    /// Fetches the next `size` rows; the default is `arraysize`.
    #[pyo3(signature = (size=None))]
    fn fetchmany<'py>(
        slf: &Bound<'py, Self>,
        size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let size = size.map_or_else(|| Ok(slf.get().arraysize()), count)?;
        slf.get().factory.all(slf.as_any(), slf.get().some(slf.py(), size)?)
    }

    /// Fetches all remaining rows.
    fn fetchall<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        slf.get().factory.all(slf.as_any(), slf.get().some(slf.py(), usize::MAX)?)
    }

    /// Fetches the next row and returns the value in its first column; None if there is no row.
    fn fetchval<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        rows::first(self.fetching(|fetch| fetch.one(py))?)
    }

    /// Fetches all remaining rows as tuples, or with `named=True` as dicts by the names of the columns.
    #[pyo3(signature = (*, named=false))]
    fn rows<'py>(&self, py: Python<'py>, named: bool) -> PyResult<Bound<'py, PyList>> {
        let result = self.result()?;
        if !named {
            return self.some(py, usize::MAX);
        }
        rows::names(result.schema())?;
        rows::dicts(self.some(py, usize::MAX)?, result.schema())
    }

    /// Returns the whole result as a dict of numpy arrays; columns with NULL are masked arrays.
    fn fetchnumpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &*self.result()?)
    }

    /// Returns the whole result as a `pyarrow.RecordBatchReader` with batches of `rows_per_batch` rows.
    #[pyo3(signature = (rows_per_batch=None))]
    fn fetch_record_batch<'py>(
        &self,
        py: Python<'py>,
        rows_per_batch: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        record_batches(py, &*self.result()?, rows_per_batch)
    }

    /// A function of a cursor and a row's tuple, which makes what fetches return for a row, as in `sqlite3`;
    /// None for the tuples themselves.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.factory.get(py)
    }

    #[setter]
    fn set_row_factory(&self, factory: Option<Py<PyAny>>) {
        self.factory.set(factory);
    }

    /// Returns the whole result as a pyarrow table.
    fn arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(slf)
    }

    /// Returns the whole result as a pandas data frame. Decimals become floats, or `decimal.Decimal` with
    /// `exact=True`.
    #[pyo3(signature = (*, exact=false))]
    fn df<'py>(&self, py: Python<'py>, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(py, &*self.result()?, exact)
    }

    /// Returns the whole result as a polars data frame.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_polars(py, &*self.result()?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A schema request that cannot be fulfilled may be ignored, and only the result's own schema could
        // be.
        drop(requested_schema);
        capsule(py, &*self.result()?)
    }

    /// DB-API's description of the columns: name, type and more of each.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        match &self.state().fetch {
            Some(fetch) => described(py, fetch.rows.schema()),
            None => Ok(None),
        }
    }

    /// Number of rows of the result, or of rows that were changed; -1 if neither is known.
    #[getter]
    fn rowcount(&self) -> i64 {
        self.state().rowcount
    }

    /// Number of rows that `fetchmany` fetches by default.
    #[getter]
    fn arraysize(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_arraysize(&self, size: &Bound<'_, PyAny>) -> PyResult<()> {
        self.size.store(count(size)?, Ordering::Relaxed);
        Ok(())
    }

    /// The connection of this cursor.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Py<PyAny> {
        self.owner.clone_ref(py)
    }

    /// Does nothing, as DB-API allows.
    fn setinputsizes(&self, sizes: &Bound<'_, PyAny>) {
        let _ = sizes;
    }

    /// Does nothing, as DB-API allows.
    #[pyo3(signature = (size, column=None))]
    fn setoutputsize(&self, size: &Bound<'_, PyAny>, column: Option<&Bound<'_, PyAny>>) {
        let _ = (size, column);
    }

    /// Frees the result; the cursor cannot be used afterwards.
    fn close(&self) {
        *self.state() = State { rowcount: -1, closed: true, ..State::default() };
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
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }
}

/// The whole result of a query: a table that other queries can name.
#[pyclass(frozen, module = "entasis")]
pub struct Relation {
    rows: Arc<Rows>,
    fetch: Mutex<Fetch>,
    session: Arc<Session>,
    /// Whether its rows are the lines of a text, such as a plan.
    is_text: bool,
    factory: RowFactory,
}

impl Relation {
    /// The relation that `query` gave, run by `session`.
    pub fn new(rows: Rows, query: &str, session: Arc<Session>, factory: RowFactory) -> Relation {
        let fetch = Fetch::new(rows);
        let is_text = fetch.rows.schema().len() == 1 && show::is_explain(query);
        Relation { rows: fetch.rows.clone(), fetch: Mutex::new(fetch), session, is_text, factory }
    }

    fn some<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        fetch::many(py, &self.session, most, &|with| with(&mut self.fetch()))
    }

    fn shown(&self) -> String {
        if self.is_text { show::lines(&self.rows) } else { show::table(&self.rows) }
    }

    fn fetch(&self) -> MutexGuard<'_, Fetch> {
        Python::attach(|py| self.fetch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Relation {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.rows.schema().iter().map(|field| field.name.to_string()).collect()
    }

    /// SQL types of the columns.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.rows.schema().iter().map(|field| field.ty.to_string()).collect()
    }

    /// Number of rows and of columns.
    #[getter]
    fn shape(&self) -> (u64, usize) {
        (self.rows.rows(), self.rows.schema().len())
    }

    /// DB-API's description of the columns, as for a cursor.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        described(py, self.rows.schema())
    }

    /// Fetches the next row as a tuple, or as the connection's `row_factory` makes it; None if there are no
    /// more.
    fn fetchone<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = slf.get().fetch().one(slf.py())?;
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
        slf.get().factory.all(slf.as_any(), slf.get().some(slf.py(), usize::MAX)?)
    }

    /// Fetches the next row and returns the value in its first column; None if there is no row.
    fn fetchval<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        rows::first(self.fetch().one(py)?)
    }

    /// Returns all rows, whatever has been fetched, as tuples, or with `named=True` as dicts by the names of
    /// the columns.
    #[pyo3(signature = (*, named=false))]
    fn rows<'py>(&self, py: Python<'py>, named: bool) -> PyResult<Bound<'py, PyList>> {
        let whole = Mutex::new(Fetch::of(self.rows.clone()));
        let locked = |with: &mut dyn FnMut(&mut Fetch) -> PyResult<()>| {
            with(&mut whole.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let rows = fetch::many(py, &self.session, usize::MAX, &locked)?;
        if named { rows::dicts(rows, self.rows.schema()) } else { Ok(rows) }
    }

    /// Returns the result as a dict of numpy arrays; columns with NULL are masked arrays.
    fn fetchnumpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.rows)
    }

    /// Returns the result as a `pyarrow.RecordBatchReader` with batches of `rows_per_batch` rows.
    #[pyo3(signature = (rows_per_batch=None))]
    fn fetch_record_batch<'py>(
        &self,
        py: Python<'py>,
        rows_per_batch: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        record_batches(py, &self.rows, rows_per_batch)
    }

    /// Returns the result as a pyarrow table.
    fn arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(slf)
    }

    /// Returns the result as a pandas data frame. Decimals become floats, or `decimal.Decimal` with
    /// `exact=True`.
    #[pyo3(signature = (*, exact=false))]
    fn df<'py>(&self, py: Python<'py>, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(py, &self.rows, exact)
    }

    /// Returns the result as a polars data frame.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_polars(py, &self.rows)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // As in the cursor's method.
        drop(requested_schema);
        capsule(py, &self.rows)
    }

    /// Prints the first and last rows.
    fn show(&self, py: Python<'_>) -> PyResult<()> {
        let print = py.import("builtins")?.getattr("print")?;
        print.call1((self.shown(),)).map(drop)
    }

    fn __len__(&self) -> usize {
        self.rows.rows() as usize
    }

    /// Iterates over all rows, whatever has been fetched.
    fn __iter__(slf: &Bound<'_, Self>) -> RowIterator {
        let fetch = Mutex::new(Fetch::of(slf.get().rows.clone()));
        RowIterator { fetch, relation: slf.clone().unbind() }
    }

    fn __repr__(&self) -> String {
        self.shown()
    }

    /// What notebooks show: a table with the first and last rows.
    fn _repr_html_(&self) -> String {
        if self.is_text { show::html_lines(&self.rows) } else { show::html(&self.rows) }
    }
}

/// The rows of a relation, one after the other.
#[pyclass(frozen, module = "entasis")]
pub struct RowIterator {
    fetch: Mutex<Fetch>,
    relation: Py<Relation>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = self.fetch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).one(py)?;
        let relation = self.relation.bind(py);
        row.map(|row| relation.get().factory.made(relation.as_any(), row)).transpose()
    }
}
