//! Rows, one after another: cells by name or by index as Rust values, and whole rows as tuples and structs.

use crate::values::convert::{FromValue, read};
use crate::values::rows::Rows;
use entasis_vector::error::sqlstate;
use entasis_vector::value::nested;
use entasis_vector::{Chunk, DataType, Error, Field, Result, Schema, Value, name, suggest};
use std::fmt;
use std::sync::Arc;

/// A row of a result. It is cheap to clone, and may outlive the result: it keeps the two thousand rows around
/// it in memory, which then no longer count against the database's limit.
///
/// ```
/// use entasis::{Config, Database, Date};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let rows = connection.execute("SELECT 1 AS id, NULL::INTEGER AS name, DATE '2024-02-29' AS born")?;
/// for row in &rows {
///     let id: i64 = row.get("id")?;
///     let born = row.get::<Date>(2)?;
///     assert_eq!((id, born.year()), (1, 2024));
///     assert_eq!(row.get::<Option<String>>("name")?, None);
///
///     let error = row.get::<i64>("name").unwrap_err();
///     assert_eq!(error.message(), "column \"name\" of type INTEGER is NULL, which is not a value of i64");
///     assert_eq!(error.hint(), Some("ask for Option<i64>"));
/// }
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Clone)]
pub struct Row {
    schema: Arc<Schema>,
    cells: Cells,
}

/// Where the values of a row are.
#[derive(Clone)]
enum Cells {
    /// A row of a chunk.
    Chunk(Arc<Chunk>, usize),
    /// Single values.
    Values(Arc<[Value]>),
}

/// The name or the index of a column. A name is that of the first column that has it, in the same case if
/// there is one.
///
/// ```
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let row = connection.query_row("SELECT 1 AS one, 2 AS \"Two\"", (), |row| Ok(row.clone()))?;
/// assert_eq!((row.get::<i32>("two")?, row.get::<i32>(0)?), (2, 1));
/// assert_eq!(row.get::<i32>("tow").unwrap_err().hint(), Some("did you mean \"Two\"?"));
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait ColumnIndex {
    /// The index of the column, from 0.
    ///
    /// # Errors
    /// Input, if there is no such column.
    fn index_in(&self, schema: &[Field]) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn index_in(&self, schema: &[Field]) -> Result<usize> {
        match schema.len() {
            columns if *self < columns => Ok(*self),
            columns => Err(Error::input(format!("there is no column {self}: the row has {columns}, from 0"))
                .with_sqlstate(sqlstate::NO_COLUMN)),
        }
    }
}

impl ColumnIndex for str {
    fn index_in(&self, schema: &[Field]) -> Result<usize> {
        let exact = schema.iter().position(|field| &*field.name == self);
        let found = exact.or_else(|| schema.iter().position(|field| name::same(&field.name, self)));
        found.ok_or_else(|| {
            let names = || schema.iter().map(|field| &*field.name);
            let error = Error::input(format!("there is no column \"{self}\""))
                .with_sqlstate(sqlstate::NO_COLUMN)
                .with_column(self);
            match suggest::nearest(self, names()) {
                Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
                None => {
                    error.with_hint(format!("the columns are {}", names().collect::<Vec<_>>().join(", ")))
                }
            }
        })
    }
}

impl ColumnIndex for String {
    fn index_in(&self, schema: &[Field]) -> Result<usize> {
        self.as_str().index_in(schema)
    }
}

impl<T: ColumnIndex + ?Sized> ColumnIndex for &T {
    fn index_in(&self, schema: &[Field]) -> Result<usize> {
        T::index_in(self, schema)
    }
}

impl Row {
    /// A row of single values.
    fn of_values(schema: Arc<Schema>, values: impl Into<Arc<[Value]>>) -> Row {
        Row { schema, cells: Cells::Values(values.into()) }
    }

    /// The cell of a column as a Rust value.
    ///
    /// # Errors
    /// Input, if there is no such column, its type cannot be read as `T`, it is NULL and `T` is not an
    /// `Option`, or the value is out of the range of `T`. The message names the column, its type and `T`.
    pub fn get<T: FromValue>(&self, column: impl ColumnIndex) -> Result<T> {
        let index = column.index_in(&self.schema)?;
        let field = &self.schema[index];
        let value = self.value(index);
        let is_null = value.is_null();
        let subject = || match is_null {
            true => format!("column \"{}\" of type {}", field.name, field.ty),
            false => format!("column \"{}\"", field.name),
        };
        read(value, field.ty, subject).map_err(|error| error.with_column(&*field.name))
    }

