//! Names of objects besides those in a catalog: new, renamed and missing ones.
//!
//! The form of names is described in [`crate::syntax::object_name`]. Names without a schema are looked up by
//! `crate::statements::resolve`.

use super::Catalog;
use crate::names::nearest;
use crate::syntax::object_name::{INFORMATION_SCHEMA, PG_TEMP, TEMP, in_schema, is_main, table_name};
use crate::syntax::place::locate_ident;
use datafusion_sql::sqlparser::ast::ObjectName;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};

/// The name, in lower case, of an object to be created, temporary or not.
///
/// # Errors
/// Input, if the schema does not exist, or cannot be written to.
pub(crate) fn new_name(name: &ObjectName, temporary: bool, catalog: &dyn Catalog) -> Result<String> {
    if let [own] = name.0.as_slice()
        && let Some(ident) = own.as_ident()
    {
        let schema = if temporary { Some(TEMP.to_owned()) } else { catalog.schema_of_new() };
        let own = ident.value.to_lowercase();
        if catalog.is_elsewhere(&own) {
            return Err(locate_ident(elsewhere(&own), ident));
        }
        return Ok(schema.map_or(own.clone(), |schema| in_schema(&schema, &own)));
    }
    if let [database, _, _] = name.0.as_slice() {
        return Err(Error::input(format!("there is no database {database}")));
    }
    if let [schema, _] = name.0.as_slice()
        && let Some(ident) = schema.as_ident()
    {
        let schema = ident.value.to_lowercase();
        if matches!(schema.as_str(), TEMP | PG_TEMP) {
            return table_name(name);
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
    table_name(name)
}

/// The new name of a table in `RENAME TO`: it stays in its schema.
///
/// # Errors
/// Input, if the name is in another schema.
pub(crate) fn renamed(table: &str, to: &ObjectName, catalog: &dyn Catalog) -> Result<String> {
    let is_schema = |schema: &&str| *schema == TEMP || catalog.has_schema(schema);
    let own = table.split_once('.').map(|(schema, _)| schema).filter(is_schema);
    let name = table_name(to)?;
    match (own, to.0.len()) {
        (Some(schema), 1) => Ok(in_schema(schema, &name)),
        (None, 1) => Ok(name),
        (own, _) if own == name.split_once('.').map(|(schema, _)| schema) => Ok(name),
        _ => Err(Error::not_supported("moving a table to another schema with ALTER TABLE")),
    }
}

/// The error for an object that is in another database than the one on which the statement works.
pub(crate) fn elsewhere(name: &str) -> Error {
    Error::input(format!("{name} is not in the database that the statement changes"))
}

/// The error for a schema that does not exist.
pub(crate) fn no_schema(schema: &str) -> Error {
    Error::input(format!("there is no schema {schema}")).with_sqlstate(sqlstate::NO_SCHEMA)
}

/// The schema of a missing object's name, if the schema does not exist either.
pub(crate) fn missing_schema<'a>(name: &'a str, catalog: &dyn Catalog) -> Option<&'a str> {
    let (schema, _) = match catalog.is_elsewhere(name) {
        true => name.rsplit_once('.')?,
        false => name.split_once('.')?,
    };
    (schema != INFORMATION_SCHEMA && schema != TEMP && !catalog.has_schema(schema)).then_some(schema)
}

/// Refuses a search path, of names separated by commas, with a schema that does not exist.
///
/// # Errors
/// Input.
pub(crate) fn known_schemas(path: &str, catalog: &dyn Catalog) -> Result<()> {
    let names = path.split(',').map(|name| name.trim().trim_matches('"').to_lowercase());
    let unknown = names.into_iter().find(|name| !is_main(name) && !catalog.has_current_schema(name));
    unknown.map_or(Ok(()), |name| Err(no_schema(&name)))
}

/// The error for a table that does not exist, with a hint.
pub(crate) fn unknown_table(name: &str, catalog: &dyn Catalog) -> Error {
    let error = Error::input(format!("there is no table {name}")).with_sqlstate(sqlstate::NO_TABLE);
    let database = name.split_once('.').filter(|(_, rest)| rest.contains('.')).map(|(database, _)| database);
    if let Some(database) = database.filter(|database| !catalog.has_database(database)) {
        return error.with_hint(format!("there is no database {database}"));
    }
    if let Some(schema) = missing_schema(name, catalog) {
        return error.with_hint(format!("there is no schema {schema}"));
    }
    let names = catalog.names();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error,
    }
}
