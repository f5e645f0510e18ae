//! Rows that are there at once, as a file would give them, and a sum of what comes of them.

use entasis_engine::exec::{QueryContext, ResultSink, ResultWorker};
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, Result, Schema, Selection, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Chunks of keys, and of payloads beside them.
#[derive(Debug)]
pub struct Ready {
    schema: Schema,
    chunks: Arc<Vec<Chunk>>,
    claimed: u64,
    distinct: Option<u64>,
}

impl Ready {
    /// Rows (key, key with other bits), which the optimizer takes for `claimed`, with so many distinct keys if it is told.
    pub fn new(keys: &[i64], claimed: u64, distinct: Option<u64>) -> Ready {
        let chunk = |keys: &[i64]| {
            let mut chunk = Chunk::new();
            chunk.reset(keys.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(Vector::from_slice(keys), group);
            chunk.push_column(Vector::from_slice(&keys.iter().map(|key| key ^ 0x5555).collect::<Vec<i64>>()), group);
            chunk
        };
        let schema: Schema = ["k", "v"].map(|name| Field::new(name, DataType::Int64)).to_vec();
        Ready { schema, chunks: Arc::new(keys.chunks(CHUNK_ROWS).map(chunk).collect()), claimed, distinct }
    }
}

impl Relation for Ready {
    fn name(&self) -> &str {
        "ready"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        let key = ColumnStatistics { distinct: self.distinct, ..ColumnStatistics::default() };
        Statistics { rows: Some(self.claimed), columns: vec![key] }
    }
    fn scan(&self, request: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        let columns = request.columns.iter().map(|(_, column)| *column).collect();
        Ok(Arc::new(Handing { chunks: self.chunks.clone(), columns, next: Arc::default() }))
    }
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

/// Adds up the last column.
#[derive(Default)]
pub struct Sum(Arc<AtomicI64>);

impl Sum {
    /// All together.
    pub fn total(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ResultSink for Sum {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(SumWorker { total: self.0.clone(), own: 0 }))
    }
}

struct SumWorker {
    total: Arc<AtomicI64>,
    own: i64,
}

impl ResultWorker for SumWorker {
    fn push(&mut self, chunk: &Chunk) -> Result<()> {
        let column = chunk.columns().len() - 1;
        let values = chunk.vector(column).values::<i64>();
        let sum: i64 = match chunk.positions(column) {
            None if chunk.vector(column).is_constant() => values[0].wrapping_mul(chunk.len() as i64),
            None => values[..chunk.len()].iter().fold(0, |sum, v| sum.wrapping_add(*v)),
            Some(at) => at.iter().fold(0, |sum, &p| sum.wrapping_add(values[p as usize])),
        };
        self.own = self.own.wrapping_add(sum);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        self.total.fetch_add(self.own, Ordering::Relaxed);
        Ok(())
    }
}
