//! One line for each cell, names aligned, an empty line between rows: for few rows with many columns.

use super::Answer;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

pub fn write(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let width = answer.schema().iter().map(|field| field.name.width()).max().unwrap_or(0);
    for row in 0..answer.rows() {
        if row > 0 {
            writeln!(out)?;
        }
        for (column, field) in answer.schema().iter().enumerate() {
            let pad = width - field.name.width();
            let text = answer.text(row, column);
            writeln!(out, "{:pad$}{} = {}", "", field.name, text.as_deref().unwrap_or("NULL"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};

    #[test]
    fn names_are_aligned() {
        let text = testing::written(Mode::Line, &testing::sample());
        assert!(text.starts_with(" name = a,\"b\"|\n    n = 12\nshare = 1.50\n\n name = NULL\n"), "{text}");
    }
}
