//! Finds columns of a table by the names in a statement.

use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::suggest::nearest;
use entasis_vector::{Error, Field, Result};
use sqlparser::ast::Ident;

/// The columns of a table with these `names`; all of them if there are no names.
pub(super) fn target_columns(table: &str, schema: &[Field], names: &[Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = find_column(schema, name).map_err(|e| e.with_context(format!("table {table}")))?;
        if columns.contains(&column) {
            return Err(locate_ident(Error::input(format!("the column {} occurs twice", name.value)), name));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The column of that name.
///
/// # Errors
/// Input, if there is none.
pub(super) fn find_column(schema: &[Field], name: &Ident) -> Result<usize> {
    let found = schema.iter().position(|field| field.name.eq_ignore_ascii_case(&name.value));
    found.ok_or_else(|| {
        let error =
            Error::input(format!("there is no column {}", name.value)).with_sqlstate(sqlstate::NO_COLUMN);
        let error = locate_ident(error, name);
        match nearest(&name.value, schema.iter().map(|field| &*field.name)) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        }
    })
}
