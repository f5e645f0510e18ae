//! Pruning: which rows need not be read, because bounds of their columns rule a condition out.
//!
//! A [`PruningPredicate`] is what a condition asks of bounds: a necessary condition for a row to satisfy it.
//! Blocks and row groups of tables are tested against their zones, row groups and pages of files against
//! their statistics, and plans are estimated by the same tests. The answer is conservative: "no" means that
//! no row satisfies the condition, "yes" means nothing.
//!
//! Not here: which slots the layout key or an index gives ([`crate::access_path`]), and how many rows will
//! pass ([`crate::estimate`]).

use entasis_storage::Zone;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Value};

/// A column of a relation, compared with a constant of its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The index of the column.
    pub column: usize,
    /// The operator, with the column on its left.
    pub op: CompareOp,
    /// The constant; it is not NULL.
    pub value: Value,
    /// Its type, and the column's.
    pub ty: DataType,
}

/// A necessary condition for some rows to have one that passes a filter. Columns are indexes in the relation.
#[derive(Debug, Clone, PartialEq)]
pub enum PruningPredicate {
    /// Some value satisfies the comparison.
    Compare(Comparison),
    /// Some value is in the list, which has no NULL.
    In(usize, DataType, Vec<Value>),
    /// Some value is NULL.
    IsNull(usize),
    /// Some value is not NULL.
    NotNull(usize),
    /// All of these hold.
    All(Vec<PruningPredicate>),
    /// One of these holds; if there are none, no row passes.
    Any(Vec<PruningPredicate>),
}

/// How many values of some rows are NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// None.
    No,
    /// Some, perhaps all.
    Some,
    /// All.
    All,
    /// It is not known.
    Unknown,
}

/// What is known of the values that a column has in some rows.
#[derive(Debug, Clone, Copy)]
pub struct KnownBounds<'a> {
    /// A lower bound of the values, if one is known.
    pub min: Option<&'a Value>,
    /// An upper bound of the values, if one is known.
    pub max: Option<&'a Value>,
    /// True if a NaN, which is greater than all numbers, counts for the upper bound.
    pub max_has_nan: bool,
    /// The NULLs.
    pub nulls: Nulls,
}

impl<'a> From<&'a Zone> for KnownBounds<'a> {
    fn from(zone: &'a Zone) -> KnownBounds<'a> {
        let nulls = match zone.nulls {
            _ if zone.min.is_null() => Nulls::All,
            0 => Nulls::No,
            _ => Nulls::Some,
        };
        KnownBounds { min: Some(&zone.min), max: Some(&zone.max), max_has_nan: true, nulls }
    }
}

impl KnownBounds<'_> {
    /// False if no value satisfies a comparison with `value`, which is not NULL.
    fn may_hold(&self, op: CompareOp, value: &Value, ty: DataType) -> bool {
        if self.nulls == Nulls::All {
            return false;
        }
        let min = self.min.map(|min| min.total_cmp(value));
        let is_bound = self.max_has_nan || !ty.is_float();
        let max = self.max.filter(|_| is_bound).map(|max| max.total_cmp(value));
        match op {
            CompareOp::Eq => min.is_none_or(|min| min.is_le()) && max.is_none_or(|max| max.is_ge()),
            CompareOp::NotEq => min.is_none_or(|min| min.is_ne()) || max.is_none_or(|max| max.is_ne()),
            CompareOp::Lt => min.is_none_or(|min| min.is_lt()),
            CompareOp::LtEq => min.is_none_or(|min| min.is_le()),
            CompareOp::Gt => max.is_none_or(|max| max.is_gt()),
            CompareOp::GtEq => max.is_none_or(|max| max.is_ge()),
            CompareOp::DistinctFrom | CompareOp::NotDistinctFrom => true,
        }
    }
}

impl Comparison {
    /// False if no value within the bounds satisfies it.
    pub fn may_hold(&self, known: KnownBounds<'_>) -> bool {
        known.may_hold(self.op, &self.value, self.ty)
    }
}

