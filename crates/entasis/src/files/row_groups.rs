//! Row groups of a Parquet file being written: encoded in parallel, by the workers that produce the rows.
//!
//! 1. [`RowGroups::add`] takes batches in the order of the file and cuts them into row groups. If a worker
//!    has encoded a row group itself, [`RowGroups::add_encoded`] takes it, in the order of the file as well.
//! 2. A complete row group is encoded and compressed without a lock, column by column ([`Encoder::encode`]),
//!    by the worker that takes it. The first one that is encoded says which columns are written without a
//!    dictionary ([`super::dictionaries`]).
//! 3. [`RowGroups::append`] writes encoded row groups to the file in order; one that is early waits.

use super::dictionaries::repeats;
use arrow_array::RecordBatch;
use arrow_schema::{DataType as ArrowType, SchemaRef};
use entasis_engine::exec::QueryContext;
use entasis_vector::{Error, Result};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// A Parquet file that is being written.
pub(super) struct RowGroups {
    target: Target,
    schema: SchemaRef,
    most_rows: usize,
    /// Rows that do not fill a row group yet.
    open: Vec<RecordBatch>,
    open_rows: usize,
    complete: VecDeque<RowGroup>,
    /// Number of completed row groups.
    completed: usize,
    encoded: BTreeMap<usize, Vec<ArrowColumnChunk>>,
    /// Number of row groups in the file.
    appended: usize,
}

/// The file: empty until the first row group is known.
enum Target {
    Empty(File, WriterPropertiesBuilder),
    Open(SerializedFileWriter<File>, Encoder),
    /// It could not be opened.
    Failed,
}

/// The rows of one row group.
pub(super) struct RowGroup {
    /// Its number in the file.
    pub number: usize,
    pub batches: Vec<RecordBatch>,
}

/// Encodes rows as bytes of a file. Cheap to clone.
#[derive(Clone)]
pub(super) struct Encoder {
    factory: Arc<ArrowRowGroupWriterFactory>,
    schema: SchemaRef,
}

fn failed(error: &ParquetError) -> Error {
    Error::io("Parquet", &std::io::Error::other(error.to_string()))
}

impl RowGroups {
    /// A file with row groups of `most_rows` rows; the last one has the remainder.
    ///
    /// # Errors
    /// Not supported, if Parquet cannot represent a type.
    pub(super) fn new(
        file: File,
        schema: SchemaRef,
        properties: WriterPropertiesBuilder,
        most_rows: usize,
    ) -> Result<RowGroups> {
        ArrowSchemaConverter::new().convert(&schema).map_err(|error| failed(&error))?;
        Ok(RowGroups {
            target: Target::Empty(file, properties),
            schema,
            most_rows,
            open: Vec::new(),
            open_rows: 0,
            complete: VecDeque::new(),
            completed: 0,
            encoded: BTreeMap::new(),
            appended: 0,
        })
    }

