//! Row groups of a Parquet file being written: encoded in parallel, by the workers that produce the rows.
//!
//! 1. [`RowGroups::add`] takes batches in the order of the file and cuts them into row groups. If a worker
//!    has encoded a row group itself, [`RowGroups::add_encoded`] takes it, in the order of the file as well.
//! 2. A complete row group is encoded and compressed without a lock, column by column ([`Encoder::encode`]),
//!    by the worker that takes it. The first one that is encoded says which columns are written without a
//!    dictionary ([`super::dictionaries`]).
//! 3. [`RowGroups::append`] writes encoded row groups to the file in order; one that is early waits.
//!
//! A row group is complete when it has as many rows as it should, or as many bytes as it may. Rows, pages
//! that are being made and encoded row groups are reserved as long as they are there.

use super::compression::PageCompression;
use super::dictionaries::repeats;
use crate::copy::Batch;
use crate::target::TargetFile;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use entasis_engine::exec::{MemoryBudget, QueryContext, Reservation};
use entasis_vector::{Error, Result};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Copies of the values of a page that the library makes: the page, and the page compressed, with room.
const PAGE_COPIES: usize = 3;
/// Bytes of a column's values, on average, from which on their least and greatest are not recorded: the
/// library copies them several times, and only their first bytes go to the file.
const NO_BOUNDS: usize = 16 << 10;

/// A row group as bytes of the file, and the memory that it takes.
pub(crate) struct Encoded {
    columns: Vec<ArrowColumnChunk>,
    memory: Reservation,
}

impl Encoded {
    /// Bytes of it.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}

/// A Parquet file that is being written.
pub(crate) struct RowGroups {
    target: Target,
    schema: SchemaRef,
    most_rows: usize,
    most_bytes: usize,
    /// Rows that do not fill a row group yet.
    open: Vec<Batch>,
    open_rows: usize,
    open_bytes: usize,
    complete: VecDeque<RowGroup>,
    /// Number of completed row groups.
    completed: usize,
    encoded: BTreeMap<usize, Encoded>,
    /// Number of row groups in the file.
    appended: usize,
}

/// The file: empty until the first row group is known.
enum Target {
    Empty(TargetFile, WriterPropertiesBuilder),
    Open(SerializedFileWriter<TargetFile>, Encoder),
    /// It could not be opened.
    Failed,
}

/// The rows of one row group.
pub(crate) struct RowGroup {
    /// Its number in the file.
    pub number: usize,
    pub batches: Vec<Batch>,
}

/// Encodes rows as bytes of a file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Encoder {
    factory: Arc<ArrowRowGroupWriterFactory>,
    schema: SchemaRef,
}

fn failed(error: &ParquetError) -> Error {
    Error::io("Parquet", &std::io::Error::other(error.to_string()))
}

impl RowGroups {
    /// A file with row groups of `most_rows` rows, or of fewer, if they have `most_bytes`; the last one has
    /// the remainder.
    ///
    /// # Errors
    /// Not supported, if Parquet cannot represent a type.
    pub(crate) fn new(
        file: TargetFile,
        schema: SchemaRef,
        compression: PageCompression,
        (most_rows, most_bytes): (usize, usize),
    ) -> Result<RowGroups> {
        ArrowSchemaConverter::new().convert(&schema).map_err(|error| failed(&error))?;
        let properties = WriterProperties::builder().set_compression(compression.0);
        Ok(RowGroups {
            target: Target::Empty(file, properties),
            schema,
            most_rows,
            most_bytes,
            open: Vec::new(),
            open_rows: 0,
            open_bytes: 0,
            complete: VecDeque::new(),
            completed: 0,
            encoded: BTreeMap::new(),
            appended: 0,
        })
    }

