//! Rule: simpler expressions.
//!
//! Negations move inwards (`NOT (a < b OR c)` is two conjuncts that can go separate ways),
//! conjunctions and disjunctions lose duplicates and constants, `x = 1 OR x = 2` becomes `x IN (1, 2)`. A predicate,
//! where NULL is as good as false, loses its NULLs.

use super::selectivity::mirrored;
use super::tree::{Role, for_each_expr};
use crate::plan::{Node, Plan};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{DataType, Result, Value};

/// Simplifies all expressions of the plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    simplify_node(&mut plan.root);
    Ok(())
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
        *predicates = super::tree::conjuncts(std::mem::take(predicates));
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
            if left == right && !left.is_volatile() =>
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
            Expr::Compare { op: mirrored(op), left: right, right: left }
        }
        other => other,
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { .. })
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
            part if kept.contains(&part) && !part.is_volatile() => {}
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
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Or(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    for part in flat {
        match part {
            Expr::Literal { value: Value::Boolean(false), .. } => {}
            Expr::Literal { value: Value::Boolean(true), .. } => return Expr::boolean(true),
            part if kept.contains(&part) && !part.is_volatile() => {}
            part => match kept.pop() {
                // Neighbours that look for the same thing become one list.
                Some(last) => kept.extend(merge_lists(last, part)),
                None => kept.push(part),
            },
        }
    }
    match kept.len() {
        0 => Expr::boolean(false),
        1 => kept.pop().expect("one"),
        _ => Expr::Or(kept),
    }
}

/// `a OR b` as one list, if both look for one thing among constants.
fn merge_lists(a: Expr, b: Expr) -> Vec<Expr> {
    match (as_list(a), as_list(b)) {
        (Ok((input, mut list)), Ok((other, more))) if input == other => {
            let new: Vec<Value> = more.into_iter().filter(|value| !list.contains(value)).collect();
            list.extend(new);
            vec![from_list(input, list)]
        }
        (a, b) => [a, b].map(|e| e.map_or_else(|e| e, |(input, list)| from_list(input, list))).into(),
    }
}

/// `x = constant` and `x IN (…)` as what is looked for and where.
fn as_list(expr: Expr) -> Result<(Expr, Vec<Value>), Expr> {
    match expr {
        Expr::Compare { op: CompareOp::Eq, left, right } if !left.is_volatile() => match *right {
            Expr::Literal { value, .. } if !value.is_null() => Ok((*left, vec![value])),
            right => Err(Expr::Compare { op: CompareOp::Eq, left, right: Box::new(right) }),
        },
        Expr::InList { input, list } if !input.is_volatile() => Ok((*input, list)),
        other => Err(other),
    }
}

fn from_list(input: Expr, mut list: Vec<Value>) -> Expr {
    if list.len() == 1 && !list[0].is_null() {
        let ty = input.ty();
        return Expr::compare(CompareOp::Eq, input, Expr::literal(list.pop().expect("one"), ty));
    }
    Expr::InList { input: Box::new(input), list }
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
