//! A statement that is run often, by a handle.
//!
//! A connection remembers statements by their texts ([`crate::prepared`]): their syntax trees, and, from the
//! second run on, the templates of their plans. The handle holds the text, so it costs nothing to keep, never
//! goes stale when tables change, and shares what is remembered with everybody who runs the same text.

use crate::api::describe::Description;
use crate::api::stream::Stream;
use crate::connection::Connection;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row};
use crate::values::rows::Rows;
use entasis_vector::{DataType, ErrorKind, Field, Result};
use std::fmt;

/// A statement that has been checked, and can be run with parameters again and again.
///
/// ```
/// use entasis::{Config, DataType, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")?;
/// let insert = connection.prepare("INSERT INTO t VALUES (?, ?)")?;
/// assert_eq!(insert.parameter_types(), [DataType::Int64, DataType::Varchar]);
/// for (id, name) in [(1, "one"), (2, "two")] {
///     assert_eq!(insert.execute((id, name))?, 1);
/// }
/// assert_eq!(insert.execute_many([(3, "three"), (4, "four")])?, 2);
///
/// let query = connection.prepare("SELECT id, name FROM t WHERE name = $name")?;
/// assert_eq!(query.parameter_names(), ["name"]);
/// assert_eq!(&*query.columns()[0].name, "id");
/// assert_eq!(query.query_row_as::<(i64, String)>([("name", "two")])?, (2, "two".to_owned()));
/// # Ok::<(), entasis::Error>(())
/// ```
///
/// What it was checked against may change: if its table is dropped, its next run is an error.
pub struct PreparedStatement<'c> {
    connection: &'c Connection,
    sql: String,
    names: Vec<String>,
    description: Description,
}

impl Connection {
    /// Checks one statement without running it, and returns a handle to run it.
    ///
    /// # Errors
    /// Those of parsing and binding, with the position in `sql` where it is known; input, if `sql` is not
    /// one statement.
    pub fn prepare(&self, sql: &str) -> Result<PreparedStatement<'_>> {
        let description = match self.describe(sql, &[]) {
            // It cannot be bound without the values.
            Err(error) if error.kind() == ErrorKind::NotSupported => Description::default(),
            description => description?,
        };
        let names = self.parameter_names(sql)?;
        Ok(PreparedStatement { connection: self, sql: sql.to_owned(), names, description })
    }
}

impl PreparedStatement<'_> {
    /// Runs the statement and returns its rows.
    ///
    /// # Errors
    /// Those of [`Connection::query_with`].
    pub fn query(&self, params: impl Params) -> Result<Rows> {
        self.connection.query_with(&self.sql, params)
    }

    /// Runs the statement and returns the number of rows that it changed.
    ///
    /// # Errors
    /// Those of [`Connection::query_with`].
    pub fn execute(&self, params: impl Params) -> Result<u64> {
        self.query(params).map(|rows| rows.changed().unwrap_or(0))
    }

    /// Runs the statement once for each set of parameters, in one transaction, and returns the number of rows
    /// that it changed.
    ///
    /// # Errors
    /// Those of [`Connection::execute_many`]; nothing is done then.
    pub fn execute_many<P: Params>(&self, sets: impl IntoIterator<Item = P>) -> Result<u64> {
        self.connection.run_many(&self.sql, sets)
    }

    /// As [`Connection::query_as`].
    ///
    /// # Errors
    /// Those of [`Connection::query_as`].
    pub fn query_as<T: FromRow>(&self, params: impl Params) -> Result<Vec<T>> {
        self.connection.query_as(&self.sql, params)
    }

    /// As [`Connection::query_map`].
    ///
    /// # Errors
    /// Those of [`Connection::query_map`].
    pub fn query_map<T>(&self, params: impl Params, read: impl FnMut(&Row) -> Result<T>) -> Result<Vec<T>> {
        self.connection.query_map(&self.sql, params, read)
    }

    /// As [`Connection::query_row_as`].
    ///
    /// # Errors
    /// Those of [`Connection::query_row_as`].
    pub fn query_row_as<T: FromRow>(&self, params: impl Params) -> Result<T> {
        self.connection.query_row_as(&self.sql, params)
    }

    /// As [`Connection::query_row`].
    ///
    /// # Errors
    /// Those of [`Connection::query_row`].
    pub fn query_row<T>(&self, params: impl Params, read: impl FnOnce(&Row) -> Result<T>) -> Result<T> {
        self.connection.query_row(&self.sql, params, read)
    }

    /// As [`Connection::stream_with`].
    ///
    /// # Errors
    /// Those of [`Connection::stream_with`].
    pub fn stream(&self, params: impl Params) -> Result<Stream> {
        self.connection.stream_with(&self.sql, params)
    }

    /// Its text.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The names of its parameters, in order and in lower case; none, if they are written `?` or `$1`.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }

    /// The types of its parameters, in order, as its places ask for them; none, if they depend on the values,
    /// such as on the name of a file.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.description.parameters
    }

    /// The columns of its result; none, if it returns no rows, or if they depend on the values.
    pub fn columns(&self) -> &[Field] {
        &self.description.columns
    }
}

impl fmt::Debug for PreparedStatement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedStatement({})", self.sql)
    }
}
