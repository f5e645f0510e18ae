//! Parquet files as a relation.
//!
//! 1. Opening reads the footers: schema, row counts, statistics. Several files must agree on the columns of the first
//!    one by name; a column that has another type elsewhere is converted.
//! 2. A scan lists the row groups that may hold wanted rows, by the statistics of the columns that filters name.
//! 3. Workers take row groups, in order, and decode the requested columns a chunk at a time. Where there are several workers, the last
//!    row groups are cut into parts, so that none waits long for another. Each opens files of its own, because a file's read position
//!    is shared by all who hold it.
//! 4. Values are read as they stand in the file: text in short dictionaries stays coded, so that strings are copied and hashed once
//!    for an entry and not for a row; other text stays in its pages; decimals that stand in 32 or 64 bits take 64.
//!
//! Pages are not pruned and filters are not run while decoding; the engine filters the chunks.

use super::prune::{Bounds, may_hold};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DECIMAL64_MAX_PRECISION, DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef};
use entasis_arrow::{Importer, array_to_vector, schema_from_arrow, to_arrow_type};
use entasis_engine::exec::QueryContext;
use entasis_engine::relation::{ColumnStatistics, Relation, ScanRequest, Source, SourceWorker, Statistics};
use entasis_storage::ROW_GROUP_ROWS;
use entasis_vector::{Chunk, ColumnId, DataType, Error, Result, Schema, Selection, Value, Vector};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of a dictionary in a file, as it is compressed, up to which columns are read as codes.
const DICTIONARY_BYTES: i64 = 16 << 10;
/// Parts that the last row groups are cut into, for each worker. More of them end at about the same time, but each reads the
/// dictionaries of its columns anew.
const PARTS: u64 = 4;
/// Rows of a part, or a multiple of that: row groups of a table that is filled with them are full then.
const PART_ROWS: u64 = ROW_GROUP_ROWS as u64;

/// The files at `paths` as one relation that is called `name`.
///
/// # Errors
/// I/O, if a file cannot be read; input, if it is malformed or its columns are not those of the first file.
pub fn open(name: &str, paths: Vec<PathBuf>) -> Result<Arc<dyn Relation>> {
    let mut files: Vec<ParquetFile> = Vec::with_capacity(paths.len());
    let mut schema = Schema::new();
    let mut arrow: Option<SchemaRef> = None;
    for path in paths {
        let metadata = load(&path)?;
        let names = metadata.schema().clone();
        if arrow.is_none() {
            schema = schema_from_arrow(&names).map_err(|e| e.with_context(format!("'{}'", path.display())))?;
            arrow = Some(names.clone());
        }
        let columns = schema.iter().map(|field| names.index_of(&field.name).map_err(|_| &field.name));
        let columns = columns.collect::<Result<Vec<usize>, _>>().map_err(|missing| {
            Error::input(format!(
                "'{}' has no column \"{missing}\", which other files of '{name}' have",
                path.display()
            ))
        })?;
        let reading = guarded(&path, || Ok::<_, String>(as_they_stand(&metadata)))?.unwrap_or_else(|| metadata.clone());
        files.push(ParquetFile { path, metadata, reading, columns });
    }
    // Files may hold NULL even where the first one says that it does not.
    schema.iter_mut().for_each(|field| field.nullable = true);
    let bounds = schema.iter().map(|_| OnceLock::new()).collect();
    Ok(Arc::new(ParquetRelation(Arc::new(Inner { name: name.to_owned(), schema, files, bounds }))))
}

/// One file: where it is, its footer, and which of its columns are the relation's.
struct ParquetFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// The same footer, for readers: some columns are to be read as arrays of other types.
    reading: ArrowReaderMetadata,
    columns: Vec<usize>,
}

fn load(path: &Path) -> Result<ArrowReaderMetadata> {
    let file = File::open(path).map_err(|e| Error::io(format!("'{}'", path.display()), &e))?;
    guarded(path, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))
}

