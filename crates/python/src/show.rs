//! A result to look at: as text for `show()` and prompts, as HTML for notebooks. Both show the first and last
//! rows, leave out columns in the middle if there are many, and cut long values. What `EXPLAIN` says is shown
//! whole, as lines.

use entasis::{DataType, Rows};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// With more rows than this, only the first and last ones are shown.
const ROWS: usize = 20;

/// How much is shown of a result.
struct Measure {
    /// With more columns than this, those in the middle are left out.
    columns: usize,
    /// Maximum width of a cell.
    width: usize,
}

const TEXT: Measure = Measure { columns: 12, width: 32 };
const HTML: Measure = Measure { columns: 20, width: 100 };

/// The part of a result that is shown.
struct Excerpt {
    columns: Vec<ShownColumn>,
    /// Number of rows of the result.
    total: usize,
    /// How many columns are left out, in the middle of the others.
    without: usize,
}

/// A column that is shown.
struct ShownColumn {
    name: String,
    ty: String,
    is_number: bool,
    /// Its cells; `None` for NULL. If rows are left out, that is in the middle.
    cells: Vec<Option<String>>,
}

impl Excerpt {
    fn of(rows: &Rows, measure: &Measure) -> Excerpt {
        let (total, all) = (rows.rows() as usize, rows.schema().len());
        let half = measure.columns / 2;
        let is_shown = |at: &usize| all <= measure.columns || *at < half || *at >= all - half;
        let picked: Vec<usize> = (0..all).filter(is_shown).collect();
        let column = |&at: &usize| {
            let field = &rows.schema()[at];
            ShownColumn {
                name: cut(&field.name, measure.width),
                ty: cut(&field.ty.to_string().to_lowercase(), measure.width),
                is_number: field.ty.is_numeric(),
                cells: Vec::new(),
            }
        };
        let mut columns: Vec<ShownColumn> = picked.iter().map(column).collect();
        let mut first = 0;
        for chunk in rows.chunks() {
            let is_shown =
                |row: &usize| total <= ROWS || first + row < ROWS / 2 || first + row >= total - ROWS / 2;
            for row in (0..chunk.len()).filter(is_shown) {
                for (column, &at) in columns.iter_mut().zip(&picked) {
                    let ty = rows.schema()[at].ty;
                    let value = chunk.value(row, at, ty);
                    let text = || cut(&value.display(ty).to_string(), measure.width);
                    column.cells.push((!value.is_null()).then(text));
                }
            }
            first += chunk.len();
        }
        Excerpt { columns, total, without: all - picked.len() }
    }

    /// Number of rows that are shown.
    fn rows(&self) -> usize {
        self.total.min(ROWS)
    }

    /// True if rows are left out above this one.
    fn is_gap(&self, row: usize) -> bool {
        self.total > ROWS && row == ROWS / 2
    }

    /// Whether columns are left out before this one.
    fn is_gap_before(&self, column: usize) -> bool {
        self.without > 0 && column == self.columns.len() / 2
    }
}

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

/// The same for notebooks.
pub fn html_lines(rows: &Rows) -> String {
    format!("<pre>{}</pre>", escaped(&lines(rows)))
}

/// The box, and a line with the number of rows.
pub fn table(rows: &Rows) -> String {
    if rows.schema().is_empty() {
        return "no result".to_owned();
    }
    let excerpt = Excerpt::of(rows, &TEXT);
    // The texts of each column that is drawn, from top to bottom, and whether they are at the right.
    let mut grid: Vec<(Vec<String>, bool)> = Vec::new();
    for (at, column) in excerpt.columns.iter().enumerate() {
        if excerpt.is_gap_before(at) {
            let mut gap = vec!["…".to_owned(); column.cells.len() + 2];
            gap[1] = format!("+{}", excerpt.without);
            grid.push((gap, false));
        }
        let cells = column.cells.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".to_owned()));
        let texts = [column.name.clone(), column.ty.clone()].into_iter().chain(cells);
        grid.push((texts.collect(), column.is_number));
    }
    if excerpt.total > ROWS {
        grid.iter_mut().for_each(|(texts, _)| texts.insert(2 + ROWS / 2, "·".to_owned()));
    }
    let width = |(texts, _): &(Vec<String>, bool)| texts.iter().map(|text| text.width()).max().unwrap_or(0);
    let widths: Vec<usize> = grid.iter().map(width).collect();
    let rule = |ends: [&str; 3]| {
        let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{}{}{}\n", ends[0], bars.join(ends[1]), ends[2])
    };
    let mut text = rule(["┌", "┬", "┐"]);
    for line in 0..grid[0].0.len() {
        if line == 2 {
            text += &rule(["├", "┼", "┤"]);
        }
        for ((texts, is_right), width) in grid.iter().zip(&widths) {
            let pad = " ".repeat(width - texts[line].width());
            let (before, after) = if *is_right { (pad.as_str(), "") } else { ("", pad.as_str()) };
            write!(text, "│ {before}{}{after} ", texts[line]).expect("strings take everything");
        }
        text += "│\n";
    }
    text += &rule(["└", "┴", "┘"]);
    text + &counted(excerpt.total, "row")
}

/// A table, and a line with the number of rows.
pub fn html(rows: &Rows) -> String {
    const DIM: &str = "opacity:.55;font-weight:normal";
    if rows.schema().is_empty() {
        return "<p>no result</p>".to_owned();
    }
    let excerpt = Excerpt::of(rows, &HTML);
    let side = |column: &ShownColumn| if column.is_number { "right" } else { "left" };
    // One row of the table, from the cell of each column.
    let line = |tag: &str, gap: &str, cell: &dyn Fn(&ShownColumn) -> String| {
        let mut text = String::from("<tr>");
        for (at, column) in excerpt.columns.iter().enumerate() {
            if excerpt.is_gap_before(at) {
                write!(text, "<{tag} style=\"{DIM}\">{gap}</{tag}>").expect("strings take everything");
            }
            let (side, cell) = (side(column), cell(column));
            write!(text, "<{tag} style=\"text-align:{side};white-space:pre\">{cell}</{tag}>")
                .expect("strings take everything");
        }
        text + "</tr>\n"
    };
    let head = |column: &ShownColumn| {
        format!("{}<br><span style=\"{DIM}\">{}</span>", escaped(&column.name), escaped(&column.ty))
    };
    let mut text = String::from("<div>\n<table>\n<thead>");
    text += &line("th", &format!("+{}", excerpt.without), &head);
    text += "</thead>\n<tbody>\n";
    for row in 0..excerpt.rows() {
        if excerpt.is_gap(row) {
            text += &line("td", "…", &|_| "⋮".to_owned());
        }
        text += &line("td", "…", &|column| match &column.cells[row] {
            Some(value) => escaped(value),
            None => format!("<span style=\"{DIM}\">NULL</span>"),
        });
    }
    let mut note = counted(excerpt.total, "row");
    if excerpt.total > ROWS {
        note += &format!(", {ROWS} of them shown");
    }
    if excerpt.without > 0 {
        let shown = excerpt.columns.len();
        note += &format!("; {}, {shown} of them shown", counted(shown + excerpt.without, "column"));
    }
    text + &format!("</tbody>\n</table>\n<p style=\"{DIM}\">{note}</p>\n</div>")
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Text for a place in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `text` on one line, at most `most` wide.
fn cut(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut width = 0;
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        width += c.width().unwrap_or(0);
        if width > most {
            line.pop();
            return line + "…";
        }
        line.push(c);
    }
    line
}
