//! The build tail: build rows with a match, or without one, which a join outputs after its probe side.

use super::{Built, BuiltSlot};
use crate::exec::materialized::Materialized;
use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Error, Result, Selection, Value, Vector};
use std::sync::Arc;

/// The source of the build tail. Its morsels are the segments of the build side.
#[derive(Clone)]
pub(crate) struct BuildRows {
    /// The build side.
    pub built: BuiltSlot,
    /// True: rows with a match. False: rows without one.
    pub matched: bool,
    /// Columns of the probe side, which come first and are all NULL.
    pub nulls: Vec<ColumnMeta>,
    /// Columns of the build rows, which follow.
    pub columns: Vec<usize>,
    /// The most rows of a chunk.
    pub chunk_rows: usize,
    /// The next segment.
    pub next: Arc<AtomicUsize>,
}

impl BuildRows {
    fn built(&self) -> Result<&Built> {
        self.built.get().ok_or_else(|| Error::internal("a join gives its build rows before it was built"))
    }
}

impl Source for BuildRows {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let rows = &self.built()?.rows;
        let nulls = self.nulls.iter().map(|meta| Vector::constant(meta.physical, &Value::Null));
        Ok(Box::new(Worker {
            nulls: nulls.collect::<Result<_>>()?,
            gathered: self.columns.iter().map(|&c| Vector::new(rows.columns()[c].physical)).collect(),
            source: Arc::new(self.clone()),
            segment: None,
            offset: 0,
            ids: Vec::new(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        let segments = self.built.get()?.rows.segments().max(1);
        Some(self.next.load(Ordering::Relaxed) as f64 / segments as f64)
    }
}

struct Worker {
    source: Arc<BuildRows>,
    nulls: Vec<Vector>,
    gathered: Vec<Vector>,
    segment: Option<usize>,
    offset: usize,
    ids: Vec<u32>,
}

impl Worker {
    /// Fills `ids` from the current segment; false at its end.
    fn find(&mut self, built: &Built, segment: usize) -> bool {
        self.ids.clear();
        let rows = built.rows.segment_rows(segment);
        while self.offset < rows && self.ids.len() < self.source.chunk_rows {
            let id = (segment << 16 | self.offset) as u32;
            if built.is_matched(id) == self.source.matched {
                self.ids.push(id);
            }
            self.offset += 1;
        }
        !self.ids.is_empty()
    }
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let source = self.source.clone();
        let built = source.built()?;
        loop {
            if let Some(segment) = self.segment
                && self.find(built, segment)
            {
                break;
            }
            let segment = source.next.fetch_add(1, Ordering::Relaxed);
            if segment >= built.rows.segments() {
                return Ok(false);
            }
            (self.segment, self.offset) = (Some(segment), 0);
        }
        chunk.reset(self.ids.len());
        let group = chunk.push_group(Selection::ALL);
        for null in &self.nulls {
            chunk.push_column(null.clone(), group);
        }
        gather(&built.rows, &source.columns, &self.ids, &mut self.gathered, chunk, group);
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.segment.unwrap_or(0) as u64
    }
}

/// Adds the given `columns` of the kept rows `ids` to `chunk`.
pub(crate) fn gather(
    rows: &Materialized,
    columns: &[usize],
    ids: &[u32],
    vectors: &mut [Vector],
    chunk: &mut Chunk,
    group: usize,
) {
    rows.gather_all(columns, ids, vectors);
    vectors.iter().for_each(|vector| chunk.push_column(vector.clone(), group));
}
