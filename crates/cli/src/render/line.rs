//! One line for each cell, names aligned, an empty line between rows: for few rows with many columns.

use super::{Look, Renderer, ResultPart};
use entasis_vector::Schema;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Writes cells as lines.
pub struct Line {
    null: String,
    /// The names, aligned to the right.
    names: Vec<String>,
    is_first: bool,
}

impl Line {
    /// With the look's NULL.
    pub fn new(look: &Look, schema: &Schema) -> Line {
        let width = schema.iter().map(|field| field.name.width()).max().unwrap_or(0);
        let name = |name: &str| format!("{}{name}", " ".repeat(width - name.width()));
        let names = schema.iter().map(|field| name(&field.name)).collect();
        Line { null: look.null_or("NULL"), names, is_first: true }
    }
}

impl Renderer for Line {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            if !std::mem::take(&mut self.is_first) {
                writeln!(out)?;
            }
            for (column, name) in self.names.iter().enumerate() {
                let text = part.text(row, column);
                writeln!(out, "{name} = {}", text.as_deref().unwrap_or(&self.null))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};

    #[test]
    fn names_are_aligned() {
        let text = testing::written(Mode::Line, &testing::sample());
        assert!(text.starts_with(" name = a,\"b\"|\n    n = 12\nshare = 1.50\n\n name = NULL\n"), "{text}");
        assert!(text.contains("share = NULL\n\n name = x\n"), "{text}");
    }
}
