//! Schemas: the names of objects in a schema begin with its name and a dot.

use super::remove;
use crate::session::Session;
use crate::transaction::TransactionContext;
use entasis_storage::{Entry, IfExists, dependencies};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};

/// The schemas that always exist.
const STANDING: [&str; 5] = ["main", "public", "information_schema", "temp", "pg_temp"];

/// Creates a schema, by its name in lower case.
pub(super) fn create(transaction: &mut TransactionContext, name: &str, if_not_exists: bool) -> Result<()> {
    if STANDING.contains(&name) {
        let error = || {
            Error::input(format!("a schema named \"{name}\" already exists")).with_sqlstate(sqlstate::TAKEN)
        };
        return if if_not_exists { Ok(()) } else { Err(error()) };
    }
    let key = format!("{name}.");
    if let Some(entry) = dependencies::users(&transaction.names, &key).first() {
        let text = format!(
            "a {} named \"{}\" is there already, as if it were in schema {name}",
            entry.kind(),
            entry.shown_name()
        );
        return Err(Error::input(text).with_sqlstate(sqlstate::TAKEN));
    }
    let if_exists = if if_not_exists { IfExists::Keep } else { IfExists::Fail };
    transaction.names.add(Entry::Schema(key.into()), if_exists).map(std::mem::drop)
}

/// Drops a schema, and with `cascade` also the objects in it.
pub(super) fn drop(
    session: &Session,
    transaction: &mut TransactionContext,
    schema: &Entry,
    cascade: bool,
) -> Result<()> {
    let within: Vec<Entry> =
        dependencies::users(&transaction.names, schema.name()).into_iter().cloned().collect();
    if let (Some(first), false) = (within.first(), cascade) {
        let name = schema.shown_name();
        let text = format!("schema {name} is not empty: {} {} is in it", first.kind(), first.name());
        return Err(
            Error::input(text).with_hint(format!("DROP SCHEMA {name} CASCADE drops all that is in it"))
        );
    }
    let together: Vec<String> = within.iter().map(|entry| entry.name().to_ascii_lowercase()).collect();
    for entry in &within {
        remove::object(session, transaction, entry, &together, true)?;
    }
    transaction.names.remove(schema.name(), schema.kind()).map(std::mem::drop)
}
