//! What a scan asks of a key, for those who weigh layouts: the bounds that its filters give the key's
//! columns, as values. Nothing is read.

use super::{Bounds, Condition, condition};
use crate::plan::Scan;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Value};
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

/// What a scan of a stored table asks of the key with these columns; `None` if it does not bound the key, or
/// reads no stored table.
pub fn asked_of(scan: &Scan, key: &[usize]) -> Option<Asked> {
    let table = scan.relation.table()?;
    let mut conjuncts: Vec<Expr> = Vec::new();
    scan.filters.iter().for_each(|filter| filter.clone().split_conjunction(&mut conjuncts));
    let place = |id: ColumnId| scan.columns.iter().find(|(column, _)| *column == id).map(|(_, index)| *index);
    let conditions: Vec<Condition<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(number, conjunct)| condition(number, conjunct, table, &place))
        .collect();
    let bounds = Bounds::of(key, &conditions, table)?;
    let values = |bound: &Bound<Vec<entasis_storage::Datum<'_>>>| {
        bound.as_ref().map(|datums| {
            let typed = datums.iter().zip(key);
            typed.map(|(datum, &column)| datum.value(table.schema()[column].ty)).collect::<Vec<_>>()
        })
    };
    let (low, high) = (values(&bounds.low), values(&bounds.high));
    let is_point = matches!(&low, Bound::Included(low) if low.len() == key.len()) && low == high;
    Some(Asked { low, high, is_point })
}