/// The footer of a file whose columns are read as arrays of the types that are made with the least work. `None` if the library
/// refuses them.
fn as_they_stand(metadata: &ArrowReaderMetadata) -> Option<ArrowReaderMetadata> {
    let (footer, schema) = (metadata.metadata(), metadata.schema());
    let columns = footer.file_metadata().schema_descr();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    for leaf in 0..columns.num_columns() {
        let field = &mut fields[columns.get_column_root_idx(leaf)];
        let integers = matches!(columns.column(leaf).physical_type(), PhysicalType::INT32 | PhysicalType::INT64);
        let ty = match field.data_type() {
            ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8 if is_coded(footer, leaf) => {
                ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8))
            }
            ArrowType::Utf8 | ArrowType::LargeUtf8 => ArrowType::Utf8View,
            ArrowType::Decimal128(precision @ ..=DECIMAL64_MAX_PRECISION, scale) if integers => {
                ArrowType::Decimal64(*precision, *scale)
            }
            _ => continue,
        };
        *field = Arc::new(field.as_ref().clone().with_data_type(ty));
    }
    let schema = Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(footer.clone(), options).ok()
}

/// True if each row group has a column in a short dictionary and nothing beside it.
fn is_coded(footer: &ParquetMetaData, leaf: usize) -> bool {
    let mut chunks = footer.row_groups().iter().map(|group| group.column(leaf));
    footer.num_row_groups() > 0
        && chunks.all(|chunk| {
            let is_only = |encoding| chunk.page_encoding_stats_mask().is_some_and(|mask| mask.is_only(encoding));
            let length = chunk.dictionary_page_offset().and_then(|start| chunk.data_page_offset().checked_sub(start));
            length.is_some_and(|length| (1..=DICTIONARY_BYTES).contains(&length))
                && (is_only(Encoding::RLE_DICTIONARY) || is_only(Encoding::PLAIN_DICTIONARY))
        })
}

/// Runs a call of the Parquet library on `path`. It reads bytes that nobody vouches for, so a panic is an answer too.
fn guarded<T, E: fmt::Display>(path: &Path, call: impl FnOnce() -> Result<T, E>) -> Result<T> {
    let malformed = |what: &dyn fmt::Display| {
        Error::input(format!("'{}' is not a sound Parquet file: {what}", path.display()))
            .with_hint("the file may be truncated or damaged; write it again")
    };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| malformed(&error)),
        Err(panic) => Err(malformed(&panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the decoder gave up").to_owned()
}

struct Inner {
    name: String,
    schema: Schema,
    files: Vec<ParquetFile>,
    /// By column: the bounds in each row group of all files, read when first asked for.
    bounds: Box<[OnceLock<Vec<Bounds>>]>,
}

struct ParquetRelation(Arc<Inner>);

impl fmt::Debug for ParquetRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parquet({})", self.0.name)
    }
}

impl Inner {
    /// The row groups of all files, in order: file, row group.
    fn row_groups(&self) -> impl Iterator<Item = (usize, usize)> {
        let groups = |(index, file): (usize, &ParquetFile)| {
            (0..file.metadata.metadata().num_row_groups()).map(move |group| (index, group))
        };
        self.files.iter().enumerate().flat_map(groups)
    }

    fn rows(&self, file: usize, group: usize) -> u64 {
        self.files[file].metadata.metadata().row_group(group).num_rows().max(0) as u64
    }

    fn bounds(&self, column: usize) -> &[Bounds] {
        self.bounds[column].get_or_init(|| {
            let mut bounds = Vec::new();
            for file in 0..self.files.len() {
                bounds.extend(self.file_bounds(file, column));
            }
            bounds
        })
    }

    /// Bounds of a column in each row group of a file. What is not known, not comparable or not to be trusted is absent.
    fn file_bounds(&self, file_index: usize, column: usize) -> Vec<Bounds> {
        let file = &self.files[file_index];
        let metadata = file.metadata.metadata();
        let mut bounds: Vec<Bounds> = (0..metadata.num_row_groups())
            .map(|group| Bounds { min: None, max: None, nulls: None, rows: self.rows(file_index, group) })
            .collect();
        let ty = self.schema[column].ty;
        let field = file.metadata.schema().field(file.columns[column]);
        if !entasis_arrow::from_arrow_type(field.data_type()).is_ok_and(|own| own == ty) {
            return bounds;
        }
        let statistics = guarded(&file.path, || {
            let groups = metadata.row_groups();
            let schema = file.metadata.schema();
            let converter = StatisticsConverter::try_new(field.name(), schema, file.metadata.parquet_schema())?;
            let index = converter.parquet_column_index();
            let mins = converter.row_group_mins(groups)?;
            let maxs = converter.row_group_maxes(groups)?;
            let nulls = converter.with_missing_null_counts_as_zero(false).row_group_null_counts(groups)?;
            Ok::<_, parquet::errors::ParquetError>((index, mins, maxs, nulls))
        });
        let Ok((Some(index), mins, maxs, nulls)) = statistics else { return bounds };
        let (mins, maxs) = (values(&mins, ty), values(&maxs, ty));
        for (group, bounds) in bounds.iter_mut().enumerate() {
            if nulls.is_valid(group) {
                bounds.nulls = Some(nulls.value(group));
            }
            // Old writers compared the bytes of strings as signed numbers.
            let chunk = metadata.row_group(group).column(index);
            let dubious = chunk.statistics().is_some_and(|s| s.is_min_max_deprecated())
                && matches!(chunk.column_type(), PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY);
            if !dubious {
                bounds.min = mins.get(group).filter(|value| !value.is_null()).cloned();
                bounds.max = maxs.get(group).filter(|value| !value.is_null()).cloned();
            }
        }
        bounds
    }
}

