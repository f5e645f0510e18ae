//! Aggregates that depend on an order: first and last, the value at an extreme, the most frequent value,
//! quantiles.

use super::accumulator::{Accumulator, Call, held, room};
use super::kind::Kind;
use super::selection::{least, select};
use crate::definition::row::Row;
use entasis_vector::expr::calendar::{add_intervals, scale_interval};
use entasis_vector::types::Interval;
use entasis_vector::value::cmp_float;
use entasis_vector::{DataType, Error, Result, Value, statement};
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// Entries of a table between two looks at the statement.
const STEP: u64 = 1 << 12;

/// The first value.
#[derive(Default, Clone)]
pub(super) struct First(Option<Value>);

impl Accumulator for First {
    const TAKES_NULLS: bool = true;

    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        if self.0.is_some() || (call.ignore_nulls && row.is_null(0)) {
            return Ok(());
        }
        self.0 = Some(row.value(0));
        Ok(())
    }

    fn held(&self) -> usize {
        self.0.as_ref().map_or(0, held)
    }

    fn merge(&mut self, _: &Call, other: First) -> Result<()> {
        if self.0.is_none() {
            self.0 = other.0;
        }
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(self.0.take().unwrap_or(Value::Null))
    }
}

/// The last value.
#[derive(Default, Clone)]
pub(super) struct Last(Option<Value>);

impl Accumulator for Last {
    const TAKES_NULLS: bool = true;

    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        if call.ignore_nulls && row.is_null(0) {
            return Ok(());
        }
        self.0 = Some(row.value(0));
        Ok(())
    }

    fn held(&self) -> usize {
        self.0.as_ref().map_or(0, held)
    }

    fn merge(&mut self, _: &Call, other: Last) -> Result<()> {
        if other.0.is_some() {
            self.0 = other.0;
        }
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(self.0.take().unwrap_or(Value::Null))
    }
}

/// The first argument in the row where the second is least or greatest; the first such row if several are
/// equal.
#[derive(Default, Clone)]
pub(super) struct Extreme<const NULLS: bool>(Option<(Value, Value)>);

impl<const NULLS: bool> Extreme<NULLS> {
    fn beats(call: &Call, new: &Value, old: &Value) -> bool {
        let wanted = match call.kind {
            Kind::Extreme { greatest: true, .. } => Ordering::Greater,
            _ => Ordering::Less,
        };
        new.cmp_in(old, call.args[1]) == wanted
    }
}

impl<const NULLS: bool> Accumulator for Extreme<NULLS> {
    const TAKES_NULLS: bool = NULLS;

    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        if row.is_null(1) {
            return Ok(());
        }
        let by = row.value(1);
        if self.0.as_ref().is_some_and(|(_, old)| !Self::beats(call, &by, old)) {
            return Ok(());
        }
        self.0 = Some((row.value(0), by));
        Ok(())
    }

    fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |(a, b)| held(a) + held(b))
    }

    fn merge(&mut self, call: &Call, other: Self) -> Result<()> {
        match (&self.0, &other.0) {
            (Some((_, old)), Some((_, new))) if !Self::beats(call, new, old) => {}
            (_, Some(_)) => self.0 = other.0,
            (_, None) => {}
        }
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(self.0.take().map_or(Value::Null, |(value, _)| value))
    }
}

/// The frequency of each value: for the most frequent one, and for the entropy.
#[derive(Default, Clone)]
pub(super) struct Counts {
    /// The count, and the number of the row with the first occurrence.
    values: HashMap<Value, (u64, u64)>,
    rows: u64,
    /// Bytes of the values besides their own size.
    texts: usize,
}

impl Accumulator for Counts {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        let value = row.value(0);
        self.rows += 1;
        let bytes = held(&value);
        let entry = self.values.entry(value).or_insert((0, self.rows));
        entry.0 += 1;
        if entry.0 == 1 {
            self.texts += bytes;
        }
        Ok(())
    }

    fn held(&self) -> usize {
        // A table has a byte for each place besides, and an eighth of its places stay empty.
        let places = self.values.capacity() / 7 * 8;
        places * (size_of::<(Value, (u64, u64))>() + 1) + self.texts
    }

    fn merge(&mut self, _: &Call, other: Counts) -> Result<()> {
        for (at, (value, (count, first))) in (0..).zip(other.values) {
            look(at)?;
            let bytes = held(&value);
            let entry = self.values.entry(value).or_insert((0, self.rows + first));
            if entry.0 == 0 {
                self.texts += bytes;
            }
            entry.0 += count;
        }
        self.rows += other.rows;
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        if call.kind == Kind::Entropy {
            let mut entropy = 0.0;
            for (at, (count, _)) in (0..).zip(self.values.values()) {
                look(at)?;
                let share = *count as f64 / self.rows as f64;
                entropy -= share * share.log2();
            }
            return Ok(Value::Float(f64::max(entropy, 0.0)));
        }
        // Of equally frequent values, the one that occurred first.
        let mut best: Option<(u64, Reverse<u64>, &Value)> = None;
        for (at, (value, (count, first))) in (0..).zip(&self.values) {
            look(at)?;
            if best.is_none_or(|(most, earliest, _)| (*count, Reverse(*first)) > (most, earliest)) {
                best = Some((*count, Reverse(*first), value));
            }
        }
        Ok(best.map_or(Value::Null, |(_, _, value)| value.clone()))
    }
}

