//! Schemas: `CREATE SCHEMA`, and what the objects in one are called.
//!
//! The catalog knows an object of a schema by one name, `schema.object`; what is in `main`, which is always there and is called `public`,
//! too, by its own alone. So `"a.b"` in quotes may mean `a.b`. There is no search path: what is not in `main` is named with its schema.

use crate::bind::{Binder, locate_ident, table_name};
use crate::{Catalog, Statement};
use datafusion_sql::sqlparser::ast::{self, Ident, ObjectName, SchemaName};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};

/// The schema that tells what there is.
const INFORMATION_SCHEMA: &str = "information_schema";

/// What the catalog knows an object of a schema by, both in lower case.
pub(crate) fn in_schema(schema: &str, object: &str) -> String {
    if is_main(schema) { object.to_owned() } else { format!("{schema}.{object}") }
}

fn is_main(schema: &str) -> bool {
    matches!(schema, "main" | "public")
}

/// The last part of a name: without its schema.
pub(crate) fn without_schema(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}

/// The name, in lower case, of something that is to be created.
///
/// # Errors
/// Input, if there is no such schema, or it cannot be written to.
pub(crate) fn new_name(name: &ObjectName, catalog: &dyn Catalog) -> Result<String> {
    if let [schema, _] = name.0.as_slice()
        && let Some(ident) = schema.as_ident()
    {
        let schema = ident.value.to_lowercase();
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
    let own = table.split_once('.').map(|(schema, _)| schema).filter(|schema| catalog.has_schema(schema));
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
    (schema != INFORMATION_SCHEMA && !catalog.has_schema(schema)).then_some(schema)
}

impl Binder<'_> {
    /// `CREATE SCHEMA`
    pub(crate) fn create_schema(&self, create: &ast::Statement) -> Result<Statement> {
        let ast::Statement::CreateSchema { schema_name, if_not_exists, with, options, default_collate_spec, clone } =
            create
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
            return Err(locate_ident(Error::input(format!("the name of a schema has no dot: {name}")), ident));
        }
        Ok(Statement::CreateSchema { name, if_not_exists: *if_not_exists })
    }

    /// The name of a schema that is to be dropped.
    pub(crate) fn dropped_schema(&self, name: &ObjectName) -> Result<String> {
        let ident = schema_ident(name)?;
        let name = ident.value.to_lowercase();
        if is_main(&name) || name == INFORMATION_SCHEMA {
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
