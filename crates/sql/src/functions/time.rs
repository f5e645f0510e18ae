//! Functions of time ([`entasis_functions::TimeFunction`]) as DataFusion's binder sees them.

use crate::error::external;
use arrow_schema::DataType as ArrowType;
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use entasis_arrow::{from_arrow_type, to_arrow_type};
use entasis_functions::{Stability, TimeFunction};
use entasis_vector::{DataType, Result};
use std::sync::Arc;

/// All of them under each of their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Arc<ScalarUDF>)> {
    entasis_functions::time_functions().map(|function| {
        let volatility = match function.stability() {
            Stability::Immutable => Volatility::Immutable,
            Stability::Stable => Volatility::Stable,
            Stability::Volatile => Volatility::Volatile,
        };
        // A function without arguments cannot have a user-defined signature.
        let signature = match function.is_nullary() {
            true => Signature::nullary(volatility),
            false => Signature::user_defined(volatility),
        };
        (function.name(), Arc::new(ScalarUDF::from(TimeUdf { function, signature })))
    })
}

/// A function in the binder.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeUdf {
    pub(crate) function: TimeFunction,
    signature: Signature,
}

impl TimeUdf {
    /// The overload nearest to these types.
    fn overload(&self, args: &[ArrowType]) -> DfResult<(&'static [DataType], DataType)> {
        let given = args.iter().map(from_arrow_type).collect::<Result<Vec<_>>>();
        given.and_then(|given| self.function.overload(&given)).copied().map_err(external)
    }
}

impl ScalarUDFImpl for TimeUdf {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        // Errors are reported with the type of the result: here, the binder would add words of its own.
        Ok(match self.overload(args) {
            Ok((types, _)) => types.iter().map(|ty| to_arrow_type(*ty)).collect(),
            Err(_) => args.to_vec(),
        })
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(to_arrow_type(self.overload(args)?.1))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} is lowered, not invoked", self.name())))
    }
}
