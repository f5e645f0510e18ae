//! A connection: text in, rows out.
//!
//! One statement runs at a time on a connection; several connections run at once. A connection consists of
//! its session, which exists whatever runs, and the open transaction, if there is one.
//!
//! Outside a transaction each statement is a transaction of its own. Within one, a statement that fails is
//! undone, and the transaction goes on.
//!
//! A statement comes in by [`Connection::query`], by [`Connection::query_at_once`] if it takes negligible
//! time, or by [`Connection::execute_many`] with many sets of arguments. Which way it goes from there says
//! [`route`].
//!
//! ```text
//! batch                one statement with many sets of arguments
//! route                which way a statement goes
//! named                PREPARE, EXECUTE, DEALLOCATE
//! control  planned     transactions and savepoints; statements that are bound
//! inspect  error_places  hints  running
//! ```

mod batch;
mod control;
pub(crate) mod error_places;
mod hints;
mod inspect;
mod named;
pub(crate) mod planned;
mod route;
pub(crate) mod running;

use crate::auto_layout;
use crate::connection::running::Last;
use crate::prepared::{self, Prepared};
pub use crate::session::Replacement;
use crate::session::Session;
use crate::session::settings;
use crate::session::upkeep_mode;
use crate::state::database::Database;
use crate::state::{Shared, User, all_tables};
use crate::transaction::TransactionContext;
use crate::values::arguments::{self, Argument};
use crate::values::rows::Rows;
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_functions::TimeZone;
use entasis_sql::{FreedAside, Parsed};
use entasis_storage::{Waiter, WriterName};
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a statement that cannot be interrupted may wait for its write lock.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Statements of up to this many bytes are parsed in negligible time.
const AT_ONCE_BYTES: usize = 16 << 10;

/// A session on a database, in which one statement runs at a time.
pub struct Connection {
    /// The session. Its target is the database for which the connection was made.
    pub(crate) session: Session,
    /// The open transaction, if there is one.
    pub(crate) transaction: Mutex<Option<TransactionContext>>,
    /// The query of its last stream.
    pub(crate) streaming: Last,
    /// Dropped last.
    _user: User,
}

impl Database {
    /// Makes a new connection, with settings of its own.
    pub fn connect(&self) -> Connection {
        Connection::new(self.shared.clone())
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Connection {
        shared.at_rest(auto_layout::follow);
        let user = User::new(&shared);
        Connection {
            session: Session::new(shared),
            transaction: Mutex::default(),
            streaming: Last::default(),
            _user: user,
        }
    }

    /// Refuses everything in a process that was forked from that of the connection, and in functions that the
    /// connection calls.
    #[inline]
    pub(crate) fn refuse_elsewhere(&self) -> Result<()> {
        if self.session.functions.is_calling() {
            let error = Error::input("a function cannot use the connection that calls it");
            return Err(error.with_hint("give it a connection of its own"));
        }
        self.session.own().shared.refuse_elsewhere()
    }

    /// True in a process that was forked from that of the connection, where it cannot be used.
    pub fn is_elsewhere(&self) -> bool {
        !self.session.own().shared.is_here()
    }

    /// In a process that was forked from that of this connection, and which that one has outlived, or which
    /// has closed the database: a connection to it that may be used here, with the settings of this one. So a
    /// program may open a database, and then become a daemon.
    ///
    /// # Errors
    /// Input, if the database was in memory or read-only, if another process has the file open, or if the
    /// connection has an open transaction or attached databases.
    pub fn taken_over(&self) -> Result<Connection> {
        let own = &self.session.own().shared;
        let refused = || own.refuse_elsewhere().err().unwrap_or_else(|| Error::internal("it is used here"));
        let is_plain = self.transaction.try_lock().is_ok_and(|open| open.is_none());
        let path = own.written_path().filter(|_| is_plain).ok_or_else(refused)?;
        let settled = self.session.settled().ok_or_else(refused)?;
        let user = Shared::open(path, &own.config)
            .map_err(|error| if error.kind() == ErrorKind::Io { refused() } else { error })?;
        let connection = Connection::new((*user).clone());
        connection.session.settle(settled);
        Ok(connection)
    }

    /// The open transaction, if there is one, for a statement that begins: waits until others have ended.
    pub(crate) fn open_transaction(&self) -> MutexGuard<'_, Option<TransactionContext>> {
        loop {
            let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(running) = self.streaming.running() else { return open };
            drop(open);
            running.wait();
        }
    }

    /// What is done after each statement.
    fn afterwards(&self) {
        upkeep_mode::after_statement(&self.session);
        auto_layout::after_statement(&self.session);
    }

