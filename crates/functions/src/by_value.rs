//! Scalar functions of our own that are computed value by value: those that are rare, or whose computation
//! costs more than such a call. The result for a NULL is NULL.

use entasis_vector::expr::{Expr, ExternalFunction};
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector};
use std::fmt;
use std::sync::Arc;

/// Computes one result from values that are not NULL.
type Compute = dyn Fn(&[Value]) -> Result<Value> + Send + Sync;

/// A function with the types of its arguments.
struct ByValue {
    /// Identifies the function, together with its arguments.
    name: String,
    types: Vec<DataType>,
    is_volatile: bool,
    compute: Box<Compute>,
}

impl fmt::Debug for ByValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExternalFunction for ByValue {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_immutable(&self) -> bool {
        !self.is_volatile
    }

    fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        let is_constant = !args.is_empty() && !self.is_volatile && args.iter().all(Vector::is_constant);
        let rows = if is_constant { 1 } else { rows };
        out.begin(rows.max(CHUNK_ROWS));
        let mut values = Vec::with_capacity(args.len());
        for row in 0..rows {
            values.clear();
            values.extend(args.iter().zip(&self.types).map(|(arg, ty)| arg.value(row, *ty)));
            match values.iter().any(Value::is_null) {
                true => out.set_null(row),
                false => out.write_value(row, &(self.compute)(&values)?)?,
            }
        }
        if is_constant {
            out.make_constant();
        }
        Ok(())
    }
}

/// A call of a function whose results depend only on its arguments; computed now if these are constants.
pub fn call(
    name: impl Into<String>,
    args: Vec<Expr>,
    ty: DataType,
    compute: impl Fn(&[Value]) -> Result<Value> + Send + Sync + 'static,
) -> Expr {
    let constants: Option<Vec<Value>> = args
        .iter()
        .map(|arg| match arg {
            Expr::Literal { value, .. } => Some(value.clone()),
            _ => None,
        })
        .collect();
    if let Some(values) = constants {
        // An error is raised only if and when the call is evaluated.
        let value = if values.iter().any(Value::is_null) { Ok(Value::Null) } else { compute(&values) };
        if let Ok(value) = value {
            return Expr::literal(value, ty);
        }
    }
    let types = args.iter().map(Expr::ty).collect();
    let function = ByValue { name: name.into(), types, is_volatile: false, compute: Box::new(compute) };
    Expr::External { function: Arc::new(function), args, ty }
}

/// A call of a function without arguments that has a different result for each row.
pub fn volatile(
    name: &str,
    ty: DataType,
    compute: impl Fn() -> Result<Value> + Send + Sync + 'static,
) -> Expr {
    let compute = Box::new(move |_: &[Value]| compute());
    let function = ByValue { name: name.into(), types: Vec::new(), is_volatile: true, compute };
    Expr::External { function: Arc::new(function), args: Vec::new(), ty }
}

/// The microseconds, days or number of a value that is represented as an integer.
///
/// # Errors
/// Internal, if it is not an integer.
pub fn integer(value: &Value) -> Result<i64> {
    match value {
        Value::Integer(v) => i64::try_from(*v).map_err(|_| Error::input(format!("{v} does not fit BIGINT"))),
        other => Err(Error::internal(format!("{other:?} where an integer is expected"))),
    }
}
