//! A box for people to read, at most as wide as the terminal.
//!
//! ```text
//! ┌─────────┬────────┐
//! │ carrier │      n │   names
//! │ varchar │ bigint │   types
//! ├─────────┼────────┤
//! │ UA      │  58665 │   numbers right-aligned
//! │    ·    │    ·   │   rows left out, if there are more than 40
//! │ OO      │     32 │
//! └─────────┴────────┘
//! ```
//! What does not fit is shortened in this order: first cells of the widest columns, down to a readable width;
//! then columns in the middle are replaced by one column of `…`. Without a terminal nothing is left out.

use super::{Answer, Screen};
use crate::style::Style;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// With more rows than this, only the first and last ones are shown.
const ROWS_SHOWN: usize = 40;
/// No column is narrowed below this width to make the others fit.
const NARROW: usize = 14;
/// The most characters of a cell that are considered on a terminal, however long it is.
const LONGEST: usize = 500;

/// A line of the body.
enum Line {
    Row(usize),
    /// Marks rows that were left out.
    Gap,
}

pub fn write(answer: &Answer<'_>, screen: Screen, out: &mut dyn Write) -> io::Result<usize> {
    if answer.schema().is_empty() {
        return Ok(answer.rows());
    }
    let lines = body(answer.rows(), screen.width.is_some());
    let columns: Vec<Column> =
        (0..answer.schema().len()).map(|i| Column::new(answer, i, &lines, screen)).collect();
    let columns = fit(columns, screen.width);

    rule(out, &columns, ["┌", "┬", "┐"])?;
    row(out, &columns, |c| c.pad(&c.name, Some(&screen.style.bold(&c.name))))?;
    row(out, &columns, |c| c.pad(&c.ty, Some(&screen.style.dim(&c.ty))))?;
    rule(out, &columns, ["├", "┼", "┤"])?;
    for (i, line) in lines.iter().enumerate() {
        match line {
            Line::Row(_) => row(out, &columns, |c| c.cell(i, screen.style))?,
            Line::Gap => row(out, &columns, |c| format!("{:^width$}", "·", width = c.width))?,
        }
    }
    rule(out, &columns, ["└", "┴", "┘"])?;
    Ok(lines.iter().filter(|line| matches!(line, Line::Row(_))).count())
}

fn body(rows: usize, shorten: bool) -> Vec<Line> {
    if !shorten || rows <= ROWS_SHOWN {
        return (0..rows).map(Line::Row).collect();
    }
    let half = ROWS_SHOWN / 2;
    (0..half).map(Line::Row).chain([Line::Gap]).chain((rows - half..rows).map(Line::Row)).collect()
}

/// A column as it is displayed.
struct Column {
    name: String,
    ty: String,
    right: bool,
    /// Cells may be cut to make room.
    flexible: bool,
    width: usize,
    /// One cell for each line of the body; `None` is NULL. Empty for the column that represents those left
    /// out.
    cells: Vec<Option<String>>,
}

impl Column {
    fn new(answer: &Answer<'_>, i: usize, lines: &[Line], screen: Screen) -> Column {
        let field = &answer.schema()[i];
        let limit = if screen.width.is_some() { LONGEST } else { usize::MAX };
        let cells: Vec<Option<String>> = lines
            .iter()
            .map(|line| match line {
                Line::Row(row) => answer.text(*row, i).map(|text| visible(&text, limit)),
                Line::Gap => Some(String::new()),
            })
            .collect();
        let (name, ty) = (visible(&field.name, limit), field.ty.to_string().to_lowercase());
        let widest = cells.iter().map(|cell| cell.as_ref().map_or(4, |text| text.width())).max().unwrap_or(0);
        let width = widest.max(name.width()).max(ty.width());
        Column { name, ty, right: field.ty.is_numeric(), flexible: field.ty.is_string(), width, cells }
    }

    fn left_out(count: usize) -> Column {
        let ty = format!("+{count}");
        Column { name: "…".into(), width: ty.len(), ty, right: false, flexible: false, cells: vec![] }
    }

    fn cell(&self, line: usize, style: Style) -> String {
        match self.cells.get(line) {
            None => self.pad("…", None),
            Some(None) => self.pad("NULL", Some(&style.dim("NULL"))),
            Some(Some(text)) => self.pad(text, None),
        }
    }

    /// `text` cut or padded to the column's width; `painted` is the same text with colours.
    fn pad(&self, text: &str, painted: Option<&str>) -> String {
        let width = text.width();
        if width > self.width {
            return cut(text, self.width);
        }
        let space = " ".repeat(self.width - width);
        let text = painted.unwrap_or(text);
        if self.right { space + text } else { text.to_owned() + &space }
    }
}

