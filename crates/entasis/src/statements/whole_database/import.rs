//! `IMPORT DATABASE`: imports what `EXPORT DATABASE` has written, all or nothing.
//!
//! `schema.sql` and then `load.sql` of the directory are run, as statements of one transaction: the open one,
//! or one of its own. Files that `COPY` names are looked up in the directory. Names have the meaning that
//! they have in a new connection; the time zone is the session's.

use super::export::{LOAD, SCHEMA};
use crate::binding::Names;
use crate::session::Session;
use crate::statements;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::{Command, Parsed, Statement};
use entasis_vector::{Error, ErrorKind, Result};
use std::fs;
use std::path::Path;

/// Bytes of a statement that an error shows.
const SHOWN: usize = 60;

/// Imports an export from a directory.
pub(super) fn import(
    session: &Session,
    transaction: &mut TransactionContext,
    directory: &Path,
) -> Result<Rows> {
    transaction.see_all(session);
    let plain = session.plain_in_zone();
    let scripts = [SCHEMA, LOAD].map(|name| read(directory, name));
    let mut count = 0;
    transaction.seen_by(&plain, |transaction| {
        for (script, name) in scripts.into_iter().zip([SCHEMA, LOAD]) {
            let script = script?;
            let path = directory.join(name);
            let statements = entasis_sql::parse(&script).map_err(|error| placed(&error, &path, None))?;
            for parsed in statements {
                let parsed = parsed.in_directory(directory);
                count += run(&plain, transaction, &parsed)
                    .map_err(|error| placed(&error, &path, Some(&parsed)))?;
            }
        }
        Ok::<(), Error>(())
    })?;
    Ok(Rows::changed_rows(count))
}

/// Reads a script.
fn read(directory: &Path, name: &str) -> Result<String> {
    let path = directory.join(name);
    fs::read_to_string(&path).map_err(|error| {
        let shown = directory.display();
        if error.kind() != std::io::ErrorKind::NotFound {
            return Error::io(format!("'{}'", path.display()), &error);
        }
        let text = match directory.exists() {
            true => format!("'{shown}' is not an exported database: it has no {name}"),
            false => format!("there is no directory '{shown}'"),
        };
        Error::new(ErrorKind::Io, text).with_hint("EXPORT DATABASE 'directory' creates one")
    })
}

/// Runs one statement. Returns the number of rows that it changed.
fn run(session: &Session, transaction: &mut TransactionContext, parsed: &Parsed) -> Result<u64> {
    if session.cancel.is_raised() {
        return Err(Error::interrupted());
    }
    entasis_sql::on_deep_stack(parsed.is_deep(), || {
        let rows = match entasis_sql::bind(parsed, &Names::new(session, transaction), &[])? {
            Statement::Begin
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint { .. }
            | Statement::RollbackTo { .. }
            | Statement::Release { .. } => {
                return Err(Error::input("an imported script must not begin or end transactions"));
            }
            Statement::Command(command @ (Command::Export { .. } | Command::Import { .. })) => {
                return Err(Error::not_supported(format!("{command:?} in what is imported")));
            }
            bound => statements::run(session, transaction, bound)?,
        };
        transaction.charge()?;
        Ok(rows.changed().unwrap_or(0))
    })
}

/// An error with its position in a script instead of the position in the statement.
fn placed(error: &Error, path: &Path, parsed: Option<&Parsed>) -> Error {
    let place = match (error.position(), parsed) {
        (Some(position), _) => format!("'{}', line {}", path.display(), position.line),
        (None, Some(parsed)) => {
            let text = parsed.sql().lines().next().unwrap_or_default();
            format!("'{}', {}", path.display(), &text[..text.floor_char_boundary(SHOWN)])
        }
        (None, None) => format!("'{}'", path.display()),
    };
    let placed =
        Error::new(error.kind(), error.message()).with_sqlstate(error.sqlstate()).with_context(place);
    match error.hint() {
        Some(hint) => placed.with_hint(hint),
        None => placed,
    }
}
