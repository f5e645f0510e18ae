//! Rows of a row group that its indexes rule out, before anything is decoded.
//!
//! - The **page index** has bounds for each page of a column: pages that cannot have a row for which a
//!   condition holds are not read. Pages of different columns end at different rows, so what each condition
//!   leaves are runs of rows, and all must have a row for it to be read.
//! - Bloom filters and dictionaries say that a row group has no row with one of a few values
//!   ([`super::absent`]).
//!
//! The page index is optional, and is read from the file when a scan with conditions first reaches a row
//! group: footers of many files are opened for their schemas alone. Bounds of pages err on the safe side,
//! like those of row groups.

use super::absent::{VALUES_MAX, wanted_values};
use super::contents::{Contents, ParquetFile, values};
use super::footer::{self, guarded};
use super::morsel::Morsel;
use super::select::Selected;
use crate::bounds::Bounds;
use arrow_array::Array;
use entasis_engine::pruning::PruningPredicate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, Result, Value};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection, RowSelector};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use std::fs::File;

impl ParquetFile {
    /// The footer for readers, with the page indexes if there are any.
    pub(super) fn indexed(&self) -> &ArrowReaderMetadata {
        self.indexed.get_or_init(|| self.with_indexes().unwrap_or_else(|| self.reading.clone()))
    }

    /// The footer for readers with the page indexes, which are now read; `None` without any.
    fn with_indexes(&self) -> Option<ArrowReaderMetadata> {
        let footer = self.reading.metadata();
        let groups = footer.row_groups().iter();
        if !groups.flat_map(|group| group.columns()).any(|chunk| chunk.offset_index_offset().is_some()) {
            return None;
        }
        let read = || {
            let file = File::open(&self.path)?;
            let mut reader = ParquetMetaDataReader::new_with_metadata((**footer).clone())
                .with_page_index_policy(PageIndexPolicy::Optional);
            reader.read_page_indexes(&file)?;
            let options = ArrowReaderOptions::new().with_schema(self.reading.schema().clone());
            ArrowReaderMetadata::try_new(reader.finish()?.into(), options)
        };
        // What cannot be read is not relied on: the data says whether the file is damaged.
        guarded(|| footer::place(&self.path), read).ok()
    }
}

impl Contents {
    /// The rows of `morsel` for which all `conditions` may hold, by page indexes and Bloom filters.
    /// `column_of` knows the relation's columns.
    ///
    /// # Errors
    /// I/O, if the file cannot be opened.
    pub(super) fn indexed_rows(
        &self,
        morsel: &Morsel,
        conditions: &[Expr],
        column_of: &dyn Fn(ColumnId) -> Option<usize>,
    ) -> Result<Selected> {
        let file = &self.files[morsel.file];
        let mut left: Option<RowSelection> = None;
        for condition in conditions {
            let mut ids = Vec::new();
            condition.collect_columns(&mut ids);
            ids.dedup();
            let &[id] = &ids[..] else { continue };
            // Each value would be compared with the bounds of each page.
            if matches!(condition, Expr::InList { list, .. } if list.len() > VALUES_MAX) {
                continue;
            }
            let Some(column) = column_of(id) else { continue };
            if let Some(own) = self.rows_in_pages(file, morsel.group, column, condition) {
                left = Some(left.map_or_else(|| own.clone(), |others| others.intersection(&own)));
            }
        }
        let selected = match left {
            None => Selected::All,
            Some(left) => {
                let (start, end) = (morsel.rows.start as usize, morsel.rows.end as usize);
                let own = RowSelection::from(vec![
                    RowSelector::skip(start),
                    RowSelector::select(end - start),
                    RowSelector::skip((self.rows(morsel.file, morsel.group) as usize).saturating_sub(end)),
                ]);
                let left = left.intersection(&own);
                match left.row_count() {
                    0 => Selected::None,
                    rows if rows == end - start => Selected::All,
                    _ => Selected::Rows(left),
                }
            }
        };
        if matches!(selected, Selected::None) {
            return Ok(selected);
        }
        for (id, wanted) in conditions.iter().filter_map(wanted_values) {
            if let Some(column) = column_of(id)
                && self.lacks(file, morsel.group, column, &wanted)?
            {
                return Ok(Selected::None);
            }
        }
        Ok(selected)
    }

