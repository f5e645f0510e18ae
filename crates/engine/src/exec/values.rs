//! Values: a source of rows that are part of the plan, and of other small chunks that are ready.

use crate::relation::{Source, SourceWorker};
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, Result, Selection, Value, Vector};
use std::sync::Arc;

/// Dense chunks; each goes to the next worker that requests one.
pub(crate) struct Chunks {
    chunks: Arc<Vec<Chunk>>,
    next: Arc<AtomicUsize>,
}

impl Chunks {
    /// The rows as chunks of at most `chunk_rows`; column i is at `places[i]` in a row.
    ///
    /// # Errors
    /// Internal, if a value is not of its column's type.
    pub(crate) fn new(
        metas: &[ColumnMeta],
        places: &[usize],
        rows: &[Vec<Value>],
        chunk_rows: usize,
    ) -> Result<Chunks> {
        let mut chunks = Vec::new();
        for rows in rows.chunks(chunk_rows) {
            let mut chunk = Chunk::new();
            chunk.reset(rows.len());
            let group = chunk.push_group(Selection::ALL);
            for (meta, &place) in metas.iter().zip(places) {
                let values: Vec<Value> = rows.iter().map(|row| row[place].clone()).collect();
                chunk.push_column(Vector::of_values_held(meta.physical, meta.ty, &values)?, group);
            }
            chunks.push(chunk);
        }
        Ok(Chunks { chunks: Arc::new(chunks), next: Arc::default() })
    }
}

impl Source for Chunks {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Worker { chunks: self.chunks.clone(), next: self.next.clone(), current: 0 }))
    }
    fn progress(&self) -> Option<f64> {
        Some(self.next.load(Ordering::Relaxed) as f64 / self.chunks.len().max(1) as f64)
    }
}

struct Worker {
    chunks: Arc<Vec<Chunk>>,
    next: Arc<AtomicUsize>,
    current: usize,
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.current = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(ready) = self.chunks.get(self.current) else { return Ok(false) };
        chunk.clone_from(ready);
        Ok(true)
    }
    fn morsel(&self) -> u64 {
        self.current as u64
    }
}