impl PruningPredicate {
    /// What `filter` asks of bounds, if anything; `place` finds the index of a column.
    pub fn of(filter: &Expr, place: &impl Fn(ColumnId) -> Option<usize>) -> Option<PruningPredicate> {
        // The bounds of UUIDs are in the order of signed numbers, not of bytes.
        let ordered = |expr: &Expr| match expr {
            Expr::Column { id, ty } if *ty != DataType::Uuid => Some((place(*id)?, *ty)),
            _ => None,
        };
        let column = |expr: &Expr| match expr {
            Expr::Column { id, .. } => place(*id),
            _ => None,
        };
        let value = |expr: &Expr| match expr {
            Expr::Literal { value, .. } => Some(value.clone()),
            _ => None,
        };
        match filter {
            Expr::Compare { op: CompareOp::DistinctFrom | CompareOp::NotDistinctFrom, .. } => None,
            Expr::Compare { op, left, right } => {
                let (op, (column, ty), value) = match (ordered(left), ordered(right)) {
                    (Some(found), _) => (*op, found, value(right)?),
                    (_, Some(found)) => (op.mirrored(), found, value(left)?),
                    _ => return None,
                };
                Some(match value {
                    // Nothing has any relation to NULL.
                    Value::Null => PruningPredicate::never(),
                    value => PruningPredicate::Compare(Comparison { column, op, value, ty }),
                })
            }
            Expr::InList { input, list } => {
                let values = list.iter().filter(|value| !value.is_null()).cloned().collect();
                let (column, ty) = ordered(input)?;
                Some(PruningPredicate::In(column, ty, values))
            }
            Expr::IsNull(input) => Some(PruningPredicate::IsNull(column(input)?)),
            Expr::Not(inner) => match &**inner {
                Expr::IsNull(input) => Some(PruningPredicate::NotNull(column(input)?)),
                _ => None,
            },
            Expr::Literal { value, .. } => (*value != Value::Boolean(true)).then(PruningPredicate::never),
            Expr::And(parts) => {
                let parts: Vec<PruningPredicate> =
                    parts.iter().filter_map(|part| PruningPredicate::of(part, place)).collect();
                (!parts.is_empty()).then_some(PruningPredicate::All(parts))
            }
            Expr::Or(parts) => Some(PruningPredicate::Any(
                parts.iter().map(|part| PruningPredicate::of(part, place)).collect::<Option<_>>()?,
            )),
            _ => None,
        }
    }

    /// That which no row passes.
    fn never() -> PruningPredicate {
        PruningPredicate::Any(Vec::new())
    }

