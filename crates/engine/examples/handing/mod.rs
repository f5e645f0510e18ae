//! A source of chunks that are in memory, for examples and tests: workers take them in turn, as they are.
//!
//! Its parent has the engine under the name `engine`, as tests within the crate name it otherwise.

use super::engine::relation::{ScanRequest, Source, SourceWorker};
use entasis_vector::{Chunk, Result, Selection};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The columns of `chunks` that are asked for.
pub fn handing(chunks: &Arc<Vec<Chunk>>, request: &ScanRequest) -> Arc<dyn Source> {
    let columns = request.columns.iter().map(|(_, column)| *column).collect();
    Arc::new(Handing { chunks: chunks.clone(), columns, next: Arc::default() })
}

#[derive(Clone)]
struct Handing {
    chunks: Arc<Vec<Chunk>>,
    columns: Vec<usize>,
    next: Arc<AtomicUsize>,
}

impl Source for Handing {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(self.clone()))
    }
}

impl SourceWorker for Handing {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(ready) = self.chunks.get(next) else { return Ok(false) };
        chunk.reset(ready.len());
        let group = chunk.push_group(Selection::ALL);
        self.columns.iter().for_each(|&column| chunk.push_column(ready.vector(column).clone(), group));
        Ok(true)
    }
    fn morsel(&self) -> u64 {
        0
    }
}
