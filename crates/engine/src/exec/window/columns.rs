//! The columns that are kept with the rows of a window: those that come out, and those that keys and calls
//! read, one for equal expressions. Constants that a function takes as they are, offsets and numbers of
//! buckets, are no columns.

use super::frame::{BoundSpec, FrameSpec};
use super::operand::Operand;
use super::range::{RangeKind, RangeSpec};
use crate::exec::aggregate::layout::guarded;
use crate::exec::sort::order::OrderKey;
use crate::plan::{Bound, SortKey, WindowCall, WindowFunction};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Error, Result, Value};

/// The ids of columns that only a window reads begin here, so that they are unique.
const FIRST_OWN_ID: u32 = 1 << 31;

/// Collects the columns that are kept with the rows.
pub struct KeptColumns {
    /// What computes each, and its id.
    pub exprs: Vec<(ColumnId, Expr)>,
    /// The number of output columns, which come first.
    pub passed: usize,
}

impl KeptColumns {
    /// The column with the values of `expr`.
    pub fn column(&mut self, expr: &Expr) -> usize {
        let same = |(_, kept): &(ColumnId, Expr)| kept == expr && !expr.is_volatile();
        if let Some(at) = self.exprs.iter().position(same) {
            return at;
        }
        let id = match expr {
            Expr::Column { id, .. } => *id,
            _ => ColumnId(FIRST_OWN_ID + (self.exprs.len() - self.passed) as u32),
        };
        self.exprs.push((id, expr.clone()));
        self.exprs.len() - 1
    }

    /// The column with the values of `expr`, unless it is a constant.
    pub fn operand(&mut self, expr: &Expr) -> Operand {
        match expr {
            Expr::Literal { value, .. } => Operand::Constant(value.clone()),
            other => Operand::Column(self.column(other)),
        }
    }

    /// The column of a key, with its order.
    pub fn key(&mut self, key: &SortKey) -> OrderKey {
        OrderKey { column: self.column(&key.expr), descending: key.descending, nulls_first: key.nulls_first }
    }

    /// The frame of `call`, whose rows are in this order.
    ///
    /// # Errors
    /// Not supported, for types that offsets cannot have.
    pub fn frame(&mut self, call: &WindowCall, order: &[SortKey]) -> Result<FrameSpec> {
        let mut bound = |bound: &Bound| match bound {
            Bound::UnboundedPreceding => BoundSpec::UnboundedPreceding,
            Bound::Preceding(offset) => BoundSpec::Preceding(self.operand(offset)),
            Bound::CurrentRow => BoundSpec::CurrentRow,
            Bound::Following(offset) => BoundSpec::Following(self.operand(offset)),
            Bound::UnboundedFollowing => BoundSpec::UnboundedFollowing,
        };
        let frame = &call.frame;
        let (start, end) = (bound(&frame.start), bound(&frame.end));
        let mut spec = FrameSpec { units: frame.units, start, end, exclude: frame.exclude, range: None };
        if spec.is_by_value() {
            let [key] = order else {
                return Err(Error::internal("a RANGE with an offset wants one order key"));
            };
            let mut kinds = [&frame.start, &frame.end].into_iter().filter_map(Bound::offset);
            let kind = |offset: &Expr| RangeKind::of(key.expr.ty(), offset.ty());
            let first = kinds.next().map(kind).transpose()?.unwrap_or(RangeKind::Integer);
            if let Some(second) = kinds.next().map(kind).transpose()?
                && second != first
            {
                return Err(Error::not_supported("a RANGE frame whose offsets have different types"));
            }
            let OrderKey { column, descending, nulls_first } = self.key(key);
            spec.range = Some(RangeSpec { column, descending, nulls_first, kind: first });
        }
        Ok(spec)
    }
}

/// A call, its expressions replaced by columns.
pub struct Parts<'a> {
    /// The column of the result.
    pub id: ColumnId,
    /// The call.
    pub call: &'a WindowCall,
    /// Arguments; for `lag` and `lead` the value and the default.
    pub args: Vec<usize>,
    /// An argument that may be a constant.
    pub operand: Option<Operand>,
    /// The column that is true for the rows that count.
    pub filter: Option<usize>,
    /// The order in which rows reach an aggregate.
    pub order: Vec<OrderKey>,
    /// The frame, if it has one.
    pub frame: Option<FrameSpec>,
}

impl<'a> Parts<'a> {
    /// Adds the columns that `call` reads to `kept`; `order` is that of the window.
    ///
    /// # Errors
    /// Not supported, for clauses that its function does not take.
    pub fn of(
        id: ColumnId,
        call: &'a WindowCall,
        order: &[SortKey],
        kept: &mut KeptColumns,
    ) -> Result<Parts<'a>> {
        use WindowFunction as F;
        check_clauses(call)?;
        let mut parts =
            Parts { id, call, args: vec![], operand: None, filter: None, order: vec![], frame: None };
        if call.function.has_frame() {
            parts.frame = Some(kept.frame(call, order)?);
        }
        parts.filter = call.filter.as_ref().map(|filter| kept.column(filter));
        match (&call.function, &call.args[..]) {
            (F::Ntile, [buckets]) => parts.operand = Some(kept.operand(buckets)),
            (F::Lag | F::Lead, [value, rest @ ..]) if rest.len() <= 2 => {
                parts.args.push(kept.column(value));
                parts.operand = rest.first().map(|offset| kept.operand(offset));
                let default = rest
                    .get(1)
                    .filter(|default| !matches!(default, Expr::Literal { value: Value::Null, .. }));
                parts.args.extend(default.map(|default| kept.column(default)));
            }
            (F::NthValue, [value, number]) => {
                parts.args.push(kept.column(value));
                parts.operand = Some(kept.operand(number));
            }
            (F::FirstValue | F::LastValue, [value]) => parts.args.push(kept.column(value)),
            (F::Aggregate(_), args) => {
                for arg in args {
                    parts.args.push(kept.column(&guarded(arg, call.filter.as_ref())));
                }
                parts.order = call.order_by.iter().map(|key| kept.key(key)).collect();
            }
            (_, []) => {}
            (function, args) => {
                let message = format!("{} of {} arguments", function.name(), args.len());
                return Err(Error::not_supported(message));
            }
        }
        Ok(parts)
    }
}

/// Refuses clauses that the function of a call does not take.
fn check_clauses(call: &WindowCall) -> Result<()> {
    use WindowFunction as F;
    let name = call.function.name();
    let is_aggregate = matches!(call.function, F::Aggregate(_));
    let refused = match call {
        _ if is_aggregate => None,
        WindowCall { distinct: true, .. } => Some("DISTINCT"),
        WindowCall { filter: Some(_), .. } => Some("FILTER"),
        WindowCall { order_by, .. } if !order_by.is_empty() => Some("ORDER BY"),
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(Error::not_supported(format!(
            "{refused} in a call of {name}, which is not an aggregate"
        )));
    }
    if call.ignore_nulls
        && (is_aggregate || !matches!(call.function, F::Lag | F::Lead) && !call.function.has_frame())
    {
        return Err(Error::not_supported(format!("IGNORE NULLS in a call of {name}")));
    }
    Ok(())
}
