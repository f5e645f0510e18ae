//! Checks a plan: every column that is read is made below, types agree, predicates are BOOLEAN.
//!
//! Debug builds run it after every rule, so that a rule that breaks a plan is named in the error.

use crate::plan::tree::{ColumnSet, columns_of};
use crate::plan::{Columns, FrameUnits, JoinKind, Node, Plan, WindowCall};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result};

/// Checks `plan`.
///
/// # Errors
/// Internal, saying which node is wrong and why.
pub(crate) fn validate(plan: &Plan) -> Result<()> {
    validate_node(&plan.root, &plan.columns)?;
    let made = columns_of(&plan.root);
    match plan.output.iter().find(|output| !made.contains(output.column)) {
        Some(output) => Err(Error::internal(format!("the plan does not make its output {}", output.name))),
        None => Ok(()),
    }
}

fn validate_node(node: &Node, columns: &Columns) -> Result<()> {
    for child in node.children() {
        validate_node(child, columns)?;
    }
    let wrong = |what: String| {
        let title = crate::explain::node_title(node, columns);
        Err(Error::internal(format!("malformed plan: {what} in {title}")))
    };
    let below = || {
        node.children().into_iter().map(columns_of).fold(ColumnSet::default(), |mut all, set| {
            all.add(&set);
            all
        })
    };
    let check = |expr: &Expr, given: &ColumnSet| {
        let mut error = None;
        expr.visit(&mut |e| {
            if let Expr::Column { id, ty } = e {
                if !given.contains(*id) {
                    error.get_or_insert(format!("{} is read but not made below", columns.get(*id).name));
                } else if columns.ty(*id) != *ty {
                    error.get_or_insert(format!(
                        "{} is {}, not {ty}",
                        columns.get(*id).name,
                        columns.ty(*id)
                    ));
                }
            }
            if let Expr::Compare { left, right, .. } = e
                && left.ty() != right.ty()
            {
                error.get_or_insert(format!("{} is compared with {}", left.ty(), right.ty()));
            }
        });
        error
    };
    let predicate = |expr: &Expr, given: &ColumnSet| match expr.ty() {
        DataType::Boolean | DataType::Null => check(expr, given),
        ty => Some(format!("a predicate is {ty}")),
    };

    let mut ids = node.columns();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return wrong(format!("{} comes out twice", columns.get(pair[0]).name));
    }
    let problem = match node {
        Node::Scan(scan) => {
            let given = columns_of(node);
            scan.filters.iter().find_map(|e| predicate(e, &given))
        }
        Node::Values(values) => values
            .rows
            .iter()
            .any(|row| row.len() != values.columns.len())
            .then(|| "a row has the wrong length".to_owned()),
        Node::Filter(filter) => {
            let given = below();
            filter.predicates.iter().find_map(|e| predicate(e, &given))
        }
        Node::Project(project) => {
            let given = below();
            project.exprs.iter().find_map(|(id, e)| {
                check(e, &given).or_else(|| {
                    (e.ty() != columns.ty(*id))
                        .then(|| format!("{} is computed as {}", columns.get(*id).name, e.ty()))
                })
            })
        }
        Node::Unnest(unnest) => {
            let given = below();
            unnest.lists.iter().find_map(|(id, list)| {
                let is_element = list.ty() == DataType::list(columns.ty(*id));
                check(list, &given).or_else(|| (!is_element).then(|| format!("a {} is no list", list.ty())))
            })
        }
        Node::Join(join) => {
            let (left, right, both) = (columns_of(&join.left), columns_of(&join.right), below());
            let keys = join.on.iter().find_map(|key| {
                check(&key.left, &left).or_else(|| check(&key.right, &right)).or_else(|| {
                    let (l, r) = (key.left.ty(), key.right.ty());
                    (l != r).then(|| format!("{l} is joined with {r}"))
                })
            });
            let nearest = matches!(join.kind, JoinKind::AsOf { .. }) && join.residual.len() != 1;
            let null_aware = join.kind == JoinKind::NullAwareAnti && join.on.len() != 1;
            keys.or_else(|| join.residual.iter().find_map(|e| predicate(e, &both)))
                .or_else(|| null_aware.then(|| "a null-aware anti join needs one key".to_owned()))
                .or_else(|| nearest.then(|| "an as-of join needs one inequality".to_owned()))
        }
        Node::Aggregate(aggregate) => {
            let given = below();
            let groups = aggregate.groups.iter().find_map(|(_, e)| check(e, &given));
            groups.or_else(|| {
                aggregate.aggregates.iter().find_map(|(_, call)| {
                    let args = call.args.iter().chain(call.order_by.iter().map(|key| &key.expr));
                    args.chain(&call.filter).find_map(|e| check(e, &given))
                })
            })
        }
        Node::Distinct(distinct) => {
            let given = below();
            let missing = distinct.keys.iter().find(|id| !given.contains(**id));
            missing.map(|id| format!("{} is read but not made below", columns.get(*id).name))
        }
        Node::Window(window) => {
            let given = below();
            let filters = window.calls.iter().filter_map(|(_, call)| call.filter.as_ref());
            let single = |(_, call): &&(_, WindowCall)| {
                let bounds = [&call.frame.start, &call.frame.end];
                call.frame.units == FrameUnits::Range
                    && bounds.into_iter().any(|bound| bound.offset().is_some())
            };
            let by_value = window.calls.iter().find(single);
            window
                .exprs()
                .find_map(|e| check(e, &given))
                .or_else(|| filters.into_iter().find_map(|e| predicate(e, &given)))
                .or_else(|| {
                    let (id, _) = by_value.filter(|_| window.order.len() != 1)?;
                    Some(format!(
                        "{} has a RANGE with an offset and not one order key",
                        columns.get(*id).name
                    ))
                })
        }
        Node::Sort(sort) => {
            let given = below();
            sort.keys.iter().find_map(|key| check(&key.expr, &given))
        }
        Node::Limit(_) => None,
        Node::Dependent(_) => Some("a dependent join is left".to_owned()),
        Node::Recursion(_) => Some("a recursion is left that reads what is around it".to_owned()),
        Node::SetOperation(set) => set.inputs.iter().find_map(|(input, ids)| {
            let given = columns_of(input);
            if ids.len() != set.columns.len() {
                return Some("an input has the wrong number of columns".to_owned());
            }
            ids.iter().zip(&set.columns).find_map(|(id, out)| {
                if !given.contains(*id) {
                    Some(format!("{} is read but not made below", columns.get(*id).name))
                } else {
                    let (a, b) = (columns.ty(*id), columns.ty(*out));
                    (a != b).then(|| format!("{a} becomes {b}"))
                }
            })
        }),
    };
    problem.map_or(Ok(()), wrong)
}
