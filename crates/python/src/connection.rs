//! Connections: what `_connection.py` makes the class of that programs see.

use crate::cursor::{Cursor, Relation};
use crate::errors::{InterfaceError, raised};
use crate::functions::{self, Manner, Types};
use crate::parameters::Given;
use crate::rows::RowFactory;
use crate::run::{Session, seconds};
use crate::stream::Stream;
use crate::{named, tables};
use entasis::{Config, Database};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens a database, a file or in memory.
fn open(py: Python<'_>, database: Option<PathBuf>, config: Option<&Bound<'_, PyDict>>) -> PyResult<Session> {
    let mut options = Config::new()
        .with_when_idle(entasis_allocator::give_back)
        .with_when_short(entasis_allocator::give_back_now);
    for (name, value) in config.iter().flat_map(|config| config.iter()) {
        let text = match value.cast::<PyBool>() {
            Ok(flag) => flag.is_true().to_string(),
            Err(_) => value.str()?.to_string(),
        };
        options.set(&name.extract::<String>()?, &text).map_err(|error| raised(&error))?;
    }
    let path = database.unwrap_or_else(|| PathBuf::from(":memory:"));
    if let Some(name) = named::name(&path) {
        let database = named::open(name, options)?;
        return Ok(Session::new(database.connect(), Some(database)));
    }
    let database = py.detach(|| Database::open(path, options)).map_err(|error| raised(&error))?;
    Ok(Session::new(database.connect(), None))
}

/// True for the second of two words.
fn one_of(option: &str, given: &str, words: [&str; 2]) -> PyResult<bool> {
    match words.iter().position(|word| *word == given) {
        Some(place) => Ok(place == 1),
        None => {
            let text = format!("{option} is '{}' or '{}', not '{given}'", words[0], words[1]);
            Err(InterfaceError::new_err(text))
        }
    }
}

/// An object that can be called.
fn callable<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyAny>> {
    match object.is_callable() {
        true => Ok(object),
        false => Err(InterfaceError::new_err(format!("{object} is not a function"))),
    }
}

/// The types of a statement's parameters, and the names and types of its result's columns.
type Description = (Vec<String>, Vec<(String, String)>);

/// What a transaction holds while it is tried again.
#[pyclass]
struct RetryGuard(Option<entasis::RetryGuard>);

/// A connection to a database. Threads may share it; their statements run one at a time.
#[pyclass(frozen, subclass, module = "entasis")]
pub struct Connection {
    session: Arc<Session>,
    factory: RowFactory,
}

impl Connection {
    fn end(&self, py: Python<'_>, sql: &'static str) -> PyResult<()> {
        let end = |connection: &entasis::Connection, sql: &str| match connection.in_transaction() {
            true => connection.execute(sql).map(drop),
            false => Ok(()),
        };
        match self.session.run_at_once(py, sql, &Given::none())? {
            Some(_) => Ok(()),
            None => self.session.run(py, sql, None, end),
        }
    }
}

#[pymethods]
impl Connection {
    /// A connection to the database `database`, which is opened with `options`; or a further one to that of
    /// the connection `beside`.
    #[new]
    #[pyo3(signature = (database=None, options=None, *, beside=None))]
    fn new(
        py: Python<'_>,
        database: Option<PathBuf>,
        options: Option<&Bound<'_, PyDict>>,
        beside: Option<&Bound<'_, Connection>>,
    ) -> PyResult<Connection> {
        let session = match beside {
            Some(beside) => beside.get().session.beside()?,
            None => open(py, database, options)?,
        };
        Ok(Connection { session: Arc::new(session), factory: RowFactory::default() })
    }

    /// Returns a new cursor.
    fn cursor(slf: &Bound<'_, Self>) -> PyResult<Cursor> {
        slf.get().session.connection()?;
        let factory = slf.get().factory.copy(slf.py());
        Ok(Cursor::new(slf.clone().into_any().unbind(), slf.get().session.clone(), factory))
    }

