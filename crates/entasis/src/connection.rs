//! A connection: text in, rows out.
//!
//! One statement runs at a time on a connection; several connections run at once. A connection holds its
//! settings, the relations that the host program registered, the transaction that is open, and the flag that
//! cancels its statement.
//!
//! Outside a transaction a statement is one by itself. Within one, a statement that fails undoes itself, and
//! the transaction goes on.

use crate::arguments::{self, Arguments};
use crate::catalog::Names;
use crate::database::{Database, Shared};
use crate::files::csv::Rejects;
use crate::keyed;
use crate::prepared::{Prepared, Remembered};
use crate::preparing::ByName;
use crate::resting;
use crate::rows::Rows;
use crate::search_path::SearchPath;
use crate::work::{Work, all_tables};
use crate::{define, settings, statement};
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_engine::optimizer;
use entasis_engine::plan::Plan;
use entasis_engine::relation::{Compression, Relation};
use entasis_sql::{Parsed, Statement, TimeZone};
use entasis_storage::{CatalogVersion, Entry, TableEntry, Waiter, WriterName};
use entasis_vector::error::sqlstate;
use entasis_vector::statement::within;
use entasis_vector::{DataType, Error, ErrorKind, Result, Schema, Value};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Asked for names that the catalog does not have: variables of the host program.
pub type Replacement = Arc<dyn Fn(&str) -> Option<Arc<dyn Relation>> + Send + Sync>;

/// How often a statement by itself, or a batch, is run again that is in conflict with others.
pub(crate) const TRIES: usize = 10;
/// How long a statement waits for its turn that nobody could interrupt.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Bytes of a statement's text that others are shown who wait for it.
const SHOWN: usize = 200;
/// A statement that took longer may have freed much memory.
const LONG: Duration = Duration::from_millis(50);

/// A session on a database.
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    /// Its number, by which others know it.
    id: u64,
    /// Milliseconds that a statement waits for another writer; 0 for as long as it takes.
    pub(crate) lock_timeout: AtomicU64,
    pub(crate) settings: Mutex<Settings>,
    /// How tables that are created without saying so are encoded.
    pub(crate) compression: Mutex<Compression>,
    time_zone: Mutex<TimeZone>,
    /// True if all tables are put in order after each of its statements.
    pub(crate) rests: AtomicBool,
    /// Where names without a schema are looked for.
    pub(crate) search_path: Mutex<SearchPath>,
    pub(crate) registered: RwLock<HashMap<String, Arc<dyn Relation>>>,
    pub(crate) replacement: RwLock<Option<Replacement>>,
    /// The transaction that is open.
    pub(crate) transaction: Mutex<Option<Work>>,
    /// Statements by their texts.
    pub(crate) remembered: Remembered,
    /// Statements by the names that `PREPARE` gave them.
    pub(crate) named: ByName,
    /// By sequence, the value that was taken last.
    pub(crate) taken: Arc<Mutex<HashMap<String, i64>>>,
    /// Rows of files that its statements have left out.
    pub(crate) rejects: Arc<Rejects>,
    pub(crate) cancel: CancelFlag,
    progress: Arc<Progress>,
}

/// What became of a statement.
pub(crate) enum Done {
    /// It was run.
    Rows(Rows),
    /// It begins or ends a transaction, or something in one.
    Control(Box<Statement>),
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Connection {
        let settings = Settings { threads: shared.config.threads, ..Settings::default() };
        Connection {
            id: shared.next_connection(),
            shared,
            lock_timeout: AtomicU64::new(0),
            settings: Mutex::new(settings),
            compression: Mutex::default(),
            time_zone: Mutex::new(TimeZone::UTC),
            rests: AtomicBool::default(),
            search_path: Mutex::default(),
            registered: RwLock::default(),
            replacement: RwLock::default(),
            transaction: Mutex::default(),
            remembered: Remembered::default(),
            named: ByName::default(),
            taken: Arc::default(),
            rejects: Arc::default(),
            cancel: CancelFlag::default(),
            progress: Arc::default(),
        }
    }

