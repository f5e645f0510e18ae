//! Results as text: one small file for each output format (mode).
//!
//! A [`Renderer`] gets the rows of a result part by part, as they come, and writes each part before it gets
//! the next. Only [`table`] depends on the terminal: it shortens what does not fit, and looks ahead for the
//! widths of columns. All others write everything, for programs to read.

mod csv;
mod html;
mod insert;
mod json;
mod line;
mod list;
mod markdown;
mod plan;
mod table;

pub use self::plan::PlanLines;
pub use self::table::{cut, visible};
use crate::style::Style;
use entasis::TimeZone;
use entasis_vector::{Chunk, DataType, Schema, Value};
use std::collections::HashSet;
use std::io::{self, Write};

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// A box with types and a footer, shortened to the terminal
    #[value(aliases = ["box", "duckbox", "column"])]
    Table,
    /// Comma-separated values with a header
    Csv,
    /// Values separated by tabs, with a header, and quoted as in csv
    #[value(aliases = ["tabs"])]
    Tsv,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    #[value(aliases = ["jsonlines", "ndjson"])]
    Jsonl,
    /// A Markdown table
    Markdown,
    /// One "name = value" line per cell
    Line,
    /// Values separated by |, without quotes
    List,
    /// An INSERT statement per row
    Insert,
    /// An HTML table
    Html,
}

impl Mode {
    /// All modes, as `.mode` lists them.
    pub const NAMES: [&str; 10] =
        ["table", "csv", "tsv", "json", "jsonl", "markdown", "line", "list", "insert", "html"];
}

/// How results are to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The format.
    pub mode: Mode,
    /// Whether the names of columns come first, in the modes in which they need not.
    pub headers: bool,
    /// What NULL is written as; `None`: as the mode has it.
    pub null: Option<String>,
    /// What separates the values in the modes csv and list; `None`: a comma, and a bar.
    pub separator: Option<String>,
    /// The table into which the mode insert inserts.
    pub table: String,
    /// The most rows of a table that are shown, and 0 for all; `None`: 40 on a terminal, and all elsewhere.
    pub max_rows: Option<usize>,
}

impl Look {
    /// The default look of a mode.
    pub fn new(mode: Mode) -> Look {
        Look { mode, headers: true, null: None, separator: None, table: "t".into(), max_rows: None }
    }
    /// What NULL is written as, if the mode would have it as `default`.
    fn null_or(&self, default: &str) -> String {
        self.null.clone().unwrap_or_else(|| default.to_owned())
    }
    /// What separates values, if the mode would have `default`.
    fn separator_or(&self, default: &str) -> String {
        self.separator.clone().unwrap_or_else(|| default.to_owned())
    }
}

/// What the table mode knows about the screen.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Width of the terminal in characters; `None`: no limit, and nothing is left out.
    pub width: Option<usize>,
    /// Colours.
    pub style: Style,
}

/// Some of the rows of a result.
pub struct ResultPart<'a> {
    schema: &'a Schema,
    chunk: &'a Chunk,
    zone: TimeZone,
}

impl<'a> ResultPart<'a> {
    /// The rows of a chunk; instants are shown in `zone`.
    pub fn new(schema: &'a Schema, chunk: &'a Chunk, zone: TimeZone) -> ResultPart<'a> {
        ResultPart { schema, chunk, zone }
    }
    /// The zone in which instants are shown.
    pub fn zone(&self) -> TimeZone {
        self.zone
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.chunk.len()
    }
    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.schema
    }
    /// The type of column `column`.
    pub fn ty(&self, column: usize) -> DataType {
        self.schema[column].ty
    }
    /// One cell.
    pub fn value(&self, row: usize, column: usize) -> Value {
        self.chunk.value(row, column, self.ty(column))
    }
    /// The text of one cell; `None` for NULL.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.value(row, column);
        (!value.is_null()).then(|| self.zone.shown(&value, self.ty(column)))
    }
}

