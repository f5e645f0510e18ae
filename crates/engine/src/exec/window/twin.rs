//! The slow twin: window functions by their definition, over rows of values, frame by frame and row by row.

use crate::plan::{
    AggregateFunction, Bound, Exclude, Frame, FrameUnits, SortKey, Window, WindowCall, WindowFunction,
};
use entasis_vector::expr::Expr;
use entasis_vector::expr::calendar::{add_interval, midnight, negate_interval};
use entasis_vector::{DataType, Value};
use std::cmp::Ordering;

type Row = Vec<Value>;

/// The rows followed by the results of all calls; `None` if the statement must fail. Columns are numbered by
/// their places.
pub fn evaluate(window: &Window, rows: &[Row]) -> Option<Vec<Row>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let keys: Vec<SortKey> = window
        .partition
        .iter()
        .map(|expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false })
        .chain(window.order.iter().cloned())
        .collect();
    order.sort_by(|&a, &b| compare(&keys, &rows[a], &rows[b]));
    let mut out = Vec::new();
    let is_partition = |&a: &usize, &b: &usize| {
        window.partition.iter().all(|key| value(key, &rows[a]) == value(key, &rows[b]))
    };
    for partition in order.chunk_by(is_partition) {
        let partition: Vec<&Row> = partition.iter().map(|&row| &rows[row]).collect();
        let mut groups = vec![0i128];
        for pair in partition.windows(2) {
            let is_new = compare(&window.order, pair[0], pair[1]).is_ne();
            groups.push(groups[groups.len() - 1] + i128::from(is_new));
        }
        for at in 0..partition.len() {
            let mut row = partition[at].clone();
            for (_, call) in &window.calls {
                row.push(result(window, call, &partition, &groups, at)?);
            }
            let first_peer = groups.iter().position(|group| *group == groups[at]).unwrap();
            match window.top {
                Some(top) if (if top.with_peers { first_peer } else { at }) >= top.rows => {}
                _ => out.push(row),
            }
        }
    }
    Some(out)
}

/// A column or a constant.
fn value(expr: &Expr, row: &Row) -> Value {
    match expr {
        Expr::Column { id, .. } => row[id.0 as usize].clone(),
        Expr::Literal { value, .. } => value.clone(),
        other => panic!("{other} in the twin"),
    }
}

