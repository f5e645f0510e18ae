//! Runs statements without the GIL, and turns Ctrl-C into cancellation.
//!
//! Python delivers signals only to its main thread, and only when that checks for them. So the statement runs
//! on another thread ([`crate::runner`]), while the calling thread waits without the GIL and checks for
//! signals fifty times a second. A signal whose handler raises (`KeyboardInterrupt`) cancels the statement;
//! the exception propagates once the statement has stopped. A statement may have a timeout, which cancels it
//! too; it counts from when the statement has its turn. The calling thread also draws the progress bar.
//!
//! A process that was forked inherits sessions, and cannot use them: the threads behind them do not exist
//! there, and the database is its parent's. It may take them over when the parent is gone or has closed the
//! database ([`Connection::taken_over`]); until then every statement is refused. What it has inherited it
//! never frees.

use crate::bar::Bar;
use crate::errors::{InterfaceError, ProgrammingError, raised, raised_by};
use crate::functions::Failure;
use crate::parameters::{self, Given};
use crate::runner::Runner;
use crate::scan::{Left, Scope};
use entasis::{Arguments, Connection, Database, Progress};
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, ErrorKind, Result};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyTuple};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// A connection with the state that its users in Python share.
pub struct Session {
    /// `None` after it was closed.
    live: Mutex<Option<Arc<Live>>>,
    /// How often `interrupt` was called.
    interrupts: AtomicU64,
    /// How long statements may take, unless they say otherwise.
    timeout: Mutex<Option<Duration>>,
    /// Whether long statements show a progress bar; `None` leaves it to where the program runs.
    bar: Mutex<Option<bool>>,
}

/// A connection in one process.
struct Live {
    connection: Arc<Connection>,
    scope: Arc<Scope>,
    /// The exception of a function that SQL called.
    failure: Failure,
    /// Held by the running statement: only one runs at a time.
    turn: Arc<Mutex<()>>,
    runner: Runner,
    /// Keeps a database in memory with a name; dropped after the connection.
    named: Option<Arc<Database>>,
}

impl Live {
    fn new(connection: Connection, named: Option<Arc<Database>>) -> Arc<Live> {
        let scope = Arc::new(Scope::default());
        let (asked, cancel) = (scope.clone(), connection.cancel_flag());
        connection.set_replacement(Some(Arc::new(move |name| asked.find(name, &cancel))));
        Arc::new(Live {
            connection: Arc::new(connection),
            scope,
            failure: Failure::default(),
            turn: Arc::default(),
            runner: Runner::default(),
            named,
        })
    }

    /// Refuses statements in a function that a statement of this connection calls: they would wait for it.
    fn refuse_calling(&self) -> PyResult<()> {
        match self.connection.is_calling() {
            true => Err(ProgrammingError::new_err(
                "a function cannot use the connection that calls it\nHint: give it a connection of its own: duplicate()",
            )),
            false => Ok(()),
        }
    }

    /// The exception of a statement, with that of a function which it has called as its cause, if there is
    /// one.
    fn with_cause(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        if let Some(cause) = self.failure.take() {
            raised.set_cause(py, Some(cause));
        }
        raised
    }

    /// Frees it, unless it was inherited.
    fn end(self: Arc<Live>) {
        if self.connection.is_elsewhere() {
            std::mem::forget(self);
        }
    }
}

impl Session {
    /// A session on `connection`, whose statements may name variables of their callers. `named` is its
    /// database, if that is kept by those who use it.
    pub fn new(connection: Connection, named: Option<Arc<Database>>) -> Session {
        Session {
            live: Mutex::new(Some(Live::new(connection, named))),
            interrupts: AtomicU64::new(0),
            timeout: Mutex::default(),
            bar: Mutex::default(),
        }
    }

    /// Another session on the same database.
    ///
    /// # Errors
    /// Those of [`Session::connection`].
    pub fn beside(&self) -> PyResult<Session> {
        let live = self.live()?;
        Ok(Session::new(live.connection.database().connect(), live.named.clone()))
    }

    /// How long statements may take, unless they say otherwise.
    pub fn timeout(&self) -> Option<Duration> {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how long statements may take.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }

