//! A result as text, for `show()` and for notebooks and prompts: a box with the first and last rows. What
//! `EXPLAIN` says is shown whole, as lines.

use entasis::{DataType, Rows};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// With more rows than this, only the first and last ones are shown.
const ROWS: usize = 20;
/// With more columns than this, those in the middle are left out.
const COLUMNS: usize = 12;
/// Maximum width of a cell.
const WIDTH: usize = 32;

/// True if `query` is an `EXPLAIN`, by its first word.
pub fn is_explain(query: &str) -> bool {
    let word = query.split_whitespace().next().unwrap_or_default();
    word.eq_ignore_ascii_case("explain")
}

/// The values of the first column, a line each.
pub fn lines(rows: &Rows) -> String {
    let mut text = String::new();
    for chunk in rows.chunks() {
        for row in 0..chunk.len() {
            let line = chunk.value(row, 0, DataType::Varchar).display(DataType::Varchar).to_string();
            text += line.trim_end();
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The box, and a line with the number of rows.
pub fn table(rows: &Rows) -> String {
    let total = rows.rows() as usize;
    let columns = rows.schema().len();
    if columns == 0 {
        return "no result".to_owned();
    }
    let half = ROWS / 2;
    let shown = |row: usize| total <= ROWS || row < half || row >= total - half;
    let picked: Vec<usize> =
        (0..columns).filter(|&c| columns <= COLUMNS || !(6..columns - 6).contains(&c)).collect();
    let mut grid: Vec<Vec<String>> = picked
        .iter()
        .map(|&c| vec![cell(&rows.schema()[c].name), cell(&rows.schema()[c].ty.to_string().to_lowercase())])
        .collect();
    let mut row = 0;
    for chunk in rows.chunks() {
        for r in 0..chunk.len() {
            for (column, &c) in grid.iter_mut().zip(&picked).filter(|_| shown(row)) {
                let ty = rows.schema()[c].ty;
                column.push(cell(&chunk.value(r, c, ty).display(ty).to_string()));
            }
            if total > ROWS && row == half {
                grid.iter_mut().for_each(|column| column.push("·".to_owned()));
            }
            row += 1;
        }
    }
    if picked.len() < columns {
        let gap = grid[0]
            .iter()
            .enumerate()
            .map(|(i, _)| if i == 1 { format!("+{}", columns - 12) } else { "…".into() });
        grid.insert(COLUMNS / 2, gap.collect());
    }
    let right: Vec<bool> = picked.iter().map(|&c| rows.schema()[c].ty.is_numeric()).collect();
    let right = |column: usize| right.get(column).copied().unwrap_or(false) && picked.len() == columns;
    let widths: Vec<usize> = grid.iter().map(|c| c.iter().map(|t| t.width()).max().unwrap_or(0)).collect();
    let rule = |ends: [&str; 3]| {
        let bars: Vec<String> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
        format!("{}{}{}\n", ends[0], bars.join(ends[1]), ends[2])
    };
    let mut text = rule(["┌", "┬", "┐"]);
    for line in 0..grid[0].len() {
        if line == 2 {
            text += &rule(["├", "┼", "┤"]);
        }
        for (i, column) in grid.iter().enumerate() {
            let pad = " ".repeat(widths[i] - column[line].width());
            let (before, after) = if right(i) { (pad.as_str(), "") } else { ("", pad.as_str()) };
            write!(text, "│ {before}{}{after} ", column[line]).expect("strings take everything");
        }
        text += "│\n";
    }
    text += &rule(["└", "┴", "┘"]);
    text + &format!("{total} row{}", if total == 1 { "" } else { "s" })
}

/// `text` on one line, at most [`WIDTH`] wide.
fn cell(text: &str) -> String {
    let mut line = String::new();
    let mut width = 0;
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        width += c.width().unwrap_or(0);
        if width > WIDTH {
            line.pop();
            return line + "…";
        }
        line.push(c);
    }
    line
}
