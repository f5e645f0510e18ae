//! `coalesce`, `greatest` and `least` as the binder sees them: functions of DataFusion's library with other
//! types. A text with a value of another type is converted to that type, as in comparisons.

use super::native::unified;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use entasis_vector::Error;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Unifying {
    library: Arc<ScalarUDF>,
    signature: Signature,
}

/// The names of the functions.
pub(crate) const NAMES: [&str; 3] = ["coalesce", "greatest", "least"];

/// A function of the library with these types.
pub(crate) fn unifying(library: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Unifying { library, signature }))
}

impl ScalarUDFImpl for Unifying {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        let common = unified(&args.iter().collect::<Vec<_>>()).ok_or_else(|| {
            let types: Vec<String> = args.iter().map(crate::error::type_name).collect();
            let error = Error::input(format!(
                "{} does not take ({}), only values of one type",
                self.name(),
                types.join(", ")
            ));
            DataFusionError::External(Box::new(error.with_hint("cast them: CAST(value AS type)")))
        })?;
        Ok(vec![common; args.len()])
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(unified(&args.iter().collect::<Vec<_>>()).unwrap_or(ArrowType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.library.invoke_with_args(args)
    }
}
