//! Arrow batches of the host program as a relation: a pandas, polars or pyarrow object queried by name.
//!
//! A morsel is a batch; batches are cut into chunks and converted as they are read. The batches themselves
//! are not copied.

use arrow_array::RecordBatch;
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_vector::{Chunk, DataType, Error, Field, PhysicalType, Result, Schema, Selection, Vector};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The columns of a relation over Arrow data of this schema, and for each the reason why it cannot be read,
/// if any. Such a column is an error only in a query that reads it. A column of type Null becomes an INTEGER,
/// as in a table that is created from a query.
fn columns(schema: &arrow_schema::Schema) -> (Schema, Vec<Option<Error>>) {
    let column = |field: &Arc<arrow_schema::Field>| {
        let (ty, problem) = match entasis_arrow::from_arrow_field(field) {
            Ok(DataType::Null) => (DataType::Int32, None),
            Ok(ty) => (ty, None),
            Err(error) => {
                let text = format!("{} (column {})", error.message(), field.name());
                (DataType::Varchar, Some(Error::new(error.kind(), text)))
            }
        };
        let nullable = field.is_nullable() || problem.is_some();
        (Field { nullable, ..Field::new(field.name().as_str(), ty) }, problem)
    };
    schema.fields().iter().map(column).unzip()
}

/// The columns that [`arrow_relation`] has over Arrow data of this schema.
pub fn arrow_relation_schema(schema: &arrow_schema::Schema) -> Schema {
    columns(schema).0
}

/// A relation called `name` over `batches`, which all have `schema`. A column of a type that Entasis does not
/// support is an error only in a query that reads it.
pub fn arrow_relation(
    name: &str,
    schema: &arrow_schema::Schema,
    batches: Vec<RecordBatch>,
) -> Arc<dyn Relation> {
    let (schema, problems) = columns(schema);
    Arc::new(ArrowRelation { name: name.to_string(), schema, problems, batches: batches.into() })
}

#[derive(Debug)]
struct ArrowRelation {
    name: String,
    schema: Schema,
    /// For each column, why it cannot be read.
    problems: Vec<Option<Error>>,
    batches: Arc<[RecordBatch]>,
}

impl Relation for ArrowRelation {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn statistics(&self) -> Statistics {
        let rows = self.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Statistics { rows: Some(rows), columns: vec![] }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        if let Some(problem) = request.columns.iter().find_map(|&(_, index)| self.problems[index].clone()) {
            return Err(problem.with_context(&self.name));
        }
        let columns = request.columns.iter().map(|&(_, index)| (index, self.schema[index].ty)).collect();
        let chunk_rows = context.settings.chunk_rows;
        Ok(Arc::new(ArrowScan { batches: self.batches.clone(), next: Arc::default(), columns, chunk_rows }))
    }
}

#[derive(Clone)]
struct ArrowScan {
    batches: Arc<[RecordBatch]>,
    next: Arc<AtomicU64>,
    columns: Arc<[(usize, DataType)]>,
    chunk_rows: usize,
}

impl Source for ArrowScan {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        let vectors = self.columns.iter().map(|(_, ty)| Vector::new(ty.physical())).collect();
        Ok(Box::new(ArrowWorker { scan: self.clone(), batch: None, at: 0, vectors }))
    }

    fn progress(&self) -> Option<f64> {
        let taken = self.next.load(Ordering::Relaxed).min(self.batches.len() as u64);
        Some(taken as f64 / self.batches.len().max(1) as f64)
    }
}

struct ArrowWorker {
    scan: ArrowScan,
    batch: Option<u64>,
    at: usize,
    vectors: Vec<Vector>,
}

impl SourceWorker for ArrowWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let batch = loop {
            let current = self.batch.and_then(|batch| self.scan.batches.get(batch as usize));
            match current {
                Some(batch) if self.at < batch.num_rows() => break batch,
                None if self.batch.is_some() => return Ok(false),
                _ => {
                    self.batch = Some(self.scan.next.fetch_add(1, Ordering::Relaxed));
                    self.at = 0;
                }
            }
        };
        let rows = (batch.num_rows() - self.at).min(self.scan.chunk_rows);
        chunk.reset(rows);
        let group = chunk.push_group(Selection::ALL);
        for (vector, &(index, ty)) in self.vectors.iter_mut().zip(self.scan.columns.iter()) {
            read_array(batch, index, self.at, rows, ty, vector)?;
            chunk.push_column(vector.clone(), group);
        }
        self.at += rows;
        Ok(true)
    }

    fn morsel(&self) -> u64 {
        self.batch.unwrap_or(0)
    }
}

/// Converts `rows` rows of column `index` from `start` on; the vector's memory is reused.
fn read_array(
    batch: &RecordBatch,
    index: usize,
    start: usize,
    rows: usize,
    ty: DataType,
    out: &mut Vector,
) -> Result<()> {
    debug_assert!(out.physical() == ty.physical() || ty.physical() == PhysicalType::Str);
    entasis_arrow::array_to_vector(batch.column(index).as_ref(), start, rows, ty, out)
        .map_err(|error| error.with_context(format!("column '{}'", batch.schema_ref().field(index).name())))
}
