//! An aggregate in a subquery that belongs to an enclosing query, as the binder sees it: two functions made
//! for it, under names that contain its number.
//!
//! * **The value**, in the subquery: a function of the aggregate's arguments, of the aggregate's type.
//! * **The mark**, in the `HAVING` of the query that computes the aggregate: a function of the aggregate
//!   itself, which is always true.
//!
//! Neither is computed. Lowering the mark tells which column the aggregate is, and the value is lowered to
//! that column ([`crate::lower`]). [`crate::rewrite`] inserts them.

use super::library::Library;
use crate::error::external;
use crate::hidden::MARK;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use entasis_vector::Error;
use std::sync::Arc;

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OuterAggregate {
    /// The name by which the binder knows it.
    name: String,
    /// The number of the aggregate in the statement.
    pub(crate) number: usize,
    /// The aggregate's function, if this is the value.
    pub(crate) function: Option<String>,
    signature: Signature,
}

/// The name of the value for an aggregate.
pub(crate) fn value_name(number: usize, function: &str) -> String {
    format!("{MARK}outer:{number}:{function}")
}

/// The name of the mark.
pub(crate) fn mark_name(number: usize) -> String {
    format!("{MARK}outer:{number}")
}

/// The function of this name.
pub(crate) fn named(name: &str) -> Option<Arc<ScalarUDF>> {
    let rest = name.strip_prefix(MARK)?.strip_prefix("outer:")?;
    let (number, function) = match rest.split_once(':') {
        Some((number, function)) => (number, Some(function.to_owned())),
        None => (rest, None),
    };
    let number = number.parse().ok()?;
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(Arc::new(ScalarUDF::from(OuterAggregate { name: name.to_owned(), number, function, signature })))
}

impl OuterAggregate {
    /// The types of the aggregate's arguments, and that of its result.
    fn types(&self, args: &[ArrowType]) -> DfResult<(Vec<ArrowType>, ArrowType)> {
        let Some(name) = &self.function else { return Ok((args.to_vec(), ArrowType::Boolean)) };
        let aggregate = Library::get().aggregate(name);
        let aggregate =
            aggregate.ok_or_else(|| external(Error::internal(format!("{name} is no aggregate"))))?;
        let field = |ty: &ArrowType| Arc::new(Field::new("value", ty.clone(), true)) as FieldRef;
        let given: Vec<FieldRef> = args.iter().map(field).collect();
        let fields = fields_with_udf(&given, aggregate.as_ref())?;
        let result = aggregate.return_field(&fields)?.data_type().clone();
        Ok((fields.iter().map(|field| field.data_type().clone()).collect(), result))
    }
}

impl ScalarUDFImpl for OuterAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        Ok(self.types(args)?.0)
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(self.types(args)?.1)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} is lowered, not invoked", self.name)))
    }
}
