//! An HTML table, numbers right-aligned, NULL an empty cell: to be put into a page.

use super::{Look, Renderer, ResultPart};
use entasis_vector::Schema;
use std::io::{self, Write};

/// Writes rows as those of a table.
pub struct Html {
    null: String,
    /// The row of names, if it is to be written.
    names: Option<String>,
}

impl Html {
    /// With the look's names and NULL.
    pub fn new(look: &Look, schema: &Schema) -> Html {
        let name = |name: &str| format!("<th>{}</th>", escaped(name));
        let names = || schema.iter().map(|field| name(&field.name)).collect::<String>();
        Html { null: escaped(&look.null_or("")), names: look.headers.then(names) }
    }
}

impl Renderer for Html {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<table>")?;
        self.names.iter().try_for_each(|names| writeln!(out, "<thead><tr>{names}</tr></thead>"))?;
        writeln!(out, "<tbody>")
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            write!(out, "<tr>")?;
            for column in 0..part.schema().len() {
                let align = if part.ty(column).is_numeric() { " align=\"right\"" } else { "" };
                let text = part.text(row, column).map_or_else(|| self.null.clone(), |text| escaped(&text));
                write!(out, "<td{align}>{text}</td>")?;
            }
            writeln!(out, "</tr>")?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<Option<u64>> {
        writeln!(out, "</tbody>\n</table>")?;
        Ok(None)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};
    use entasis_vector::DataType;

    #[test]
    fn cells_are_escaped() {
        let columns = [("a<b", DataType::Varchar), ("n", DataType::Int32)];
        let rows = [vec![testing::text("<b>\"x\" & y</b>"), entasis_vector::Value::Null]];
        assert_eq!(
            testing::written(Mode::Html, &testing::result(&columns, &rows)),
            "<table>\n<thead><tr><th>a&lt;b</th><th>n</th></tr></thead>\n<tbody>\n\
             <tr><td>&lt;b&gt;&quot;x&quot; &amp; y&lt;/b&gt;</td><td align=\"right\"></td></tr>\n\
             </tbody>\n</table>\n"
        );
    }
}
