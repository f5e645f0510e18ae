//! Schemas: `CREATE SCHEMA`, and what the objects in one are called.
//!
//! The catalog knows an object of a schema by one name, `schema.object`; what is in `main`, which is always
//! there and is called `public`, too, by its own alone. So `"a.b"` in quotes may mean `a.b`. The schema
//! `temp`, which is called `pg_temp`, too, has the temporary objects of the connection. What is named without
//! a schema is looked for by [`crate::resolve`].

use crate::bind::{Binder, locate_ident, table_name};
use crate::{Catalog, Statement};
use datafusion_sql::sqlparser::ast::{self, Ident, ObjectName, SchemaName};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};

/// The schema that tells what there is.
const INFORMATION_SCHEMA: &str = "information_schema";
/// The schema of temporary objects.
const TEMP: &str = "temp";
/// What PostgreSQL calls it.
const PG_TEMP: &str = "pg_temp";

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
}

fn is_main(schema: &str) -> bool {
    matches!(schema, "main" | "public")
}

/// The last part of a name: without its schema.
pub(crate) fn without_schema(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}

/// The name, in lower case, of something that is to be created, as a temporary object or not.
///
/// # Errors
/// Input, if there is no such schema, or it cannot be written to.
pub(crate) fn new_name(name: &ObjectName, temporary: bool, catalog: &dyn Catalog) -> Result<String> {
    if let [own] = name.0.as_slice()
        && let Some(ident) = own.as_ident()
    {
        let schema = if temporary { Some(TEMP.to_owned()) } else { catalog.current_schema() };
        let own = ident.value.to_lowercase();
        return Ok(schema.map_or(own.clone(), |schema| in_schema(&schema, &own)));
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

/// The name that a table gets by `RENAME TO`: it stays in its schema.
///
/// # Errors
/// Input, if the name is one of another schema.
pub(crate) fn renamed(table: &str, to: &ObjectName, catalog: &dyn Catalog) -> Result<String> {
    let is_schema = |schema: &&str| *schema == TEMP || catalog.has_schema(schema);
    let own = table.split_once('.').map(|(schema, _)| schema).filter(is_schema);
    let name = table_name(to)?;
    match (own, to.0.len()) {
        (Some(schema), 1) => Ok(in_schema(schema, &name)),
        (None, 1) => Ok(name),
        (own, _) if own == name.split_once('.').map(|(schema, _)| schema) => Ok(name),
        _ => Err(Error::not_supported("ALTER TABLE that takes a table to another schema")),
    }
}

/// Says that there is no such schema.
pub(crate) fn no_schema(schema: &str) -> Error {
    Error::input(format!("there is no schema {schema}")).with_sqlstate(sqlstate::NO_SCHEMA)
}

/// The schema, if that is why there is no object of this name.
pub(crate) fn missing_schema<'a>(name: &'a str, catalog: &dyn Catalog) -> Option<&'a str> {
    let (schema, _) = name.split_once('.')?;
    (schema != INFORMATION_SCHEMA && schema != TEMP && !catalog.has_schema(schema)).then_some(schema)
}

/// Refuses a search path, of names separated by commas, that has a schema which is not there.
///
/// # Errors
/// Input.
pub(crate) fn known_schemas(path: &str, catalog: &dyn Catalog) -> Result<()> {
    let names = path.split(',').map(|name| name.trim().trim_matches('"').to_lowercase());
    let unknown = names.into_iter().find(|name| !is_main(name) && !catalog.has_schema(name));
    unknown.map_or(Ok(()), |name| Err(no_schema(&name)))
}

impl Binder<'_> {
    /// `CREATE SCHEMA`
    pub(crate) fn create_schema(&self, create: &ast::Statement) -> Result<Statement> {
        let ast::Statement::CreateSchema {
            schema_name,
            if_not_exists,
            with,
            options,
            default_collate_spec,
            clone,
        } = create
        else {
            return Err(Error::internal("CREATE SCHEMA is one"));
        };
        let SchemaName::Simple(name) = schema_name else {
            return Err(Error::not_supported("CREATE SCHEMA … AUTHORIZATION"));
        };
        if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
            return Err(Error::not_supported("CREATE SCHEMA with options"));
        }
        let ident = schema_ident(name)?;
        let name = ident.value.to_lowercase();
        if name.contains('.') {
            return Err(locate_ident(
                Error::input(format!("the name of a schema has no dot: {name}")),
                ident,
            ));
        }
        Ok(Statement::CreateSchema { name, if_not_exists: *if_not_exists })
    }

    /// The name of a schema that is to be dropped.
    pub(crate) fn dropped_schema(&self, name: &ObjectName) -> Result<String> {
        let ident = schema_ident(name)?;
        let name = ident.value.to_lowercase();
        if is_main(&name) || [INFORMATION_SCHEMA, TEMP, PG_TEMP].contains(&name.as_str()) {
            return Err(locate_ident(Error::input(format!("the schema {name} cannot be dropped")), ident));
        }
        Ok(format!("{name}."))
    }
}

fn schema_ident(name: &ObjectName) -> Result<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().ok_or_else(|| Error::input(format!("{name} is no name of a schema"))),
        _ => Err(Error::input(format!("{name} is no name of a schema"))),
    }
}
