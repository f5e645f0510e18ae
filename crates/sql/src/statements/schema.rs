//! `CREATE SCHEMA`, and the name in `DROP SCHEMA`.

use super::binder::Binder;
use super::bound::Statement;
use entasis_syntax::object_name::{INFORMATION_SCHEMA, PG_TEMP, TEMP, is_main};
use entasis_syntax::place::locate_ident;
use entasis_vector::{Error, Result};
use sqlparser::ast::{self, Ident, ObjectName, SchemaName};

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
        let name = ident.value.to_ascii_lowercase();
        if name.contains('.') {
            return Err(locate_ident(
                Error::input(format!("the name of a schema has no dot: {name}")),
                ident,
            ));
        }
        Ok(Statement::CreateSchema { name, if_not_exists: *if_not_exists })
    }

    /// The name of a schema to be dropped.
    pub(crate) fn dropped_schema(&self, name: &ObjectName) -> Result<String> {
        let ident = schema_ident(name)?;
        let name = ident.value.to_ascii_lowercase();
        if is_main(&name) || [INFORMATION_SCHEMA, TEMP, PG_TEMP].contains(&name.as_str()) {
            return Err(locate_ident(Error::input(format!("the schema {name} cannot be dropped")), ident));
        }
        Ok(format!("{name}."))
    }
}

fn schema_ident(name: &ObjectName) -> Result<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().ok_or_else(|| Error::input(format!("{name} is not a valid schema name"))),
        [database, _] => Err(Error::input(format!("there is no database {database}"))),
        _ => Err(Error::input(format!("{name} is not a valid schema name"))),
    }
}
