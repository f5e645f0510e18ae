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
//!
//! If rows are left out, only those that are shown are kept: the first ones, and always the last ones so far.
//! If not, the first 10,000 rows decide how wide the columns are. They and all later rows are written as they
//! come, so that memory is bounded; a later cell that is wider makes its row wider.

use super::{Look, Renderer, ResultPart, Screen};
use entasis_vector::Schema;
use std::collections::VecDeque;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// With more rows than this, a terminal shows only the first and last ones.
const ROWS_SHOWN: usize = 40;
/// How many rows decide the widths of columns.
const MEASURED: usize = 10_000;
/// No column is narrowed below this width to make the others fit.
const NARROW: usize = 14;
/// The most characters of a cell that are considered on a terminal, however long it is.
const LONGEST: usize = 500;

/// The cells of a row; `None` is NULL.
type Cells = Vec<Option<String>>;

/// Writes rows as a box.
pub struct Table {
    screen: Screen,
    headers: bool,
    null: String,
    /// With more rows than this, only the first and last ones are shown.
    limit: Option<usize>,
    columns: Vec<Column>,
    /// The first rows; none once they are written.
    first: Vec<Cells>,
    /// The last rows so far, if some are left out.
    last: VecDeque<Cells>,
    rows: usize,
    /// Whether what comes before the rows is written.
    has_begun: bool,
}

impl Table {
    /// For these columns.
    pub fn new(look: &Look, schema: &Schema, screen: Screen) -> Table {
        let limit = match look.max_rows {
            Some(0) => None,
            Some(rows) => Some(rows),
            None => screen.width.map(|_| ROWS_SHOWN),
        };
        let longest = longest(screen);
        let columns = schema.iter().enumerate().map(|(place, field)| {
            let (name, ty) = match look.headers {
                true => (visible(&field.name, longest), field.ty.to_string().to_lowercase()),
                false => (String::new(), String::new()),
            };
            let width = name.width().max(ty.width()).max(1);
            let (right, flexible) = (field.ty.is_numeric(), field.ty.is_string());
            Column { place: Some(place), name, ty, right, flexible, width }
        });
        Table {
            screen,
            headers: look.headers,
            null: visible(&look.null_or("NULL"), longest),
            limit,
            columns: columns.collect(),
            first: Vec::new(),
            last: VecDeque::new(),
            rows: 0,
            has_begun: false,
        }
    }

    /// How many of the last rows are shown if some are left out.
    fn tail(&self) -> usize {
        self.limit.map_or(0, |limit| limit / 2)
    }

    /// Decides the widths by the rows that are kept, and writes what comes before the rows.
    fn begin_box(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.has_begun = true;
        for column in &mut self.columns {
            let Some(place) = column.place else { continue };
            let cells = self.first.iter().chain(&self.last).map(|cells| &cells[place]);
            let widths = cells.map(|cell| cell.as_ref().unwrap_or(&self.null).width());
            column.width = widths.max().unwrap_or(0).max(column.width);
        }
        self.columns = fit(std::mem::take(&mut self.columns), self.screen.width);
        let (columns, style) = (&self.columns, self.screen.style);
        rule(out, columns, ["┌", "┬", "┐"])?;
        if self.headers {
            row(out, columns, |c| self.pad(c, &c.name, Some(&style.bold(&c.name))))?;
            row(out, columns, |c| self.pad(c, &c.ty, Some(&style.dim(&c.ty))))?;
            rule(out, columns, ["├", "┼", "┤"])?;
        }
        Ok(())
    }

    fn write_row(&self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        row(out, &self.columns, |column| match column.place.map(|place| &cells[place]) {
            None => self.pad(column, "…", None),
            Some(None) => self.pad(column, &self.null, Some(&self.screen.style.dim(&self.null))),
            Some(Some(text)) => self.pad(column, text, None),
        })
    }

    /// `text` cut or padded to the column's width; `painted` is the same text with colours. Only a terminal
    /// has cells that are too wide cut.
    fn pad(&self, column: &Column, text: &str, painted: Option<&str>) -> String {
        let width = text.width();
        if width > column.width && self.screen.width.is_some() {
            return cut(text, column.width);
        }
        let space = " ".repeat(column.width.saturating_sub(width));
        let text = painted.unwrap_or(text);
        if column.right { space + text } else { text.to_owned() + &space }
    }
}

