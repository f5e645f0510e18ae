//! Results: rows in memory, read as chunks, as values, or as Arrow batches.

use arrow_array::RecordBatch;
use entasis_engine::exec::operator::Tasks;
use entasis_engine::exec::scheduler::PoolTasks;
use entasis_engine::exec::{
    CancelFlag, Collector, MemoryBudget, Overdrawn, QueryContext, Reservation, ResultSet, ResultSink,
};
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Error, Field, Result, Schema, Selection, Value, Vector};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Number of chunks in an Arrow batch.
const BATCH_CHUNKS: usize = 64;

/// The result of a statement. Its memory counts against the database's limit until it is dropped.
pub struct Rows {
    schema: Arc<Schema>,
    set: OnceLock<ResultSet>,
    /// The only row, of a statement that named it by its key; chunks are made from it when they are read. If
    /// there are neither chunks nor a row, the result is empty.
    row: Option<Vec<Value>>,
    changed: Option<u64>,
    note: Option<Cow<'static, str>>,
    /// Settings and workers of the database; `None` for single rows.
    context: Option<QueryContext>,
}

impl Rows {
    /// No rows and no columns: the result of a statement that returns none.
    pub(crate) fn empty() -> Rows {
        let (schema, set) = (Arc::default(), OnceLock::new());
        Rows { schema, set, row: None, changed: None, note: None, context: None }
    }

    /// Rows of `set`; the workers of `context` convert them to Arrow.
    pub(crate) fn new(schema: Schema, set: ResultSet, context: QueryContext) -> Rows {
        // Interrupting a later statement does not affect these rows.
        let context =
            QueryContext { cancel: CancelFlag::default(), overdrawn: Overdrawn::default(), ..context };
        Rows {
            schema: schema.into(),
            set: set.into(),
            row: None,
            changed: None,
            note: None,
            context: Some(context),
        }
    }

    /// No rows, but a count of the rows that the statement changed.
    pub(crate) fn changed_rows(count: u64) -> Rows {
        Rows { changed: Some(count), ..Rows::empty() }
    }

    /// The same rows, with a note for the user.
    pub(crate) fn with_note(self, note: Option<impl Into<Cow<'static, str>>>) -> Rows {
        Rows { note: note.map(Into::into), ..self }
    }

    /// The same rows, with a count of the rows that the statement changed.
    pub(crate) fn with_changed(self, count: u64) -> Rows {
        Rows { changed: Some(count), ..self }
    }

    /// The columns from `first` on of the rows at `places` (chunk, row in it): what `RETURNING` returns for a
    /// statement that changed `count` rows. They are copied, since these rows may be many more.
    ///
    /// # Errors
    /// Resource, if there is not enough memory; interrupted.
    pub(crate) fn part(
        &self,
        first: usize,
        schema: Schema,
        places: &[(usize, usize)],
        count: u64,
        context: QueryContext,
    ) -> Result<Rows> {
        let collector = Collector::new(&context, schema.iter().map(|field| field.ty).collect());
        let mut copier = collector.worker()?;
        for run in places.chunk_by(|one, next| one.0 == next.0) {
            let (from, picks) = (&self.chunks()[run[0].0], run.iter().map(|(_, row)| *row as u16));
            let mut part = Chunk::new();
            part.reset(run.len());
            let group = part.push_group(Selection::from_indices(&picks.collect::<Vec<_>>()));
            (0..schema.len()).for_each(|at| part.push_column(from.vector(first + at).clone(), group));
            copier.push(&part)?;
        }
        copier.finish()?;
        drop(copier);
        Ok(Rows::new(schema, collector.into_chunks(), context).with_changed(count))
    }

    /// Rows from single values of the columns' types, for statements about the database.
    pub(crate) fn from_values(columns: &[(&str, DataType)], rows: &[Vec<Value>]) -> Result<Rows> {
        Rows::of_schema(schema_of(columns), rows)
    }

    /// Rows from single values of the columns' types.
    pub(crate) fn of_schema(schema: Schema, rows: &[Vec<Value>]) -> Result<Rows> {
        let types: Vec<DataType> = schema.iter().map(|field| field.ty).collect();
        let chunks = chunks_of(&types, rows)?;
        let set = ResultSet { types, chunks, rows: rows.len(), memory: vec![] };
        Ok(Rows {
            schema: schema.into(),
            set: set.into(),
            row: None,
            changed: None,
            note: None,
            context: None,
        })
    }

    /// The only row of a result.
    pub(crate) fn of_row(schema: Arc<Schema>, row: Vec<Value>) -> Rows {
        Rows { schema, set: OnceLock::new(), row: Some(row), changed: None, note: None, context: None }
    }

