//! Filters that do not need the expression machine: a column of integers or floats compared with constants.
//!
//! Such conjuncts become one range of values per column, for floats a range of ordinals, which the storage
//! compares with the codes of blocks (`RowGroup::select_runs`). They cost a fraction of a nanosecond per row,
//! cannot fail, and run before all others. Other conjuncts are left to the machine, which is the slow twin
//! under `SET optimizer = off`.

use entasis_storage::ValueRange;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::value::{float_of_ordinal, float_ordinal};
use entasis_vector::{ColumnId, DataType, PhysicalType, Value};

/// Removes the conjuncts that are ranges from `conjuncts` and returns the ranges. `place` finds a column's
/// index in the table.
pub(super) fn take(conjuncts: &mut Vec<Expr>, place: &impl Fn(ColumnId) -> Option<usize>) -> Vec<ValueRange> {
    let mut ranges: Vec<ValueRange> = Vec::new();
    conjuncts.retain(|conjunct| {
        let Some(range) = range_of(conjunct, place) else { return true };
        match ranges.iter_mut().find(|other| other.column == range.column) {
            Some(other) => (other.low, other.high) = (other.low.max(range.low), other.high.min(range.high)),
            None => ranges.push(range),
        }
        false
    });
    ranges
}

fn range_of(conjunct: &Expr, place: &impl Fn(ColumnId) -> Option<usize>) -> Option<ValueRange> {
    let Expr::Compare { op, left, right } = conjunct else { return None };
    let (op, id, ty, value) = match (&**left, &**right) {
        (Expr::Column { id, ty }, Expr::Literal { value, .. }) => (*op, *id, *ty, value),
        (Expr::Literal { value, .. }, Expr::Column { id, ty }) => (op.mirrored(), *id, *ty, value),
        _ => return None,
    };
    let physical = ty.physical();
    let value = match *value {
        Value::Integer(v)
            if physical.is_integer() && physical != PhysicalType::Bool && ty != DataType::Boolean =>
        {
            v
        }
        Value::Float(v) if physical == PhysicalType::F64 => float_ordinal(v).into(),
        // Rounded as the column would hold it.
        Value::Float(v) if physical == PhysicalType::F32 => float_ordinal((v as f32).into()).into(),
        _ => return None,
    };
    let (low, high) = match op {
        CompareOp::Eq => (value, value),
        CompareOp::Lt => (i128::MIN, value.checked_sub(1)?),
        CompareOp::LtEq => (i128::MIN, value),
        CompareOp::Gt => (value.checked_add(1)?, i128::MAX),
        CompareOp::GtEq => (value, i128::MAX),
        CompareOp::NotEq | CompareOp::DistinctFrom | CompareOp::NotDistinctFrom => return None,
    };
    Some(ValueRange { column: place(id)?, physical, low, high })
}

/// A range as a line of `EXPLAIN (VERBOSE)`; numbers in their stored form.
pub(super) fn describe(name: &str, range: &ValueRange) -> String {
    let shown = |value: i128| match range.physical {
        PhysicalType::F32 | PhysicalType::F64 => format!("{:?}", float_of_ordinal(value as i64)),
        _ => value.to_string(),
    };
    match (range.low, range.high) {
        (i128::MIN, high) => format!("codes of {name} up to {}", shown(high)),
        (low, i128::MAX) => format!("codes of {name} from {}", shown(low)),
        (low, high) => format!("codes of {name} from {} to {}", shown(low), shown(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_one_column_meet() {
        let column = |id: u32| Expr::column(ColumnId(id), DataType::Int64);
        let number = |v: i128| Expr::literal(Value::Integer(v), DataType::Int64);
        let mut conjuncts = vec![
            Expr::compare(CompareOp::Gt, column(1), number(3)),
            Expr::compare(CompareOp::NotEq, column(1), number(5)),
            Expr::compare(CompareOp::GtEq, number(9), column(1)),
            Expr::compare(CompareOp::Lt, column(1), column(2)),
            Expr::compare(CompareOp::Eq, column(2), number(-1)),
            Expr::compare(CompareOp::Lt, column(3), Expr::literal(Value::Null, DataType::Int64)),
        ];
        let place = |id: ColumnId| Some(id.0 as usize + 10);
        let ranges = take(&mut conjuncts, &place);
        let bounds: Vec<_> = ranges.iter().map(|range| (range.column, range.low, range.high)).collect();
        assert_eq!(bounds, [(11, 4, 9), (12, -1, -1)]);
        assert_eq!(conjuncts.len(), 3);
    }

    #[test]
    fn floats_are_ranges_of_ordinals() {
        for ty in [DataType::Float64, DataType::Float32] {
            let column = || Expr::column(ColumnId(1), ty);
            let number = |v: f64| Expr::literal(Value::Float(v), ty);
            let mut conjuncts = vec![
                Expr::compare(CompareOp::GtEq, column(), number(-0.0)),
                Expr::compare(CompareOp::Lt, column(), number(f64::NAN)),
                Expr::compare(CompareOp::Gt, number(2.5), column()),
            ];
            let ranges = take(&mut conjuncts, &|id: ColumnId| Some(id.0 as usize));
            assert_eq!((ranges.len(), conjuncts.len()), (1, 0));
            assert_eq!((ranges[0].low, ranges[0].high), (0, i128::from(float_ordinal(2.5)) - 1));
            assert_eq!(describe("x", &ranges[0]), "codes of x from 0.0 to 2.4999999999999996");
        }
    }
}
