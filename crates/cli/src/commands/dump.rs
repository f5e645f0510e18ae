//! `.dump [TABLE]`: everything, or a table or view, as a script that makes it again.
//!
//! 1. The declarations, in an order in which they work ([`entasis::Connection::declarations`]).
//! 2. The rows, table by table, each after those to which its foreign keys refer. A table that refers to
//!    itself is filled by one statement, because keys are checked at its end.
//! 3. What is only possible afterwards: foreign keys in a circle, sequences that are at their end.
//!
//! All of it is one transaction, and what it says is as of one moment. Temporary tables are not part of it.
//! Where a column is GENERATED ALWAYS, the rows are inserted with OVERRIDING SYSTEM VALUE.

use super::arguments::Call;
use super::look::{declarations, statements};
use super::{Ran, measured};
use crate::lex::{Kind, Token, begins_with, tokens};
use crate::literal::{literal, quoted_name};
use crate::session::{Fault, Outcome, Session};
use entasis::Connection;
use std::io::Write;

/// Rows of one statement.
const ROWS: usize = 500;

/// `.dump [TABLE]`
pub(super) fn dump(session: &mut Session, call: Call<'_>) -> Ran {
    let object = call.at_most_one()?;
    let connection = session.connection().clone();
    let is_own = !connection.in_transaction();
    if is_own {
        connection.execute("BEGIN")?;
    }
    let written = measured(session, call, |session| write_script(session, object.as_deref()));
    if is_own {
        connection.execute("ROLLBACK")?;
    }
    written?;
    Ok(Outcome::Done)
}

/// Writes the script, until Ctrl-C. Returns the number of rows in it.
fn write_script(session: &mut Session, object: Option<&str>) -> Result<u64, Fault> {
    let text = declarations(session, object)?;
    let connection = session.connection().clone();
    let Session { interrupts, out, .. } = session;
    interrupts.guard(|| write(&connection, &text, &mut interrupts.output(out)))
}

fn write(connection: &Connection, declarations: &str, out: &mut dyn Write) -> Result<u64, Fault> {
    writeln!(out, "BEGIN;")?;
    let is_later = |sql: &&str| !begins_with(sql, &["create"]);
    for sql in statements(declarations).filter(|sql| !is_later(sql)) {
        writeln!(out, "{sql};")?;
    }
    let mut rows = 0;
    for table in statements(declarations).filter_map(Declared::of) {
        rows += write_rows(connection, &table, out)?;
    }
    for sql in statements(declarations).filter(is_later) {
        writeln!(out, "{sql};")?;
    }
    writeln!(out, "COMMIT;")?;
    Ok(rows)
}

/// A table that a statement declares.
#[derive(Debug, PartialEq, Eq)]
struct Declared<'a> {
    /// Its name as it is written.
    name: &'a str,
    /// Whether a foreign key refers to the table itself.
    refers_to_itself: bool,
    /// Whether a column takes no values unless `OVERRIDING` says so.
    is_generated: bool,
}

impl Declared<'_> {
    /// That of `CREATE TABLE name (…)`; `None` for other statements.
    fn of(sql: &str) -> Option<Declared<'_>> {
        let tokens: Vec<Token> = tokens(sql).into_iter().filter(|token| !token.is_blank()).collect();
        let is = |token: &Token, word: &str| {
            token.kind == Kind::Word && token.text(sql).eq_ignore_ascii_case(word)
        };
        let is_open = |token: &&Token| token.kind == Kind::Symbol && token.text(sql) == "(";
        if !is(tokens.first()?, "create") || !is(tokens.get(1)?, "table") {
            return None;
        }
        // The name that begins at a token, up to the bracket after it.
        let name_from = |at: usize| {
            let open = tokens[at..].iter().find(is_open)?;
            Some(sql[tokens[at].range.start..open.range.start].trim_end())
        };
        let name = name_from(2)?;
        let refers =
            |(at, token): (usize, &Token)| is(token, "references") && name_from(at + 1) == Some(name);
        let always = |two: &[Token]| is(&two[0], "generated") && is(&two[1], "always");
        Some(Declared {
            name,
            refers_to_itself: tokens.iter().enumerate().any(refers),
            is_generated: tokens.windows(2).any(always),
        })
    }
}

/// `INSERT` for the rows of a table, of which it returns the number.
fn write_rows(connection: &Connection, table: &Declared<'_>, out: &mut dyn Write) -> Result<u64, Fault> {
    // A temporary table may have the name, too.
    let qualified =
        if has_schema(table.name) { table.name.to_owned() } else { format!("main.{}", table.name) };
    let mut rows = connection.stream(&format!("SELECT * FROM {qualified}"), &[])?;
    let schema = rows.schema().clone();
    let names: Vec<String> = schema.iter().map(|field| quoted_name(&field.name)).collect();
    let overriding = if table.is_generated { " OVERRIDING SYSTEM VALUE" } else { "" };
    let begin = format!("INSERT INTO {} ({}){overriding} VALUES", table.name, names.join(", "));
    let most = if table.refers_to_itself { usize::MAX } else { ROWS };
    let (mut written, mut all) = (0, 0);
    while let Some(chunk) = rows.next_chunk()? {
        for row in 0..chunk.len() {
            let values: Vec<String> = schema
                .iter()
                .enumerate()
                .map(|(column, field)| literal(&chunk.value(row, column, field.ty), field.ty))
                .collect();
            match written {
                0 => write!(out, "{begin}\n  ")?,
                _ => write!(out, ",\n  ")?,
            }
            write!(out, "({})", values.join(", "))?;
            (written, all) = (written + 1, all + 1);
            if written == most {
                writeln!(out, ";")?;
                written = 0;
            }
        }
    }
    if written > 0 {
        writeln!(out, ";")?;
    }
    Ok(all)
}

/// Whether a name as it is written has more than one part.
fn has_schema(name: &str) -> bool {
    tokens(name).iter().any(|token| token.kind == Kind::Symbol && token.text(name) == ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_in_their_declarations() {
        let of = |sql| Declared::of(sql).map(|table| (table.name, table.refers_to_itself));
        assert_eq!(of("CREATE TABLE t (\n a INTEGER)"), Some(("t", false)));
        let own =
            "CREATE TABLE s.\"a (b\" (a INTEGER, CONSTRAINT c FOREIGN KEY (a) REFERENCES s.\"a (b\" (a))";
        assert_eq!(of(own), Some(("s.\"a (b\"", true)));
        assert_eq!(of("CREATE TABLE t (a INTEGER, FOREIGN KEY (a) REFERENCES u (a))"), Some(("t", false)));
        assert_eq!(of("CREATE VIEW v AS SELECT 1"), None);
        assert!(has_schema("s.\"t\"") && !has_schema("\"a.b\""));
    }

    #[test]
    fn columns_that_take_no_values_are_found() {
        let is_generated = |sql| Declared::of(sql).unwrap().is_generated;
        assert!(is_generated("CREATE TABLE t (a BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1))"));
        assert!(!is_generated("CREATE TABLE t (a BIGINT GENERATED BY DEFAULT AS IDENTITY)"));
        assert!(!is_generated("CREATE TABLE t (a VARCHAR DEFAULT 'GENERATED ALWAYS AS')"));
    }
}
