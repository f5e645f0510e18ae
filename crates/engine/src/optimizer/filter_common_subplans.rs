//! Rule: rows that are computed once for several readers are computed only as far as one of them wants them.
//!
//! A common table expression that is read more than once is a relation with a plan of its own
//! ([`crate::common_subplans`]). Each of its scans says which columns it reads and which conditions its rows
//! must satisfy. When all scans are known, the relation is exchanged for one that has the columns that any of
//! them reads, and the rows that satisfy the conditions of at least one ([`Relation::restricted`]).
//!
//! Invariant: one relation stays one, so it is still computed once. A relation that another relation's plan
//! reads as well stays as it is, since the conditions there are not known here.

use crate::plan::{Node, Plan};
use crate::relation::{Relation, ScanRequest};
use entasis_vector::Result;
use std::sync::Arc;

/// Restricts the shared relations of the plan.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    let mut all = Vec::new();
    collect(&plan.root, &mut all);
    let mut inner: Vec<Arc<dyn Relation>> = Vec::new();
    for Readers { relation, .. } in &all {
        add_inputs(&**relation, &mut inner);
    }
    all.retain(|readers| !inner.iter().any(|inner| is_same(inner, &readers.relation)));
    for Readers { relation, requests } in all {
        if let Some(restricted) = relation.restricted(&requests) {
            exchange(&mut plan.root, &relation, &restricted);
        }
    }
    Ok(())
}

/// A relation and all that is asked of it.
struct Readers {
    relation: Arc<dyn Relation>,
    requests: Vec<ScanRequest>,
}

fn is_same(a: &Arc<dyn Relation>, b: &Arc<dyn Relation>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}

/// Adds the scans of what is not stored.
fn collect(node: &Node, all: &mut Vec<Readers>) {
    if let Node::Scan(scan) = node
        && scan.relation.table().is_none()
    {
        let filters = scan.filters.clone();
        let request = ScanRequest { filters, ..ScanRequest::all(scan.columns.clone()) };
        match all.iter_mut().find(|readers| is_same(&readers.relation, &scan.relation)) {
            Some(readers) => readers.requests.push(request),
            None => all.push(Readers { relation: scan.relation.clone(), requests: vec![request] }),
        }
    }
    node.children().into_iter().for_each(|child| collect(child, all));
}

/// Adds the relations that are read when this one is.
fn add_inputs(relation: &dyn Relation, inner: &mut Vec<Arc<dyn Relation>>) {
    for input in relation.inputs() {
        if !inner.iter().any(|known| is_same(known, &input)) {
            inner.push(input.clone());
            add_inputs(&*input, inner);
        }
    }
}

/// Makes the scans of one relation scans of another.
fn exchange(node: &mut Node, old: &Arc<dyn Relation>, new: &Arc<dyn Relation>) {
    if let Node::Scan(scan) = node
        && is_same(&scan.relation, old)
    {
        scan.relation = new.clone();
    }
    node.children_mut().into_iter().for_each(|child| exchange(child, old, new));
}