    /// Begins the file, whose first row group is `first`.
    fn begin(&mut self, first: &[RecordBatch]) -> Result<()> {
        let Target::Empty(file, mut properties) = std::mem::replace(&mut self.target, Target::Failed) else {
            return Err(Error::internal("a Parquet file was begun before"));
        };
        let rows = first.iter().map(RecordBatch::num_rows).sum();
        for (index, field) in self.schema.fields().iter().enumerate() {
            if first.first().is_some_and(|batch| !repeats(batch.column(index), rows)) {
                let column = ColumnPath::new(vec![field.name().clone()]);
                properties = properties.set_column_dictionary_enabled(column, false);
            }
        }
        let writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties.build()));
        let (file, factory) =
            writer.and_then(ArrowWriter::into_serialized_writer).map_err(|error| failed(&error))?;
        self.target = Target::Open(file, Encoder { factory: Arc::new(factory), schema: self.schema.clone() });
        Ok(())
    }

    /// The encoder of the file's row groups, of which `group` is perhaps the first.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn encoder(&mut self, group: &[RecordBatch]) -> Result<Encoder> {
        if let Target::Empty(..) = self.target {
            self.begin(group)?;
        }
        match &self.target {
            Target::Open(_, encoder) => Ok(encoder.clone()),
            _ => Err(Error::internal("a row group for a file that was not begun")),
        }
    }

    /// Takes the next row group of the file, encoded.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn add_encoded(&mut self, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        if self.open_rows > 0 {
            self.complete()?;
        }
        let number = self.completed;
        self.completed += 1;
        self.append(number, columns)
    }

    /// Takes the next rows of the file.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn add(&mut self, mut batch: RecordBatch) -> Result<()> {
        while self.open_rows + batch.num_rows() >= self.most_rows {
            let fits = self.most_rows - self.open_rows;
            self.open.push(batch.slice(0, fits));
            batch = batch.slice(fits, batch.num_rows() - fits);
            self.complete()?;
        }
        if batch.num_rows() > 0 {
            self.open_rows += batch.num_rows();
            self.open.push(batch);
        }
        Ok(())
    }

    /// Makes a row group of the remaining rows.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn complete(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.open);
        self.open_rows = 0;
        if let Target::Empty(..) = self.target {
            self.begin(&batches)?;
        }
        if !batches.is_empty() {
            self.complete.push_back(RowGroup { number: self.completed, batches });
            self.completed += 1;
        }
        Ok(())
    }

    /// A row group that no worker has taken yet, and its encoder.
    pub(super) fn take(&mut self) -> Option<(RowGroup, Encoder)> {
        let Target::Open(_, encoder) = &self.target else { return None };
        Some((self.complete.pop_front()?, encoder.clone()))
    }

    /// Writes an encoded row group to the file, once those before it are there.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn append(&mut self, number: usize, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        let Target::Open(file, _) = &mut self.target else {
            return Err(Error::internal("a row group for a file that was not begun"));
        };
        self.encoded.insert(number, columns);
        while let Some(columns) = self.encoded.remove(&self.appended) {
            let mut out = file.next_row_group().map_err(|error| failed(&error))?;
            for column in columns {
                column.append_to_row_group(&mut out).map_err(|error| failed(&error))?;
            }
            out.close().map_err(|error| failed(&error))?;
            self.appended += 1;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// I/O; internal, if a row group is missing.
    pub(super) fn finish(self) -> Result<()> {
        if self.appended < self.completed || !self.open.is_empty() {
            return Err(Error::internal("a row group was not encoded"));
        }
        match self.target {
            Target::Open(file, _) => file.close().map(|_| ()).map_err(|error| failed(&error)),
            _ => Err(Error::internal("the file was not begun")),
        }
    }
}

impl Encoder {
    /// The columns of a row group of `batches`, encoded and compressed.
    ///
    /// # Errors
    /// Interrupted; those of the encoding.
    pub(super) fn encode(
        &self,
        batches: &[RecordBatch],
        context: &QueryContext,
    ) -> Result<Vec<ArrowColumnChunk>> {
        // The number of the row group is of use only to encryption.
        let mut writers = self.factory.create_column_writers(0).map_err(|error| failed(&error))?.into_iter();
        let mut chunks = Vec::with_capacity(writers.len());
        for (column, field) in self.schema.fields().iter().enumerate() {
            let mut own: Vec<_> = writers.by_ref().take(leaves_of(field.data_type())).collect();
            for batch in batches {
                context.check()?;
                let leaves = compute_leaves(field, batch.column(column)).map_err(|error| failed(&error))?;
                for (writer, leaf) in own.iter_mut().zip(&leaves) {
                    writer.write(leaf).map_err(|error| failed(&error))?;
                }
            }
            for writer in own {
                chunks.push(writer.close().map_err(|error| failed(&error))?);
            }
        }
        Ok(chunks)
    }
}

/// The number of columns that a file has for one of a type: for each field of a struct its own.
fn leaves_of(ty: &ArrowType) -> usize {
    match ty {
        ArrowType::List(element) => leaves_of(element.data_type()),
        ArrowType::Struct(fields) => fields.iter().map(|field| leaves_of(field.data_type())).sum(),
        _ => 1,
    }
}

/// Removes the first `rows` rows of `batches`, which have as many, and returns them.
pub(super) fn split(batches: &mut Vec<RecordBatch>, rows: usize) -> Vec<RecordBatch> {
    let (mut first, mut missing) = (Vec::new(), rows);
    let mut rest = std::mem::take(batches).into_iter();
    while missing > 0
        && let Some(batch) = rest.next()
    {
        let fits = missing.min(batch.num_rows());
        if fits < batch.num_rows() {
            batches.push(batch.slice(fits, batch.num_rows() - fits));
        }
        first.push(batch.slice(0, fits));
        missing -= fits;
    }
    batches.extend(rest);
    first
}
