//! The databases that a session sees, as statements name them: `USE`, `SHOW TABLES`, `SHOW ALL TABLES`.
//!
//! The current database and its current schema are not transactional.

use crate::catalog::search_path::{MAIN, SearchPath, TEMP};
use crate::session::{Attached, Session};
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_storage::{CatalogVersion, Entry};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value, name};

/// The database of this name.
///
/// # Errors
/// Input, if the session does not see such a database.
pub(crate) fn called(session: &Session, name: &str) -> Result<Attached> {
    session.database_called(name).ok_or_else(|| {
        Error::input(format!("there is no database {name}"))
            .with_hint("SHOW DATABASES lists the attached databases")
    })
}

/// A database, and a schema of it, if one is named: `schema`, `database`, or `database.schema`.
fn named(
    session: &Session,
    transaction: &mut TransactionContext,
    name: &[String],
) -> Result<(Attached, Option<String>)> {
    let mut has = |database: &Attached, schema: &str| {
        schema == MAIN || transaction.names_of(database).get(&format!("{schema}.")).is_some()
    };
    let standing = |schema: &str| if schema == "public" { MAIN.to_owned() } else { schema.to_owned() };
    match name {
        [one] => {
            let current = session.here();
            let current = called(session, &current.database)?;
            let schema = standing(one);
            match (has(&current, &schema), session.database_called(one)) {
                (true, _) => Ok((current, Some(schema))),
                (false, Some(database)) => Ok((database, None)),
                (false, None) => Err(Error::input(format!("there is no schema {one}, and no database"))
                    .with_sqlstate(sqlstate::NO_SCHEMA)
                    .with_hint("SHOW DATABASES lists the databases")),
            }
        }
        [database, schema] => {
            let (database, schema) = (called(session, database)?, standing(schema));
            match has(&database, &schema) {
                true => Ok((database, Some(schema))),
                false => Err(Error::input(format!("there is no schema {schema} in {}", database.name))
                    .with_sqlstate(sqlstate::NO_SCHEMA)),
            }
        }
        _ => Err(Error::input(format!("{} is not the name of a database or a schema", name.join(".")))),
    }
}

/// `USE schema`, `USE database`, `USE database.schema`
pub(crate) fn make_current(
    session: &Session,
    transaction: &mut TransactionContext,
    name: &[String],
) -> Result<Rows> {
    let (database, schema) = named(session, transaction, name)?;
    session.set_current(&database, schema.map_or_else(SearchPath::default, |schema| SearchPath::of(&schema)));
    Ok(Rows::empty())
}

/// `SHOW TABLES [FROM name]`: the tables and views of the current database, of another one, or of a schema;
/// only views for `SHOW VIEWS`.
pub(crate) fn show_tables(
    session: &Session,
    transaction: &mut TransactionContext,
    of: Option<&[String]>,
    views: bool,
) -> Result<Rows> {
    let is_meant = |entry: &&Entry| !views || matches!(entry, Entry::View(_));
    let names = match of {
        None if views => {
            let database = called(session, &session.here().database)?;
            shown(&transaction.names_of(&database)).filter(is_meant).map(Entry::shown_name).collect()
        }
        None => {
            let here = session.here();
            let database = called(session, &here.database)?;
            here.names_of(&transaction.names_of(&database))
        }
        Some(name) => {
            let (database, schema) = named(session, transaction, name)?;
            let names = transaction.names_of(&database);
            match schema {
                None => shown(&names).filter(is_meant).map(Entry::shown_name).collect(),
                Some(schema) => shown(&names)
                    .filter(is_meant)
                    .map(|entry| name::split(entry.name()))
                    .filter(|(own, _)| *own == schema)
                    .map(|(_, name)| name.to_owned())
                    .collect(),
            }
        }
    };
    let rows: Vec<Vec<Value>> = names.iter().map(|name| vec![text(name)]).collect();
    Rows::from_values(&TABLES, &rows)
}

/// `SHOW ALL TABLES`: the tables of all databases, with their places.
pub(crate) fn show_all_tables(session: &Session, transaction: &mut TransactionContext) -> Result<Rows> {
    let mut rows = Vec::new();
    for database in session.databases() {
        let names = transaction.names_of(&database);
        for entry in shown(&names) {
            let (schema, name) = name::split(entry.name());
            let is_temporary = Value::Boolean(schema == TEMP);
            rows.push(vec![text(&database.name), text(schema), text(name), is_temporary]);
        }
    }
    Rows::from_values(&ALL_TABLES, &rows)
}

/// The columns of `SHOW TABLES`.
pub(crate) const TABLES: [(&str, DataType); 1] = [("name", DataType::Varchar)];

/// The columns of `SHOW ALL TABLES`.
pub(crate) const ALL_TABLES: [(&str, DataType); 4] = [
    ("database", DataType::Varchar),
    ("schema", DataType::Varchar),
    ("name", DataType::Varchar),
    ("temporary", DataType::Boolean),
];

/// Tables and views, by name.
fn shown(names: &CatalogVersion) -> impl Iterator<Item = &Entry> {
    names.entries().filter(|entry| matches!(entry, Entry::Table(_) | Entry::View(_)))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}
