//! `unnest`: the elements of lists as rows, and the fields of structs as columns.
//!
//! The binder puts what is taken apart into columns of their own, below a node that names them. Lists in one
//! SELECT are taken apart beside each other, so that the longest decides on the number of rows; a list of
//! lists may be taken apart several times, one node for each.

use super::{Lowered, Lowering, Scope};
use crate::hidden::visible;
use datafusion_expr as df;
use entasis_engine::plan::{Node, Project, Unnest};
use entasis_functions::catalog::call::named_call;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result, Value};

impl Lowering<'_> {
    /// Lowers a node that takes lists and structs apart.
    ///
    /// # Errors
    /// Input, if something is neither a list nor a struct; not supported, if lists are taken apart to
    /// different depths beside each other.
    pub(super) fn elements(&mut self, unnest: &df::Unnest) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&unnest.input)?;
        let lists = &unnest.list_type_columns;
        let depth = lists.iter().map(|(_, list)| list.depth).max().unwrap_or(0);
        if lists.iter().any(|(_, list)| list.depth != depth) {
            return Err(Error::not_supported("unnest to different depths in one SELECT")
                .with_hint("take the lists apart in subqueries"));
        }
        let mut columns: Vec<ColumnId> = lists.iter().map(|(at, _)| scope.columns[*at]).collect();
        for _ in 0..depth {
            let mut taken = Vec::with_capacity(lists.len());
            for (column, (at, _)) in columns.iter_mut().zip(lists) {
                let list = self.columns.expr(*column);
                let DataType::List(element) = list.ty() else {
                    return Err(Error::input(format!("unnest takes lists and structs, not a {}", list.ty())));
                };
                let name = visible(unnest.input.schema().field(*at).name());
                *column = self.columns.add(name, *element, true);
                taken.push((*column, list));
            }
            node = Node::Unnest(Unnest { input: Box::new(node), lists: taken });
        }
        let mut lists = columns.into_iter();
        let mut fields = Vec::new();
        let mut output = Vec::with_capacity(unnest.dependency_indices.len());
        let mut of_struct = 0;
        for (place, at) in unnest.dependency_indices.iter().enumerate() {
            let is_list = unnest.list_type_columns.iter().any(|(list, _)| list == at);
            let is_first = place == 0 || unnest.dependency_indices[place - 1] != *at;
            if is_list {
                let column = lists.next().ok_or_else(|| Error::internal("a list was not taken apart"))?;
                output.push(column);
            } else if unnest.struct_type_columns.contains(at) {
                of_struct = if is_first { 1 } else { of_struct + 1 };
                let number = Expr::literal(Value::Integer(of_struct), DataType::Int64);
                let field = named_call(
                    "struct_extract",
                    vec![self.columns.expr(scope.columns[*at]), number],
                    self.session.zone,
                )?;
                let column = self.columns.add(visible(unnest.schema.field(place).name()), field.ty(), true);
                fields.push((column, field));
                output.push(column);
            } else {
                output.push(scope.columns[*at]);
            }
        }
        if !fields.is_empty() {
            node = Node::Project(Project { input: Box::new(node), exprs: fields });
        }
        Ok(Lowered { node, scope: Scope { schema: unnest.schema.clone(), columns: output } })
    }
}

/// The row of no columns over which there are only projections, filters and unnests.
pub(super) fn single_row(node: &mut Node) -> Option<&mut Node> {
    match node {
        Node::Values(values) if values.columns.is_empty() && values.rows.len() == 1 => Some(node),
        Node::Project(Project { input, .. }) | Node::Unnest(Unnest { input, .. }) => single_row(input),
        Node::Filter(filter) => single_row(&mut filter.input),
        _ => None,
    }
}
