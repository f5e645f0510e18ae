//! What the shell says on standard error: errors, notes and statistics, for people or as JSON.
//!
//! ```text
//! Error: there is no column named "carier" in 'flights.parquet'
//! LINE 2: SELECT carier FROM 'flights.parquet'
//!                ^
//! Hint: did you mean "carrier"?
//! ```
//! In JSON each of them is an object on a line of its own: `{"kind":"input","message":…,"sqlstate":…}`. What
//! is not known is not there.

use crate::style::Style;
use crate::words::{bytes, count, duration};
use entasis::Error;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::time::Duration;
use unicode_width::UnicodeWidthChar;

/// The most characters shown of the line of SQL.
const SHOWN: usize = 100;

/// How errors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ErrorFormat {
    /// For people: the message, the line of SQL with the place, a hint
    Text,
    /// For programs: a JSON object per line
    Json,
}

/// Where a statement or a command is.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file, if it is in one.
    pub file: Option<&'a str>,
    /// Its text; empty, if it is a command.
    pub sql: &'a str,
    /// The line on which it begins in its script, from 1.
    pub line: usize,
}

impl Origin<'_> {
    /// Nothing that was written in SQL, such as the command line.
    pub const NONE: Origin<'static> = Origin { file: None, sql: "", line: 1 };
}

/// What a statement did, for `--stats`.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Rows of the result, or rows changed.
    pub rows: u64,
    /// Until everything was written.
    pub time: Duration,
    /// The most memory that the database used meanwhile, tables included.
    pub memory: usize,
}

/// Writes to standard error.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    /// The format.
    pub format: ErrorFormat,
    /// Colours, for people.
    pub style: Style,
}

impl Reporter {
    /// Writes an error.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn error(&self, out: &mut dyn Write, error: &Error, origin: Origin<'_>) -> io::Result<()> {
        match self.format {
            ErrorFormat::Text => write_error(out, self.style, error, origin),
            ErrorFormat::Json => self.object(out, error_object(error, origin)),
        }
    }

    /// Writes a note about a statement.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn note(&self, out: &mut dyn Write, note: &str) -> io::Result<()> {
        match self.format {
            ErrorFormat::Text => writeln!(out, "Note: {note}"),
            ErrorFormat::Json => self.object(out, [("kind", "note".into()), ("message", note.into())]),
        }
    }

    /// Writes what a statement did.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn figures(&self, out: &mut dyn Write, figures: Figures) -> io::Result<()> {
        let Figures { rows, time, memory } = figures;
        match self.format {
            ErrorFormat::Text => {
                let (rows, time) = (count(rows, "row", "rows"), duration(time));
                writeln!(out, "Stats: {rows} · {time} · {} of memory at most", bytes(memory as u64))
            }
            ErrorFormat::Json => {
                let all = [
                    ("kind", "stats".into()),
                    ("rows", rows.into()),
                    ("seconds", seconds(time)),
                    ("peak_memory", memory.into()),
                ];
                self.object(out, all)
            }
        }
    }

    /// Writes how long a statement took.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn time(&self, out: &mut dyn Write, time: Duration) -> io::Result<()> {
        match self.format {
            ErrorFormat::Text => writeln!(out, "{}", duration(time)),
            ErrorFormat::Json => self.object(out, [("kind", "time".into()), ("seconds", seconds(time))]),
        }
    }

    fn object(
        &self,
        out: &mut dyn Write,
        members: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> io::Result<()> {
        let members: Map<String, Value> =
            members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        writeln!(out, "{}", Value::Object(members))
    }
}

/// A time in seconds, to the microsecond.
fn seconds(time: Duration) -> Value {
    Value::from((time.as_secs_f64() * 1e6).round() / 1e6)
}

/// An error as the members of an object.
fn error_object(error: &Error, origin: Origin<'_>) -> Vec<(&'static str, Value)> {
    let mut members = vec![
        ("kind", error.kind().name().into()),
        ("message", error.message().into()),
        ("sqlstate", error.sqlstate().into()),
    ];
    members.extend(error.hint().map(|hint| ("hint", hint.into())));
    members.extend(origin.file.map(|file| ("file", file.into())));
    match error.position() {
        Some(position) => {
            members.push(("line", (origin.line + position.line.max(1) - 1).into()));
            members.push(("column", position.column.into()));
        }
        None => members.push(("line", origin.line.into())),
    }
    members
}