    /// As [`Row::get`], but the default if there is no such column or its value is NULL: for derived code.
    ///
    /// # Errors
    /// Those of [`Row::get`].
    #[doc(hidden)]
    pub fn get_or_default<T: FromValue + Default>(&self, column: &str) -> Result<T> {
        match column.index_in(&self.schema) {
            Ok(index) if self.value(index).is_null() => Ok(T::from_null().unwrap_or_default()),
            Ok(index) => self.get(index),
            Err(_) => Ok(T::default()),
        }
    }

    /// Refuses a row of more or fewer columns, which is read by position.
    ///
    /// # Errors
    /// Input.
    #[doc(hidden)]
    pub fn expect_columns(&self, expected: usize) -> Result<()> {
        let columns = self.schema.len();
        if columns == expected {
            return Ok(());
        }
        let s = if columns == 1 { "" } else { "s" };
        let names: Vec<&str> = self.schema.iter().map(|field| &*field.name).collect();
        Err(Error::input(format!("the row has {columns} column{s} ({}), not {expected}", names.join(", ")))
            .with_sqlstate(sqlstate::TYPE_MISMATCH))
    }

    /// The row as a tuple, a struct or a single value, as
    /// [`Connection::query_as`](crate::Connection::query_as)
    /// returns them.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let rows = connection.execute("SELECT range, range % 2 = 1 AS odd FROM range(2)")?;
    /// let (number, odd) = rows.iter().last().expect("two rows").to::<(i64, bool)>()?;
    /// assert_eq!((number, odd), (1, true));
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`FromRow::from_row`].
    pub fn to<T: FromRow>(&self) -> Result<T> {
        T::from_row(self)
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> &[Field] {
        &self.schema
    }

    /// The value of a column by its index, as SQL has it.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn value(&self, index: usize) -> Value {
        let ty = self.schema[index].ty;
        match &self.cells {
            Cells::Chunk(chunk, row) => chunk.value(*row, index, ty),
            Cells::Values(values) => values[index].clone(),
        }
    }

    /// All values, as SQL has them.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.schema.len()).map(|index| self.value(index))
    }
}

/// The names and the values, as SQL shows them.
impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = f.debug_map();
        for (field, value) in self.schema.iter().zip(self.values()) {
            row.entry(&format_args!("{}", field.name), &format_args!("{}", value.display(field.ty)));
        }
        row.finish()
    }
}

// ---- whole rows -------------------------------------------------------------------------------------------

/// A Rust type that a whole row is read as.
///
/// These are tuples of up to 16 values, by position; a single value, of a row with one column; [`Row`]
/// itself; and, with the feature `derive`, structs with `#[derive(FromRow)]`, whose fields are read from the
/// columns of their names. By hand:
///
/// ```
/// use entasis::{Config, Database, FromRow, Result, Row};
///
/// struct Point { x: f64, y: f64 }
///
/// impl FromRow for Point {
///     fn from_row(row: &Row) -> Result<Point> {
///         Ok(Point { x: row.get("x")?, y: row.get("y")? })
///     }
/// }
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let points: Vec<Point> = connection.query_as("SELECT 1.5 AS y, range::DOUBLE AS x FROM range(3)", ())?;
/// assert_eq!(points.iter().map(|point| point.x + point.y).sum::<f64>(), 7.5);
/// # Ok::<(), entasis::Error>(())
/// ```
pub trait FromRow: Sized {
    /// The Rust value of a row.
    ///
    /// # Errors
    /// Those of [`Row::get`]; input, if the row has more or fewer columns than are read by position.
    fn from_row(row: &Row) -> Result<Self>;
}

impl FromRow for Row {
    fn from_row(row: &Row) -> Result<Row> {
        Ok(row.clone())
    }
}

/// The only column.
impl<T: FromValue> FromRow for T {
    fn from_row(row: &Row) -> Result<T> {
        row.expect_columns(1)?;
        row.get(0)
    }
}

