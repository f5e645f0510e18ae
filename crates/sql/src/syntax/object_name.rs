//! What objects are called: their names as they are written, and by which the catalog knows them.
//!
//! The catalog knows an object of a schema by one name, `schema.object`; what is in `main`, which is always
//! there and is called `public`, too, by its own alone. So `"a.b"` in quotes may mean `a.b`. The schema
//! `temp`, which is called `pg_temp`, too, has the temporary objects of the connection.

use datafusion_sql::sqlparser::ast::{Ident, ObjectName};
use entasis_vector::{Error, Result};

/// The schema that tells what there is.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// The schema of temporary objects.
pub(crate) const TEMP: &str = "temp";
/// What PostgreSQL calls it.
pub(crate) const PG_TEMP: &str = "pg_temp";

/// The name of a table or view, in lower case, by which the catalog knows it .
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [table] => Ok(table.value.to_lowercase()),
        [schema, table] => Ok(in_schema(&schema.value.to_lowercase(), &table.value.to_lowercase())),
        // Of another database, or of none.
        [database, schema, table] => {
            let parts = [database, schema, table].map(|part| part.value.to_lowercase());
            Ok(parts.join("."))
        }
        _ => {
            let text =
                format!("{name} is no name of a table: it has a database's and a schema's at most before it");
            Err(Error::input(text))
        }
    }
}

/// What the catalog knows an object of a schema by, both in lower case.
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

/// The name of an object as a statement's text has it, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenName {
    /// The name by which the catalog knows it, if it has a schema; else what is to be looked for.
    pub name: String,
    /// True if it has a schema.
    pub has_schema: bool,
}

impl WrittenName {
    /// The name of a table, if it is one.
    pub(crate) fn of(name: &ObjectName) -> Option<WrittenName> {
        Some(WrittenName { name: table_name(name).ok()?, has_schema: name.0.len() > 1 })
    }

    /// The name of a table that has these parts, in lower case.
    pub(crate) fn of_parts(parts: &[String]) -> Option<WrittenName> {
        match parts {
            [own] => Some(WrittenName { name: own.clone(), has_schema: false }),
            [schema, own] => Some(WrittenName { name: in_schema(schema, own), has_schema: true }),
            _ => None,
        }
    }
}

/// True for the schema that is always there.
pub(crate) fn is_main(schema: &str) -> bool {
    matches!(schema, "main" | "public")
}

/// The last part of a name: without its schema.
pub(crate) fn without_schema(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}
