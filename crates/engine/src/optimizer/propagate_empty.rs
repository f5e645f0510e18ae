//! Rule: what gives no rows, or does nothing, is not there.
//!
//! `WHERE false` and `LIMIT 0` become a list of no rows, and emptiness spreads upwards: an inner join with it
//! is empty, a left join with it on the right only adds NULLs, an anti join passes everything. Filters
//! without predicates and projections without expressions go.

use crate::plan::tree::{empty, rewrite_up};
use crate::plan::{Columns, Filter, Join, JoinKind, Node, Plan, Project, SetKind, SetOperation};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result, Value};

/// Removes what is empty or needless from the whole plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let columns = &plan.columns;
    rewrite_up(&mut plan.root, &mut |node| tidy(node, columns));
    Ok(())
}

fn is_empty(node: &Node) -> bool {
    matches!(node, Node::Values(values) if values.rows.is_empty())
}

fn is_never(predicate: &Expr) -> bool {
    matches!(predicate, Expr::Literal { value: Value::Boolean(false) | Value::Null, .. })
}

fn tidy(node: Node, columns: &Columns) -> Node {
    match node {
        Node::Scan(mut scan) => {
            if scan.filters.iter().any(is_never) {
                return empty(scan.columns.iter().map(|(id, _)| *id).collect());
            }
            scan.filters.retain(|filter| *filter != Expr::boolean(true));
            Node::Scan(scan)
        }
        Node::Filter(Filter { input, mut predicates }) => {
            predicates.retain(|predicate| *predicate != Expr::boolean(true));
            if predicates.iter().any(is_never) {
                empty(input.columns())
            } else if predicates.is_empty() || is_empty(&input) {
                *input
            } else {
                Node::Filter(Filter { input, predicates })
            }
        }
        Node::Project(project) if project.exprs.is_empty() => *project.input,
        Node::Limit(limit) if limit.count == Some(0) => empty(limit.input.columns()),
        Node::Limit(limit) if limit.count.is_none() && limit.offset == 0 => *limit.input,
        Node::Sort(sort) if sort.keys.is_empty() && sort.limit.is_none() => *sort.input,
        Node::Join(join) => tidy_join(join, columns),
        Node::SetOperation(set) => tidy_set(set, columns),
        Node::Aggregate(aggregate) if aggregate.groups.is_empty() => Node::Aggregate(aggregate),
        Node::Project(_)
        | Node::Unnest(_)
        | Node::Limit(_)
        | Node::Sort(_)
        | Node::Distinct(_)
        | Node::Aggregate(_)
        | Node::Window(_)
            if node.children().into_iter().all(is_empty) =>
        {
            empty(node.columns())
        }
        other => other,
    }
}

fn tidy_join(join: Join, columns: &Columns) -> Node {
    let out = |join: &Join| Node::Join(join.clone()).columns();
    let (left, right) = (is_empty(&join.left), is_empty(&join.right));
    let never = join.residual.iter().any(is_never);
    match join.kind {
        JoinKind::Inner | JoinKind::AsOf { outer: false } if left || right || never => empty(out(&join)),
        JoinKind::Semi if left || right || never => empty(join.left.columns()),
        JoinKind::Left | JoinKind::Single | JoinKind::AsOf { .. } if left => empty(out(&join)),
        JoinKind::Left | JoinKind::Single | JoinKind::AsOf { .. } if right || never => {
            with_nulls(*join.left, join.right.columns(), columns)
        }
        JoinKind::Right if right => empty(out(&join)),
        JoinKind::Anti | JoinKind::NullAwareAnti if left => empty(join.left.columns()),
        JoinKind::Anti | JoinKind::NullAwareAnti if right => *join.left,
        JoinKind::Anti if never => *join.left,
        JoinKind::Mark { mark, .. } if right => {
            Node::Project(Project { input: join.left, exprs: vec![(mark, Expr::boolean(false))] })
        }
        _ => Node::Join(join),
    }
}

/// `input` with columns that are NULL.
fn with_nulls(input: Node, ids: Vec<ColumnId>, columns: &Columns) -> Node {
    let exprs = ids.into_iter().map(|id| (id, Expr::literal(Value::Null, columns.ty(id)))).collect();
    Node::Project(Project { input: Box::new(input), exprs })
}

fn tidy_set(mut set: SetOperation, columns: &Columns) -> Node {
    match set.kind {
        SetKind::Union => set.inputs.retain(|(input, _)| !is_empty(input)),
        SetKind::Intersect if set.inputs.iter().any(|(input, _)| is_empty(input)) => set.inputs.clear(),
        SetKind::Except if set.inputs.first().is_some_and(|(input, _)| is_empty(input)) => set.inputs.clear(),
        _ => {}
    }
    match set.inputs.len() {
        0 => empty(set.columns),
        1 if set.all => {
            let (input, ids) = set.inputs.pop().expect("one");
            let exprs = set.columns.iter().zip(ids).map(|(out, id)| (*out, columns.expr(id))).collect();
            Node::Project(Project { input: Box::new(input), exprs })
        }
        1 if set.kind == SetKind::Union => {
            // UNION of one input is its DISTINCT; the columns keep the names of the union.
            let (input, ids) = set.inputs.pop().expect("one");
            let exprs = set.columns.iter().zip(ids).map(|(out, id)| (*out, columns.expr(id))).collect();
            let project = Node::Project(Project { input: Box::new(input), exprs });
            Node::Distinct(crate::plan::Distinct::new(project, set.columns))
        }
        _ => Node::SetOperation(set),
    }
}
