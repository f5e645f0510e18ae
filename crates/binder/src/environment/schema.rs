//! Names of objects besides those in a catalog: new, renamed and missing ones.
//!
//! The form of names is described in [`entasis_syntax::object_name`]. Names without a schema are looked up by
//! `crate::statements::resolve`.

use super::Catalog;
use entasis_syntax::object_name::{INFORMATION_SCHEMA, PG_TEMP, TEMP, bare, is_main, table_name};
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::suggest::nearest;
use entasis_vector::{Error, Result, name};
use sqlparser::ast::ObjectName;

/// The name, in lower case, of an object to be created, temporary or not.
///
/// # Errors
/// Input, if the schema does not exist, or cannot be written to.
pub fn new_name(written: &ObjectName, temporary: bool, catalog: &dyn Catalog) -> Result<String> {
    if let Some(ident) = written.0.last().and_then(|own| own.as_ident())
        && ident.value.is_empty()
    {
        return Err(locate_ident(Error::input("a name must have at least one character"), ident));
    }
    if let [own] = written.0.as_slice()
        && let Some(ident) = own.as_ident()
    {
        let schema = if temporary { Some(TEMP.to_owned()) } else { catalog.schema_of_new() };
        let own = ident.value.to_ascii_lowercase();
        return Ok(name::joined(schema.as_deref().unwrap_or(name::MAIN), &own));
    }
    if let [database, _, _] = written.0.as_slice() {
        let is_there =
            database.as_ident().is_some_and(|name| catalog.has_database(&name.value.to_ascii_lowercase()));
        return Err(match is_there {
            true => elsewhere(&written.to_string()),
            false => Error::input(format!("there is no database {database}")),
        });
    }
    if let [schema, _] = written.0.as_slice()
        && let Some(ident) = schema.as_ident()
    {
        let schema = ident.value.to_ascii_lowercase();
        if matches!(schema.as_str(), TEMP | PG_TEMP) {
            return table_name(written);
        }
        if temporary {
            let error = Error::input(format!("a temporary object is in the schema temp, not in {schema}"));
            return Err(locate_ident(error, ident));
        }
        if schema == INFORMATION_SCHEMA {
            return Err(locate_ident(Error::input("nothing can be created in information_schema"), ident));
        }
        if !is_main(&schema) && !catalog.has_schema(&schema) {
            return Err(locate_ident(no_schema(&schema), ident));
        }
    }
    table_name(written)
}

/// The new name of a table in `RENAME TO`: it stays in its schema.
///
/// # Errors
/// Input, if the name is in another schema.
pub fn renamed(table: &str, to: &ObjectName) -> Result<String> {
    let (schema, _) = name::split(table);
    let name = table_name(to)?;
    match bare(to) {
        Some(own) if own.is_empty() => Err(Error::input("a name must have at least one character")),
        Some(own) => Ok(name::joined(schema, &own)),
        None if schema == name::split(&name).0 => Ok(name),
        None => Err(Error::not_supported("moving a table to another schema with ALTER TABLE")),
    }
}

/// The error for an object that is in another database than the one on which the statement works.
pub fn elsewhere(name: &str) -> Error {
    Error::input(format!("{name} is not in the database that the statement changes"))
}

/// The error for a schema that does not exist.
pub fn no_schema(schema: &str) -> Error {
    Error::input(format!("there is no schema {schema}")).with_sqlstate(sqlstate::NO_SCHEMA)
}

/// The schema of a missing object's name, if the schema does not exist either.
pub fn missing_schema<'a>(name: &'a str, catalog: &dyn Catalog) -> Option<&'a str> {
    let schema = match catalog.is_elsewhere(name) {
        true => name.match_indices('.').nth(1).map(|(dot, _)| &name[..dot])?,
        false => name::split(name).0,
    };
    (schema != name::MAIN && schema != INFORMATION_SCHEMA && schema != TEMP && !catalog.has_schema(schema))
        .then_some(schema)
}

/// Refuses a search path, of names separated by commas, with a schema that does not exist.
///
/// # Errors
/// Input.
pub fn known_schemas(path: &str, catalog: &dyn Catalog) -> Result<()> {
    let names = path.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase());
    let unknown = names.into_iter().find(|name| !is_main(name) && !catalog.has_current_schema(name));
    unknown.map_or(Ok(()), |name| Err(no_schema(&name)))
}

/// The error for a table that does not exist, with a hint.
pub fn unknown_table(name: &str, catalog: &dyn Catalog) -> Error {
    let error = Error::input(format!("there is no table {}", name::shown(name)));
    let error = error.with_sqlstate(sqlstate::NO_TABLE);
    let has_database = |rest: &str| rest.contains('.') && !rest.starts_with('.');
    let database = name.split_once('.').filter(|(_, rest)| has_database(rest)).map(|(database, _)| database);
    if let Some(database) = database.filter(|database| !catalog.has_database(database)) {
        return error.with_hint(format!("there is no database {database}"));
    }
    if let Some(schema) = missing_schema(name, catalog) {
        return error.with_hint(format!("there is no schema {schema}"));
    }
    if catalog.registered(name::own(name)).is_some() {
        let text = format!("{name} is a relation of the program, and not a table of the database");
        return Error::input(text).with_sqlstate(sqlstate::NO_TABLE).with_hint(format!(
            "queries can read it by this name; CREATE TABLE … AS SELECT * FROM {name} makes a table of it"
        ));
    }
    let names: Vec<String> = catalog.names().iter().map(|name| name::shown(name)).collect();
    match nearest(&name::shown(name), names.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error,
    }
}
