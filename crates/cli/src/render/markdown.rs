//! A Markdown table, with numbers right-aligned. Bars are escaped, line ends become `<br>`, NULL is an empty
//! cell.

use super::Answer;
use std::io::{self, Write};

pub fn write(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut names = String::from("|");
    let mut rules = String::from("|");
    for field in answer.schema() {
        names.push_str(&format!(" {} |", escaped(&field.name)));
        rules.push_str(if field.ty.is_numeric() { "--:|" } else { "---|" });
    }
    writeln!(out, "{names}\n{rules}")?;
    for row in 0..answer.rows() {
        let mut line = String::from("|");
        for column in 0..answer.schema().len() {
            line.push_str(&format!(" {} |", escaped(&answer.text(row, column).unwrap_or_default())));
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
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
