//! A catalog function as DataFusion's binder sees it: a name, argument types and a result type. It is lowered
//! to a [`Call`](entasis_functions::catalog::call::Call), never invoked.

use crate::error::external;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature as DfSignature,
    Volatility,
};
use entasis_arrow::{from_arrow_type, to_arrow_type};
use entasis_functions::definition::types::resolve;
use entasis_functions::definition::{Body, Definition, Overload, Signature};
use entasis_vector::{DataType, Result, Value};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A function of the catalog under one of its names.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) definition: &'static Definition,
    signature: DfSignature,
}

/// The binder's view.
pub(crate) fn udf(name: &'static str, definition: &'static Definition) -> Arc<ScalarUDF> {
    // The binder uses a user-defined signature only if there are arguments.
    let is_nullary = |overload: &Overload| overload.args.is_empty() && overload.rest.is_none();
    let signature = match definition.body {
        Body::Overloads(overloads) if overloads.iter().all(is_nullary) => {
            DfSignature::nullary(Volatility::Immutable)
        }
        _ => DfSignature::user_defined(Volatility::Immutable),
    };
    Arc::new(ScalarUDF::from(Function { name, definition, signature }))
}

impl Function {
    /// The signature for arguments of these types.
    ///
    /// # Errors
    /// Input, if there is none that matches.
    pub(crate) fn resolve(&self, types: &[DataType], constants: &[Option<Value>]) -> Result<Signature> {
        resolve(self.name, self.definition, types, constants)
    }

    fn bind(&self, types: &[ArrowType], constants: &[Option<Value>]) -> DfResult<Signature> {
        let types = types.iter().map(from_arrow_type).collect::<Result<Vec<_>>>();
        types.and_then(|types| self.resolve(&types, constants)).map_err(external)
    }
}

/// A constant integer or text.
fn constant(scalar: &ScalarValue) -> Option<Value> {
    match scalar {
        ScalarValue::Int64(v) => v.map(|v| Value::Integer(v.into())),
        ScalarValue::Int32(v) => v.map(|v| Value::Integer(v.into())),
        ScalarValue::Utf8(v) | ScalarValue::Utf8View(v) => v.as_deref().map(|v| Value::Text(v.into())),
        _ => None,
    }
}

// A name has only one definition.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &DfSignature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        // Lowering casts to types that the binder's library does not know; arguments that do not match are
        // refused when the type of the result is determined.
        Ok(args.to_vec())
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(to_arrow_type(self.bind(args, &vec![None; args.len()])?.result))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let constants: Vec<Option<Value>> =
            args.scalar_arguments.iter().map(|scalar| scalar.and_then(constant)).collect();
        Ok(Arc::new(Field::new(self.name, to_arrow_type(self.bind(&types, &constants)?.result), true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} is lowered, not invoked", self.name)))
    }
}