    /// Runs SQL on a new cursor and returns the cursor. The SQL may take `timeout` seconds.
    #[pyo3(signature = (operation, parameters=None, *, timeout=None))]
    fn execute(
        slf: &Bound<'_, Self>,
        operation: &str,
        parameters: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Cursor> {
        let cursor = Self::cursor(slf)?;
        cursor.run(slf.py(), operation, parameters, timeout)?;
        Ok(cursor)
    }

    /// Runs one statement once for each set of parameters, all or nothing, on a new cursor, and returns the
    /// cursor. All together may take `timeout` seconds.
    #[pyo3(signature = (operation, seq_of_parameters, *, timeout=None))]
    fn executemany(
        slf: &Bound<'_, Self>,
        operation: &str,
        seq_of_parameters: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Cursor> {
        let cursor = Self::cursor(slf)?;
        cursor.run_many(slf.py(), operation, seq_of_parameters, timeout)?;
        Ok(cursor)
    }

    /// Runs a query and returns its whole result. The query may take `timeout` seconds.
    #[pyo3(signature = (query, parameters=None, *, timeout=None))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        parameters: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Relation> {
        let timeout = seconds(timeout)?.or_else(|| self.session.timeout());
        let arguments = self.session.arguments(query, parameters)?;
        let work = move |connection: &entasis::Connection, sql: &str| {
            arguments.run(|arguments| connection.query_with(sql, arguments))
        };
        let rows = self.session.run(py, query, timeout, work)?;
        Ok(Relation::new(rows, query, self.session.clone(), self.factory.copy(py)))
    }

    /// Runs a query and returns a stream of its rows, which are read while it runs. It has no timeout.
    #[pyo3(signature = (query, parameters=None))]
    fn stream(&self, py: Python<'_>, query: &str, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<Stream> {
        let arguments = self.session.arguments(query, parameters)?;
        let work = move |connection: &entasis::Connection, sql: &str| {
            arguments.run_whole(|values| connection.stream(sql, values))
        };
        let stream = self.session.run(py, query, self.session.timeout(), work)?;
        Ok(Stream::new(stream, query, self.session.clone(), self.factory.copy(py)))
    }

    /// Describes one statement without running it: the types of its parameters, and the names and types of
    /// the columns of its result.
    fn describe(&self, py: Python<'_>, query: &str) -> PyResult<Description> {
        let work = |connection: &entasis::Connection, sql: &str| connection.describe(sql, &[]);
        let described = self.session.run(py, query, self.session.timeout(), work)?;
        let parameters = described.parameters.iter().map(ToString::to_string).collect();
        let columns = described.columns.iter();
        Ok((parameters, columns.map(|field| (field.name.to_string(), field.ty.to_string())).collect()))
    }

    /// The names of the parameters of a statement, in order and in lower case; none, if they are written `?`
    /// or `$1`.
    fn parameter_names(&self, query: &str) -> PyResult<Vec<String>> {
        self.session.names(query)
    }

    /// True if `sql` ends with a complete statement: outside quotes and comments, its last character is a
    /// semicolon.
    fn is_complete(&self, sql: &str) -> PyResult<bool> {
        Ok(self.session.connection()?.is_complete(sql))
    }

    /// Makes a pandas, polars or Arrow object available as a table called `name`. Its data are not copied.
    fn register(slf: PyRef<'_, Self>, name: &str, table: &Bound<'_, PyAny>) -> PyResult<()> {
        let relation = tables::relation(table, name)?;
        slf.session.connection()?.register(name, relation);
        Ok(())
    }

    /// Undoes `register`; True if there was such a table.
    fn unregister(&self, name: &str) -> PyResult<bool> {
        Ok(self.session.connection()?.unregister(name))
    }

    /// Makes a Python function callable in SQL, for this connection. `parameters` and `return_type` are types
    /// by their names in SQL or classes of Python; without them they come from the function's annotations,
    /// and without any annotation of the parameters, it is called with whatever it is given.
    ///
    /// `type` is 'native', with a call for each row, or 'arrow', with a `pyarrow.Array` for each argument and
    /// up to 2,048 rows at once. A row with a NULL gives NULL, unless `null_handling` is 'special'. An
    /// exception ends the statement, unless `exception_handling` is 'return_null' (native functions). With
    /// `side_effects`, calls with equal arguments are not taken to give equal results.
    #[pyo3(signature = (name, function, parameters=None, return_type=None, *, r#type="native", null_handling="default", exception_handling="default", side_effects=false))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by name")]
    fn create_function(
        &self,
        name: &str,
        function: &Bound<'_, PyAny>,
        parameters: Option<&Bound<'_, PyAny>>,
        return_type: Option<&Bound<'_, PyAny>>,
        r#type: &str,
        null_handling: &str,
        exception_handling: &str,
        side_effects: bool,
    ) -> PyResult<()> {
        let manner = Manner {
            arrow: one_of("type", r#type, ["native", "arrow"])?,
            nulls: one_of("null_handling", null_handling, ["default", "special"])?,
            forgiving: one_of("exception_handling", exception_handling, ["default", "return_null"])?,
            volatile: side_effects,
        };
        let types = Types::of(callable(function)?, parameters, return_type)?;
        let own = functions::scalar(name, function.clone().unbind(), types, manner, self.session.failure()?);
        self.session.connection()?.create_function(own).map_err(|error| raised(&error))
    }

    /// Makes an aggregate callable in SQL, for this connection: a class whose objects have `step(value, …)`
    /// and `finalize()`, or a function that gets a list for each argument, or with `type` 'arrow' a
    /// `pyarrow.Array`. Rows with a NULL are left out, unless `null_handling` is 'special'. A class needs
    /// `return_type`.
    #[pyo3(signature = (name, aggregate, parameters=None, return_type=None, *, r#type="native", null_handling="default"))]
    fn create_aggregate(
        &self,
        name: &str,
        aggregate: &Bound<'_, PyAny>,
        parameters: Option<&Bound<'_, PyAny>>,
        return_type: Option<&Bound<'_, PyAny>>,
        r#type: &str,
        null_handling: &str,
    ) -> PyResult<()> {
        let manner = Manner {
            arrow: one_of("type", r#type, ["native", "arrow"])?,
            nulls: one_of("null_handling", null_handling, ["default", "special"])?,
            forgiving: false,
            volatile: false,
        };
        let types = Types::of_aggregate(callable(aggregate)?, parameters, return_type)?;
        let own =
            functions::aggregate(name, aggregate.clone().unbind(), types, manner, self.session.failure()?);
        self.session.connection()?.create_function(own).map_err(|error| raised(&error))
    }

    /// Makes a Python function callable in FROM, for this connection. It gets the arguments of the call, and
    /// returns whatever can be registered as a table. It is called when a statement is planned, perhaps more
    /// than once.
    fn create_table_function(&self, name: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let own = functions::table(name, callable(function)?.clone().unbind(), self.session.failure()?);
        self.session.connection()?.create_function(own).map_err(|error| raised(&error))
    }

    /// Undoes `create_function`, `create_aggregate` or `create_table_function`; True if there was such a
    /// function.
    fn remove_function(&self, name: &str) -> PyResult<bool> {
        Ok(self.session.connection()?.drop_function(name))
    }

    /// Names of tables, views and registered objects.
    fn tables(&self) -> PyResult<Vec<String>> {
        Ok(self.session.connection()?.tables())
    }

    /// Cancels the running statement, or a `fetchall`; called from another thread.
    fn interrupt(&self) {
        self.session.interrupt();
    }

    /// How far the running statement is, from 0 to 1; for a progress bar of another thread.
    #[getter]
    fn progress(&self) -> PyResult<f64> {
        Ok(self.session.connection()?.progress().get())
    }

    /// Whether long statements show a progress bar. None, as at first, means after two seconds, in notebooks
    /// and where the standard error is a terminal; True earlier, and wherever it is.
    #[getter]
    fn progress_bar(&self) -> Option<bool> {
        self.session.bar()
    }

    #[setter]
    fn set_progress_bar(&self, wanted: Option<bool>) {
        self.session.set_bar(wanted);
    }

    /// How many seconds a statement may take; None for any number. A statement that takes longer is
    /// cancelled, and raises `OperationalError`.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.session.timeout().map(|timeout| timeout.as_secs_f64())
    }

    #[setter]
    fn set_timeout(&self, timeout: Option<f64>) -> PyResult<()> {
        self.session.set_timeout(seconds(timeout)?);
        Ok(())
    }

    /// A function of a cursor and a row's tuple, which makes what fetches return for a row, as in `sqlite3`;
    /// None for the tuples themselves. It is that of results from then on.
    #[getter]
    fn row_factory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.factory.get(py)
    }

    #[setter]
    fn set_row_factory(&self, factory: Option<Py<PyAny>>) {
        self.factory.set(factory);
    }

    /// Begins a transaction. Outside a transaction, each statement is committed when it has run.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.session.run_briefly(py, "BEGIN")
    }

    /// Commits the open transaction, if there is one.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, "COMMIT")
    }

    /// Rolls back the open transaction, if there is one.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, "ROLLBACK")
    }

    /// Waits for the time to try a transaction that has conflicted `conflicts` times. `held` is what the last
    /// call for it returned; the result is kept until it is done.
    fn _retry_guard(
        &self,
        py: Python<'_>,
        conflicts: usize,
        held: Option<&Bound<'_, RetryGuard>>,
    ) -> PyResult<RetryGuard> {
        let connection = self.session.connection()?;
        let held = held.and_then(|held| held.borrow_mut().0.take());
        Ok(RetryGuard(py.detach(|| connection.retry_guard(conflicts, held))))
    }

    /// True while a transaction is open.
    #[getter]
    fn in_transaction(&self) -> PyResult<bool> {
        Ok(self.session.connection()?.in_transaction())
    }

    /// Closes the connection. Results that have been fetched remain valid.
    fn close(&self, py: Python<'_>) {
        self.session.close(py);
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
