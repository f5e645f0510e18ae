//! A Markdown table, with numbers right-aligned. Bars are escaped, line ends become `<br>`, NULL is an empty
//! cell. There is no such table without a header.

use super::{Look, Renderer, ResultPart};
use entasis_vector::Schema;
use std::io::{self, Write};

/// Writes rows as those of a table.
pub struct Markdown {
    null: String,
    header: String,
}

impl Markdown {
    /// With the look's NULL.
    pub fn new(look: &Look, schema: &Schema) -> Markdown {
        let mut names = String::from("|");
        let mut rules = String::from("|");
        for field in schema {
            names.push_str(&format!(" {} |", escaped(&field.name)));
            rules.push_str(if field.ty.is_numeric() { "--:|" } else { "---|" });
        }
        Markdown { null: escaped(&look.null_or("")), header: format!("{names}\n{rules}") }
    }
}

impl Renderer for Markdown {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.header)
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            let mut line = String::from("|");
            for column in 0..part.schema().len() {
                let text = part.text(row, column).map_or_else(|| self.null.clone(), |text| escaped(&text));
                line.push_str(&format!(" {text} |"));
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};

    #[test]
    fn cells_stay_in_their_row() {
        assert_eq!(
            testing::written(Mode::Markdown, &testing::sample()),
            "| name | n | share |\n|---|--:|--:|\n| a,\"b\"\\| | 12 | 1.50 |\n|  | 3 |  |\n| x<br>y | -4 | 0.05 |\n"
        );
    }
}