    /// How tables that are created without saying so are encoded.
    pub(crate) fn compression(&self) -> Compression {
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its clocks are.
    pub fn time_zone(&self) -> TimeZone {
        *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts its clocks elsewhere. Plans that it remembers are for where they were.
    pub(crate) fn set_time_zone(&self, zone: TimeZone) {
        *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        self.forget_plans();
    }

    /// Where it looks for names without a schema.
    pub(crate) fn search_path(&self) -> SearchPath {
        self.search_path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks for them elsewhere from now on.
    pub(crate) fn set_search_path(&self, path: SearchPath) {
        *self.search_path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        self.forget_plans();
    }

    /// Forgets what it learnt of statements, as names in them have got another meaning.
    fn forget_plans(&self) {
        self.remembered.clear();
        self.named.start_afresh();
    }

    /// The newest names, its temporary ones among them.
    pub(crate) fn newest_names(&self) -> CatalogVersion {
        self.shared.catalog.version().seen_by(self.id)
    }

    /// Its number, by which errors of other connections name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Calls `work` with what a statement of this connection waits for its turn by.
    pub(crate) fn waiting<R>(&self, statement: Option<&str>, work: impl FnOnce(&Waiter<'_>) -> R) -> R {
        let is_interrupted = || self.cancel.is_raised();
        let limit = match self.lock_timeout.load(Ordering::Relaxed) {
            0 => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        };
        let statement = statement.map(|text| text[..text.floor_char_boundary(SHOWN)].into());
        let name = WriterName { connection: self.id, statement };
        work(&Waiter { name, limit, is_interrupted: Some(&is_interrupted) })
    }

    /// The database.
    pub fn database(&self) -> Database {
        Database { shared: self.shared.clone() }
    }

    /// Runs the statements in `sql`, one after the other, and returns the rows of the last. Stops at the
    /// first error; what earlier statements did stays.
    ///
    /// # Errors
    /// Whatever a statement raises, with its place in `sql` where that is known.
    pub fn execute(&self, sql: &str) -> Result<Rows> {
        self.query(sql, &[])
    }

    /// As [`Connection::execute`], with values for the parameters `?` or `$1` of the statements.
    ///
    /// # Errors
    /// As there; input, if there are more or fewer values than parameters.
    pub fn query(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Rows> {
        self.cancel.clear();
        match self.remembered.prepare(sql)? {
            Ok(prepared) => {
                entasis_sql::check_arguments(prepared.parsed.parameters(), parameters.len())?;
                self.run_prepared(&prepared, parameters)
            }
            Err(statements) => {
                let most = statements.iter().map(Parsed::parameters).max().unwrap_or(0);
                entasis_sql::check_arguments(most, parameters.len())?;
                statements.iter().try_fold(Rows::empty(), |_, parsed| self.run(parsed, None, parameters))
            }
        }
    }

    /// As [`Connection::query`], for one statement whose arguments may be lists.
    ///
    /// # Errors
    /// As there; input, if a list stands where only one value can.
    pub fn query_with(&self, sql: &str, arguments: &Arguments) -> Result<Rows> {
        let arguments = match arguments {
            Arguments::Values(values) => return self.query(sql, values),
            Arguments::Lists(arguments) => arguments,
        };
        self.cancel.clear();
        let Ok(prepared) = self.remembered.prepare(sql)? else {
            return Err(Error::not_supported("lists as parameters of several statements"));
        };
        let (parsed, values) = arguments::spread(&prepared.parsed, arguments)?;
        self.run(&parsed, None, &values)
    }

    /// The names of the parameters in `sql`, in order and in lower case; none, if they are written `?` or
    /// `$1`.
    ///
    /// # Errors
    /// Those of parsing.
    pub fn parameter_names(&self, sql: &str) -> Result<Vec<String>> {
        Ok(match self.remembered.prepare(sql)? {
            Ok(prepared) => prepared.parsed.parameter_names().to_vec(),
            Err(statements) => {
                statements.last().map(|last| last.parameter_names().to_vec()).unwrap_or_default()
            }
        })
    }

    /// Runs a statement that is done in no time: that names rows by their key, or a query that took a few
    /// milliseconds when it was run before. `None`, and nothing is done, for every other:
    /// [`Connection::query`] runs that. So callers need no way to interrupt it.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query_at_once(&self, sql: &str, parameters: &[(Value, DataType)]) -> Result<Option<Rows>> {
        let Ok(prepared) = self.remembered.prepare(sql)? else { return Ok(None) };
        entasis_sql::check_arguments(prepared.parsed.parameters(), parameters.len())?;
        // Who has to wait for long may have to be interrupted.
        let name = WriterName { connection: self.id, statement: None };
        let waiter = Waiter { name, limit: Some(AT_ONCE), is_interrupted: None };
        let rows = match self.run_keyed(&prepared, parameters, &waiter) {
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
            rows => rows?,
        };
        match rows {
            None if prepared.is_short() => {
                self.cancel.clear();
                match self.run(&prepared.parsed, Some(&prepared), parameters) {
                    // It may be a variable of the program by now, which is looked for only where there is
                    // time.
                    Err(error) if error.sqlstate() == sqlstate::NO_TABLE => Ok(None),
                    rows => rows.map(Some),
                }
            }
            rows => Ok(rows),
        }
    }

    /// Runs a statement that names rows by their key. `None`, and nothing is done, if it is another.
    fn run_keyed(
        &self,
        prepared: &Prepared,
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        if !prepared.is_keyed() {
            return Ok(None);
        }
        guarded(|| {
            let mut open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = keyed::run(self, &mut open, prepared, parameters, waiter)?;
            drop(open);
            if rows.is_some() {
                resting::after_statement(self);
            }
            Ok(rows)
        })
    }

    pub(crate) fn run_prepared(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        match self.waiting(None, |waiter| self.run_keyed(prepared, parameters, waiter))? {
            Some(rows) => Ok(rows),
            None => self.run(&prepared.parsed, Some(prepared), parameters),
        }
    }

    /// True if the host program has registered a relation of this name.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        let registered = self.registered.read().expect("no panic while locked");
        !registered.is_empty() && registered.contains_key(&name.to_lowercase())
    }

    /// Runs one statement, with a stack that suits it: by itself, or in the transaction that is open.
    fn run(
        &self,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        if let Some(preparing) = parsed.preparing() {
            return self.prepare_or_execute(preparing, parameters);
        }
        self.settled(parsed, || {
            let mut open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = match &mut *open {
                None => match self.run_by_itself(parsed, prepared, parameters)? {
                    Done::Rows(rows) => return Ok(rows),
                    done => done,
                },
                Some(work) => {
                    let mark = work.mark();
                    let done = guarded(|| self.step(work, parsed, prepared, parameters));
                    if done.is_err() {
                        work.roll_back(&mark);
                    }
                    work.forget(&mark);
                    done?
                }
            };
            self.control(&mut open, rows)
        })
    }

    /// Does `work` for a statement, with a stack that suits it, and then what is due after statements.
    pub(crate) fn settled<T: Send>(
        &self,
        parsed: &Parsed,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        let began = Instant::now();
        let result = entasis_sql::on_deep_stack(parsed.is_deep(), work);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Resource) {
            self.shared.config.when_short.iter().for_each(|when_short| when_short());
        }
        if began.elapsed() > LONG {
            self.shared.upkeep.wake(&self.shared);
        }
        guarded(|| {
            resting::after_statement(self);
            result
        })
    }

    /// Runs a statement outside any transaction, which is one by itself: once more if another one was first.
    fn run_by_itself(
        &self,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        let targets = parsed.targets();
        self.waiting(Some(parsed.sql()), |waiter| {
            // What it was in conflict about: it waits for its turn there, too, so that it does not go on like
            // that.
            let mut others: Vec<Arc<TableEntry>> = Vec::new();
            let mut tries = 0..TRIES;
            loop {
                let mut work = guarded(|| Work::statement(self, &targets, &others, waiter))?;
                let done = guarded(|| self.step(&mut work, parsed, prepared, parameters))?;
                let Done::Rows(rows) = done else { return Ok(done) };
                let used = work.used();
                match guarded(|| self.commit(work, waiter)) {
                    Err(error) if error.kind() == ErrorKind::Conflict && tries.next().is_some() => {
                        others.extend(used)
                    }
                    result => return result.map(|()| Done::Rows(rows)),
                }
                waiter.look()?;
            }
        })
    }

    /// Binds a statement and runs it on `work`, unless it begins or ends something. Whatever this thread does
    /// for it looks for interrupts and asks for memory as the statement.
    pub(crate) fn step(
        &self,
        work: &mut Work,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        within(Arc::new(self.context()), || self.bind_and_run(work, parsed, prepared, parameters))
    }

    fn bind_and_run(
        &self,
        work: &mut Work,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        let began = Instant::now();
        if let Some(prepared) = prepared
            && let Some(plan) = prepared.plan(self, work, parameters)?
        {
            let rows = statement::query(self, plan)?;
            prepared.took(began.elapsed());
            return Ok(Done::Rows(rows));
        }
        let statement = self.bind_at_one_moment(work, parsed, parameters)?;
        Ok(match statement {
            Statement::Begin
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint { .. }
            | Statement::RollbackTo { .. }
            | Statement::Release { .. } => Done::Control(Box::new(statement)),
            statement => {
                let rows = statement::run(self, work, statement)?;
                work.charge()?;
                Done::Rows(rows)
            }
        })
    }

    /// Begins and ends transactions.
    fn control(&self, open: &mut Option<Work>, done: Done) -> Result<Rows> {
        let statement = match done {
            Done::Rows(rows) => return Ok(rows),
            Done::Control(statement) => *statement,
        };
        match (statement, open.as_mut()) {
            (Statement::Begin, None) => *open = Some(Work::transaction(self)),
            (Statement::Begin, Some(_)) => return Err(Error::input("a transaction is open already")),
            (_, None) => return Err(Error::input("no transaction is open").with_hint("BEGIN begins one")),
            (Statement::Commit, Some(_)) => {
                let work = open.take().expect("it is open");
                self.waiting(Some("COMMIT"), |waiter| guarded(|| self.commit(work, waiter)))?;
            }
            (Statement::Rollback, Some(_)) => *open = None,
            (Statement::Savepoint { name }, Some(work)) => work.save(name),
            (Statement::RollbackTo { name }, Some(work)) => work.roll_back_to(&name)?,
            (Statement::Release { name }, Some(work)) => work.release(&name)?,
            (other, Some(_)) => return Err(Error::internal(format!("{other:?} does not end a transaction"))),
        }
        Ok(Rows::empty())
    }

    /// Publishes what was done, but for what temporary tables do not keep.
    ///
    /// # Errors
    /// As [`Work::commit`].
    pub(crate) fn commit(&self, mut work: Work, waiter: &Waiter<'_>) -> Result<()> {
        define::at_commit(self, &mut work)?;
        work.commit(waiter)
    }

    /// True if a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Binds a statement. All that it names, tables and what is declared of them, is seen as of one moment.
    fn bind_at_one_moment(
        &self,
        work: &mut Work,
        parsed: &Parsed,
        parameters: &[(Value, DataType)],
    ) -> Result<Statement> {
        loop {
            let statement = entasis_sql::bind(parsed, &Names::new(self, work), parameters);
            // What could not be bound may have been seen at several moments, too.
            if work.sees_one_moment() {
                return statement;
            }
        }
    }

    /// Does something with what a statement would see that is run now.
    fn peek<R>(&self, look: impl FnOnce(&mut Work) -> R) -> R {
        let mut open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *open {
            Some(work) => look(work),
            None => look(&mut Work::reading(self)),
        }
    }

    /// What a statement would do that is run now.
    pub(crate) fn bound(&self, parsed: &Parsed, parameters: &[(Value, DataType)]) -> Result<Statement> {
        self.peek(|work| self.bind_at_one_moment(work, parsed, parameters))
    }

    /// The plan of a query as the front end gives it, before optimization.
    ///
    /// # Errors
    /// As [`Connection::execute`]; input, if `sql` is not one query.
    pub fn plan(&self, sql: &str) -> Result<Plan> {
        match &entasis_sql::parse(sql)?[..] {
            [parsed] => match self.bound(parsed, &[])? {
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

    /// True if `sql` ends with a complete statement: outside quotes and comments, its last character is a
    /// semicolon.
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
        self.peek(|work| self.names(work))
    }

    pub(crate) fn names(&self, work: &Work) -> Vec<String> {
        self.names_of(&work.names)
    }

    /// The names of tables and views among some, and of registered relations.
    pub(crate) fn names_of(&self, names: &CatalogVersion) -> Vec<String> {
        let shown = names.entries().filter(|entry| matches!(entry, Entry::Table(_) | Entry::View(_)));
        let mut names: Vec<String> = shown.map(|entry| entry.name().to_owned()).collect();
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
        self.forget_plans();
    }

    /// Undoes [`Connection::register`]. True if there was one.
    pub fn unregister(&self, name: &str) -> bool {
        self.forget_plans();
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
            temp: self.shared.temp.clone(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            pool: self.shared.workers.clone(),
        }
    }
}

/// What is temporary ends with its connection.
impl Drop for Connection {
    fn drop(&mut self) {
        *self.transaction.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let gone = self.shared.catalog.forget(self.id);
        if !gone.is_empty() {
            self.shared.left(gone.iter().flat_map(|entry| all_tables(entry)));
            drop(gone);
            let _ = self.shared.charge_tables();
        }
    }
}

/// A panic below is an error of the statement.
pub(crate) fn guarded<R>(run: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Error::internal(format!("{what}; the statement failed, the database goes on")))
    })
}
