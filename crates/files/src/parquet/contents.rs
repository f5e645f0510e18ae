//! What the footers of the files of a relation say: row groups, and bounds of their columns.

use super::footer::{self, guarded};
use crate::bounds::Bounds;
use crate::columns::Origin;
use arrow_array::{Array, ArrayRef};
use entasis_arrow::array_to_vector;
use entasis_engine::relation::ScanRequest;
use entasis_vector::{ColumnId, DataType, Error, Result, Schema, Value, Vector};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::file::statistics::Statistics as ColumnBounds;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A file: its path, its footer, and where the relation's columns are in it.
pub(super) struct ParquetFile {
    pub(super) path: PathBuf,
    pub(super) metadata: ArrowReaderMetadata,
    /// The same footer for readers, with other array types for some columns.
    pub(super) reading: ArrowReaderMetadata,
    /// That with the page indexes, once they were wanted.
    pub(super) indexed: OnceLock<ArrowReaderMetadata>,
    pub(super) columns: Vec<Origin>,
}

impl ParquetFile {
    /// The number in the file of a column of the relation.
    pub(super) fn column(&self, column: usize) -> Option<usize> {
        match self.columns[column] {
            Origin::Column(place) => Some(place),
            Origin::Value(_) => None,
        }
    }

    /// The name of a row group for messages.
    pub(super) fn place(&self, group: usize) -> String {
        format!("{}, row group {group}", footer::place(&self.path))
    }

    /// Refuses columns with a compression that is not supported.
    pub(super) fn check_codecs(&self, group: usize, columns: &[Option<usize>]) -> Result<()> {
        let parts = self.metadata.parquet_schema();
        for (leaf, chunk) in self.metadata.metadata().row_group(group).columns().iter().enumerate() {
            if chunk.compression() == Compression::LZO
                && columns.contains(&Some(parts.get_column_root_idx(leaf)))
            {
                let (place, column) = (self.place(group), chunk.column_path());
                return Err(Error::not_supported(format!("the compression LZO ({place}, column {column})")));
            }
        }
        Ok(())
    }
}

/// What is known of all files of a relation.
pub(super) struct Contents {
    pub(super) name: String,
    pub(super) schema: Schema,
    /// For each column, why it cannot be read.
    pub(super) problems: Vec<Option<Error>>,
    pub(super) files: Vec<ParquetFile>,
    /// For each column its bounds in each row group of all files, read when first needed.
    pub(super) bounds: Box<[OnceLock<Vec<Bounds>>]>,
    /// For each row group of all files the number of its first row; then the number of all rows.
    pub(super) starts: Vec<u64>,
}

impl Contents {
    /// The row groups of all files, in order: file, row group.
    pub(super) fn row_groups(&self) -> impl Iterator<Item = (usize, usize)> {
        let groups = |(index, file): (usize, &ParquetFile)| {
            (0..file.metadata.metadata().num_row_groups()).map(move |group| (index, group))
        };
        self.files.iter().enumerate().flat_map(groups)
    }

    /// Refuses columns that cannot be read.
    pub(super) fn check(&self, request: &ScanRequest) -> Result<()> {
        // There is none for the numbers of rows.
        let problem = |(_, column): &(ColumnId, usize)| self.problems.get(*column)?.clone();
        request.columns.iter().find_map(problem).map_or(Ok(()), Err)
    }

    /// The rows of all files.
    pub(super) fn all_rows(&self) -> u64 {
        self.row_groups().map(|(file, group)| self.rows(file, group)).sum()
    }

    pub(super) fn rows(&self, file: usize, group: usize) -> u64 {
        self.files[file].metadata.metadata().row_group(group).num_rows().max(0) as u64
    }

    pub(super) fn bounds(&self, column: usize) -> &[Bounds] {
        self.bounds[column].get_or_init(|| {
            let mut bounds = Vec::new();
            for file in 0..self.files.len() {
                bounds.extend(self.file_bounds(file, column));
            }
            bounds
        })
    }

    /// Bounds of a column in each row group of a file. Bounds that are unknown, incomparable or unreliable
    /// are absent.
    pub(super) fn file_bounds(&self, file_index: usize, column: usize) -> Vec<Bounds> {
        let file = &self.files[file_index];
        let metadata = file.metadata.metadata();
        let mut bounds: Vec<Bounds> = (0..metadata.num_row_groups())
            .map(|group| Bounds {
                min: None,
                max: None,
                occur: false,
                nulls: None,
                rows: self.rows(file_index, group),
            })
            .collect();
        let ty = self.schema[column].ty;
        let place = match &file.columns[column] {
            Origin::Column(place) => *place,
            Origin::Value(value) => {
                return bounds.into_iter().map(|known| Bounds::constant(value, known.rows)).collect();
            }
        };
        let field = file.metadata.schema().field(place);
        // What the file knows of the leaves of a nested column says nothing of its values.
        if ty.is_nested() || !entasis_arrow::from_arrow_field(field).is_ok_and(|own| own == ty) {
            return bounds;
        }
        let statistics = guarded(
            || footer::place(&file.path),
            || {
                let groups = metadata.row_groups();
                let schema = file.metadata.schema();
                let converter =
                    StatisticsConverter::try_new(field.name(), schema, file.metadata.parquet_schema())?;
                let index = converter.parquet_column_index();
                let mins = converter.row_group_mins(groups)?;
                let maxs = converter.row_group_maxes(groups)?;
                let nulls =
                    converter.with_missing_null_counts_as_zero(false).row_group_null_counts(groups)?;
                Ok::<_, parquet::errors::ParquetError>((index, mins, maxs, nulls))
            },
        );
        let Ok((Some(index), mins, maxs, nulls)) = statistics else { return bounds };
        let (mins, maxs) = (values(&mins, ty), values(&maxs, ty));
        for (group, bounds) in bounds.iter_mut().enumerate() {
            if nulls.is_valid(group) {
                bounds.nulls = Some(nulls.value(group));
            }
            // Old writers compared the bytes of strings as signed numbers.
            let chunk = metadata.row_group(group).column(index);
            let dubious = chunk.statistics().is_some_and(|s| s.is_min_max_deprecated())
                && matches!(
                    chunk.column_type(),
                    PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY
                );
            if !dubious {
                bounds.min = mins.get(group).filter(|value| !value.is_null()).cloned();
                bounds.max = maxs.get(group).filter(|value| !value.is_null()).cloned();
                bounds.occur = chunk.statistics().is_some_and(|known| occur(known, chunk.column_type()));
            }
        }
        bounds
    }
}

/// True if the bounds of a column, stored as `stored`, are values of it: writers may cut long ones, and say
/// so. Numbers are never cut; floats are left out, whose NaNs have no place among them, and so are bounds of
/// old writers, who compared unsigned numbers as signed ones.
fn occur(bounds: &ColumnBounds, stored: PhysicalType) -> bool {
    match stored {
        _ if bounds.is_min_max_deprecated() => false,
        PhysicalType::BOOLEAN | PhysicalType::INT32 | PhysicalType::INT64 => true,
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY => {
            bounds.min_is_exact() && bounds.max_is_exact()
        }
        _ => false,
    }
}

/// The elements of a short array; empty if they cannot be converted.
pub(super) fn values(array: &ArrayRef, ty: DataType) -> Vec<Value> {
    let mut vector = Vector::new(ty.physical());
    match array_to_vector(array, 0, array.len(), ty, &mut vector) {
        Ok(()) => (0..array.len()).map(|i| vector.value(i, ty)).collect(),
        Err(_) => Vec::new(),
    }
}
