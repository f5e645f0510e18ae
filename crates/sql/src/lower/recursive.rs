//! Recursive common table expressions: a relation whose rows are computed in rounds ([`entasis_engine::recursive`]).

use super::unnest::free_columns;
use super::{Lowered, Lowering, Scope, cast_outputs};
use crate::time_zone;
use datafusion_expr as df;
use entasis_engine::plan::{Node, Output, Plan, Scan};
use entasis_engine::recursive::{Recursive, WorkTable};
use entasis_engine::relation::Relation;
use entasis_vector::{ColumnId, DataType, Error, Result};
use std::sync::Arc;

impl Lowering<'_> {
    pub(super) fn recursive(&mut self, query: &df::RecursiveQuery) -> Result<Lowered> {
        let start = self.plan(&query.static_term)?;
        let step = self.plan(&query.recursive_term)?;
        let named = self.works.iter().filter(|(name, _)| *name == query.name).map(|(_, work)| work);
        let work = named.into_iter().find(|work| scans(&step.node, work)).cloned();
        let work = work.ok_or_else(|| Error::internal(format!("{} has lost its work table", query.name)))?;
        for side in [&start, &step] {
            let own = side.node.columns();
            if !free_columns(&side.node).is_empty() || side.scope.columns.iter().any(|id| !own.contains(id)) {
                return Err(Error::not_supported("columns of the outer query in a recursive WITH"));
            }
        }
        let types: Vec<DataType> = work.schema().iter().map(|field| field.ty).collect();
        let (start, step) = (self.side(start, &types), self.side(step, &types));
        let relation = Arc::new(Recursive::new(start, step, work, query.is_distinct));
        let fields = relation.schema().iter().enumerate();
        let columns: Vec<(ColumnId, usize)> =
            fields.map(|(i, field)| (self.columns.add(&*field.name, field.ty, true), i)).collect();
        let ids = columns.iter().map(|(id, _)| *id).collect();
        let node = Node::Scan(Scan { relation, columns, filters: Vec::new() });
        Ok(Lowered { node, scope: Scope { schema: query.schema.clone(), columns: ids } })
    }

    /// The plan of one side, with outputs of these types.
    fn side(&self, side: Lowered, types: &[DataType]) -> Plan {
        let output = side.scope.columns.iter();
        let output = output.map(|&column| Output { name: self.columns.get(column).name.clone(), column }).collect();
        let mut plan = Plan { root: side.node, columns: self.columns.clone(), output };
        cast_outputs(&mut plan, types);
        time_zone::session::apply_to_plan(&mut plan, self.session.zone);
        plan
    }
}

/// True if a node reads a work table.
fn scans(node: &Node, work: &Arc<WorkTable>) -> bool {
    let is_it = |relation: &Arc<dyn Relation>| std::ptr::addr_eq(Arc::as_ptr(relation), Arc::as_ptr(work));
    matches!(node, Node::Scan(scan) if is_it(&scan.relation))
        || node.children().into_iter().any(|child| scans(child, work))
}
