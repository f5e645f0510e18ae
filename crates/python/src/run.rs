//! Runs statements without the GIL, and turns Ctrl-C into cancellation.
//!
//! Python delivers signals only to its main thread, and only when that checks for them. So the statement runs
//! on another thread ([`crate::runner`]), while the calling thread waits without the GIL and checks for
//! signals fifty times a second. A signal whose handler raises (`KeyboardInterrupt`) cancels the statement;
//! the exception propagates once the statement has stopped.
//!
//! A process that was forked inherits sessions, and cannot use them: the threads behind them do not exist
//! there, and the database is its parent's. It may take them over when the parent is gone or has closed the
//! database ([`Connection::taken_over`]); until then every statement is refused. What it has inherited it
//! never frees.

use crate::errors::raised;
use crate::functions::Failure;
use crate::runner::Runner;
use crate::scan::Scope;
use crate::values;
use entasis::{Arguments, Connection};
use entasis_vector::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyTuple};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// A connection with the state that its users in Python share.
pub struct Session {
    /// `None` after it was closed.
    live: Mutex<Option<Arc<Live>>>,
    /// How often `interrupt` was called.
    interrupts: AtomicU64,
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
}

impl Live {
    fn new(connection: Connection) -> Arc<Live> {
        let scope = Arc::new(Scope::default());
        let (asked, cancel) = (scope.clone(), connection.cancel_flag());
        connection.set_replacement(Some(Arc::new(move |name| asked.find(name, &cancel))));
        Arc::new(Live {
            connection: Arc::new(connection),
            scope,
            failure: Failure::default(),
            turn: Arc::default(),
            runner: Runner::default(),
        })
    }

    /// Refuses statements in a function that a statement of this connection calls: they would wait for it.
    fn refuse_calling(&self) -> PyResult<()> {
        match self.connection.is_calling() {
            true => Err(crate::errors::ProgrammingError::new_err(
                "a function cannot use the connection that calls it\nHint: give it a connection of its own: duplicate()",
            )),
            false => Ok(()),
        }
    }

    /// The exception for an error of a statement. Its cause is the exception of a function that was called,
    /// if there is one.
    fn raised(&self, py: Python<'_>, error: &Error) -> PyErr {
        let raised = raised(error);
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
    /// A session on `connection`, whose statements may name variables of their callers.
    pub fn new(connection: Connection) -> Session {
        Session { live: Mutex::new(Some(Live::new(connection))), interrupts: AtomicU64::new(0) }
    }

    /// The connection.
    ///
    /// # Errors
    /// If it has been closed, or belongs to another process.
    pub fn connection(&self) -> PyResult<Arc<Connection>> {
        Ok(self.live()?.connection.clone())
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
            return Err(crate::errors::ProgrammingError::new_err("the connection is closed"));
        };
        if live.connection.is_elsewhere() {
            let taken = Live::new(live.connection.taken_over().map_err(|error| raised(&error))?);
            place.replace(taken).into_iter().for_each(Live::end);
        }
        place.clone().ok_or_else(|| crate::errors::ProgrammingError::new_err("the connection is closed"))
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
    pub fn arguments(&self, sql: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Arguments> {
        match given.filter(|given| !given.is_none()) {
            None => Ok(Arguments::Values(Vec::new())),
            Some(given) => self.arguments_of_one(sql, given, &mut None),
        }
    }

    /// The arguments of several runs.
    ///
    /// # Errors
    /// Those of [`Session::arguments`].
    pub fn many_arguments(&self, sql: &str, sets: &Bound<'_, PyAny>) -> PyResult<Vec<Arguments>> {
        let mut names = None;
        sets.try_iter()?.map(|given| self.arguments_of_one(sql, &given?, &mut names)).collect()
    }

    /// The arguments of one run; `names` are the names of the parameters, once they are known.
    fn arguments_of_one(
        &self,
        sql: &str,
        given: &Bound<'_, PyAny>,
        names: &mut Option<Vec<String>>,
    ) -> PyResult<Arguments> {
        // PERF: checking that something is not a mapping takes longer than this.
        if given.is_instance_of::<PyTuple>() || given.is_instance_of::<PyList>() {
            return values::in_order(given);
        }
        let Ok(given) = given.cast::<PyMapping>() else { return values::in_order(given) };
        let names = match names {
            Some(names) => names,
            None => names.insert(self.names(sql)?),
        };
        values::named(given, names)
    }

    fn names(&self, sql: &str) -> PyResult<Vec<String>> {
        self.connection()?.parameter_names(sql).map_err(|error| raised(&error))
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
        arguments: &Arguments,
    ) -> PyResult<Option<entasis::Rows>> {
        let live = self.live()?;
        live.refuse_calling()?;
        let Arguments::Values(parameters) = arguments else { return Ok(None) };
        let result = py.detach(|| {
            let Ok(_turn) = live.turn.try_lock() else { return Ok(None) };
            live.connection.query_at_once(sql, parameters)
        });
        result.map_err(|error| live.raised(py, &error))
    }

    /// Runs a statement without parameters, on this thread if it ends before a signal could matter.
    ///
    /// # Errors
    /// Those of the statement and of [`Session::run`].
    pub fn run_briefly(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        match self.run_at_once(py, sql, &Arguments::Values(Vec::new()))? {
            Some(_) => Ok(()),
            None => {
                let sql = sql.to_owned();
                self.run(py, move |connection| connection.execute(&sql)).map(drop)
            }
        }
    }

    /// Runs `work` on the connection.
    ///
    /// # Errors
    /// Those of `work`; the exception that a signal handler raised meanwhile; errors of the caller's
    /// variables.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let live = self.live()?;
        live.refuse_calling()?;
        let connection = live.connection.clone();
        let frame = py.import("sys")?.call_method0("_getframe").ok().map(Bound::unbind);
        let (turn, scope) = (live.turn.clone(), live.scope.clone());
        let own = live.clone();
        let (answer, wait) = channel();
        let statement = move || {
            let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            scope.enter(frame);
            let result = catch_unwind(AssertUnwindSafe(|| work(&connection)));
            let result = result.unwrap_or_else(|_| Err(Error::internal("the statement's thread panicked")));
            let error = scope.leave();
            // Whoever closes the connection now closes the database when this call has returned.
            drop((turn, connection));
            // The receiver is gone only if it panicked.
            let _ = answer.send((result, error));
        };
        let (result, signal) = py.detach(move || {
            let mut signal: Option<PyErr> = None;
            if let Err(error) = live.runner.run(statement) {
                return ((Err(Error::io("starting a thread", &error)), None), None);
            }
            loop {
                match wait.recv_timeout(LOOK) {
                    Ok(answer) => return (answer, signal),
                    Err(RecvTimeoutError::Timeout) => {
                        signal = signal.or_else(|| Python::attach(|py| py.check_signals()).err());
                        if signal.is_some() {
                            self.interrupt();
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return ((Err(Error::internal("the statement's thread ended")), None), signal);
                    }
                }
            }
        });
        match (result, signal) {
            (_, Some(signal)) => Err(signal),
            ((Ok(value), _), None) => Ok(value),
            ((Err(_), Some(error)), None) => Err(error),
            ((Err(error), None), None) => Err(own.raised(py, &error)),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let live = self.live.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        live.into_iter().for_each(Live::end);
    }
}
