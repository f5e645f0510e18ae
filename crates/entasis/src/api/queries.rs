//! Statements with parameters and results in Rust's types.
//!
//! | method | gives |
//! |---|---|
//! | [`Connection::query_with`] | [`Rows`], all in memory |
//! | [`Connection::query_as`], [`Connection::query_map`] | a `Vec` of what each row is read as |
//! | [`Connection::query_row_as`], [`Connection::query_row`] | what the first row is read as |
//! | [`Connection::stream_with`] | a [`Stream`], whose rows or batches are read while the query runs |
//! | [`Connection::prepare`](crate::PreparedStatement) | the same for a statement that is run often |
//!
//! This layer converts at the border and adds nothing to how statements run: plans are remembered by the
//! statement's text, whichever method runs it.

use crate::api::stream::Stream;
use crate::connection::Connection;
use crate::values::arguments::{Argument, Arguments};
use crate::values::params::{Given, Params};
use crate::values::row::{FromRow, Row};
use crate::values::rows::Rows;
use entasis_vector::error::sqlstate;
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value};
use std::borrow::Cow;

impl Connection {
    /// As [`Connection::execute`], with parameters. The number of rows that a statement changed is
    /// [`Rows::changed`].
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")?;
    /// let inserted = connection.query_with("INSERT INTO t VALUES (?, ?), (2, NULL)", (1, "one"))?;
    /// assert_eq!(inserted.changed(), Some(2));
    /// for row in &connection.query_with("SELECT * FROM t WHERE id IN ?", ([1, 3],))? {
    ///     assert_eq!(row.get::<String>("name")?, "one");
    /// }
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::query`]; input, if a name is not that of a parameter or a parameter has no
    /// value, or if a list is given where only a single value is possible.
    pub fn query_with(&self, sql: &str, params: impl Params) -> Result<Rows> {
        match self.arguments_of(sql, params.given()?)?.as_ref() {
            Arguments::Values(values) => self.query(sql, values),
            Arguments::Lists(arguments) => self.query_lists(sql, arguments),
        }
    }

    /// Reads every row of a query as a tuple, a struct or a single value ([`FromRow`]).
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let squares: Vec<(i64, f64)> =
    ///     connection.query_as("SELECT n, sqrt(n) FROM range(?) AS numbers(n)", (5,))?;
    /// assert_eq!(squares[4], (4, 2.0));
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::query_with`] and of [`FromRow::from_row`].
    pub fn query_as<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<Vec<T>> {
        self.query_map(sql, params, T::from_row)
    }

    /// Reads every row of a query by a function.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let names = connection.query_map("SELECT 'a' AS name UNION ALL SELECT 'b'", (), |row| {
    ///     Ok(row.get::<String>("name")?.to_uppercase())
    /// })?;
    /// assert_eq!(names.concat().len(), 2);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::query_with`], and the first one of the function.
    pub fn query_map<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query_with(sql, params)?.iter().map(|row| read(&row)).collect()
    }

    /// Reads the first row of a query as a tuple, a struct or a single value ([`FromRow`]).
    ///
    /// ```
    /// use entasis::{Config, Database, OptionalRow};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let count: u64 = connection.query_row_as("SELECT count(*) FROM range(10)", ())?;
    /// assert_eq!(count, 10);
    /// let none: Option<i64> = connection.query_row_as("SELECT * FROM range(0)", ()).optional()?;
    /// assert_eq!(none, None);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::query_row`] and of [`FromRow::from_row`].
    pub fn query_row_as<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<T> {
        self.query_row(sql, params, T::from_row)
    }

    /// Reads the first row of a query by a function.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let text = connection.query_row("SELECT ? AS a, ? AS b", (1, "x"), |row| {
    ///     Ok(format!("{} {}", row.get::<i32>("a")?, row.get::<String>("b")?))
    /// })?;
    /// assert_eq!(text, "1 x");
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::query_with`] and of the function; input with the SQLSTATE 02000, if there is no
    /// row (see [`OptionalRow`]).
    pub fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<T> {
        match self.query_with(sql, params)?.iter().next() {
            Some(row) => read(&row),
            None => Err(Error::input("the statement returned no row").with_sqlstate(sqlstate::NO_ROW)),
        }
    }

    /// As [`Connection::stream`], with parameters. A statement whose parameters are lists to compare with
    /// runs first.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let mut sum = 0;
    /// for row in connection.stream_with("SELECT n FROM range(?) AS numbers(n)", (100_000,))?.into_rows() {
    ///     sum += row?.get::<i64>("n")?;
    /// }
    /// assert_eq!(sum, 4_999_950_000);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::stream`] and of [`Connection::query_with`].
    pub fn stream_with(&self, sql: &str, params: impl Params) -> Result<Stream> {
        match self.arguments_of(sql, params.given()?)?.as_ref() {
            Arguments::Values(values) => self.stream(sql, values),
            Arguments::Lists(arguments) => self.query_lists(sql, arguments).map(Stream::of),
        }
    }

    /// The arguments for the parameters of a statement.
    fn arguments_of<'a>(&self, sql: &str, given: Given<'a>) -> Result<Cow<'a, Arguments>> {
        if let Given::Arguments(arguments) = given {
            return Ok(Cow::Borrowed(arguments));
        }
        let values = given.in_order(|| self.parameter_names(sql))?;
        let is_list =
            |(value, ty): &(Value, DataType)| matches!((value, ty), (Value::Bytes(_), DataType::List(_)));
        if !values.iter().any(is_list) {
            return Ok(Cow::Owned(Arguments::Values(values)));
        }
        let takes_list = self.list_parameters(sql)?;
        let arguments = values.into_iter().enumerate().map(|(index, (value, ty))| match (&value, ty) {
            (Value::Bytes(list), DataType::List(element)) if takes_list.get(index) == Some(&true) => {
                let elements = nested::values(list, *element).map(|value| Ok((value?, *element)));
                elements.collect::<Result<_>>().map(Argument::List)
            }
            _ => Ok(Argument::Value(value, ty)),
        });
        Ok(Cow::Owned(Arguments::from(arguments.collect::<Result<Vec<_>>>()?)))
    }

    /// Runs a statement once for each set of parameters, in one transaction. Returns the number of changed
    /// rows.
    ///
    /// # Errors
    /// Those of [`Connection::execute_many`].
    pub(crate) fn run_many<P: Params>(&self, sql: &str, sets: impl IntoIterator<Item = P>) -> Result<u64> {
        let names = std::cell::OnceCell::<Vec<String>>::new();
        let names = || match names.get() {
            Some(names) => Ok(names.clone()),
            None => self.parameter_names(sql).map(|found| names.get_or_init(|| found).clone()),
        };
        let set = |set: P| set.given()?.in_order(names).map(Arguments::Values);
        self.execute_many(sql, &sets.into_iter().map(set).collect::<Result<Vec<_>>>()?)
    }
}

