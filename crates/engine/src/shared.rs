//! Shared subqueries: rows that several parts of a statement read are computed once, when the first of them
//! starts its scan.
//!
//! A common table expression that is read twice must give the same rows both times, whatever it calls and
//! however it is run: `random()`, a `LIMIT` without an order, a sum of floats. Such a plan becomes a
//! relation, whose rows are collected in memory and counted there. They live as long as the plan that reads
//! them, which is run once.
//!
//! Not done here: rows that do not fit into memory are not spilled, and unused columns are computed too.

use crate::context::QueryContext;
use crate::estimate::estimate_rows;
use crate::exec::{Collector, ResultSet, execute};
use crate::optimizer::optimize;
use crate::plan::Plan;
use crate::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use crate::sync::{AtomicUsize, Ordering};
use entasis_vector::{Buffer, CHUNK_ROWS, Chunk, DataType, Result, Schema, Selection};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a plan as a relation.
#[derive(Debug)]
pub struct Shared {
    name: String,
    schema: Schema,
    plan: Plan,
    /// Rows, an estimate: made once, since plans of shared rows ask for it again and again.
    estimate: u64,
    /// The rows, once they are there.
    rows: Mutex<Option<Arc<ResultSet>>>,
}

impl Shared {
    /// What `plan` gives, under this name; `schema` has a field for each of its outputs.
    pub fn new(name: String, schema: Schema, plan: Plan) -> Shared {
        let estimate = estimate_rows(&plan.root, &plan.columns) as u64;
        Shared { name, schema, plan, estimate, rows: Mutex::default() }
    }

    fn rows(&self, context: &QueryContext) -> Result<Arc<ResultSet>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = &*rows {
            return Ok(rows.clone());
        }
        // Progress is that of the whole statement.
        let context = QueryContext { progress: Arc::default(), ..context.clone() };
        let plan = optimize(self.plan.clone(), &context.settings)?;
        let types: Vec<DataType> = plan.output.iter().map(|output| plan.columns.ty(output.column)).collect();
        let collector = Collector::new(&context, types);
        execute(&plan, &context, &collector)?;
        Ok(rows.insert(Arc::new(collector.into_chunks())).clone())
    }
}

impl Relation for Shared {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.estimate), columns: Vec::new() }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(scan_rows(self.rows(context)?, request, context))
    }
}

/// A scan of rows that are there.
pub(crate) fn scan_rows(
    rows: Arc<ResultSet>,
    request: &ScanRequest,
    context: &QueryContext,
) -> Arc<dyn Source> {
    let wanted = request.columns.iter().map(|(_, index)| *index).collect();
    let chunk_rows = context.settings.chunk_rows.clamp(1, CHUNK_ROWS);
    Arc::new(SharedScan { rows, wanted, chunk_rows, next: Arc::default() })
}

/// A scan: workers take pieces of at most `chunk_rows` rows, several of which may be one chunk as it was
/// collected.
#[derive(Clone)]
struct SharedScan {
    rows: Arc<ResultSet>,
    wanted: Arc<[usize]>,
    chunk_rows: usize,
    next: Arc<AtomicUsize>,
}

impl SharedScan {
    fn pieces_of_a_chunk(&self) -> usize {
        CHUNK_ROWS.div_ceil(self.chunk_rows)
    }
}

impl Source for SharedScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Worker { scan: self.clone(), piece: 0, spares: Vec::new() }))
    }

    fn progress(&self) -> Option<f64> {
        let pieces = self.rows.chunks.len() * self.pieces_of_a_chunk();
        Some((self.next.load(Ordering::Relaxed) as f64 / pieces.max(1) as f64).min(1.0))
    }
}

struct Worker {
    scan: SharedScan,
    piece: usize,
    /// Buffers for positions that are used again.
    spares: Vec<Arc<Buffer>>,
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let scan = &self.scan;
        loop {
            self.piece = scan.next.fetch_add(1, Ordering::Relaxed);
            let (index, part) =
                (self.piece / scan.pieces_of_a_chunk(), self.piece % scan.pieces_of_a_chunk());
            let Some(ready) = scan.rows.chunks.get(index) else { return Ok(false) };
            let start = part * scan.chunk_rows;
            let end = ready.len().min(start + scan.chunk_rows);
            if start >= end {
                continue;
            }
            chunk.reset(ready.len());
            let group = chunk.push_group(Selection::ALL);
            for &column in scan.wanted.iter() {
                chunk.push_column(ready.vector(column).clone(), group);
            }
            if end - start < ready.len() {
                let picks: Vec<u16> = (start..end).map(|row| row as u16).collect();
                chunk.select(&picks, &mut self.spares);
            }
            return Ok(true);
        }
    }

    fn morsel(&self) -> u64 {
        self.piece as u64
    }
}
