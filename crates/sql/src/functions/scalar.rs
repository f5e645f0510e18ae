//! Scalar functions of DataFusion's library in the engine's expressions, over Arrow arrays.

use crate::error::from_datafusion;
use arrow_array::Array;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Volatility};
use entasis_arrow::{array_to_vector, from_arrow_type, vector_to_array};
use entasis_vector::expr::ExternalFunction;
use entasis_vector::{DataType, Error, Result, Vector};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A function with the types that the binder chose.
pub(crate) struct External {
    udf: Arc<ScalarUDF>,
    /// Our types of the arguments, in which their vectors arrive.
    types: Vec<DataType>,
    /// The argument types of the function, which may have other units and widths.
    args: Vec<FieldRef>,
    result: FieldRef,
    ty: DataType,
    config: Arc<ConfigOptions>,
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.udf.name())
    }
}

impl External {
    /// `udf` over arguments of the Arrow types `args`, which the binder has coerced.
    ///
    /// # Errors
    /// Not supported, if arguments or result are nested types.
    pub(crate) fn new(
        udf: Arc<ScalarUDF>,
        args: Vec<FieldRef>,
        result: FieldRef,
        config: Arc<ConfigOptions>,
    ) -> Result<External> {
        let types =
            args.iter().map(|field| from_arrow_type(field.data_type())).collect::<Result<Vec<_>>>()?;
        let ty = from_arrow_type(result.data_type())?;
        Ok(External { udf, types, args, result, ty, config })
    }

    /// Type of the result.
    pub(crate) fn ty(&self) -> DataType {
        self.ty
    }

    fn argument(&self, i: usize, vector: &Vector, rows: usize) -> Result<ColumnarValue> {
        let wanted: &ArrowType = self.args[i].data_type();
        let rows = if vector.is_constant() { 1 } else { rows };
        let mut array = vector_to_array(vector, None, rows, self.types[i])?;
        if array.data_type() != wanted {
            array = arrow_cast::cast(&array, wanted).map_err(entasis_arrow::arrow_error)?;
        }
        Ok(match vector.is_constant() {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0).map_err(from_datafusion)?),
            false => ColumnarValue::Array(array),
        })
    }
}

impl ExternalFunction for External {
    fn name(&self) -> &str {
        self.udf.name()
    }

    fn is_immutable(&self) -> bool {
        self.udf.signature().volatility == Volatility::Immutable
    }

    fn is_volatile(&self) -> bool {
        self.udf.signature().volatility == Volatility::Volatile
    }

    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        let values = args
            .iter()
            .enumerate()
            .map(|(i, arg)| self.argument(i, arg, rows))
            .collect::<Result<Vec<_>>>()?;
        let result = without_panic(self.udf.name(), || {
            let arguments = ScalarFunctionArgs {
                args: values,
                arg_fields: self.args.clone(),
                number_rows: rows,
                return_field: self.result.clone(),
                config_options: self.config.clone(),
            };
            self.udf
                .invoke_with_args(arguments)
                .and_then(|value| value.into_array(rows))
                .map_err(from_datafusion)
        })
        .map_err(|error| error.with_context(self.udf.name()))?;
        array_to_vector(&result, 0, rows, self.ty, out)
    }
}

/// Runs a function of the borrowed library. Some of them panic on unexpected arguments; then the statement
/// fails, not the process or the thread. The data on which they worked is not used again.
///
/// # Errors
/// That of the function; internal, if it panicked.
fn without_panic<T>(name: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::internal(format!("{name} failed: {}", text.unwrap_or("no message"))))
    })
}

/// A field for an argument.
pub(crate) fn argument_field(ty: ArrowType, nullable: bool) -> FieldRef {
    Arc::new(Field::new("argument", ty, nullable))
}
