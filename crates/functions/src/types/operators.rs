//! Types of arithmetic operators: what both operands are cast to, and the type of the result.
//!
//! Numbers have rules of their own:
//!
//! | operands | result |
//! |---|---|
//! | integers | their common type; `/` truncates, as in PostgreSQL |
//! | a decimal and an exact number | a decimal of as many digits as values may have; `/`: DOUBLE |
//! | a float and a number | REAL, if the other is an integer or written; else DOUBLE |
//!
//! Dates, times and intervals have the signatures of [`SIGNATURES`]; a written text, NULL or parameter
//! becomes what the other operand is if there is such a signature, else an INTERVAL if there is one (`date -
//! '2026-01-01'`, `timestamp + '1 day'`).

use super::decimal::Digits;
use super::implicit::{Implicit, implicit};
use super::{Given, Meeting, common};
use entasis_vector::DataType::{
    self, Date, Float64, Int64, Interval, Time, TimeTz, Timestamp, TimestampNs, TimestampTz,
};
use entasis_vector::expr::ArithmeticOp;

/// The types of an operator's operands and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operands {
    /// What the left operand is cast to.
    pub left: DataType,
    /// What the right operand is cast to.
    pub right: DataType,
    /// The type of the result.
    pub result: DataType,
}

const fn of(left: DataType, right: DataType, result: DataType) -> Operands {
    Operands { left, right, result }
}

/// Signatures of operators on dates, times and intervals.
pub(super) const SIGNATURES: &[(ArithmeticOp, &[Operands])] = &[
    (
        ArithmeticOp::Add,
        &[
            of(Date, Int64, Date),
            of(Int64, Date, Date),
            of(Date, Interval, Timestamp),
            of(Interval, Date, Timestamp),
            of(Date, Time, Timestamp),
            of(Time, Date, Timestamp),
            of(Timestamp, Interval, Timestamp),
            of(Interval, Timestamp, Timestamp),
            of(TimestampNs, Interval, TimestampNs),
            of(Interval, TimestampNs, TimestampNs),
            of(TimestampTz, Interval, TimestampTz),
            of(Interval, TimestampTz, TimestampTz),
            of(Time, Interval, Time),
            of(Interval, Time, Time),
            of(TimeTz, Interval, TimeTz),
            of(Interval, TimeTz, TimeTz),
            of(Interval, Interval, Interval),
        ],
    ),
    (
        ArithmeticOp::Subtract,
        &[
            of(Date, Date, Int64),
            of(Date, Int64, Date),
            of(Date, Interval, Timestamp),
            of(Timestamp, Timestamp, Interval),
            of(TimestampNs, TimestampNs, Interval),
            of(TimestampTz, TimestampTz, Interval),
            of(Timestamp, Interval, Timestamp),
            of(TimestampNs, Interval, TimestampNs),
            of(TimestampTz, Interval, TimestampTz),
            of(Time, Time, Interval),
            of(Time, Interval, Time),
            of(TimeTz, Interval, TimeTz),
            of(Interval, Interval, Interval),
        ],
    ),
    (
        ArithmeticOp::Multiply,
        &[
            of(Interval, Int64, Interval),
            of(Int64, Interval, Interval),
            of(Interval, Float64, Interval),
            of(Float64, Interval, Interval),
        ],
    ),
    (ArithmeticOp::Divide, &[of(Interval, Float64, Interval)]),
];

/// The types of `left op right`; `None` if there is no such operator.
pub fn arithmetic(op: ArithmeticOp, left: Given, right: Given) -> Option<Operands> {
    if let Some(operands) = temporal(op, left, right) {
        return Some(operands);
    }
    let is_number = |given: Given| given.is_numeric() || (given.is_open() && given != Given::Text);
    // A written text is a number beside one.
    let is_text_beside = |text: Given, other: Given| text == Given::Text && other.is_numeric();
    let are_numbers =
        (is_number(left) || is_text_beside(left, right)) && (is_number(right) || is_text_beside(right, left));
    are_numbers.then(|| numeric(op, left, right)).flatten()
}

/// Operators on numbers.
fn numeric(op: ArithmeticOp, left: Given, right: Given) -> Option<Operands> {
    use ArithmeticOp::{
        Add, BitAnd, BitOr, BitXor, Divide, Modulo, Multiply, ShiftLeft, ShiftRight, Subtract,
    };
    let meeting = common([left, right], Meeting::Strict)?;
    if meeting == DataType::Null {
        return Some(of(DataType::Null, DataType::Null, DataType::Null));
    }
    if meeting.is_integer() || meeting.is_float() {
        let are_bits = matches!(op, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight);
        return (meeting.is_integer() || !are_bits).then_some(of(meeting, meeting, meeting));
    }
    let digits = |given: Given| Digits::of(given).or_else(|| Digits::of_type(meeting));
    let (l, r) = (digits(left)?, digits(right)?);
    let result = match op {
        Add | Subtract => l.sum(r),
        Multiply => l.product(r),
        Modulo => l.common(r),
        Divide => return Some(of(Float64, Float64, Float64)),
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => return None,
    };
    Some(of(l.ty(), r.ty(), result.ty()))
}

/// Operators on dates, times and intervals.
fn temporal(op: ArithmeticOp, left: Given, right: Given) -> Option<Operands> {
    let is_temporal = |given: Given| match given {
        Given::Known(ty) => {
            matches!(ty, Date | Time | TimeTz | Timestamp | TimestampNs | TimestampTz | Interval)
        }
        _ => false,
    };
    if !is_temporal(left) && !is_temporal(right) {
        return None;
    }
    let (_, signatures) = SIGNATURES.iter().find(|(own, _)| *own == op)?;
    // What is open is what the other is, or an INTERVAL.
    let cost = |given: Given, other: Given, wanted: DataType| match given {
        given if given.is_open() => Some(Implicit(match (Given::Known(wanted) == other, wanted) {
            (true, _) => 0,
            (_, Interval) => 1,
            _ => 2,
        })),
        given => implicit(given, wanted),
    };
    let costs = signatures.iter().filter_map(|operands| {
        let (Implicit(l), Implicit(r)) =
            (cost(left, right, operands.left)?, cost(right, left, operands.right)?);
        Some((l + r, operands))
    });
    costs.min_by_key(|(cost, _)| *cost).map(|(_, operands)| *operands)
}