    /// The time zone of the connection.
    pub fn time_zone(&self) -> TimeZone {
        self.session.time_zone()
    }

    /// The connection's number, which errors of other connections mention.
    pub fn id(&self) -> u64 {
        self.session.id
    }

    /// The database for which the connection was made.
    pub fn database(&self) -> Database {
        Database::of(User::new(&self.session.shared))
    }

    /// Runs the statements in `sql` in order and returns the rows of the last. Stops at the first error; what
    /// earlier statements did is kept.
    ///
    /// # Errors
    /// Those of the statements, with the position in `sql` where it is known.
    pub fn execute(&self, sql: &str) -> Result<Rows> {
        self.query(sql, &[])
    }

    /// As [`Connection::execute`], with values for the parameters `?` or `$1` of the statements.
    ///
    /// # Errors
    /// Those of [`Connection::execute`]; input, if the number of values is not the number of parameters.
    pub fn query(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Rows> {
        self.refuse_elsewhere()?;
        self.session.cancel.clear();
        let _memory =
            prepared::reserve(|| self.session.context().memory, parameters.iter().map(|(value, _)| value))?;
        match self.session.prepare(sql).map_err(|error| self.hinted(error, sql))? {
            Ok(prepared) => {
                entasis_sql::check_arguments(prepared.parsed.parameters(), parameters.len())?;
                self.run_explained(&prepared, parameters)
            }
            Err(statements) => {
                let most = statements.iter().map(Parsed::parameters).max().unwrap_or(0);
                entasis_sql::check_arguments(most, parameters.len())?;
                let mut rows = Rows::empty();
                let tokens: usize = statements.iter().map(Parsed::tokens).sum();
                // Nothing is remembered of the statements of a script.
                for parsed in &mut *FreedAside::new(statements.into_iter(), tokens) {
                    rows = self.run_explained(&Prepared::new(parsed), parameters)?;
                }
                Ok(rows)
            }
        }
    }

    /// Runs a statement; its error says where the constant is that it is about.
    fn run_explained(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        let rows = self.run(prepared, parameters);
        rows.map_err(|error| self.explained(error, &prepared.parsed, parameters))
    }

    /// As [`Connection::query`], for a single statement some of whose arguments are lists.
    ///
    /// # Errors
    /// Those of [`Connection::query`]; input, if a list is given where only a single value is possible.
    pub(crate) fn query_lists(&self, sql: &str, arguments: &[Argument]) -> Result<Rows> {
        self.refuse_elsewhere()?;
        self.session.cancel.clear();
        let Ok(prepared) = self.session.prepare(sql)? else {
            return Err(Error::not_supported("lists as parameters of several statements"));
        };
        let (parsed, values) = arguments::spread(&prepared.parsed, arguments)?;
        let _memory =
            prepared::reserve(|| self.session.context().memory, values.iter().map(|(value, _)| value))?;
        self.run(&Prepared::new(parsed), &values)
    }

    /// For each parameter of the statement in `sql`, whether it is compared with, so that it may be a list.
    /// Several statements take no lists.
    ///
    /// # Errors
    /// Those of parsing.
    pub(crate) fn list_parameters(&self, sql: &str) -> Result<Vec<bool>> {
        self.refuse_elsewhere()?;
        Ok(match self.session.prepare(sql)? {
            Ok(prepared) => prepared.list_parameters().to_vec(),
            Err(_) => Vec::new(),
        })
    }

    /// The names of the parameters in `sql`, in order and in lower case; none, if they are written `?` or
    /// `$1`.
    ///
    /// # Errors
    /// Those of parsing.
    pub fn parameter_names(&self, sql: &str) -> Result<Vec<String>> {
        self.refuse_elsewhere()?;
        Ok(match self.session.prepare(sql)? {
            Ok(prepared) => prepared.parsed.parameter_names().to_vec(),
            Err(statements) => {
                statements.last().map(|last| last.parameter_names().to_vec()).unwrap_or_default()
            }
        })
    }

    /// Runs a statement if it takes negligible time: one that names rows by their key, a query that took a
    /// few milliseconds when it last ran, or one that begins a transaction, ends one of few changes, or sets,
    /// releases or rolls back to a savepoint since which little has changed. The caller needs no way to
    /// interrupt it. For every other statement, does nothing and returns `None`; [`Connection::query`] runs
    /// those.
    ///
    /// # Errors
    /// Those of [`Connection::query`].
    pub fn query_at_once(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Option<Rows>> {
        self.refuse_elsewhere()?;
        if self.streaming.running().is_some()
            || sql.len() > AT_ONCE_BYTES
            || prepared::are_large(parameters.iter().map(|(value, _)| value))
        {
            return Ok(None);
        }
        let Ok(prepared) = self.session.prepare(sql)? else { return Ok(None) };
        entasis_sql::check_arguments(prepared.parsed.parameters(), parameters.len())?;
        // A statement that waits for long must be interruptible, so this one gives up early.
        let name = WriterName { connection: self.session.id, statement: None };
        let waiter = Waiter { name, limit: Some(AT_ONCE), is_interrupted: None };
        let rows = self.run_at_once(&prepared, parameters, &waiter);
        rows.map_err(|error| self.explained(error, &prepared.parsed, parameters))
    }

    /// The flag that cancels the running statement from another thread.
    pub fn cancel_flag(&self) -> CancelFlag {
        self.session.cancel.clone()
    }

    /// The progress of the running statement.
    pub fn progress(&self) -> Arc<Progress> {
        self.session.progress()
    }

    /// The current settings of this connection.
    pub fn settings(&self) -> Settings {
        self.session.settings()
    }

    /// Changes a setting, as `SET name = value` does.
    ///
    /// # Errors
    /// Input, if there is no such setting or the value is not valid for it.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        self.refuse_elsewhere()?;
        settings::set(&self.session, name, value)
    }

    /// The context with which a statement that starts now would run.
    pub fn context(&self) -> QueryContext {
        self.session.context()
    }
}

/// Temporary objects are dropped with their connection.
impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_elsewhere() {
            // Nothing that was inherited is freed here: see `shared::users`.
            std::mem::forget(std::mem::take(&mut self.transaction));
            std::mem::forget(self.session.clone());
            return;
        }
        *self.transaction.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let gone = self.session.shared.catalog.forget(self.session.id);
        if !gone.is_empty() {
            self.session.shared.left(gone.iter().flat_map(|entry| all_tables(entry)));
            drop(gone);
            let _ = self.session.shared.charge_tables();
        }
    }
}

