//! Errors as the shell prints them: the message, the line of SQL with a caret at the position, the hint.
//!
//! ```text
//! Error: there is no column named "carier" in 'flights.parquet'
//! LINE 2: SELECT carier FROM 'flights.parquet'
//!                ^
//! Hint: did you mean "carrier"?
//! ```

use crate::style::Style;
use entasis_vector::Error;
use std::io::{self, Write};
use unicode_width::UnicodeWidthChar;

/// The most characters shown of the line of SQL.
const SHOWN: usize = 100;

/// Writes `error`, which was caused by running `sql`. `first_line` is the line on which `sql` starts in its
/// script, or 1.
///
/// # Errors
/// Those of `out`.
pub fn error(
    out: &mut dyn Write,
    style: Style,
    error: &Error,
    sql: &str,
    first_line: usize,
) -> io::Result<()> {
    writeln!(out, "{}: {}", style.error(error.kind().label()), error.message())?;
    if let Some(position) = error.position()
        && let Some(line) = sql.lines().nth(position.line.saturating_sub(1))
    {
        let label = format!("LINE {}: ", first_line + position.line - 1);
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

    fn printed(e: &Error, sql: &str, first_line: usize) -> String {
        let mut out = Vec::new();
        error(&mut out, Style::PLAIN, e, sql, first_line).unwrap();
        String::from_utf8(out).unwrap()
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
