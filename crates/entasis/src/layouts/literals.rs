//! Rows that stand in a plan: those of `VALUES`, and what is computed from them without reading a table.
//! Nothing is executed but expressions of constants; one that looks at the time, at chance or at a sequence
//! is not computed and leaves its column unknown.

use entasis_engine::plan::{Node, Plan};
use entasis_vector::expr::{Expr, evaluate_constant};
use entasis_vector::{ColumnId, Value};
use std::collections::HashMap;

/// A row: the columns whose values are known.
type Row = HashMap<ColumnId, Value>;

/// The rows of a plan, with `None` for values that are not known; `None` if they do not stand in the plan.
pub(super) fn rows(plan: &Plan) -> Option<Vec<Vec<Option<Value>>>> {
    let rows = rows_of(&plan.root)?;
    let output = |row: &Row| plan.output.iter().map(|output| row.get(&output.column).cloned()).collect();
    Some(rows.iter().map(output).collect())
}

fn rows_of(node: &Node) -> Option<Vec<Row>> {
    match node {
        Node::Values(values) => {
            let row = |row: &Vec<Value>| values.columns.iter().copied().zip(row.iter().cloned()).collect();
            Some(values.rows.iter().map(row).collect())
        }
        Node::Project(project) => {
            let mut rows = rows_of(&project.input)?;
            for row in &mut rows {
                let new: Vec<(ColumnId, Option<Value>)> =
                    project.exprs.iter().map(|(id, expr)| (*id, value(expr, row))).collect();
                row.extend(new.into_iter().filter_map(|(id, value)| Some((id, value?))));
            }
            Some(rows)
        }
        _ => None,
    }
}

/// The value of an expression over the columns of a row; `None` if it is not known without running anything.
pub(super) fn value(expr: &Expr, row: &Row) -> Option<Value> {
    if expr.is_volatile() {
        return None;
    }
    let known = expr.clone().transform(&mut |part| match part {
        Expr::Column { id, ty } => match row.get(&id) {
            Some(value) => Expr::literal(value.clone(), ty),
            None => Expr::Column { id, ty },
        },
        other => other,
    });
    let mut columns = Vec::new();
    known.collect_columns(&mut columns);
    if columns.is_empty() { evaluate_constant(&known).ok() } else { None }
}

/// The value of a column of a plan's output, if it is the same in all rows and stands in the plan.
pub(super) fn constant(plan: &Plan, output: usize) -> Option<Value> {
    let column = plan.output.get(output)?.column;
    let mut expr = plan.columns.expr(column);
    let mut node = &plan.root;
    loop {
        if let Node::Project(project) = node {
            let made = |column: ColumnId| project.exprs.iter().find(|(id, _)| *id == column);
            expr = expr.transform(&mut |part| match part {
                Expr::Column { id, .. } => made(id).map_or(part, |(_, expr)| expr.clone()),
                other => other,
            });
        }
        let children = node.children();
        let [below] = children[..] else { return value(&expr, &Row::new()) };
        node = below;
    }
}
