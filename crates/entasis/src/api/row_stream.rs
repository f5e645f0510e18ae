//! A stream read by rows, or by Arrow batches.

use crate::api::stream::Stream;
use crate::values::row::{ChunkRows, Row};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use entasis_vector::{Field, Result};
use std::fmt;
use std::sync::Arc;

/// The rows of a statement, which are read while it runs. Dropping it cancels the query.
///
/// ```
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let mut rows = connection.stream("SELECT n FROM range(1000000) AS numbers(n)", &[])?.into_rows();
/// while let Some(row) = rows.next_row()? {
///     if row.get::<i64>("n")? == 5 {
///         break;
///     }
/// }
/// drop(rows);
/// assert_eq!(connection.query_row_as::<i64>("SELECT 1", ())?, 1);
/// # Ok::<(), entasis::Error>(())
/// ```
pub struct RowStream {
    stream: Stream,
    chunk: Option<ChunkRows>,
}

/// The Arrow batches of a statement, which are read while it runs: a [`RecordBatchReader`], as writers of
/// files and other libraries take it. Dropping it cancels the query.
///
/// ```
/// use arrow_array::RecordBatchReader;
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// let batches = connection.stream("SELECT n, 'x' AS x FROM range(10000) AS numbers(n)", &[])?.into_batches();
/// assert_eq!(batches.schema().field(1).name(), "x");
/// let rows: usize = batches.map(|batch| batch.map_or(0, |batch| batch.num_rows())).sum();
/// assert_eq!(rows, 10_000);
/// # Ok::<(), entasis::Error>(())
/// ```
pub struct BatchStream {
    stream: Stream,
    schema: SchemaRef,
}

impl Stream {
    /// The same, read by rows.
    pub fn into_rows(self) -> RowStream {
        RowStream { stream: self, chunk: None }
    }

    /// The same, read by Arrow batches.
    pub fn into_batches(self) -> BatchStream {
        let schema = self.arrow_schema();
        BatchStream { stream: self, schema }
    }
}

impl RowStream {
    /// Names and types of the columns; none, for statements without a result.
    pub fn columns(&self) -> &[Field] {
        self.stream.schema()
    }

    /// The next row; waits until there is one. `None` at the end, and after an error.
    ///
    /// # Errors
    /// Those of the query, after the rows that come before them.
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.chunk.as_mut().and_then(ChunkRows::next) {
                return Ok(Some(row));
            }
            let Some(chunk) = self.stream.next_chunk()? else { return Ok(None) };
            self.chunk = Some(ChunkRows::new(self.stream.shared_schema(), chunk));
        }
    }
}

impl Iterator for RowStream {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.next_row().transpose()
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        self.stream.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowStream over {:?}", self.stream)
    }
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchStream over {:?}", self.stream)
    }
}
