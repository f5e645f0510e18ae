//! Parquet files as a relation, and the row groups of those that are written ([`row_groups`]).
//!
//! 1. Opening reads the footers: schema, row counts, statistics ([`contents`]). `unite` makes one list of
//!    columns from them.
//! 2. A scan lists the row groups that may contain qualifying rows, by the statistics of the columns that
//!    filters name and by the values in the paths.
//!    Page indexes and Bloom filters rule out further rows when a worker reaches a row group ([`pages`]).
//! 3. Workers take row groups, in order, and decode the requested columns a chunk at a time ([`scan`]). If
//!    there are several workers, the last row groups are cut into parts, so that no worker waits long for
//!    another. Each worker opens files of its own, because all users of an open file share its read position.
//! 4. If few rows satisfy the filters, or may be among the first rows of a sort with a limit, other columns
//!    are decoded for these only ([`select`]). For such a sort, row groups that have the first rows by their
//!    statistics come first, beginning with a small part, so that others need not be read.
//! 5. Rows are numbered in the order of the files. A sort with a limit reads the other columns of its first
//!    rows by these numbers, when it has found them.
//! 6. Values are kept as they are in the file where possible: text in short dictionaries stays encoded, so
//!    that strings are copied and hashed once per entry and not per row; other text stays in its pages;
//!    decimals stored in 32 or 64 bits take 64.
//!
//! Columns that a query does not read have no effect, whatever they contain. The engine filters the chunks
//! again.

mod absent;
mod bytes;
mod compression;
mod contents;
mod decode;
mod dictionaries;
mod footer;
mod morsel;
mod pages;
mod row_groups;
mod scan;
mod select;
mod unite;

pub(crate) use compression::PageCompression;
pub(crate) use row_groups::{Encoded, RowGroups};

use super::columns::Origin;
use super::paths::{self, FileOptions};
use crate::bounds::Bounds;
use contents::{Contents, ParquetFile};
use decode::Batches;
use entasis_engine::exec::QueryContext;
use entasis_engine::pruning::PruningPredicate;
use entasis_engine::relation::{
    Certain, ColumnStatistics, Relation, ScanRequest, Source, Statistics, Threshold,
};
use entasis_storage::{ROW_GROUP_ROWS, Zone};
use entasis_vector::{ColumnId, Error, Result, Schema, Value};
use footer::{as_they_stand, guarded, load};
use morsel::Morsel;
use scan::ParquetSource;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use unite::{United, unite};

/// Number of parts per worker into which the last row groups are cut. More parts end more nearly at the same
/// time, but each reads the dictionaries of its columns again.
const PARTS: u64 = 4;
/// The rows of a part are a multiple of this, so that row groups of a table filled with them are full.
const PART_ROWS: u64 = ROW_GROUP_ROWS as u64;

/// The rows of the first part of a scan for the first rows of an order: as many as a sort keeps before it
/// knows a threshold.
const FIRST_ROWS: u64 = 16 << 10;

/// Opens the files at `paths` as one relation called `name`.
///
/// # Errors
/// I/O, if a file cannot be read; input, if it is malformed.
pub fn open(name: &str, paths: Vec<PathBuf>, options: &FileOptions) -> Result<Arc<dyn Relation>> {
    let footers = paths.iter().map(|path| load(path)).collect::<Result<Vec<_>>>()?;
    let schemas: Vec<_> =
        paths.iter().map(|path| &**path).zip(footers.iter().map(|f| f.schema().clone())).collect();
    let United { mut schema, mut problems, mut origins } = unite(&schemas, options.union_by_name);
    paths::add_columns(&paths, options, &mut schema, origins.iter_mut().collect())?;
    problems.resize(schema.len(), None);
    // A column of the files that is hidden by one from the paths is not read.
    for (column, problem) in problems.iter_mut().enumerate() {
        if origins.iter().all(|columns| matches!(columns[column], Origin::Value(_))) {
            *problem = None;
        }
    }
    let mut files: Vec<ParquetFile> = Vec::with_capacity(paths.len());
    for ((path, metadata), columns) in paths.into_iter().zip(footers).zip(origins) {
        let reading = guarded(|| footer::place(&path), || Ok::<_, String>(as_they_stand(&metadata)))?;
        files.push(ParquetFile {
            reading: reading.unwrap_or_else(|| metadata.clone()),
            path,
            metadata,
            columns,
            indexed: OnceLock::new(),
        });
    }
    let bounds = schema.iter().map(|_| OnceLock::new()).collect();
    let mut inner = Contents { name: name.to_owned(), schema, problems, files, bounds, starts: vec![0] };
    let rows: Vec<u64> = inner.row_groups().map(|(file, group)| inner.rows(file, group)).collect();
    let add = |before: &mut u64, rows: u64| {
        *before = before.saturating_add(rows);
        Some(*before)
    };
    inner.starts.extend(rows.into_iter().scan(0, add));
    Ok(Arc::new(ParquetRelation(Arc::new(inner))))
}