    /// Whether long statements show a progress bar; `None` leaves it to where the program runs.
    pub fn bar(&self) -> Option<bool> {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether long statements show a progress bar.
    pub fn set_bar(&self, wanted: Option<bool>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }

    /// The connection.
    ///
    /// # Errors
    /// If it has been closed, or belongs to another process.
    pub fn connection(&self) -> PyResult<Arc<Connection>> {
        Ok(self.live()?.connection.clone())
    }

    /// The exception of a statement, with that of a function which it has called as its cause, if there is
    /// one.
    pub fn with_cause(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        match self.live() {
            Ok(live) => live.with_cause(py, raised),
            Err(_) => raised,
        }
    }

    /// Where the functions that SQL calls keep their exceptions.
    ///
    /// # Errors
    /// Those of [`Session::connection`].
    pub fn failure(&self) -> PyResult<Failure> {
        Ok(self.live()?.failure.clone())
    }

    fn live(&self) -> PyResult<Arc<Live>> {
        let mut place = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(live) = &*place else {
            return Err(ProgrammingError::new_err("the connection is closed"));
        };
        if live.connection.is_elsewhere() {
            let taken = Live::new(live.connection.taken_over().map_err(|error| raised(&error))?, None);
            place.replace(taken).into_iter().for_each(Live::end);
        }
        place.clone().ok_or_else(|| ProgrammingError::new_err("the connection is closed"))
    }

    /// Closes the connection: no more statements can run. The database is closed with its last connection, so
    /// its file may be opened again when this returns, unless a statement is still running.
    pub fn close(&self, py: Python<'_>) {
        let gone = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Dropping the last connection writes a checkpoint.
        py.detach(|| gone.into_iter().for_each(Live::end));
    }

    /// Stops the running statement, and rows that are being fetched.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        live.iter().for_each(|live| live.connection.cancel_flag().raise());
    }

    /// How often it was interrupted.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// The arguments for the parameters of a statement: given as a sequence in order, or as a dict by name.
    ///
    /// # Errors
    /// If it is neither, or contains a name that is not a parameter, or lacks one; those of parsing.
    pub fn arguments(&self, sql: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Given> {
        match given.filter(|given| !given.is_none()) {
            None => Ok(Given::none()),
            Some(given) => self.arguments_of_one(sql, given, &mut None),
        }
    }

    /// The arguments of several runs.
    ///
    /// # Errors
    /// Those of [`Session::arguments`].
    pub fn many_arguments(&self, sql: &str, sets: &Bound<'_, PyAny>) -> PyResult<Vec<Given>> {
        let mut names = None;
        sets.try_iter()?.map(|given| self.arguments_of_one(sql, &given?, &mut names)).collect()
    }

    /// The arguments of one run; `names` are the names of the parameters, once they are known.
    fn arguments_of_one(
        &self,
        sql: &str,
        given: &Bound<'_, PyAny>,
        names: &mut Option<Vec<String>>,
    ) -> PyResult<Given> {
        // PERF: checking that something is not a mapping takes longer than this.
        if given.is_instance_of::<PyTuple>() || given.is_instance_of::<PyList>() {
            return parameters::in_order(given);
        }
        let Ok(given) = given.cast::<PyMapping>() else { return parameters::in_order(given) };
        let names = match names {
            Some(names) => names,
            None => names.insert(self.names(sql)?),
        };
        parameters::named(given, names)
    }

    /// The names of the parameters of a statement, in order; none, if they are written `?` or `$1`.
    ///
    /// # Errors
    /// Those of parsing.
    pub fn names(&self, sql: &str) -> PyResult<Vec<String>> {
        self.connection()?.parameter_names(sql).map_err(|error| raised_by(&error, sql))
    }

    /// Runs a statement on this thread, if it ends before a signal could matter. `None` if it does not, or if
    /// another statement is running.
    ///
    /// # Errors
    /// Those of the statement.
    pub fn run_at_once(
        &self,
        py: Python<'_>,
        sql: &str,
        arguments: &Given,
    ) -> PyResult<Option<entasis::Rows>> {
        let live = self.live()?;
        live.refuse_calling()?;
        let Given::Values(Arguments::Values(parameters)) = arguments else { return Ok(None) };
        let result = py.detach(|| {
            let Ok(_turn) = live.turn.try_lock() else { return Ok(None) };
            // One that a statement before has not told is not of this one.
            live.failure.forget();
            live.connection.query_at_once(sql, parameters)
        });
        result.map_err(|error| live.with_cause(py, raised_by(&error, sql)))
    }

    /// Runs a statement without parameters, on this thread if it ends before a signal could matter.
    ///
    /// # Errors
    /// Those of the statement and of [`Session::run`].
    pub fn run_briefly(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        match self.run_at_once(py, sql, &Given::none())? {
            Some(_) => Ok(()),
            None => self.run(py, sql, self.timeout(), |connection, sql| connection.execute(sql)).map(drop),
        }
    }

    /// Runs `work` on the connection, which is given `sql` and may take `timeout`.
    ///
    /// # Errors
    /// Those of `work`; the exception that a signal handler raised meanwhile; errors of the caller's
    /// variables.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        sql: &str,
        timeout: Option<Duration>,
        work: impl FnOnce(&Connection, &str) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let live = self.live()?;
        live.refuse_calling()?;
        let connection = live.connection.clone();
        let frame = py.import("sys")?.call_method0("_getframe").ok().map(Bound::unbind);
        let (turn, scope) = (live.turn.clone(), live.scope.clone());
        let (own, failure) = (live.clone(), live.failure.clone());
        let (answer, wait) = channel();
        let has_turn = Arc::new(AtomicBool::new(false));
        let (begins, text) = (has_turn.clone(), sql.to_owned());
        let statement = move || {
            let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            begins.store(true, Ordering::Relaxed);
            failure.forget();
            scope.enter(frame);
            let result = catch_unwind(AssertUnwindSafe(|| work(&connection, &text)));
            let result = result.unwrap_or_else(|_| Err(Error::internal("the statement's thread panicked")));
            let left = scope.leave();
            // Whoever closes the connection now closes the database when this call has returned.
            drop((turn, connection));
            // The receiver is gone only if it panicked.
            let _ = answer.send((result, left));
        };
        let running = Running { answer: wait, has_turn, progress: live.connection.progress(), timeout };
        let (result, left, end) = py.detach(move || match live.runner.run(statement) {
            Ok(()) => self.answer(&live, running),
            Err(error) => (Err(Error::io("starting a thread", &error)), Left::default(), End::OfItself),
        });
        match (result, end) {
            (_, End::Signal(signal)) => Err(signal),
            (Ok(value), _) => Ok(value),
            (Err(error), End::Timeout) if error.kind() == ErrorKind::Interrupted => {
                Err(raised(&timed_out(timeout.unwrap_or_default())))
            }
            (Err(error), _) => Err(left.error.unwrap_or_else(|| {
                // A table that does not exist may be a variable that is none.
                match left.refused.filter(|_| error.sqlstate() == sqlstate::NO_TABLE) {
                    Some(refused) => raised_by(&error.with_hint(refused), sql),
                    None => own.with_cause(py, raised_by(&error, sql)),
                }
            })),
        }
    }

