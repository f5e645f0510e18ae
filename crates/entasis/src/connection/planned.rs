//! Statements that are bound and run: by themselves, each as a transaction of its own, or in the open
//! transaction.
//!
//! 1. [`Connection::settled`] gives a statement a stack of suitable size, and does what is due afterwards.
//! 2. A statement by itself gets a [`TransactionContext`] of its own, which is committed; if it conflicts, it
//!    runs again. In a transaction a statement that fails is undone to the mark before it, and the
//!    transaction goes on.
//! 3. [`bound_for`] fills a template, if one is kept, or binds; everything that is named is seen as of one
//!    moment.

use super::route::{self, is_hidden};
use super::{Connection, guarded};
use crate::binding::Names;
use crate::prepared::Prepared;
use crate::query::explain::{self, ExplainOptions};
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::transaction::target_database::{self, TargetDatabase};
use crate::values::rows::Rows;
use crate::{query, statements};
use entasis_sql::{Parsed, Statement};
use entasis_storage::TableEntry;
use entasis_vector::error::sqlstate;
use entasis_vector::statement::within;
use entasis_vector::{DataType, ErrorKind, Result, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a statement by itself, or a batch, is tried when it conflicts with others.
pub(crate) const TRIES: usize = 10;
/// A statement that took longer than this may have freed much memory.
const LONG: Duration = Duration::from_millis(50);

impl Connection {
    /// Runs a statement that is bound, by itself or in the open transaction.
    pub(super) fn run_planned(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        let parsed = &prepared.parsed;
        self.settled(parsed, &|| {
            let mut open = self.open_transaction();
            let rows = match &mut *open {
                None => {
                    guarded(|| self.session.refresh())?;
                    self.run_by_itself(prepared, parameters)
                }
                Some(transaction) => self.run_within(transaction, prepared, parameters),
            };
            let changes_rows = parsed.is_of_rows() && !parsed.is_query();
            let is_seen =
                open.is_none() || !(changes_rows && rows.as_ref().is_ok_and(|rows| is_hidden(Some(rows))));
            self.numbers_kept(is_seen, rows)
        })
    }

    /// Runs a statement in a transaction, which goes on without it if it fails.
    fn run_within(
        &self,
        transaction: &mut TransactionContext,
        prepared: &Prepared,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        let session = self.enter(transaction, &prepared.parsed)?;
        let mark = transaction.mark();
        let rows = guarded(|| self.step(&session, transaction, prepared, parameters));
        if rows.is_err() {
            transaction.roll_back(&mark);
        }
        transaction.forget(&mark);
        rows
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

    /// Calls `run` for a statement, on a stack of suitable size, and then does what is due after statements.
    /// `run` is called again, on a larger stack, if the statement turns out to be deep, before it did
    /// anything.
    pub(crate) fn settled<T: Send>(
        &self,
        parsed: &Parsed,
        run: &(impl Fn() -> Result<T> + Sync),
    ) -> Result<T> {
        let began = Instant::now();
        let mut result = entasis_sql::on_deep_stack(parsed.is_deep(), run);
        if result.as_ref().is_err_and(|error| error.sqlstate() == sqlstate::NEEDS_STACK) {
            result = entasis_sql::on_deep_stack(true, run);
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
    fn run_by_itself(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        let parsed = &prepared.parsed;
        let TargetDatabase { session, targets } = target_database::of(&self.session, parsed, None)?;
        session.waiting(Some(parsed.sql()), |waiter| {
            // The tables on which it had conflicts. The next try waits for the write locks of these too, so
            // that conflicts do not repeat for ever.
            let mut others: Vec<Arc<TableEntry>> = Vec::new();
            let mut tries = 0..TRIES;
            loop {
                let mut transaction =
                    guarded(|| TransactionContext::of_statement(&session, &targets, &others, waiter))?;
                let rows = guarded(|| self.step(&session, &mut transaction, prepared, parameters))?;
                let used = transaction.used().to_vec();
                match guarded(|| self.commit(transaction, waiter)) {
                    Err(error) if error.kind() == ErrorKind::Conflict && tries.next().is_some() => {
                        others.extend(used)
                    }
                    result => return result.map(|()| rows),
                }
                waiter.look()?;
            }
        })
    }

    /// Makes the target database of a transaction's next statement the target database of the transaction.
    /// Returns the session with that target database.
    ///
    /// # Errors
    /// Input, if the transaction writes to another database.
    pub(crate) fn enter(&self, transaction: &mut TransactionContext, parsed: &Parsed) -> Result<Session> {
        let TargetDatabase { session, .. } = target_database::of(&self.session, parsed, Some(transaction))?;
        transaction.move_to(&session)?;
        Ok(session)
    }

    /// The session whose target database is that of `transaction`.
    pub(super) fn session_of(&self, transaction: &TransactionContext) -> Session {
        let target = self.session.database_called(transaction.database());
        target.map_or_else(|| self.session.clone(), |target| self.session.at(&target))
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
            Some(transaction) => {
                let session = self.enter(transaction, parsed)?;
                at_one_moment(&session, transaction, parsed, bind)
            }
            None => {
                self.session.refresh()?;
                let TargetDatabase { session, .. } = target_database::of(&self.session, parsed, None)?;
                at_one_moment(&session, &mut TransactionContext::of_reading(&session), parsed, bind)
            }
        }
    }

    /// Binds a statement and runs it on `transaction`, whose target database is the session's. Interrupts and
    /// the memory of everything that this thread does for it are the statement's.
    pub(super) fn step(
        &self,
        session: &Session,
        transaction: &mut TransactionContext,
        prepared: &Prepared,
        parameters: &[(Value, DataType)],
    ) -> Result<Rows> {
        let began = Instant::now();
        within(Arc::new(session.context()), || {
            transaction.refuse_targets(session, &prepared.parsed)?;
            let rows = match bound_for(session, transaction, prepared, parameters)? {
                Bound::Kept(Statement::Query(plan)) => {
                    let rows = query::query(session, plan)?;
                    prepared.took(began.elapsed());
                    return Ok(rows);
                }
                Bound::Kept(statement) | Bound::Anew(statement) => match statement {
                    Statement::Explain { analyze, verbose, json, statement } => {
                        let options = ExplainOptions { analyze, verbose, json };
                        let route = route::explained(session, &prepared.parsed);
                        explain::explain(session, *statement, options, route)?
                    }
                    statement => statements::run(session, transaction, statement)?,
                },
            };
            transaction.charge()?;
            Ok(rows)
        })
    }
}

/// A bound statement: from a template that is kept of it, or anew.
pub(crate) enum Bound {
    Kept(Statement),
    Anew(Statement),
}

impl Bound {
    /// The statement.
    pub(crate) fn statement(self) -> Statement {
        match self {
            Bound::Kept(statement) | Bound::Anew(statement) => statement,
        }
    }
}

/// Binds a statement in `transaction`, for a run with these parameters.
pub(crate) fn bound_for(
    session: &Session,
    transaction: &mut TransactionContext,
    prepared: &Prepared,
    parameters: &[(Value, DataType)],
) -> Result<Bound> {
    let kept = match session.sees_others() {
        false => prepared.bound(session, transaction, parameters)?,
        true => None,
    };
    match kept {
        Some(statement) => Ok(Bound::Kept(statement)),
        None => {
            let bind = |names: &Names<'_>| entasis_sql::bind(&prepared.parsed, names, parameters);
            at_one_moment(session, transaction, &prepared.parsed, bind).map(Bound::Anew)
        }
    }
}

/// Binds a statement by `bind`. All tables and declarations that it names are seen as of one moment.
pub(crate) fn at_one_moment<T>(
    session: &Session,
    transaction: &mut TransactionContext,
    parsed: &Parsed,
    bind: impl Fn(&Names<'_>) -> Result<T>,
) -> Result<T> {
    loop {
        let names = Names::new(session, transaction);
        let statement = bind(&names);
        let statement = statement.map_err(|error| names.explained(parsed.sql(), error));
        drop(names);
        // A statement that could not be bound may have seen several moments, too.
        if transaction.sees_one_moment() {
            return statement;
        }
    }
}
