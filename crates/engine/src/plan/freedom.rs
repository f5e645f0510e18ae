//! What a rule may do with an expression. Every rule that computes an expression elsewhere, more often, less
//! often, or of other values asks here, and nowhere else.
//!
//! | question | asked by who | no, for |
//! |---|---|---|
//! | [`may_repeat`] | computes it again, or once where it is written twice, or moves it | volatile functions |
//! | [`may_move`] | computes it for rows that would not have come to it, or would have been dropped before | what is volatile or [may fail](may_fail) |
//! | [`ignores_form`] | replaces what it reads by equal values: one row of a group, the other side of an equality; or tests it on either side of where equal rows become one | what tells equal values apart |
//!
//! - *Volatile* functions give something else for each call: `random()`, `nextval()`.
//! - Whether an expression *may fail* is decided by types: a sum of two `INTEGER`s in a `BIGINT` always fits,
//!   a sum of two `BIGINT`s may not. Library functions say it of themselves
//!   ([`ExternalFunction::is_total`](entasis_vector::expr::ExternalFunction::is_total)). What is known of the
//!   values of scanned columns is taken into account while a plan is optimized ([`within_ranges_of`]).
//! - Equal values of some types have several *forms*: 0.0 and -0.0, 24 hours and 1 day, and lists and structs
//!   with such. Comparisons see no form; functions, casts and arithmetic may.

use crate::plan::{Join, Node, Plan};
use entasis_vector::expr::{ArithmeticOp, Expr, Function};
use entasis_vector::{ColumnId, DataType, Value};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The least and the greatest value.
type Range = (i128, i128);
/// Those of columns.
type Ranges = HashMap<ColumnId, Range>;

thread_local! {
    /// What is known of the columns of the plan that this thread optimizes.
    static RANGES: RefCell<Ranges> = RefCell::default();
}

/// Calls `f` with what is known of the values of the scanned columns that the plan computes with.
pub(crate) fn within_ranges_of<T>(plan: &mut Plan, f: impl FnOnce(&mut Plan) -> T) -> T {
    let mut computed = HashSet::new();
    crate::plan::tree::each_expr(&mut plan.root, &mut |expr| {
        collect_computed(expr, &mut computed);
    });
    let mut known = Ranges::new();
    if !computed.is_empty() {
        collect_ranges(&plan.root, &computed, &mut known);
    }
    with_ranges(known, || f(plan))
}

/// Adds the columns that arithmetic reads.
fn collect_computed(expr: &Expr, into: &mut HashSet<ColumnId>) {
    match expr {
        Expr::Arithmetic { .. } | Expr::Negate(_) | Expr::Function { function: Function::Abs, .. } => {
            expr.visit(&mut |part| {
                if let Expr::Column { id, .. } = part {
                    into.insert(*id);
                }
            });
        }
        _ => expr.each_child(&mut |child| collect_computed(child, into)),
    }
}

fn collect_ranges(node: &Node, wanted: &HashSet<ColumnId>, into: &mut Ranges) {
    if let Node::Scan(scan) = node {
        let width = scan.relation.schema().len();
        for (id, index) in scan.columns.iter().filter(|(id, index)| wanted.contains(id) && *index < width) {
            let known = scan.relation.column_statistics(*index).filter(|known| known.bounds_are_exact);
            if let Some((Some(Value::Integer(low)), Some(Value::Integer(high)))) =
                known.map(|known| (known.min, known.max))
            {
                into.insert(*id, (low, high));
            }
        }
    }
    node.children().into_iter().for_each(|child| collect_ranges(child, wanted, into));
}

fn with_ranges<T>(known: Ranges, f: impl FnOnce() -> T) -> T {
    /// Puts back what was known before, whatever happens.
    struct Before(Ranges);
    impl Drop for Before {
        fn drop(&mut self) {
            RANGES.with(|ranges| ranges.replace(std::mem::take(&mut self.0)));
        }
    }
    let _before = Before(RANGES.with(|ranges| ranges.replace(known)));
    f()
}

/// True if it makes no difference how often, and in what order, `expr` is computed.
pub(crate) fn may_repeat(expr: &Expr) -> bool {
    !expr.is_volatile()
}

/// True if any expression of the join may differ when evaluated again.
pub(crate) fn is_volatile_join(join: &Join) -> bool {
    let keys = join.on.iter().flat_map(|key| [&key.left, &key.right]);
    !keys.chain(&join.residual).all(may_repeat)
}

/// True if, besides, it makes no difference for which rows: it raises no error, whatever they are.
pub(crate) fn may_move(expr: &Expr) -> bool {
    may_repeat(expr) && !may_fail(expr)
}