/// Looks now and then whether the statement goes on, in a loop over the entries of a table.
fn look(at: u64) -> Result<()> {
    if at.is_multiple_of(STEP) { statement::check() } else { Ok(()) }
}

/// Values that are collected to be sorted.
#[derive(Clone)]
pub(super) enum Sorted {
    Integers(Vec<i64>, Wanted),
    Floats(Vec<f64>, Wanted),
    /// And their bytes besides their own size.
    Values(Vec<Value>, Wanted, usize),
}

/// The requested share of the order, and the end from which it counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    share: Option<f64>,
    descending: bool,
}

impl Default for Sorted {
    fn default() -> Sorted {
        Sorted::Values(Vec::new(), Wanted::default(), 0)
    }
}

impl Sorted {
    fn len(&self) -> usize {
        match self {
            Sorted::Integers(values, _) => values.len(),
            Sorted::Floats(values, _) => values.len(),
            Sorted::Values(values, ..) => values.len(),
        }
    }

    fn wanted(&mut self) -> &mut Wanted {
        match self {
            Sorted::Integers(_, wanted) | Sorted::Floats(_, wanted) | Sorted::Values(_, wanted, _) => wanted,
        }
    }

    /// The value at a rank of the order; afterwards values before it are not greater, and those behind it
    /// not smaller.
    fn at(&mut self, call: &Call, place: usize) -> Result<Value> {
        Ok(match self {
            Sorted::Integers(values, _) => Value::Integer((*select(values, place, i64::cmp)?).into()),
            Sorted::Floats(values, _) => Value::Float(*select(values, place, |a, b| cmp_float(*a, *b))?),
            Sorted::Values(values, ..) => select(values, place, |a, b| a.cmp_in(b, call.args[0]))?.clone(),
        })
    }

    /// The value that follows the one at a rank, which [`Sorted::at`] has just found; or that which precedes
    /// it, in the order that descends. There must be one.
    fn beside(&self, call: &Call, place: usize, descending: bool) -> Result<Value> {
        fn of<T>(
            values: &[T],
            place: usize,
            descending: bool,
            order: impl Fn(&T, &T) -> Ordering,
        ) -> Result<&T> {
            let found = match descending {
                true => least(&values[..place], |a, b| order(b, a))?,
                false => least(&values[place + 1..], |a, b| order(a, b))?,
            };
            found.ok_or_else(|| Error::internal("there is no value beside the last one"))
        }
        Ok(match self {
            Sorted::Integers(values, _) => Value::Integer((*of(values, place, descending, i64::cmp)?).into()),
            Sorted::Floats(values, _) => {
                Value::Float(*of(values, place, descending, |a, b| cmp_float(*a, *b))?)
            }
            Sorted::Values(values, ..) => {
                of(values, place, descending, |a, b| a.cmp_in(b, call.args[0]))?.clone()
            }
        })
    }

    /// The value at a share of the order.
    fn quantile(&mut self, call: &Call, share: f64, continuous: bool) -> Result<Value> {
        let count = self.len();
        if count == 0 {
            return Ok(Value::Null);
        }
        let descending = self.wanted().descending;
        let flip = |place: usize| if descending { count - 1 - place } else { place };
        if !continuous {
            let place = (share * count as f64).ceil().max(1.0) as usize - 1;
            return self.at(call, flip(place.min(count - 1)));
        }
        let exact = share * (count - 1) as f64;
        let (low, fraction) = (exact.floor() as usize, exact.fract());
        let first = self.at(call, flip(low))?;
        if fraction == 0.0 {
            return Ok(converted(first, call));
        }
        let second = self.beside(call, flip(low), descending)?;
        Ok(interpolated(&first, &second, fraction, call))
    }
}

/// A collected value converted to the result's type.
fn converted(value: Value, call: &Call) -> Value {
    match (value, call.result) {
        (Value::Integer(v), DataType::Float64) => Value::Float(v as f64),
        (value, _) => value,
    }
}

