//! Rule: a left join of which only the rows without a partner count is an anti join.
//!
//! ```text
//! SELECT … FROM a LEFT JOIN b ON a.x = b.y WHERE b.y IS NULL
//!     → a ANTI JOIN b ON a.x = b.y, with NULL for every column of b
//! ```
//! In a pair, a key is not NULL, so the condition holds of rows without a partner alone. An anti join keeps
//! no columns of `b`, stops at the first match, and gives `b` a say in which rows of `a` are read (TPC-DS
//! Q78).

use super::renamed::{Renamed, rename, rename_output};
use crate::plan::tree::{columns_of, filter, take};
use crate::plan::{Columns, Filter, Join, JoinKind, Node, Plan, Project};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result, Value};

/// Makes anti joins in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let mut renamed = Renamed::new();
    rewrite(&mut plan.root, &mut plan.columns, &mut renamed);
    rename_output(plan, &renamed);
    Ok(())
}

/// Makes anti joins in `node`. Adds to `renamed` what is called otherwise above it.
fn rewrite(node: &mut Node, columns: &mut Columns, renamed: &mut Renamed) {
    let mut below = Renamed::new();
    node.children_mut().into_iter().for_each(|child| rewrite(child, columns, &mut below));
    if !below.is_empty() {
        rename(node, &below, columns);
    }
    if let Node::Filter(filter) = node
        && let Node::Join(join) = &*filter.input
        && join.kind == JoinKind::Left
        && filter.predicates.iter().any(|predicate| is_null_key(predicate, join))
    {
        let mut nulls = Vec::new();
        for id in columns_of(&join.right).iter() {
            let column = columns.get(id).clone();
            let null = columns.add(column.name, column.ty, true);
            nulls.push((null, Expr::literal(Value::Null, column.ty)));
            below.values_mut().filter(|new| **new == id).for_each(|new| *new = null);
            below.insert(id, null);
        }
        *node = without_partner(take(node), nulls, columns, &below);
    }
    renamed.extend(below);
}

/// The filter `node` over a left join as a filter over an anti join.
fn without_partner(node: Node, nulls: Vec<(ColumnId, Expr)>, columns: &Columns, renamed: &Renamed) -> Node {
    let Node::Filter(Filter { input, mut predicates }) = node else { return node };
    let Node::Join(join) = *input else { return filter(*input, predicates) };
    predicates.retain(|predicate| !is_null_key(predicate, &join));
    let join = Node::Join(Join { kind: JoinKind::Anti, ..join });
    let mut above = filter(Node::Project(Project { input: Box::new(join), exprs: nulls }), predicates);
    if let Node::Filter(_) = above {
        rename(&mut above, renamed, columns);
    }
    above
}

/// True if `predicate` asks whether a key of the right side is NULL, which it is in no pair.
fn is_null_key(predicate: &Expr, join: &Join) -> bool {
    let Expr::IsNull(operand) = predicate else { return false };
    matches!(**operand, Expr::Column { .. })
        && join.on.iter().any(|key| !key.null_equals_null && key.right == **operand)
}
