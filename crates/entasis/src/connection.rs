//! A connection: text in, rows out.
//!
//! One statement runs at a time on a connection; several connections run at once. A connection holds its settings,
//! the relations that the host program registered, and the flag that cancels its statement.

use crate::catalog::Names;
use crate::database::Shared;
use crate::rows::Rows;
use crate::{settings, statement};
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_engine::optimizer;
use entasis_engine::plan::Plan;
use entasis_engine::relation::Relation;
use entasis_sql::Statement;
use entasis_vector::{DataType, Error, Result, Schema, Value};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, RwLock};

/// Asked for names that the catalog does not have: variables of the host program.
pub type Replacement = Arc<dyn Fn(&str) -> Option<Arc<dyn Relation>> + Send + Sync>;

/// A session on a database.
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Mutex<Settings>,
    pub(crate) registered: RwLock<HashMap<String, Arc<dyn Relation>>>,
    pub(crate) replacement: RwLock<Option<Replacement>>,
    cancel: CancelFlag,
    progress: Arc<Progress>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Connection {
        let settings = Settings { threads: shared.config.threads, ..Settings::default() };
        Connection {
            shared,
            settings: Mutex::new(settings),
            registered: RwLock::default(),
            replacement: RwLock::default(),
            cancel: CancelFlag::default(),
            progress: Arc::default(),
        }
    }

    /// Runs the statements in `sql`, one after the other, and returns the rows of the last. Stops at the first error;
    /// what earlier statements did stays.
    ///
    /// # Errors
    /// Whatever a statement raises, with its place in `sql` where that is known.
    pub fn execute(&self, sql: &str) -> Result<Rows> {
        self.query(sql, &[])
    }

    /// As [`Connection::execute`], with values for the parameters `?` or `$1` of the statements.
    ///
    /// # Errors
    /// As there; input, if a parameter has no value.
    pub fn query(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Rows> {
        self.cancel.clear();
        let mut rows = Rows::empty();
        for parsed in entasis_sql::parse(sql)? {
            rows = self.run(&parsed, parameters)?;
        }
        Ok(rows)
    }

    /// Runs one statement once for each set of parameters. Returns the rows that were changed in all.
    ///
    /// # Errors
    /// As [`Connection::query`]; earlier sets stay done.
    pub fn execute_many(&self, sql: &str, sets: &[Vec<(Value, DataType)>]) -> Result<u64> {
        self.cancel.clear();
        let parsed = entasis_sql::parse(sql)?;
        let [parsed] = &parsed[..] else {
            return Err(Error::input("a batch takes exactly one statement"));
        };
        let mut changed = 0;
        for parameters in sets {
            changed += self.run(parsed, parameters)?.changed().unwrap_or(0);
        }
        Ok(changed)
    }

    /// Binds and runs one statement, with a stack that suits it. A panic below is an error of the statement.
    fn run(&self, parsed: &entasis_sql::Parsed, parameters: &[(Value, DataType)]) -> Result<Rows> {
        let target = parsed.changes().and_then(|name| self.shared.catalog.table(&name));
        let run = || {
            // Opened before its rows are asked for, so that they are still there when they are changed.
            let open = target.as_ref().map(|table| table.statement());
            statement::run(self, self.bind(parsed, parameters)?, open)
        };
        let guarded = || {
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
                let what = panic.downcast_ref::<String>().map(String::as_str);
                let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                Err(Error::internal(format!("{what}; the statement failed, the database goes on")))
            })
        };
        entasis_sql::on_deep_stack(parsed.is_deep(), guarded)
    }

    fn bind(&self, parsed: &entasis_sql::Parsed, parameters: &[(Value, DataType)]) -> Result<Statement> {
        entasis_sql::bind(parsed, &Names(self), parameters)
    }

    /// The plan of a query as the front end gives it, before optimization.
    ///
    /// # Errors
    /// As [`Connection::execute`]; input, if `sql` is not one query.
    pub fn plan(&self, sql: &str) -> Result<Plan> {
        match &entasis_sql::parse(sql)?[..] {
            [parsed] => match self.bind(parsed, &[])? {
                Statement::Query(plan) => Ok(plan),
                _ => Err(Error::input("only queries have a plan")),
            },
            _ => Err(Error::input("one query is expected")),
        }
    }

    /// The plan of a query as the engine runs it.
    ///
    /// # Errors
    /// As [`Connection::plan`].
    pub fn optimized(&self, sql: &str) -> Result<Plan> {
        optimizer::optimize(self.plan(sql)?, &self.settings())
    }

    /// The names and types of the columns that a query gives, without running it.
    ///
    /// # Errors
    /// As [`Connection::plan`].
    pub fn describe(&self, sql: &str) -> Result<Schema> {
        Ok(self.plan(sql)?.schema())
    }

    /// The texts of the statements in `sql`.
    ///
    /// # Errors
    /// Input, if it does not parse.
    pub fn split(&self, sql: &str) -> Result<Vec<String>> {
        Ok(entasis_sql::parse(sql)?.iter().map(|parsed| parsed.sql().to_string()).collect())
    }

    /// True if `sql` ends with a complete statement: outside quotes and comments, its last character is a semicolon.
    pub fn is_complete(&self, sql: &str) -> bool {
        entasis_sql::is_complete(sql)
    }

    /// The flag that cancels the running statement from another thread.
    pub fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }

    /// How far the running statement is.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Names of tables, views and registered relations, sorted.
    pub fn tables(&self) -> Vec<String> {
        let mut names = self.shared.catalog.names();
        names.extend(self.registered.read().expect("no panic while locked").keys().cloned());
        names.sort();
        names
    }

    /// The columns of a table, view or registered relation.
    pub fn table_schema(&self, name: &str) -> Option<Schema> {
        let quoted = name.replace('"', "\"\"");
        self.describe(&format!("SELECT * FROM \"{quoted}\"")).ok()
    }

    /// Makes a relation of the host program visible under `name`, before tables of that name.
    pub fn register(&self, name: &str, relation: Arc<dyn Relation>) {
        self.registered.write().expect("no panic while locked").insert(name.to_lowercase(), relation);
    }

    /// Undoes [`Connection::register`]. True if there was one.
    pub fn unregister(&self, name: &str) -> bool {
        self.registered.write().expect("no panic while locked").remove(&name.to_lowercase()).is_some()
    }

    /// Sets who is asked for names that are not in the catalog.
    pub fn set_replacement(&self, replacement: Option<Replacement>) {
        *self.replacement.write().expect("no panic while locked") = replacement;
    }

    /// The settings of this connection now.
    pub fn settings(&self) -> Settings {
        self.settings.lock().expect("no panic while locked").clone()
    }

    /// Changes a setting, as `SET name = value` does.
    ///
    /// # Errors
    /// Input, if there is no such setting or the value is none for it.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        settings::set(self, name, value)
    }

    /// What a statement that starts now carries.
    pub fn context(&self) -> QueryContext {
        self.progress.set(0.0);
        QueryContext {
            settings: Arc::new(self.settings()),
            memory: self.shared.memory.clone(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            pool: self.shared.workers.clone(),
        }
    }
}
