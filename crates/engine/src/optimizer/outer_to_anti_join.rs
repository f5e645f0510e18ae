//! Rule: a left join of which only the rows without a partner count is an anti join.
//!
//! ```text
//! SELECT … FROM a LEFT JOIN b ON a.x = b.y WHERE b.y IS NULL
//!     → a ANTI JOIN b ON a.x = b.y, with NULL for every column of b
//! ```
//! In a pair, a key is not NULL, so the condition holds of rows without a partner alone. An anti join keeps
//! no columns of `b`, stops at the first match, and gives `b` a say in which rows of `a` are read (TPC-DS
//! Q78).

use super::renamed::{Renamed, from_below};
use crate::plan::tree::{columns_of, filter, take};
use crate::plan::{Columns, Filter, Join, JoinKind, Node, Plan, Project};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result, Value};

/// Makes anti joins in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    from_below(plan, make_anti);
    Ok(())
}

/// Makes an anti join of the left join below `node`, if that is a filter on rows without a partner.
fn make_anti(node: &mut Node, columns: &mut Columns, renamed: &mut Renamed) {
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
            renamed.replace(id, null);
        }
        *node = without_partner(take(node), nulls, columns, renamed);
    }
}

/// The filter `node` over a left join as a filter over an anti join.
fn without_partner(node: Node, nulls: Vec<(ColumnId, Expr)>, columns: &Columns, renamed: &Renamed) -> Node {
    let Node::Filter(Filter { input, mut predicates }) = node else { return node };
    let Node::Join(join) = *input else { return filter(*input, predicates) };
    predicates.retain(|predicate| !is_null_key(predicate, &join));
    let join = Node::Join(Join { kind: JoinKind::Anti, ..join });
    let mut above = filter(Node::Project(Project { input: Box::new(join), exprs: nulls }), predicates);
    if let Node::Filter(_) = above {
        renamed.rename(&mut above, columns);
    }
    above
}

/// True if `predicate` asks whether a key of the right side is NULL, which it is in no pair.
fn is_null_key(predicate: &Expr, join: &Join) -> bool {
    let Expr::IsNull(operand) = predicate else { return false };
    matches!(**operand, Expr::Column { .. })
        && join.on.iter().any(|key| !key.null_equals_null && key.right == **operand)
}
