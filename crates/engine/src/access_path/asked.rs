//! What scans ask of a key, for those who weigh layouts: the bounds that their filters give the key's
//! columns, as values. Nothing is read.

use super::{Bounds, Condition, condition};
use crate::plan::Scan;
use crate::pruning::Comparison;
use crate::scan_predicates::Question;
use entasis_storage::Datum;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Schema, Value};
use std::ops::Bound;

/// The bounds of a key. A bound has values for the first columns of the key, and stands for all keys that
/// begin with these.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The least keys that are asked for.
    pub low: Bound<Vec<Value>>,
    /// The greatest ones.
    pub high: Bound<Vec<Value>>,
    /// True if all columns of the key have to be equal to values.
    pub is_point: bool,
}

/// What a scan asks; `None` if it reads no stored table.
pub fn question_of(scan: &Scan) -> Option<Question> {
    let schema = scan.relation.table()?.schema();
    let mut conjuncts: Vec<Expr> = Vec::new();
    scan.filters.iter().for_each(|filter| filter.clone().split_conjunction(&mut conjuncts));
    let place = |id: ColumnId| scan.columns.iter().find(|(column, _)| *column == id).map(|(_, index)| *index);
    let conditions: Vec<Condition<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(number, conjunct)| condition(number, conjunct, schema, &place))
        .collect();
    Some(question(&conditions, schema))
}

/// Conditions of a scan as a question.
pub(super) fn question(conditions: &[Condition<'_>], schema: &Schema) -> Question {
    let owned = |own: &Condition<'_>| {
        let ty = schema[own.column].ty;
        Comparison { column: own.column, op: own.op, value: own.value.value(ty), ty }
    };
    Question { comparisons: conditions.iter().map(owned).collect() }
}

/// What a question asks of the key with these columns of a table with this schema; `None` if it does not
/// bound the key.
pub fn asked_of(question: &Question, key: &[usize], schema: &Schema) -> Option<Asked> {
    let comparisons = question.comparisons.iter().enumerate();
    let conditions: Vec<Condition<'_>> = comparisons
        .map(|(conjunct, own)| Condition {
            column: own.column,
            op: own.op,
            value: Datum::of_value(&own.value, own.ty),
            conjunct,
        })
        .collect();
    let bounds = Bounds::of(key, &conditions, schema)?;
    let values = |bound: &Bound<Vec<Datum<'_>>>| {
        bound.as_ref().map(|datums| {
            let typed = datums.iter().zip(key);
            typed.map(|(datum, &column)| datum.value(schema[column].ty)).collect::<Vec<_>>()
        })
    };
    let (low, high) = (values(&bounds.low), values(&bounds.high));
    let is_point = matches!(&low, Bound::Included(low) if low.len() == key.len()) && low == high;
    Some(Asked { low, high, is_point })
}
