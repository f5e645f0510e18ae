//! Writes rows as separated values.
//!
//! A field is quoted if it would otherwise be read as something else: if it contains a delimiter, a quote or
//! a line end, or is written like NULL. So `NULL` and the empty string are different in the file.

use super::TimeFormats;
use super::time_format::TimeFormat;
use crate::files::option_values::{byte_option, flag_option, text_option};
use entasis_sql::Argument;
use entasis_vector::{Chunk, DataType, PhysicalType, Result, Schema, StringView, Value, Vector};
use std::io::Write;

/// How values are written.
#[derive(Debug, Clone)]
pub(in crate::files) struct WriteOptions {
    delimiter: u8,
    quote: u8,
    header: bool,
    null: String,
    formats: TimeFormats,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            delimiter: b',',
            quote: b'"',
            header: true,
            null: String::new(),
            formats: TimeFormats::default(),
        }
    }
}

impl WriteOptions {
    /// Sets an option by its SQL name, in lower case. False if there is no such option.
    pub(in crate::files) fn set(&mut self, name: &str, value: &Argument) -> Result<bool> {
        match name {
            "delim" | "delimiter" | "sep" | "separator" => self.delimiter = byte_option(name, value)?,
            "quote" => self.quote = byte_option(name, value)?,
            "header" => self.header = flag_option(name, value)?,
            "nullstr" | "null" => self.null = text_option(name, value)?.to_owned(),
            "dateformat" | "date_format" => self.formats.date = TimeFormat::of_option(name, value)?,
            "timestampformat" | "timestamp_format" => {
                self.formats.timestamp = TimeFormat::of_option(name, value)?
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes the names of the columns, if the options say so.
    pub(in crate::files) fn header(&self, schema: &Schema, out: &mut Vec<u8>) {
        if !self.header {
            return;
        }
        for (column, field) in schema.iter().enumerate() {
            if column > 0 {
                out.push(self.delimiter);
            }
            self.text(field.name.as_bytes(), out);
        }
        out.push(b'\n');
    }

    /// Writes the rows of a chunk.
    pub(in crate::files) fn rows(&self, chunk: &Chunk, schema: &Schema, out: &mut Vec<u8>) {
        for row in 0..chunk.len() {
            for (column, field) in schema.iter().enumerate() {
                if column > 0 {
                    out.push(self.delimiter);
                }
                let position = chunk.positions(column).map_or(row, |positions| positions[row] as usize);
                self.value(chunk.vector(column), position, field.ty, out);
            }
            out.push(b'\n');
        }
    }

    fn value(&self, vector: &Vector, position: usize, ty: DataType, out: &mut Vec<u8>) {
        if !vector.is_valid(position) {
            return out.extend_from_slice(self.null.as_bytes());
        }
        if vector.physical() == PhysicalType::Str && ty == DataType::Varchar {
            let view: StringView = match vector.dictionary() {
                Some(dictionary) => {
                    dictionary.values().values::<StringView>()[vector.codes()[position] as usize]
                }
                None => vector.values::<StringView>()[if vector.is_constant() { 0 } else { position }],
            };
            return self.text(view.as_bytes(), out);
        }
        let value = vector.value(position, ty);
        if let Value::Integer(number) = value
            && let Some(text) = self.formatted(number, ty)
        {
            return self.text(text.as_bytes(), out);
        }
        match value {
            // None of these contains anything that needs quotes, unless the delimiter is a digit or a point.
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_)
                if self.delimiter.is_ascii_punctuation() =>
            {
                let start = out.len();
                write!(out, "{}", value.display(ty)).expect("writing to memory does not fail");
                if out[start..].contains(&self.delimiter) || &out[start..] == self.null.as_bytes() {
                    self.quote_from(start, out);
                }
            }
            value => self.text(value.display(ty).to_string().as_bytes(), out),
        }
    }

    /// A date or timestamp in the format of the options, if there is one.
    fn formatted(&self, number: i128, ty: DataType) -> Option<String> {
        let number = i64::try_from(number).ok()?;
        let mut text = String::new();
        let written = match (ty, &self.formats) {
            (DataType::Date, TimeFormats { date: Some(format), .. }) => format.write_date(number, &mut text),
            (DataType::Timestamp | DataType::TimestampTz, TimeFormats { timestamp: Some(format), .. }) => {
                format.write_timestamp(number, &mut text)
            }
            _ => false,
        };
        written.then_some(text)
    }

    fn text(&self, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(text);
        let special = |&b: &u8| b == self.delimiter || b == self.quote || b == b'\n' || b == b'\r';
        if text == self.null.as_bytes() || text.iter().any(special) {
            self.quote_from(start, out);
        }
    }

    /// Encloses the output from `start` on in quotes, and doubles quotes within it.
    fn quote_from(&self, start: usize, out: &mut Vec<u8>) {
        let text = out.split_off(start);
        out.push(self.quote);
        for byte in text {
            if byte == self.quote {
                out.push(self.quote);
            }
            out.push(byte);
        }
        out.push(self.quote);
    }
}