    /// Begins the file, whose first row group is `first`.
    fn begin(&mut self, first: &[Batch]) -> Result<()> {
        let Target::Empty(file, mut properties) = std::mem::replace(&mut self.target, Target::Failed) else {
            return Err(Error::internal("a Parquet file was begun before"));
        };
        let rows = first.iter().map(Batch::rows).sum();
        for (index, field) in self.schema.fields().iter().enumerate() {
            let column = || ColumnPath::new(vec![field.name().clone()]);
            if first.first().is_some_and(|batch| !repeats(batch.column(index), rows)) {
                properties = properties.set_column_dictionary_enabled(column(), false);
            }
            let bytes: usize = first.iter().map(|batch| values_bytes(batch.column(index))).sum();
            if bytes / rows.max(1) >= NO_BOUNDS {
                properties = properties.set_column_statistics_enabled(column(), EnabledStatistics::None);
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
    pub(crate) fn encoder(&mut self, group: &[Batch]) -> Result<Encoder> {
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
    pub(crate) fn add_encoded(&mut self, group: Encoded) -> Result<()> {
        if self.open_rows > 0 {
            self.complete()?;
        }
        let number = self.completed;
        self.completed += 1;
        self.append(number, group)
    }

    /// Takes the next rows of the file.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn add(&mut self, mut batch: Batch) -> Result<()> {
        while self.open_rows + batch.rows() >= self.most_rows {
            let fits = self.most_rows - self.open_rows;
            self.open.push(batch.slice(0, fits));
            batch = batch.slice(fits, batch.rows() - fits);
            self.complete()?;
        }
        if batch.rows() > 0 {
            self.open_rows += batch.rows();
            self.open_bytes += batch.bytes();
            self.open.push(batch);
        }
        if self.open_bytes >= self.most_bytes { self.complete() } else { Ok(()) }
    }

    /// Makes a row group of the remaining rows.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn complete(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.open);
        (self.open_rows, self.open_bytes) = (0, 0);
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
    pub(crate) fn take(&mut self) -> Option<(RowGroup, Encoder)> {
        let Target::Open(_, encoder) = &self.target else { return None };
        Some((self.complete.pop_front()?, encoder.clone()))
    }

    /// Writes an encoded row group to the file, once those before it are there.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn append(&mut self, number: usize, group: Encoded) -> Result<()> {
        let Target::Open(file, _) = &mut self.target else {
            return Err(Error::internal("a row group for a file that was not begun"));
        };
        self.encoded.insert(number, group);
        while let Some(group) = self.encoded.remove(&self.appended) {
            let mut out = file.next_row_group().map_err(|error| failed(&error))?;
            for column in group.columns {
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
    pub(crate) fn finish(self) -> Result<()> {
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
    /// The columns of a row group of `batches`, encoded and compressed, in memory of `budget`.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory; those of the encoding.
    pub(crate) fn encode(
        &self,
        batches: &[Batch],
        budget: &Arc<MemoryBudget>,
        context: &QueryContext,
    ) -> Result<Encoded> {
        // The number of the row group is of use only to encryption.
        let mut writers = self.factory.create_column_writers(0).map_err(|error| failed(&error))?.into_iter();
        let mut columns = Vec::with_capacity(writers.len());
        let (mut memory, mut done) = (Reservation::new(budget), 0);
        for (column, field) in self.schema.fields().iter().enumerate() {
            let mut own: Vec<_> = writers.by_ref().take(leaves_of(field.data_type())).collect();
            for batch in batches {
                context.check()?;
                let values = batch.column(column);
                let written: usize = own.iter().map(ArrowColumnWriter::memory_size).sum();
                memory.resize(done + written + PAGE_COPIES * values_bytes(values))?;
                let leaves = compute_leaves(field, values).map_err(|error| failed(&error))?;
                for (writer, leaf) in own.iter_mut().zip(&leaves) {
                    writer.write(leaf).map_err(|error| failed(&error))?;
                }
            }
            for writer in own {
                let chunk = writer.close().map_err(|error| failed(&error))?;
                done += usize::try_from(chunk.close().bytes_written).unwrap_or(usize::MAX);
                columns.push(chunk);
            }
        }
        memory.resize(done)?;
        Ok(Encoded { columns, memory })
    }
}

/// Bytes of the values of a column of a batch.
fn values_bytes(values: &ArrayRef) -> usize {
    values.to_data().get_slice_memory_size().unwrap_or_else(|_| values.get_array_memory_size())
}

/// The number of columns that a file has for one of a type: for each field of a struct its own.
fn leaves_of(ty: &ArrowType) -> usize {
    match ty {
        ArrowType::List(element) | ArrowType::FixedSizeList(element, _) | ArrowType::Map(element, _) => {
            leaves_of(element.data_type())
        }
        ArrowType::Struct(fields) => fields.iter().map(|field| leaves_of(field.data_type())).sum(),
        _ => 1,
    }
}
