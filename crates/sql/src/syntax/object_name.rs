//! Names of objects: as they are written, and as keys in the catalog.
//!
//! The catalog knows an object in a schema by one name, `schema.object`; an object in `main`, which always
//! exists and is also called `public`, by its own name alone. So the quoted name `"a.b"` may refer to `a.b`.
//! The schema `temp`, which is also called `pg_temp`, contains the temporary objects of the connection.

use datafusion_sql::sqlparser::ast::{Ident, ObjectName};
use entasis_vector::{Error, Result};

/// The schema of the views that describe the catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// The schema of temporary objects.
pub(crate) const TEMP: &str = "temp";
/// PostgreSQL's name for it.
pub(crate) const PG_TEMP: &str = "pg_temp";

/// The name of a table or view, in lower case, by which the catalog knows it.
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(table.value.to_lowercase()),
        [schema, table] => Ok(in_schema(&schema.value.to_lowercase(), &table.value.to_lowercase())),
        // It is in another database, or in none.
        [database, schema, table] => {
            let parts = [database, schema, table].map(|part| part.value.to_lowercase());
            Ok(parts.join("."))
        }
        _ => {
            let text =
                format!("{name} is not a valid table name: at most a database and a schema may precede it");
            Err(Error::input(text))
        }
    }
}

/// The catalog's name for an object in a schema, both in lower case.
pub(crate) fn in_schema(schema: &str, object: &str) -> String {
    match schema {
        schema if is_main(schema) => object.to_owned(),
        PG_TEMP => format!("{TEMP}.{object}"),
        schema => format!("{schema}.{object}"),
    }
}

/// True if this is the name of a temporary object.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.split_once('.').is_some_and(|(schema, _)| schema == TEMP)
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
    pub(crate) fn of(name: &ObjectName) -> Option<WrittenName> {
        Some(WrittenName { name: table_name(name).ok()?, has_schema: name.0.len() > 1 })
    }

    /// The name of a table with these parts, in lower case.
    pub(crate) fn of_parts(parts: &[String]) -> Option<WrittenName> {
        match parts {
            [own] => Some(WrittenName { name: own.clone(), has_schema: false }),
            [schema, own] => Some(WrittenName { name: in_schema(schema, own), has_schema: true }),
            _ => None,
        }
    }
}

/// True for the schema that always exists.
pub(crate) fn is_main(schema: &str) -> bool {
    matches!(schema, "main" | "public")
}

/// The last part of a name, without its schema.
pub(crate) fn without_schema(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}
