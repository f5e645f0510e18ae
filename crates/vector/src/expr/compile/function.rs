//! Functions, and the bounds of fields of dates.

use super::{Graph, Kind, NodeId, Range, both};
use crate::expr::calendar::{extract_date, truncate_date};
use crate::expr::kernels::arithmetic::Single;
use crate::expr::{DatePart, Function};
use crate::types::{INFINITE_DATE, INFINITE_TIMESTAMP};
use crate::{DataType, Result, Value};

impl Graph<'_> {
    pub(super) fn function(&mut self, function: Function, args: Vec<NodeId>, ty: DataType) -> Result<NodeId> {
        Ok(match function {
            Function::Extract(part) => {
                let args = vec![self.natural(args[0])];
                if self.is_null(args[0]) {
                    return Ok(self.literal(&Value::Null, ty));
                }
                let input = self.node(args[0]);
                let nullable = input.nullable || may_be_infinite(input.ty, input.range);
                let all = ty.integer_range();
                let range = all.and(field_range(part, input.ty, input.range)).or(all);
                self.finish(Kind::Extract(part), args, ty, ty.physical(), nullable, range)
            }
            Function::Truncate(part) => {
                let args = vec![self.natural(args[0])];
                let input = self.node(args[0]);
                let range = match (input.ty, ty, input.range) {
                    (DataType::Date, DataType::Date, Some(range)) => truncated_range(part, range),
                    _ => ty.integer_range(),
                };
                self.strict_as(Kind::Truncate(part), args, ty, ty.physical(), range)
            }
            Function::Saturate => {
                let args = vec![self.natural(args[0])];
                self.strict_as(Kind::Saturate, args, ty, ty.physical(), None)
            }
            Function::Abs => self.single(Single::Abs, args[0]),
            Function::Floor => self.single(Single::Floor, args[0]),
            Function::Ceil => self.single(Single::Ceil, args[0]),
            Function::Sqrt => self.single(Single::Sqrt, args[0]),
            Function::Substring => {
                let mut args = args;
                for arg in &mut args[1..] {
                    let cast = self.cast(*arg, DataType::Int64, false);
                    *arg = self.natural(cast);
                }
                self.strict(Kind::String(function), args, ty)
            }
            _ => self.strict(Kind::String(function), args, ty),
        })
    }
}

/// The bounds of a field of dates or timestamps within a range.
fn field_range(part: DatePart, from: DataType, range: Option<Range>) -> Option<Range> {
    if !matches!(from, DataType::Date | DataType::Timestamp | DataType::TimestampTz) {
        return None;
    }
    match part {
        DatePart::Year if from == DataType::Date => {
            // Years ascend with their days.
            let (low, high) = range.filter(|_| !may_be_infinite(from, range))?;
            let year = |days: i128| i64::try_from(days).ok().map(|days| extract_date(part, days).into());
            both(year(low), year(high))
        }
        DatePart::Quarter => Some((1, 4)),
        DatePart::Month => Some((1, 12)),
        DatePart::Day => Some((1, 31)),
        DatePart::DayOfYear => Some((1, 366)),
        DatePart::Week => Some((1, 53)),
        DatePart::DayOfWeek => Some((0, 6)),
        DatePart::IsoDayOfWeek => Some((1, 7)),
        _ => None,
    }
}

/// The bounds of truncated dates, which ascend with the dates where a millennium less is a date as well.
fn truncated_range(part: DatePart, (low, high): Range) -> Option<Range> {
    const FAR: i64 = 2_000_000_000;
    let start = |days: i128| {
        let days = i64::try_from(days).ok().filter(|days| (-FAR..=FAR).contains(days))?;
        Some(truncate_date(part, days).into())
    };
    both(start(low), start(high)).or(DataType::Date.integer_range())
}

/// True if a value may be infinity, which has no fields.
fn may_be_infinite(ty: DataType, range: Option<Range>) -> bool {
    let infinity = match ty {
        DataType::Date => i128::from(INFINITE_DATE),
        DataType::Timestamp | DataType::TimestampNs | DataType::TimestampTz => i128::from(INFINITE_TIMESTAMP),
        _ => return false,
    };
    range.is_none_or(|(low, high)| low <= -infinity || high >= infinity)
}
