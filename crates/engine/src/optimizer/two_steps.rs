//! Aggregate functions in two steps: of the parts of a group, and of the results of its parts.

use crate::plan::{AggregateCall, AggregateFunction};
use entasis_vector::DataType;

/// The functions, and the type in between, that give in two steps what `call` gives in one. Counts become
/// sums, which are NULL and not 0 where there is no part. A call with an order has one step.
pub(super) fn in_two_steps(call: &AggregateCall) -> Option<(AggregateFunction, AggregateFunction, DataType)> {
    use AggregateFunction as F;
    if !call.order_by.is_empty() {
        return None;
    }
    let function = call.function.clone();
    let between = match function {
        F::Count | F::CountStar => return Some((function, F::Sum, DataType::Int64)),
        // Whether the whole sum fits is not for its parts to say.
        F::Sum if call.ty.is_integer() => DataType::Decimal { precision: 38, scale: 0 },
        F::Sum | F::Min | F::Max | F::BoolAnd | F::BoolOr => call.ty,
        F::AnyValue => call.ty,
        F::Avg | F::External(_) => return None,
    };
    Some((function.clone(), function, between))
}
