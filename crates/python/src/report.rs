//! Where an error is in the text of a statement: the line, and a caret under the place, as in the shell.
//!
//! ```text
//! LINE 2: SELECT carier FROM 'flights.parquet'
//!                ^
//! ```

use entasis_vector::error::Position;
use unicode_width::UnicodeWidthChar;

/// The most characters shown of the line of SQL.
const SHOWN: usize = 100;

/// The line of `sql` with the place, and the line with the caret; `None` if the text has no such line.
pub fn excerpt(sql: &str, place: Position) -> Option<String> {
    let line = sql.lines().nth(place.line.checked_sub(1)?)?;
    let chars: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let column = place.column.saturating_sub(1).min(chars.len());
    let start = match chars.len() <= SHOWN {
        true => 0,
        false => column.saturating_sub(SHOWN / 2).min(chars.len() - SHOWN),
    };
    let end = chars.len().min(start + SHOWN);
    let (ahead, behind) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
    let label = format!("LINE {}: {ahead}", place.line);
    let width = |c: &char| c.width().unwrap_or(0);
    let before = label.chars().count() + chars[start..column].iter().map(width).sum::<usize>();
    let shown: String = chars[start..end].iter().collect();
    Some(format!("{label}{}{behind}\n{:before$}^", shown.trim_end(), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, line: usize, column: usize) -> Option<String> {
        excerpt(sql, Position { line, column })
    }

    #[test]
    fn the_caret_is_under_the_place() {
        assert_eq!(shown("-- ü\nSELECT b", 2, 8).unwrap(), "LINE 2: SELECT b\n               ^");
        assert_eq!(shown("SELECT '木', b", 1, 13).unwrap(), "LINE 1: SELECT '木', b\n                     ^");
        assert_eq!(shown("SELECT", 1, 99).unwrap(), "LINE 1: SELECT\n              ^");
        assert_eq!(shown("SELECT", 2, 1), None);
        assert_eq!(shown("SELECT", 0, 0), None);
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = shown(&format!("{}x{}", "-".repeat(500), "-".repeat(500)), 1, 501).unwrap();
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        assert!(lines[0].len() < 120);
        assert_eq!(lines[0][lines[1].len() - 1], 'x');
    }
}
