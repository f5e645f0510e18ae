//! Rows that are computed when they are read, as many as there are to be, on as many threads as ask: tables
//! take no memory.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, Result, Schema, Selection, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names and types of the columns.
pub const COLUMNS: [(&str, DataType); 4] =
    [("k", DataType::Int64), ("a", DataType::Int64), ("b", DataType::Int64), ("c", DataType::Float64)];

/// Rows of 32 bytes: a key that occurs once, in no order; the row's number; that below 1000; a double.
#[derive(Debug)]
pub struct Computed {
    schema: Schema,
    rows: u64,
    step: u64,
}

impl Computed {
    /// So many rows. The key of row i is that of number `i * step`.
    pub fn new(rows: u64, step: u64) -> Computed {
        Computed { schema: COLUMNS.iter().map(|&(name, ty)| Field::new(name, ty)).collect(), rows, step }
    }
}

/// Numbers in no order, each once.
pub fn key_of(number: u64) -> i64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xBB67_AE85_84CA_A73B) as i64
}

impl Relation for Computed {
    fn name(&self) -> &str {
        "computed"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.rows), columns: Vec::new() }
    }
    fn scan(&self, request: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        let columns = request.columns.iter().map(|(_, column)| *column).collect();
        Ok(Arc::new(Computing {
            rows: self.rows,
            step: self.step,
            columns,
            next: Arc::default(),
            current: 0,
        }))
    }
}

#[derive(Clone)]
struct Computing {
    rows: u64,
    step: u64,
    columns: Vec<usize>,
    next: Arc<AtomicU64>,
    /// The chunk that was read.
    current: u64,
}

impl Source for Computing {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(self.clone()))
    }
}

impl SourceWorker for Computing {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let first = self.next.fetch_add(CHUNK_ROWS as u64, Ordering::Relaxed);
        if first >= self.rows {
            return Ok(false);
        }
        self.current = first;
        let rows = first..self.rows.min(first + CHUNK_ROWS as u64);
        chunk.reset((rows.end - rows.start) as usize);
        let group = chunk.push_group(Selection::ALL);
        for column in &self.columns {
            let vector = match column {
                0 => {
                    Vector::from_slice(&rows.clone().map(|row| key_of(row * self.step)).collect::<Vec<i64>>())
                }
                1 => Vector::from_slice(&rows.clone().map(|row| row as i64).collect::<Vec<i64>>()),
                2 => Vector::from_slice(&rows.clone().map(|row| (row % 1000) as i64).collect::<Vec<i64>>()),
                _ => Vector::from_slice(&rows.clone().map(|row| row as f64 / 7.0).collect::<Vec<f64>>()),
            };
            chunk.push_column(vector, group);
        }
        Ok(true)
    }
    fn morsel(&self) -> u64 {
        self.current / CHUNK_ROWS as u64
    }
}
