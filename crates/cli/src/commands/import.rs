//! `.import FILE TABLE`: adds the rows of a file to a table. A table that does not exist is made with the
//! names and types that the file has.
//!
//! | option | |
//! |---|---|
//! | `--csv` | the file is CSV, whatever its name says |
//! | `--skip N` | its first N lines are not rows; then there is no header |
//! | `--delimiter X` | X is between its fields |
//!
//! The statements are those that a user would write, `CREATE TABLE … AS` and `INSERT INTO`, and so are their
//! errors. Columns go by their position, as in the shells of others.

use super::arguments::Call;
use super::results::unescaped;
use super::{Ran, measured, say};
use crate::literal::{quoted_path, text_literal};
use crate::session::{Outcome, Session};
use crate::words::count;
use entasis::{Error, Result};

/// What is imported.
#[derive(Debug, Default, PartialEq, Eq)]
struct Import {
    file: String,
    table: String,
    csv: bool,
    skip: u64,
    delimiter: Option<String>,
}

impl Import {
    fn parse(call: Call<'_>) -> Result<Import> {
        let mut import = Import::default();
        let mut places = Vec::new();
        let mut words = call.words()?.into_iter();
        while let Some(word) = words.next() {
            let mut value =
                |what: &str| words.next().ok_or_else(|| call.error(format!("{word} takes {what}")));
            match word.as_str() {
                "--csv" => import.csv = true,
                "--skip" => {
                    let number = value("a number of lines")?;
                    import.skip = number
                        .parse()
                        .map_err(|_| call.error(format!("--skip takes a number of lines, not {number}")))?;
                }
                "--delimiter" | "--separator" => import.delimiter = Some(unescaped(&value("a character")?)),
                option if option.starts_with('-') && option.len() > 1 => {
                    return Err(call.error(format!("has no option {option}")));
                }
                _ => places.push(word),
            }
        }
        match <[String; 2]>::try_from(places) {
            Ok([file, table]) => Ok(Import { file, table, ..import }),
            Err(places) => Err(call.error(format!("takes a file and a table, not {} of them", places.len()))),
        }
    }

    /// The rows of the file, as they appear after FROM.
    fn source(&self) -> String {
        let file = text_literal(&self.file);
        let mut options = String::new();
        if let Some(delimiter) = &self.delimiter {
            options += &format!(", delim = {}", text_literal(delimiter));
        }
        if self.skip > 0 {
            options += &format!(", skip = {}", self.skip);
        }
        match self.csv || !options.is_empty() {
            true => format!("read_csv({file}{options})"),
            false => file,
        }
    }
}

/// `.import FILE TABLE [--csv] [--skip N] [--delimiter X]`
pub(super) fn import(session: &mut Session, call: Call<'_>) -> Ran {
    let import = Import::parse(call)?;
    let (source, table) = (import.source(), quoted_path(&import.table));
    let connection = session.connection().clone();
    let exists = connection.describe(&format!("SELECT * FROM {table}"), &[]).is_ok();
    let sql = match exists {
        true => format!("INSERT INTO {table} SELECT * FROM {source}"),
        false => format!("CREATE TABLE {table} AS SELECT * FROM {source}"),
    };
    let rows = measured(session, call, |session| {
        let rows = session.interrupts.guard(|| connection.execute(&sql));
        // Positions are those in a statement that the user has not written.
        let rows = rows.map_err(|error| match error.hint() {
            Some(hint) => Error::new(error.kind(), error.message()).with_hint(hint),
            None => Error::new(error.kind(), error.message()),
        })?;
        Ok(rows.changed().unwrap_or(0))
    })?;
    if session.is_interactive {
        let what = count(rows, "row", "rows");
        let made = if exists { "added to" } else { "in the new table" };
        return say(session, format!("{what} {made} {}\n", import.table));
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Import> {
        Import::parse(Call { name: "import", text, line: 1 })
    }

    #[test]
    fn options_are_those_of_read_csv() {
        assert_eq!(parse("a.csv t").unwrap().source(), "'a.csv'");
        assert_eq!(parse("--csv 'a b.txt' t").unwrap().source(), "read_csv('a b.txt')");
        let import = parse("--skip 1 it's.csv s.t --delimiter \\t").unwrap();
        assert_eq!(import.source(), "read_csv('it''s.csv', delim = '\t', skip = 1)");
        assert_eq!(import.table, "s.t");
    }

    #[test]
    fn wrong_arguments_are_errors() {
        for (text, part) in [
            ("", "a file and a table"),
            ("a.csv", "a file and a table"),
            ("a b c", "not 3"),
            ("a b --skip x", "not x"),
            ("a b --skip", "a number"),
            ("a b --schema s", "no option --schema"),
        ] {
            assert!(parse(text).unwrap_err().message().contains(part), "{text}");
        }
    }
}