fn write_error(out: &mut dyn Write, style: Style, error: &Error, origin: Origin<'_>) -> io::Result<()> {
    writeln!(out, "{}: {}", style.error(error.kind().label()), error.message())?;
    if let Some(position) = error.position()
        && let Some(line) = origin.sql.lines().nth(position.line.saturating_sub(1))
    {
        let label = format!("LINE {}: ", origin.line + position.line - 1);
        let (excerpt, before) = excerpt(line, position.column.saturating_sub(1));
        writeln!(out, "{}{excerpt}", style.dim(&label))?;
        writeln!(out, "{:width$}{}", "", style.error("^"), width = label.len() + before)?;
    }
    match error.hint() {
        Some(hint) => writeln!(out, "{}: {hint}", style.hint("Hint")),
        None => Ok(()),
    }
}

/// The part of `line` around its character `column` (counted from 0), and the display width of the text
/// before that character.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let chars: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let column = column.min(chars.len());
    let start =
        if chars.len() <= SHOWN { 0 } else { column.saturating_sub(SHOWN / 2).min(chars.len() - SHOWN) };
    let end = chars.len().min(start + SHOWN);
    let (ahead, behind) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
    let width = |c: &char| c.width().unwrap_or(0);
    let before = ahead.chars().count() + chars[start..column].iter().map(width).sum::<usize>();
    (format!("{ahead}{}{behind}", chars[start..end].iter().collect::<String>()), before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::error::Position;

    fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn reporter(format: ErrorFormat) -> Reporter {
        Reporter { format, style: Style::PLAIN }
    }

    fn printed(e: &Error, sql: &str, line: usize) -> String {
        written(|out| reporter(ErrorFormat::Text).error(out, e, Origin { file: None, sql, line }))
    }

    #[test]
    fn programs_get_objects() {
        let e = Error::input("no \"b\"").with_position(Position { line: 2, column: 8 }).with_hint("try a");
        let origin = Origin { file: Some("a.sql"), sql: "-- \nSELECT b", line: 5 };
        let json = reporter(ErrorFormat::Json);
        let parse = |text: String| -> Value {
            assert_eq!(text.matches('\n').count(), 1);
            serde_json::from_str(&text).unwrap()
        };
        let expected = serde_json::json!({
            "kind": "input", "message": "no \"b\"", "sqlstate": "42000", "hint": "try a",
            "file": "a.sql", "line": 6, "column": 8,
        });
        assert_eq!(parse(written(|out| json.error(out, &e, origin))), expected);
        let e = Error::interrupted();
        let expected = serde_json::json!({
            "kind": "interrupted", "message": e.message(), "sqlstate": "57014", "line": 5,
        });
        assert_eq!(parse(written(|out| json.error(out, &e, Origin { file: None, ..origin }))), expected);
        let figures = Figures { rows: 3, time: Duration::from_millis(1500), memory: 2048 };
        let expected = serde_json::json!({"kind": "stats", "rows": 3, "seconds": 1.5, "peak_memory": 2048});
        assert_eq!(parse(written(|out| json.figures(out, figures))), expected);
        let text = written(|out| reporter(ErrorFormat::Text).figures(out, figures));
        assert_eq!(text, "Stats: 3 rows · 1.5 s · 2.0 KB of memory at most\n");
        let note = serde_json::json!({"kind": "note", "message": "x"});
        assert_eq!(parse(written(|out| json.note(out, "x"))), note);
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let e = Error::input("no such column: b")
            .with_position(Position { line: 2, column: 8 })
            .with_hint("try a");
        assert_eq!(
            printed(&e, "-- ü\nSELECT b", 5),
            "Error: no such column: b\nLINE 6: SELECT b\n               ^\nHint: try a\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let sql = format!("{}x{}", " ".repeat(500), " ".repeat(500));
        let e = Error::input("bad").with_position(Position { line: 1, column: 501 });
        let text = printed(&e, &sql, 1);
        let lines: Vec<Vec<char>> = text.lines().map(|l| l.chars().collect()).collect();
        assert!(lines[1].len() < 120);
        assert_eq!(lines[1][lines[2].len() - 1], 'x');
    }

    #[test]
    fn a_place_beyond_the_text_does_no_harm() {
        let e = Error::input("unexpected end").with_position(Position { line: 1, column: 99 });
        assert!(printed(&e, "SELECT", 1).ends_with("LINE 1: SELECT\n              ^\n"));
        let e = Error::input("unexpected end").with_position(Position { line: 0, column: 0 });
        assert!(printed(&e, "SELECT", 1).contains("unexpected end"));
    }
}
