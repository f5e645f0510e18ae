//! The session's time zone in bound expressions.
//!
//! The binder and the kernels treat a TIMESTAMPTZ as UTC. Here every expression whose result depends on the
//! session's time zone is replaced by one that names the zone: casts between TIMESTAMPTZ and TIMESTAMP[_NS],
//! DATE, TIME, TIMETZ or VARCHAR, also within lists and structs; fields of a TIMESTAMPTZ and the beginnings
//! of its days; additions of INTERVALs; and frames by value that count days or months. In UTC only text is
//! affected, as it may name a zone. Functions of the catalog get the zone when they are called
//! ([`entasis_functions::catalog::call`]).

use entasis_engine::plan::{Bound, FrameUnits, Node, Plan, WindowCall, bad_offset, each_expr_mut};
use entasis_functions::TimeZone;
use entasis_functions::zoned::{
    converted, instant, limit, local, midnight, read, same_number, shifted, truncated, write,
};
use entasis_vector::expr::{ArithmeticOp, DatePart, Expr, Function};
use entasis_vector::{DataType, Interval, Value};

/// Applies `zone` to a plan.
pub fn apply_to_plan(plan: &mut Plan, zone: TimeZone) {
    apply_to_node(&mut plan.root, zone);
}

/// Applies `zone` to all expressions of a tree.
pub(crate) fn apply_to_node(node: &mut Node, zone: TimeZone) {
    each_expr_mut(node, &mut |expr| {
        let taken = std::mem::replace(expr, Expr::boolean(false));
        *expr = in_zone(taken, zone);
    });
    if !zone.is_utc() {
        move_frames(node, zone);
    }
}

/// Days and months from a TIMESTAMPTZ to the bounds of its frame pass by the calendar in `zone`: such a bound
/// gets the limit that its offset leads to in place of the offset.
fn move_frames(node: &mut Node, zone: TimeZone) {
    if let Node::Window(window) = node
        && let [key] = &window.order[..]
        && key.expr.ty() == DataType::TimestampTz
    {
        for (_, WindowCall { frame, .. }) in &mut window.calls {
            let is_by_calendar = |bound: &Bound| bound.offset().is_some_and(passes_days);
            if frame.units == FrameUnits::Range && [&frame.start, &frame.end].into_iter().any(is_by_calendar)
            {
                for bound in [&mut frame.start, &mut frame.end] {
                    let (offset, forward) = match bound {
                        Bound::Preceding(offset) => (offset, false),
                        Bound::Following(offset) => (offset, true),
                        _ => continue,
                    };
                    let span = std::mem::replace(offset, Expr::boolean(false));
                    *offset = limit(zone, key.expr.clone(), span, forward == key.descending, bad_offset);
                }
            }
        }
    }
    node.children_mut().into_iter().for_each(|child| move_frames(child, zone));
}

/// True for an INTERVAL that may have days or months.
fn passes_days(offset: &Expr) -> bool {
    let is_time = |value: &Value| matches!(value, Value::Interval(Interval { months: 0, days: 0, .. }));
    match offset {
        Expr::Literal { value, .. } if is_time(value) => false,
        other => other.ty() == DataType::Interval,
    }
}

/// The expression with the session's zone applied.
pub fn in_zone(expr: Expr, zone: TimeZone) -> Expr {
    expr.transform(&mut |part| one(part, zone))
}

fn one(expr: Expr, zone: TimeZone) -> Expr {
    use DataType::{Date, Interval, Time, TimeTz, Timestamp, TimestampNs, TimestampTz, Varchar};
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
            (TimestampTz, Date | Time | TimestampNs) => {
                Expr::Cast { input: Box::new(local(zone, *input)), ty, lenient }
            }
            (TimestampTz, TimeTz) => converted(zone, *input, ty, lenient),
            (Timestamp, TimestampTz) => instant(zone, *input),
            (TimestampNs, TimestampTz) => instant(zone, Expr::Cast { input, ty: Timestamp, lenient }),
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
