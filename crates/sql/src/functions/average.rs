//! `avg` as the binder sees it: DOUBLE for every number, decimals included, as in DuckDB; for dates, times
//! and intervals the type of [`Kind::Mean`].

use arrow_schema::DataType as ArrowType;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use entasis_functions::aggregates::Kind;
use entasis_vector::Error;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Average {
    signature: Signature,
    aliases: Vec<String>,
}

/// The binder's view of `avg`. It cannot accumulate: the engine does.
pub(crate) fn avg() -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::from(Average { signature, aliases: vec!["mean".into()] }))
}

/// The type of the mean of dates, times or intervals.
fn mean_of(arg: &ArrowType) -> Option<ArrowType> {
    let ty = entasis_arrow::from_arrow_type(arg).ok()?;
    let (_, result) = Kind::Mean.types(&[ty]).ok()?;
    Some(entasis_arrow::to_arrow_type(result))
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        match args {
            [ArrowType::Null] => Ok(vec![ArrowType::Float64]),
            [arg] if arg.is_numeric() => Ok(vec![arg.clone()]),
            [arg] if mean_of(arg).is_some() => Ok(vec![arg.clone()]),
            _ => wrong_arguments("avg", args, "a number, date, time or interval"),
        }
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(args.first().and_then(mean_of).unwrap_or(ArrowType::Float64))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Err(DataFusionError::Internal("avg is lowered, not accumulated".into()))
    }
}

/// The error for arguments of types other than `wanted`.
pub(super) fn wrong_arguments(name: &str, args: &[ArrowType], wanted: &str) -> DfResult<Vec<ArrowType>> {
    let types: Vec<String> = args.iter().map(crate::error::type_name).collect();
    let error = Error::input(format!("{name} does not take ({}), only {wanted}", types.join(", ")));
    Err(DataFusionError::External(Box::new(error)))
}