/// Narrows the columns, then drops some in the middle, until they fit into `limit`.
fn fit(mut columns: Vec<Column>, limit: Option<usize>) -> Vec<Column> {
    let Some(limit) = limit else { return columns };
    let total = |columns: &[Column]| 1 + columns.iter().map(|c| c.width + 3).sum::<usize>();
    loop {
        let excess = total(&columns).saturating_sub(limit);
        if excess == 0 {
            return columns;
        }
        // The widest column shrinks to the width of the second widest, then both shrink, and so on. Only
        // strings are cut.
        let widths = || columns.iter().filter(|c| c.flexible).map(|c| c.width).filter(|&w| w > NARROW);
        let Some(widest) = widths().max() else { break };
        let next = widths().filter(|&w| w < widest).max().unwrap_or(NARROW);
        let sharing = widths().filter(|&w| w == widest).count();
        let each = (widest - next).min(excess.div_ceil(sharing));
        for column in columns.iter_mut().filter(|c| c.flexible && c.width == widest) {
            column.width -= each;
        }
    }
    // Columns left and right of the one that represents those left out; the longer side loses the column next
    // to it.
    let mut right = columns.split_off(columns.len().div_ceil(2));
    let mut left = columns;
    let mut removed = 0;
    while left.len() + right.len() > 2 {
        if left.len() > right.len() {
            left.truncate(left.len() - 1)
        } else {
            drop(right.remove(0))
        }
        removed += 1;
        if total(&left) + total(&right) - 1 + Column::left_out(removed).width + 3 <= limit {
            break;
        }
    }
    left.extend((removed > 0).then(|| Column::left_out(removed)));
    left.extend(right);
    left
}

fn rule(out: &mut dyn Write, columns: &[Column], [left, middle, right]: [&str; 3]) -> io::Result<()> {
    let bars: Vec<String> = columns.iter().map(|c| "─".repeat(c.width + 2)).collect();
    writeln!(out, "{left}{}{right}", bars.join(middle))
}

fn row(out: &mut dyn Write, columns: &[Column], cell: impl Fn(&Column) -> String) -> io::Result<()> {
    let cells: Vec<String> = columns.iter().map(cell).collect();
    writeln!(out, "│ {} │", cells.join(" │ "))
}

/// `text` on one line, control characters as escapes, at most `limit` characters.
fn visible(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(limit));
    for c in text.chars().take(limit) {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// As much of `text` as fits into `width` columns, with a `…` at its end.
fn cut(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        line.push(c);
        used += w;
    }
    line + "…" + &" ".repeat(width.saturating_sub(used + 1))
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use entasis_vector::{DataType, Value};
    use std::sync::Arc;

    fn shown(columns: &[(&str, DataType)], rows: &[Vec<Value>], width: Option<usize>) -> (String, usize) {
        let (schema, chunks) = testing::result(columns, rows);
        let mut out = Vec::new();
        let screen = Screen { width, style: Style::PLAIN };
        let shown = write(&Answer::new(&schema, &chunks), screen, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), shown)
    }

    #[test]
    fn a_box_has_names_types_and_aligned_cells() {
        let text = testing::written(super::super::Mode::Table, &testing::sample());
        let expected = "\
┌─────────┬────────┬──────────────┐
│ name    │      n │        share │
│ varchar │ bigint │ decimal(4,2) │
├─────────┼────────┼──────────────┤
│ a,\"b\"|  │     12 │         1.50 │
│ NULL    │      3 │         NULL │
│ x\\ny    │     -4 │         0.05 │
└─────────┴────────┴──────────────┘
";
        assert_eq!(text, expected);
    }

    #[test]
    fn many_rows_show_head_and_tail_on_a_terminal() {
        let rows: Vec<Vec<Value>> = (0..100).map(|i| vec![Value::Integer(i)]).collect();
        let columns = [("i", DataType::Int32)];
        let (text, shown_rows) = shown(&columns, &rows, Some(80));
        assert_eq!(shown_rows, 40);
        assert!(text.contains("│      19 │\n│    ·    │\n│      80 │"), "{text}");
        assert_eq!(shown(&columns, &rows, None).1, 100);
    }

    #[test]
    fn whatever_the_width_the_box_fits() {
        let long = Value::Text(Arc::from("wörter 漢字 ".repeat(40)));
        let columns: Vec<(String, DataType)> = (0..12)
            .map(|i| (format!("column_{i}"), if i % 3 == 0 { DataType::Varchar } else { DataType::Int64 }))
            .collect();
        let columns: Vec<(&str, DataType)> = columns.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
        let row =
            (0..12).map(|i| if i % 3 == 0 { long.clone() } else { Value::Integer(i) }).collect::<Vec<_>>();
        for width in 50..200 {
            let (text, _) = shown(&columns, std::slice::from_ref(&row), Some(width));
            let widths: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
            assert!(widths.iter().all(|&w| w == widths[0] && w <= width), "{width}\n{text}");
            assert!(text.contains("column_0") && text.contains("column_11"), "{text}");
        }
    }
}