/// The value at a fraction of the way between two values.
fn interpolated(a: &Value, b: &Value, fraction: f64, call: &Call) -> Value {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => Value::Float(if a == b { *a } else { a + (b - a) * fraction }),
        (Value::Integer(a), Value::Integer(b)) if call.result == DataType::Float64 => {
            let (a, b) = (*a as f64, *b as f64);
            Value::Float(a + (b - a) * fraction)
        }
        (Value::Integer(a), Value::Integer(b)) => {
            Value::Integer(a + ((b - a) as f64 * fraction).round() as i128)
        }
        (Value::Interval(a), Value::Interval(b)) => {
            let parts = scale_interval(*a, 1.0 - fraction).zip(scale_interval(*b, fraction));
            parts.and_then(|(a, b)| add_intervals(a, b)).map_or(Value::Null, Value::Interval)
        }
        _ => a.clone(),
    }
}

impl Accumulator for Sorted {
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        if self.len() == 0 {
            let mut wanted = Wanted { share: None, descending: row.count() > 2 && row.test(2) };
            if row.count() > 1 {
                let share = row.float(1);
                if !(-1.0..=1.0).contains(&share) {
                    return Err(Error::input(format!("{}: {share:?} is not from 0 to 1", call.name)));
                }
                // As in DuckDB, a negative share counts from the other end.
                wanted.descending ^= share < 0.0;
                wanted.share = Some(share.abs());
            }
            *self = match row.ty(0) {
                ty if ty.is_float() => Sorted::Floats(Vec::new(), wanted),
                ty if ty.physical().is_integer() && ty != DataType::UInt64 && ty != DataType::Boolean => {
                    Sorted::Integers(Vec::new(), wanted)
                }
                _ => Sorted::Values(Vec::new(), wanted, 0),
            };
        }
        match self {
            Sorted::Integers(values, _) => values.push(row.whole(0)),
            Sorted::Floats(values, _) => values.push(row.float(0)),
            Sorted::Values(values, _, texts) => {
                let value = row.value(0);
                *texts += held(&value);
                values.push(value);
            }
        }
        Ok(())
    }

    fn held(&self) -> usize {
        match self {
            Sorted::Integers(values, _) => room(values),
            Sorted::Floats(values, _) => room(values),
            Sorted::Values(values, _, texts) => room(values) + texts,
        }
    }

    fn merge(&mut self, _: &Call, mut other: Sorted) -> Result<()> {
        match (&mut *self, &mut other) {
            (own, _) if own.len() == 0 => *self = other,
            (Sorted::Integers(own, _), Sorted::Integers(theirs, _)) => own.append(theirs),
            (Sorted::Floats(own, _), Sorted::Floats(theirs, _)) => own.append(theirs),
            (Sorted::Values(own, _, texts), Sorted::Values(theirs, _, more)) => {
                own.append(theirs);
                *texts += *more;
            }
            _ => {}
        }
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let share = self.wanted().share.unwrap_or(0.5);
        match call.kind {
            Kind::Quantile { continuous } => self.quantile(call, share, continuous),
            Kind::Deviation => self.deviation(call),
            _ => self.quantile(call, share, true),
        }
    }
}

impl Sorted {
    /// The median of the absolute deviations from the median.
    fn deviation(&mut self, call: &Call) -> Result<Value> {
        let span = call.result == DataType::Interval;
        let inner = Call { result: if span { DataType::Timestamp } else { call.result }, ..call.clone() };
        let median = self.quantile(&inner, 0.5, true)?;
        let far = |v: &Value| match (v, &median) {
            (Value::Float(v), Value::Float(m)) => Value::Float((v - m).abs()),
            (Value::Integer(v), Value::Float(m)) => Value::Float((*v as f64 - m).abs()),
            (Value::Integer(v), Value::Integer(m)) => Value::Integer((v - m).abs()),
            _ => Value::Null,
        };
        let distances: Vec<Value> = match self {
            Sorted::Integers(values, _) => values.iter().map(|v| far(&Value::Integer((*v).into()))).collect(),
            Sorted::Floats(values, _) => values.iter().map(|v| far(&Value::Float(*v))).collect(),
            Sorted::Values(values, ..) => values.iter().map(far).collect(),
        };
        let median = Sorted::Values(distances, Wanted::default(), 0).quantile(&inner, 0.5, true)?;
        Ok(match median {
            Value::Integer(micros) if span => Value::Interval(Interval {
                months: 0,
                days: 0,
                micros: i64::try_from(micros).unwrap_or(i64::MAX),
            }),
            other => other,
        })
    }
}