fn compare(keys: &[SortKey], a: &Row, b: &Row) -> Ordering {
    let one = |key: &SortKey| match (value(&key.expr, a), value(&key.expr, b)) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => {
            if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, Value::Null) => {
            if key.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (a, b) if key.descending => b.total_cmp(&a),
        (a, b) => a.total_cmp(&b),
    };
    keys.iter().map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The positions of the rows of a partition that are in the frame of the row at `at`.
fn frame(
    window: &Window,
    frame: &Frame,
    partition: &[&Row],
    groups: &[i128],
    at: usize,
) -> Option<Vec<usize>> {
    let group = |row: usize| groups[row];
    let peers = |other: usize| group(other) == group(at);
    let offset = |expr: &Expr| match value(expr, partition[at]) {
        Value::Null => None,
        Value::Integer(offset) if offset < 0 => None,
        Value::Float(offset) if offset < 0.0 => None,
        other => Some(other),
    };
    let count = |expr: &Expr| match offset(expr) {
        Some(Value::Integer(offset)) => Some(offset),
        _ => None,
    };
    // Whether a row is not before the start, or not after the end.
    let within = |bound: &Bound, other: usize, is_start: bool| -> Option<bool> {
        let (own, other_at) = (at as i128, other as i128);
        let not_beyond = |other: i128, bound: i128| if is_start { other >= bound } else { other <= bound };
        Some(match (bound, frame.units) {
            (Bound::UnboundedPreceding, _) => is_start,
            (Bound::UnboundedFollowing, _) => !is_start,
            (Bound::CurrentRow, FrameUnits::Rows) => not_beyond(other_at, own),
            (Bound::CurrentRow, _) => not_beyond(group(other), group(at)),
            (Bound::Preceding(expr), FrameUnits::Rows) => not_beyond(other_at, own - count(expr)?),
            (Bound::Following(expr), FrameUnits::Rows) => not_beyond(other_at, own + count(expr)?),
            (Bound::Preceding(expr), FrameUnits::Groups) => {
                not_beyond(group(other), group(at) - count(expr)?)
            }
            (Bound::Following(expr), FrameUnits::Groups) => {
                not_beyond(group(other), group(at) + count(expr)?)
            }
            (Bound::Preceding(expr), FrameUnits::Range) => {
                near(&window.order[0], partition[other], partition[at], &offset(expr)?, false, is_start)?
            }
            (Bound::Following(expr), FrameUnits::Range) => {
                near(&window.order[0], partition[other], partition[at], &offset(expr)?, true, is_start)?
            }
        })
    };
    let mut rows = Vec::new();
    for other in 0..partition.len() {
        let excluded = match frame.exclude {
            Exclude::NoOthers => false,
            Exclude::CurrentRow => other == at,
            Exclude::Group => peers(other),
            Exclude::Ties => other != at && peers(other),
        };
        if within(&frame.start, other, true)? & within(&frame.end, other, false)? && !excluded {
            rows.push(other);
        }
    }
    Some(rows)
}

/// Whether the key of `other` is not before (or, for an end, not after) that of `own`, moved by `offset`.
fn near(
    key: &SortKey,
    other: &Row,
    own: &Row,
    offset: &Value,
    forward: bool,
    is_start: bool,
) -> Option<bool> {
    let (a, b) = (value(&key.expr, other), value(&key.expr, own));
    let up = forward != key.descending;
    let order = match (&a, &b) {
        // NULL is at no distance from NULL, and infinitely far from all else.
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => {
            if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, Value::Null) => {
            if key.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ => {
            let order = match (&a, &b, offset) {
                (Value::Float(a), Value::Float(b), Value::Float(offset)) => {
                    let limit = if up { b + offset } else { b - offset };
                    Value::Float(*a).total_cmp(&Value::Float(limit))
                }
                (Value::Integer(a), Value::Integer(b), Value::Integer(offset)) => {
                    a.cmp(&if up { b + offset } else { b - offset })
                }
                (Value::Integer(a), Value::Integer(b), Value::Interval(offset)) => {
                    let moment = |v: i128| match key.expr.ty() {
                        DataType::Date => midnight(v as i32).unwrap(),
                        _ => v as i64,
                    };
                    let offset = if up { *offset } else { negate_interval(*offset).unwrap() };
                    moment(*a).cmp(&add_interval(moment(*b), offset).unwrap())
                }
                other => panic!("{other:?} in the twin"),
            };
            if key.descending { order.reverse() } else { order }
        }
    };
    Some(if is_start { order.is_ge() } else { order.is_le() })
}

fn result(
    window: &Window,
    call: &WindowCall,
    partition: &[&Row],
    groups: &[i128],
    at: usize,
) -> Option<Value> {
    use WindowFunction as F;
    let rows = partition.len();
    let integer = |v: usize| Some(Value::Integer(v as i128));
    let first_peer = groups.iter().position(|group| *group == groups[at]).unwrap();
    let last_peer = groups.iter().rposition(|group| *group == groups[at]).unwrap();
    let arg = |i: usize, row: usize| call.args.get(i).map(|arg| value(arg, partition[row]));
    match &call.function {
        F::RowNumber => integer(at + 1),
        F::Rank => integer(first_peer + 1),
        F::DenseRank => Some(Value::Integer(groups[at] + 1)),
        F::PercentRank if rows == 1 => Some(Value::Float(0.0)),
        F::PercentRank => Some(Value::Float(first_peer as f64 / (rows - 1) as f64)),
        F::CumeDist => Some(Value::Float((last_peer + 1) as f64 / rows as f64)),
        F::Ntile => match arg(0, at)? {
            Value::Null => Some(Value::Null),
            Value::Integer(buckets) if buckets <= 0 => None,
            Value::Integer(buckets) => {
                // Row by row: the first buckets take one row more.
                let (mut bucket, mut left) = (0, 0);
                for _ in 0..=at {
                    if left == 0 {
                        left = rows as i128 / buckets + i128::from(bucket < rows as i128 % buckets);
                        bucket += 1;
                    }
                    left -= 1;
                }
                Some(Value::Integer(bucket))
            }
            other => panic!("{other:?}"),
        },
        F::Lag | F::Lead => {
            let Value::Integer(offset) = arg(1, at).unwrap_or(Value::Integer(1)) else {
                return Some(Value::Null);
            };
            let offset = if matches!(call.function, F::Lead) { offset } else { -offset };
            let step = if offset < 0 { -1 } else { 1 };
            let (mut row, mut left) = (at as i128, offset.abs());
            while left > 0 {
                row += step;
                if row < 0 || row >= rows as i128 {
                    return Some(arg(2, at).unwrap_or(Value::Null));
                }
                if !call.ignore_nulls || !arg(0, row as usize)?.is_null() {
                    left -= 1;
                }
            }
            arg(0, row as usize)
        }
        F::FirstValue | F::LastValue | F::NthValue => {
            let mut rows = frame(window, &call.frame, partition, groups, at)?;
            rows.retain(|&row| !call.ignore_nulls || !arg(0, row).unwrap().is_null());
            let row = match call.function {
                F::FirstValue => rows.first(),
                F::LastValue => rows.last(),
                _ => match arg(1, at)? {
                    Value::Null => None,
                    Value::Integer(n) if n <= 0 => return None,
                    Value::Integer(n) => usize::try_from(n - 1).ok().and_then(|n| rows.get(n)),
                    other => panic!("{other:?}"),
                },
            };
            row.map_or(Some(Value::Null), |&row| arg(0, row))
        }
        F::Aggregate(function) => {
            let mut rows = frame(window, &call.frame, partition, groups, at)?;
            let filter = call.filter.as_ref();
            rows.retain(|&row| {
                filter.is_none_or(|filter| value(filter, partition[row]) == Value::Boolean(true))
            });
            let args = |row: usize| call.args.iter().map(|arg| value(arg, partition[row])).collect::<Row>();
            if call.distinct {
                let mut seen: Vec<Row> = Vec::new();
                rows.retain(|&row| {
                    let is_new = !seen.contains(&args(row));
                    seen.push(args(row));
                    is_new
                });
            }
            rows.sort_by(|&a, &b| compare(&call.order_by, partition[a], partition[b]));
            Some(aggregate(function, call, &rows.into_iter().map(args).collect::<Vec<Row>>()))
        }
    }
}

fn aggregate(function: &AggregateFunction, call: &WindowCall, rows: &[Row]) -> Value {
    use AggregateFunction as F;
    if let F::CountStar = function {
        return Value::Integer(rows.len() as i128);
    }
    if let F::External(function) = function {
        let mut state = function.state().unwrap();
        state.update(&[], &[], 0, 1).unwrap();
        for row in rows {
            let args = row.iter().zip(&call.args);
            let args = args.map(|(v, arg)| {
                entasis_vector::Vector::from_values(arg.ty().physical(), std::slice::from_ref(v))
            });
            state.update(&args.collect::<entasis_vector::Result<Vec<_>>>().unwrap(), &[0], 1, 1).unwrap();
        }
        let mut out = entasis_vector::Vector::new(call.ty.physical());
        state.finish(0, 1, &mut out).unwrap();
        return out.value(0, call.ty);
    }
    let values: Vec<&Value> = rows.iter().map(|row| &row[0]).filter(|value| !value.is_null()).collect();
    if let F::Count = function {
        return Value::Integer(values.len() as i128);
    }
    let Some(first) = values.first() else { return Value::Null };
    let scale = match call.args[0].ty() {
        DataType::Decimal { scale, .. } => 10f64.powi(scale.into()),
        _ => 1.0,
    };
    let integers =
        || values.iter().map(|v| if let Value::Integer(v) = v { *v } else { panic!("{v:?}") }).sum::<i128>();
    let floats =
        || values.iter().map(|v| if let Value::Float(v) = v { *v } else { panic!("{v:?}") }).sum::<f64>();
    match function {
        F::Sum if call.ty.is_float() => Value::Float(0.0 + floats()),
        F::Sum => Value::Integer(integers()),
        F::Avg if call.args[0].ty().is_float() => Value::Float(floats() / values.len() as f64),
        F::Avg => Value::Float(integers() as f64 / (values.len() as f64 * scale)),
        F::Min => (*values.iter().min_by(|a, b| a.total_cmp(b)).unwrap()).clone(),
        F::Max => (*values.iter().max_by(|a, b| a.total_cmp(b)).unwrap()).clone(),
        F::BoolAnd => Value::Boolean(values.iter().all(|v| **v == Value::Boolean(true))),
        F::BoolOr => Value::Boolean(values.iter().any(|v| **v == Value::Boolean(true))),
        F::AnyValue => (*first).clone(),
        F::CountStar | F::Count | F::External(_) => unreachable!("answered above"),
    }
}
