//! Physical planning of sorts.
//!
//! A sort with a small limit over a file reads only what decides which rows come first, and then the rest of
//! these rows ([`crate::exec::fetched`]).

use super::needed::{Needed, with};
use super::physical_plan::{SinkKind, SourceKind};
use super::planned_work::PlannedWork;
use super::planner::Planner;
use super::stream::{Stream, find};
use crate::exec::fetched::{FETCHED_MAX, ROW_NUMBER, ROW_NUMBER_TYPE};
use crate::exec::key_filter::PlannedTest;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::sort::keeps_first_rows;
use crate::facts::relation_columns;
use crate::plan::{self, Node};
use crate::threshold::Threshold;
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{ColumnId, Result};

impl<'p> Planner<'_, 'p> {
    pub(super) fn sort(
        &mut self,
        node: &'p Node,
        plan: &'p plan::Sort,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let below = with(needed, plan.keys.iter().map(|key| &key.expr));
        let first = plan.keys.first().filter(|_| keeps_first_rows(plan.limit));
        let first = first.filter(|key| Threshold::is_possible(key.expr.ty()));
        let test = first.map(|key| {
            let test = PlannedTest::Threshold { descending: key.descending, nulls_first: key.nulls_first };
            (key, self.add_test(test), test)
        });
        let threshold = test.map(|(_, number, _)| number);
        let pushed = test.filter(|_| self.context.settings.optimize);
        let pushed = pushed.and_then(|(key, number, test)| match key.expr {
            Expr::Column { id, .. } => Some(Pushed::new(vec![id], number, test)),
            _ => None,
        });
        let filters: Vec<Pushed> = filters.iter().cloned().chain(pushed).collect();
        let input = match self.late(plan, &below) {
            Some((scan, early)) => self.fetched(plan, scan, &early, &below, (&filters, threshold))?,
            None => self.input(&plan.input, 0, &below, &filters)?,
        };
        let own = self.add_node(PlannedWork::Node(node));
        self.add_child(own, input.node);
        // A sort keeps all columns of its input.
        let kept: Vec<ColumnMeta> =
            input.columns.iter().filter(|meta| below.contains(&meta.id)).cloned().collect();
        let input = self.align(input, &kept, own)?;
        let columns = input.columns.clone();
        let sort =
            SinkKind::Sort { columns: columns.clone(), keys: &plan.keys, limit: plan.limit, threshold };
        Ok(self.block(node, input, sort, columns, own))
    }

    /// The scan below a sort of which some columns are better fetched once the first rows are known, and the
    /// columns that decide which these are.
    fn late(&self, plan: &'p plan::Sort, below: &Needed) -> Option<(&'p plan::Scan, Needed)> {
        let Node::Scan(scan) = &*plan.input else { return None };
        let is_small = plan.limit.is_some_and(|limit| (1..=FETCHED_MAX).contains(&limit));
        // Keys are computed twice.
        let is_stable = plan.keys.iter().all(|key| !key.expr.is_volatile());
        if !is_small || !is_stable || !self.context.settings.optimize || !scan.relation.finds_rows() {
            return None;
        }
        let early = with(&Needed::default(), plan.keys.iter().map(|key| &key.expr).chain(&scan.filters));
        let is_late = |(id, _): &(ColumnId, usize)| below.contains(id) && !early.contains(id);
        scan.columns.iter().any(is_late).then_some((scan, early))
    }

    /// The first rows of `scan` in the order of `plan`, as decided by the columns `early`, with all columns
    /// that are read above.
    fn fetched(
        &mut self,
        plan: &'p plan::Sort,
        scan: &'p plan::Scan,
        early: &Needed,
        below: &Needed,
        (filters, threshold): (&[Pushed], Option<usize>),
    ) -> Result<Stream> {
        let of = |wanted: &Needed| -> Vec<(ColumnId, usize)> {
            scan.columns.iter().copied().filter(|(id, _)| wanted.contains(id)).collect()
        };
        let mut columns = of(early);
        let first = self.add_node(PlannedWork::FirstScan { scan, columns: columns.clone() });
        let mut metas = relation_columns(&*scan.relation, &columns, self.columns);
        metas.push(ColumnMeta { nullable: false, ..ColumnMeta::new(ROW_NUMBER, ROW_NUMBER_TYPE) });
        columns.push((ROW_NUMBER, scan.relation.schema().len()));
        let stream = self.other_scan(scan, (columns, metas), filters, first)?;
        let keys = with(&Needed::default(), plan.keys.iter().map(|key| &key.expr));
        let is_read = |meta: &&ColumnMeta| meta.id == ROW_NUMBER || keys.contains(&meta.id);
        let kept: Vec<ColumnMeta> = stream.columns.iter().filter(is_read).cloned().collect();
        let stream = self.align(stream, &kept, first)?;

        let rows = plan.limit.unwrap_or(FETCHED_MAX) as f64;
        let columns = of(below);
        let late = columns.iter().map(|(id, _)| *id).filter(|id| !early.contains(id)).collect();
        let own = self.add_node(PlannedWork::Fetch { scan, late, rows });
        self.add_child(own, first);
        let column = find(&stream.columns, ROW_NUMBER)?;
        let kept = stream.columns.clone();
        let sort = SinkKind::Sort { columns: kept, keys: &plan.keys, limit: plan.limit, threshold };
        let sink = self.end(stream, sort, own);
        let metas = relation_columns(&*scan.relation, &columns, self.columns);
        let source = self.add_source(SourceKind::Fetched { sink, column, scan, columns, rows }, own);
        Ok(Stream::of(source, metas, own))
    }
}