    /// Waits for the answer of a statement, without the GIL. Cancels it when a signal's handler raises, and
    /// when it takes longer than it may.
    fn answer<T>(&self, live: &Live, running: Running<T>) -> (Result<T>, Left, End) {
        let Running { answer, has_turn, progress, timeout } = running;
        let mut end = End::OfItself;
        let mut bar = Bar::new(self.bar());
        let mut began: Option<Instant> = None;
        loop {
            let left = began.zip(timeout).map(|(began, all)| all.saturating_sub(began.elapsed()));
            let look = left.filter(|left| !left.is_zero()).map_or(LOOK, |left| left.min(LOOK));
            match answer.recv_timeout(look) {
                Ok((result, left)) => return (result, left, end),
                Err(RecvTimeoutError::Timeout) if has_turn.load(Ordering::Relaxed) => {
                    began.get_or_insert_with(Instant::now);
                    if left.is_some_and(|left| left <= look) && matches!(end, End::OfItself) {
                        end = End::Timeout;
                        live.connection.cancel_flag().raise();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let error = Error::internal("the statement's thread ended");
                    return (Err(error), Left::default(), end);
                }
            }
            Python::attach(|py| {
                if let Err(raised) = py.check_signals().and_then(|()| bar.look(py, progress.get())) {
                    end = End::Signal(raised);
                    self.interrupt();
                }
            });
        }
    }
}

/// A statement that runs on its thread.
struct Running<T> {
    answer: Receiver<(Result<T>, Left)>,
    /// Set once the statement has its turn.
    has_turn: Arc<AtomicBool>,
    progress: Arc<Progress>,
    timeout: Option<Duration>,
}

/// Why a statement has ended.
enum End {
    /// It has run, or failed.
    OfItself,
    /// It took too long.
    Timeout,
    /// The exception of a signal handler.
    Signal(PyErr),
}

fn timed_out(timeout: Duration) -> Error {
    let text =
        format!("the statement was cancelled: it took longer than its timeout, {} s", timeout.as_secs_f64());
    Error::new(ErrorKind::Interrupted, text)
}

/// A timeout as Python gives it: seconds, or None.
///
/// # Errors
/// Interface, if it is not above zero.
pub fn seconds(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    let duration = |timeout: f64| match Duration::try_from_secs_f64(timeout) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(InterfaceError::new_err(format!(
            "a timeout is a number of seconds above zero, or None, not {timeout}"
        ))),
    };
    timeout.map(duration).transpose()
}

impl Drop for Session {
    fn drop(&mut self) {
        let live = self.live.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        live.into_iter().for_each(Live::end);
    }
}