    /// False if no row can pass. `known` says what is known of a column in these rows.
    pub fn may_pass<'k>(&self, known: &impl Fn(usize) -> Option<KnownBounds<'k>>) -> bool {
        let nulls = |column: usize| known(column).map_or(Nulls::Unknown, |known| known.nulls);
        match self {
            PruningPredicate::Compare(comparison) => {
                known(comparison.column).is_none_or(|known| comparison.may_hold(known))
            }
            PruningPredicate::In(column, ty, values) => known(*column)
                .is_none_or(|known| values.iter().any(|value| known.may_hold(CompareOp::Eq, value, *ty))),
            PruningPredicate::IsNull(column) => nulls(*column) != Nulls::No,
            PruningPredicate::NotNull(column) => nulls(*column) != Nulls::All,
            PruningPredicate::All(parts) => parts.iter().all(|part| part.may_pass(known)),
            PruningPredicate::Any(parts) => parts.iter().any(|part| part.may_pass(known)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

    fn number(v: i128) -> Expr {
        Expr::literal(Value::Integer(v), DataType::Int64)
    }

    fn x() -> Expr {
        Expr::column(ColumnId(0), DataType::Int64)
    }

    fn may_pass(filter: &Expr, known: KnownBounds<'_>) -> bool {
        PruningPredicate::of(filter, &|_| Some(0)).is_none_or(|test| test.may_pass(&|_| Some(known)))
    }

    #[test]
    fn rows_are_skipped_only_if_no_value_of_them_passes() {
        for (min, max) in [(3, 3), (2, 5), (-1, 9)] {
            let zone = Zone { min: Value::Integer(min), max: Value::Integer(max), nulls: 0 };
            let passes = |filter: &Expr| may_pass(filter, KnownBounds::from(&zone));
            for constant in -3..12 {
                let is_one = |op, v: i128| match op {
                    CompareOp::Eq => v == constant,
                    CompareOp::NotEq => v != constant,
                    CompareOp::Lt => v < constant,
                    CompareOp::LtEq => v <= constant,
                    CompareOp::Gt => v > constant,
                    _ => v >= constant,
                };
                for op in OPS {
                    let some = (min..=max).any(|v| is_one(op, v));
                    let filters = [
                        Expr::compare(op, x(), number(constant)),
                        Expr::compare(op.mirrored(), number(constant), x()),
                    ];
                    for filter in &filters {
                        assert_eq!(passes(filter), some, "{min}..{max} {op:?} {constant}");
                    }
                    let [left, right] = filters;
                    let never = Expr::literal(Value::Boolean(false), DataType::Boolean);
                    assert_eq!(passes(&Expr::And(vec![left.clone(), right])), some);
                    assert_eq!(passes(&Expr::Or(vec![left.clone(), never.clone()])), some);
                    assert!(!passes(&Expr::And(vec![left, never])));
                }
                let is_in = |list: &[i128]| {
                    let list = list.iter().map(|v| Value::Integer(*v)).chain([Value::Null]).collect();
                    passes(&Expr::InList { input: Box::new(x()), list })
                };
                assert_eq!(is_in(&[constant, 100]), (min..=max).contains(&constant));
            }
            assert!(!passes(&Expr::compare(
                CompareOp::NotEq,
                x(),
                Expr::literal(Value::Null, DataType::Int64)
            )));
            assert!(!passes(&Expr::Or(Vec::new())), "an empty disjunction is false");
        }
    }

    #[test]
    fn zones_of_nulls_pass_is_null_alone() {
        let is_null = Expr::IsNull(Box::new(x()));
        let filters =
            [is_null.clone(), Expr::Not(Box::new(is_null)), Expr::compare(CompareOp::NotEq, x(), number(1))];
        let five = Value::Integer(5);
        for (nulls, expected) in [
            (Nulls::All, [true, false, false]),
            (Nulls::Some, [true, true, true]),
            (Nulls::No, [false, true, true]),
            (Nulls::Unknown, [true, true, true]),
        ] {
            let known = KnownBounds { min: Some(&five), max: Some(&five), max_has_nan: true, nulls };
            assert_eq!(filters.each_ref().map(|filter| may_pass(filter, known)), expected, "{nulls:?}");
        }
        assert_eq!(KnownBounds::from(&Zone { nulls: 4, ..Zone::EMPTY }).nulls, Nulls::All);
    }

    #[test]
    fn what_is_not_known_may_be_anything() {
        let known = KnownBounds { min: None, max: None, max_has_nan: true, nulls: Nulls::Unknown };
        for op in OPS {
            assert!(may_pass(&Expr::compare(op, x(), number(3)), known));
            let test = PruningPredicate::of(&Expr::compare(op, x(), number(3)), &|_| Some(0)).unwrap();
            assert!(test.may_pass(&|_| None));
        }
        let uuid = Expr::column(ColumnId(0), DataType::Uuid);
        assert_eq!(PruningPredicate::of(&Expr::compare(CompareOp::Lt, uuid, number(3)), &|_| Some(0)), None);
    }

    #[test]
    fn a_nan_may_hide_above_the_bounds() {
        let (min, max) = (Value::Float(0.0), Value::Float(1.0));
        let column = Expr::column(ColumnId(0), DataType::Float64);
        let literal = |v: f64| Expr::literal(Value::Float(v), DataType::Float64);
        for max_has_nan in [false, true] {
            let known = KnownBounds { min: Some(&min), max: Some(&max), max_has_nan, nulls: Nulls::Unknown };
            let above = Expr::compare(CompareOp::Gt, column.clone(), literal(5.0));
            assert_eq!(may_pass(&above, known), !max_has_nan);
            assert!(!may_pass(&Expr::compare(CompareOp::Lt, column.clone(), literal(-5.0)), known));
        }
    }
}
