//! Which way a statement goes: decided here, and nowhere else.
//!
//! | route | statements | what happens |
//! |---|---|---|
//! | [`Route::Control`] | `BEGIN`, `COMMIT`, `SAVEPOINT`, … | nothing is bound ([`super::control`]) |
//! | [`Route::Named`] | `PREPARE`, `EXECUTE`, `DEALLOCATE` | the named statement goes its own way ([`super::named`]) |
//! | [`Route::Keyed`] | name rows by values of their columns, or add some | a program runs inline ([`crate::keyed`]); if it cannot do what the table asks for, nothing has been changed, and the statement is planned |
//! | [`Route::Planned`] | all others | bound, or filled into a template, optimized and executed ([`super::planned`]) |
//!
//! The route follows from the text. Whether a keyed statement has a program follows from the table, and
//! [`explained`] says which it is, for `EXPLAIN`.

use super::{Connection, guarded};
use crate::keyed;
use crate::prepared::Prepared;
use crate::prepared::program::compile;
use crate::query::explain::RouteTaken;
use crate::session::Session;
use crate::values::rows::Rows;
use entasis_sql::{Parsed, Preparing, Statement};
use entasis_storage::Waiter;
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, ErrorKind, Result, Value};

/// The way of a statement. See the module.
pub(super) enum Route<'a> {
    /// It begins or ends a transaction or a savepoint.
    Control(&'a Statement),
    /// It is about a named statement.
    Named(&'a Preparing),
    /// It names rows by values.
    Keyed,
    /// It has a plan, or is bound at least.
    Planned,
}

impl Prepared {
    /// The statement's route.
    pub(super) fn route(&self) -> Route<'_> {
        match (&self.control, self.parsed.preparing()) {
            (Some(control), _) => Route::Control(control),
            (None, Some(preparing)) => Route::Named(preparing),
            (None, None) if self.is_keyed() => Route::Keyed,
            (None, None) => Route::Planned,
        }
    }
}

impl Connection {
    /// Runs a statement, whichever way it goes.
    pub(super) fn run(&self, prepared: &Prepared, parameters: &[(Value, DataType)]) -> Result<Rows> {
        match prepared.route() {
            Route::Control(control) => self.control(&prepared.parsed, control),
            Route::Named(preparing) => self.prepare_or_execute(preparing, parameters),
            Route::Keyed => {
                match self.session.waiting(None, |waiter| self.run_keyed(prepared, parameters, waiter))? {
                    Some(rows) => Ok(rows),
                    None => self.run_planned(prepared, parameters),
                }
            }
            Route::Planned => self.run_planned(prepared, parameters),
        }
    }

    /// Runs a statement, if it takes negligible time, with waits as short as those of `waiter`; otherwise
    /// does nothing and returns `None`.
    pub(super) fn run_at_once(
        &self,
        prepared: &Prepared,
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
        match prepared.route() {
            Route::Control(control) => return self.control_at_once(control, waiter),
            Route::Named(_) => return Ok(None),
            Route::Keyed => match self.run_keyed(prepared, parameters, waiter) {
                Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
                Ok(None) => {}
                rows => return rows,
            },
            Route::Planned => {}
        }
        if !prepared.is_short() {
            return Ok(None);
        }
        self.session.cancel.clear();
        match self.run_planned(prepared, parameters) {
            // By now the name may be a variable of the program, which only the slower way looks up.
            Err(error) if error.sqlstate() == sqlstate::NO_TABLE => Ok(None),
            rows => rows.map(Some),
        }
    }

    /// Runs a keyed statement, if it has a program that can do it; otherwise does nothing and returns `None`.
    fn run_keyed(
        &self,
        prepared: &Prepared,
        parameters: &[(Value, DataType)],
        waiter: &Waiter<'_>,
    ) -> Result<Option<Rows>> {
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
}

/// The route of the statement that an `EXPLAIN` is about, with its reason.
pub(super) fn explained(session: &Session, parsed: &Parsed) -> RouteTaken {
    let planned = |why| RouteTaken { route: "planned", why };
    let Some(prepared) = parsed.explained().map(Prepared::new) else {
        return planned("it is no statement on rows");
    };
    let Some(keyed) = prepared.keyed() else {
        return planned("it does more than name rows by values of columns");
    };
    match compile(keyed, &session.newest_names(), &session.search_path()) {
        Ok(program) => RouteTaken { route: "keyed", why: program.does() },
        Err(why) => planned(why),
    }
}

/// True if a statement shows nothing of what it has changed.
pub(super) fn is_hidden(rows: Option<&Rows>) -> bool {
    rows.is_none_or(|rows| rows.schema().is_empty())
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database, Value};

    #[test]
    fn explain_says_which_way_a_statement_goes_and_why() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let tables = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
             CREATE TABLE c (k BIGINT PRIMARY KEY, v BIGINT CHECK (v > 0))";
        connection.execute(tables).unwrap();
        let last =
            |sql: String| match connection.execute(&sql).unwrap().row_values().last().unwrap().remove(0) {
                Value::Text(line) => line.to_string(),
                other => panic!("{sql}: {other:?}"),
            };
        for (sql, expected) in [
            ("UPDATE t SET v = 1 WHERE k = 2", "changes the row of a key in place"),
            ("SELECT v FROM t WHERE k = 2", "reads the row of a key"),
            ("INSERT INTO t VALUES (1, 2)", "adds rows"),
        ] {
            let route = format!("route: keyed, without this plan: {expected}");
            assert_eq!(last(format!("EXPLAIN {sql}")), route, "{sql}");
            assert_eq!(last(format!("EXPLAIN (VERBOSE) {sql}")), route, "{sql}");
            // What it says is what happens: the statement is over at once.
            assert!(connection.query_at_once(sql, &[]).unwrap().is_some(), "{sql}");
        }
        for (sql, expected) in [
            ("UPDATE c SET v = 1 WHERE k = 2", "the table has CHECK constraints"),
            ("SELECT v FROM t WHERE v = 2", "the columns compared with are not those of the layout key"),
            ("SELECT count(*) FROM t", "it does more than name rows by values of columns"),
        ] {
            assert_eq!(
                last(format!("EXPLAIN (VERBOSE) {sql}")),
                format!("route: planned, because {expected}")
            );
            assert!(!last(format!("EXPLAIN {sql}")).starts_with("route"), "{sql}");
            assert!(connection.query_at_once(sql, &[]).unwrap().is_none(), "{sql}");
        }
    }
}
