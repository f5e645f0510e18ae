//! Row groups of a Parquet file being written: encoded in parallel, by the workers that produce the rows.
//!
//! 1. [`RowGroups::add`] takes batches in the order of the file and cuts them into row groups.
//! 2. A complete row group is encoded and compressed without a lock, column by column ([`Encoder::encode`]),
//!    by the worker that takes it.
//! 3. [`RowGroups::append`] writes encoded row groups to the file in order; one that is early waits.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use entasis_engine::exec::QueryContext;
use entasis_vector::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// A Parquet file that is being written.
pub(super) struct RowGroups {
    file: SerializedFileWriter<File>,
    encoder: Encoder,
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
    /// Not supported, if Parquet cannot represent a type; I/O.
    pub(super) fn new(
        file: File,
        schema: SchemaRef,
        properties: WriterProperties,
        most_rows: usize,
    ) -> Result<RowGroups> {
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
        let (file, factory) =
            writer.and_then(ArrowWriter::into_serialized_writer).map_err(|error| failed(&error))?;
        Ok(RowGroups {
            file,
            encoder: Encoder { factory: Arc::new(factory), schema },
            most_rows,
            open: Vec::new(),
            open_rows: 0,
            complete: VecDeque::new(),
            completed: 0,
            encoded: BTreeMap::new(),
            appended: 0,
        })
    }

    /// The encoder of this file's row groups.
    pub(super) fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Takes the next rows of the file.
    pub(super) fn add(&mut self, mut batch: RecordBatch) {
        while self.open_rows + batch.num_rows() >= self.most_rows {
            let fits = self.most_rows - self.open_rows;
            self.open.push(batch.slice(0, fits));
            batch = batch.slice(fits, batch.num_rows() - fits);
            self.complete();
        }
        if batch.num_rows() > 0 {
            self.open_rows += batch.num_rows();
            self.open.push(batch);
        }
    }

    /// Makes a row group of the remaining rows.
    pub(super) fn complete(&mut self) {
        if !self.open.is_empty() {
            let batches = std::mem::take(&mut self.open);
            self.open_rows = 0;
            self.complete.push_back(RowGroup { number: self.completed, batches });
            self.completed += 1;
        }
    }

    /// A row group that no worker has taken yet.
    pub(super) fn take(&mut self) -> Option<RowGroup> {
        self.complete.pop_front()
    }

    /// Writes an encoded row group to the file, once those before it are there.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn append(&mut self, number: usize, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        self.encoded.insert(number, columns);
        while let Some(columns) = self.encoded.remove(&self.appended) {
            let mut out = self.file.next_row_group().map_err(|error| failed(&error))?;
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
        self.file.close().map(|_| ()).map_err(|error| failed(&error))
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
