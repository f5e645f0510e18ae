//! How files are read: options by their SQL names, as in `read_csv('f', delim => '|')`.
//!
//! The meaning of each option is documented with its field ([`FileOptions`], [`CsvOptions`]), its values in
//! [`super::option_values`].

use super::Format;
use super::csv::CsvOptions;
use super::option_values::{ParseType, plain, text_option};
use super::paths::FileOptions;
use entasis_functions::Argument;
use entasis_vector::{Error, Result, Value};

/// How files are read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The format; by default that of the extension.
    pub format: Option<Format>,
    /// Options of every format.
    pub files: FileOptions,
    /// Options of CSV.
    pub csv: CsvOptions,
}

impl Options {
    /// Sets an option of a call of `function`.
    ///
    /// # Errors
    /// Input, if there is no such option or the value is not valid for it.
    pub(super) fn set(
        &mut self,
        function: &str,
        name: &str,
        value: &Argument,
        parse: ParseType,
    ) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        let is_csv = self.format == Some(Format::Csv);
        if self.files.set(&lower, value, parse)? || (is_csv && self.csv.set(&lower, value, parse)?) {
            return Ok(());
        }
        let names = "union_by_name, hive_partitioning, hive_types and filename";
        let hint = match is_csv {
            true => format!("the options are {}, {names}", CsvOptions::NAMES),
            false => format!("the options are {names}"),
        };
        Err(Error::input(format!("{function} has no option '{name}'")).with_hint(hint))
    }

    /// Sets an option of `COPY … FROM`. The columns are those of the table, so options that would change them
    /// do not exist here.
    ///
    /// # Errors
    /// Those of [`Options::set`].
    pub(super) fn set_for_copy(&mut self, name: &str, value: &Value, parse: ParseType) -> Result<()> {
        let (lower, value) = (name.to_ascii_lowercase(), plain(value));
        const COLUMNS: [&str; 9] = [
            "columns",
            "names",
            "column_names",
            "types",
            "dtypes",
            "column_types",
            "all_varchar",
            "store_rejects",
            "rejects_limit",
        ];
        if lower == "format" {
            self.format = Some(Format::of_name(text_option(name, &value)?)?);
            return Ok(());
        }
        if !COLUMNS.contains(&lower.as_str()) && self.csv.set(&lower, &value, parse)? {
            return Ok(());
        }
        Err(Error::input(format!("COPY FROM has no option '{name}'")).with_hint(
            "the options are format, delim, quote, escape, header, nullstr, skip, comment, encoding, compression, \
             dateformat, timestampformat, strict_mode, null_padding and ignore_errors",
        ))
    }
}
