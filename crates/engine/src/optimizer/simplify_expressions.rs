//! Rule: simpler expressions.
//!
//! Constants are folded, negations move inwards (`NOT (a < b OR c)` is two conjuncts that can go separate
//! ways), conjunctions and disjunctions lose duplicates and constants, `x = 1 OR x = 2` becomes
//! `x IN (1, 2)`. A predicate, where NULL is as good as false, loses its NULLs.
//!
//! A constant expression that fails (`1 / 0`) stays: the error belongs to the rows that evaluate it, if there
//! are any.

use super::seen::SeenParts;
use crate::plan::freedom::{may_move, may_repeat};
use crate::plan::tree::{Role, for_each_expr};
use crate::plan::{Node, Plan};
use entasis_vector::expr::{CompareOp, Expr, evaluate_constant};
use entasis_vector::statement::ahead;
use entasis_vector::{DataType, Result, Value};
use std::collections::HashSet;

/// Simplifies all expressions of the plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    simplify_node(&mut plan.root);
    Ok(())
}

/// True if a condition can be folded: it, or a part of it, reads constants alone. Pushdown makes such
/// conditions where it puts constants in place of columns.
pub(super) fn has_constants(node: &mut Node) -> bool {
    let mut found = false;
    for_each_expr(node, &mut |expr, role| {
        if role == Role::Predicate && !found {
            expr.visit(&mut |part| found |= is_foldable(part));
        }
    });
    found || node.children_mut().into_iter().any(has_constants)
}

fn is_foldable(expr: &Expr) -> bool {
    let parts = expr.children();
    match expr {
        Expr::And(_) | Expr::Or(_) => parts.into_iter().any(is_literal),
        _ => !parts.is_empty() && parts.into_iter().all(is_literal) && may_move(expr),
    }
}

fn simplify_node(node: &mut Node) {
    node.children_mut().into_iter().for_each(simplify_node);
    for_each_expr(node, &mut |expr, role| {
        let taken = std::mem::replace(expr, Expr::boolean(true));
        *expr = simplify(taken, role);
    });
    // Conjuncts stand apart in a list of predicates, and those that are true not at all.
    let predicates = match node {
        Node::Filter(filter) => Some(&mut filter.predicates),
        Node::Join(join) => Some(&mut join.residual),
        Node::Scan(scan) => Some(&mut scan.filters),
        _ => None,
    };
    if let Some(predicates) = predicates {
        *predicates = crate::plan::tree::conjuncts(std::mem::take(predicates));
    }
}

/// The simplest equal expression that is known. As a [`Role::Predicate`] it may say false for NULL.
pub(super) fn simplify(expr: Expr, role: Role) -> Expr {
    let simpler = expr.transform(&mut simplify_one);
    match role {
        Role::Predicate => without_null(simpler),
        Role::Value => simpler,
    }
}

/// A predicate in which NULL is false.
fn without_null(expr: Expr) -> Expr {
    match expr {
        Expr::Literal { value: Value::Null, .. } => Expr::boolean(false),
        Expr::And(parts) => simplify_and(parts.into_iter().map(without_null).collect()),
        Expr::Or(parts) => simplify_or(parts.into_iter().map(without_null).collect()),
        Expr::Compare { op: CompareOp::Eq | CompareOp::LtEq | CompareOp::GtEq, left, right }
            if left == right && may_repeat(&left) =>
        {
            Expr::Not(Box::new(Expr::IsNull(left)))
        }
        other => other,
    }
}

/// Simplifies an expression whose operands are simple.
fn simplify_one(expr: Expr) -> Expr {
    match expr {
        Expr::And(parts) => simplify_and(parts),
        Expr::Or(parts) => simplify_or(parts),
        Expr::Not(inner) => negate(*inner),
        Expr::Case { branches, otherwise, ty } => simplify_case(branches, otherwise, ty),
        Expr::Cast { input, ty, .. } if input.ty() == ty => *input,
        // The constant stands on the right.
        Expr::Compare { op, left, right } if is_literal(&left) && !is_literal(&right) => {
            Expr::Compare { op: op.mirrored(), left: right, right: left }
        }
        Expr::Compare { op, left, right } if is_strict(op) && (is_null(&left) || is_null(&right)) => {
            Expr::literal(Value::Null, DataType::Boolean)
        }
        other => fold(other),
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { .. })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { value: Value::Null, .. })
}

fn is_strict(op: CompareOp) -> bool {
    !matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom)
}

