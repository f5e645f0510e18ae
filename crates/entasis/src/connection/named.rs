//! `PREPARE`, `EXECUTE` and `DEALLOCATE`: statements that a connection keeps under a name, until it ends.
//!
//! The same is kept as for a statement that is remembered by its text ([`crate::prepared`]), so an `EXECUTE`
//! costs as much as the statement with parameters, plus a query of one row for its arguments. The names are
//! not transactional.

use crate::connection::Connection;
use crate::prepared::{Named, Prepared};
use crate::values::rows::Rows;
use entasis_sql::{Parsed, Preparing};
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

impl Connection {
    /// Runs one of these statements.
    pub(crate) fn prepare_or_execute(
        &self,
        what: &Preparing,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        match what {
            Preparing::Prepare { name, statement, casts } => {
                if self.session.named.lock().contains_key(name) {
                    let error = Error::input(format!("there is a prepared statement {name} already"));
                    return Err(error
                        .with_sqlstate(sqlstate::PREPARED_TAKEN)
                        .with_hint(format!("DEALLOCATE {name} forgets it")));
                }
                self.check_names(statement)?;
                let keep = |parsed: &Parsed| Arc::new(Prepared::new(parsed.clone()));
                let named = Named { prepared: keep(statement), casts: casts.as_deref().map(keep) };
                self.session.named.lock().insert(name.clone(), named);
                Ok(Rows::empty())
            }
            Preparing::Execute { name, arguments } => {
                let Named { prepared, casts } = self.prepared_as(name)?;
                let mut values = match arguments {
                    Some(arguments) => {
                        entasis_sql::check_arguments(arguments.parameters(), parameters.len())?;
                        self.arguments(&Prepared::new((**arguments).clone()), parameters)?
                    }
                    None => Vec::new(),
                };
                if let Some(casts) = casts {
                    entasis_sql::check_arguments(casts.parsed.parameters(), values.len())?;
                    values = self.arguments(&casts, &values)?;
                }
                entasis_sql::check_arguments(prepared.parsed.parameters(), values.len())?;
                self.run(&prepared, &values)
            }
            Preparing::Deallocate { name: None } => {
                self.session.named.lock().clear();
                Ok(Rows::empty())
            }
            Preparing::Deallocate { name: Some(name) } => {
                // The names are not locked while the error looks for a similar one.
                let removed = self.session.named.lock().remove(name);
                removed.map(|_| Rows::empty()).ok_or_else(|| self.not_prepared(name))
            }
        }
    }

    /// The prepared statement of this name.
    pub(crate) fn prepared_as(&self, name: &str) -> Result<Named> {
        let named = self.session.named.lock().get(name).cloned();
        named.ok_or_else(|| self.not_prepared(name))
    }

    /// The only row of a query's result, with types.
    fn arguments(
        &self,
        query: &Prepared,
        parameters: &[(Value, DataType)],
    ) -> Result<Vec<(Value, DataType)>> {
        let rows = self.run(query, parameters)?;
        let types = rows.schema().iter().map(|field| field.ty).collect::<Vec<_>>();
        let row = rows.row_values().next().unwrap_or_default();
        Ok(row.into_iter().zip(types).collect())
    }

    /// Refuses a statement that names objects that do not exist. Other errors depend on its arguments.
    fn check_names(&self, statement: &Parsed) -> Result<()> {
        let nothing = vec![(Value::Null, DataType::Null); statement.parameters()];
        let is_of_names = |error: &Error| {
            [sqlstate::NO_TABLE, sqlstate::NO_COLUMN, sqlstate::NO_FUNCTION].contains(&error.sqlstate())
        };
        match self.bound(statement, &nothing) {
            Err(error) if is_of_names(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn not_prepared(&self, name: &str) -> Error {
        let error = Error::input(format!("there is no prepared statement {name}"))
            .with_sqlstate(sqlstate::NOT_PREPARED);
        let names: Vec<String> = self.session.named.lock().keys().cloned().collect();
        let near = entasis_vector::suggest::nearest(name, names.iter().map(String::as_str));
        match near {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        }
    }
}
