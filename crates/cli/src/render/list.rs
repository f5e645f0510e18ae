//! The values of a row on a line, with a bar between them, as they are: for `cut`, `awk` and scripts that
//! know what the values are. NULL is an empty field. Values are not quoted, so those that contain the
//! separator or a line end cannot be told apart from several; csv can.

use super::{Look, Renderer, ResultPart};
use entasis_vector::Schema;
use std::io::{self, Write};

/// Writes rows as lines.
pub struct List {
    separator: String,
    null: String,
    /// The line of names, if it is to be written.
    names: Option<String>,
}

impl List {
    /// With the look's separator.
    pub fn new(look: &Look, schema: &Schema) -> List {
        let separator = look.separator_or("|");
        let names = || schema.iter().map(|field| field.name.to_string()).collect::<Vec<_>>().join(&separator);
        let names = look.headers.then(names);
        List { null: look.null_or(""), names, separator }
    }
}

impl Renderer for List {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.names.iter().try_for_each(|names| writeln!(out, "{names}"))
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            for column in 0..part.schema().len() {
                let text = part.text(row, column);
                let before = if column == 0 { "" } else { &self.separator };
                write!(out, "{before}{}", text.as_deref().unwrap_or(&self.null))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Look, Mode, testing};

    #[test]
    fn values_are_written_as_they_are() {
        let text = testing::written(Mode::List, &testing::sample());
        assert_eq!(text, "name|n|share\na,\"b\"||12|1.50\n|3|\nx\ny|-4|0.05\n");
        let look = Look { headers: false, separator: Some(" : ".into()), ..Look::new(Mode::List) };
        assert!(testing::with_look(&look, &testing::sample()).starts_with("a,\"b\"| : 12 : 1.50\n"));
    }
}