/// True if equal values of the columns that it reads give equal values of `expr`.
pub(crate) fn ignores_form(expr: &Expr) -> bool {
    match expr {
        Expr::Column { .. } | Expr::Literal { .. } | Expr::Parameter { .. } => true,
        Expr::Compare { .. }
        | Expr::IsNull(_)
        | Expr::InList { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::Case { .. } => expr.children().into_iter().all(ignores_form),
        _ => {
            let mut sees_none = true;
            expr.visit(&mut |part| {
                if let Expr::Column { ty, .. } = part {
                    sees_none &= !has_forms(*ty);
                }
            });
            sees_none
        }
    }
}

/// True if equal values of the type may be told apart.
pub fn has_forms(ty: DataType) -> bool {
    match ty {
        DataType::Float32 | DataType::Float64 | DataType::Interval => true,
        DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => has_forms(*element),
        DataType::Struct(fields) => fields.iter().any(|field| has_forms(field.ty)),
        _ => false,
    }
}

/// True if evaluating `expr` for a row that the statement would not have evaluated it for may raise an error.
pub(crate) fn may_fail(expr: &Expr) -> bool {
    outcome(expr).0
}

/// Whether evaluating `expr` may fail, and the least and the greatest (unscaled) number that it may be.
// PERF: of both at once, each operand is looked at once: sums are deep.
fn outcome(expr: &Expr) -> (bool, Option<Range>) {
    let (mut fails, mut is_read) = (false, false);
    let computed = computed_range(expr, &mut |operand| {
        is_read = true;
        let (operand_fails, range) = outcome(operand);
        fails |= operand_fails;
        range
    });
    if !is_read {
        expr.each_child(&mut |operand| fails |= may_fail(operand));
    }
    (fails || node_may_fail(expr, computed), range(expr, computed))
}

/// Whether the operation itself may fail, with operands that do not. Its results are in `computed`, before
/// they are tested.
fn node_may_fail(expr: &Expr, computed: Option<Range>) -> bool {
    match expr {
        Expr::Arithmetic { op: ArithmeticOp::Divide | ArithmeticOp::Modulo, right, .. } => {
            // The least integer by -1 is out of range.
            !matches!(&**right, Expr::Literal { value: Value::Integer(v), .. } if *v != 0 && *v != -1)
                && !matches!(&**right, Expr::Literal { value: Value::Float(v), .. } if *v != 0.0)
        }
        Expr::Arithmetic {
            op: ArithmeticOp::BitAnd | ArithmeticOp::BitOr | ArithmeticOp::BitXor, ..
        } => false,
        Expr::Arithmetic { op: ArithmeticOp::ShiftLeft | ArithmeticOp::ShiftRight, .. } => false,
        Expr::Arithmetic { ty, .. } | Expr::Function { function: Function::Abs, ty, .. } => {
            may_overflow(expr, *ty, computed)
        }
        Expr::Negate(input) => may_overflow(expr, input.ty(), computed),
        Expr::Cast { input, ty, lenient: false } => !is_safe_cast(input.ty(), *ty),
        Expr::Like { pattern, .. } => !matches!(&**pattern, Expr::Literal { .. }),
        Expr::Function { function, args, .. } => match function {
            Function::Sqrt => true,
            Function::Substring => {
                args.len() > 2
                    && !matches!(&args[2], Expr::Literal { value: Value::Integer(v), .. } if *v >= 0)
            }
            _ => false,
        },
        Expr::External { function, args, .. } => !function.is_total(args),
        _ => false,
    }
}

/// True if arithmetic with a result of this type may be out of its range. Of dates and times that is asked
/// only where it is known which ones there are: nobody has those of the year 290000, and conditions on days
/// between two tables must not wait for all other joins.
fn may_overflow(expr: &Expr, ty: DataType, computed: Option<Range>) -> bool {
    if ty.is_float() {
        return false;
    }
    match (limits(ty), computed) {
        (Some(limits), Some(range)) => range.0 < limits.0 || range.1 > limits.1,
        _ => ty.is_integer() && !is_of_moments(expr) || ty.is_decimal(),
    }
}

/// True for arithmetic with dates and times.
fn is_of_moments(expr: &Expr) -> bool {
    let mut found = false;
    expr.each_child(&mut |part| found |= is_moment(part.ty()));
    found
}

fn is_moment(ty: DataType) -> bool {
    matches!(
        ty,
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampNs | DataType::TimestampTz
    )
}

/// The results that a type has room for: the extremes of dates and timestamps are infinity.
fn limits(ty: DataType) -> Option<Range> {
    let (low, high) = ty.integer_range()?;
    Some(if is_moment(ty) { (low + 2, high - 1) } else { (low, high) })
}

/// The least and the greatest (unscaled) number that an expression may be, if what it computes is in
/// `computed` before it is tested.
fn range(expr: &Expr, computed: Option<Range>) -> Option<Range> {
    let fits = expr.ty().integer_range()?;
    let (low, high) = match expr {
        Expr::Literal { value: Value::Integer(v), .. } => (*v, *v),
        Expr::Column { id, .. } => RANGES.with(|ranges| ranges.borrow().get(id).copied()).unwrap_or(fits),
        _ => computed.unwrap_or(fits),
    };
    // What is out of range is an error, and no value.
    Some((low.max(fits.0), high.min(fits.1)))
}

/// The range of the results of an operation on numbers before they are tested, by those of its operands, of
/// which it asks for all or none; `None` for all others.
fn computed_range(expr: &Expr, range_of: &mut impl FnMut(&Expr) -> Option<Range>) -> Option<Range> {
    let scale = |ty: DataType| match ty {
        DataType::Decimal { scale, .. } => Some(scale),
        ty if ty.is_integer() => Some(0),
        _ => None,
    };
    match expr {
        Expr::Arithmetic { op, left, right, .. } if is_of_moments(expr) => moments(*op, left, right),
        Expr::Arithmetic { op, left, right, ty } => {
            let (a, b) = (range_of(left), range_of(right));
            let (a, b) = (a?, b?);
            let (l, r, own) = (scale(left.ty())?, scale(right.ty())?, scale(*ty)?);
            match op {
                ArithmeticOp::Multiply if own == l + r => {
                    let products =
                        [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.checked_mul(b));
                    let [p, q, r, s] = products;
                    let (p, q, r, s) = (p?, q?, r?, s?);
                    Some((p.min(q).min(r).min(s), p.max(q).max(r).max(s)))
                }
                ArithmeticOp::Add | ArithmeticOp::Subtract => {
                    let up = |(low, high): Range, from: u8| {
                        let by = 10i128.checked_pow(u32::from(own.checked_sub(from)?))?;
                        Some((low.checked_mul(by)?, high.checked_mul(by)?))
                    };
                    let (a, b) = (up(a, l)?, up(b, r)?);
                    match op {
                        ArithmeticOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
                        _ => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
                    }
                }
                _ => None,
            }
        }
        Expr::Negate(input) => {
            let range = range_of(input);
            scale(input.ty())?;
            let (low, high) = range?;
            Some((high.checked_neg()?, low.checked_neg()?))
        }
        Expr::Function { function: Function::Abs, args, ty } => {
            let range = range_of(args.first()?);
            scale(*ty)?;
            let (low, high) = range?;
            Some((0, high.max(low.checked_neg()?)))
        }
        Expr::Cast { input, ty, .. } if ty.is_integer() && input.ty().is_integer() => range_of(input),
        Expr::Cast { input, ty: DataType::Decimal { scale: to, .. }, .. } => {
            let range = range_of(input);
            let by = 10i128.checked_pow(u32::from(to.checked_sub(scale(input.ty())?)?))?;
            let (low, high) = range?;
            Some((low.checked_mul(by)?, high.checked_mul(by)?))
        }
        _ => None,
    }
}

/// Microseconds of a day.
const DAY: i128 = 86_400_000_000;

/// The range of a date or timestamp, and an interval, a number of days, or another one; `None` if it is not
/// known which ones these are, or if infinity is among them.
fn moments(op: ArithmeticOp, left: &Expr, right: &Expr) -> Option<Range> {
    let known = |expr: &Expr| {
        let (low, high) = match expr {
            Expr::Literal { value: Value::Integer(v), .. } => (*v, *v),
            Expr::Column { id, .. } => RANGES.with(|ranges| ranges.borrow().get(id).copied())?,
            _ => return None,
        };
        let limits = limits(expr.ty())?;
        (limits.0 <= low && high <= limits.1).then_some((low, high))
    };
    let from = known(left)?;
    match (left.ty(), right) {
        (ty, Expr::Literal { value: Value::Interval(interval), .. }) if ty != DataType::Time => {
            // Units of the result: of what is added, and of what it is added to.
            let (micros, unit) = match ty {
                DataType::Date => (1, DAY),
                DataType::TimestampNs => (1000, 1),
                _ => (1, 1),
            };
            let months = i128::from(interval.months).abs() * 31 * DAY;
            let days = i128::from(interval.days).abs() * DAY;
            let most = (months + days + i128::from(interval.micros).abs()) * micros;
            Some((from.0 * unit - most, from.1 * unit + most))
        }
        (DataType::Date, by) if by.ty() == DataType::Date || by.ty().is_integer() => {
            let by = known(by)?;
            match op {
                ArithmeticOp::Add => Some((from.0 + by.0, from.1 + by.1)),
                _ => Some((from.0 - by.1, from.1 - by.0)),
            }
        }
        _ => None,
    }
}

/// True if every value of `from` has a counterpart in `to`.
pub(crate) fn is_safe_cast(from: DataType, to: DataType) -> bool {
    if from == to || from == DataType::Null || to == DataType::Varchar || to == DataType::Float64 {
        return to != DataType::Float64 || from.is_numeric() || from == DataType::Null;
    }
    let digits = |ty: DataType| match ty {
        DataType::Decimal { precision, scale } => Some((precision - scale, scale)),
        DataType::Int8 | DataType::UInt8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt16 => Some((5, 0)),
        DataType::Int32 | DataType::UInt32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::UInt64 => Some((20, 0)),
        _ => None,
    };
    match (from, to) {
        (DataType::Date, DataType::Timestamp | DataType::TimestampTz) => true,
        (_, DataType::Decimal { .. }) => match (digits(from), digits(to)) {
            (Some(from), Some(to)) => from.0 <= to.0 && from.1 <= to.1,
            _ => false,
        },
        _ if from.is_integer() && to.is_integer() => {
            let ((a, b), (c, d)) =
                (from.integer_range().expect("an integer"), to.integer_range().expect("an integer"));
            c <= a && b <= d
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
