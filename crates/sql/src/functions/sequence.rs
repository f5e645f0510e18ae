//! `nextval` and `currval`: functions that depend not on the row, but on a sequence in the catalog.
//!
//! The binder resolves functions by name alone, so a call passes through it under a name that contains the
//! sequence's (`nextval('s')` becomes `"…nextval:s"()`, see `crate::rewrite`), and this name resolves to a
//! function that refers to the sequence. It is volatile: the engine computes it again for every row, and
//! never moves it.

use crate::error::external;
use crate::hidden::MARK;
use arrow_array::Int64Array;
use arrow_schema::DataType as ArrowType;
use datafusion_common::{Result as DfResult, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use entasis_binder::environment::{Catalog, Sequence};
use entasis_syntax::sequence_call::Kind;
use entasis_vector::Error;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The name under which a call for a sequence passes through the binder.
pub(crate) fn call(kind: Kind, sequence: &str) -> String {
    format!("{MARK}{}:{}", kind.name(), sequence.to_ascii_lowercase())
}

/// The call for such a name.
pub(crate) fn call_in(name: &str) -> Option<(Kind, &str)> {
    let (kind, sequence) = name.strip_prefix(MARK)?.split_once(':')?;
    Some((Kind::of(kind)?, sequence))
}

/// The function for a sequence; if there is none of that name, one to which nothing can be bound.
pub(crate) fn udf(
    kind: Kind,
    name: &str,
    sequence: Option<Arc<dyn Sequence>>,
    catalog: &dyn Catalog,
) -> Arc<ScalarUDF> {
    let missing = sequence.is_none().then(|| {
        let what = if catalog.table(name).is_some() { " but a table" } else { "" };
        Error::input(format!("there is no sequence {}{what}", entasis_vector::name::shown(name)))
    });
    let signature = Signature::nullary(Volatility::Volatile);
    Arc::new(ScalarUDF::from(Call { kind, name: call(kind, name), sequence, missing, signature }))
}

#[derive(Debug)]
struct Call {
    kind: Kind,
    name: String,
    sequence: Option<Arc<dyn Sequence>>,
    missing: Option<Error>,
    signature: Signature,
}

// The name contains the kind and the sequence; a statement sees only one catalog.
impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        self.name == other.name
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> DfResult<ArrowType> {
        match &self.missing {
            Some(error) => Err(external(error.clone())),
            None => Ok(ArrowType::Int64),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let Some(sequence) = &self.sequence else {
            return Err(external(Error::internal("a sequence is missing")));
        };
        match self.kind {
            Kind::Current => {
                let value = sequence.current().map_err(external)?;
                Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value))))
            }
            Kind::Next => {
                let values = (0..args.number_rows).map(|_| sequence.next().map_err(external));
                Ok(ColumnarValue::Array(Arc::new(Int64Array::from(values.collect::<DfResult<Vec<i64>>>()?))))
            }
        }
    }
}