/// The elements of a short array; none if they cannot be converted.
fn values(array: &ArrayRef, ty: DataType) -> Vec<Value> {
    let mut vector = Vector::new(ty.physical());
    match array_to_vector(array, 0, array.len(), ty, &mut vector) {
        Ok(()) => (0..array.len()).map(|i| vector.value(i, ty)).collect(),
        Err(_) => Vec::new(),
    }
}

impl Relation for ParquetRelation {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn statistics(&self) -> Statistics {
        let inner = &self.0;
        let rows = inner.row_groups().map(|(file, group)| inner.rows(file, group)).sum();
        let column = |column: usize| {
            let bounds = inner.bounds(column);
            let least = |a: Value, b: Value| if b.total_cmp(&a).is_lt() { b } else { a };
            let greatest = |a: Value, b: Value| if b.total_cmp(&a).is_gt() { b } else { a };
            // Known only if it is known for each row group that has a value.
            let valued = || bounds.iter().filter(|b| b.nulls != Some(b.rows));
            let min = valued().map(|b| b.min.clone()).collect::<Option<Vec<Value>>>();
            let max = valued().map(|b| b.max.clone()).collect::<Option<Vec<Value>>>();
            ColumnStatistics {
                min: min.and_then(|values| values.into_iter().reduce(least)),
                max: max.and_then(|values| values.into_iter().reduce(greatest)),
                nulls: bounds.iter().map(|b| b.nulls).sum(),
                distinct: None,
                bounds_are_exact: false,
            }
        };
        Statistics { rows: Some(rows), columns: (0..inner.schema.len()).map(column).collect() }
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let inner = &self.0;
        let column_of = |id: ColumnId| request.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| *column);
        let mut morsels = Vec::new();
        for (index, (file, group)) in inner.row_groups().enumerate() {
            let bounds = |id: ColumnId| column_of(id).map(|column| inner.bounds(column)[index].clone());
            let rows = inner.rows(file, group);
            if rows > 0 && request.filters.iter().all(|filter| may_hold(filter, &bounds)) {
                morsels.push(Morsel { file, group, rows: 0..rows });
            }
        }
        let workers = context.settings.threads;
        if workers > 1 {
            let last = morsels.split_off(morsels.len().saturating_sub(workers));
            let rows = last.iter().fold(0, |rows: u64, morsel| rows.saturating_add(morsel.rows.end));
            let part = (rows / (workers as u64 * PARTS) + PART_ROWS / 2) / PART_ROWS * PART_ROWS;
            morsels.extend(last.iter().flat_map(|morsel| morsel.parts(part.max(PART_ROWS))));
        }
        Ok(Arc::new(ParquetSource {
            relation: inner.clone(),
            columns: request.columns.iter().map(|(_, column)| *column).collect(),
            chunk_rows: context.settings.chunk_rows.max(1),
            shared: Arc::new(Shared { morsels, next: AtomicUsize::new(0) }),
        }))
    }
}

/// Rows of one row group, to be read.
struct Morsel {
    file: usize,
    group: usize,
    rows: Range<u64>,
}

impl Morsel {
    /// It, cut into parts of `length` rows.
    fn parts(&self, length: u64) -> impl Iterator<Item = Morsel> {
        let Morsel { file, group, rows: Range { start, end } } = *self;
        let part = move |from: u64| Morsel { file, group, rows: from..end.min(from.saturating_add(length)) };
        (start..end).step_by(length as usize).map(part)
    }
}

