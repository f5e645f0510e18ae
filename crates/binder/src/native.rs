//! Scalar functions that are expressions of the engine.

use crate::binder::Binder;
use crate::bound::Bound;
use crate::operator::{case, comparable, condition, unified};
use entasis_functions::catalog::call::{catalog_call, named_call};
use entasis_functions::kernels::{SUBSTRING, TRUNCATE_INTERVAL};
use entasis_functions::types::{Given, Implicit, Meeting, implicit};
use entasis_functions::{TimeZone, chance, date_part, zoned};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::{ArithmeticOp, CompareOp, DatePart, Expr, Function};
use entasis_vector::{DataType, Error, Result, Value};
use sqlparser::ast::BinaryOperator;

/// Their names, sorted.
const NAMES: &[&str] = &[
    "abs",
    "add",
    "ceil",
    "ceiling",
    "century",
    "char_length",
    "character_length",
    "coalesce",
    "contains",
    "date_add",
    "date_part",
    "date_trunc",
    "datepart",
    "datetrunc",
    "day",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "decade",
    "ends_with",
    "epoch",
    "era",
    "floor",
    "gen_random_uuid",
    "hour",
    "if",
    "ifnull",
    "isodow",
    "isoyear",
    "julian",
    "lcase",
    "len",
    "length",
    "lower",
    "microsecond",
    "millennium",
    "millisecond",
    "minute",
    "mod",
    "month",
    "multiply",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "prefix",
    "quarter",
    "random",
    "second",
    "sqrt",
    "starts_with",
    "strlen",
    "substr",
    "substring",
    "subtract",
    "suffix",
    "ucase",
    "upper",
    "uuid",
    "uuidv4",
    "week",
    "weekday",
    "weekofyear",
    "xor",
    "year",
    "yearweek",
];

