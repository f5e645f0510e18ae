//! Results as text: one small file for each output format (mode).
//!
//! Every mode gets an [`Answer`], the schema and chunks of a result, and writes it. Only [`table`] depends on
//! the terminal: it shortens what does not fit. All others write everything, for programs to read.

mod csv;
mod json;
mod line;
mod markdown;
mod table;

use crate::style::Style;
use entasis::TimeZone;
use entasis_vector::{Chunk, DataType, Schema, Value};
use std::io::{self, Write};

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// A box with types and a footer, shortened to the terminal
    #[value(aliases = ["box", "duckbox", "column"])]
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    #[value(aliases = ["jsonlines", "ndjson"])]
    Jsonl,
    /// A Markdown table
    Markdown,
    /// One "name = value" line per cell
    Line,
}

impl Mode {
    /// All modes, as `.mode` lists them.
    pub const NAMES: [&str; 6] = ["table", "csv", "json", "jsonl", "markdown", "line"];
}

/// What the table mode knows about the screen.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Width of the terminal in characters; `None`: no limit, and all rows are shown.
    pub width: Option<usize>,
    /// Colours.
    pub style: Style,
}

/// A result to write.
pub struct Answer<'a> {
    schema: &'a Schema,
    chunks: &'a [Chunk],
    /// Row number at which each chunk starts.
    starts: Vec<usize>,
    rows: usize,
    zone: TimeZone,
}

impl<'a> Answer<'a> {
    /// A result with these columns and rows.
    pub fn new(schema: &'a Schema, chunks: &'a [Chunk]) -> Answer<'a> {
        let mut rows = 0;
        let starts = chunks
            .iter()
            .map(|chunk| {
                let start = rows;
                rows += chunk.len();
                start
            })
            .collect();
        Answer { schema, chunks, starts, rows, zone: TimeZone::UTC }
    }
    /// The same result, with instants shown in `zone`.
    pub fn in_zone(self, zone: TimeZone) -> Answer<'a> {
        Answer { zone, ..self }
    }
    /// The zone in which instants are shown.
    pub fn zone(&self) -> TimeZone {
        self.zone
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Its columns.
    pub fn schema(&self) -> &Schema {
        self.schema
    }
    /// The type of column `column`.
    pub fn ty(&self, column: usize) -> DataType {
        self.schema[column].ty
    }
    /// One cell.
    pub fn value(&self, row: usize, column: usize) -> Value {
        let chunk = self.starts.partition_point(|&start| start <= row) - 1;
        self.chunks[chunk].value(row - self.starts[chunk], column, self.ty(column))
    }
    /// The text of one cell; `None` for NULL.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.value(row, column);
        (!value.is_null()).then(|| self.show(&value, column))
    }
    /// A value of column `column` as text.
    pub fn show(&self, value: &Value, column: usize) -> String {
        self.zone.shown(value, self.ty(column))
    }
}

/// Writes `answer` in `mode`. Returns the number of rows written.
///
/// # Errors
/// Those of `out`.
pub fn write(mode: Mode, answer: &Answer<'_>, screen: Screen, out: &mut dyn Write) -> io::Result<usize> {
    match mode {
        Mode::Table => return table::write(answer, screen, out),
        Mode::Csv => csv::write(answer, out)?,
        Mode::Json => json::write_array(answer, out)?,
        Mode::Jsonl => json::write_lines(answer, out)?,
        Mode::Markdown => markdown::write(answer, out)?,
        Mode::Line => line::write(answer, out)?,
    }
    Ok(answer.rows())
}

#[cfg(test)]
pub mod testing {
    //! A small result for the tests of the modes.
    use super::*;
    use entasis_vector::{Field, Selection, Vector};
    use std::sync::Arc;

    /// A schema and chunks that hold `rows`, two rows per chunk.
    pub fn result(columns: &[(&str, DataType)], rows: &[Vec<Value>]) -> (Schema, Vec<Chunk>) {
        let schema: Schema = columns.iter().map(|&(name, ty)| Field::new(name, ty)).collect();
        let chunks = rows
            .chunks(2)
            .map(|rows| {
                let mut chunk = Chunk::new();
                chunk.reset(rows.len());
                let group = chunk.push_group(Selection::ALL);
                for (i, &(_, ty)) in columns.iter().enumerate() {
                    let values: Vec<Value> = rows.iter().map(|row| row[i].clone()).collect();
                    chunk.push_column(Vector::from_values(ty.physical(), &values).unwrap(), group);
                }
                chunk
            })
            .collect();
        (schema, chunks)
    }

    /// Three rows of name, count and share, with NULLs and characters that need quoting.
    pub fn sample() -> (Schema, Vec<Chunk>) {
        let text = |s: &str| Value::Text(Arc::from(s));
        result(
            &[
                ("name", DataType::Varchar),
                ("n", DataType::Int64),
                ("share", DataType::Decimal { precision: 4, scale: 2 }),
            ],
            &[
                vec![text("a,\"b\"|"), Value::Integer(12), Value::Integer(150)],
                vec![Value::Null, Value::Integer(3), Value::Null],
                vec![text("x\ny"), Value::Integer(-4), Value::Integer(5)],
            ],
        )
    }

    /// The output of `mode` without a terminal.
    pub fn written(mode: Mode, result: &(Schema, Vec<Chunk>)) -> String {
        let mut out = Vec::new();
        let screen = Screen { width: None, style: Style::PLAIN };
        write(mode, &Answer::new(&result.0, &result.1), screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }
}
