//! What a statement takes and returns, without running it: the types of its parameters, and its columns.
//!
//! | parameter | its type |
//! |---|---|
//! | one for which there is a hint | the hint |
//! | one whose place asks for a type: `a = ?`, `a + ?`, `f(?)`, INSERT, UPDATE, LIMIT, a cast | that type |
//! | one that several places ask for | their common type; an error, if there is none |
//! | any other | VARCHAR |
//!
//! A text may be passed for each of them; a statement that is run with values of these types has these
//! columns. What it cannot do: describe a statement that cannot be bound without the value of a parameter,
//! such as one that reads a file which the parameter names.

use crate::connection::Connection;
use crate::query::explain;
use crate::query::summarize;
use crate::session::settings;
use crate::statements;
use crate::statements::databases;
use crate::statements::whole_database;
use crate::values::rows::schema_of;
use entasis_sql::{Change, Insert, Parsed, Preparing, Statement};
use entasis_vector::statement::within;
use entasis_vector::{DataType, Error, Result, Schema};
use std::sync::Arc;

/// What a statement takes and returns.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Description {
    /// The types of its parameters, in order.
    pub parameters: Vec<DataType>,
    /// The columns of its result; none, if it returns no rows.
    pub columns: Schema,
}

impl Connection {
    /// Describes one statement without running it. `hints` are the types of parameters, as far as the caller
    /// knows them; it may be shorter than the number of parameters.
    ///
    /// # Errors
    /// Those of binding, with the position in `sql` where it is known; input, if `sql` is not one statement,
    /// if there are more hints than parameters, or if a parameter would have to be of several types; not
    /// supported, if the statement cannot be bound without the value of a parameter.
    pub fn describe(&self, sql: &str, hints: &[Option<DataType>]) -> Result<Description> {
        self.refuse_elsewhere()?;
        self.session.cancel.clear();
        let Ok(prepared) = self.session.prepare(sql)? else {
            return Err(Error::input("exactly one statement can be described"));
        };
        let context = Arc::new(self.session.context());
        within(context, || self.described(&prepared.parsed, hints))
    }

    fn described(&self, parsed: &Parsed, hints: &[Option<DataType>]) -> Result<Description> {
        if let Some(preparing) = parsed.preparing() {
            return self.described_by_name(preparing, hints);
        }
        let (parameters, bound) =
            self.bound_with(parsed, |names| entasis_sql::describe(parsed, names, hints))?;
        Ok(Description { parameters, columns: columns(&bound)? })
    }

    /// Of these statements only EXECUTE has parameters, those of its arguments, and columns, those of the
    /// statement that it runs.
    fn described_by_name(&self, preparing: &Preparing, hints: &[Option<DataType>]) -> Result<Description> {
        let Preparing::Execute { name, arguments } = preparing else {
            return Ok(Description::default());
        };
        let named = self.prepared_as(name)?;
        let given = match arguments {
            Some(arguments) => self.described(arguments, hints)?,
            None => Description::default(),
        };
        let types = |schema: &Schema| schema.iter().map(|field| Some(field.ty)).collect::<Vec<_>>();
        let mut passed = types(&given.columns);
        if let Some(casts) = &named.casts {
            passed = types(&self.described(&casts.parsed, &passed)?.columns);
        }
        entasis_sql::check_arguments(named.prepared.parsed.parameters(), passed.len())?;
        let columns = self.described(&named.prepared.parsed, &passed)?.columns;
        Ok(Description { parameters: given.parameters, columns })
    }
}

/// The columns of what a bound statement returns; none, if it returns no rows.
fn columns(statement: &Statement) -> Result<Schema> {
    Ok(match statement {
        Statement::Query(plan) => plan.schema(),
        Statement::Insert(Insert { returning, .. }) | Statement::Change(Change { returning, .. }) => {
            returning.clone().unwrap_or_default()
        }
        Statement::Explain { .. } => schema_of(&[explain::PLAN]),
        Statement::ExplainLayout { .. } => schema_of(&[explain::LAYOUT]),
        Statement::Calibrate => schema_of(&statements::COSTS),
        Statement::ShowTables { .. } => schema_of(&databases::TABLES),
        Statement::ShowAllTables => schema_of(&databases::ALL_TABLES),
        Statement::ShowSettings => schema_of(&settings::COLUMNS),
        Statement::ShowSetting { name } => schema_of(&[settings::column(name)?]),
        Statement::Summarize { .. } => schema_of(&summarize::COLUMNS),
        Statement::Command(command) => schema_of(whole_database::columns(command)),
        _ => Schema::default(),
    })
}