struct ParquetRelation(Arc<Contents>);

impl fmt::Debug for ParquetRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parquet({})", self.0.name)
    }
}

impl ParquetRelation {
    /// The morsels, numbered, in the order in which they should be read for the first rows of an order by
    /// `column`: those first that have them by their bounds. The first one is cut in two.
    fn best_first(&self, morsels: Vec<Morsel>, column: usize, threshold: &Threshold) -> Vec<(u64, Morsel)> {
        let bounds = self.0.bounds(column);
        let zone = |morsel: &Morsel| {
            let bounds = &bounds[morsel.index];
            let (min, max) = (bounds.min.clone()?, bounds.max.clone()?);
            Some(Zone { min, max, nulls: bounds.nulls.unwrap_or(0).min(u32::MAX.into()) as u32 })
        };
        // Numbers leave room for the second part of the first morsel.
        let mut numbered: Vec<(u64, Morsel)> = (0..).step_by(2).zip(morsels).collect();
        if numbered.iter().all(|(_, morsel)| zone(morsel).is_some()) {
            numbered.sort_by(|(_, a), (_, b)| match (zone(a), zone(b)) {
                (Some(a), Some(b)) => threshold.compare_zones(&a, &b),
                _ => std::cmp::Ordering::Equal,
            });
        }
        if let Some((number, first)) = numbered.first_mut()
            && first.rows.end - first.rows.start > 2 * FIRST_ROWS
        {
            let middle = first.rows.start + FIRST_ROWS;
            let rest = (*number + 1, Morsel { rows: middle..first.rows.end, ..first.clone() });
            first.rows.end = middle;
            numbered.insert(1, rest);
        }
        numbered
    }
}

impl Relation for ParquetRelation {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn unreadable(&self, column: usize) -> Option<Error> {
        self.0.problems.get(column)?.clone()
    }

