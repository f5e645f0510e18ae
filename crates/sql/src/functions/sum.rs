//! `sum` as the binder sees it: of BIGINTs and UBIGINTs a DECIMAL(38,0), which holds the sum of any number of
//! them (PostgreSQL's rule); of smaller integers BIGINT or UBIGINT, of decimals a decimal with more digits,
//! of floats DOUBLE, of intervals INTERVAL.

use super::average::wrong_arguments;
use arrow_schema::DataType as ArrowType;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// Number of digits that a sum of decimals has in addition to its argument's, as in DataFusion and Spark.
const MORE_DIGITS: u8 = 10;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

/// The binder's view of `sum`. It cannot accumulate: the engine does.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Sum { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        use ArrowType::{Decimal32, Decimal64, Decimal128, Float16, Float32, Float64};
        Ok(vec![match args {
            [ArrowType::Null] => ArrowType::Int64,
            [Float16 | Float32 | Float64] => Float64,
            [Decimal32(precision, scale) | Decimal64(precision, scale)] => Decimal128(*precision, *scale),
            [arg] if arg.is_integer() || matches!(arg, Decimal128(..) | ArrowType::Interval(_)) => {
                arg.clone()
            }
            _ => return wrong_arguments("sum", args, "a number or interval"),
        }])
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(match args {
            [ArrowType::Int64 | ArrowType::UInt64] => ArrowType::Decimal128(38, 0),
            [arg] if arg.is_signed_integer() => ArrowType::Int64,
            [arg] if arg.is_unsigned_integer() => ArrowType::UInt64,
            [ArrowType::Decimal128(precision, scale)] => {
                ArrowType::Decimal128(precision.saturating_add(MORE_DIGITS).min(38), *scale)
            }
            [span @ ArrowType::Interval(_)] => span.clone(),
            _ => ArrowType::Float64,
        })
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Err(DataFusionError::Internal("sum is lowered, not accumulated".into()))
    }
}
