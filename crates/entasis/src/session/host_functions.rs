//! Functions of the host program: scalar functions, aggregates and table functions that SQL on a connection
//! may call.
//!
//! ```
//! use entasis::{Config, DataType, Database, Function, Value};
//!
//! let connection = Database::in_memory(Config::default())?.connect();
//! let double = |arguments: &[Value]| match arguments[0] {
//!     Value::Integer(n) => Ok(Value::Integer(2 * n)),
//!     _ => Ok(Value::Null),
//! };
//! connection.create_function(Function::scalar("twice", [DataType::Int64], DataType::Int64, double))?;
//! let rows = connection.execute("SELECT twice(n) FROM range(3) t(n) ORDER BY n")?;
//! let values: Vec<_> = rows.row_values().flatten().collect();
//! assert_eq!(values, [0, 2, 4].map(Value::Integer));
//! # Ok::<(), entasis::Error>(())
//! ```
//!
//! A function belongs to the connection on which it is created, and is called by its statements alone, from
//! several threads at once. Views may name it, and are then refused on connections without it; what a table
//! declares (CHECK, DEFAULT, indexes) may not, because other connections write to the table as well. A
//! function must not run statements on the connection that calls it, which would wait for itself; it gets an
//! error. Functions of ours cannot be replaced.

use crate::catalog;
use arrow_array::{Array, ArrayRef};
use entasis_engine::relation::Relation;
use entasis_functions::Argument;
use entasis_functions::expressions::fold::cast_expr;
use entasis_functions::host::{Compute, HostArguments, HostFunction, Takes, called, is_called_by};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::expr::fold::evaluate_constant;
use entasis_vector::expr::json_text::check_json;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::nested;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector, name};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Names that the binder itself knows, beside those of the catalog of functions.
const OF_BINDER: [&str; 6] =
    ["unnest", "grouping", "grouping_id", "struct_pack", "current_catalog", "current_user"];

/// What makes the rows of a table function from the arguments of a call: values with their types, each with
/// its name in lower case if the call names it.
pub type MakeTable = dyn Fn(&[TableArgument]) -> Result<Arc<dyn Relation>> + Send + Sync;

/// An argument of a call of a table function: a constant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableArgument {
    /// Its name in lower case, if the call names it: `f(n := 3)`.
    pub name: Option<String>,
    /// The value.
    pub value: Value,
    /// Its type.
    pub ty: DataType,
}

/// A function of the host program, to be given to
/// [`Connection::create_function`](crate::Connection::create_function).
#[derive(Debug, Clone)]
pub struct Function {
    name: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Values(HostFunction),
    Table(Arc<MakeTable>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Values(function) => function.fmt(f),
            Kind::Table(_) => f.write_str("table function"),
        }
    }
}

impl Function {
    fn values(name: &str, takes: Takes, result: DataType, compute: Compute) -> Function {
        let name = name::fold(name);
        let function = HostFunction {
            name: name.clone(),
            owner: 0,
            takes,
            result,
            takes_nulls: false,
            is_volatile: false,
            compute,
        };
        Function { name, kind: Kind::Values(function) }
    }

    /// A scalar function that is called for each row with the values of its arguments. Arguments are cast to
    /// the types that it takes. A row in which one of them is NULL gives NULL; the function is not called for
    /// it.
    pub fn scalar(
        name: &str,
        takes: impl Into<Vec<DataType>>,
        result: DataType,
        compute: impl Fn(&[Value]) -> Result<Value> + Send + Sync + 'static,
    ) -> Function {
        Function::vectors(name, takes, result, move |arguments, out| {
            out.begin(arguments.rows.max(CHUNK_ROWS));
            let mut values = Vec::with_capacity(arguments.vectors.len());
            for row in 0..arguments.rows {
                values.clear();
                values.extend((0..arguments.vectors.len()).map(|at| arguments.value(row, at)));
                out.write_value_of(row, &fitting(compute(&values)?, result)?, result)?;
            }
            Ok(())
        })
    }

