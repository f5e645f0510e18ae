//! A call of a window function, as the binder sees it: a function made for this call, under a name that
//! contains its number.
//!
//! Its arguments are those of the call, then the offsets of its frame, the keys of the order in which rows
//! reach an aggregate, and the condition of its `FILTER`. Types are those of the called function; lowering
//! turns it into the engine's call ([`crate::lower`]).

use super::library::Library;
use crate::error::{external, type_name};
use crate::hidden::MARK;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::type_coercion::binary::type_union_resolution;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use entasis_vector::Error;
use std::sync::Arc;

/// The properties of a call, without its expressions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WindowCall {
    /// The function, in lower case.
    pub(crate) name: String,
    /// Number of arguments that are the call's own.
    pub(crate) args: usize,
    /// `f(DISTINCT …)`
    pub(crate) distinct: bool,
    /// `IGNORE NULLS`
    pub(crate) ignore_nulls: bool,
    /// The frame, if one is written.
    pub(crate) frame: Option<Frame>,
    /// For each key of the order within the call: whether it is descending, and whether NULLs come first.
    pub(crate) order: Vec<(bool, bool)>,
    /// Whether there is a `FILTER`.
    pub(crate) has_filter: bool,
}

/// A frame, without its offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) units: Units,
    pub(crate) start: End,
    pub(crate) end: End,
    pub(crate) exclude: Exclude,
}

/// The units in which a frame counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Units {
    Rows,
    Range,
    Groups,
}

/// An end of a frame. `Preceding` and `Following` have an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    UnboundedPreceding,
    Preceding,
    CurrentRow,
    Following,
    UnboundedFollowing,
}

/// The rows that a frame excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Exclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// The name under which the call of this number passes through the binder.
pub(crate) fn call_name(number: usize) -> String {
    format!("{MARK}window:{number}")
}

/// The number of the call with this name.
pub(crate) fn number_in(name: &str) -> Option<usize> {
    name.strip_prefix(MARK)?.strip_prefix("window:")?.parse().ok()
}

/// A call in the binder.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    name: String,
    pub(crate) call: WindowCall,
    signature: Signature,
}

/// The function for the call of this number.
pub(crate) fn function(number: usize, call: WindowCall) -> Arc<WindowUDF> {
    let all = call.args
        + call.order.len()
        + usize::from(call.has_filter)
        + call.frame.map_or(0, |frame| frame.offsets());
    let signature = match all {
        0 => Signature::nullary(Volatility::Immutable),
        _ => Signature::user_defined(Volatility::Immutable),
    };
    Arc::new(WindowUDF::from(Function { name: call_name(number), call, signature }))
}

impl Frame {
    /// The number of ends that have an offset.
    fn offsets(self) -> usize {
        [self.start, self.end]
            .into_iter()
            .filter(|end| matches!(end, End::Preceding | End::Following))
            .count()
    }
}

impl Function {
    /// The types of the call's own arguments, and that of its result.
    fn types(&self, args: &[ArrowType]) -> DfResult<(Vec<ArrowType>, ArrowType)> {
        let name = self.call.name.as_str();
        let takes = |wanted: &str| {
            let given: Vec<String> = args.iter().map(type_name).collect();
            external(Error::input(format!("{name} does not take ({}), only {wanted}", given.join(", "))))
        };
        let integer = |ty: &ArrowType| ty.is_integer() || ty.is_null();
        Ok(match (name, args) {
            ("row_number" | "rank" | "dense_rank", []) => (vec![], ArrowType::Int64),
            ("percent_rank" | "cume_dist", []) => (vec![], ArrowType::Float64),
            ("row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist", _) => {
                return Err(takes("no arguments"));
            }
            ("ntile", [count]) if integer(count) => (vec![ArrowType::Int64], ArrowType::Int64),
            ("ntile", _) => return Err(takes("a number of buckets")),
            ("lag" | "lead", [value]) => (vec![value.clone()], value.clone()),
            ("lag" | "lead", [value, offset]) if integer(offset) => {
                (vec![value.clone(), ArrowType::Int64], value.clone())
            }
            ("lag" | "lead", [value, offset, default]) if integer(offset) => {
                let common = match (value.is_string(), default.is_string()) {
                    // A text with a value of another type is converted to that type.
                    (false, true) if !value.is_null() => Some(value.clone()),
                    _ => type_union_resolution(&[value.clone(), default.clone()]),
                };
                let common =
                    common.ok_or_else(|| takes("a value, an offset and a default of the value's type"))?;
                (vec![common.clone(), ArrowType::Int64, common.clone()], common)
            }
            ("lag" | "lead", _) => return Err(takes("a value, an offset and a default")),
            ("first_value" | "last_value", [value]) => (vec![value.clone()], value.clone()),
            ("first_value" | "last_value", _) => return Err(takes("one value")),
            ("nth_value", [value, number]) if integer(number) => {
                (vec![value.clone(), ArrowType::Int64], value.clone())
            }
            ("nth_value", _) => return Err(takes("a value and the number of a row")),
            ("count", []) => (vec![], ArrowType::Int64),
            _ => {
                let aggregate = Library::get().aggregate(name);
                let aggregate =
                    aggregate.ok_or_else(|| external(Error::internal(format!("{name} is no aggregate"))))?;
                let given: Vec<FieldRef> = args.iter().map(|ty| field(ty.clone())).collect();
                let fields = fields_with_udf(&given, aggregate.as_ref())?;
                let result = aggregate.return_field(&fields)?.data_type().clone();
                (fields.iter().map(|field| field.data_type().clone()).collect(), result)
            }
        })
    }
}

fn field(ty: ArrowType) -> FieldRef {
    Arc::new(Field::new("value", ty, true))
}

impl WindowUDFImpl for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        let (own, rest) = args.split_at(self.call.args.min(args.len()));
        let (mut types, _) = self.types(own)?;
        types.extend_from_slice(rest);
        Ok(types)
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> DfResult<FieldRef> {
        let fields = args.input_fields().iter().take(self.call.args);
        let types: Vec<ArrowType> = fields.map(|field| field.data_type().clone()).collect();
        let (_, result) = self.types(&types)?;
        Ok(Arc::new(Field::new(args.name(), result, true)))
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs<'_>) -> DfResult<Box<dyn PartitionEvaluator>> {
        Err(DataFusionError::Internal("window functions are lowered, not evaluated".into()))
    }
}
