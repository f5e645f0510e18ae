//! What can be found out from a connection without running a statement: plans, names, columns.

use super::Connection;
use crate::statements::whole_database;
use entasis_engine::plan::Plan;
use entasis_sql::Statement;
use entasis_vector::{Error, Result, Schema, name};
use std::sync::PoisonError;

impl Connection {
    /// The plan of a query as the front end produces it, before optimization.
    ///
    /// # Errors
    /// Those of [`Connection::execute`]; input, if `sql` is not a single query.
    pub fn plan(&self, sql: &str) -> Result<Plan> {
        match &entasis_sql::parse(sql)?[..] {
            [parsed] => match self.bound(parsed, &[])? {
                Statement::Query(plan) => Ok(plan),
                _ => Err(Error::input("only queries have a plan")),
            },
            _ => Err(Error::input("one query is expected")),
        }
    }

    /// The plan of a query as the engine runs it, after optimization.
    ///
    /// # Errors
    /// Those of [`Connection::plan`].
    pub fn optimized(&self, sql: &str) -> Result<Plan> {
        entasis_engine::common_subplans::optimize(self.plan(sql)?, &self.settings())
    }

    /// The texts of the statements in `sql`.
    ///
    /// # Errors
    /// Input, if it does not parse.
    pub fn split(&self, sql: &str) -> Result<Vec<String>> {
        Ok(entasis_sql::parse(sql)?.iter().map(|parsed| parsed.sql().to_string()).collect())
    }

    /// True if `sql` ends with a complete statement: outside quotes and comments, its last character is a
    /// semicolon.
    pub fn is_complete(&self, sql: &str) -> bool {
        entasis_sql::is_complete(sql)
    }

    /// Names of tables and views of the current database, and of registered relations, sorted.
    pub fn tables(&self) -> Vec<String> {
        if self.is_elsewhere() {
            return Vec::new();
        }
        let here = self.session.here();
        let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = open.as_ref().and_then(|transaction| transaction.names_seen_of(&here.database));
        here.names_of(&seen.unwrap_or_else(|| here.newest_names()))
    }

    /// The statements that create a table or view of the current database, or all its objects but temporary
    /// ones. `None` if there is no such table or view, or it is temporary.
    ///
    /// # Errors
    /// Internal, if the catalog lacks an object that another one needs.
    pub fn declarations(&self, name: Option<&str>) -> Result<Option<String>> {
        let here = self.session.here();
        let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = open.as_ref().and_then(|transaction| transaction.names_seen_of(&here.database));
        whole_database::declarations(&seen.unwrap_or_else(|| here.newest_names()), name)
    }

    /// The columns of a table, view or registered relation, by its name as [`Connection::tables`] gives it.
    pub fn table_schema(&self, name: &str) -> Option<Schema> {
        let parts: Vec<String> = name::parts(name).iter().map(|part| entasis_sql::quoted(part)).collect();
        self.plan(&format!("SELECT * FROM {}", parts.join("."))).ok().map(|plan| plan.schema())
    }
}
