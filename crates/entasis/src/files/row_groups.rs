//! Row groups of a Parquet file being written: encoded in parallel, by the workers that produce the rows.
//!
//! 1. [`RowGroups::add`] takes batches in the order of the file and cuts them into row groups. The first of
//!    them says which columns are written without a dictionary ([`super::dictionaries`]).
//! 2. A complete row group is encoded and compressed without a lock, column by column ([`Encoder::encode`]),
//!    by the worker that takes it.
//! 3. [`RowGroups::append`] writes encoded row groups to the file in order; one that is early waits.

use super::dictionaries::repeats;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
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
    batches: Vec<RecordBatch>,
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
    /// The columns of `group`, encoded and compressed.
    ///
    /// # Errors
    /// Interrupted; those of the encoding.
    pub(super) fn encode(&self, group: &RowGroup, context: &QueryContext) -> Result<Vec<ArrowColumnChunk>> {
        let writers = self.factory.create_column_writers(group.number).map_err(|error| failed(&error))?;
        let encode = |(column, mut writer): (usize, parquet::arrow::arrow_writer::ArrowColumnWriter)| {
            for batch in &group.batches {
                context.check()?;
                // There are no nested types, so each column is one leaf.
                let leaves = compute_leaves(self.schema.field(column), batch.column(column));
                for leaf in leaves.map_err(|error| failed(&error))? {
                    writer.write(&leaf).map_err(|error| failed(&error))?;
                }
            }
            writer.close().map_err(|error| failed(&error))
        };
        writers.into_iter().enumerate().map(encode).collect()
    }
}
