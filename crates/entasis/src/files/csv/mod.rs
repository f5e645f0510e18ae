//! CSV: options, and a relation over files of separated values.
//!
//! | module | subject |
//! |---|---|
//! | [`record`] | bytes to records and fields: the one place that knows quotes |
//! | [`sniff`] | guessing delimiter, quote, header and types from the first rows |
//! | [`field`] | fields to values |
//! | [`read`] | the parallel scan |
//! | [`write`] | rows to text |

mod field;
mod read;
mod record;
mod sniff;
pub(super) mod write;

pub use read::open;

use super::type_name::parse_columns;
use super::{count_option, flag_option, text_option};
use entasis_vector::{DataType, Error, Result, Schema, Value};

/// How separated values are to be read. What is not said is guessed from the first rows.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Between fields; ASCII.
    pub delimiter: Option<u8>,
    /// Around fields; `Some(None)`: quotes are text like any other.
    pub quote: Option<Option<u8>>,
    /// Makes the next byte text within quotes; by default a quote is written twice.
    pub escape: Option<u8>,
    /// Whether the first row holds the names of the columns.
    pub header: Option<bool>,
    /// What is read as NULL. An empty field of a type other than VARCHAR always is.
    pub null: String,
    /// Lines to skip at the start of each file.
    pub skip: usize,
    /// All columns: names and types. Nothing about types is guessed then.
    pub columns: Option<Schema>,
    /// Types of some columns, by name.
    pub types: Vec<(String, DataType)>,
    /// Read every column as VARCHAR.
    pub all_varchar: bool,
    /// Leave out rows that cannot be read instead of raising an error.
    pub ignore_errors: bool,
    /// Rows that are looked at to guess.
    pub sample_rows: usize,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: None,
            quote: None,
            escape: None,
            header: None,
            null: String::new(),
            skip: 0,
            columns: None,
            types: Vec::new(),
            all_varchar: false,
            ignore_errors: false,
            sample_rows: 20_480,
        }
    }
}

impl CsvOptions {
    /// Sets an option by its SQL name, as in `read_csv('…', delim => '|')`.
    ///
    /// # Errors
    /// Input, if there is no such option or it does not take the value.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "delim" | "delimiter" | "sep" | "separator" => self.delimiter = Some(byte_option(name, value)?),
            "quote" => {
                self.quote = Some(match value {
                    Value::Text(text) if text.is_empty() => None,
                    value => Some(byte_option(name, value)?),
                });
            }
            "escape" => {
                self.escape = match value {
                    Value::Text(text) if text.is_empty() => None,
                    value => Some(byte_option(name, value)?),
                };
            }
            "header" => self.header = Some(flag_option(name, value)?),
            "nullstr" | "null" => self.null = text_option(name, value)?.to_owned(),
            "skip" => self.skip = count_option(name, value)?,
            "all_varchar" => self.all_varchar = flag_option(name, value)?,
            "ignore_errors" => self.ignore_errors = flag_option(name, value)?,
            "sample_size" => self.sample_rows = count_option(name, value)?.max(1),
            "types" | "dtypes" | "column_types" => self.types = parse_columns(text_option(name, value)?)?,
            "columns" => {
                let columns = parse_columns(text_option(name, value)?)?;
                let fields = columns.into_iter().map(|(name, ty)| entasis_vector::Field::new(name, ty));
                self.columns = Some(fields.collect());
            }
            "auto_detect" => _ = flag_option(name, value)?,
            _ => {
                return Err(Error::input(format!("there is no CSV option '{name}'")).with_hint(
                    "the options are delim, quote, escape, header, nullstr, skip, types, columns, all_varchar, \
                     ignore_errors and sample_size",
                ));
            }
        }
        Ok(())
    }

    /// The type that the options say for a column, if they do.
    fn type_of(&self, name: &str) -> Option<DataType> {
        self.types.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, ty)| *ty)
    }
}

/// The value of an option that is one ASCII character; `\t` is the tabulator.
fn byte_option(name: &str, value: &Value) -> Result<u8> {
    match text_option(name, value)? {
        "\\t" => Ok(b'\t'),
        text => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(Error::input(format!("option {name} takes one ASCII character, not '{text}'"))),
        },
    }
}

/// How the bytes of a file are cut into fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect {
    delimiter: u8,
    quote: Option<u8>,
    escape: Option<u8>,
    /// Whether an empty line is a row. It is, of one NULL, in files of one column.
    blank_rows: bool,
}