/// Turns a panic in `run` into an error of the statement.
pub(crate) fn guarded<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Error::internal(format!("{what}; the statement failed, the database goes on")))
    })
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database};

    #[test]
    fn a_long_text_is_not_run_at_once() {
        // Parsing it takes a while, in which it could not be interrupted.
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)").unwrap();
        connection.execute("INSERT INTO t VALUES (1, 10)").unwrap();
        let short = "SELECT a FROM t WHERE id = 1";
        assert!(connection.query_at_once(short, &[]).unwrap().is_some());
        let long = format!("{short} -- {}", "x".repeat(super::AT_ONCE_BYTES));
        assert!(connection.query_at_once(&long, &[]).unwrap().is_none());
    }

    /// A text that is parsed aside has the rows and errors of a short one.
    #[test]
    fn the_length_of_a_text_changes_nothing() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)").unwrap();
        let outcome = |sql: &str| {
            let rows = connection.query(sql, &[]);
            format!("{:?}", rows.map(|rows| rows.row_values().collect::<Vec<_>>()))
        };
        let comment = "x".repeat(1 << 20);
        let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
        let chain = format!("SELECT count(*) FROM t WHERE {}", vec!["a > 1"; 500].join(" OR "));
        for sql in [
            "SELECT 1 + 1",
            "SELECT 1; SELECT 2",
            "SELECT 1; SELECT x; SELECT 2",
            "SELECT\n  x",
            "SELEC 1",
            "SELECT $1",
            "SELECT 12abc",
            "SELECT a FROM t WHERE id = 1",
            &nested(100),
            &nested(1000),
            &chain,
        ] {
            assert_eq!(outcome(&format!("{sql} /* {comment} */")), outcome(sql), "{sql}");
        }
        // More parts than are freed by the thread of the statement.
        let rows = |from: usize| {
            let rows: Vec<String> = (from..from + 40_000).map(|i| format!("({i}, {})", i % 7)).collect();
            rows.join(", ")
        };
        let changed = |sql: &str| connection.execute(sql).unwrap().changed();
        assert_eq!(changed(&format!("INSERT INTO t VALUES {}", rows(0))), Some(40_000));
        let or_nothing = format!("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", rows(20_000));
        assert_eq!(changed(&or_nothing), Some(20_000));
        let far = format!("INSERT INTO t VALUES {}, (200000, 99999999999)", rows(90_000));
        let error = connection.execute(&far);
        assert!(error.map(drop).unwrap_err().position().is_some());
        let script: String = (0..60_000).map(|i| format!("SELECT {i};")).collect();
        assert_eq!(outcome(&format!("SELECT x;{script}")), outcome("SELECT x"));
    }
}
