//! Recursive common table expressions: a relation whose rows are computed in iterations
//! ([`entasis_engine::recursive`]).

use super::{Lowered, Lowering, Scope, cast_outputs};
use crate::binding::context::{Keyed, Work};
use datafusion_expr as df;
use entasis_binder::zone::apply_to_plan;
use entasis_engine::plan::{Node, Output, Plan, Scan, free_columns};
use entasis_engine::recursive::{Keeps, Recursive, WorkTable};
use entasis_engine::relation::Relation;
use entasis_vector::error::sqlstate;
use entasis_vector::{ColumnId, DataType, Error, Result};
use std::sync::Arc;

impl Lowering<'_> {
    pub(super) fn recursive(&mut self, query: &df::RecursiveQuery) -> Result<Lowered> {
        let start = self.plan(&query.static_term)?;
        let step = self.plan(&query.recursive_term)?;
        let mut named = self.works.iter().filter(|work| work.name == query.name);
        let work = named.find(|work| scans(&step.node, &work.last)).cloned();
        let Work { last: work, keyed, .. } =
            work.ok_or_else(|| Error::internal(format!("{} has lost its work table", query.name)))?;
        let keeps = match keyed {
            Some(Keyed { key, all, is_all_read }) => {
                let keys = key.iter().map(|name| key_column(&work, name)).collect::<Result<_>>()?;
                let all = is_all_read.get().then_some(all);
                Keeps::Keyed { keys, only_changes: query.is_distinct, all }
            }
            None if query.is_distinct => Keeps::New,
            None => Keeps::All,
        };
        for side in [&start, &step] {
            let own = side.node.columns();
            if !free_columns(&side.node).is_empty() || side.scope.columns.iter().any(|id| !own.contains(id)) {
                return Err(Error::not_supported("columns of the outer query in a recursive WITH"));
            }
        }
        let types: Vec<DataType> = work.schema().iter().map(|field| field.ty).collect();
        let (start, step) = (self.side(start, &types), self.side(step, &types));
        let relation = Arc::new(Recursive::new(start, step, work, keeps));
        let fields = relation.schema().iter().enumerate();
        let columns: Vec<(ColumnId, usize)> =
            fields.map(|(i, field)| (self.columns.add(&*field.name, field.ty, true), i)).collect();
        let ids = columns.iter().map(|(id, _)| *id).collect();
        let node = Node::Scan(Scan::all(relation, columns));
        Ok(Lowered { node, scope: Scope { schema: query.schema.clone(), columns: ids } })
    }

    /// The plan of one side, with outputs cast to these types.
    fn side(&self, side: Lowered, types: &[DataType]) -> Plan {
        let output = side.scope.columns.iter();
        let output =
            output.map(|&column| Output { name: self.columns.get(column).name.clone(), column }).collect();
        let mut plan = Plan { root: side.node, columns: self.columns.clone(), output };
        cast_outputs(&mut plan, types);
        apply_to_plan(&mut plan, self.session.zone);
        plan
    }
}

/// The column of a recursion of this name in its key.
fn key_column(work: &WorkTable, name: &str) -> Result<usize> {
    let found = work.schema().iter().position(|field| field.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let text = format!("the key column {name} does not exist in {}", work.name());
        Error::input(text).with_sqlstate(sqlstate::NO_COLUMN)
    })
}

/// True if a node reads a work table, itself or by what it reads.
fn scans(node: &Node, work: &Arc<WorkTable>) -> bool {
    fn reads(relation: &Arc<dyn Relation>, work: &Arc<WorkTable>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(relation), Arc::as_ptr(work))
            || relation.inputs().iter().any(|input| reads(input, work))
    }
    matches!(node, Node::Scan(scan) if reads(&scan.relation, work))
        || node.children().into_iter().any(|child| scans(child, work))
}
