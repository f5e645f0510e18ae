//! Connections.

use crate::cursor::{Cursor, Relation};
use crate::errors::{InterfaceError, NotSupportedError, raised};
use crate::functions::{self, Manner, Types};
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

    /// Makes an aggregate callable in SQL, for this connection: a class whose objects have `step(value, …)` and
    /// `finalize()`, or a function that gets a list for each argument, or with `type` 'arrow' a
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