    fn statistics(&self) -> Statistics {
        let inner = &self.0;
        let column = |column: usize| {
            let bounds = inner.bounds(column);
            let least = |a: Value, b: Value| if b.total_cmp(&a).is_lt() { b } else { a };
            let greatest = |a: Value, b: Value| if b.total_cmp(&a).is_gt() { b } else { a };
            // Known only if every row group with values has them.
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
        Statistics { rows: Some(inner.all_rows()), columns: (0..inner.schema.len()).map(column).collect() }
    }

    fn certain_rows(&self) -> Option<u64> {
        Some(self.0.all_rows())
    }

    fn certain(&self, column: usize) -> Certain {
        if self.0.problems[column].is_some() {
            return Certain::default();
        }
        let bounds = self.0.bounds(column);
        // Row groups of NULLs alone have no bounds.
        let valued: Vec<&Bounds> = bounds.iter().filter(|bounds| bounds.nulls != Some(bounds.rows)).collect();
        if !valued.iter().all(|bounds| bounds.occur) {
            return Certain { nulls: bounds.iter().map(|bounds| bounds.nulls).sum(), ..Certain::default() };
        }
        let Statistics { columns, .. } = self.statistics();
        let extreme = |known: &Option<Value>| match known {
            None if valued.is_empty() => Some(Value::Null),
            known => known.clone(),
        };
        let known = &columns[column];
        Certain { min: extreme(&known.min), max: extreme(&known.max), nulls: known.nulls }
    }

    fn leaves_out_by_bounds(&self) -> bool {
        true
    }

    fn finds_rows(&self) -> bool {
        true
    }

    fn scan_rows(
        &self,
        request: &ScanRequest,
        rows: &[u64],
        context: &QueryContext,
    ) -> Result<Arc<dyn Source>> {
        let inner = &self.0;
        inner.check(request)?;
        let mut morsels = Vec::new();
        let mut rest = rows;
        for (index, (file, group)) in inner.row_groups().enumerate() {
            let (start, end) = (inner.starts[index], inner.starts[index + 1]);
            let (own, later) = rest.split_at(rest.partition_point(|&row| row < end));
            rest = later;
            if !own.is_empty() {
                let picked = own.iter().map(|row| row - start).collect();
                morsels.push(Morsel { index, file, group, rows: 0..end - start, picked: Some(picked) });
            }
        }
        let request = ScanRequest::all(request.columns.clone());
        let morsels = (0..).zip(morsels).collect();
        Ok(Arc::new(ParquetSource::new(inner.clone(), &request, Batches::of(context), morsels)))
    }

    fn scan(&self, request: &ScanRequest, context: &QueryContext) -> Result<Arc<dyn Source>> {
        let inner = &self.0;
        inner.check(request)?;
        let column_of =
            |id: ColumnId| request.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| *column);
        let tests: Vec<PruningPredicate> =
            request.filters.iter().filter_map(|filter| PruningPredicate::of(filter, &column_of)).collect();
        let mut morsels = Vec::new();
        for (index, (file, group)) in inner.row_groups().enumerate() {
            let known = |column: usize| Some(inner.bounds(column)[index].known());
            let rows = inner.rows(file, group);
            if rows > 0 && tests.iter().all(|test| test.may_pass(&known)) {
                morsels.push(Morsel { index, file, group, rows: 0..rows, picked: None });
            }
        }
        let workers = context.settings.threads;
        if workers > 1 {
            let last = morsels.split_off(morsels.len().saturating_sub(workers));
            let rows = last.iter().fold(0, |rows: u64, morsel| rows.saturating_add(morsel.rows.end));
            let part = (rows / (workers as u64 * PARTS) + PART_ROWS / 2) / PART_ROWS * PART_ROWS;
            morsels.extend(last.iter().flat_map(|morsel| morsel.parts(part.max(PART_ROWS))));
        }
        let threshold = request.thresholds.iter().find_map(|(id, own)| Some((column_of(*id)?, own)));
        let morsels = match threshold {
            Some((column, threshold)) => self.best_first(morsels, column, threshold),
            None => (0..).zip(morsels).collect(),
        };
        Ok(Arc::new(ParquetSource::new(inner.clone(), request, Batches::of(context), morsels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{Directory, read};
    use crate::{Options, open};
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, RecordBatch};
    use arrow_array::{
        Date32Array, Float64Array, Int32Array, Int64Array, ListArray, StringArray, StructArray,
    };
    use arrow_cast::cast;
    use arrow_schema::DataType as ArrowType;
    use arrow_schema::Field as ArrowField;
    use entasis_engine::exec::{CancelFlag, MemoryBudget, Settings};
    use entasis_vector::Chunk;
    use entasis_vector::expr::{CompareOp, Expr};
    use entasis_vector::{DataType, ErrorKind};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use std::fs::File;
    use std::path::Path;

    fn write(path: &str, columns: Vec<(&str, ArrayRef)>, group_rows: usize) {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let mut writer =
            ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
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
        let relation =
            open(&directory.path("*.parquet"), &Options::default(), &CancelFlag::default()).unwrap();
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
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
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
        // More than fits into a dictionary page.
        let many = |i: u64| format!("{i} {}", "x".repeat(400));
        let many: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(many)));
        write(&path, vec![("few", few), ("many", many)], 4000);
        let file = load(Path::new(&path)).unwrap();
        let reading = as_they_stand(&file).unwrap();
        let types: Vec<&ArrowType> =
            reading.schema().fields().iter().map(|field| field.data_type()).collect();
        assert!(matches!(types[..], [ArrowType::Dictionary(..), ArrowType::Utf8View]), "{types:?}");
        for chunk_rows in [3, 2048] {
            let rows =
                read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], chunk_rows)
                    .unwrap();
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
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
        let read = read(&*relation, vec![], 2048).unwrap();
        assert_eq!(read.len(), rows as usize);
        assert!(read.iter().enumerate().all(|(i, row)| *row == [i.to_string(), format!("text {i}")]));

        for (threads, parts) in [(1, 1), (2, 2)] {
            let settings = Arc::new(Settings { threads, ..Settings::default() });
            let context = QueryContext { settings, ..QueryContext::default() };
            let all = ScanRequest::all(vec![(ColumnId(0), 0)]);
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
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
        let request = ScanRequest::all(vec![]);
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
        let relation =
            open(&directory.path("*.parquet"), &Options::default(), &CancelFlag::default()).unwrap();
        assert_eq!(read(&*relation, vec![], 2048).unwrap(), [["1"], ["2"], ["3"]]);
        write(&directory.path("c.parquet"), vec![("m", Arc::new(Int32Array::from(vec![3])))], 10);
        let relation =
            open(&directory.path("*.parquet"), &Options::default(), &CancelFlag::default()).unwrap();
        let error = read(&*relation, vec![], 2048).unwrap_err();
        assert!(error.message().contains("c.parquet") && error.message().contains("\"n\""), "{error}");
    }

    #[test]
    fn columns_that_are_not_read_do_not_matter() {
        let directory = Directory::new();
        let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let lists = [Some(vec![Some(1), Some(2)]), None];
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let part = Arc::new(ArrowField::new("part", ArrowType::Int64, true));
        let parts: ArrayRef = Arc::new(StructArray::from(vec![(part, id.clone())]));
        let wide = cast(&id, &ArrowType::Decimal256(60, 2)).unwrap();
        let path = directory.path("a.parquet");
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        write(&path, vec![("list", list), ("parts", parts), ("wide", wide), ("id", id), ("t", text)], 10);
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
        let columns = |columns: &[usize]| {
            let columns = columns.iter().map(|column| (ColumnId(*column as u32), *column)).collect();
            relation.scan(&ScanRequest::all(columns), &QueryContext::default())
        };
        let mut worker = columns(&[4, 3, 0, 1]).unwrap().worker().unwrap();
        let mut chunk = Chunk::new();
        assert!(worker.next(&mut chunk).unwrap());
        let shown = |row: usize, column: usize| {
            let ty = relation.schema()[[4_usize, 3, 0, 1][column]].ty;
            chunk.value(row, column, ty).display(ty).to_string()
        };
        assert_eq!([shown(0, 2), shown(1, 2), shown(1, 3)], ["[1, 2]", "NULL", "{'part': 2}"]);
        assert_eq!(chunk.value(1, 0, DataType::Varchar), Value::Text("y".into()));
        assert_eq!(chunk.value(1, 1, DataType::Int64), Value::Integer(2));
        let error = columns(&[3, 2]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert_eq!(error.message(), format!("'{path}', column \"wide\": decimals of more than 38 digits"));
    }

    #[test]
    fn directories_rule_files_out() {
        let directory = Directory::new();
        for year in ["2023", "2024", "__HIVE_DEFAULT_PARTITION__"] {
            std::fs::create_dir_all(directory.path(&format!("year={year}"))).unwrap();
            sample(&directory.path(&format!("year={year}/a.parquet")), 0, 150);
        }
        // Files that are not read may be damaged.
        let damaged = directory.path("year=2023/a.parquet");
        let mut bytes = std::fs::read(&damaged).unwrap();
        bytes[..1000].fill(0);
        std::fs::write(&damaged, bytes).unwrap();
        let relation =
            open(&directory.path("*/*.parquet"), &Options::default(), &CancelFlag::default()).unwrap();
        let year = relation.schema().iter().position(|field| &*field.name == "year").unwrap();
        assert_eq!(relation.schema()[year].ty, DataType::Int64);
        let after = |year_is: i128| {
            let column = Expr::column(ColumnId(year as u32), DataType::Int64);
            Expr::compare(CompareOp::Gt, column, Expr::literal(Value::Integer(year_is), DataType::Int64))
        };
        let rows = read(&*relation, vec![after(2023)], 100).unwrap();
        assert_eq!((rows.len(), rows[149][year].as_str()), (150, "2024"));
        assert!(read(&*relation, vec![after(2022)], 100).is_err());
        let bounds = &relation.statistics().columns[year];
        assert_eq!((bounds.min.clone(), bounds.nulls), (Some(Value::Integer(2023)), Some(150)));
    }

    #[test]
    fn every_codec_is_read() {
        use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
        let directory = Directory::new();
        for codec in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::BROTLI(BrotliLevel::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let path = directory.path("a.parquet");
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
            let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
            let properties = WriterProperties::builder().set_compression(codec).build();
            let mut writer =
                ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let rows =
                read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], 2048)
                    .unwrap();
            assert!(rows.len() == 1000 && rows[999] == ["999"], "{codec:?}");
        }
    }

