//! Comma-separated values after RFC 4180, lines ending in a line feed. NULL is an empty field, the empty
//! string `""`. With tabs in place of commas it is the mode tsv: other programs read both by the same rules.

use super::{Look, Renderer, ResultPart};
use entasis_vector::Schema;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes rows as lines.
pub struct Csv {
    separator: String,
    null: String,
    /// The names, if they are to be written.
    names: Option<Vec<String>>,
    line: String,
}

impl Csv {
    /// With a text between fields.
    pub fn new(look: &Look, schema: &Schema, separator: String) -> Csv {
        let names = || schema.iter().map(|field| field.name.to_string()).collect();
        let names = look.headers.then(names);
        Csv { separator, null: look.null_or(""), names, line: String::new() }
    }

    fn push(&mut self, column: usize, field: Option<&str>) {
        if column > 0 {
            self.line.push_str(&self.separator);
        }
        match field {
            Some(text) => self.line.push_str(&self.quoted(text)),
            None => self.line.push_str(&self.null),
        }
    }

    /// A text as a field: in quotes if it would be read as something else.
    fn quoted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_special = text.contains(['"', '\n', '\r']) || text.contains(&self.separator);
        if is_special || text.is_empty() || text == self.null {
            Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
        } else {
            Cow::Borrowed(text)
        }
    }

    fn write_line(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.line.push('\n');
        out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

impl Renderer for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(names) = self.names.take() else { return Ok(()) };
        names.iter().enumerate().for_each(|(column, name)| self.push(column, Some(name)));
        self.write_line(out)
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            for column in 0..part.schema().len() {
                self.push(column, part.text(row, column).as_deref());
            }
            self.write_line(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Look, Mode, testing};

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let text = testing::written(Mode::Csv, &testing::sample());
        assert_eq!(text, "name,n,share\n\"a,\"\"b\"\"|\",12,1.50\n,3,\n\"x\ny\",-4,0.05\n");
    }

    #[test]
    fn tabs_separate_too() {
        let text = testing::written(Mode::Tsv, &testing::sample());
        assert_eq!(text, "name\tn\tshare\n\"a,\"\"b\"\"|\"\t12\t1.50\n\t3\t\n\"x\ny\"\t-4\t0.05\n");
    }

    #[test]
    fn header_null_and_separator_are_chosen() {
        let look = Look {
            headers: false,
            null: Some("NA".into()),
            separator: Some(";".into()),
            ..Look::new(Mode::Csv)
        };
        let columns = [("a", entasis_vector::DataType::Varchar)];
        let rows = [[testing::text("NA")].into(), [entasis_vector::Value::Null].into()];
        assert_eq!(testing::with_look(&look, &testing::result(&columns, &rows)), "\"NA\"\nNA\n");
        assert!(testing::with_look(&look, &testing::sample()).contains("\nNA;3;NA\n"));
    }
}
