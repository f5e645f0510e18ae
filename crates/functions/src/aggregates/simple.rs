//! Aggregates that fold row by row: counts, products, means of dates, bits, concatenated texts.

use super::accumulator::{Accumulator, Call, room};
use super::kind::Kind;
use crate::definition::row::Row;
use entasis_vector::statement::{LONGEST, too_long};
use entasis_vector::types::{Interval, MICROS_PER_DAY};
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value};

/// The number of rows for which the argument is true.
#[derive(Default, Clone)]
pub(super) struct CountIf(i64);

impl Accumulator for CountIf {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        self.0 += i64::from(row.test(0));
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: CountIf) -> Result<()> {
        self.0 += other.0;
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(Value::Integer(self.0.into()))
    }
}

#[derive(Default, Clone)]
pub(super) struct Product(Option<f64>);

impl Accumulator for Product {
    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        self.0 = Some(self.0.unwrap_or(1.0) * row.float(0));
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Product) -> Result<()> {
        if let Some(product) = other.0 {
            self.0 = Some(self.0.unwrap_or(1.0) * product);
        }
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(self.0.map_or(Value::Null, Value::Float))
    }
}

/// The mean of intervals, dates and times, or the sum of intervals.
#[derive(Default, Clone)]
pub(super) struct Mean {
    count: i128,
    months: i128,
    days: i128,
    micros: i128,
}

impl Accumulator for Mean {
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        self.count += 1;
        match call.result {
            DataType::Interval => {
                let Interval { months, days, micros } = row.interval(0);
                self.months += i128::from(months);
                self.days += i128::from(days);
                self.micros += i128::from(micros);
            }
            _ => self.micros += row.wide(0),
        }
        Ok(())
    }

    fn merge(&mut self, _: &Call, other: Mean) -> Result<()> {
        self.count += other.count;
        self.months += other.months;
        self.days += other.days;
        self.micros += other.micros;
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let Mean { count, months, days, micros } = *self;
        if count == 0 {
            return Ok(Value::Null);
        }
        let rounded = |sum: i128| (sum + (count / 2) * sum.signum()) / count;
        if call.kind == Kind::Span {
            return interval(months, days, micros);
        }
        if call.result != DataType::Interval {
            return Ok(Value::Integer(micros.div_euclid(count)));
        }
        // A remainder of months is converted at 30 days, one of days at 24 hours.
        let (whole_months, rest) = (months / count, months % count);
        let days = days + rest * 30;
        let (whole_days, rest) = (days / count, days % count);
        let micros = rounded(micros + rest * i128::from(MICROS_PER_DAY));
        interval(whole_months, whole_days, micros)
    }
}

fn interval(months: i128, days: i128, micros: i128) -> Result<Value> {
    match (i32::try_from(months), i32::try_from(days), i64::try_from(micros)) {
        (Ok(months), Ok(days), Ok(micros)) => Ok(Value::Interval(Interval { months, days, micros })),
        _ => Err(Error::input("the sum or mean of intervals is out of range")),
    }
}

/// `bit_and`, `bit_or`, `bit_xor`.
#[derive(Default, Clone)]
pub(super) struct Bits(Option<i128>);

impl Bits {
    fn put(&mut self, call: &Call, bits: i128) {
        self.0 = Some(match (self.0, call.kind) {
            (None, _) => bits,
            (Some(own), Kind::BitAnd) => own & bits,
            (Some(own), Kind::BitOr) => own | bits,
            (Some(own), _) => own ^ bits,
        });
    }
}

impl Accumulator for Bits {
    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        self.put(call, row.wide(0));
        Ok(())
    }

    fn merge(&mut self, call: &Call, other: Bits) -> Result<()> {
        if let Some(bits) = other.0 {
            self.put(call, bits);
        }
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        Ok(self.0.map_or(Value::Null, Value::Integer))
    }
}

/// `list`: the elements of a list; no list without rows.
#[derive(Default, Clone)]
pub(super) struct Listed(Vec<u8>);

impl Listed {
    fn grow(&mut self, bytes: usize) -> Result<()> {
        match self.0.len() + bytes {
            all if all > LONGEST => Err(too_long(all)),
            _ => Ok(()),
        }
    }
}

impl Accumulator for Listed {
    const TAKES_NULLS: bool = true;

    fn add(&mut self, call: &Call, row: &Row<'_>) -> Result<()> {
        if call.ignore_nulls && row.is_null(0) {
            return Ok(());
        }
        nested::encode_part(&row.value(0), row.ty(0), &mut self.0)?;
        self.grow(1)
    }

    fn held(&self) -> usize {
        room(&self.0)
    }

    fn merge(&mut self, _: &Call, other: Listed) -> Result<()> {
        self.grow(other.0.len() + 1)?;
        self.0.extend(other.0);
        Ok(())
    }

    fn result(&mut self, _: &Call) -> Result<Value> {
        if self.0.is_empty() {
            return Ok(Value::Null);
        }
        let mut list = std::mem::take(&mut self.0);
        nested::end_list(&mut list);
        Ok(Value::Bytes(list.into()))
    }
}

/// `string_agg`: texts or bytes, each preceded by its own row's separator except for the first; a comma if no
/// separator is given.
#[derive(Default, Clone)]
pub(super) struct Join {
    /// The separator of the first text, which is used if another text is put before it.
    before: Vec<u8>,
    joined: Option<Vec<u8>>,
}

impl Accumulator for Join {
    const TAKES_NULLS: bool = true;

    fn add(&mut self, _: &Call, row: &Row<'_>) -> Result<()> {
        if row.is_null(0) {
            return Ok(());
        }
        let separator: &[u8] = match row.count() {
            1 => b",",
            _ if row.is_null(1) => b"",
            _ => row.bytes(1),
        };
        let text = row.bytes(0);
        match &mut self.joined {
            None => {
                self.before = separator.to_vec();
                self.joined = Some(text.to_vec());
            }
            Some(joined) => {
                let bytes = joined.len() + separator.len() + text.len();
                if bytes > LONGEST {
                    return Err(too_long(bytes));
                }
                joined.extend_from_slice(separator);
                joined.extend_from_slice(text);
            }
        }
        Ok(())
    }

    fn held(&self) -> usize {
        room(&self.before) + self.joined.as_ref().map_or(0, room)
    }

    fn merge(&mut self, _: &Call, other: Join) -> Result<()> {
        match (&mut self.joined, other.joined) {
            (Some(own), Some(theirs)) => {
                let bytes = own.len() + theirs.len() + other.before.len();
                if bytes > LONGEST {
                    return Err(too_long(bytes));
                }
                own.extend_from_slice(&other.before);
                own.extend_from_slice(&theirs);
            }
            (None, Some(theirs)) => (self.before, self.joined) = (other.before, Some(theirs)),
            (_, None) => {}
        }
        Ok(())
    }

    fn result(&mut self, call: &Call) -> Result<Value> {
        let Some(joined) = self.joined.take() else { return Ok(Value::Null) };
        if call.result == DataType::Blob {
            return Ok(Value::Bytes(joined.into()));
        }
        let text = String::from_utf8(joined).map_err(|_| Error::internal("text is not UTF-8"))?;
        Ok(Value::Text(text.into()))
    }
}
