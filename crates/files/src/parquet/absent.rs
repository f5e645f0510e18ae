//! Values that a row group lacks, known before its data are decoded.
//!
//! - A **Bloom filter** knows most of the values that a column does not have.
//! - A **dictionary** knows all of them, if all pages of the column refer to it. It is read only if it is
//!   small beside what is saved ([`DICTIONARY_OF`]), since it is read again if the row group is.
//!
//! Both are asked for conditions that want one of a few values, after the bounds of the row group and its
//! pages have let it pass. What cannot be read is not relied on: the data says whether the file is damaged.

use super::contents::{Contents, ParquetFile};
use super::footer::{self, guarded};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::sync::Arc;

/// The most values that are compared with the bounds of pages, or looked up in a Bloom filter or dictionary.
pub(super) const VALUES_MAX: usize = 64;
/// A dictionary is read if the row group has so many times as many bytes.
const DICTIONARY_OF: i64 = 8;

impl Contents {
    /// True if no row of a row group has one of these values in a column.
    ///
    /// # Errors
    /// I/O, if the file cannot be opened.
    pub(super) fn lacks(
        &self,
        file: &ParquetFile,
        group: usize,
        column: usize,
        wanted: &[&Value],
    ) -> Result<bool> {
        let Some(chunk) = self.leaf(file, group, column) else { return Ok(false) };
        let ty = self.schema[column].ty;
        let stored = |value: &&Value| stored_bytes(value, ty, chunk.column_type());
        let Some(wanted) = wanted.iter().map(stored).collect::<Option<Vec<_>>>() else { return Ok(false) };
        let has_dictionary =
            is_worth_reading(chunk, file.metadata.metadata().row_group(group).compressed_size());
        if chunk.bloom_filter_offset().is_none() && !has_dictionary {
            return Ok(false);
        }
        let open = || File::open(&file.path).map_err(|e| Error::io(footer::place(&file.path), &e));
        let handle = Arc::new(open()?);
        if chunk.bloom_filter_offset().is_some()
            && let Ok(Some(filter)) =
                guarded(|| file.place(group), || Sbbf::read_from_column_chunk(chunk, &*handle))
            && !wanted.iter().any(|value| filter.check(&value[..]))
        {
            return Ok(true);
        }
        let dictionary = || -> parquet::errors::Result<_> {
            SerializedPageReader::new(handle.clone(), chunk, 0, None)?.get_next_page()
        };
        match has_dictionary.then(|| guarded(|| file.place(group), dictionary)) {
            Some(Ok(Some(Page::DictionaryPage {
                buf,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            }))) => Ok(entries(&buf, chunk.column_type()).is_some_and(|entries| !has_any(entries, &wanted))),
            _ => Ok(false),
        }
    }

    /// A column of a row group, if it is one of plain values that have in the file the type that they have in
    /// the relation.
    fn leaf<'a>(
        &self,
        file: &'a ParquetFile,
        group: usize,
        column: usize,
    ) -> Option<&'a ColumnChunkMetaData> {
        let place = file.column(column)?;
        let field = file.metadata.schema().field(place);
        let own = entasis_arrow::from_arrow_field(field).ok()?;
        let schema = file.metadata.parquet_schema();
        let mut leaves = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == place);
        match (leaves.next(), leaves.next()) {
            (Some(leaf), None) if own == self.schema[column].ty => {
                Some(file.metadata.metadata().row_group(group).column(leaf))
            }
            _ => None,
        }
    }
}

/// True if all pages of a column refer to a dictionary, which is small beside its row group of so many bytes.
fn is_worth_reading(chunk: &ColumnChunkMetaData, row_group: i64) -> bool {
    let is_dictionary = |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    let refers = match chunk.page_encoding_stats_mask() {
        Some(pages) => pages.encodings().all(is_dictionary),
        // Levels are run-length encoded, or packed by bits. A dictionary itself may count as plain, as may
        // pages that do not refer to it.
        #[expect(deprecated, reason = "files have it")]
        None => {
            chunk.encodings().all(|e| is_dictionary(e) || matches!(e, Encoding::RLE | Encoding::BIT_PACKED))
        }
    };
    let bytes = chunk.dictionary_page_offset().map(|start| chunk.data_page_offset().saturating_sub(start));
    refers && bytes.is_some_and(|bytes| bytes > 0 && bytes.saturating_mul(DICTIONARY_OF) <= row_group)
}

/// The bytes of a value of type `ty` in a column stored as `stored`; `None` if that is not known.
fn stored_bytes(value: &Value, ty: DataType, stored: PhysicalType) -> Option<Vec<u8>> {
    let is_date = matches!(ty, DataType::Date);
    Some(match (value, stored) {
        // Unsigned numbers are stored as the signed ones with the same bits; dates in 64 bits are
        // milliseconds.
        (Value::Integer(number), PhysicalType::INT32) if ty.is_integer() || is_date => {
            (*number as i32).to_le_bytes().into()
        }
        (Value::Integer(number), PhysicalType::INT64) if ty.is_integer() => {
            (*number as i64).to_le_bytes().into()
        }
        (Value::Text(text), PhysicalType::BYTE_ARRAY) => text.as_bytes().into(),
        (Value::Bytes(bytes), PhysicalType::BYTE_ARRAY) => bytes.to_vec(),
        _ => return None,
    })
}

