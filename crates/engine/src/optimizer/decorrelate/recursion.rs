//! Recursions that read the left row: one recursion for all values of the domain.
//!
//! ```text
//! start ∪ step(last round), for each d      ⇒      start' ∪ step'(last round), rows (d, …)
//! ```
//! 1. The start is computed for the whole domain, and gives the domain's columns with its rows.
//! 2. They travel in the work table, which is *carried*. For the step the domain is the values in the last
//!    round: where that has no row of a value, the recursion of this value has ended, although the step might
//!    give rows for it (`SELECT count(*) …`).
//! 3. A scan of the work table itself has all values of this domain, and no others. Other carried tables may
//!    have rows of values whose recursion has ended: the work table of a recursion around, or all rows so far
//!    (`recurring.t`). They are joined with the domain.
//! 4. Rows are told apart, and keys of `USING KEY` compared, with the domain's columns.
//!
//! **Invariant**: nothing that is computed apart, as a relation, reads a carried work table. What reads one
//! has [`Recursion::around`] as a free column until then.
//!
//! A recursion that reads rows further out as well stays one until their dependent join is decorrelated.

use super::Decorrelation;
use super::domain::{Carried, Domain};
use super::joins::join;
use crate::plan::correlation::free_columns;
use crate::plan::tree::take;
use crate::plan::{Distinct, JoinKind, Keeps, Node, Recursion, Scan};
use crate::relation::Relation;
use crate::work_table::WorkTable;
use entasis_vector::{ColumnId, Error, Field, Result};
use std::sync::Arc;

impl Decorrelation<'_> {
    /// See the module.
    pub(super) fn depend_recursion(
        &mut self,
        mut recursion: Recursion,
        domain: &Domain,
    ) -> Result<(Node, Vec<ColumnId>)> {
        recursion.settle_around();
        let (start, columns) = self.depend(take(&mut recursion.start.node), domain)?;
        *recursion.start.node = start;
        let step_domain = self.carry(&mut recursion, &columns, domain);
        let (step, step_columns) = self.depend(take(&mut recursion.step.node), &step_domain)?;
        *recursion.step.node = step;
        let own = self.copies(&columns);
        recursion.start.columns.extend(columns);
        recursion.step.columns.extend(step_columns);
        recursion.columns.extend(&own);
        let node = Node::Recursion(recursion);
        Ok((if free_columns(&node).is_empty() { self.scanned(node) } else { node }, own))
    }

    /// Puts wide work tables in the place of the recursion's own. Returns the domain of the step; `columns`
    /// are those of the start that represent the free ones.
    fn carry(&mut self, recursion: &mut Recursion, columns: &[ColumnId], domain: &Domain) -> Domain {
        let width = recursion.columns.len();
        let info = |id: &ColumnId| self.columns.get(*id);
        let fields: Vec<Field> =
            columns.iter().map(|id| Field::new(info(id).name.as_str(), info(id).ty)).collect();
        let mut carried = domain.carried.clone();
        let mut widen = |table: &mut Arc<WorkTable>| {
            let wide = Arc::new(table.widened(&fields));
            let narrow = std::mem::replace(table, wide.clone());
            carried.push(Carried { narrow, wide });
        };
        if let Keeps::Keyed { keys, all, .. } = &mut recursion.keeps {
            keys.extend(width..width + domain.keys(columns).len());
            all.iter_mut().for_each(&mut widen);
        }
        widen(&mut recursion.work);
        let elements = self.copies(columns);
        let scanned = elements.iter().copied().zip(width..).collect();
        let scan = Node::Scan(Scan::all(recursion.work.clone(), scanned));
        Domain { node: Node::Distinct(Distinct::new(scan, elements)), carried, ..domain.clone() }
    }

    /// A scan of the relation of a recursion that reads nothing around.
    fn scanned(&self, node: Node) -> Node {
        match node {
            Node::Recursion(recursion) => {
                let columns = recursion.columns.iter().copied().zip(0..).collect();
                Node::Scan(Scan::all(recursion.relation(self.columns), columns))
            }
            node => node,
        }
    }

    /// A scan of a carried work table.
    pub(super) fn depend_scan(&mut self, mut scan: Scan, domain: &Domain) -> Result<(Node, Vec<ColumnId>)> {
        let at = domain.carried.iter().position(|carried| carried.is_scanned(&scan));
        let at = at.ok_or_else(|| Error::internal("a correlated scan"))?;
        let Carried { narrow, wide } = &domain.carried[at];
        let own = self.copies(&domain.node.columns());
        scan.columns.extend(own.iter().copied().zip(narrow.schema().len()..));
        scan.relation = wide.clone();
        let node = Node::Scan(scan);
        if at + 1 == domain.carried.len() {
            return Ok((node, own));
        }
        let (copy, columns) = self.copy_domain(domain);
        let same = self.same(domain.keys(&columns), &own);
        Ok((join(copy, node, JoinKind::Inner, None, same), columns))
    }
}
