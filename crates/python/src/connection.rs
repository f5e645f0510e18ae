//! Connections.

use crate::cursor::{Cursor, Relation};
use crate::errors::{NotSupportedError, raised};
use crate::run::Session;
use crate::stream::Stream;
use crate::tables;
use entasis::{Arguments, Config, Database};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens a database: a file, or `:memory:`. Options are `threads` and `memory_limit`, as in SQL's `SET`, and
/// `read_only=True`, which opens a file that another process may be writing to, and `allow_missing_log=True`,
/// which opens the last checkpoint of a file whose log is lost.
#[pyfunction]
#[pyo3(signature = (database=None, **config))]
pub fn connect(
    py: Python<'_>,
    database: Option<PathBuf>,
    config: Option<&Bound<'_, PyDict>>,
) -> PyResult<Connection> {
    let mut options = Config {
        when_idle: Some(entasis_allocator::give_back),
        when_short: Some(entasis_allocator::give_back_now),
        ..Config::default()
    };
    for (name, value) in config.iter().flat_map(|config| config.iter()) {
        let text = match value.cast::<PyBool>() {
            Ok(flag) => flag.is_true().to_string(),
            Err(_) => value.str()?.to_string(),
        };
        options.set(&name.extract::<String>()?, &text).map_err(|error| raised(&error))?;
    }
    let path = database.unwrap_or_else(|| PathBuf::from(":memory:"));
    let database = py.detach(|| Database::open(path, options)).map_err(|error| raised(&error))?;
    Ok(Connection { session: Arc::new(Session::new(database.connect())) })
}

/// The types of a statement's parameters, and the names and types of its result's columns.
type Description = (Vec<String>, Vec<(String, String)>);

/// A connection to a database. Threads may share it; their statements run one at a time.
#[pyclass(frozen, module = "entasis")]
pub struct Connection {
    session: Arc<Session>,
}

impl Connection {
    fn end(&self, py: Python<'_>, sql: &'static str) -> PyResult<()> {
        let end = |connection: &entasis::Connection| match connection.in_transaction() {
            true => connection.execute(sql).map(drop),
            false => Ok(()),
        };
        match self.session.run_at_once(py, sql, &Arguments::Values(Vec::new()))? {
            Some(_) => Ok(()),
            None => self.session.run(py, end),
        }
    }
}

#[pymethods]
impl Connection {
    /// Returns a new cursor.
    fn cursor(slf: &Bound<'_, Self>) -> PyResult<Cursor> {
        slf.get().session.connection()?;
        Ok(Cursor::new(slf.clone().into_any().unbind(), slf.get().session.clone()))
    }

    /// Runs SQL on a new cursor and returns the cursor.
    #[pyo3(signature = (operation, parameters=None))]
    fn execute(
        slf: &Bound<'_, Self>,
        operation: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cursor> {
        let cursor = Self::cursor(slf)?;
        cursor.run(slf.py(), operation, parameters)?;
        Ok(cursor)
    }

    /// Runs one statement once for each set of parameters, all or nothing, on a new cursor, and returns the
    /// cursor.
    fn executemany(
        slf: &Bound<'_, Self>,
        operation: &str,
        seq_of_parameters: &Bound<'_, PyAny>,
    ) -> PyResult<Cursor> {
        let cursor = Self::cursor(slf)?;
        cursor.run_many(slf.py(), operation, seq_of_parameters)?;
        Ok(cursor)
    }

    /// Runs a query and returns its whole result.
    #[pyo3(signature = (query, parameters=None))]
    fn sql(&self, py: Python<'_>, query: &str, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<Relation> {
        let arguments = self.session.arguments(query, parameters)?;
        let text = query.to_owned();
        let rows = self.session.run(py, move |connection| connection.query_with(&text, &arguments))?;
        Ok(Relation::new(rows, query, self.session.clone()))
    }

    /// Runs a query and returns a stream of its rows, which are read while it runs.
    #[pyo3(signature = (query, parameters=None))]
    fn stream(&self, py: Python<'_>, query: &str, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<Stream> {
        let Arguments::Values(values) = self.session.arguments(query, parameters)? else {
            return Err(NotSupportedError::new_err("lists as parameters of a stream"));
        };
        let text = query.to_owned();
        self.session.run(py, move |connection| connection.stream(&text, &values)).map(Stream::new)
    }

    /// Describes one statement without running it: the types of its parameters, and the names and types of
    /// the columns of its result.
    fn describe(&self, py: Python<'_>, query: &str) -> PyResult<Description> {
        let text = query.to_owned();
        let described = self.session.run(py, move |connection| connection.describe(&text, &[]))?;
        let parameters = described.parameters.iter().map(ToString::to_string).collect();
        let columns = described.columns.iter();
        Ok((parameters, columns.map(|field| (field.name.to_string(), field.ty.to_string())).collect()))
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

    /// Names of tables, views and registered objects.
    fn tables(&self) -> PyResult<Vec<String>> {
        Ok(self.session.connection()?.tables())
    }

    /// Cancels the running statement, or a `fetchall`; called from another thread.
    fn interrupt(&self) {
        self.session.interrupt();
    }

    /// Returns another connection to the same database, with settings and transactions of its own.
    fn duplicate(&self) -> PyResult<Connection> {
        let connection = self.session.connection()?.database().connect();
        Ok(Connection { session: Arc::new(Session::new(connection)) })
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