    /// A scalar function that is called for up to a chunk of rows at once, with the vectors of its arguments,
    /// and writes the results of all rows into a vector of its result's type, row r at position r. NULLs are
    /// treated as by [`Function::scalar`].
    pub fn vectors(
        name: &str,
        takes: impl Into<Vec<DataType>>,
        result: DataType,
        compute: impl Fn(HostArguments<'_>, &mut Vector) -> Result<()> + Send + Sync + 'static,
    ) -> Function {
        Function::values(name, Takes::Types(takes.into()), result, Compute::Rows(Arc::new(compute)))
    }

    /// A scalar function that is called with an Arrow array for each argument, of the same length, which is
    /// at most a chunk's, and gives an array of that length. Arrays have the types by which results are
    /// exported; what the function gives is cast to the type of its result. NULLs are treated as by
    /// [`Function::scalar`].
    pub fn arrow(
        name: &str,
        takes: impl Into<Vec<DataType>>,
        result: DataType,
        compute: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Function {
        Function::vectors(name, takes, result, move |arguments, out| {
            let HostArguments { vectors, types, positions, rows } = arguments;
            let arrays = vectors.iter().zip(types).map(|(vector, ty)| {
                let positions = positions.filter(|_| !vector.is_constant());
                entasis_arrow::vector_to_array(vector, positions, rows, *ty)
            });
            let array = compute(&arrays.collect::<Result<Vec<_>>>()?)?;
            if array.len() != rows {
                return Err(Error::input(format!("it gave {} values for {rows} rows", array.len())));
            }
            entasis_arrow::array_to_vector(&*array, 0, rows, result, out)
        })
    }

    /// An aggregate that is called once for each group, with the types of the arguments, and the values of
    /// each in the order of the rows. Rows in which an argument is NULL are left out; a group may so have no
    /// rows. DISTINCT, FILTER, ORDER BY and OVER work as with every aggregate.
    pub fn aggregate(
        name: &str,
        takes: impl Into<Vec<DataType>>,
        result: DataType,
        compute: impl Fn(&[DataType], &[Vec<Value>]) -> Result<Value> + Send + Sync + 'static,
    ) -> Function {
        let group =
            move |types: &[DataType], columns: &[Vec<Value>]| fitting(compute(types, columns)?, result);
        Function::values(name, Takes::Types(takes.into()), result, Compute::Group(Arc::new(group)))
    }

    /// An aggregate as [`Function::aggregate`] that gets an Arrow array for each argument, and gives an array
    /// of one value.
    pub fn arrow_aggregate(
        name: &str,
        takes: impl Into<Vec<DataType>>,
        result: DataType,
        compute: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Function {
        let group = move |types: &[DataType], columns: &[Vec<Value>]| {
            let arrays = columns.iter().zip(types);
            let arrays = arrays.map(|(column, ty)| entasis_arrow::values_to_array(column, *ty));
            let array = compute(&arrays.collect::<Result<Vec<_>>>()?)?;
            if array.len() != 1 {
                return Err(Error::input(format!("it gave {} values for a group", array.len())));
            }
            let mut out = Vector::new(result.physical());
            entasis_arrow::array_to_vector(&*array, 0, 1, result, &mut out)?;
            Ok(out.value(0, result))
        };
        Function::values(name, Takes::Types(takes.into()), result, Compute::Group(Arc::new(group)))
    }

    /// A table function: what `FROM name(…)` reads. It is called when a statement is planned, perhaps more
    /// than once.
    pub fn table(
        name: &str,
        make: impl Fn(&[TableArgument]) -> Result<Arc<dyn Relation>> + Send + Sync + 'static,
    ) -> Function {
        Function { name: name::fold(name), kind: Kind::Table(Arc::new(make)) }
    }

    /// The same with any number of arguments of any types, which come as they are.
    #[must_use]
    pub fn with_any_arguments(self) -> Function {
        self.changed(|function| function.takes = Takes::Anything)
    }

    /// The same, called for rows with NULLs as well.
    #[must_use]
    pub fn with_nulls(self) -> Function {
        self.changed(|function| function.takes_nulls = true)
    }

    /// The same for a function whose results do not follow from its arguments alone: it is called for each
    /// row, and calls with constants are not computed ahead.
    #[must_use]
    pub fn volatile(self) -> Function {
        self.changed(|function| function.is_volatile = true)
    }

    fn changed(mut self, change: impl FnOnce(&mut HostFunction)) -> Function {
        if let Kind::Values(function) = &mut self.kind {
            change(function);
        }
        self
    }
}

/// A value as one of another type, as `CAST` makes it.
///
/// # Errors
/// Input, if it cannot be one.
pub fn cast_value(value: Value, from: DataType, to: DataType) -> Result<Value> {
    if from == to || value.is_null() {
        return Ok(value);
    }
    evaluate_constant(&cast_expr(Expr::literal(value, from), to, false))
}

/// True if these are the bytes of a value of a nested type.
fn is_nested_value(bytes: &[u8], ty: DataType) -> bool {
    let all = |values: Result<Vec<Value>>, ty_of: &dyn Fn(usize) -> DataType| {
        values.is_ok_and(|values| {
            values.into_iter().enumerate().all(|(place, value)| fitting(value, ty_of(place)).is_ok())
        })
    };
    let parts = match ty {
        DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => {
            all(nested::elements(bytes, *element), &|_| *element)
        }
        DataType::Struct(fields) => all(nested::fields(bytes, fields), &|place| fields[place].ty),
        _ => false,
    };
    parts && nested::check(bytes, ty).is_ok()
}

/// A value that a function gave, if it is one of the type of its result.
fn fitting(value: Value, ty: DataType) -> Result<Value> {
    let is_one = match (&value, ty) {
        (Value::Null, _)
        | (Value::Boolean(_), DataType::Boolean)
        | (Value::Interval(_), DataType::Interval) => true,
        (Value::Float(v), DataType::Float32) => !v.is_finite() || (*v as f32).is_finite(),
        (Value::Float(_), DataType::Float64) => true,
        (Value::Text(text), DataType::Json) => check_json(text).is_ok(),
        (Value::Text(_), DataType::Varchar) | (Value::Bytes(_), DataType::Blob) => true,
        (Value::Integer(n), DataType::Time) => (0..=i128::from(MICROS_PER_DAY)).contains(n),
        (Value::Integer(_), DataType::Boolean) => false,
        (Value::Bytes(bytes), ty) => is_nested_value(bytes, ty),
        (Value::Integer(n), DataType::Enum(labels)) => usize::try_from(*n).is_ok_and(|n| n < labels.len()),
        (Value::Integer(_), DataType::Uuid) => true,
        (Value::Integer(n), ty) => ty.integer_range().is_some_and(|(low, high)| (low..=high).contains(n)),
        _ => false,
    };
    match is_one {
        true => Ok(value),
        false => Err(Error::input(format!("it gave {value:?}, which is not a valid {ty}"))),
    }
}

/// The functions of a session, by their names in lower case.
#[derive(Debug)]
pub(crate) struct Functions {
    /// Identifies the session in this process.
    owner: u64,
    by_name: RwLock<HashMap<String, Kind>>,
}

impl Default for Functions {
    fn default() -> Functions {
        static OWNERS: AtomicU64 = AtomicU64::new(0);
        Functions { owner: OWNERS.fetch_add(1, Ordering::Relaxed), by_name: RwLock::default() }
    }
}

impl Functions {
    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.read().expect("no panic while locked").is_empty()
    }

    /// True for the name of a table function among them.
    pub(crate) fn has_table(&self, name: &str) -> bool {
        let functions = self.by_name.read().expect("no panic while locked");
        matches!(functions.get(&name::fold(name)), Some(Kind::Table(_)))
    }

    /// True while this thread runs one of them.
    #[inline]
    pub(crate) fn is_calling(&self) -> bool {
        is_called_by(self.owner)
    }

    /// Adds a function, in the place of one of the same name.
    ///
    /// # Errors
    /// Input, if the name is empty, or that of a function of ours.
    pub(crate) fn add(&self, function: Function) -> Result<()> {
        let Function { name, kind } = function;
        if name.is_empty() {
            return Err(Error::input("a function needs a name"));
        }
        let is_ours = OF_BINDER.contains(&&*name)
            || entasis_sql::functions().contains(&name)
            || catalog::is_table_function(&name);
        if is_ours {
            let error = Error::input(format!("{name} is a function of the database, and cannot be replaced"));
            return Err(error.with_hint("choose another name").with_sqlstate(sqlstate::FUNCTION_TAKEN));
        }
        let kind = match kind {
            Kind::Values(function) => Kind::Values(HostFunction { owner: self.owner, ..function }),
            table => table,
        };
        self.by_name.write().expect("no panic while locked").insert(name, kind);
        Ok(())
    }

    /// Removes the function of this name, in lower case. True if there was one.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.by_name.write().expect("no panic while locked").remove(name).is_some()
    }

    /// The scalar function or aggregate of this name, in lower case.
    pub(crate) fn of_values(&self, name: &str) -> Option<HostFunction> {
        match self.by_name.read().expect("no panic while locked").get(name)? {
            Kind::Values(function) => Some(function.clone()),
            Kind::Table(_) => None,
        }
    }

    /// The rows of a call of a table function; `None` if there is no such function.
    pub(crate) fn table(
        &self,
        name: &str,
        arguments: &[(Option<String>, Argument)],
    ) -> Option<Result<Arc<dyn Relation>>> {
        let make = match self.by_name.read().expect("no panic while locked").get(&name::fold(name))? {
            Kind::Table(make) => make.clone(),
            Kind::Values(_) => return None,
        };
        let plain = arguments.iter().map(|(name, argument)| match argument {
            Argument::Value(value, ty) => {
                Ok(TableArgument { name: name.clone(), value: value.clone(), ty: *ty })
            }
            _ => Err(Error::not_supported("lists and structs as arguments of this function")),
        });
        let arguments = plain.collect::<Result<Vec<_>>>();
        let rows = arguments.and_then(|arguments| called(self.owner, || make(&arguments)));
        Some(rows.map_err(|error| error.with_context(format!("the function {name}"))))
    }
}
