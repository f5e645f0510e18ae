//! Our aggregates ([`entasis_functions::aggregates`]) as DataFusion's binder sees them.

use arrow_schema::DataType as ArrowType;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use entasis_arrow::{from_arrow_type, to_arrow_type};
use entasis_functions::aggregates::{Kind, aggregates};
use entasis_vector::{DataType, Error, Result};
use std::sync::Arc;

/// All of our aggregates under each of their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Arc<AggregateUDF>)> {
    aggregates().map(|(name, kind)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        (name, Arc::new(AggregateUDF::from(Aggregate { name, kind, signature })))
    })
}

/// An aggregate in the binder.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Aggregate {
    name: &'static str,
    pub(crate) kind: Kind,
    signature: Signature,
}

impl Aggregate {
    fn bind(&self, args: &[ArrowType]) -> DfResult<(Vec<DataType>, DataType)> {
        let types = args.iter().map(from_arrow_type).collect::<Result<Vec<_>>>();
        let bound = types.and_then(|types| {
            self.kind.types(&types).map_err(|_| {
                let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                Error::input(format!("{} does not take ({})", self.name, types.join(", ")))
            })
        });
        bound.map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        // Lowering casts to types that the binder's library does not know; arguments that do not match are
        // refused when the type of the result is determined.
        Ok(args.to_vec())
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        self.bind(args).map(|(_, result)| to_arrow_type(result))
    }

    fn supports_null_handling_clause(&self) -> bool {
        matches!(self.kind, Kind::First | Kind::Last)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Err(DataFusionError::Internal(format!("{} is lowered, not accumulated", self.name)))
    }
}
