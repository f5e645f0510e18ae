//! The result of each window function: row by row, with each row's frame searched among all rows of its
//! partition.

use super::expression::{evaluate, order};
use super::{Table, aggregate, order_by_keys};
use entasis_engine::plan::{
    AggregateCall, Bound, Exclude, Frame, FrameUnits, SortKey, Window, WindowCall, WindowFunction,
};
use entasis_vector::expr::Expr;
use entasis_vector::expr::calendar::{add_interval, midnight, negate_interval};
use entasis_vector::{DataType, Error, Result, Value};
use std::cmp::Ordering;

/// A partition: its rows in order, and the number of each row's peer group.
struct Partition {
    rows: Table,
    groups: Vec<i128>,
}

impl Partition {
    fn value(&self, expr: &Expr, row: usize) -> Result<Value> {
        evaluate(expr, self.rows.row(row))
    }
}

/// The rows of `window`, partition by partition: those of the input, followed by the results of all calls.
///
/// # Errors
/// Those of the expressions; arguments and offsets that a function does not accept; overflow of a sum.
pub fn rows(window: &Window, input: &Table) -> Result<Vec<Vec<Value>>> {
    let mut keys: Vec<Vec<Value>> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for i in 0..input.rows.len() {
        let key =
            window.partition.iter().map(|expr| evaluate(expr, input.row(i))).collect::<Result<Vec<_>>>()?;
        match keys.iter().position(|other| *other == key) {
            Some(partition) => members[partition].push(i),
            None => {
                keys.push(key);
                members.push(vec![i]);
            }
        }
    }
    // Arguments are computed for all rows that count, whether a result needs them or not.
    for (_, call) in &window.calls {
        for i in 0..input.rows.len() {
            let counts = match &call.filter {
                Some(filter) => evaluate(filter, input.row(i))? == Value::Boolean(true),
                None => true,
            };
            if counts {
                call.args.iter().try_for_each(|arg| evaluate(arg, input.row(i)).map(drop))?;
            }
        }
    }
    let mut out = Vec::new();
    for members in members {
        let partition = partition(window, input, &members)?;
        for at in 0..members.len() {
            let mut row = partition.rows.rows[at].clone();
            for (_, call) in &window.calls {
                row.push(result(window, call, &partition, at)?);
            }
            let first_peer =
                partition.groups.iter().position(|group| *group == partition.groups[at]).unwrap_or(at);
            match window.top {
                Some(top) if (if top.with_peers { first_peer } else { at }) >= top.rows => {}
                _ => out.push(row),
            }
        }
    }
    Ok(out)
}

/// The rows `members` of `input` in the order of the window; the sort is stable.
fn partition(window: &Window, input: &Table, members: &[usize]) -> Result<Partition> {
    let mut keyed: Vec<(Vec<Value>, usize)> = Vec::new();
    for &member in members {
        let key =
            window.order.iter().map(|key| evaluate(&key.expr, input.row(member))).collect::<Result<_>>()?;
        keyed.push((key, member));
    }
    keyed.sort_by(|(a, _), (b, _)| order_by_keys(&window.order, a, b));
    let mut groups = vec![0];
    for pair in keyed.windows(2) {
        let is_new = order_by_keys(&window.order, &pair[0].0, &pair[1].0).is_ne();
        groups.push(groups[groups.len() - 1] + i128::from(is_new));
    }
    let rows = keyed.into_iter().map(|(_, member)| input.rows[member].clone()).collect();
    Ok(Partition { rows: Table { columns: input.columns.clone(), rows }, groups })
}

/// The rows of the partition that are in the frame of row `at`.
fn frame(window: &Window, frame: &Frame, partition: &Partition, at: usize) -> Result<Vec<usize>> {
    let mut rows = Vec::new();
    for other in 0..partition.groups.len() {
        let is_peer = partition.groups[other] == partition.groups[at];
        let excluded = match frame.exclude {
            Exclude::NoOthers => false,
            Exclude::CurrentRow => other == at,
            Exclude::Group => is_peer,
            Exclude::Ties => is_peer && other != at,
        };
        let after_start = is_within(window, frame.units, &frame.start, true, partition, other, at)?;
        let before_end = is_within(window, frame.units, &frame.end, false, partition, other, at)?;
        if after_start && before_end && !excluded {
            rows.push(other);
        }
    }
    Ok(rows)
}