/// Computes an expression of constants, if that goes without an error.
fn fold(expr: Expr) -> Expr {
    let repeatable = match &expr {
        Expr::Column { .. } | Expr::Literal { .. } => false,
        Expr::External { function, .. } => function.is_immutable() && !function.is_volatile(),
        _ => true,
    };
    if !repeatable || !expr.children().into_iter().all(is_literal) {
        return expr;
    }
    match ahead(|| evaluate_constant(&expr)) {
        Ok(value) => Expr::literal(value, expr.ty()),
        Err(_) => expr,
    }
}

/// `NOT inner`, with the negation as far inside as it goes.
fn negate(inner: Expr) -> Expr {
    match inner {
        Expr::Literal { value: Value::Boolean(value), .. } => Expr::boolean(!value),
        Expr::Literal { value: Value::Null, .. } => Expr::literal(Value::Null, DataType::Boolean),
        Expr::Not(inner) => *inner,
        Expr::Compare { op, left, right } => {
            let op = match op {
                CompareOp::Eq => CompareOp::NotEq,
                CompareOp::NotEq => CompareOp::Eq,
                CompareOp::Lt => CompareOp::GtEq,
                CompareOp::LtEq => CompareOp::Gt,
                CompareOp::Gt => CompareOp::LtEq,
                CompareOp::GtEq => CompareOp::Lt,
                CompareOp::DistinctFrom => CompareOp::NotDistinctFrom,
                CompareOp::NotDistinctFrom => CompareOp::DistinctFrom,
            };
            Expr::Compare { op, left, right }
        }
        Expr::Or(parts) => simplify_and(parts.into_iter().map(negate).collect()),
        Expr::And(parts) => simplify_or(parts.into_iter().map(negate).collect()),
        other => Expr::Not(Box::new(other)),
    }
}

