//! Rows added one by one, and written many at a time.
//!
//! Rows are converted to the table's types when they are appended, gathered, and inserted by one statement
//! for each batch ([`ROWS`], [`BYTES`]), in a transaction of the appender's own, or in a savepoint of the
//! open one. So defaults, constraints and indexes hold as for any INSERT, and others see all rows or none.
//!
//! When a batch is refused, the row to blame is found by halves: that takes a few more inserts, all of which
//! are undone with the rest.

use crate::api::transaction::Scope;
use crate::catalog::listed;
use crate::connection::Connection;
use crate::values::params::Params;
use entasis_functions::TimeZone;
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, ErrorKind, Field, Result, Schema, Value, name};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a batch, at the most.
const ROWS: usize = 1 << 16;
/// Bytes of texts and other long values in a batch, from which on it is written.
const BYTES: usize = 16 << 20;
/// Numbers the appenders of the process: the name of a batch, in the statement that inserts it, is that of
/// one appender, so that two of one connection do not insert each other's rows.
static APPENDERS: AtomicU64 = AtomicU64::new(0);

/// Adds rows to a table, one by one, and fast: many are written at once.
///
/// ```
/// use entasis::{Config, Database, Date, params};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// connection.execute("CREATE TABLE trips (id BIGINT PRIMARY KEY, day DATE NOT NULL, km DECIMAL(8, 1))")?;
/// let mut appender = connection.appender("trips")?;
/// for id in 0..1000 {
///     appender.append_row((id, Date::from_days(20_000 + id % 30), 0.5 * f64::from(id)))?;
/// }
/// // Values are converted as INSERT does; an error says in which row and column.
/// appender.append_row(params![1000, "2026-05-01", None::<f64>])?;
/// let error = appender.append_row((1001, "someday", 1.0)).unwrap_err();
/// assert!(error.message().starts_with("row 1002, column \"day\": "), "{error}");
/// assert_eq!(appender.commit()?, 1001);
/// # Ok::<(), entasis::Error>(())
/// ```
///
/// Everything that the connection runs meanwhile is part of the appender's transaction. Dropped without a
/// commit, the appender leaves nothing behind.
pub struct Appender<'c> {
    scope: Scope<'c>,
    insert: String,
    /// The name under which it reads the batch.
    batch_name: String,
    columns: Schema,
    zone: TimeZone,
    batch: Vec<Vec<Value>>,
    /// Bytes of long values in the batch.
    bytes: usize,
    /// Rows of the batches before.
    written: u64,
    /// True after an error of writing a batch: nothing can be kept then.
    has_failed: bool,
}

impl Connection {
    /// An appender to all columns of a table, in their order. The name is as SQL reads it: `t`, `schema.t`.
    ///
    /// # Errors
    /// Input, if there is no such table.
    pub fn appender(&self, table: &str) -> Result<Appender<'_>> {
        let columns = self.table_schema(table).ok_or_else(|| {
            Error::input(format!("there is no table {table}"))
                .with_sqlstate(sqlstate::NO_TABLE)
                .with_table(table)
        })?;
        let names: Vec<&str> = columns.iter().map(|field| &*field.name).collect();
        self.appender_to(table, &names)
    }

    /// An appender to these columns of a table, in this order; the others get their defaults.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// connection.execute("CREATE TABLE t (id BIGINT, kind VARCHAR DEFAULT 'plain', name VARCHAR)")?;
    /// let mut appender = connection.appender_to("t", &["name", "id"])?;
    /// appender.append_row(("one", 1))?;
    /// appender.commit()?;
    /// let row: (i64, String, String) = connection.query_row_as("FROM t", ())?;
    /// assert_eq!(row, (1, "plain".to_owned(), "one".to_owned()));
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Input, if there is no such table, or it has no such column.
    pub fn appender_to(&self, table: &str, columns: &[&str]) -> Result<Appender<'_>> {
        let parts = name::parts(table);
        let target = quoted(parts.iter().map(String::as_str)).join(".");
        let insert = format!("INSERT INTO {target} ({})", quoted(columns.iter().copied()).join(", "));
        // The types are those that the statement asks for.
        let places = vec!["?"; columns.len()].join(", ");
        let types = self.describe(&format!("{insert} VALUES ({places})"), &[])?.parameters;
        let fields = columns.iter().zip(types).map(|(column, ty)| Field::new(*column, ty));
        let batch_name = format!("appended rows {}", APPENDERS.fetch_add(1, Ordering::Relaxed));
        Ok(Appender {
            columns: fields.collect(),
            scope: Scope::begin(self)?,
            insert: format!("{insert} SELECT * FROM {}", entasis_sql::quoted(&batch_name)),
            batch_name,
            zone: self.time_zone(),
            batch: Vec::new(),
            bytes: 0,
            written: 0,
            has_failed: false,
        })
    }
}

