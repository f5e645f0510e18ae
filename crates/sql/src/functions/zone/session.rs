//! The session's time zone in bound expressions.
//!
//! The binder and the kernels treat a TIMESTAMPTZ as UTC. Here every expression whose result depends on the
//! session's time zone is replaced by one that names the zone: casts between TIMESTAMPTZ and TIMESTAMP,
//! DATE, TIME or VARCHAR, also within lists and structs; fields of a TIMESTAMPTZ and the beginnings of its
//! days; and additions of INTERVALs. In UTC only text is affected, as it may name a zone. Functions of the
//! catalog get the zone when they are called ([`crate::functions::catalog::call`]).

use super::{converted, instant, local, midnight, read, same_number, shifted, truncated, write};
use crate::environment::TimeZone;
use entasis_engine::plan::Plan;
use entasis_vector::DataType;
use entasis_vector::expr::{ArithmeticOp, DatePart, Expr, Function};

/// Applies `zone` to a plan.
pub(crate) fn apply_to_plan(plan: &mut Plan, zone: TimeZone) {
    plan.for_each_expr(&mut |expr| {
        let taken = std::mem::replace(expr, Expr::boolean(false));
        *expr = in_zone(taken, zone);
    });
}

/// The expression with the session's zone applied.
pub(crate) fn in_zone(expr: Expr, zone: TimeZone) -> Expr {
    expr.transform(&mut |part| one(part, zone))
}

fn one(expr: Expr, zone: TimeZone) -> Expr {
    use DataType::{Date, Interval, Time, Timestamp, TimestampTz, Varchar};
    match expr {
        Expr::Cast { input, ty: TimestampTz, lenient } if input.ty() == Varchar => {
            read(zone, *input, lenient)
        }
        Expr::Cast { input, ty, lenient }
            if (input.ty().is_nested() || ty.is_nested())
                && TimeZone::decides(input.ty(), ty)
                && (input.ty() == Varchar || !zone.is_utc()) =>
        {
            converted(zone, *input, ty, lenient)
        }
        other @ Expr::External { .. } => same_number(other),
        other if zone.is_utc() => other,
        Expr::Cast { input, ty, lenient } => match (input.ty(), ty) {
            (TimestampTz, Varchar) => write(zone, *input),
            (TimestampTz, Timestamp) => local(zone, *input),
            (TimestampTz, Date | Time) => Expr::Cast { input: Box::new(local(zone, *input)), ty, lenient },
            (Timestamp, TimestampTz) => instant(zone, *input),
            (Date, TimestampTz) => instant(zone, midnight(*input)),
            _ => Expr::Cast { input, ty, lenient },
        },
        Expr::Function { function, mut args, ty }
            if args.first().is_some_and(|arg| arg.ty() == TimestampTz) =>
        {
            match function {
                Function::Extract(part) if part != DatePart::Epoch => {
                    let local = local(zone, args.remove(0));
                    Expr::Function { function, args: vec![local], ty }
                }
                Function::Truncate(part) => truncated(zone, part, args.remove(0)),
                _ => Expr::Function { function, args, ty },
            }
        }
        Expr::Arithmetic { op: op @ (ArithmeticOp::Add | ArithmeticOp::Subtract), left, right, .. }
            if left.ty() == TimestampTz && right.ty() == Interval =>
        {
            shifted(zone, *left, *right, op == ArithmeticOp::Subtract)
        }
        other => other,
    }
}
