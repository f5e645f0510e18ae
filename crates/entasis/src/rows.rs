//! Results: rows in memory, as chunks, as values or as Arrow.

use arrow_array::RecordBatch;
use entasis_engine::exec::ResultSet;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, Result, Schema, Selection, Value, Vector};
use std::sync::Arc;

/// The result of a statement. Its memory counts against the database's limit until it is dropped.
#[derive(Debug)]
pub struct Rows {
    schema: Schema,
    set: ResultSet,
    changed: Option<u64>,
}

impl Rows {
    /// No rows of no columns: what a statement without a result gives.
    pub(crate) fn empty() -> Rows {
        let set = ResultSet { types: vec![], chunks: vec![], rows: 0, memory: vec![] };
        Rows { schema: Schema::new(), set, changed: None }
    }

    pub(crate) fn new(schema: Schema, set: ResultSet) -> Rows {
        Rows { schema, set, changed: None }
    }

    /// No rows, but a count of the rows that the statement changed.
    pub(crate) fn changed_rows(count: u64) -> Rows {
        Rows { changed: Some(count), ..Rows::empty() }
    }

    /// Rows from single values, all of the columns' types; for statements about the database.
    pub(crate) fn from_values(columns: &[(&str, DataType)], rows: &[Vec<Value>]) -> Result<Rows> {
        let schema = columns.iter().map(|(name, ty)| Field::new(*name, *ty)).collect();
        let types: Vec<DataType> = columns.iter().map(|(_, ty)| *ty).collect();
        let mut chunks = vec![];
        for part in rows.chunks(CHUNK_ROWS) {
            let mut chunk = Chunk::new();
            chunk.reset(part.len());
            let group = chunk.push_group(Selection::ALL);
            for (column, ty) in types.iter().enumerate() {
                let values: Vec<Value> = part.iter().map(|row| row[column].clone()).collect();
                chunk.push_column(Vector::from_values(ty.physical(), &values)?, group);
            }
            chunks.push(chunk);
        }
        Ok(Rows::new(schema, ResultSet { types, chunks, rows: rows.len(), memory: vec![] }))
    }

    /// Names and types of the columns; empty for statements without a result.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.set.rows as u64
    }

    /// Rows inserted or copied, for statements that do.
    pub fn changed(&self) -> Option<u64> {
        self.changed
    }

    /// The rows: dense chunks of flat vectors.
    pub fn chunks(&self) -> &[Chunk] {
        &self.set.chunks
    }

    /// The rows, one after the other, as values.
    pub fn row_values(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        self.set.chunks.iter().flat_map(move |chunk| {
            (0..chunk.len()).map(move |row| {
                self.schema.iter().enumerate().map(|(column, field)| chunk.value(row, column, field.ty)).collect()
            })
        })
    }

    /// The columns as an Arrow schema.
    pub fn arrow_schema(&self) -> arrow_schema::SchemaRef {
        Arc::new(entasis_arrow::schema_to_arrow(&self.schema))
    }

    /// The rows as Arrow batches, one a chunk.
    ///
    /// # Errors
    /// Input, if a value has no place in Arrow.
    pub fn record_batches(&self) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        let types: Vec<DataType> = self.schema.iter().map(|field| field.ty).collect();
        self.set.chunks.iter().map(|chunk| entasis_arrow::chunk_to_batch(chunk, &schema, &types)).collect()
    }
}
