//! Values as JSON, for `COPY … TO` and the shell.
//!
//! Numbers and booleans are such, lists are arrays, structs and maps objects, NULL is `null`, JSON is itself,
//! and everything else is a string. Numbers keep all their digits, which readers that only have doubles may
//! round. JSON has no notation for NaN and the infinities; they are strings.

use super::csv::text::{Parts, Take, Text};
use super::strings::{LONG, reserve_value, string};
use entasis_functions::TimeZone;
use entasis_vector::value::nested;
use entasis_vector::{Chunk, DataType, Result, Schema, Value};
use std::fmt::{self, Write};

/// Appends a value of type `ty`; instants are written in `zone`.
pub fn write_json(out: &mut String, value: &Value, ty: DataType, zone: TimeZone) {
    write_value(out, value, ty, zone).expect("a String takes everything");
}

/// Appends a text as a string of JSON.
pub fn write_json_text(out: &mut String, text: &str) {
    write_text(out, text).expect("a String takes everything");
}

fn write_value(out: &mut impl Write, value: &Value, ty: DataType, zone: TimeZone) -> fmt::Result {
    let damaged = || vec![Value::Null];
    match (value, ty) {
        (Value::Null, _) => out.write_str("null"),
        (Value::Boolean(v), _) => out.write_str(if *v { "true" } else { "false" }),
        (Value::Float(v), _) if v.is_finite() => write!(out, "{}", value.display(ty)),
        (Value::Integer(_), ty) if ty.is_integer() || ty.is_decimal() => write!(out, "{}", value.display(ty)),
        (Value::Integer(micros), DataType::TimestampTz) => {
            let mut text = String::new();
            zone.write(&mut text, *micros as i64)?;
            write_text(out, &text)
        }
        (Value::Text(text), DataType::Varchar) => write_text(out, text),
        // As it is, but on one line: white space is a space outside of strings, which have no line ends.
        (Value::Text(text), DataType::Json) => {
            text.split(['\n', '\r']).try_for_each(|line| out.write_str(line))
        }
        (Value::Bytes(bytes), DataType::List(element) | DataType::Array(element, _)) => {
            out.write_char('[')?;
            for (i, value) in
                nested::elements(bytes, *element).unwrap_or_else(|_| damaged()).iter().enumerate()
            {
                out.write_str(if i == 0 { "" } else { "," })?;
                write_value(out, value, *element, zone)?;
            }
            out.write_char(']')
        }
        (Value::Bytes(bytes), DataType::Map(entry)) => {
            let entries = nested::elements(bytes, *entry).unwrap_or_else(|_| damaged());
            out.write_char('{')?;
            for (i, own) in entries.iter().enumerate() {
                out.write_str(if i == 0 { "" } else { "," })?;
                write_entry(out, own, *entry, zone)?;
            }
            out.write_char('}')
        }
        (Value::Bytes(bytes), DataType::Struct(fields)) => {
            let values = nested::fields(bytes, fields).unwrap_or_else(|_| damaged());
            for (i, (field, value)) in fields.iter().zip(&values).enumerate() {
                out.write_char(if i == 0 { '{' } else { ',' })?;
                write_text(out, field.name)?;
                out.write_char(':')?;
                write_value(out, value, field.ty, zone)?;
            }
            out.write_str(if fields.is_empty() { "{}" } else { "}" })
        }
        (value, ty) => {
            out.write_char('"')?;
            write!(Escaped(out), "{}", value.display(ty))?;
            out.write_char('"')
        }
    }
}

/// The entry of a map: its key as a text, a colon, and its value.
fn write_entry(out: &mut impl Write, entry: &Value, ty: DataType, zone: TimeZone) -> fmt::Result {
    let (Value::Bytes(bytes), DataType::Struct(fields)) = (entry, ty) else { return out.write_str("null") };
    let values = nested::fields(bytes, fields).unwrap_or_default();
    let ([key, value], [of_key, of_value]) = (values.as_slice(), fields.as_slice()) else {
        return out.write_str("null");
    };
    write_text(out, &zone.shown(key, of_key.ty))?;
    out.write_char(':')?;
    write_value(out, value, of_value.ty, zone)
}

