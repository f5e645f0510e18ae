//! Rule: a left join of which only the rows without a partner count is an anti join.
//!
//! ```text
//! SELECT … FROM a LEFT JOIN b ON a.x = b.y WHERE b.y IS NULL
//!     → a ANTI JOIN b ON a.x = b.y, with NULL for every column of b
//! ```
//! In a pair, a key is not NULL, so the condition holds of rows without a partner alone. An anti join keeps no
//! columns of `b`, stops at the first match, and gives `b` a say in which rows of `a` are read (TPC-DS Q78).

use crate::plan::tree::{columns_of, filter, rewrite_up};
use crate::plan::{Columns, Filter, Join, JoinKind, Node, Plan, Project};
use entasis_vector::expr::Expr;
use entasis_vector::{Result, Value};

/// Makes anti joins in the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let columns = &plan.columns;
    rewrite_up(&mut plan.root, &mut |node| match node {
        Node::Filter(filter) => without_partner(filter, columns),
        other => other,
    });
    Ok(())
}

fn without_partner(Filter { input, mut predicates }: Filter, columns: &Columns) -> Node {
    match *input {
        Node::Join(join) if join.kind == JoinKind::Left => {
            let before = predicates.len();
            predicates.retain(|predicate| !is_null_key(predicate, &join));
            if predicates.len() == before {
                return Node::Filter(Filter { input: Box::new(Node::Join(join)), predicates });
            }
            let null = |id| (id, Expr::literal(Value::Null, columns.ty(id)));
            let nulls = columns_of(&join.right).iter().map(null).collect();
            let join = Node::Join(Join { kind: JoinKind::Anti, ..join });
            filter(Node::Project(Project { input: Box::new(join), exprs: nulls }), predicates)
        }
        input => Node::Filter(Filter { input: Box::new(input), predicates }),
    }
}

/// True if `predicate` asks whether a key of the right side is NULL, which it is in no pair.
fn is_null_key(predicate: &Expr, join: &Join) -> bool {
    let Expr::IsNull(operand) = predicate else { return false };
    matches!(**operand, Expr::Column { .. })
        && join.on.iter().any(|key| !key.null_equals_null && key.right == **operand)
}
