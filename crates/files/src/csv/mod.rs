//! CSV: options, and a relation over files of separated values.
//!
//! | module | subject |
//! |---|---|
//! | [`dialect`] | the rules by which bytes are split into fields |
//! | [`encoding`] | converts the bytes of a file to UTF-8 |
//! | [`record`] | splits bytes into records and fields: the only module that knows quotes |
//! | [`parse`] | fast conversion of texts of the common types to values |
//! | [`lines`] | counts lines, and skips those before the first row |
//! | [`guess`] | the types that texts may have |
//! | [`sniff`] | guesses delimiter, quote, header and types from the first rows |
//! | [`open`] | combines what is found in several files into one relation |
//! | [`time_format`] | dates in other formats than ISO's |
//! | [`field`] | fields to values |
//! | [`files`] | what is known of the files of a relation |
//! | [`block`] | cuts files into blocks of whole records |
//! | [`read`] | the parallel scan |
//! | [`reject`] | rejected rows, as rows of a table |
//! | [`write`] | rows to text |
//! | [`text`] | text being written, and values at its end |

mod block;
mod dialect;
mod encoding;
mod field;
mod files;
mod guess;
mod lines;
mod open;
mod parse;
mod read;
mod record;
mod reject;
mod sniff;
pub(super) mod text;
mod time_format;
pub(super) mod write;

pub use encoding::Encoding;
pub use open::open;
pub use reject::{Reject, RejectKind, Rejects};
pub use time_format::TimeFormats;

use super::codec::Codec;
use super::delimiter::Delimiter;
use super::option_values::{
    ParseType, byte_option, count_option, delimiter_option, flag_option, text_option, texts_option,
    type_option, types_option,
};
use entasis_functions::Argument;
use entasis_functions::TimeZone;
use entasis_vector::{DataType, Error, Field, Result, Schema, Value};
use record::Span;
use std::path::Path;
use std::sync::Arc;
use time_format::TimeFormat;

/// How separated values are read. Options that are not given are guessed from the first rows.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// Separates fields.
    pub delimiter: Option<Delimiter>,
    /// Encloses fields; `Some(None)`: quotes are ordinary text.
    pub quote: Option<Option<u8>>,
    /// Within quotes, makes the next byte ordinary text; by default a quote is doubled instead.
    pub escape: Option<u8>,
    /// Lines that begin with it are skipped.
    pub comment: Option<u8>,
    /// Whether the first row holds the names of the columns.
    pub header: Option<bool>,
    /// Texts that are read as NULL. An empty field of a type other than VARCHAR is always NULL; text in
    /// quotes never is.
    pub nulls: Vec<Vec<u8>>,
    /// Lines to skip at the start of each file.
    pub skip: usize,
    /// The encoding of the files.
    pub encoding: Encoding,
    /// How the files are compressed; by default as their names say.
    pub codec: Option<Codec>,
    /// The formats of dates and timestamps.
    pub formats: TimeFormats,
    /// Names and types of all columns. If given, no types are guessed.
    pub columns: Option<Schema>,
    /// Names of the first columns, instead of those in the header.
    pub names: Vec<String>,
    /// Types of some columns, by name.
    pub types: Vec<(String, DataType)>,
    /// Types of the first columns, by position.
    pub first_types: Vec<DataType>,
    /// Read every column as VARCHAR.
    pub all_varchar: bool,
    /// Refuse fields that go on behind their closing quote.
    pub strict: bool,
    /// Fill up rows that are too short with NULLs.
    pub null_padding: bool,
    /// Skip rows that cannot be read instead of raising an error.
    pub ignore_errors: bool,
    /// The same, and keep what was wrong with them.
    pub store_rejects: bool,
    /// The most rejects to keep of one scan.
    pub rejects_limit: usize,
    /// Where rejects are kept.
    pub rejects: Option<Arc<Rejects>>,
    /// Number of rows from which to guess.
    pub sample_rows: usize,
    /// The zone of instants that name none: the session's.
    pub zone: TimeZone,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            delimiter: None,
            quote: None,
            escape: None,
            comment: None,
            header: None,
            nulls: vec![Vec::new()],
            skip: 0,
            encoding: Encoding::Utf8,
            codec: None,
            formats: TimeFormats::default(),
            columns: None,
            names: Vec::new(),
            types: Vec::new(),
            first_types: Vec::new(),
            all_varchar: false,
            strict: true,
            null_padding: false,
            ignore_errors: false,
            store_rejects: false,
            rejects_limit: 100_000,
            rejects: None,
            sample_rows: 20_480,
            zone: TimeZone::UTC,
        }
    }
}