/// True if row `other` is not before the start, or not after the end, of the frame of row `at`.
fn is_within(
    window: &Window,
    units: FrameUnits,
    bound: &Bound,
    is_start: bool,
    partition: &Partition,
    other: usize,
    at: usize,
) -> Result<bool> {
    let (offset, forward) = match bound {
        Bound::UnboundedPreceding => return Ok(is_start),
        Bound::UnboundedFollowing => return Ok(!is_start),
        Bound::CurrentRow => (Value::Integer(0), true),
        Bound::Preceding(offset) => (partition.value(offset, at)?, false),
        Bound::Following(offset) => (partition.value(offset, at)?, true),
    };
    let is_limit = bound.offset().is_some_and(|offset| offset.ty() == DataType::TimestampTz);
    let is_bad = match &offset {
        Value::Null => !is_limit,
        Value::Integer(offset) => !is_limit && *offset < 0,
        Value::Float(offset) => offset.is_nan() || *offset < 0.0,
        Value::Interval(offset) => offset.estimate() < 0,
        _ => false,
    };
    if is_bad {
        return Err(Error::input("the offset of a frame is NULL or negative"));
    }
    let place = |row: usize| match units {
        FrameUnits::Rows => row as i128,
        FrameUnits::Groups | FrameUnits::Range => partition.groups[row],
    };
    let order = match (units, bound, &offset) {
        (FrameUnits::Range, Bound::Preceding(_) | Bound::Following(_), offset) => {
            let [key] = &window.order[..] else {
                return Err(Error::internal("a RANGE with an offset wants one order key"));
            };
            near(key, &partition.value(&key.expr, other)?, &partition.value(&key.expr, at)?, offset, forward)?
        }
        (_, _, Value::Integer(offset)) => {
            place(other).cmp(&if forward { place(at) + offset } else { place(at) - offset })
        }
        (_, _, offset) => return Err(Error::internal(format!("{offset:?} is no number of rows"))),
    };
    Ok(if is_start { order.is_ge() } else { order.is_le() })
}

/// Compares the key `other` with the key `own`, moved by `offset`.
fn near(key: &SortKey, other: &Value, own: &Value, offset: &Value, forward: bool) -> Result<Ordering> {
    // NULL is at distance zero from NULL, and infinitely far from all values.
    if other.is_null() || own.is_null() {
        return Ok(order_by_keys(
            std::slice::from_ref(key),
            std::slice::from_ref(other),
            std::slice::from_ref(own),
        ));
    }
    let up = forward != key.descending;
    let ty = key.expr.ty();
    let order = match (other, own, offset) {
        // The limit itself.
        (Value::Integer(other), _, Value::Integer(limit)) if ty == DataType::TimestampTz => other.cmp(limit),
        (Value::Integer(other), Value::Integer(own), Value::Integer(offset)) => {
            other.cmp(&if up { own + offset } else { own - offset })
        }
        (Value::Float(_), Value::Float(own), Value::Float(offset)) => {
            order(other, &Value::Float(if up { own + offset } else { own - offset }), ty)
        }
        (Value::Integer(other), Value::Integer(own), Value::Interval(offset)) if ty == DataType::Time => {
            let offset = i128::from(offset.micros);
            other.cmp(&if up { own + offset } else { own - offset })
        }
        (Value::Integer(other), Value::Integer(own), Value::Interval(offset)) => {
            let moment = |value: i128| match ty {
                DataType::Date => {
                    midnight(value as i32).ok_or_else(|| Error::not_supported("a day without a moment"))
                }
                _ => Ok(value as i64),
            };
            let offset = if up { Some(*offset) } else { negate_interval(*offset) };
            let own = moment(*own)?;
            match offset.and_then(|offset| add_interval(own, offset)) {
                Some(limit) => moment(*other)?.cmp(&limit),
                None if up => Ordering::Less,
                None => Ordering::Greater,
            }
        }
        (Value::Interval(other), Value::Interval(own), Value::Interval(offset)) => {
            let (own, offset) = (own.estimate(), offset.estimate());
            other.estimate().cmp(&if up { own + offset } else { own - offset })
        }
        _ => return Err(Error::not_supported(format!("a RANGE frame by {ty}"))),
    };
    Ok(if key.descending { order.reverse() } else { order })
}