macro_rules! tuples {
    ($($first:ident $($rest:ident)*)?) => {$(
        impl<$first: FromValue, $($rest: FromValue),*> FromRow for ($first, $($rest,)*) {
            fn from_row(row: &Row) -> Result<Self> {
                const COLUMNS: usize = [stringify!($first), $(stringify!($rest)),*].len();
                row.expect_columns(COLUMNS)?;
                let mut columns = 0..;
                let mut next = || columns.next().unwrap_or(COLUMNS);
                Ok((row.get::<$first>(next())?, $(row.get::<$rest>(next())?,)*))
            }
        }
        tuples! { $($rest)* }
    )?};
}

tuples! { A B C D E F G H I J K L M N O P }

/// A STRUCT within a row, read as a row is: `Struct<(f64, f64)>`, `Struct<Row>`, or of a struct of yours.
///
/// ```
/// use entasis::{Config, Database, Struct};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let sql = "SELECT [{'x': 1, 'y': 'a'}, {'x': 2, 'y': 'b'}] AS points";
/// let points: Vec<Struct<(i32, String)>> = connection.query_row_as(sql, ())?;
/// assert_eq!(points[1].0, (2, "b".to_owned()));
/// # Ok::<(), entasis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Struct<T>(
    /// What its fields are read as.
    pub T,
);

impl<T: FromRow> FromValue for Struct<T> {
    fn from_value(value: Value, ty: DataType) -> Result<Struct<T>> {
        let (Value::Bytes(bytes), DataType::Struct(fields)) = (&value, ty) else {
            return Err(Error::input(format!("{ty} cannot be read as a Struct"))
                .with_sqlstate(sqlstate::TYPE_MISMATCH));
        };
        let schema = fields.iter().map(|field| Field::new(field.name, field.ty)).collect();
        let row = Row::of_values(Arc::new(schema), nested::fields(bytes, fields)?);
        T::from_row(&row).map(Struct)
    }
}

// ---- rows in order ----------------------------------------------------------------------------------------

/// The rows of a chunk that have not been read yet.
pub(crate) struct ChunkRows {
    schema: Arc<Schema>,
    chunk: Arc<Chunk>,
    next: usize,
}

impl ChunkRows {
    pub(crate) fn new(schema: &Arc<Schema>, chunk: Chunk) -> ChunkRows {
        ChunkRows { schema: schema.clone(), chunk: Arc::new(chunk), next: 0 }
    }
}

impl Iterator for ChunkRows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let row = self.next;
        self.next += 1;
        let cells = || Cells::Chunk(self.chunk.clone(), row);
        (row < self.chunk.len()).then(|| Row { schema: self.schema.clone(), cells: cells() })
    }
}

/// The rows of a result in memory, in order; made by [`Rows::iter`].
pub struct RowIter<'a> {
    rows: &'a Rows,
    /// The number of the next chunk.
    next: usize,
    chunk: Option<ChunkRows>,
    /// The row that a statement named by its key.
    single: Option<Row>,
}

impl Rows {
    /// The rows in order.
    ///
    /// ```
    /// use entasis::{Config, Database};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let rows = connection.execute("SELECT * FROM range(3) AS numbers(n)")?;
    /// let numbers: Vec<u8> = rows.iter().map(|row| row.get("n")).collect::<Result<_, _>>()?;
    /// assert_eq!(numbers, [0, 1, 2]);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    pub fn iter(&self) -> RowIter<'_> {
        let single = self.single_row().map(|row| Row::of_values(self.shared_schema().clone(), row));
        RowIter { rows: self, next: 0, chunk: None, single }
    }
}

impl Iterator for RowIter<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.rows.single_row().is_some() {
            return self.single.take();
        }
        loop {
            if let Some(row) = self.chunk.as_mut().and_then(ChunkRows::next) {
                return Some(row);
            }
            let chunk = self.rows.chunks().get(self.next)?;
            self.next += 1;
            self.chunk = Some(ChunkRows::new(self.rows.shared_schema(), chunk.clone()));
        }
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row;
    type IntoIter = RowIter<'a>;

    fn into_iter(self) -> RowIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for RowIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowIter over {:?}", self.rows)
    }
}
