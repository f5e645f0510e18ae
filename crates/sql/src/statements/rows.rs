//! Rows of statements as plans: constants beside them, and casts to the types of a table's columns.

use entasis_engine::plan::{Columns, Node, Output, Plan, Project, Values};
use entasis_functions::expressions::fold;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Result, Value, statement};

/// The value of a plan that is a single row of a single literal, converted to `ty`; `None` for any other
/// plan.
pub(super) fn literal_row(plan: &Plan, ty: DataType) -> Option<Value> {
    let [output] = plan.output.as_slice() else { return None };
    let Node::Project(Project { input, exprs }) = &plan.root else { return None };
    let Node::Values(Values { rows, .. }) = &**input else { return None };
    match exprs.iter().find(|(id, _)| *id == output.column)? {
        (_, Expr::Literal { value, ty: from }) if rows.len() == 1 => fold::cast(value, *from, ty),
        _ => None,
    }
}

/// Adds a column with one value.
pub(super) fn add_constant(plan: &mut Plan, name: &str, value: Value, ty: DataType) -> Output {
    let column = plan.columns.add(name, ty, value.is_null());
    match &mut plan.root {
        Node::Values(values) => {
            values.columns.push(column);
            values.rows.iter_mut().for_each(|row| row.push(value.clone()));
        }
        Node::Project(project) => project.exprs.push((column, Expr::literal(value, ty))),
        root => {
            let exprs = vec![(column, Expr::literal(value, ty))];
            *root = Node::Project(Project { input: take(root), exprs });
        }
    }
    Output { name: name.into(), column }
}

/// Rows without columns.
pub(super) fn empty_rows(count: usize) -> Plan {
    let root = Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new(); count] });
    Plan { root, columns: Columns::default(), output: Vec::new() }
}

/// The same plan with its outputs cast to `types`, for `INSERT`.
///
/// # Errors
/// Interrupted.
pub(super) fn cast_outputs(plan: &mut Plan, types: &[DataType]) -> Result<()> {
    let mut exprs = Vec::new();
    for (output, &ty) in plan.output.iter_mut().zip(types) {
        let from = plan.columns.ty(output.column);
        if from == ty {
            continue;
        }
        statement::check()?;
        // Values in the plan itself are converted now.
        if let Node::Values(values) = &mut plan.root
            && let Some(at) = values.columns.iter().position(|column| *column == output.column)
        {
            let converted: Option<Vec<Value>> =
                values.rows.iter().map(|row| fold::cast(&row[at], from, ty)).collect();
            if let Some(converted) = converted {
                let column = plan.columns.add(output.name.clone(), ty, true);
                for (row, value) in values.rows.iter_mut().zip(converted) {
                    row.push(value);
                }
                values.columns.push(column);
                output.column = column;
                continue;
            }
        }
        // A parameter that is a column itself is converted there, where its type is looked for.
        if let Node::Project(project) = &mut plan.root
            && let Some((_, expr @ Expr::Parameter { .. })) =
                project.exprs.iter().find(|(column, _)| *column == output.column)
        {
            let expr = fold::cast_expr(expr.clone(), ty, false);
            output.column = plan.columns.add(output.name.clone(), ty, true);
            project.exprs.push((output.column, expr));
            continue;
        }
        let input = plan.columns.expr(output.column);
        let nullable = plan.columns.get(output.column).nullable;
        let column = plan.columns.add(output.name.clone(), ty, nullable);
        exprs.push((column, Expr::Cast { input: Box::new(input), ty, lenient: false }));
        output.column = column;
    }
    if !exprs.is_empty() {
        let input = Box::new(std::mem::replace(&mut plan.root, one_row()));
        plan.root = Node::Project(Project { input, exprs });
    }
    Ok(())
}

/// One row without columns.
fn one_row() -> Node {
    Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] })
}

/// Moves a node out, to wrap it.
fn take(node: &mut Node) -> Box<Node> {
    Box::new(std::mem::replace(node, one_row()))
}