/// What the workers share: which rows are next.
struct Shared {
    morsels: Vec<Morsel>,
    next: AtomicUsize,
}

struct ParquetSource {
    relation: Arc<Inner>,
    columns: Vec<usize>,
    chunk_rows: usize,
    shared: Arc<Shared>,
}

impl Source for ParquetSource {
    fn worker(&self) -> Result<Box<dyn SourceWorker>> {
        Ok(Box::new(ParquetWorker {
            relation: self.relation.clone(),
            columns: self.columns.clone(),
            chunk_rows: self.chunk_rows,
            shared: self.shared.clone(),
            morsel: 0,
            state: State::Between,
            importers: self.columns.iter().map(|_| Importer::default()).collect(),
            vectors: self.columns.iter().map(|&c| Vector::new(self.relation.schema[c].ty.physical())).collect(),
        }))
    }

    fn progress(&self) -> Option<f64> {
        let total = self.shared.morsels.len().max(1) as f64;
        Some((self.shared.next.load(Ordering::Relaxed) as f64 / total).min(1.0))
    }
}

/// Where a worker is in its rows.
enum State {
    /// It has none.
    Between,
    /// No column is wanted: only rows are counted.
    Counting { rows: u64 },
    /// It decodes. The batch is handed out from `offset` on.
    Reading {
        file: usize,
        reader: Box<ParquetRecordBatchReader>,
        places: Vec<usize>,
        batch: RecordBatch,
        offset: usize,
    },
}

struct ParquetWorker {
    relation: Arc<Inner>,
    columns: Vec<usize>,
    chunk_rows: usize,
    shared: Arc<Shared>,
    morsel: u64,
    state: State,
    importers: Vec<Importer>,
    vectors: Vec<Vector>,
}

impl ParquetWorker {
    /// Takes the next rows. False if there are none.
    fn take_morsel(&mut self) -> Result<bool> {
        let next = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(morsel) = self.shared.morsels.get(next) else {
            self.state = State::Between;
            return Ok(false);
        };
        self.morsel = next as u64;
        let rows = morsel.rows.end - morsel.rows.start;
        if self.columns.is_empty() {
            self.state = State::Counting { rows };
            return Ok(true);
        }
        let file = &self.relation.files[morsel.file];
        let mut wanted: Vec<usize> = self.columns.iter().map(|&column| file.columns[column]).collect();
        let mask = ProjectionMask::roots(file.metadata.parquet_schema(), wanted.iter().copied());
        // Batches have the wanted columns in the file's order, each once.
        let mut order = wanted.clone();
        order.sort_unstable();
        order.dedup();
        wanted.iter_mut().for_each(|column| *column = order.binary_search(column).expect("it is one of them"));
        let handle = File::open(&file.path).map_err(|e| Error::io(format!("'{}'", file.path.display()), &e))?;
        let reader = guarded(&file.path, || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(handle, file.reading.clone())
                .with_row_groups(vec![morsel.group])
                .with_projection(mask)
                .with_batch_size(self.chunk_rows);
            // PERF: readers of whole row groups do not keep a list of rows.
            if rows == self.relation.rows(morsel.file, morsel.group) {
                return builder.build();
            }
            builder.with_offset(morsel.rows.start as usize).with_limit(rows as usize).build()
        })?;
        self.state = State::Reading {
            file: morsel.file,
            batch: RecordBatch::new_empty(file.reading.schema().clone()),
            reader: Box::new(reader),
            places: wanted,
            offset: 0,
        };
        Ok(true)
    }
}