/// Names as a statement contains them.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.map(entasis_sql::quoted).collect()
}

impl Appender<'_> {
    /// Appends a row: a value for each column, in their order or by their names.
    ///
    /// # Errors
    /// Input, if the row has more or fewer values, or one cannot be converted to its column's type: the row
    /// is not appended then, and others may be. Those of writing a batch, as of [`Appender::flush`].
    pub fn append_row(&mut self, row: impl Params) -> Result<()> {
        self.refuse_failed()?;
        let number = self.rows() + 1;
        let row = self.converted(row).map_err(|(column, error)| match column {
            Some(column) => {
                let name = &self.columns[column].name;
                error.with_context(format!("row {number}, column \"{name}\"")).with_column(&**name)
            }
            None => error.with_context(format!("row {number}")),
        })?;
        self.bytes += row.iter().filter_map(Value::bytes).sum::<usize>();
        self.batch.push(row);
        if self.batch.len() >= ROWS || self.bytes >= BYTES { self.flush() } else { Ok(()) }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Those of [`Appender::append_row`], of the first row that has one.
    pub fn append_rows<R: Params>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<()> {
        rows.into_iter().try_for_each(|row| self.append_row(row))
    }

    /// The values of a row in the types of the columns; an error with the column that it is about.
    fn converted(&self, row: impl Params) -> Result<Vec<Value>, (Option<usize>, Error)> {
        let names = || Ok(self.columns.iter().map(|field| name::fold(&field.name)).collect());
        let given = row.given().and_then(|given| given.in_order(names)).map_err(|error| (None, error))?;
        let (has, takes) = (given.len(), self.columns.len());
        if has != takes {
            let text = format!("{has} values for {takes} columns");
            return Err((None, Error::input(text).with_sqlstate(sqlstate::PARAMETERS)));
        }
        let values = given.into_iter().zip(&self.columns).enumerate();
        let one = |(value, from): (Value, DataType), to: DataType| match from == to || value.is_null() {
            true => Ok(value),
            false => self.zone.convert(&value, from, to, false),
        };
        values
            .map(|(index, (value, field))| one(value, field.ty).map_err(|error| (Some(index), error)))
            .collect()
    }

    /// The number of rows that have been appended.
    pub fn rows(&self) -> u64 {
        self.written + self.batch.len() as u64
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// Writes the rows gathered so far to the table, where this connection sees them; others do when they are
    /// committed.
    ///
    /// # Errors
    /// Constraint, if a row violates one, with its number; resource; interrupted. Nothing can be committed
    /// then.
    pub fn flush(&mut self) -> Result<()> {
        self.refuse_failed()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.has_failed = true;
        let batch: Arc<[Vec<Value>]> = std::mem::take(&mut self.batch).into();
        if let Err(error) = self.insert(batch.clone()) {
            return Err(self.explained(&batch, error));
        }
        (self.written, self.bytes, self.has_failed) = (self.written + batch.len() as u64, 0, false);
        Ok(())
    }

    /// Writes what is left, and commits all rows, or adds them to the open transaction. Returns their number.
    ///
    /// # Errors
    /// Those of [`Appender::flush`] and of [`Transaction::commit`](crate::Transaction::commit); no row is
    /// added then.
    pub fn commit(mut self) -> Result<u64> {
        self.flush()?;
        self.scope.commit()?;
        Ok(self.written)
    }

    fn refuse_failed(&self) -> Result<()> {
        match self.has_failed {
            true => {
                Err(Error::input("the appender has failed, and adds no rows")
                    .with_hint("begin with another one"))
            }
            false => Ok(()),
        }
    }

    fn insert(&self, rows: Arc<[Vec<Value>]>) -> Result<()> {
        let connection = self.scope.connection();
        let columns: Vec<(&str, DataType)> =
            self.columns.iter().map(|field| (&*field.name, field.ty)).collect();
        connection.register(&self.batch_name, listed(&self.batch_name, &columns, rows));
        let done = connection.execute(&self.insert);
        connection.unregister(&self.batch_name);
        done.map(drop)
    }

    /// The error of a batch with the number of the row that it is about.
    fn explained(&self, batch: &[Vec<Value>], error: Error) -> Error {
        if error.kind() != ErrorKind::Constraint {
            return error;
        }
        // Of the rows from `first` on, the `count` first are refused; those before are in the table.
        let (mut first, mut count, mut error) = (0, batch.len(), error);
        while count > 1 {
            let half = count / 2;
            match self.insert(Arc::from(&batch[first..first + half])) {
                Ok(()) => (first, count) = (first + half, count - half),
                Err(narrower) => (count, error) = (half, narrower),
            }
        }
        error.with_context(format!("row {}", self.written + first as u64 + 1))
    }
}

impl fmt::Debug for Appender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Appender({}, {} rows)", self.insert, self.rows())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, Database, named};
    use std::time::{Duration, SystemTime};

    fn connection(table: &str) -> Connection {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute(table).unwrap();
        connection
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row_as("SELECT count(*) FROM t", ()).unwrap()
    }

    #[test]
    fn appenders_of_one_connection_have_batches_of_their_own() {
        let connection = connection("CREATE TABLE t (k BIGINT)");
        connection.execute("CREATE TABLE u (k BIGINT)").unwrap();
        let (mut of_t, mut of_u) = (connection.appender("t").unwrap(), connection.appender("u").unwrap());
        of_t.append_rows((0..50).map(|k| (k,))).unwrap();
        of_u.append_rows((100..150).map(|k| (k,))).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..40).for_each(|_| of_t.flush().unwrap()));
            scope.spawn(|| (0..40).for_each(|_| of_u.flush().unwrap()));
        });
        of_u.commit().unwrap();
        of_t.commit().unwrap();
        let ends = |table: &str| -> (i64, i64, i64) {
            connection.query_row_as(&format!("SELECT count(*), min(k), max(k) FROM {table}"), ()).unwrap()
        };
        assert_eq!((ends("t"), ends("u")), ((50, 0, 49), (50, 100, 149)));
    }

    #[test]
    fn the_row_that_is_refused_is_named() {
        let connection = connection("CREATE TABLE t (k BIGINT PRIMARY KEY, v INTEGER CHECK (v < 10))");
        for (row, expected) in [((77, 0), "duplicate key: k = 77"), ((-1, 11), "CHECK constraint")] {
            let mut appender = connection.appender("t").unwrap();
            appender.append_rows((0..99).map(|k| (k, 0))).unwrap();
            appender.append_row(row).unwrap();
            appender.append_rows((100..200).map(|k| (k, 0))).unwrap();
            let error = appender.flush().unwrap_err();
            assert!(error.message().starts_with(&format!("row 100: {expected}")), "{error}");
            assert_eq!(error.table(), Some("t"));
            assert!(appender.append_row((500, 0)).unwrap_err().message().contains("has failed"));
            assert!(appender.commit().is_err());
            assert!(!connection.in_transaction());
            assert_eq!(count(&connection), 0);
        }
    }

    #[test]
    fn values_become_those_of_the_columns() {
        let connection = connection("CREATE TABLE t (at TIMESTAMPTZ, n UTINYINT, l INTEGER[], u UUID)");
        connection.set("timezone", "America/New_York").unwrap();
        let mut appender = connection.appender("t").unwrap();
        let uuid = "00000000-0000-0000-0000-000000000001";
        appender.append_row(("2026-01-01 00:00:00", 255_i64, vec![1_i64, 2], uuid)).unwrap();
        appender.append_row((SystemTime::UNIX_EPOCH, 0_u8, "[3]", None::<&str>)).unwrap();
        appender.append_row(named! { "U": uuid, "l": (), "n": 1, "at": () }).unwrap();
        for (row, place) in [((256, "[1]"), "row 4, column \"n\": "), ((1, "[x]"), "row 4, column \"l\": ")] {
            let error = appender.append_row(((), row.0, row.1, ())).unwrap_err();
            assert!(error.message().starts_with(place), "{error}");
        }
        assert!(appender.append_row((1, 2)).unwrap_err().message().contains("row 4: 2 values for 4 columns"));
        assert_eq!(appender.commit().unwrap(), 3);
        let midnight: SystemTime = connection.query_row_as("SELECT max(at) FROM t", ()).unwrap();
        assert_eq!(midnight, SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_243_600));
        assert_eq!(connection.query_row_as::<i64>("SELECT count(u) FROM t", ()).unwrap(), 2);
    }

    #[test]
    fn rows_are_those_of_the_open_transaction_or_of_their_own() {
        let connection = connection("CREATE TABLE t (k BIGINT)");
        let transaction = connection.transaction().unwrap();
        for is_kept in [false, true] {
            let mut appender = transaction.appender("t").unwrap();
            appender.append_rows((0..70_000).map(|k| (k,))).unwrap();
            if is_kept {
                appender.commit().unwrap();
            }
        }
        assert_eq!(count(&connection), 70_000);
        transaction.rollback().unwrap();
        assert_eq!(count(&connection), 0);
        drop(connection.appender("t").unwrap());
        assert!(!connection.in_transaction());
        assert!(connection.appender("nosuch").unwrap_err().message().contains("no table nosuch"));
        assert!(connection.appender_to("t", &["x"]).is_err());
        assert!(!connection.in_transaction());
    }
}
