//! One scalar function of the library.

use super::{Argument, OPTIONS, cast, library_error};
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Volatility};
use entasis_vector::expr::ExternalFunction;
use entasis_vector::{DataType, PhysicalType, Result, Vector};
use std::sync::Arc;

/// The engine's view of `function`, called with arguments of exactly `arg_types`, returning `return_type`.
///
/// # Errors
/// Not supported, for types that Entasis does not have.
pub(crate) fn scalar(
    function: Arc<ScalarUDF>,
    arg_types: Vec<ArrowType>,
    arg_nullables: Vec<bool>,
    return_type: ArrowType,
) -> Result<Arc<dyn ExternalFunction>> {
    let arg_fields = arg_types
        .iter()
        .zip(arg_nullables)
        .enumerate()
        .map(|(i, (ty, nullable))| Arc::new(Field::new(format!("arg{i}"), ty.clone(), nullable)))
        .collect();
    let args = arg_types.into_iter().map(Argument::new).collect::<Result<Vec<_>>>()?;
    let result = entasis_arrow::from_arrow_type(&return_type)?;
    let return_field = Arc::new(Field::new("result", return_type, true));
    Ok(Arc::new(LibraryFunction { function, args, arg_fields, result, return_field }))
}

#[derive(Debug)]
struct LibraryFunction {
    function: Arc<ScalarUDF>,
    args: Vec<Argument>,
    arg_fields: Vec<FieldRef>,
    result: DataType,
    return_field: FieldRef,
}

impl ExternalFunction for LibraryFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn is_immutable(&self) -> bool {
        self.function.signature().volatility == Volatility::Immutable
    }

    fn is_volatile(&self) -> bool {
        self.function.signature().volatility == Volatility::Volatile
    }

    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        let fail = |error| library_error(self.name(), error);
        let args = args
            .iter()
            .zip(&self.args)
            .map(|(vector, argument)| {
                let array = argument.array(vector, rows)?;
                if vector.is_constant() {
                    ScalarValue::try_from_array(&array, 0).map(ColumnarValue::Scalar).map_err(fail)
                } else {
                    Ok(ColumnarValue::Array(array))
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let call = ScalarFunctionArgs {
            args,
            arg_fields: self.arg_fields.clone(),
            number_rows: rows,
            return_field: self.return_field.clone(),
            config_options: OPTIONS.clone(),
        };
        let result = self.function.invoke_with_args(call).map_err(fail)?.into_array(rows).map_err(fail)?;
        let result = cast(result, &entasis_arrow::to_arrow_type(self.result))?;
        debug_assert!(out.physical() == self.result.physical() || out.physical() == PhysicalType::I128);
        entasis_arrow::array_to_vector(result.as_ref(), 0, rows, self.result, out)
    }
}