impl SourceWorker for ParquetWorker {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.reset(0);
        loop {
            match &mut self.state {
                State::Between | State::Counting { rows: 0 } => {}
                State::Counting { rows } => {
                    let now = (*rows).min(self.chunk_rows as u64);
                    *rows -= now;
                    chunk.reset(now as usize);
                    return Ok(true);
                }
                State::Reading { file, reader, places, batch, offset } => {
                    let file = &self.relation.files[*file];
                    if *offset == batch.num_rows() {
                        match guarded(&file.path, || reader.next().transpose())? {
                            Some(next) => (*batch, *offset) = (next, 0),
                            None => self.state = State::Between,
                        }
                        continue;
                    }
                    let rows = (batch.num_rows() - *offset).min(self.chunk_rows);
                    chunk.reset(rows);
                    let group = chunk.push_group(Selection::ALL);
                    for (slot, &place) in places.iter().enumerate() {
                        let field = &self.relation.schema[self.columns[slot]];
                        let array = converted(batch.column(place), field.ty)?;
                        let vector = &mut self.vectors[slot];
                        self.importers[slot].import(&*array, *offset, rows, field.ty, vector).map_err(|e| {
                            e.with_context(format!("'{}', column \"{}\"", file.path.display(), field.name))
                        })?;
                        chunk.push_column(vector.clone(), group);
                    }
                    *offset += rows;
                    return Ok(true);
                }
            }
            if !self.take_morsel()? {
                return Ok(false);
            }
        }
    }

    fn morsel(&self) -> u64 {
        self.morsel
    }
}