    #[test]
    fn damaged_files_are_errors_that_name_them() {
        let directory = Directory::new();
        let whole = directory.path("a.parquet");
        sample(&whole, 0, 2000);
        let bytes = std::fs::read(&whole).unwrap();
        let missing =
            open(&directory.path("none.parquet"), &Options::default(), &CancelFlag::default()).unwrap_err();
        assert!(missing.kind() == ErrorKind::Io && missing.message().contains("none.parquet"));
        for cut in [0, 3, 100, bytes.len() / 2, bytes.len() - 1] {
            let path = directory.write("cut.parquet", &bytes[..cut]);
            let error = open(&path, &Options::default(), &CancelFlag::default()).unwrap_err();
            assert!(error.kind() == ErrorKind::Input && error.message().contains("cut.parquet"), "{error}");
        }
        // Flipped bytes may have any result except a panic.
        for step in 0..200 {
            let mut damaged = bytes.clone();
            damaged[step * 37 % bytes.len()] ^= 0x55;
            let path = directory.write("damaged.parquet", &damaged);
            let Ok(relation) = open(&path, &Options::default(), &CancelFlag::default()) else { continue };
            // With a filter, page indexes are read, too.
            let id = Expr::column(ColumnId(0), DataType::Int64);
            let below = Expr::compare(CompareOp::Lt, id, Expr::literal(Value::Integer(7), DataType::Int64));
            for filters in [vec![], vec![below]] {
                if let Err(error) = read(&*relation, filters, 2048) {
                    assert!(error.message().contains("damaged.parquet"), "{error}");
                }
            }
        }
    }