fn write_text(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    Escaped(out).write_str(text)?;
    out.write_char('"')
}

/// Writes text as it stands between the quotes of a string.
struct Escaped<'a, W: Write>(&'a mut W);

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let out = &mut *self.0;
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            out.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => out.write_str("\\\""),
                b'\\' => out.write_str("\\\\"),
                b'\n' => out.write_str("\\n"),
                b'\r' => out.write_str("\\r"),
                b'\t' => out.write_str("\\t"),
                byte => write!(out, "\\u{byte:04x}"),
            }?;
            rest = &rest[at + 1..];
        }
        out.write_str(rest)
    }
}

/// How rows become a file of JSON.
#[derive(Debug, Clone)]
pub(super) struct JsonRows {
    /// One array of objects, instead of one object a line.
    array: bool,
    /// The names of the columns with a colon, each after what comes before it.
    keys: Vec<String>,
}

impl JsonRows {
    /// Rows with the columns of `schema`.
    pub(super) fn new(schema: &Schema, array: bool) -> JsonRows {
        let key = |(i, name): (usize, &str)| {
            let mut key = String::from(if i == 0 { "{" } else { "," });
            write_json_text(&mut key, name);
            key + ":"
        };
        JsonRows { array, keys: schema.iter().map(|field| &*field.name).enumerate().map(key).collect() }
    }

    /// What comes before the first row.
    pub(super) fn begin(&self) -> &'static str {
        if self.array { "[" } else { "" }
    }

    /// The bytes of the text before the first row that are to be left out: its comma.
    pub(super) fn first(&self) -> usize {
        usize::from(self.array)
    }

    /// What comes after the last row.
    pub(super) fn end(&self) -> &'static str {
        if self.array { "\n]\n" } else { "" }
    }

    /// Writes the rows of a chunk, and hands on what has been written part by part.
    ///
    /// # Errors
    /// Those of `take`; resource, if there is not enough memory for a long value.
    pub(super) fn rows(&self, chunk: &Chunk, schema: &Schema, out: &mut Text, take: Take<'_>) -> Result<()> {
        for row in 0..chunk.len() {
            out.plain(if self.array { b",\n  " } else { b"" });
            for (column, (key, field)) in self.keys.iter().zip(schema).enumerate() {
                out.plain(key.as_bytes());
                let long = string(chunk, row, column).filter(|view| view.len() > LONG);
                match (long, field.ty) {
                    (Some(text), DataType::Varchar) => {
                        Parts::new(out, take).write(|parts| write_text(parts, text.as_str()))?;
                    }
                    (long, ty) => {
                        let _memory = reserve_value(long.map_or(0, |view| view.len()), ty)?;
                        let value = chunk.value(row, column, ty);
                        Parts::new(out, take).write(|parts| write_value(parts, &value, ty, TimeZone::UTC))?;
                    }
                }
            }
            out.plain(if self.array { b"}" } else { b"}\n" });
            out.hand_on(take)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_strings_that_another_library_reads() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain("\u{2028}😀".chars()).collect();
        let mut out = String::new();
        write_json_text(&mut out, &all);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), all);
    }

    #[test]
    fn long_texts_are_handed_on_part_by_part() {
        use super::super::csv::text::{PART_BYTES, handed_on};
        let texts: Vec<Value> = [LONG + 1, 5 * PART_BYTES]
            .into_iter()
            .flat_map(|length| ["x", "\"\\", "\u{1}ü😀\n"].map(|unit| unit.repeat(length / unit.len() + 1)))
            .map(|text| Value::Text(text.into()))
            .collect();
        let (all, most) = handed_on(&texts, DataType::Varchar, |chunk, schema, out, take| {
            JsonRows::new(schema, false).rows(chunk, schema, out, take)
        });
        assert!(most < 3 * PART_BYTES, "{most} bytes at once");
        let lines: Vec<&[u8]> = all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), texts.len());
        for (line, text) in lines.iter().zip(&texts) {
            let row: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert!(Value::Text(row["a"].as_str().unwrap().into()) == *text);
        }
    }
}