/// Writes a result in one mode: what comes first, the rows part by part, and what comes last.
pub trait Renderer {
    /// Writes what comes before the rows.
    ///
    /// # Errors
    /// Those of `out`.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the next rows.
    ///
    /// # Errors
    /// Those of `out`.
    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Writes what comes after the rows. Returns how many of them are shown; `None`: all.
    ///
    /// # Errors
    /// Those of `out`.
    fn end(&mut self, _out: &mut dyn Write) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// What writes a result with these columns.
pub fn renderer(look: &Look, schema: &Schema, screen: Screen) -> Box<dyn Renderer> {
    match look.mode {
        Mode::Table => Box::new(table::Table::new(look, schema, screen)),
        Mode::Csv => Box::new(csv::Csv::new(look, schema, look.separator_or(","))),
        Mode::Tsv => Box::new(csv::Csv::new(look, schema, "\t".to_owned())),
        Mode::Json => Box::new(json::Json::array(schema)),
        Mode::Jsonl => Box::new(json::Json::lines(schema)),
        Mode::Markdown => Box::new(markdown::Markdown::new(look, schema)),
        Mode::Line => Box::new(line::Line::new(look, schema)),
        Mode::List => Box::new(list::List::new(look, schema)),
        Mode::Insert => Box::new(insert::Insert::new(look, schema)),
        Mode::Html => Box::new(html::Html::new(look, schema)),
    }
}

/// The names of the columns; one that an earlier column has gets a number: `a`, `a_1`.
fn unique_names(schema: &Schema) -> Vec<String> {
    let own: HashSet<&str> = schema.iter().map(|field| &*field.name).collect();
    let mut taken = HashSet::new();
    let mut names = Vec::with_capacity(schema.len());
    for field in schema {
        let numbered =
            (1..).map(|i| format!("{}_{i}", field.name)).filter(|name| !own.contains(name.as_str()));
        let name = std::iter::once(field.name.to_string()).chain(numbered).find(|name| !taken.contains(name));
        let name = name.expect("there are more numbers than columns");
        taken.insert(name.clone());
        names.push(name);
    }
    names
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

    /// A text as a value.
    pub fn text(text: &str) -> Value {
        Value::Text(Arc::from(text))
    }

    /// Three rows of name, count and share, with NULLs and characters that need quoting.
    pub fn sample() -> (Schema, Vec<Chunk>) {
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

    /// The output with a look and screen, and how many rows it shows.
    pub fn shown(look: &Look, screen: Screen, result: &(Schema, Vec<Chunk>)) -> (String, Option<u64>) {
        let mut out = Vec::new();
        let mut renderer = renderer(look, &result.0, screen);
        renderer.begin(&mut out).unwrap();
        for chunk in &result.1 {
            renderer.rows(&ResultPart::new(&result.0, chunk, TimeZone::UTC), &mut out).unwrap();
        }
        let shown = renderer.end(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), shown)
    }

    /// The output with a look, without a terminal.
    pub fn with_look(look: &Look, result: &(Schema, Vec<Chunk>)) -> String {
        shown(look, Screen { width: None, style: Style::PLAIN }, result).0
    }

    /// The output of `mode` without a terminal.
    pub fn written(mode: Mode, result: &(Schema, Vec<Chunk>)) -> String {
        with_look(&Look::new(mode), result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn all_modes_are_listed() {
        let names = Mode::value_variants().iter().filter_map(|mode| mode.to_possible_value());
        assert_eq!(names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>(), Mode::NAMES);
        assert_eq!(Mode::from_str("box", true), Ok(Mode::Table));
    }

    #[test]
    fn names_that_repeat_get_numbers() {
        let columns = ["a", "b", "a", "a_1", "a"].map(|name| (name, DataType::Int32));
        let (schema, _) = testing::result(&columns, &[]);
        assert_eq!(unique_names(&schema), ["a", "b", "a_2", "a_1", "a_3"]);
    }
}
