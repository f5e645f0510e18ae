//! Turning finished segments into [tuples](crate::exec::tuple).

use super::column::Column;
use super::rows::Materialized;
use crate::exec::tuple::{Source, TupleLayout, Tuples};
use entasis_vector::Buffer;
use std::sync::Arc;

impl Materialized {
    /// Turns a segment that no longer grows into tuples, and frees its columns that are not keys. All
    /// segments get the same `layout`, that of these columns. Does nothing to a segment that is tuples
    /// already, or that has a NULL which the layout does not expect.
    pub fn compress(&mut self, segment: usize, layout: &Arc<TupleLayout>) {
        let Some(sources) = self.sources(segment, layout) else { return };
        let rows = self.segments[segment];
        let tuples = Tuples::encode(layout, &sources, rows);
        let columns = self.column_bytes(segment, layout);
        self.compressed.segments += 1;
        self.compressed.rows += rows;
        self.compressed.columns += columns;
        self.compressed.tuples += tuples.bytes();
        self.bytes = self.bytes - columns + tuples.bytes();
        self.tuples[segment] = Some(tuples);
        for column in layout.columns() {
            let column = &mut self.columns[column];
            column.values[segment] = Buffer::zeroed(0);
            self.bytes += column.values[segment].capacity();
            column.validity[segment] = None;
        }
        self.layout = Some(layout.clone());
    }

    /// The bytes of a segment's columns that [`Materialized::compress`] would free, and those that it would
    /// take instead; `None` if it would do nothing.
    pub fn measure(&self, segment: usize, layout: &TupleLayout) -> Option<(usize, usize)> {
        let sources = self.sources(segment, layout)?;
        Some((self.column_bytes(segment, layout), Tuples::measure(layout, &sources, self.segments[segment])))
    }

    /// The columns of a segment that would become tuples; `None` if they cannot.
    fn sources(&self, segment: usize, layout: &TupleLayout) -> Option<Vec<Source<'_>>> {
        if self.tuples[segment].is_some() {
            return None;
        }
        let columns = layout.columns().zip(layout.nullable()).map(|(column, nullable)| {
            let values = &self.columns[column].values[segment];
            let validity =
                self.columns[column].validity[segment].as_ref().map(|words| words.as_slice::<u64>());
            debug_assert!(
                nullable || validity.is_none(),
                "a column has a NULL which its description rules out"
            );
            (nullable || validity.is_none()).then_some(Source { values, validity })
        });
        columns.collect()
    }

    /// Bytes of a segment's columns that are in the layout.
    fn column_bytes(&self, segment: usize, layout: &TupleLayout) -> usize {
        let of = |column: usize| {
            let Column { values, validity, .. } = &self.columns[column];
            values[segment].capacity() + validity[segment].as_ref().map_or(0, Buffer::capacity)
        };
        layout.columns().map(of).sum()
    }
}
