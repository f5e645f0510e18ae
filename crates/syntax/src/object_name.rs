//! Names of objects: as they are written, and as keys in the catalog.
//!
//! The catalog knows an object by one text, from which schema and own name can be told
//! ([`entasis_vector::name`]); the schema `main`, which always exists, is also called `public`. The schema
//! `temp`, which is also called `pg_temp`, contains the temporary objects of the connection.

use entasis_vector::{Error, Result, name};
use sqlparser::ast::{Ident, ObjectName};

/// The schema of the views that describe the catalog.
pub const INFORMATION_SCHEMA: &str = "information_schema";
/// The schema of temporary objects.
pub const TEMP: &str = "temp";
/// PostgreSQL's name for it.
pub const PG_TEMP: &str = "pg_temp";

/// The name of a table or view, in lower case, by which the catalog knows it.
pub fn table_name(written: &ObjectName) -> Result<String> {
    let parts: Vec<&Ident> = written.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(name::joined(name::MAIN, &table.value.to_ascii_lowercase())),
        [schema, table] => {
            Ok(in_schema(&schema.value.to_ascii_lowercase(), &table.value.to_ascii_lowercase()))
        }
        // It is in another database, or in none.
        [database, schema, table] => {
            let [database, schema, table] =
                [database, schema, table].map(|part| part.value.to_ascii_lowercase());
            Ok(name::in_database(&database, &in_schema(&schema, &table)))
        }
        _ => {
            let text = format!(
                "{written} is not a valid table name: at most a database and a schema may precede it"
            );
            Err(Error::input(text))
        }
    }
}

/// The catalog's name for an object in a schema, both in lower case.
pub fn in_schema(schema: &str, object: &str) -> String {
    match schema {
        schema if is_main(schema) => name::joined(name::MAIN, object),
        PG_TEMP => name::joined(TEMP, object),
        schema => name::joined(schema, object),
    }
}

/// True if this is the name of a temporary object.
pub fn is_temporary(name: &str) -> bool {
    name::split(name).0 == TEMP
}

/// The name of an object as it occurs in a statement, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenName {
    /// The catalog's name for it if it has a schema; otherwise the name to look up.
    pub name: String,
    /// True if it has a schema.
    pub has_schema: bool,
}

impl WrittenName {
    /// The name of a table, if it has a valid form.
    pub fn of(name: &ObjectName) -> Option<WrittenName> {
        match name.0.as_slice() {
            [own] => {
                Some(WrittenName { name: own.as_ident()?.value.to_ascii_lowercase(), has_schema: false })
            }
            _ => Some(WrittenName { name: table_name(name).ok()?, has_schema: true }),
        }
    }

    /// The name of a table with these parts, in lower case.
    pub fn of_parts(parts: &[String]) -> Option<WrittenName> {
        match parts {
            [own] => Some(WrittenName { name: own.clone(), has_schema: false }),
            [schema, own] => Some(WrittenName { name: in_schema(schema, own), has_schema: true }),
            [database, schema, own] => Some(WrittenName {
                name: name::in_database(database, &in_schema(schema, own)),
                has_schema: true,
            }),
            _ => None,
        }
    }
}

/// True for the schema that always exists.
pub fn is_main(schema: &str) -> bool {
    matches!(schema, "main" | "public")
}

/// The name, in lower case, if it has no schema.
pub fn bare(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [own] => own.as_ident().map(|own| own.value.to_ascii_lowercase()),
        _ => None,
    }
}
