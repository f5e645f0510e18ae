//! The options of `COPY … TO`, by the format that they are of.

use crate::Format;
use crate::codec::Codec;
use crate::csv::write::WriteOptions;
use crate::json::JsonRows;
use crate::option_values::{count_option, flag_option, plain, text_option};
use crate::parquet::PageCompression;
use entasis_vector::{Error, Result, Schema, Value};

/// The options of `COPY … TO`.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) format: Format,
    pub(super) csv: WriteOptions,
    pub(super) json: JsonRows,
    /// Of CSV and JSON.
    pub(super) codec: Codec,
    /// Of the pages of Parquet.
    pub(super) compression: PageCompression,
    pub(super) row_group_rows: usize,
}

impl Settings {
    pub(super) fn new(path: &str, schema: &Schema, options: &[(String, Value)]) -> Result<Settings> {
        let plain_name = Codec::uncompressed_name(path.as_ref());
        let mut format = None;
        let mut csv = WriteOptions::default();
        if crate::extension(&plain_name).as_deref() == Some("tsv") {
            csv.set("delim", &plain(&Value::Text("\\t".into())))?;
        }
        let mut compression = None;
        // Lines of objects can be appended to, but a file called .json is one value.
        let mut array = crate::extension(&plain_name).as_deref() == Some("json");
        let mut row_group_rows = entasis_storage::ROW_GROUP_ROWS;
        // Options that only one format has.
        let mut of_format: Vec<(&str, Format)> = Vec::new();
        for (name, value) in options {
            let value = &plain(value);
            match name.to_ascii_lowercase().as_str() {
                "format" => format = Some(Format::of_name(text_option(name, value)?)?),
                "compression" | "codec" => compression = Some((name, value.clone())),
                "array" => {
                    array = flag_option(name, value)?;
                    of_format.push((name, Format::Json));
                }
                "row_group_size" => {
                    row_group_rows = count_option(name, value)?.max(1);
                    of_format.push((name, Format::Parquet));
                }
                lower if csv.set(lower, value)? => of_format.push((name, Format::Csv)),
                _ => {
                    return Err(Error::input(format!("COPY TO has no option '{name}'")).with_hint(
                        "the options are format; header, delim, quote, nullstr, dateformat and timestampformat for CSV; \
                         row_group_size for Parquet; array for JSON; \
                         compression",
                    ));
                }
            }
        }
        let format = format.map_or_else(|| Format::promised(path.as_ref()), Ok)?;
        let mut codec = Codec::Plain;
        let mut of_pages = PageCompression::default();
        match (format, compression) {
            (Format::Csv | Format::Json, option) => {
                let given = option.map(|(name, value)| Codec::of_option(name, &value)).transpose()?.flatten();
                codec = given.unwrap_or_else(|| Codec::of_path(path.as_ref()));
            }
            (Format::Parquet, Some((name, value))) => {
                of_pages = PageCompression::of_name(text_option(name, &value)?)?
            }
            (Format::Parquet, None) => {}
        }
        match of_format.iter().find(|(_, other)| *other != format) {
            Some((name, _)) => Err(Error::input(format!("COPY TO {format} has no option '{name}'"))),
            None => Ok(Settings {
                json: JsonRows::new(schema, array),
                format,
                csv,
                codec,
                compression: of_pages,
                row_group_rows,
            }),
        }
    }
}