    /// The rows in pages of `column` for which `condition`, which reads nothing else, may hold; `None` if all
    /// may have some, as far as is known.
    fn rows_in_pages(
        &self,
        file: &ParquetFile,
        group: usize,
        column: usize,
        condition: &Expr,
    ) -> Option<RowSelection> {
        let test = PruningPredicate::of(condition, &|_| Some(column))?;
        let place = file.column(column)?;
        let metadata = file.indexed();
        let (columns, offsets) = (metadata.metadata().column_index()?, metadata.metadata().offset_index()?);
        let ty = self.schema[column].ty;
        // Bounds are those of the type in the file.
        let field = file.metadata.schema().field(place);
        if ty.is_nested() || !entasis_arrow::from_arrow_field(field).is_ok_and(|own| own == ty) {
            return None;
        }
        let read = || {
            let schema = file.metadata.schema();
            let pages = StatisticsConverter::try_new(field.name(), schema, file.metadata.parquet_schema())?;
            let only = || [&group].into_iter();
            let groups = metadata.metadata().row_groups();
            Ok::<_, parquet::errors::ParquetError>((
                pages.data_page_mins(columns, offsets, only())?,
                pages.data_page_maxes(columns, offsets, only())?,
                pages.data_page_null_counts(columns, offsets, only())?,
                pages.data_page_row_counts(offsets, groups, only())?,
            ))
        };
        let (mins, maxs, nulls, rows) = guarded(|| file.place(group), read).ok()?;
        let (mins, maxs, rows) = (values(&mins, ty), values(&maxs, ty), rows?);
        let of_group = metadata.metadata().row_group(group).num_rows().max(0) as u64;
        let add = |all: u64, rows: u64| all.checked_add(rows).filter(|&all| all <= of_group);
        if rows.iter().flatten().try_fold(0, add) != Some(of_group) {
            return None;
        }
        let known =
            |bounds: &[Value], page: usize| bounds.get(page).filter(|value| !value.is_null()).cloned();
        let selectors = (0..rows.len()).map(|page| {
            let bounds = Bounds {
                min: known(&mins, page),
                max: known(&maxs, page),
                occur: false,
                nulls: (page < nulls.len() && nulls.is_valid(page)).then(|| nulls.value(page)),
                rows: rows.value(page),
            };
            let row_count = rows.value(page) as usize;
            RowSelector { row_count, skip: !test.may_pass(&|_| Some(bounds.known())) }
        });
        let selectors: Vec<RowSelector> = selectors.collect();
        selectors.iter().any(|run| run.skip).then(|| RowSelection::from(selectors))
    }
}

#[cfg(test)]
mod tests {
    use crate::test_files::{Directory, read};
    use crate::{Options, open};
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use entasis_engine::exec::CancelFlag;
    use entasis_engine::relation::Relation;
    use entasis_vector::expr::{CompareOp, Expr};
    use entasis_vector::{ColumnId, DataType, Value};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use std::fs::File;
    use std::sync::Arc;

    const ROWS: i64 = 1000;

    /// Even numbers that ascend, numbers that do not, and texts, in pages of 100 and of 70 rows.
    fn relation(directory: &Directory) -> Arc<dyn Relation> {
        let even: ArrayRef =
            Arc::new(Int64Array::from_iter((0..ROWS).map(|i| (i % 10 > 0).then_some(2 * i))));
        let mixed: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * 7 % 300 + i)));
        let text: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| format!("t{}", 3 * i))));
        let batch = RecordBatch::try_from_iter([("even", even), ("mixed", mixed), ("text", text)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(600))
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(10)
            .set_dictionary_enabled(false)
            .build();
        let path = directory.path("a.parquet");
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        open(&path, &Options::default(), &CancelFlag::default()).unwrap()
    }

    fn number(column: u32, op: CompareOp, value: i64) -> Expr {
        let column = Expr::column(ColumnId(column), DataType::Int64);
        Expr::compare(op, column, Expr::literal(Value::Integer(value.into()), DataType::Int64))
    }

    #[test]
    fn pages_without_wanted_rows_are_not_read() {
        let directory = Directory::new();
        let relation = relation(&directory);
        // More than a quarter of the rows in the page are wanted: the page is given whole.
        let rows = read(&*relation, vec![number(0, CompareOp::GtEq, 1900)], 2048).unwrap();
        assert_eq!((rows.len(), &*rows[1][0]), (100, "1802"));
        let rows = read(&*relation, vec![number(0, CompareOp::GtEq, 1980)], 2048).unwrap();
        assert_eq!((rows.len(), &*rows[0][0]), (9, "1982"));
    }

    #[test]
    fn no_row_is_lost() {
        let directory = Directory::new();
        let relation = relation(&directory);
        let all = read(&*relation, vec![], 2048).unwrap();
        let ops = [CompareOp::Lt, CompareOp::GtEq, CompareOp::Eq, CompareOp::NotEq];
        for seed in 0..200i64 {
            let bounds = [seed * 7919 % 2100, seed * 104_729 % 1400];
            let own = [ops[seed as usize % 4], ops[seed as usize / 4 % 4]];
            let filters = vec![number(0, own[0], bounds[0]), number(1, own[1], bounds[1])];
            let is_wanted = |row: &&Vec<String>| {
                (0..2).all(|column| {
                    let Ok(value) = row[column].parse::<i64>() else { return false };
                    match own[column] {
                        CompareOp::Lt => value < bounds[column],
                        CompareOp::GtEq => value >= bounds[column],
                        CompareOp::Eq => value == bounds[column],
                        _ => value != bounds[column],
                    }
                })
            };
            let wanted: Vec<&Vec<String>> = all.iter().filter(is_wanted).collect();
            for chunk_rows in [3, 2048] {
                let rows = read(&*relation, filters.clone(), chunk_rows).unwrap();
                let found: Vec<&Vec<String>> = rows.iter().filter(is_wanted).collect();
                assert_eq!(found, wanted, "{filters:?}");
            }
        }
    }
}