/// The array as one that becomes a vector of `ty`: a file may hold a column in another type than the first file does.
fn converted(array: &ArrayRef, ty: DataType) -> Result<ArrayRef> {
    let own: &ArrowType = array.data_type();
    if entasis_arrow::from_arrow_type(own).is_ok_and(|own| own == ty) {
        return Ok(array.clone());
    }
    cast(array, &to_arrow_type(ty)).map_err(entasis_arrow::arrow_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_files::{Directory, read};
    use crate::files::{Options, open};
    use arrow_array::{Date32Array, Float64Array, Int32Array, Int64Array, StringArray};
    use entasis_engine::exec::Settings;
    use entasis_vector::ErrorKind;
    use entasis_vector::expr::{CompareOp, Expr};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    fn write(path: &str, columns: Vec<(&str, ArrayRef)>, group_rows: usize) {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn sample(path: &str, first: i64, rows: i64) {
        let id: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
        let text: ArrayRef =
            Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 7 > 0).then(|| format!("row {i}")))));
        let day: ArrayRef = Arc::new(Date32Array::from_iter_values((0..rows).map(|i| i as i32)));
        let ratio: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|i| i as f64 / 4.0)));
        write(path, vec![("id", id), ("text", text), ("day", day), ("ratio", ratio)], 100);
    }

    #[test]
    fn rows_come_back_in_order_across_files_and_row_groups() {
        let directory = Directory::new();
        sample(&directory.path("a.parquet"), 0, 250);
        sample(&directory.path("b.parquet"), 250, 30);
        let relation = open(&directory.path("*.parquet"), &Options::default()).unwrap();
        assert_eq!(relation.statistics().rows, Some(280));
        assert_eq!(relation.statistics().columns[0].max, Some(Value::Integer(279)));
        for chunk_rows in [3, 2048] {
            let rows = read(&*relation, vec![], chunk_rows).unwrap();
            assert_eq!(rows.len(), 280);
            assert_eq!(rows[0], ["0", "NULL", "1970-01-01", "0.0"]);
            assert_eq!(rows[251], ["251", "row 1", "1970-01-02", "0.25"]);
            assert!(rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
        }
    }

    #[test]
    fn row_groups_without_wanted_rows_are_not_read() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        sample(&path, 0, 250);
        let relation = open(&path, &Options::default()).unwrap();
        let id = Expr::column(ColumnId(0), DataType::Int64);
        let above = Expr::compare(CompareOp::GtEq, id, Expr::literal(Value::Integer(200), DataType::Int64));
        let rows = read(&*relation, vec![above], 2048).unwrap();
        assert_eq!((rows.len(), rows[0][0].as_str()), (50, "200"));
    }

    #[test]
    fn text_in_short_dictionaries_is_read_as_codes() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        let word = |i: u64| (!i.is_multiple_of(5)).then(|| format!("word {}", i % 3));
        let few: ArrayRef = Arc::new(StringArray::from_iter((0..5000).map(word)));
        // More than a dictionary page holds.
        let many = |i: u64| format!("{i} {}", "x".repeat(400));
        let many: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(many)));
        write(&path, vec![("few", few), ("many", many)], 4000);
        let file = load(Path::new(&path)).unwrap();
        let reading = as_they_stand(&file).unwrap();
        let types: Vec<&ArrowType> = reading.schema().fields().iter().map(|field| field.data_type()).collect();
        assert!(matches!(types[..], [ArrowType::Dictionary(..), ArrowType::Utf8View]), "{types:?}");
        for chunk_rows in [3, 2048] {
            let rows = read(&*open(&path, &Options::default()).unwrap(), vec![], chunk_rows).unwrap();
            let expected = (0..5000).map(|i| word(i).unwrap_or_else(|| "NULL".into()));
            assert!(rows.iter().map(|row| row[0].clone()).eq(expected));
            assert!(rows.iter().enumerate().all(|(i, row)| row[1].starts_with(&format!("{i} "))));
        }
    }

    #[test]
    fn the_last_row_groups_are_read_in_parts() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        let rows = PART_ROWS as i32 + 5000;
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("text {i}"))));
        write(&path, vec![("number", numbers), ("text", texts)], rows as usize);
        let relation = open(&path, &Options::default()).unwrap();
        let read = read(&*relation, vec![], 2048).unwrap();
        assert_eq!(read.len(), rows as usize);
        assert!(read.iter().enumerate().all(|(i, row)| *row == [i.to_string(), format!("text {i}")]));

        for (threads, parts) in [(1, 1), (2, 2)] {
            let settings = Arc::new(Settings { threads, ..Settings::default() });
            let context = QueryContext { settings, ..QueryContext::default() };
            let all = ScanRequest { columns: vec![(ColumnId(0), 0)], filters: vec![] };
            let source = relation.scan(&all, &context).unwrap();
            let mut workers = [source.worker().unwrap(), source.worker().unwrap()];
            let mut chunk = Chunk::new();
            let busy = workers.iter_mut().filter_map(|worker| worker.next(&mut chunk).unwrap().then_some(()));
            assert_eq!(busy.count(), parts, "{threads} threads");
        }
    }

    #[test]
    fn rows_are_counted_without_reading_a_column() {
        let directory = Directory::new();
        let path = directory.path("a.parquet");
        sample(&path, 0, 250);
        let relation = open(&path, &Options::default()).unwrap();
        let request = ScanRequest { columns: vec![], filters: vec![] };
        let source = relation.scan(&request, &QueryContext::default()).unwrap();
        let mut worker = source.worker().unwrap();
        let (mut chunk, mut rows) = (Chunk::new(), 0);
        while worker.next(&mut chunk).unwrap() {
            rows += chunk.len();
        }
        assert_eq!(rows, 250);
    }

    #[test]
    fn a_column_of_another_type_in_a_later_file_is_converted() {
        let directory = Directory::new();
        write(&directory.path("a.parquet"), vec![("n", Arc::new(Int64Array::from(vec![1, 2])))], 10);
        write(&directory.path("b.parquet"), vec![("n", Arc::new(Int32Array::from(vec![3])))], 10);
        let relation = open(&directory.path("*.parquet"), &Options::default()).unwrap();
        assert_eq!(read(&*relation, vec![], 2048).unwrap(), [["1"], ["2"], ["3"]]);
        write(&directory.path("c.parquet"), vec![("m", Arc::new(Int32Array::from(vec![3])))], 10);
        let error = open(&directory.path("*.parquet"), &Options::default()).unwrap_err();
        assert!(error.message().contains("c.parquet") && error.message().contains("\"n\""), "{error}");
    }

    #[test]
    fn damaged_files_are_errors_that_name_them() {
        let directory = Directory::new();
        let whole = directory.path("a.parquet");
        sample(&whole, 0, 2000);
        let bytes = std::fs::read(&whole).unwrap();
        let missing = open(&directory.path("none.parquet"), &Options::default()).unwrap_err();
        assert!(missing.kind() == ErrorKind::Io && missing.message().contains("none.parquet"));
        for cut in [0, 3, 100, bytes.len() / 2, bytes.len() - 1] {
            let path = directory.write("cut.parquet", &bytes[..cut]);
            let error = open(&path, &Options::default()).unwrap_err();
            assert!(error.kind() == ErrorKind::Input && error.message().contains("cut.parquet"), "{error}");
        }
        // Anything may come out of flipped bytes but a panic.
        for step in 0..200 {
            let mut damaged = bytes.clone();
            damaged[step * 37 % bytes.len()] ^= 0x55;
            let path = directory.write("damaged.parquet", &damaged);
            if let Ok(relation) = open(&path, &Options::default())
                && let Err(error) = read(&*relation, vec![], 2048)
            {
                assert!(error.message().contains("damaged.parquet"), "{error}");
            }
        }
    }
}
