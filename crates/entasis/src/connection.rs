//! A connection: text in, rows out.
//!
//! One statement runs at a time on a connection; several connections run at once. A connection consists of
//! its session, which exists whatever runs, and the open transaction, if there is one.
//!
//! Outside a transaction each statement is a transaction of its own. Within one, a statement that fails is
//! undone, and the transaction goes on.

use crate::arguments::{self, Argument};
use crate::catalog::Names;
use crate::database::Database;
use crate::home::Home;
use crate::prepared::{self, Prepared};
use crate::rows::Rows;
use crate::running::Last;
pub use crate::session::Replacement;
use crate::session::Session;
use crate::shared::{Shared, User, all_tables};
use crate::work::Work;
use crate::{command, define, execute, follow, home, keyed, resting, settings, statement};
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_engine::plan::Plan;
use entasis_functions::TimeZone;
use entasis_sql::{Parsed, Statement};
use entasis_storage::{TableEntry, Waiter, WriterName};
use entasis_vector::error::sqlstate;
use entasis_vector::statement::within;
use entasis_vector::{DataType, Error, ErrorKind, Result, Schema, Value, name};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a statement by itself, or a batch, is tried when it conflicts with others.
pub(crate) const TRIES: usize = 10;
/// How long a statement that cannot be interrupted may wait for its turn.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Statements of up to this many bytes are parsed in negligible time.
const AT_ONCE_BYTES: usize = 16 << 10;
/// A statement that took longer than this may have freed much memory.
const LONG: Duration = Duration::from_millis(50);

/// A session on a database, in which one statement runs at a time.
pub struct Connection {
    /// The session. Its home is the database for which the connection was made.
    pub(crate) session: Session,
    /// The open transaction, if there is one.
    pub(crate) transaction: Mutex<Option<Work>>,
    /// The query of its last stream.
    pub(crate) streaming: Last,
    /// Dropped last.
    _user: User,
}

/// The outcome of a statement.
#[expect(clippy::large_enum_variant, reason = "there are few of them, for a moment")]
pub(crate) enum Done {
    /// It has run.
    Rows(Rows),
    /// It begins or ends a transaction or a savepoint, which the connection does.
    Control(Box<Statement>),
}

