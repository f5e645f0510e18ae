//! The options of `CREATE SEQUENCE` and identity columns.
//!
//! The defaults are those of PostgreSQL: a sequence counts up from 1 to the greatest BIGINT, one with a
//! negative increment down from -1.

use super::bound::SequenceOptions;
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{self, Expr, UnaryOperator, Value};

/// The given options, and defaults for the rest. Numbers are limited to the range of `ty`.
pub(crate) fn options(given: &[ast::SequenceOptions], ty: DataType) -> Result<SequenceOptions> {
    use ast::SequenceOptions as Sql;
    let (lowest, highest) = match ty {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::Int64 => (i64::MIN, i64::MAX),
        other => {
            return Err(Error::input(format!("a sequence counts SMALLINT, INTEGER or BIGINT, not {other}")));
        }
    };
    let (mut start, mut increment, mut min, mut max, mut cycle) = (None, 1, None, None, false);
    for option in given {
        match option {
            Sql::IncrementBy(number, _) => increment = integer(number)?,
            Sql::MinValue(number) => min = number.as_ref().map(integer).transpose()?,
            Sql::MaxValue(number) => max = number.as_ref().map(integer).transpose()?,
            Sql::StartWith(number, _) => start = Some(integer(number)?),
            // Values are not allocated in advance.
            Sql::Cache(_) => {}
            // The parser's flag is true for NO CYCLE.
            Sql::Cycle(no) => cycle = !no,
        }
    }
    if increment == 0 {
        return Err(Error::input("the INCREMENT of a sequence is 0"));
    }
    let up = increment > 0;
    let min = min.unwrap_or(if up { 1 } else { lowest });
    let max = max.unwrap_or(if up { highest } else { -1 });
    if min > max {
        return Err(Error::input(format!(
            "the MINVALUE of a sequence, {min}, is greater than its MAXVALUE, {max}"
        )));
    }
    if min < lowest || max > highest {
        return Err(Error::input(format!("a sequence of {ty} counts from {lowest} to {highest}")));
    }
    let start = start.unwrap_or(if up { min } else { max });
    if !(min..=max).contains(&start) {
        return Err(Error::input(format!(
            "the START of a sequence, {start}, is not between {min} and {max}"
        )));
    }
    Ok(SequenceOptions { start, increment, min, max, cycle })
}

fn integer(expr: &Expr) -> Result<i64> {
    let digits = match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => Some(format!("-{text}")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let number = digits.and_then(|digits| digits.replace('_', "").parse().ok());
    number.ok_or_else(|| Error::input(format!("options of a sequence must be BIGINT numbers, not {expr}")))
}
