//! Rows that are there at once, as a file would give them, and a sum of what comes of them.

#[path = "../handing/mod.rs"]
mod handing;

use engine::cost::Costs;
use engine::exec::{QueryContext, ResultSink, ResultWorker};
use engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, Statistics};
use entasis_engine as engine;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, PhysicalType, Result, Schema, Selection, Vector};
use handing::handing;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Chunks of keys, and of payloads beside them.
#[derive(Debug)]
pub struct Ready {
    schema: Schema,
    chunks: Arc<Vec<Chunk>>,
    claimed: u64,
    distinct: Option<u64>,
    costs: Arc<Costs>,
}

impl Ready {
    /// Rows (key, key with other bits), which the optimizer takes for `claimed`, with so many distinct keys
    /// if it is told.
    #[allow(dead_code)] // Not all examples have such rows.
    pub fn new(keys: &[i64], claimed: u64, distinct: Option<u64>) -> Ready {
        Ready::of(keys, DataType::Int64, 1, claimed, distinct)
    }

    /// The same with so many payload columns, all of type `ty`, which is BIGINT or INTEGER.
    #[allow(dead_code)] // Not all examples have such rows.
    pub fn of(keys: &[i64], ty: DataType, payloads: usize, claimed: u64, distinct: Option<u64>) -> Ready {
        let vector = |values: &mut dyn Iterator<Item = i64>| match ty {
            DataType::Int64 => Vector::from_slice(&values.collect::<Vec<i64>>()),
            _ => Vector::from_slice(&values.map(|value| value as i32).collect::<Vec<i32>>()),
        };
        let chunk = |keys: &[i64]| {
            let mut chunk = Chunk::new();
            chunk.reset(keys.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(vector(&mut keys.iter().copied()), group);
            (0..payloads).for_each(|i| {
                chunk.push_column(vector(&mut keys.iter().map(|key| key ^ (0x5555 + i as i64))), group);
            });
            chunk
        };
        let names = (0..payloads).map(|i| if i == 0 { "v".to_string() } else { format!("v{i}") });
        let schema: Schema =
            std::iter::once("k".to_string()).chain(names).map(|name| Field::new(&*name, ty)).collect();
        let chunks = keys.chunks(CHUNK_ROWS).map(chunk).collect();
        Ready::of_chunks(schema, chunks, claimed, distinct)
    }

    /// These chunks, which the optimizer takes for `claimed` rows with so many distinct values of a column.
    #[allow(dead_code)] // Not all examples have such rows.
    pub fn of_chunks(schema: Schema, chunks: Vec<Chunk>, claimed: u64, distinct: Option<u64>) -> Ready {
        Ready { schema, chunks: Arc::new(chunks), claimed, distinct, costs: Arc::default() }
    }

    /// The same chunks, which the optimizer takes for `claimed` rows and weighs by these costs.
    #[allow(dead_code)] // Not all examples force a choice.
    pub fn claiming(&self, claimed: u64, costs: Costs) -> Ready {
        let chunks = self.chunks.clone();
        Ready {
            schema: self.schema.clone(),
            chunks,
            claimed,
            distinct: self.distinct,
            costs: Arc::new(costs),
        }
    }
}

/// How many different keys there are.
#[allow(dead_code)] // Not all examples ask.
pub fn distinct(keys: &[i64]) -> Option<u64> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    Some(keys.len() as u64)
}

impl Relation for Ready {
    fn name(&self) -> &str {
        "ready"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        // Payloads are keys with other bits.
        let each = ColumnStatistics { distinct: self.distinct, ..ColumnStatistics::default() };
        Statistics { rows: Some(self.claimed), columns: vec![each; self.schema.len()] }
    }
    fn costs(&self) -> Arc<Costs> {
        self.costs.clone()
    }
    fn scan(&self, request: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(handing(&self.chunks, request))
    }
}

/// The sum of so many rows' values.
fn sum<T: Copy + Into<i64>>(values: &[T], is_constant: bool, positions: Option<&[u16]>, rows: usize) -> i64 {
    match positions {
        _ if is_constant => values[0].into().wrapping_mul(rows as i64),
        None => values[..rows].iter().fold(0, |sum: i64, &v| sum.wrapping_add(v.into())),
        Some(at) => at.iter().fold(0, |sum: i64, &p| sum.wrapping_add(values[p as usize].into())),
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
        let (vector, positions) = (chunk.vector(column), chunk.positions(column));
        let sum = match vector.physical() {
            PhysicalType::I32 => sum(vector.values::<i32>(), vector.is_constant(), positions, chunk.len()),
            _ => sum(vector.values::<i64>(), vector.is_constant(), positions, chunk.len()),
        };
        self.own = self.own.wrapping_add(sum);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        self.total.fetch_add(self.own, Ordering::Relaxed);
        Ok(())
    }
}
