//! Zone tests: conditions that bounds can decide, tested against the zone of a block or row group before it
//! is read, or when a query is planned.

use entasis_storage::Zone;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};
use std::cmp::Ordering;

/// A necessary condition for a block to have a row that passes a filter. Columns are indexes in the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ZoneTest {
    /// Some value has the relation `op` to a constant, which is not NULL.
    Compare(usize, CompareOp, Value),
    /// Some value is in this list.
    In(usize, Vec<Value>),
    /// Some value is NULL.
    IsNull(usize),
    /// Some value is not NULL.
    NotNull(usize),
    /// All of these hold.
    All(Vec<ZoneTest>),
    /// One of these holds.
    Any(Vec<ZoneTest>),
}

impl ZoneTest {
    /// The condition that `filter` sets on bounds, if any; `place` finds a column's index in the table.
    pub(crate) fn of(filter: &Expr, place: &impl Fn(ColumnId) -> Option<usize>) -> Option<ZoneTest> {
        // The bounds of UUIDs are in the order of signed numbers, not of bytes.
        let column = |expr: &Expr| match expr {
            Expr::Column { id, ty } if *ty != DataType::Uuid => place(*id),
            _ => None,
        };
        let value = |expr: &Expr| match expr {
            Expr::Literal { value, .. } => Some(value.clone()),
            _ => None,
        };
        match filter {
            Expr::Compare { op, left, right } => {
                let (op, column, value) = match (column(left), column(right)) {
                    (Some(c), _) => (*op, c, value(right)?),
                    (_, Some(c)) => (op.mirrored(), c, value(left)?),
                    _ => return None,
                };
                let known = !matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom);
                (known && !value.is_null()).then_some(ZoneTest::Compare(column, op, value))
            }
            Expr::InList { input, list } => {
                let values = list.iter().filter(|value| !value.is_null()).cloned().collect();
                Some(ZoneTest::In(column(input)?, values))
            }
            Expr::IsNull(input) => Some(ZoneTest::IsNull(column(input)?)),
            Expr::Not(inner) => match &**inner {
                Expr::IsNull(input) => Some(ZoneTest::NotNull(column(input)?)),
                _ => None,
            },
            Expr::And(parts) => {
                let tests: Vec<ZoneTest> =
                    parts.iter().filter_map(|part| ZoneTest::of(part, place)).collect();
                (!tests.is_empty()).then_some(ZoneTest::All(tests))
            }
            Expr::Or(parts) => Some(ZoneTest::Any(
                parts.iter().map(|part| ZoneTest::of(part, place)).collect::<Option<_>>()?,
            )),
            _ => None,
        }
    }

    /// False if no row of the zones can pass. `zone` yields a column's bounds.
    pub(crate) fn may_pass<'z>(&self, zone: &impl Fn(usize) -> &'z Zone) -> bool {
        match self {
            ZoneTest::Compare(column, op, value) => {
                let zone = zone(*column);
                if zone.min.is_null() {
                    return false;
                }
                let (min, max) = (zone.min.total_cmp(value), zone.max.total_cmp(value));
                match op {
                    CompareOp::Eq => min != Ordering::Greater && max != Ordering::Less,
                    CompareOp::NotEq => min != Ordering::Equal || max != Ordering::Equal,
                    CompareOp::Lt => min == Ordering::Less,
                    CompareOp::LtEq => min != Ordering::Greater,
                    CompareOp::Gt => max == Ordering::Greater,
                    CompareOp::GtEq => max != Ordering::Less,
                    CompareOp::DistinctFrom | CompareOp::NotDistinctFrom => true,
                }
            }
            ZoneTest::In(column, values) => {
                let zone = zone(*column);
                let within =
                    |value: &Value| zone.min.total_cmp(value).is_le() && zone.max.total_cmp(value).is_ge();
                !zone.min.is_null() && values.iter().any(within)
            }
            ZoneTest::IsNull(column) => zone(*column).nulls > 0,
            ZoneTest::NotNull(column) => !zone(*column).min.is_null(),
            ZoneTest::All(tests) => tests.iter().all(|test| test.may_pass(zone)),
            ZoneTest::Any(tests) => tests.iter().any(|test| test.may_pass(zone)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_skipped_only_if_no_value_of_it_passes() {
        let column = |_| Some(0);
        let number = |v: i128| Expr::literal(Value::Integer(v), DataType::Int64);
        let x = || Expr::column(ColumnId(0), DataType::Int64);
        let ops =
            [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
        for (min, max) in [(3, 3), (2, 5), (-1, 9)] {
            let zone = Zone { min: Value::Integer(min), max: Value::Integer(max), nulls: 0 };
            for constant in -3..12 {
                for op in ops {
                    let passes = |v: i128| match op {
                        CompareOp::Eq => v == constant,
                        CompareOp::NotEq => v != constant,
                        CompareOp::Lt => v < constant,
                        CompareOp::LtEq => v <= constant,
                        CompareOp::Gt => v > constant,
                        _ => v >= constant,
                    };
                    let some = (min..=max).any(passes);
                    for filter in [
                        Expr::compare(op, x(), number(constant)),
                        Expr::compare(op.mirrored(), number(constant), x()),
                    ] {
                        let test = ZoneTest::of(&filter, &column).unwrap();
                        assert_eq!(test.may_pass(&|_| &zone), some, "{min}..{max} {op:?} {constant}");
                    }
                }
            }
        }
    }

    #[test]
    fn zones_of_nulls_only_pass_is_null() {
        let zone = Zone { nulls: 4, ..Zone::EMPTY };
        let pass = |test: ZoneTest| test.may_pass(&|_| &zone);
        assert!(pass(ZoneTest::IsNull(0)) && !pass(ZoneTest::NotNull(0)));
        assert!(!pass(ZoneTest::Compare(0, CompareOp::NotEq, Value::Integer(1))));
        assert!(!pass(ZoneTest::In(0, vec![Value::Integer(1)])));
    }
}