/// True if [`Binder::native`] binds it.
pub(crate) fn is_native(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// The part of a date that a function of this name gives.
fn part_named(name: &str) -> Option<DatePart> {
    Some(match name {
        "weekday" => DatePart::DayOfWeek,
        "weekofyear" => DatePart::Week,
        "dayofmonth" => DatePart::Day,
        "isodow" => DatePart::IsoDayOfWeek,
        name => date_part(name)?,
    })
}

fn function(function: Function, args: Vec<Expr>, ty: DataType) -> Result<Bound> {
    Ok(Bound::known(Expr::Function { function, args, ty }))
}

/// The error of a function that does not take such arguments.
pub(crate) fn wrong(name: &str, args: &[Bound]) -> Error {
    let types: Vec<String> = args.iter().map(|arg| arg.given.to_string()).collect();
    let error = Error::input(format!("{name} does not take ({})", types.join(", ")));
    error.with_sqlstate(sqlstate::NO_FUNCTION)
}

/// The first of these types that the argument becomes unasked, and at the least cost.
fn nearest(given: Given, types: &[DataType]) -> Option<DataType> {
    let costs = types.iter().filter_map(|ty| Some((implicit(given, *ty)?, *ty)));
    costs.min_by_key(|(Implicit(cost), _)| *cost).map(|(_, ty)| ty)
}

impl<'a, 'q> Binder<'a, 'q> {
    /// A call of one of [`NAMES`].
    pub(crate) fn native(&mut self, name: &str, mut args: Vec<Bound>) -> Result<Bound> {
        match (name, args.len()) {
            ("upper" | "ucase" | "lower" | "lcase", 1) => {
                let which = if name.starts_with('u') { Function::Upper } else { Function::Lower };
                let text = args.remove(0).implicit(DataType::Varchar, name)?;
                function(which, vec![text], DataType::Varchar)
            }
            ("length" | "len" | "char_length" | "character_length", 1) => length(name, args.remove(0)),
            ("octet_length" | "strlen", 1) => {
                let ty = if args[0].ty() == DataType::Blob { DataType::Blob } else { DataType::Varchar };
                let bytes = args.remove(0).implicit(ty, name)?;
                function(Function::OctetLength, vec![bytes], DataType::Int64)
            }
            ("starts_with" | "prefix" | "ends_with" | "suffix" | "contains", 2) => self.contains(name, args),
            ("substring" | "substr", 2 | 3) => self.substring(name, args),
            ("abs", 1) => abs(name, args.remove(0)),
            ("floor" | "ceil" | "ceiling" | "sqrt", 1) => {
                let which = match name {
                    "floor" => Function::Floor,
                    "sqrt" => Function::Sqrt,
                    _ => Function::Ceil,
                };
                let number = args.remove(0).implicit(DataType::Float64, name)?;
                function(which, vec![number], DataType::Float64)
            }
            ("date_part" | "datepart", 2) => self.date_part(name, args),
            ("date_trunc" | "datetrunc", 2 | 3) => self.date_trunc(name, args),
            ("nullif", 2) => {
                let (b, a) = (args.remove(1), args.remove(0));
                nullif(a, b)
            }
            ("coalesce", 0) => Err(Error::input("coalesce needs an argument")),
            ("coalesce", _) | ("ifnull" | "nvl", 2) => coalesce(name, args),
            ("if" | "nvl2", 3) => {
                let (otherwise, then, first) = (args.pop(), args.pop(), args.remove(0));
                let first = match name {
                    "if" => condition(first)?,
                    _ => is_not_null(first.expr),
                };
                let then = then.ok_or_else(|| Error::internal("if without results"))?;
                case(vec![(first, then)], otherwise)
            }
            ("mod" | "add" | "date_add" | "subtract" | "multiply" | "xor", 2) => {
                let (op, written) = operator_named(name);
                let right = args.remove(1);
                self.arithmetic(op, args.remove(0), right, &written)
            }
            ("random", 0) => Ok(Bound::known(chance::random())),
            ("uuid" | "gen_random_uuid" | "uuidv4", 0) => Ok(Bound::known(chance::uuid())),
            (name, 1) if part_named(name).is_some() => {
                let part = part_named(name).expect("just found");
                extract(name, part, args.remove(0))
            }
            _ => Err(wrong(name, &args)),
        }
    }

    /// `starts_with(text, part)`, `ends_with(text, part)`, `contains(text, part)`, `contains(list, element)`
    fn contains(&mut self, name: &str, args: Vec<Bound>) -> Result<Bound> {
        if matches!(args[0].ty(), DataType::List(_) | DataType::Array(..)) && name == "contains" {
            return self.call("list_contains", args);
        }
        let which = match name {
            "starts_with" | "prefix" => Function::StartsWith,
            "contains" => Function::Contains,
            _ => Function::EndsWith,
        };
        let args =
            args.into_iter().map(|arg| arg.implicit(DataType::Varchar, name)).collect::<Result<_>>()?;
        function(which, args, DataType::Boolean)
    }

    fn substring(&mut self, name: &str, mut args: Vec<Bound>) -> Result<Bound> {
        use DataType::{Blob, Float64, Int64, Varchar};
        let is_blob = args[0].ty() == Blob;
        let is_of_pattern = args.len() == 2 && args[1].ty() == Varchar && args[0].ty() == Varchar;
        let text = args.remove(0).implicit(if is_blob { Blob } else { Varchar }, name)?;
        let result = text.ty();
        let mut exprs = vec![text];
        for arg in args {
            exprs.push(match arg.given {
                _ if is_of_pattern => arg.cast(Varchar),
                // A number with a fraction is rounded.
                given if given.is_numeric() && !given.is_integer() => {
                    Bound::known(arg.cast(Float64)).cast(Int64)
                }
                _ => arg.implicit(Int64, name)?,
            });
        }
        if is_blob || is_of_pattern {
            return Ok(Bound::known(catalog_call(
                "substring",
                &SUBSTRING,
                exprs,
                Some(result),
                TimeZone::UTC,
            )?));
        }
        function(Function::Substring, exprs, Varchar)
    }

    /// `date_part('part', x)`
    fn date_part(&mut self, name: &str, mut args: Vec<Bound>) -> Result<Bound> {
        let arg = args.remove(1);
        let part = args.remove(0);
        let text = match &part.expr {
            Expr::Literal { value: Value::Text(text), .. } => text.clone(),
            Expr::Literal { value: Value::Null, .. } => return Ok(Bound::null().into(DataType::Int64)),
            _ => return Err(Error::not_supported("date parts that are not constants")),
        };
        if let Some((unit, within)) = offset_part(&text) {
            return match arg.ty() {
                DataType::TimestampTz => {
                    Ok(Bound::known(zoned::offset(self.session.zone, arg.expr, unit, within)))
                }
                DataType::TimeTz => Ok(Bound::known(zoned::own_offset(arg.expr, unit, within))),
                other => Err(Error::input(format!("a {other} has no {text}").to_ascii_lowercase())),
            };
        }
        extract(name, part_of(&text)?, arg)
    }

    /// `date_trunc('part', x)`, `date_trunc('part', TIMESTAMPTZ, 'zone')`
    fn date_trunc(&mut self, name: &str, mut args: Vec<Bound>) -> Result<Bound> {
        let zone = if args.len() == 3 { args.pop() } else { None };
        let arg = args.remove(1);
        let text = match &args[0].expr {
            Expr::Literal { value: Value::Text(text), .. } => text.clone(),
            _ => return Err(Error::not_supported("date parts that are not constants")),
        };
        let part = part_of(&text)?;
        if let Some(zone) = zone {
            let instant = arg.implicit(DataType::TimestampTz, name)?;
            return match zone.expr {
                Expr::Literal { value: Value::Null, .. } => Ok(Bound::null().into(DataType::TimestampTz)),
                Expr::Literal { value, .. } => {
                    Ok(Bound::known(zoned::truncated(zoned::zone_of(&value)?, part, instant)))
                }
                _ => Err(Error::not_supported("date_trunc in a time zone that is not constant")),
            };
        }
        let ty = match moment(&arg) {
            Some(ty) if ty != DataType::Time => ty,
            _ => return Err(wrong(name, &[args.remove(0), arg])),
        };
        let arg = arg.cast(ty);
        if ty == DataType::Interval {
            let args = vec![Bound::text(&text).expr, arg];
            let call = catalog_call("date_trunc", &TRUNCATE_INTERVAL, args, Some(ty), TimeZone::UTC)?;
            return Ok(Bound::known(call));
        }
        function(Function::Truncate(part), vec![arg], ty)
    }
}

/// The number of characters of a text, of elements of a list, or of bytes.
fn length(name: &str, arg: Bound) -> Result<Bound> {
    match arg.ty() {
        DataType::List(_) | DataType::Array(..) => {
            Ok(Bound::known(named_call("array_length", vec![arg.expr], TimeZone::UTC)?))
        }
        DataType::Blob => function(Function::OctetLength, vec![arg.expr], DataType::Int64),
        _ => function(Function::CharLength, vec![arg.implicit(DataType::Varchar, name)?], DataType::Int64),
    }
}

/// `abs(number)`
fn abs(name: &str, arg: Bound) -> Result<Bound> {
    match arg.given {
        Given::Null => Ok(Bound::null().into(DataType::Int64)),
        given if given.is_numeric() => {
            let ty = arg.ty();
            function(Function::Abs, vec![arg.expr], ty)
        }
        Given::Text => function(Function::Abs, vec![arg.cast(DataType::Float64)], DataType::Float64),
        _ => Err(wrong(name, &[arg])),
    }
}

/// `nullif(a, b)`: NULL if they are equal, and otherwise `a`.
fn nullif(a: Bound, b: Bound) -> Result<Bound> {
    let a = if a.given == Given::Null { a.into(b.ty()) } else { Bound::known(a.expr) };
    let (left, right) = comparable(CompareOp::Eq, a.clone(), b)?;
    let equal = Expr::compare(CompareOp::Eq, left, right);
    case(vec![(equal, Bound::null())], Some(a))
}

/// The first argument that is not NULL.
fn coalesce(name: &str, args: Vec<Bound>) -> Result<Bound> {
    let (mut args, _) = unified(args, Meeting::Strict, name)?;
    let last = args.pop().map(Bound::known);
    let branches: Vec<(Expr, Bound)> =
        args.into_iter().map(|arg| (is_not_null(arg.clone()), Bound::known(arg))).collect();
    match (branches.is_empty(), last) {
        (true, Some(last)) => Ok(last),
        (_, last) => case(branches, last),
    }
}

fn is_not_null(expr: Expr) -> Expr {
    Expr::Not(Box::new(Expr::IsNull(Box::new(expr))))
}

/// The operator that a function of this name is, and how it is written.
fn operator_named(name: &str) -> (ArithmeticOp, BinaryOperator) {
    match name {
        "mod" => (ArithmeticOp::Modulo, BinaryOperator::Modulo),
        "subtract" => (ArithmeticOp::Subtract, BinaryOperator::Minus),
        "multiply" => (ArithmeticOp::Multiply, BinaryOperator::Multiply),
        "xor" => (ArithmeticOp::BitXor, BinaryOperator::PGBitwiseXor),
        _ => (ArithmeticOp::Add, BinaryOperator::Plus),
    }
}

/// The type as which an argument is a date, a time or an interval; `None` if it is none of these.
fn moment(arg: &Bound) -> Option<DataType> {
    use DataType::{Date, Interval, Time, TimeTz, Timestamp, TimestampNs, TimestampTz};
    match arg.given {
        // Its clock's time.
        Given::Known(TimeTz) => Some(Time),
        Given::Known(TimestampNs) => Some(Timestamp),
        Given::Known(ty @ (Date | Time | Timestamp | TimestampTz | Interval)) => Some(ty),
        Given::Known(_) => None,
        given => nearest(given, &[Timestamp]),
    }
}

/// The part of a date, time or interval.
fn extract(name: &str, part: DatePart, arg: Bound) -> Result<Bound> {
    let Some(ty) = moment(&arg) else { return Err(wrong(name, &[arg])) };
    let fits = match ty {
        // The seconds of a TIMETZ would be those of its clock.
        DataType::Time if part == DatePart::Epoch => arg.ty() != DataType::TimeTz,
        DataType::Time => matches!(
            part,
            DatePart::Hour
                | DatePart::Minute
                | DatePart::Second
                | DatePart::Millisecond
                | DatePart::Microsecond
        ),
        DataType::Interval => !matches!(
            part,
            DatePart::Week
                | DatePart::YearWeek
                | DatePart::IsoYear
                | DatePart::Julian
                | DatePart::Era
                | DatePart::DayOfWeek
                | DatePart::IsoDayOfWeek
                | DatePart::DayOfYear
        ),
        _ => true,
    };
    if !fits {
        return Err(Error::input(format!("a {ty} has no {part:?}").to_ascii_lowercase()));
    }
    let result = match part {
        DatePart::Epoch | DatePart::Julian => DataType::Float64,
        _ => DataType::Int64,
    };
    function(Function::Extract(part), vec![arg.cast(ty)], result)
}

/// The unit of a part of a zone's offset, in seconds, and the longer unit of which it is a part.
fn offset_part(part: &str) -> Option<(i64, i64)> {
    match part.to_ascii_lowercase().as_str() {
        "timezone" => Some((1, i64::MAX)),
        "timezone_hour" => Some((3600, i64::MAX)),
        "timezone_minute" => Some((60, 3600)),
        _ => None,
    }
}

fn part_of(text: &str) -> Result<DatePart> {
    date_part(text).ok_or_else(|| Error::input(format!("there is no date part '{text}'")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_sorted() {
        assert!(super::NAMES.is_sorted());
    }
}
