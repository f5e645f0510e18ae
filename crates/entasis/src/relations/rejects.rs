//! `reject_errors`: the rows that scans of this connection have left out with `store_rejects`, as a relation. Its rows are
//! those at the start of a scan.

use crate::files::csv::{Reject, Rejects};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, DataType, Field, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the relation is called.
pub(crate) const NAME: &str = "reject_errors";

#[derive(Debug)]
struct RejectErrors {
    rejects: Arc<Rejects>,
    schema: Schema,
}

/// The relation.
pub(crate) fn reject_errors(rejects: Arc<Rejects>) -> Arc<dyn Relation> {
    let columns = [
        ("scan_id", DataType::Int64),
        ("file", DataType::Varchar),
        ("line", DataType::Int64),
        ("column_name", DataType::Varchar),
        ("error_type", DataType::Varchar),
        ("csv_line", DataType::Varchar),
        ("error_message", DataType::Varchar),
    ];
    let schema = columns.into_iter().map(|(name, ty)| Field::new(name, ty)).collect();
    Arc::new(RejectErrors { rejects, schema })
}

/// The value of a column.
fn value(reject: &Reject, column: usize) -> Value {
    let text = |text: &str| Value::Text(text.into());
    match column {
        0 => Value::Integer(reject.scan.into()),
        1 => text(&reject.file),
        2 => Value::Integer(reject.line as i128),
        3 => reject.column.as_deref().map_or(Value::Null, text),
        4 => text(reject.kind.name()),
        5 => text(&reject.text),
        _ => text(&reject.message),
    }
}

impl Relation for RejectErrors {
    fn name(&self) -> &str {
        NAME
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let columns = request.columns.iter().map(|&(_, column)| (column, self.schema[column].ty)).collect();
        let chunk_rows = context.settings.chunk_rows.max(1);
        Ok(Arc::new(Scan { rows: self.rejects.all().into(), columns, chunk_rows, next: Arc::default() }))
    }
}

#[derive(Clone)]
struct Scan {
    rows: Arc<[Reject]>,
    columns: Arc<[(usize, DataType)]>,
    chunk_rows: usize,
    /// The next chunk.
    next: Arc<AtomicUsize>,
}

impl Source for Scan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(Worker { scan: self.clone(), chunk: 0 }))
    }
}

struct Worker {
    scan: Scan,
    chunk: usize,
}

impl SourceWorker for Worker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let Scan { rows, columns, chunk_rows, next } = &self.scan;
        self.chunk = next.fetch_add(1, Ordering::Relaxed);
        let Some(rows) = rows.chunks(*chunk_rows).nth(self.chunk) else { return Ok(false) };
        chunk.reset(rows.len());
        let all = chunk.push_group(Selection::ALL);
        for &(column, ty) in &**columns {
            let values: Vec<Value> = rows.iter().map(|reject| value(reject, column)).collect();
            chunk.push_column(Vector::from_values(ty.physical(), &values)?, all);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.chunk as u64
    }
}
