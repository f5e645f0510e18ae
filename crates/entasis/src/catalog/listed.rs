//! A relation of a few rows, which are made when a statement is bound.

use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, DataType, Field, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A relation of these rows.
#[derive(Debug)]
struct Listed {
    name: String,
    schema: Schema,
    rows: Arc<[Vec<Value>]>,
}

/// The relation called `name` with the rows `rows`, each with a value for each of `columns`.
pub(crate) fn listed(name: &str, columns: &[(&str, DataType)], rows: Arc<[Vec<Value>]>) -> Arc<dyn Relation> {
    let schema = columns.iter().map(|&(name, ty)| Field::new(name, ty)).collect();
    Arc::new(Listed { name: name.to_owned(), schema, rows })
}

/// A text, as a value.
pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

impl Relation for Listed {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        Statistics { rows: Some(self.rows.len() as u64), columns: vec![] }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let columns = request.columns.iter().map(|&(_, column)| (column, self.schema[column].ty)).collect();
        let chunk_rows = context.settings.chunk_rows.max(1);
        Ok(Arc::new(Scan { rows: self.rows.clone(), columns, chunk_rows, next: Arc::default() }))
    }
}

#[derive(Clone)]
struct Scan {
    rows: Arc<[Vec<Value>]>,
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
            let values: Vec<Value> = rows.iter().map(|row| row[column].clone()).collect();
            chunk.push_column(Vector::of_values(ty, &values)?, all);
        }
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.chunk as u64
    }
}
