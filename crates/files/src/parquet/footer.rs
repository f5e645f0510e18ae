//! Footers of Parquet files, and calls of the Parquet library, which may fail in any way on damaged bytes.

use crate::pipe::is_pipe;
use arrow_schema::{DECIMAL64_MAX_PRECISION, DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};
use entasis_vector::{Error, Result};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// The most bytes of a compressed dictionary in a file whose column is read as codes.
const DICTIONARY_BYTES: i64 = 16 << 10;

/// Reads the footer of a file.
///
/// # Errors
/// I/O; input, if the file is malformed.
pub(super) fn load(path: &Path) -> Result<ArrowReaderMetadata> {
    let failed = |e| Error::io(place(path), &e);
    if is_pipe(&std::fs::metadata(path).map_err(failed)?) {
        return Err(Error::input(format!("{} is a pipe; a Parquet file is read from its end", place(path)))
            .with_hint("write it to a file first"));
    }
    let file = File::open(path).map_err(failed)?;
    guarded(|| place(path), || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))
}

/// The name of a file for messages.
pub(super) fn place(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// The footer of a file for reading its columns as those Arrow types that take the least work. `None` if the
/// library refuses them.
pub(super) fn as_they_stand(metadata: &ArrowReaderMetadata) -> Option<ArrowReaderMetadata> {
    let (footer, schema) = (metadata.metadata(), metadata.schema());
    let columns = footer.file_metadata().schema_descr();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    for leaf in 0..columns.num_columns() {
        let field = &mut fields[columns.get_column_root_idx(leaf)];
        let integers =
            matches!(columns.column(leaf).physical_type(), PhysicalType::INT32 | PhysicalType::INT64);
        let ty = match field.data_type() {
            ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8 if is_coded(footer, leaf) => {
                ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8))
            }
            ArrowType::Utf8 | ArrowType::LargeUtf8 => ArrowType::Utf8View,
            ArrowType::Binary | ArrowType::LargeBinary => ArrowType::BinaryView,
            // Their range of years exceeds that of nanoseconds in 64 bits.
            ArrowType::Timestamp(_, zone) if columns.column(leaf).physical_type() == PhysicalType::INT96 => {
                ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
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

/// True if every row group encodes the column with a short dictionary only.
fn is_coded(footer: &ParquetMetaData, leaf: usize) -> bool {
    let mut chunks = footer.row_groups().iter().map(|group| group.column(leaf));
    footer.num_row_groups() > 0
        && chunks.all(|chunk| {
            let is_only =
                |encoding| chunk.page_encoding_stats_mask().is_some_and(|mask| mask.is_only(encoding));
            let length =
                chunk.dictionary_page_offset().and_then(|start| chunk.data_page_offset().checked_sub(start));
            length.is_some_and(|length| (1..=DICTIONARY_BYTES).contains(&length))
                && (is_only(Encoding::RLE_DICTIONARY) || is_only(Encoding::PLAIN_DICTIONARY))
        })
}

/// Runs a call of the Parquet library on the bytes at `place`. The bytes are untrusted, so a panic is turned
/// into the error that they contradict each other.
pub(super) fn guarded<T, E: fmt::Display>(
    place: impl Fn() -> String,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T> {
    let malformed = |what: &dyn fmt::Display| {
        Error::input(format!("{} is not valid Parquet: {what}", place()))
            .with_hint("the file may be truncated or damaged; write it again")
    };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| malformed(&error)),
        Err(_) => Err(malformed(&"its bytes contradict each other")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_an_error_that_says_where() {
        let nothing: Option<u8> = std::hint::black_box(None);
        let error =
            guarded(|| "'a.parquet', row group 3".into(), || Ok::<u8, String>(nothing.unwrap())).unwrap_err();
        assert_eq!(
            error.message(),
            "'a.parquet', row group 3 is not valid Parquet: its bytes contradict each other"
        );
    }
}