    /// Names and types of the columns; empty for statements without a result.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        if self.row.is_some() { 1 } else { self.set().rows as u64 }
    }

    /// A note besides the result, such as that an option has no effect. The shell prints it, Python warns.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Number of rows inserted, changed or copied, for statements that do this.
    pub fn changed(&self) -> Option<u64> {
        self.changed
    }

    /// The rows, as dense chunks of flat vectors.
    pub fn chunks(&self) -> &[Chunk] {
        &self.set().chunks
    }

    /// Names and types of the columns, shared.
    pub(crate) fn shared_schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The row, if the statement named it by its key; other results are in [`Rows::chunks`].
    pub fn single_row(&self) -> Option<&[Value]> {
        self.row.as_deref()
    }

    fn set(&self) -> &ResultSet {
        self.set.get_or_init(|| {
            let types: Vec<DataType> = self.schema.iter().map(|field| field.ty).collect();
            let rows = self.row.as_slice();
            let chunks = chunks_of(&types, rows).expect("single rows are of the types that tables hold");
            ResultSet { types, chunks, rows: rows.len(), memory: vec![] }
        })
    }

    /// The rows in order, as values.
    pub fn row_values(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        let chunks = if self.row.is_some() { &[] } else { self.chunks() };
        let of_chunks = chunks.iter().flat_map(move |chunk| {
            (0..chunk.len()).map(move |row| {
                self.schema
                    .iter()
                    .enumerate()
                    .map(|(column, field)| chunk.value(row, column, field.ty))
                    .collect()
            })
        });
        self.row.iter().cloned().chain(of_chunks)
    }

    /// The columns as an Arrow schema.
    pub fn arrow_schema(&self) -> arrow_schema::SchemaRef {
        Arc::new(entasis_arrow::schema_to_arrow(&self.schema))
    }

    /// The rows as Arrow batches of up to 131,072 rows, converted by all workers. Their memory counts until
    /// they are all there; then it is the caller's.
    ///
    /// # Errors
    /// Input, if a value cannot be represented in Arrow; resource, if there is not enough memory.
    pub fn record_batches(&self) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        let types: Vec<DataType> = self.schema.iter().map(|field| field.ty).collect();
        let parts: Vec<&[Chunk]> = self.chunks().chunks(BATCH_CHUNKS).collect();
        let slots: Vec<OnceLock<RecordBatch>> = parts.iter().map(|_| OnceLock::new()).collect();
        let context = self.context.clone().unwrap_or_default();
        let memory = MemoryBudget::part_of(&context.memory, "a result in Arrow's format");
        let memory = Mutex::new(Reservation::new(&memory));
        let count = |bytes: usize| {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let all = memory.bytes() + bytes;
            memory.resize(all)
        };
        PoolTasks(&context).run(parts.len(), &|part| {
            let chunks = parts[part].iter();
            let batches: Vec<RecordBatch> = chunks
                .map(|chunk| entasis_arrow::chunk_to_batch(chunk, &schema, &types))
                .collect::<Result<_>>()?;
            let batch = match &batches[..] {
                [batch] => batch.clone(),
                batches => arrow_select::concat::concat_batches(&schema, batches)
                    .map_err(entasis_arrow::arrow_error)?,
            };
            count(batch.get_array_memory_size())?;
            slots[part].set(batch).map_err(|_| Error::internal("a batch was made twice"))
        })?;
        Ok(slots.into_iter().filter_map(OnceLock::into_inner).collect())
    }
}

/// Columns of these names and types, any of which may be NULL.
pub(crate) fn schema_of(columns: &[(&str, DataType)]) -> Schema {
    columns.iter().map(|(name, ty)| Field::new(*name, *ty)).collect()
}

/// Chunks made from rows of single values.
fn chunks_of(types: &[DataType], rows: &[Vec<Value>]) -> Result<Vec<Chunk>> {
    let mut chunks = vec![];
    for part in rows.chunks(CHUNK_ROWS) {
        let mut chunk = Chunk::new();
        chunk.reset(part.len());
        let group = chunk.push_group(Selection::ALL);
        for (column, ty) in types.iter().enumerate() {
            let values: Vec<Value> = part.iter().map(|row| row[column].clone()).collect();
            chunk.push_column(Vector::of_values(*ty, &values)?, group);
        }
        chunks.push(chunk);
    }
    Ok(chunks)
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rows({} of {} columns)", self.rows(), self.schema.len())
    }
}
