//! The last step of an expression: what was kept as it is written is folded.

use entasis_functions::expressions::fold;
use entasis_vector::Value;
use entasis_vector::expr::Expr;

/// The expression as an operator of the plan takes it: literals on the right of comparisons, in the type of
/// the other side where that changes nothing; connectives flat; constants folded.
pub(crate) fn settled(expr: Expr) -> Expr {
    expr.transform(&mut |part| match part {
        Expr::Compare { op, left, right } => fold::compare(op, *left, *right),
        Expr::Not(input) => fold::not(*input),
        Expr::And(parts) => conjunction(parts),
        Expr::Or(parts) => fold::or(parts),
        Expr::IsNull(input) => is_null(*input),
        other => other,
    })
}

/// `x IS NULL`
fn is_null(expr: Expr) -> Expr {
    match expr {
        Expr::Literal { value, .. } => Expr::boolean(value.is_null()),
        other => Expr::IsNull(Box::new(other)),
    }
}

/// The conjunction of conditions, FALSE if one of them is.
fn conjunction(parts: Vec<Expr>) -> Expr {
    let is_false = |part: &Expr| matches!(part, Expr::Literal { value: Value::Boolean(false), .. });
    if parts.iter().any(is_false) { Expr::boolean(false) } else { Expr::and(parts) }
}