impl CsvOptions {
    /// The options, for hints.
    pub(super) const NAMES: &str = "delim, quote, escape, comment, header, nullstr, skip, encoding, compression, \
         dateformat, timestampformat, strict_mode, columns, names, types, all_varchar, null_padding, ignore_errors, \
         store_rejects, rejects_limit, sample_size";

    /// Sets an option by its SQL name, in lower case. False if there is no such option.
    ///
    /// # Errors
    /// Input, if the value is not valid for the option.
    pub(super) fn set(&mut self, name: &str, value: &Argument, parse: ParseType) -> Result<bool> {
        match name {
            "delim" | "delimiter" | "sep" | "separator" => {
                self.delimiter = Some(delimiter_option(name, value)?);
            }
            "quote" => self.quote = Some(byte_or_none(name, value)?),
            "escape" => self.escape = byte_or_none(name, value)?,
            "comment" => self.comment = byte_or_none(name, value)?,
            "header" => self.header = Some(flag_option(name, value)?),
            "nullstr" | "null" => {
                self.nulls = texts_option(name, value)?.into_iter().map(String::into_bytes).collect();
            }
            "skip" => self.skip = count_option(name, value)?,
            "encoding" => self.encoding = Encoding::of_option(name, value)?,
            "dateformat" | "date_format" => self.formats.date = TimeFormat::of_option(name, value)?,
            "timestampformat" | "timestamp_format" => {
                self.formats.timestamp = TimeFormat::of_option(name, value)?
            }
            "compression" => self.codec = Codec::of_option(name, value)?,
            "strict_mode" => self.strict = flag_option(name, value)?,
            "all_varchar" => self.all_varchar = flag_option(name, value)?,
            "null_padding" => self.null_padding = flag_option(name, value)?,
            "ignore_errors" => self.ignore_errors = flag_option(name, value)?,
            "store_rejects" => self.store_rejects = flag_option(name, value)?,
            "rejects_limit" => self.rejects_limit = count_option(name, value)?,
            "sample_size" => {
                self.sample_rows = match value {
                    Argument::Value(Value::Integer(-1), _) => usize::MAX,
                    value => count_option(name, value)?.max(1),
                };
            }
            "names" | "column_names" => self.names = texts_option(name, value)?,
            "types" | "dtypes" | "column_types" => match value {
                Argument::List(types) => {
                    self.first_types =
                        types.iter().map(|ty| type_option(name, ty, parse)).collect::<Result<_>>()?;
                }
                value => self.types = types_option(name, value, parse)?,
            },
            "columns" => {
                let columns = types_option(name, value, parse)?;
                if columns.is_empty() {
                    return Err(Error::input("option columns names no column"));
                }
                self.columns = Some(columns.into_iter().map(|(name, ty)| Field::new(name, ty)).collect());
            }
            "auto_detect" => _ = flag_option(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses options that contradict each other.
    fn check(&self) -> Result<()> {
        let delimiter = self.delimiter.map(Delimiter::first);
        let signs = [("delim", delimiter), ("quote", self.quote.flatten()), ("comment", self.comment)];
        for (i, (name, sign)) in signs.iter().enumerate() {
            if let Some((other, _)) = signs[..i].iter().find(|(_, other)| sign.is_some() && other == sign) {
                return Err(Error::input(format!("options {other} and {name} are the same character")));
            }
        }
        let others = [
            ("names", !self.names.is_empty()),
            ("types", !self.types.is_empty() || !self.first_types.is_empty()),
            ("all_varchar", self.all_varchar),
        ];
        match others.iter().find(|(_, is_given)| *is_given && self.columns.is_some()) {
            Some((name, _)) => Err(Error::input(format!(
                "option {name} cannot be combined with columns, which gives all names and types"
            ))),
            None => Ok(()),
        }
    }

    /// How the file at `path` is compressed.
    fn codec_of(&self, path: &Path) -> Codec {
        self.codec.unwrap_or_else(|| Codec::of_path(path))
    }

    /// Whether rows that cannot be read are skipped.
    fn leaves_out(&self) -> bool {
        self.ignore_errors || self.store_rejects
    }

    /// Whether a field that is read as `ty` is NULL.
    #[inline]
    fn is_null(&self, span: Span, text: &[u8], ty: DataType) -> bool {
        let is_text = ty.is_string() || matches!(ty, DataType::Enum(_));
        span.is_missing()
            || (!(is_text && span.is_quoted()) && self.nulls.iter().any(|null| null == text))
            || (!is_text && text.trim_ascii().is_empty())
    }
}

/// The value of an option that is one ASCII character, or none if the text is empty.
fn byte_or_none(name: &str, value: &Argument) -> Result<Option<u8>> {
    match text_option(name, value)? {
        "" => Ok(None),
        _ => byte_option(name, value).map(Some),
    }
}
