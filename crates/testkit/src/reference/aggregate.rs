//! The result of each aggregate, row by row over a group.

use super::expression::{evaluate, holds, one_row, order};
use super::{Table, order_by_keys};
use entasis_engine::plan::{Aggregate, AggregateCall, AggregateFunction};
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Error, Interval, Result, Value, Vector};
use std::cmp::Ordering;

/// The output rows of an aggregation: keys, then results, in the order of the groups' first rows.
///
/// # Errors
/// Those of the expressions, and overflow of a sum.
pub fn groups(node: &Aggregate, input: &Table) -> Result<Vec<Vec<Value>>> {
    let mut keys: Vec<Vec<Value>> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    if node.groups.is_empty() {
        keys.push(Vec::new());
        members.push(Vec::new());
    }
    for i in 0..input.rows.len() {
        let key =
            node.groups.iter().map(|(_, expr)| evaluate(expr, input.row(i))).collect::<Result<Vec<_>>>()?;
        match keys.iter().position(|k| *k == key) {
            Some(group) => members[group].push(i),
            None => {
                keys.push(key);
                members.push(vec![i]);
            }
        }
    }
    let mut rows = Vec::new();
    for (key, members) in keys.into_iter().zip(members) {
        let mut row = key;
        for (_, call) in &node.aggregates {
            row.push(result(call, input, &members)?);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// One aggregate over the rows `members` of `input`.
///
/// # Errors
/// Those of the expressions, and overflow of a sum.
pub fn result(call: &AggregateCall, input: &Table, members: &[usize]) -> Result<Value> {
    // The argument rows that count, each with its sort keys.
    let mut counted: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    for &i in members {
        let row = input.row(i);
        if let Some(filter) = &call.filter
            && !holds(filter, row)?
        {
            continue;
        }
        let args = call.args.iter().map(|arg| evaluate(arg, row)).collect::<Result<Vec<_>>>()?;
        let keys = call.order_by.iter().map(|key| evaluate(&key.expr, row)).collect::<Result<Vec<_>>>()?;
        if call.distinct && counted.iter().any(|(seen, _)| *seen == args) {
            continue;
        }
        counted.push((args, keys));
    }
    counted.sort_by(|(_, a), (_, b)| order_by_keys(&call.order_by, a, b));
    let rows: Vec<Vec<Value>> = counted.into_iter().map(|(args, _)| args).collect();

    if let AggregateFunction::External(function) = &call.function {
        let mut state = function.state()?;
        // The group exists even if no row counts.
        state.update(&empty(call)?, &[], 0, 1)?;
        for row in &rows {
            let args = row
                .iter()
                .zip(&call.args)
                .map(|(v, arg)| one_row(v, arg.ty()))
                .collect::<Result<Vec<_>>>()?;
            state.update(&args, &[0], 1, 1)?;
        }
        let mut out = Vector::new(call.ty.physical());
        state.finish(0, 1, &mut out)?;
        return Ok(out.value(0, call.ty));
    }

    if let AggregateFunction::CountStar = call.function {
        return Ok(Value::Integer(rows.len() as i128));
    }
    let values: Vec<&Value> = rows.iter().map(|row| &row[0]).filter(|v| !v.is_null()).collect();
    let ty = call.args[0].ty();
    if let AggregateFunction::Count = call.function {
        return Ok(Value::Integer(values.len() as i128));
    }
    let Some(&first) = values.first() else { return Ok(Value::Null) };
    let boolean = |v: &&Value| matches!(v, Value::Boolean(true));
    Ok(match &call.function {
        AggregateFunction::Sum => sum(&values, call.ty)?,
        AggregateFunction::Avg => Value::Float(mean(&values, ty)?),
        AggregateFunction::Min => extreme(&values, ty, Ordering::Less),
        AggregateFunction::Max => extreme(&values, ty, Ordering::Greater),
        AggregateFunction::BoolAnd => Value::Boolean(values.iter().all(boolean)),
        AggregateFunction::BoolOr => Value::Boolean(values.iter().any(boolean)),
        AggregateFunction::AnyValue => first.clone(),
        AggregateFunction::CountStar | AggregateFunction::Count | AggregateFunction::External(_) => {
            return Err(Error::internal("answered above"));
        }
    })
}

/// Argument vectors without rows.
fn empty(call: &AggregateCall) -> Result<Vec<Vector>> {
    call.args.iter().map(|arg| Vector::from_values(arg.ty().physical(), &[])).collect()
}

fn extreme(values: &[&Value], ty: DataType, wanted: Ordering) -> Value {
    let mut best = values[0];
    for value in values {
        if order(value, best, ty) == wanted {
            best = value;
        }
    }
    best.clone()
}

fn exact_sum(values: &[&Value]) -> Result<i128> {
    let mut sum = 0i128;
    for value in values {
        let Value::Integer(v) = value else {
            return Err(Error::internal(format!("{value:?} in an exact sum")));
        };
        sum = sum.checked_add(*v).ok_or_else(|| Error::input("sum overflows"))?;
    }
    Ok(sum)
}

fn float_sum(values: &[&Value]) -> Result<f64> {
    let mut sum = 0.0;
    for value in values {
        let Value::Float(v) = value else { return Err(Error::internal(format!("{value:?} in a float sum"))) };
        sum += v;
    }
    Ok(sum)
}

fn sum(values: &[&Value], ty: DataType) -> Result<Value> {
    if ty.is_float() {
        return Ok(Value::Float(float_sum(values)?));
    }
    if ty == DataType::Interval {
        return interval_sum(values);
    }
    let sum = exact_sum(values)?;
    match ty.integer_range() {
        Some((low, high)) if (low..=high).contains(&sum) => Ok(Value::Integer(sum)),
        _ => Err(Error::input(format!("sum {sum} does not fit {ty}"))),
    }
}

fn interval_sum(values: &[&Value]) -> Result<Value> {
    let mut sum = Interval { months: 0, days: 0, micros: 0 };
    for value in values {
        let Value::Interval(v) = value else {
            return Err(Error::internal(format!("{value:?} in a sum of intervals")));
        };
        let next = || {
            Some(Interval {
                months: sum.months.checked_add(v.months)?,
                days: sum.days.checked_add(v.days)?,
                micros: sum.micros.checked_add(v.micros)?,
            })
        };
        sum = next().ok_or_else(|| Error::input("the sum does not fit INTERVAL"))?;
    }
    Ok(Value::Interval(sum))
}

fn mean(values: &[&Value], ty: DataType) -> Result<f64> {
    let count = values.len() as f64;
    Ok(match ty {
        DataType::Float32 | DataType::Float64 => float_sum(values)? / count,
        DataType::Decimal { scale, .. } => exact_sum(values)? as f64 / (pow10(scale) as f64 * count),
        _ => exact_sum(values)? as f64 / count,
    })
}
