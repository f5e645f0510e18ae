//! Physical planning of what rows come from: relations and `VALUES`.

use super::needed::{Needed, with};
use super::physical_plan::{OperatorKind, SourceKind};
use super::planned_work::PlannedWork;
use super::planner::Planner;
use super::stream::Stream;
use crate::exec::filter::Filter;
use crate::exec::key_filter::pushed;
use crate::exec::key_filter::pushed::Pushed;
use crate::facts::{relation_columns, values_column};
use crate::plan::{self, Node};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Result};

impl<'p> Planner<'_, 'p> {
    pub(super) fn scan(
        &mut self,
        node: &'p Node,
        scan: &'p plan::Scan,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let wanted = needed;
        let needed = with(needed, &scan.filters);
        let columns: Vec<_> = scan.columns.iter().copied().filter(|(id, _)| needed.contains(id)).collect();
        let own = self.add_node(PlannedWork::Node(node));
        let mut metas = relation_columns(&*scan.relation, &columns, self.columns);
        if scan.relation.table().is_none() {
            return self.other_scan(scan, (columns, metas), filters, own);
        }
        let narrow =
            |meta: &&mut ColumnMeta| self.context.settings.optimize && needed.is_only_computed(meta.id);
        for meta in metas.iter_mut().filter(narrow) {
            meta.physical = meta.range.map_or(meta.physical, |range| meta.ty.narrowest(range));
        }
        let filters = pushed::place(filters, &metas)?;
        let is_sparse = !scan.filters.is_empty() || !filters.is_empty();
        let outputs = columns.iter().map(|(id, _)| wanted.contains(id)).collect();
        let table = SourceKind::Table { scan, columns, outputs, metas: metas.clone(), filters };
        let stream = Stream::of(self.add_source(table, own), metas, own);
        Ok(if is_sparse { stream.sparse() } else { stream })
    }

    /// The rows of a relation that is no stored table, in these columns.
    pub(super) fn other_scan(
        &mut self,
        scan: &'p plan::Scan,
        (columns, metas): (Vec<(ColumnId, usize)>, Vec<ColumnMeta>),
        filters: &[Pushed],
        own: usize,
    ) -> Result<Stream> {
        let thresholds = filters.iter().filter_map(Pushed::bound).collect();
        let relation = SourceKind::Relation { scan, columns, metas: metas.clone(), thresholds };
        let stream = Stream::of(self.add_source(relation, own), metas, own);
        if scan.filters.is_empty() {
            return Ok(stream);
        }
        let filter = Filter::new(&scan.filters, &stream.columns)?;
        Ok(self.extend(stream, OperatorKind::Filter { predicates: &scan.filters, filter }, own).sparse())
    }

    pub(super) fn values(
        &mut self,
        node: &'p Node,
        values: &'p plan::Values,
        needed: &Needed,
    ) -> Result<Stream> {
        let places: Vec<usize> =
            (0..values.columns.len()).filter(|&place| needed.contains(&values.columns[place])).collect();
        let metas: Vec<ColumnMeta> = places
            .iter()
            .map(|&place| {
                values_column(values.columns[place], self.columns, values.rows.iter().map(|row| &row[place]))
            })
            .collect();
        let own = self.add_node(PlannedWork::Node(node));
        let source = self.add_source(SourceKind::Values { values, places, metas: metas.clone() }, own);
        Ok(Stream::of(source, metas, own))
    }
}