/// The result of `call` for row `at`.
fn result(window: &Window, call: &WindowCall, partition: &Partition, at: usize) -> Result<Value> {
    use WindowFunction as F;
    let groups = &partition.groups;
    let rows = groups.len();
    let number = |v: usize| Ok(Value::Integer(v as i128));
    let first_peer = groups.iter().position(|group| *group == groups[at]).unwrap_or(at);
    let last_peer = groups.iter().rposition(|group| *group == groups[at]).unwrap_or(at);
    let arg = |i: usize, row: usize| match call.args.get(i) {
        Some(arg) => partition.value(arg, row),
        None => Err(Error::internal("a window function lacks an argument")),
    };
    let counts = |row: usize| Ok::<bool, Error>(!call.ignore_nulls || !arg(0, row)?.is_null());
    match &call.function {
        F::RowNumber => number(at + 1),
        F::Rank => number(first_peer + 1),
        F::DenseRank => Ok(Value::Integer(groups[at] + 1)),
        F::PercentRank if rows == 1 => Ok(Value::Float(0.0)),
        F::PercentRank => Ok(Value::Float(first_peer as f64 / (rows - 1) as f64)),
        F::CumeDist => Ok(Value::Float((last_peer + 1) as f64 / rows as f64)),
        F::Ntile => match arg(0, at)? {
            Value::Integer(buckets) if buckets > 0 => {
                // Rows are distributed one by one: the first buckets get one more.
                let (mut bucket, mut left) = (0, 0);
                for _ in 0..=at {
                    if left == 0 {
                        left = rows as i128 / buckets + i128::from(bucket < rows as i128 % buckets);
                        bucket += 1;
                    }
                    left -= 1;
                }
                Ok(Value::Integer(bucket))
            }
            Value::Null => Ok(Value::Null),
            _ => Err(Error::input("ntile of no buckets")),
        },
        F::Lag | F::Lead => {
            let offset = if call.args.len() > 1 { arg(1, at)? } else { Value::Integer(1) };
            let Value::Integer(offset) = offset else { return Ok(Value::Null) };
            let forward = matches!(call.function, F::Lead) == (offset >= 0);
            let mut left = offset.abs();
            let mut row = at;
            while left > 0 {
                let next =
                    if forward { Some(row + 1).filter(|next| *next < rows) } else { row.checked_sub(1) };
                let Some(next) = next else {
                    return if call.args.len() > 2 { arg(2, at) } else { Ok(Value::Null) };
                };
                row = next;
                left -= i128::from(counts(row)?);
            }
            arg(0, row)
        }
        F::FirstValue | F::LastValue | F::NthValue => {
            let mut in_frame = Vec::new();
            for row in frame(window, &call.frame, partition, at)? {
                if counts(row)? {
                    in_frame.push(row);
                }
            }
            let row = match call.function {
                F::FirstValue => in_frame.first(),
                F::LastValue => in_frame.last(),
                _ => match arg(1, at)? {
                    Value::Integer(n) if n > 0 => usize::try_from(n - 1).ok().and_then(|n| in_frame.get(n)),
                    Value::Null => None,
                    _ => return Err(Error::input("nth_value of a row before the first")),
                },
            };
            row.map_or(Ok(Value::Null), |&row| arg(0, row))
        }
        F::Aggregate(function) => {
            let aggregate = AggregateCall {
                function: function.clone(),
                args: call.args.clone(),
                distinct: call.distinct,
                filter: call.filter.clone(),
                order_by: call.order_by.clone(),
                ty: call.ty,
            };
            aggregate::result(&aggregate, &partition.rows, &frame(window, &call.frame, partition, at)?)
        }
    }
}
