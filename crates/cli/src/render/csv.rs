//! Comma-separated values after RFC 4180, lines ending in a line feed. NULL is an empty field, the empty
//! string `""`.

use super::Answer;
use std::borrow::Cow;
use std::io::{self, Write};

pub fn write(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let columns = answer.schema().len();
    let mut line = String::new();
    for (i, field) in answer.schema().iter().enumerate() {
        push(&mut line, i, &quoted(&field.name));
    }
    writeln!(out, "{line}")?;
    for row in 0..answer.rows() {
        line.clear();
        for column in 0..columns {
            let text = answer.text(row, column);
            push(&mut line, column, &text.as_deref().map_or(Cow::Borrowed(""), quoted));
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn push(line: &mut String, column: usize, field: &str) {
    if column > 0 {
        line.push(',');
    }
    line.push_str(field);
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Mode, testing};

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let text = testing::written(Mode::Csv, &testing::sample());
        assert_eq!(text, "name,n,share\n\"a,\"\"b\"\"|\",12,1.50\n,3,\n\"x\ny\",-4,0.05\n");
    }
}
