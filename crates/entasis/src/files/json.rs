//! Values as JSON, for `COPY … TO` and the shell.
//!
//! Numbers and booleans are such, lists are arrays, structs objects, NULL is `null`, and everything else is a
//! string. Numbers keep all their digits, which readers that only have doubles may round. JSON has no
//! notation for NaN and the infinities; they are strings.

use super::csv::text::Text;
use entasis_sql::TimeZone;
use entasis_vector::value::nested;
use entasis_vector::{Chunk, DataType, Schema, Value};
use std::fmt::Write;

/// Appends a value of type `ty`; instants are written in `zone`.
pub fn write_json(out: &mut String, value: &Value, ty: DataType, zone: TimeZone) {
    let damaged = || vec![Value::Null];
    match (value, ty) {
        (Value::Null, _) => out.push_str("null"),
        (Value::Boolean(v), _) => out.push_str(if *v { "true" } else { "false" }),
        (Value::Float(v), _) if v.is_finite() => out.push_str(&value.display(ty).to_string()),
        (Value::Integer(_), ty) if ty.is_integer() || ty.is_decimal() => {
            out.push_str(&value.display(ty).to_string());
        }
        (Value::Integer(micros), DataType::TimestampTz) => {
            let mut text = String::new();
            let written = zone.write(&mut text, *micros as i64);
            written.expect("a String takes everything");
            write_json_text(out, &text);
        }
        (Value::Bytes(bytes), DataType::List(element)) => {
            out.push('[');
            for (i, value) in
                nested::elements(bytes, *element).unwrap_or_else(|_| damaged()).iter().enumerate()
            {
                out.push_str(if i == 0 { "" } else { "," });
                write_json(out, value, *element, zone);
            }
            out.push(']');
        }
        (Value::Bytes(bytes), DataType::Struct(fields)) => {
            let values = nested::fields(bytes, fields).unwrap_or_else(|_| damaged());
            for (i, (field, value)) in fields.iter().zip(&values).enumerate() {
                out.push(if i == 0 { '{' } else { ',' });
                write_json_text(out, field.name);
                out.push(':');
                write_json(out, value, field.ty, zone);
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        (value, ty) => write_json_text(out, &value.display(ty).to_string()),
    }
}

/// Appends a text as a string of JSON.
pub fn write_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => write!(out, "\\u{:04x}", c as u32).expect("a String takes everything"),
            c => out.push(c),
        }
    }
    out.push('"');
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

    /// Writes the rows of a chunk.
    pub(super) fn rows(&self, chunk: &Chunk, schema: &Schema, out: &mut Text) {
        let mut row_text = String::new();
        for row in 0..chunk.len() {
            row_text.clear();
            row_text.push_str(if self.array { ",\n  " } else { "" });
            for (column, (key, field)) in self.keys.iter().zip(schema).enumerate() {
                row_text.push_str(key);
                write_json(&mut row_text, &chunk.value(row, column, field.ty), field.ty, TimeZone::UTC);
            }
            row_text.push_str(if self.array { "}" } else { "}\n" });
            out.plain(row_text.as_bytes());
        }
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
}
