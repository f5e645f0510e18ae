//! Physical planning of sorts.
//!
//! A sort with a small limit over a file reads only what decides which rows come first, and then the rest of
//! these rows ([`crate::exec::fetched`]).

use super::builder::Builder;
use super::needed::{Needed, with};
use super::stream::{Stream, align, find};
use crate::exec::fetched::{FETCHED_MAX, FetchedRows, ROW_NUMBER, ROW_NUMBER_TYPE};
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::pipeline::Part;
use crate::exec::profile::Recorder;
use crate::exec::sort::{keeps_first_rows, sort};
use crate::facts::relation_columns;
use crate::plan::{self, Node};
use crate::relation::ScanRequest;
use crate::threshold::Threshold;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Result};
use std::sync::{Arc, OnceLock};

impl Builder<'_> {
    pub(super) fn sort(
        &mut self,
        node: &Node,
        plan: &plan::Sort,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let below = with(needed, plan.keys.iter().map(|key| &key.expr));
        let first = plan.keys.first().filter(|_| keeps_first_rows(plan.limit));
        let threshold = first.and_then(|key| Threshold::new(key.expr.ty(), key.descending, key.nulls_first));
        let pushed = first.zip(threshold.as_ref()).filter(|_| self.context.settings.optimize);
        let pushed = pushed.and_then(|(key, threshold)| Pushed::of_sort(key, threshold));
        let filters: Vec<Pushed> = filters.iter().cloned().chain(pushed).collect();
        let input = match self.late(plan, &below) {
            Some((scan, early)) => self.fetched(plan, scan, &early, &below, (&filters, &threshold))?,
            None => self.input(&plan.input, 0, &below, &filters)?,
        };
        let recorder = self.recorder(node);
        // A sort keeps all columns of its input.
        let kept: Vec<ColumnMeta> =
            input.columns.iter().filter(|meta| below.contains(&meta.id)).cloned().collect();
        let input = align(input, &kept, &recorder)?;
        let context = recorder.context(self.context);
        let blocking = sort(&input.columns, &plan.keys, plan.limit, threshold, &context, &recorder)?;
        Ok(self.block(node, input, blocking, recorder))
    }

    /// The scan below a sort of which some columns are better fetched once the first rows are known, and the
    /// columns that decide which these are.
    fn late<'p>(&self, plan: &'p plan::Sort, below: &Needed) -> Option<(&'p plan::Scan, Needed)> {
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
        plan: &plan::Sort,
        scan: &plan::Scan,
        early: &Needed,
        below: &Needed,
        (filters, threshold): (&[Pushed], &Option<Arc<Threshold>>),
    ) -> Result<Stream> {
        let of = |wanted: &Needed| -> Vec<(ColumnId, usize)> {
            scan.columns.iter().copied().filter(|(id, _)| wanted.contains(id)).collect()
        };
        let mut columns = of(early);
        let only = plan::Scan { columns: columns.clone(), ..scan.clone() };
        let recorder = self.recorder(&Node::Scan(only));
        let mut metas = relation_columns(&*scan.relation, &columns, self.columns);
        metas.push(ColumnMeta { nullable: false, ..ColumnMeta::new(ROW_NUMBER, ROW_NUMBER_TYPE) });
        columns.push((ROW_NUMBER, scan.relation.schema().len()));
        let stream = self.other_scan(scan, (columns, metas), filters, &recorder)?;
        let keys = with(&Needed::default(), plan.keys.iter().map(|key| &key.expr));
        let is_read = |meta: &&ColumnMeta| meta.id == ROW_NUMBER || keys.contains(&meta.id);
        let kept: Vec<ColumnMeta> = stream.columns.iter().filter(is_read).cloned().collect();
        let stream = align(stream, &kept, &recorder)?;

        let rows = plan.limit.unwrap_or(FETCHED_MAX) as f64;
        let late: Vec<&str> = of(below)
            .iter()
            .filter(|(id, _)| !early.contains(id))
            .map(|(id, _)| self.columns.get(*id).name.as_str())
            .collect();
        let fetch = match self.context.settings.profile {
            true => {
                let title = format!("Fetch {} [{}]", scan.relation.name(), late.join(", "));
                Recorder::measuring(title, "a sort", rows, self.context)
            }
            false => Recorder::owning("a sort", self.context),
        };
        fetch.add_child(&recorder);
        let context = fetch.context(self.context);
        let first = sort(&stream.columns, &plan.keys, plan.limit, threshold.clone(), &context, &fetch)?;
        self.end(stream, first.sink, &fetch);
        let columns = of(below);
        let metas = relation_columns(&*scan.relation, &columns, self.columns);
        let source = FetchedRows {
            numbers: first.source,
            column: find(&first.output, ROW_NUMBER)?,
            relation: scan.relation.clone(),
            request: ScanRequest::all(columns),
            context: self.context.clone(),
            scan: OnceLock::new(),
        };
        let part = Part::new(Arc::new(source), &fetch, rows);
        Ok(Stream { parts: vec![part], columns: metas, recorder: fetch })
    }
}