/// The values of a dictionary; `None` if they are not stored as [`stored_bytes`] knows, or damaged.
fn entries(page: &[u8], stored: PhysicalType) -> Option<Vec<&[u8]>> {
    let width = match stored {
        PhysicalType::INT32 => 4,
        PhysicalType::INT64 => 8,
        PhysicalType::BYTE_ARRAY => {
            let (mut left, mut all) = (page, Vec::new());
            while let Some((length, rest)) = left.split_first_chunk() {
                let (entry, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                all.push(entry);
                left = rest;
            }
            return Some(all);
        }
        _ => return None,
    };
    Some(page.chunks_exact(width).collect())
}

fn has_any(entries: Vec<&[u8]>, wanted: &[Vec<u8>]) -> bool {
    entries.into_iter().any(|entry| wanted.iter().any(|wanted| wanted == entry))
}

/// The column of which `condition` wants one of a few values, and these.
pub(super) fn wanted_values(condition: &Expr) -> Option<(ColumnId, Vec<&Value>)> {
    match condition {
        Expr::Compare { op: CompareOp::Eq, left, right } => match (&**left, &**right) {
            (Expr::Column { id, .. }, Expr::Literal { value, .. })
            | (Expr::Literal { value, .. }, Expr::Column { id, .. }) => Some((*id, vec![value])),
            _ => None,
        },
        Expr::InList { input, list } if list.len() <= VALUES_MAX => match &**input {
            Expr::Column { id, .. } => Some((*id, list.iter().collect())),
            _ => None,
        },
        _ => None,
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

    const ROWS: i64 = 6000;

    /// Even numbers and texts of multiples of three below 600, each ten times, in two row groups, and long
    /// texts. Only dictionaries and Bloom filters of the first two can be read: their data are damaged.
    fn relation(directory: &Directory, dictionary: bool) -> Arc<dyn Relation> {
        let even = (0..ROWS).map(|i| (i % 10 > 0).then_some(i % 300 * 2));
        let texts = (0..ROWS).map(|i| format!("t{}", i % 200 * 3));
        let long = (0..ROWS).map(|i| format!("{i}").repeat(20));
        let columns: [(&str, ArrayRef); 3] = [
            ("even", Arc::new(Int64Array::from_iter(even))),
            ("text", Arc::new(StringArray::from_iter_values(texts))),
            ("long", Arc::new(StringArray::from_iter_values(long))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(3000))
            .set_dictionary_enabled(dictionary)
            .set_column_dictionary_enabled("long".into(), false);
        for column in ["even", "text"] {
            properties = properties.set_column_bloom_filter_enabled(column.into(), !dictionary);
        }
        let path = directory.path("a.parquet");
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        let metadata = writer.close().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for chunk in metadata.row_groups().iter().flat_map(|group| &group.columns()[..2]) {
            let (start, length) = chunk.byte_range();
            bytes[chunk.data_page_offset() as usize..(start + length) as usize].fill(0xff);
        }
        std::fs::write(&path, bytes).unwrap();
        open(&path, &Options::default(), &CancelFlag::default()).unwrap()
    }

    fn number(value: i64) -> Expr {
        let column = Expr::column(ColumnId(0), DataType::Int64);
        Expr::compare(CompareOp::Eq, column, Expr::literal(Value::Integer(value.into()), DataType::Int64))
    }

    fn text(values: &[&str]) -> Expr {
        let list = values.iter().map(|&value| Value::Text(value.into())).collect();
        Expr::InList { input: Box::new(Expr::column(ColumnId(1), DataType::Varchar)), list }
    }

    #[test]
    fn values_that_a_bloom_filter_lacks_are_not_looked_for() {
        let directory = Directory::new();
        let relation = relation(&directory, false);
        let is_read = |filter: Expr| read(&*relation, vec![filter], 2048).is_err();
        assert!(is_read(text(&["t300"])) && is_read(number(84)));
        // A filter is wrong about one value in a hundred.
        let absent = (0..100).filter(|i| is_read(text(&[&format!("t{}", 3 * i + 1)]))).count();
        assert!(absent < 10, "{absent} of 100 texts that are not there were looked for");
        let absent = (0..100).filter(|i| is_read(number(2 * i + 1))).count();
        assert!(absent < 10, "{absent} of 100 numbers that are not there were looked for");
    }

    #[test]
    fn values_that_a_dictionary_lacks_are_not_looked_for() {
        let directory = Directory::new();
        let relation = relation(&directory, true);
        let is_read = |filter: Expr| read(&*relation, vec![filter], 2048).is_err();
        for i in 0..200 {
            let (there, absent) = (format!("t{}", 3 * i), format!("t{}", 3 * i + 1));
            assert!(is_read(text(&[&there, &absent])), "{there}");
            assert!(!is_read(text(&[&absent])), "{absent}");
            assert_eq!(is_read(number(2 * i)), i % 10 > 0, "{}", 2 * i);
            assert!(!is_read(number(2 * i + 1)), "{}", 2 * i + 1);
        }
    }
}
