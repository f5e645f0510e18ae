//! Results: from the states of a range of groups to a vector.

use super::layout::{ResultKind, ResultSpec};
use super::state::{IntegerSums, State};
use entasis_vector::{Error, PhysicalType, Result, Value, Vector};

/// Writes the result for groups `start` to `start + rows` to `out`.
///
/// # Errors
/// Input, if a sum does not fit its type.
pub fn write_result(
    spec: &ResultSpec,
    states: &[State],
    start: usize,
    rows: usize,
    out: &mut Vector,
) -> Result<()> {
    if out.physical() != spec.meta.physical {
        *out = Vector::new(spec.meta.physical);
    }
    match (&spec.kind, |state: &usize| &states[*state]) {
        (ResultKind::Count(count), of) => {
            out.begin_flat::<i64>(rows)[..rows].copy_from_slice(&counts(of(count))?[start..start + rows]);
        }
        (ResultKind::Integers { sum, seen }, of) => {
            let State::Integers(sums) = of(sum) else { return Err(mismatch()) };
            let seen = seen.as_ref().map(|seen| counts(of(seen))).transpose()?;
            write_integers(spec, sums, seen, start, rows, out)?;
            null_where_unseen(seen, start, rows, out);
        }
        (ResultKind::Floats { sum, seen }, of) => {
            let State::Floats(sums) = of(sum) else { return Err(mismatch()) };
            match spec.meta.physical {
                PhysicalType::F32 => {
                    let out = out.begin_flat::<f32>(rows);
                    out.iter_mut().zip(&sums[start..start + rows]).for_each(|(o, &sum)| *o = sum as f32);
                }
                _ => out.begin_flat::<f64>(rows)[..rows].copy_from_slice(&sums[start..start + rows]),
            }
            let seen = seen.as_ref().map(|seen| counts(of(seen))).transpose()?;
            null_where_unseen(seen, start, rows, out);
        }
        (ResultKind::Mean { sum, count, unit }, of) => {
            let counts = counts(of(count))?;
            let means = out.begin_flat::<f64>(rows);
            let divisor = |group: usize| counts[group].max(1) as f64 * unit;
            let groups = start..start + rows;
            match of(sum) {
                State::Integers(sums) => {
                    means
                        .iter_mut()
                        .zip(groups)
                        .for_each(|(m, group)| *m = sums.get(group) as f64 / divisor(group));
                }
                State::Floats(sums) => {
                    means.iter_mut().zip(groups).for_each(|(m, group)| *m = sums[group] / divisor(group));
                }
                _ => return Err(mismatch()),
            }
            null_where_unseen(Some(counts), start, rows, out);
        }
        (ResultKind::Extreme { state, seen }, of) => {
            let State::Extreme(extreme) = of(state) else { return Err(mismatch()) };
            extreme.write(start, rows, out);
            let seen = seen.as_ref().map(|seen| counts(of(seen))).transpose()?;
            null_where_unseen(seen, start, rows, out);
        }
        (ResultKind::Any(state), of) => {
            let State::Any(any) = of(state) else { return Err(mismatch()) };
            any.write(start, rows, out);
        }
        (ResultKind::External(state), of) => {
            let State::Results(results) = of(state) else { return Err(mismatch()) };
            results.read(0, start >> 16, start & 0xffff, rows, out);
        }
    }
    Ok(())
}

fn mismatch() -> Error {
    Error::internal("an aggregate's result does not belong to its state")
}

fn counts(state: &State) -> Result<&[i64]> {
    match state {
        State::Count(counts) => Ok(counts),
        _ => Err(mismatch()),
    }
}

fn null_where_unseen(seen: Option<&[i64]>, start: usize, rows: usize, out: &mut Vector) {
    let Some(seen) = seen else { return };
    for (row, _) in seen[start..start + rows].iter().enumerate().filter(|(_, count)| **count == 0) {
        out.set_null(row);
    }
}

fn write_integers(
    spec: &ResultSpec,
    sums: &IntegerSums,
    seen: Option<&[i64]>,
    start: usize,
    rows: usize,
    out: &mut Vector,
) -> Result<()> {
    let too_large = |sum: i128| {
        let ty = spec.meta.ty;
        Error::input(format!("sum {} does not fit {ty}", Value::Integer(sum).display(ty)))
    };
    macro_rules! narrow {
        ($t:ty) => {
            for (out, group) in out.begin_flat::<$t>(rows).iter_mut().zip(start..start + rows) {
                let sum = sums.get(group);
                *out = <$t>::try_from(sum).map_err(|_| too_large(sum))?;
            }
        };
    }
    match spec.meta.physical {
        PhysicalType::I128 => {
            let (least, most) = spec.meta.ty.integer_range().unwrap_or((i128::MIN, i128::MAX));
            for (out, group) in out.begin_flat::<i128>(rows).iter_mut().zip(start..start + rows) {
                *out = sums.get(group);
                if *out < least || *out > most {
                    return Err(too_large(*out));
                }
            }
        }
        PhysicalType::I64 => narrow!(i64),
        PhysicalType::U64 => narrow!(u64),
        _ => {
            out.begin(rows);
            for row in 0..rows {
                let unseen = seen.is_some_and(|seen| seen[start + row] == 0);
                let sum = sums.get(start + row);
                let value = if unseen { Value::Null } else { Value::Integer(sum) };
                out.write_value(row, &value).map_err(|_| too_large(sum))?;
            }
        }
    }
    Ok(())
}