impl Database {
    /// Makes a new connection, with settings of its own.
    pub fn connect(&self) -> Connection {
        Connection::new(self.shared.clone())
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Connection {
        shared.at_rest(follow::follow);
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
    pub(crate) fn open_transaction(&self) -> MutexGuard<'_, Option<Work>> {
        loop {
            let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(running) = self.streaming.running() else { return open };
            drop(open);
            running.wait();
        }
    }

    /// What is done after each statement.
    fn afterwards(&self) {
        resting::after_statement(&self.session);
        follow::after_statement(&self.session);
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
                let rows = self.run_prepared(&prepared, parameters);
                rows.map_err(|error| self.explained(error, &prepared.parsed, parameters))
            }
            Err(statements) => {
                let most = statements.iter().map(Parsed::parameters).max().unwrap_or(0);
                entasis_sql::check_arguments(most, parameters.len())?;
                statements.into_iter().try_fold(Rows::empty(), |_, parsed| self.run_once(parsed, parameters))
            }
        }
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
        self.run(&parsed, None, &values)
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
        if let Some(control) = &prepared.control {
            return self.control_at_once(control, &waiter);
        }
        let rows = match self.run_keyed(&prepared, parameters, &waiter) {
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
            rows => rows.map_err(|error| self.explained(error, &prepared.parsed, parameters))?,
        };
        match rows {
            None if prepared.is_short() => {
                self.session.cancel.clear();
                match self.run(&prepared.parsed, Some(&prepared), parameters) {
                    // By now the name may be a variable of the program, which only the slower way looks up.
                    Err(error) if error.sqlstate() == sqlstate::NO_TABLE => Ok(None),
                    Err(error) => Err(self.explained(error, &prepared.parsed, parameters)),
                    Ok(rows) => Ok(Some(rows)),
                }
            }
            rows => Ok(rows),
        }
    }

    /// Runs a statement that names rows by their key. For any other, does nothing and returns `None`.
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
            let mut open = self.open_transaction();
            if open.is_none() {
                self.session.refresh()?;
            }
            let away = self.session.is_away().then(|| self.session.here());
            let session = away.as_ref().unwrap_or(&self.session);
            let rows = keyed::run(session, &mut open, prepared, parameters, waiter);
            let is_seen = open.is_none() || !rows.as_ref().is_ok_and(|rows| is_hidden(rows.as_ref()));
            drop(open);
            let rows = self.numbers_kept(is_seen, rows)?;
            if rows.is_some() {
                self.afterwards();
            }
            Ok(rows)
        })
    }

    /// Begins a transaction, ends one of few changes, if it need not wait for its turns, or does what is said
    /// of a savepoint, if little has changed since. Otherwise does nothing and returns `None`.
    fn control_at_once(&self, control: &Statement, waiter: &Waiter<'_>) -> Result<Option<Rows>> {
        self.session.cancel.clear();
        guarded(|| {
            let mut open = self.open_transaction();
            match (control, open.as_mut()) {
                (Statement::Begin, None) => {
                    self.session.refresh()?;
                    *open = Some(Work::transaction(&self.session.here()));
                }
                (Statement::Rollback, Some(work)) if work.is_small() => *open = None,
                (Statement::Commit, Some(work)) if work.is_small() => {
                    // First, because a commit that fails cannot be tried again.
                    if !work.takes_turns(waiter) {
                        return Ok(None);
                    }
                    let work = open.take().expect("it is open");
                    self.commit(work, waiter)?;
                }
                // What it writes of new values that are kept is little.
                (Statement::Savepoint { name }, Some(work)) => work.save(name.clone()),
                (Statement::Release { name }, Some(work)) => work.release(name)?,
                (Statement::RollbackTo { name }, Some(work)) if work.is_small_since(name) => {
                    work.roll_back_to(name)?;
                }
                _ => return Ok(None),
            }
            let is_seen = open.is_none();
            drop(open);
            let rows = self.numbers_kept(is_seen, Ok(Rows::empty()))?;
            self.afterwards();
            Ok(Some(rows))
        })
    }

    /// Runs a statement of a script, of which nothing is remembered.
    fn run_once(&self, parsed: Parsed, parameters: &[(Value, DataType)]) -> Result<Rows> {
        let once = Prepared::new(parsed);
        let rows = match self.session.waiting(None, |waiter| self.run_keyed(&once, parameters, waiter)) {
            Ok(None) => self.run(&once.parsed, None, parameters),
            Ok(Some(rows)) => Ok(rows),
            Err(error) => Err(error),
        };
        rows.map_err(|error| self.explained(error, &once.parsed, parameters))
    }

    pub(crate) fn run_prepared(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        match self.session.waiting(None, |waiter| self.run_keyed(prepared, parameters, waiter))? {
            Some(rows) => Ok(rows),
            None => self.run(&prepared.parsed, Some(prepared), parameters),
        }
    }

    /// Runs one statement, on a stack of suitable size: by itself, or in the open transaction.
    fn run(
        &self,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        if let Some(preparing) = parsed.preparing() {
            return self.prepare_or_execute(preparing, parameters);
        }
        let control =
            prepared.map_or_else(|| entasis_sql::transaction_control(parsed), |known| known.control.clone());
        self.settled(parsed, &|| {
            let mut open = self.open_transaction();
            let rows = self.run_in(&mut open, parsed, prepared, control.clone(), parameters);
            let changes_rows = parsed.is_of_rows() && !parsed.is_query();
            let is_seen =
                open.is_none() || !(changes_rows && rows.as_ref().is_ok_and(|rows| is_hidden(Some(rows))));
            self.numbers_kept(is_seen, rows)
        })
    }

    /// Runs one statement by itself, or in the open transaction, which it may begin or end.
    fn run_in(
        &self,
        open: &mut Option<Work>,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        control: Option<Statement>,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        if open.is_none() {
            guarded(|| self.session.refresh())?;
        }
        if let Some(control) = control {
            // For a mark, new values that the transaction keeps would be written to forks.
            return guarded(|| self.control(open, Done::Control(Box::new(control))));
        }
        let rows = match open {
            None => match self.run_by_itself(parsed, prepared, parameters)? {
                Done::Rows(rows) => return Ok(rows),
                done => done,
            },
            Some(work) => {
                let session = self.enter(work, parsed)?;
                let mark = work.mark();
                let done = guarded(|| self.step(&session, work, parsed, prepared, parameters));
                if done.is_err() {
                    work.roll_back(&mark);
                }
                work.forget(&mark);
                done?
            }
        };
        self.control(open, rows)
    }

    /// What a statement returns, once the numbers that it or its transaction has taken from sequences are
    /// durable, if somebody may see them now: in rows, in an error, in a file, or because the transaction has
    /// ended.
    pub(crate) fn numbers_kept<T>(&self, is_seen: bool, result: Result<T>) -> Result<T> {
        match is_seen {
            true => self.session.numbers.keep().and(result),
            false => result,
        }
    }

    /// Calls `work` for a statement, on a stack of suitable size, and then does what is due after statements.
    /// `work` is called again, on a larger stack, if the statement turns out to be deep, before it did
    /// anything.
    pub(crate) fn settled<T: Send>(
        &self,
        parsed: &Parsed,
        work: &(impl Fn() -> Result<T> + Sync),
    ) -> Result<T> {
        let began = Instant::now();
        let mut result = entasis_sql::on_deep_stack(parsed.is_deep(), work);
        if result.as_ref().is_err_and(|error| error.sqlstate() == sqlstate::NEEDS_STACK) {
            result = entasis_sql::on_deep_stack(true, work);
        }
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Resource) {
            self.session.shared.config.when_short.iter().for_each(|when_short| when_short());
        }
        if began.elapsed() > LONG {
            self.session.shared.wake_upkeep();
        }
        guarded(|| {
            self.afterwards();
            result
        })
    }

    /// Runs a statement outside a transaction as one of its own, again if it conflicts with another.
    fn run_by_itself(
        &self,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        let Home { session, targets } = home::of(&self.session, parsed, None)?;
        session.waiting(Some(parsed.sql()), |waiter| {
            // The tables on which it had conflicts. The next try waits for the turns of these too, so that
            // conflicts do not repeat for ever.
            let mut others: Vec<Arc<TableEntry>> = Vec::new();
            let mut tries = 0..TRIES;
            loop {
                let mut work = guarded(|| Work::statement(&session, &targets, &others, waiter))?;
                let done = guarded(|| self.step(&session, &mut work, parsed, prepared, parameters))?;
                let Done::Rows(rows) = done else { return Ok(done) };
                let used = work.used().to_vec();
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

    /// Makes the home of a transaction's next statement the home of the transaction. Returns the session with
    /// that home.
    ///
    /// # Errors
    /// Input, if the transaction writes to another database.
    pub(crate) fn enter(&self, work: &mut Work, parsed: &Parsed) -> Result<Session> {
        let Home { session, .. } = home::of(&self.session, parsed, Some(work))?;
        work.move_to(&session)?;
        Ok(session)
    }

    /// The session whose home is that of `work`.
    fn session_of(&self, work: &Work) -> Session {
        let home = self.session.database_called(work.database());
        home.map_or_else(|| self.session.clone(), |home| self.session.at(&home))
    }

    /// Binds a statement and runs it on `work`, whose home is the session's, unless it begins or ends a
    /// transaction or savepoint. Interrupts and the memory of everything that this thread does for it are the
    /// statement's.
    pub(crate) fn step(
        &self,
        session: &Session,
        work: &mut Work,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        let context = Arc::new(session.context());
        within(context, || self.bind_and_run(session, work, parsed, prepared, parameters))
    }

    fn bind_and_run(
        &self,
        session: &Session,
        work: &mut Work,
        parsed: &Parsed,
        prepared: Option<&Prepared>,
        parameters: &[(Value, DataType)],
    ) -> Result<Done> {
        let began = Instant::now();
        work.refuse_targets(session, parsed)?;
        let kept = match prepared.filter(|_| !session.sees_others()) {
            Some(prepared) => prepared.bound(session, work, parameters)?,
            None => None,
        };
        let statement = match (kept, prepared) {
            (Some(Statement::Query(plan)), Some(prepared)) => {
                let rows = execute::query(session, plan)?;
                prepared.took(began.elapsed());
                return Ok(Done::Rows(rows));
            }
            (Some(change), _) => change,
            (None, _) => {
                at_one_moment(session, work, parsed, |names| entasis_sql::bind(parsed, names, parameters))?
            }
        };
        Ok(match statement {
            Statement::Begin
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint { .. }
            | Statement::RollbackTo { .. }
            | Statement::Release { .. } => Done::Control(Box::new(statement)),
            statement => {
                let rows = match statement {
                    Statement::Command(command) => command::run(session, work, command)?,
                    statement => statement::run(session, work, statement)?,
                };
                work.charge()?;
                Done::Rows(rows)
            }
        })
    }

    /// Begins and ends transactions and savepoints.
    fn control(&self, open: &mut Option<Work>, done: Done) -> Result<Rows> {
        let statement = match done {
            Done::Rows(rows) => return Ok(rows),
            Done::Control(statement) => *statement,
        };
        match (statement, open.as_mut()) {
            (Statement::Begin, None) => *open = Some(Work::transaction(&self.session.here())),
            (Statement::Begin, Some(_)) => return Err(Error::input("a transaction is open already")),
            (_, None) => return Err(Error::input("no transaction is open").with_hint("BEGIN begins one")),
            (Statement::Commit, Some(_)) => {
                let work = open.take().expect("it is open");
                let session = self.session_of(&work);
                session.waiting(Some("COMMIT"), |waiter| guarded(|| self.commit(work, waiter)))?;
            }
            (Statement::Rollback, Some(_)) => *open = None,
            (Statement::Savepoint { name }, Some(work)) => work.save(name),
            (Statement::RollbackTo { name }, Some(work)) => work.roll_back_to(&name)?,
            (Statement::Release { name }, Some(work)) => work.release(&name)?,
            (other, Some(_)) => return Err(Error::internal(format!("{other:?} does not end a transaction"))),
        }
        Ok(Rows::empty())
    }

    /// Publishes what was done, without the rows of temporary tables that are dropped at the commit.
    ///
    /// # Errors
    /// Those of [`Work::commit`].
    pub(crate) fn commit(&self, mut work: Work, waiter: &Waiter<'_>) -> Result<()> {
        if work.names.temporary().next().is_some() {
            define::at_commit(&self.session_of(&work), &mut work)?;
        }
        work.commit(waiter)
    }

    /// True if a transaction is open.
    pub fn in_transaction(&self) -> bool {
        !self.is_elsewhere() && self.transaction.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What a statement would do if it ran now.
    pub(crate) fn bound(&self, parsed: &Parsed, parameters: &[(Value, DataType)]) -> Result<Statement> {
        self.bound_with(parsed, |names| entasis_sql::bind(parsed, names, parameters))
    }

    /// What `bind` makes of a statement that would run now.
    pub(crate) fn bound_with<T>(&self, parsed: &Parsed, bind: impl Fn(&Names<'_>) -> Result<T>) -> Result<T> {
        self.refuse_elsewhere()?;
        let mut open = self.open_transaction();
        match &mut *open {
            Some(work) => {
                let session = self.enter(work, parsed)?;
                at_one_moment(&session, work, parsed, bind)
            }
            None => {
                self.session.refresh()?;
                let Home { session, .. } = home::of(&self.session, parsed, None)?;
                at_one_moment(&session, &mut Work::reading(&session), parsed, bind)
            }
        }
    }

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
        entasis_engine::shared::optimize(self.plan(sql)?, &self.settings())
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
        self.session.cancel.clone()
    }

    /// The progress of the running statement.
    pub fn progress(&self) -> Arc<Progress> {
        self.session.progress()
    }

    /// Names of tables and views of the current database, and of registered relations, sorted.
    pub fn tables(&self) -> Vec<String> {
        if self.is_elsewhere() {
            return Vec::new();
        }
        let here = self.session.here();
        let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = open.as_ref().and_then(|work| work.names_seen_of(&here.database));
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
        let seen = open.as_ref().and_then(|work| work.names_seen_of(&here.database));
        command::declarations(&seen.unwrap_or_else(|| here.newest_names()), name)
    }

    /// The columns of a table, view or registered relation, by its name as [`Connection::tables`] gives it.
    pub fn table_schema(&self, name: &str) -> Option<Schema> {
        let parts: Vec<String> = name::parts(name).iter().map(|part| entasis_sql::quoted(part)).collect();
        self.plan(&format!("SELECT * FROM {}", parts.join("."))).ok().map(|plan| plan.schema())
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

/// True if a statement shows nothing of what it has changed.
fn is_hidden(rows: Option<&Rows>) -> bool {
    rows.is_none_or(|rows| rows.schema().is_empty())
}

/// Binds a statement by `bind`. All tables and declarations that it names are seen as of one moment.
pub(crate) fn at_one_moment<T>(
    session: &Session,
    work: &mut Work,
    parsed: &Parsed,
    bind: impl Fn(&Names<'_>) -> Result<T>,
) -> Result<T> {
    loop {
        let names = Names::new(session, work);
        let statement = bind(&names);
        let statement = statement.map_err(|error| names.explained(parsed.sql(), error));
        drop(names);
        // A statement that could not be bound may have seen several moments, too.
        if work.sees_one_moment() {
            return statement;
        }
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
    use entasis_vector::Value;

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

    #[test]
    fn savepoints_are_used_at_once_whatever_the_transaction_did_before() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let at_once = |sql: &str| connection.query_at_once(sql, &[]).map(|rows| rows.is_some());
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)").unwrap();
        for control in ["SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"] {
            assert!(!at_once(control).unwrap(), "{control} outside a transaction");
        }
        connection.execute("BEGIN").unwrap();
        connection.execute("INSERT INTO t SELECT i, 0 FROM range(1000000) r(i)").unwrap();
        for i in 1..=3000 {
            let ending = ["RELEASE s", "ROLLBACK TO s"][i % 2];
            for sql in ["SAVEPOINT s", "SAVEPOINT s", &format!("INSERT INTO t VALUES (-{i} , 1)"), ending] {
                assert!(at_once(sql).unwrap(), "{sql} in round {i}");
            }
        }
        // What it undoes takes a while, in which it could not be interrupted.
        connection.execute("SAVEPOINT before").unwrap();
        connection.execute("UPDATE t SET a = 2").unwrap();
        assert!(!at_once("ROLLBACK TO before").unwrap());
        connection.execute("ROLLBACK TO before").unwrap();
        assert!(at_once("ROLLBACK TO before").unwrap());
        // Names that came into being go with what they name.
        connection.execute("CREATE TABLE u AS SELECT * FROM t").unwrap();
        assert!(!at_once("ROLLBACK TO before").unwrap());
        assert!(at_once("RELEASE before").unwrap());
        let error = at_once("RELEASE before").unwrap_err();
        assert!(error.to_string().contains("there is no savepoint before"), "{error}");
        assert!(!at_once("ROLLBACK TO before").unwrap());
        connection.execute("ROLLBACK TO before").unwrap_err();
        let rows = connection.execute("SELECT count(*) FILTER (WHERE id < 0), max(a) FROM t").unwrap();
        assert_eq!(rows.row_values().next().unwrap(), [Value::Integer(1500), Value::Integer(1)]);
    }
}
