//! Physical planning of what rows come from: relations and `VALUES`.

use super::builder::Builder;
use super::needed::{Needed, with};
use super::stream::Stream;
use crate::exec::filter::Filter;
use crate::exec::key_filter::pushed;
use crate::exec::key_filter::pushed::Pushed;
use crate::exec::pipeline::Part;
use crate::exec::profile::Recorder;
use crate::exec::scan::TableScan;
use crate::exec::values::Chunks;
use crate::facts::{relation_columns, values_column};
use crate::plan::{self, Node};
use crate::relation::ScanRequest;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{ColumnId, Result};
use std::sync::Arc;

/// The assumed number of rows of a relation without statistics.
const UNKNOWN_ROWS: f64 = 1e6;

impl Builder<'_> {
    pub(super) fn scan(
        &mut self,
        node: &Node,
        scan: &plan::Scan,
        needed: &Needed,
        filters: &[Pushed],
    ) -> Result<Stream> {
        let wanted = needed;
        let needed = with(needed, &scan.filters);
        let columns: Vec<_> = scan.columns.iter().copied().filter(|(id, _)| needed.contains(id)).collect();
        let recorder = self.recorder(node);
        let mut metas = relation_columns(&*scan.relation, &columns, self.columns);
        if let Some(snapshot) = scan.relation.table() {
            let narrow =
                |meta: &&mut ColumnMeta| self.context.settings.optimize && needed.is_only_computed(meta.id);
            for meta in metas.iter_mut().filter(narrow) {
                meta.physical = meta.range.map_or(meta.physical, |range| meta.ty.narrowest(range));
            }
            let filters = pushed::place(filters, &metas, self.columns, &recorder)?;
            let sparse = !scan.filters.is_empty() || !filters.is_empty();
            let source = TableScan::new(
                snapshot.clone(),
                scan,
                &columns,
                &columns.iter().map(|(id, _)| wanted.contains(id)).collect::<Vec<_>>(),
                &metas,
                filters,
                &recorder,
                self.context,
            )?;
            let rows = source.rows() as f64;
            let part = Part::new(Arc::new(source), &recorder, rows);
            return Ok(Stream { parts: vec![Part { sparse, ..part }], columns: metas, recorder });
        }
        self.other_scan(scan, (columns, metas), filters, &recorder)
    }

    /// The rows of a relation that is no stored table, in these columns.
    pub(super) fn other_scan(
        &self,
        scan: &plan::Scan,
        (columns, metas): (Vec<(ColumnId, usize)>, Vec<ColumnMeta>),
        filters: &[Pushed],
        recorder: &Arc<Recorder>,
    ) -> Result<Stream> {
        let thresholds = filters.iter().filter_map(Pushed::bound).collect();
        let request = ScanRequest { columns, filters: scan.filters.clone(), thresholds };
        let source = scan.relation.scan(&request, self.context)?;
        let expected = || scan.relation.statistics().rows.map_or(UNKNOWN_ROWS, |rows| rows as f64);
        let rows = source.rows().map_or_else(expected, |rows| rows as f64);
        let stream = Stream {
            parts: vec![Part::new(source, recorder, rows)],
            columns: metas,
            recorder: recorder.clone(),
        };
        if scan.filters.is_empty() {
            return Ok(stream);
        }
        let operator = Filter::new(&scan.filters, &stream.columns)?;
        Ok(stream.extend(Arc::new(operator), recorder).sparse())
    }

    pub(super) fn values(&mut self, node: &Node, values: &plan::Values, needed: &Needed) -> Result<Stream> {
        let places: Vec<usize> =
            (0..values.columns.len()).filter(|&place| needed.contains(&values.columns[place])).collect();
        let columns: Vec<ColumnMeta> = places
            .iter()
            .map(|&place| {
                values_column(values.columns[place], self.columns, values.rows.iter().map(|row| &row[place]))
            })
            .collect();
        let source = Chunks::new(&columns, &places, &values.rows, self.context.settings.chunk_rows)?;
        let recorder = self.recorder(node);
        let part = Part::new(Arc::new(source), &recorder, values.rows.len() as f64);
        Ok(Stream { parts: vec![part], columns, recorder })
    }
}