    #[test]
    fn long_values_are_reserved_before_they_are_decoded() {
        const LIMIT: usize = 64 << 20;
        let directory = Directory::new();
        let path = directory.path("long.parquet");
        let scan = |values: ArrayRef| {
            write(&path, vec![("a", values)], 100);
            let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
            let memory = Arc::new(MemoryBudget::new(LIMIT));
            let context = QueryContext { memory: memory.clone(), ..QueryContext::default() };
            let source = relation.scan(&ScanRequest::all(vec![(ColumnId(0), 0)]), &context)?;
            let (mut worker, mut chunk, mut bytes) = (source.worker()?, Chunk::new(), 0);
            while worker.next(&mut chunk)? {
                let views = chunk.vector(0).values::<entasis_vector::StringView>();
                bytes += views[..chunk.len()].iter().map(|view| view.len()).sum::<usize>();
            }
            drop((worker, source));
            assert_eq!(memory.used(), 0);
            Ok::<_, Error>((bytes, memory.peak()))
        };
        let texts = |rows: usize, bytes: usize| -> Vec<String> {
            (0..rows).map(|row| char::from(b'a' + row as u8).to_string().repeat(bytes)).collect()
        };
        for (rows, bytes) in [(20, 6 << 20), (1, 20 << 20)] {
            let texts = texts(rows, bytes);
            let blobs = texts.iter().map(|text| text.as_bytes());
            for values in [
                Arc::new(StringArray::from_iter_values(&texts)) as ArrayRef,
                Arc::new(arrow_array::BinaryArray::from_iter_values(blobs)),
            ] {
                let (read, peak) = scan(values).unwrap();
                assert_eq!(read, rows * bytes);
                assert!((bytes..LIMIT).contains(&peak), "{peak} for {rows} of {bytes}");
            }
        }
        let error = scan(Arc::new(StringArray::from_iter_values(texts(1, 100 << 20)))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
        assert!(error.message().contains("long values of Parquet files"), "{error}");
    }
}
