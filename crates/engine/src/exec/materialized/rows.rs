//! The rows themselves, and what is known of them.

use super::column::Column;
use super::words::Words;
use crate::exec::row_id::{self, SEGMENT_ROWS};
use crate::exec::tuple::{TupleLayout, Tuples};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffers, StringHeap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows in memory. See the module.
pub struct Materialized {
    pub(super) metas: Vec<ColumnMeta>,
    pub(super) columns: Vec<Column>,
    /// Rows of each segment.
    pub(super) segments: Vec<usize>,
    /// The columns of each segment that are not keys, if they have become tuples.
    pub(super) tuples: Vec<Option<Tuples>>,
    /// The layout of all tuples; absent if there are none.
    pub(super) layout: Option<Arc<TupleLayout>>,
    /// Rows that are tuples, and their bytes as columns and as tuples.
    pub(super) compressed: Compressed,
    pub(super) growth: Growth,
    pub(super) rows: usize,
    pub(super) heap: Arc<StringHeap>,
    /// Bytes of all segments, without the heap.
    pub(super) bytes: usize,
    /// Positions of a chunk's rows that pass through two selections.
    pub(super) composed: Vec<u16>,
}

/// How segments grow.
#[derive(Clone, Copy, Default)]
pub(super) struct Growth {
    /// Rows that fit into the last segment.
    pub(super) room: usize,
    /// The expected number of rows; 0 if unknown.
    pub(super) expected: usize,
    /// A full segment is followed by a larger one, rather than copied to become larger.
    pub(super) in_pages: bool,
}

/// Statistics of compression.
#[derive(Clone, Copy, Default)]
pub(super) struct Compressed {
    pub(super) segments: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) tuples: usize,
}

impl Materialized {
    /// The row id that means no row: gathering it gives NULL.
    pub const NO_ROW: u32 = row_id::NO_ROW;

    /// Rows that the first segment has room for initially.
    pub const FIRST_ROOM: usize = 256;

    /// No rows yet.
    pub fn new(columns: &[ColumnMeta]) -> Materialized {
        let column = |meta: &ColumnMeta| Column {
            physical: meta.physical,
            values: Buffers::default(),
            packed: None,
            validity: Vec::new(),
            has_nulls: false,
            strings_are_stable: true,
        };
        Materialized {
            metas: columns.to_vec(),
            columns: columns.iter().map(column).collect(),
            segments: Vec::new(),
            tuples: Vec::new(),
            layout: None,
            compressed: Compressed::default(),
            growth: Growth::default(),
            rows: 0,
            heap: Arc::default(),
            bytes: 0,
            composed: Vec::new(),
        }
    }

    /// No rows yet, with room for exactly `rows` rows.
    pub fn expecting(columns: &[ColumnMeta], rows: usize) -> Materialized {
        let growth = Growth { expected: rows, ..Growth::default() };
        Materialized { growth, ..Materialized::new(columns) }
    }

    /// No rows yet. They will be read by segments, so ids need not be dense: a value stays where it was first
    /// written. The first segment will have room for `first` rows.
    pub fn in_pages(columns: &[ColumnMeta], first: usize) -> Materialized {
        let growth = Growth { expected: first, in_pages: true, room: 0 };
        Materialized { growth, ..Materialized::new(columns) }
    }

    /// What is known of the columns.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.metas
    }
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
    /// Rows of `segment`; its row ids are `segment << 16` and those that follow.
    pub fn segment_rows(&self, segment: usize) -> usize {
        self.segments[segment]
    }
    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes + self.heap.bytes()
    }
    /// Bytes of long strings among these.
    pub fn heap_bytes(&self) -> usize {
        self.heap.bytes()
    }
    /// All row ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.segments.iter().enumerate().flat_map(|(s, &rows)| (0..rows).map(move |r| (s << 16 | r) as u32))
    }
    /// The largest row id plus one, or more: ids have gaps between the rows of one worker and the next.
    pub fn id_space(&self) -> usize {
        self.segments.last().map_or(0, |last| (self.segments.len() - 1) * SEGMENT_ROWS + last)
    }
    /// True if some value of `column` is NULL.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.columns[column].has_nulls
    }
    /// Rows that are tuples, and their bytes as columns and as tuples.
    pub fn compressed(&self) -> (usize, usize, usize) {
        (self.compressed.rows, self.compressed.columns, self.compressed.tuples)
    }
    /// Columns that share words, and the bytes of a row's words; `None` if there are no words.
    pub fn words(&self) -> Option<(usize, usize)> {
        let packed = || self.columns.iter().filter_map(|column| column.packed.as_ref());
        let widths: BTreeMap<*const Words, usize> =
            packed().map(|p| (Arc::as_ptr(&p.words), p.words.width)).collect();
        (!widths.is_empty()).then(|| (packed().count(), widths.values().sum()))
    }

    /// The tuples' field that holds `column`; `None` if there are no tuples, or if the column is a key.
    #[inline]
    pub(super) fn field_of(&self, column: usize) -> Option<usize> {
        self.layout.as_ref()?.field_of(column)
    }
}