impl Renderer for Table {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        let longest = longest(self.screen);
        for at in 0..part.rows() {
            let cell = |column| part.text(at, column).map(|text| visible(&text, longest));
            let cells: Cells = (0..part.schema().len()).map(cell).collect();
            self.rows += 1;
            if self.rows <= self.limit.unwrap_or(MEASURED) {
                self.first.push(cells);
            } else if self.limit.is_some() {
                self.last.push_back(cells);
                if self.last.len() > self.tail() {
                    self.last.pop_front();
                }
            } else {
                if !self.has_begun {
                    self.begin_box(out)?;
                    std::mem::take(&mut self.first)
                        .iter()
                        .try_for_each(|cells| self.write_row(cells, out))?;
                }
                self.write_row(&cells, out)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<Option<u64>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let mut shown = None;
        let mut kept: VecDeque<Cells> = std::mem::take(&mut self.first).into();
        if let Some(limit) = self.limit.filter(|limit| self.rows > *limit) {
            // The rows that are shown at the end may be among the first ones that were kept.
            let mut all = kept;
            all.append(&mut self.last);
            self.last = all.split_off(all.len() - self.tail());
            all.truncate(limit - self.tail());
            kept = all;
            shown = Some(limit as u64);
        }
        self.first = kept.into();
        if !self.has_begun {
            self.begin_box(out)?;
        }
        self.first.iter().try_for_each(|cells| self.write_row(cells, out))?;
        if shown.is_some() {
            row(out, &self.columns, |c| format!("{:^width$}", "·", width = c.width))?;
        }
        self.last.iter().try_for_each(|cells| self.write_row(cells, out))?;
        rule(out, &self.columns, ["└", "┴", "┘"])?;
        Ok(shown)
    }
}

/// The most characters of a cell that are considered.
fn longest(screen: Screen) -> usize {
    if screen.width.is_some() { LONGEST } else { usize::MAX }
}

/// A column as it is displayed.
struct Column {
    /// Its place in a row; `None`: it represents those that are left out.
    place: Option<usize>,
    name: String,
    ty: String,
    right: bool,
    /// Cells may be cut to make room.
    flexible: bool,
    width: usize,
}

impl Column {
    fn left_out(count: usize) -> Column {
        let ty = format!("+{count}");
        Column { place: None, name: "…".into(), width: ty.len(), ty, right: false, flexible: false }
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
pub fn visible(text: &str, limit: usize) -> String {
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
pub fn cut(text: &str, width: usize) -> String {
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
    use super::*;
    use crate::render::{Mode, testing};
    use crate::style::Style;
    use entasis_vector::{DataType, Value};

    fn shown(
        columns: &[(&str, DataType)],
        rows: &[Vec<Value>],
        width: Option<usize>,
        max_rows: Option<usize>,
    ) -> (String, Option<u64>) {
        let look = Look { max_rows, ..Look::new(Mode::Table) };
        testing::shown(&look, Screen { width, style: Style::PLAIN }, &testing::result(columns, rows))
    }

    fn numbers(rows: i128) -> Vec<Vec<Value>> {
        (0..rows).map(|i| vec![Value::Integer(i)]).collect()
    }

    #[test]
    fn a_box_has_names_types_and_aligned_cells() {
        let text = testing::written(Mode::Table, &testing::sample());
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
        let columns = [("i", DataType::Int32)];
        let (text, shown_rows) = shown(&columns, &numbers(100), Some(80), None);
        assert_eq!(shown_rows, Some(40));
        assert!(text.contains("│      19 │\n│    ·    │\n│      80 │"), "{text}");
        assert_eq!(shown(&columns, &numbers(40), Some(80), None).1, None);
        assert!(!shown(&columns, &numbers(40), Some(80), None).0.contains('·'));
        let (text, _) = shown(&columns, &numbers(41), Some(80), None);
        assert!(text.contains("│      19 │\n│    ·    │\n│      21 │"), "{text}");
        assert_eq!(shown(&columns, &numbers(100), None, None).1, None);
    }

    #[test]
    fn as_many_rows_are_shown_as_are_wanted() {
        let columns = [("i", DataType::Int32)];
        for (most, has) in
            [(1, "│       0 │\n│    ·    │\n└"), (3, "│       1 │\n│    ·    │\n│      99 │\n└")]
        {
            let (text, rows) = shown(&columns, &numbers(100), None, Some(most));
            assert!(text.contains(has), "{text}");
            assert_eq!(rows, Some(most as u64));
        }
        assert!(shown(&columns, &numbers(100), Some(80), Some(0)).0.contains("│      50 │"));
    }

    #[test]
    fn rows_after_those_that_are_measured_are_written_at_once() {
        let (schema, chunks) = testing::result(&[("i", DataType::Int64)], &numbers(MEASURED as i128));
        let (_, wide) = testing::result(&[("i", DataType::Int64)], &[vec![Value::Integer(1 << 40)]]);
        let screen = Screen { width: None, style: Style::PLAIN };
        let mut table = Table::new(&Look::new(Mode::Table), &schema, screen);
        let mut out = Vec::new();
        let part = |chunk| ResultPart::new(&schema, chunk, entasis::TimeZone::UTC);
        chunks.iter().for_each(|chunk| table.rows(&part(chunk), &mut out).unwrap());
        assert!(out.is_empty());
        table.rows(&part(&wide[0]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("│   9999 │\n│ 1099511627776 │\n"), "{}", &text[text.len() - 100..]);
    }

    #[test]
    fn without_headers_there_are_only_rows() {
        let look = Look { headers: false, null: Some("-".into()), ..Look::new(Mode::Table) };
        let text =
            testing::with_look(&look, &testing::result(&[("long", DataType::Int32)], &[vec![Value::Null]]));
        assert_eq!(text, "┌───┐\n│ - │\n└───┘\n");
    }

    #[test]
    fn whatever_the_width_the_box_fits() {
        let long = testing::text(&"wörter 漢字 ".repeat(40));
        let columns: Vec<(String, DataType)> = (0..12)
            .map(|i| (format!("column_{i}"), if i % 3 == 0 { DataType::Varchar } else { DataType::Int64 }))
            .collect();
        let columns: Vec<(&str, DataType)> = columns.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
        let row =
            (0..12).map(|i| if i % 3 == 0 { long.clone() } else { Value::Integer(i) }).collect::<Vec<_>>();
        for width in 50..200 {
            let (text, _) = shown(&columns, std::slice::from_ref(&row), Some(width), None);
            let widths: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
            assert!(widths.iter().all(|&w| w == widths[0] && w <= width), "{width}\n{text}");
            assert!(text.contains("column_0") && text.contains("column_11"), "{text}");
        }
    }
}