/// No row is `None`, where a query may return none: `connection.query_row_as(…).optional()?`.
///
/// ```
/// use entasis::{Config, Database, OptionalRow};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")?;
/// let name = |id: i64| connection.query_row_as::<String>("SELECT name FROM t WHERE id = ?", (id,)).optional();
/// assert_eq!(name(1)?, None);
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait OptionalRow<T> {
    /// `None`, if the error is that there is no row.
    ///
    /// # Errors
    /// All others.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalRow<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Err(error) if error.sqlstate() == sqlstate::NO_ROW => Ok(None),
            result => result.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Appender, BatchStream, Config, Database, PreparedStatement, RowStream, Transaction};

    #[test]
    fn everything_goes_to_other_threads() {
        fn goes<T: Send + Sync>() {}
        goes::<Connection>();
        goes::<PreparedStatement<'_>>();
        goes::<Transaction<'_>>();
        goes::<Appender<'_>>();
        goes::<Row>();
        fn is_sent<T: Send>() {}
        is_sent::<RowStream>();
        is_sent::<BatchStream>();
    }

    #[test]
    fn lists_are_spread_where_they_are_compared_with() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, l INTEGER[])").unwrap();
        let insert = "INSERT INTO t VALUES (?, ?)";
        for k in 0..5_i32 {
            connection.query_with(insert, (k, vec![k, k + 1])).unwrap();
        }
        connection.query_with(insert, (5, Vec::<&str>::new())).unwrap();
        let found = |sql: &str, params: (Vec<Option<i64>>, Vec<i32>)| {
            connection.query_as::<i64>(sql, params).unwrap()
        };
        let sql = "SELECT k FROM t WHERE k IN ? AND list_contains(l, list_max(?)) ORDER BY k";
        assert_eq!(found(sql, (vec![Some(2), None, Some(3), Some(1)], vec![1, 3])), [2, 3]);
        assert!(found(sql, (vec![], vec![3])).is_empty());
        let sql = "SELECT k FROM t WHERE k > ALL(?) AND l <> ? ORDER BY k";
        assert_eq!(found(sql, (vec![Some(1), Some(2)], vec![3, 4])), [4, 5]);
        let both = "INSERT INTO t VALUES (?, NULL); SELECT k FROM t WHERE k IN ?";
        assert!(connection.query_with(both, (9, vec![1])).is_err());
    }

    #[test]
    fn statements_by_key_have_rows_too() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)").unwrap();
        let insert = connection.prepare("INSERT INTO t VALUES ($k, $v)").unwrap();
        assert_eq!(insert.execute_many([[("v", "1"), ("k", "1")], [("k", "2"), ("v", "2")]]).unwrap(), 2);
        let rows = connection.query_with("SELECT v, k FROM t WHERE k = ?", (2,)).unwrap();
        assert!(rows.single_row().is_some());
        let mut iter = rows.iter();
        let row = iter.next().unwrap();
        assert!(iter.next().is_none() && iter.next().is_none());
        drop(rows);
        assert_eq!(row.to::<(String, u8)>().unwrap(), ("2".to_owned(), 2));
        assert_eq!(format!("{row:?}"), "{v: 2, k: 2}");
        let error = connection.query_with("INSERT INTO t VALUES (?, NULL)", (2,)).unwrap_err();
        let about = (error.table(), error.column(), error.constraint());
        assert_eq!(about, (Some("t"), Some("k"), Some("t_pkey")));
    }
}