fn simplify_and(parts: Vec<Expr>) -> Expr {
    let mut kept: Vec<Expr> = Vec::with_capacity(parts.len());
    let mut seen = SeenParts::default();
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::And(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    for part in flat {
        match part {
            Expr::Literal { value: Value::Boolean(true), .. } => {}
            Expr::Literal { value: Value::Boolean(false), .. } => return Expr::boolean(false),
            part if seen.has(&kept, &part) && may_repeat(&part) => {}
            part => kept.push(part),
        }
    }
    match kept.len() {
        0 => Expr::boolean(true),
        1 => kept.pop().expect("one"),
        _ => Expr::And(kept),
    }
}

fn simplify_or(parts: Vec<Expr>) -> Expr {
    let mut kept: Vec<Expr> = Vec::with_capacity(parts.len());
    let mut seen = SeenParts::default();
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Or(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    let mut keep = |part: Expr| {
        if !(seen.has(&kept, &part) && may_repeat(&part)) {
            kept.push(part);
        }
    };
    // Neighbours that look for the same thing become one list.
    let mut last: Option<Sought> = None;
    for part in flat {
        match part {
            Expr::Literal { value: Value::Boolean(false), .. } => continue,
            Expr::Literal { value: Value::Boolean(true), .. } => return Expr::boolean(true),
            _ => {}
        }
        match Sought::of(part) {
            Ok(sought) => match &mut last {
                Some(last) if last.input == sought.input => last.values.extend(sought.values),
                last => {
                    if let Some(before) = last.replace(sought) {
                        keep(before.into_expr());
                    }
                }
            },
            Err(part) => {
                if let Some(before) = last.take() {
                    keep(before.into_expr());
                }
                keep(part);
            }
        }
    }
    if let Some(last) = last {
        keep(last.into_expr());
    }
    match kept.len() {
        0 => Expr::boolean(false),
        1 => kept.pop().expect("one"),
        _ => Expr::Or(kept),
    }
}

/// `x = constant` and `x IN (…)`: what is looked for and where.
struct Sought {
    input: Expr,
    values: Vec<Value>,
}

impl Sought {
    fn of(expr: Expr) -> Result<Sought, Expr> {
        match expr {
            Expr::Compare { op: CompareOp::Eq, left, right } if may_repeat(&left) => match *right {
                Expr::Literal { value, .. } if !value.is_null() => {
                    Ok(Sought { input: *left, values: vec![value] })
                }
                right => Err(Expr::Compare { op: CompareOp::Eq, left, right: Box::new(right) }),
            },
            Expr::InList { input, list } if may_repeat(&input) => Ok(Sought { input: *input, values: list }),
            other => Err(other),
        }
    }

    /// The condition, with each value once.
    fn into_expr(mut self) -> Expr {
        if self.values.len() > 1 {
            let mut known = HashSet::with_capacity(self.values.len());
            self.values.retain(|value| known.insert(value.clone()));
        }
        match self.values.as_slice() {
            [value] if !value.is_null() => {
                let literal = Expr::literal(value.clone(), self.input.ty());
                Expr::compare(CompareOp::Eq, self.input, literal)
            }
            _ => Expr::InList { input: Box::new(self.input), list: self.values },
        }
    }
}

fn simplify_case(branches: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>>, ty: DataType) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    let mut otherwise = otherwise;
    for (condition, result) in branches {
        match without_null(condition) {
            Expr::Literal { value: Value::Boolean(false), .. } => {}
            Expr::Literal { value: Value::Boolean(true), .. } => {
                otherwise = Some(Box::new(result));
                break;
            }
            condition => kept.push((condition, result)),
        }
    }
    match (kept.is_empty(), otherwise) {
        (true, Some(otherwise)) => *otherwise,
        (true, None) => Expr::literal(Value::Null, ty),
        (false, otherwise) => Expr::Case { branches: kept, otherwise, ty },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::ColumnId;
    use entasis_vector::expr::ArithmeticOp;

    fn x() -> Expr {
        Expr::column(ColumnId(0), DataType::Int64)
    }
    fn number(value: i128) -> Expr {
        Expr::literal(Value::Integer(value), DataType::Int64)
    }
    fn x_is(op: CompareOp, value: i128) -> Expr {
        Expr::compare(op, x(), number(value))
    }
    fn not(expr: Expr) -> Expr {
        Expr::Not(Box::new(expr))
    }
    #[track_caller]
    fn check(expr: Expr, value: &str, predicate: &str) {
        assert_eq!(simplify(expr.clone(), Role::Value).to_string(), value);
        assert_eq!(simplify(expr, Role::Predicate).to_string(), predicate);
    }

    #[test]
    fn negations_move_inwards() {
        let either = Expr::Or(vec![x_is(CompareOp::Lt, 3), Expr::IsNull(Box::new(x()))]);
        check(not(either), "((#0 >= 3) AND (#0 IS NOT NULL))", "((#0 >= 3) AND (#0 IS NOT NULL))");
        check(
            not(not(x_is(CompareOp::DistinctFrom, 3))),
            "(#0 IS DISTINCT FROM 3)",
            "(#0 IS DISTINCT FROM 3)",
        );
    }

    #[test]
    fn lists_are_gathered() {
        let parts = vec![
            x_is(CompareOp::Eq, 1),
            x_is(CompareOp::Eq, 2),
            x_is(CompareOp::Eq, 1),
            x_is(CompareOp::Gt, 9),
        ];
        check(Expr::Or(parts), "((#0 IN (1, 2)) OR (#0 > 9))", "((#0 IN (1, 2)) OR (#0 > 9))");
    }

    #[test]
    fn null_is_false_only_where_it_may_be() {
        let null = || Expr::literal(Value::Null, DataType::Boolean);
        check(Expr::And(vec![x_is(CompareOp::Eq, 1), null()]), "((#0 = 1) AND NULL)", "false");
        check(Expr::Or(vec![x_is(CompareOp::Eq, 1), null()]), "((#0 = 1) OR NULL)", "(#0 = 1)");
        check(Expr::compare(CompareOp::Eq, x(), x()), "(#0 = #0)", "(#0 IS NOT NULL)");
        let unknown = Expr::compare(CompareOp::Lt, x(), Expr::literal(Value::Null, DataType::Int64));
        check(unknown.clone(), "NULL", "false");
        check(not(unknown), "NULL", "false");
    }

    #[test]
    fn constants_are_computed_unless_that_fails() {
        let apply = |op, a, b| Expr::Arithmetic {
            op,
            left: Box::new(number(a)),
            right: Box::new(number(b)),
            ty: DataType::Int64,
        };
        check(apply(ArithmeticOp::Add, 1, 2), "3", "3");
        check(apply(ArithmeticOp::Divide, 1, 0), "(1 / 0)", "(1 / 0)");
        let flipped = Expr::compare(CompareOp::Lt, apply(ArithmeticOp::Add, 1, 2), x());
        check(flipped, "(#0 > 3)", "(#0 > 3)");
    }

    #[test]
    fn cases_lose_branches_that_are_never_taken() {
        let case = |condition: Expr| Expr::Case {
            branches: vec![(condition, number(1)), (x_is(CompareOp::Eq, 5), number(2))],
            otherwise: None,
            ty: DataType::Int64,
        };
        let rest = "CASE WHEN (#0 = 5) THEN 2 END";
        check(case(Expr::boolean(false)), rest, rest);
        check(case(Expr::literal(Value::Null, DataType::Boolean)), rest, rest);
        check(case(Expr::boolean(true)), "1", "1");
    }
}
