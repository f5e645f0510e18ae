//! Transactions and savepoints: how statements begin and end them.

use super::{Connection, guarded};
use crate::ddl;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::{Parsed, Statement};
use entasis_storage::Waiter;
use entasis_vector::{Error, Result};
use std::sync::PoisonError;

impl Connection {
    /// Begins or ends a transaction or a savepoint.
    pub(super) fn control(&self, parsed: &Parsed, control: &Statement) -> Result<Rows> {
        self.settled(parsed, &|| {
            let mut open = self.open_transaction();
            let rows = guarded(|| {
                if open.is_none() {
                    self.session.refresh()?;
                }
                self.control_in(&mut open, control)
            });
            self.numbers_kept(true, rows)
        })
    }

    fn control_in(&self, open: &mut Option<TransactionContext>, control: &Statement) -> Result<Rows> {
        match (control, open.as_mut()) {
            (Statement::Begin, None) => *open = Some(TransactionContext::begin(&self.session.here())),
            (Statement::Begin, Some(_)) => return Err(Error::input("a transaction is open already")),
            (_, None) => return Err(Error::input("no transaction is open").with_hint("BEGIN begins one")),
            (Statement::Commit, Some(_)) => {
                let transaction = open.take().expect("it is open");
                let session = self.session_of(&transaction);
                session.waiting(Some("COMMIT"), |waiter| guarded(|| self.commit(transaction, waiter)))?;
            }
            (Statement::Rollback, Some(_)) => *open = None,
            (Statement::Savepoint { name }, Some(transaction)) => transaction.save(name.clone()),
            (Statement::RollbackTo { name }, Some(transaction)) => transaction.roll_back_to(name)?,
            (Statement::Release { name }, Some(transaction)) => transaction.release(name)?,
            (other, Some(_)) => return Err(Error::internal(format!("{other:?} does not end a transaction"))),
        }
        Ok(Rows::empty())
    }

    /// Publishes what was done, without the rows of temporary tables that are dropped at the commit.
    ///
    /// # Errors
    /// Those of [`TransactionContext::commit`].
    pub(crate) fn commit(&self, mut transaction: TransactionContext, waiter: &Waiter<'_>) -> Result<()> {
        if transaction.names.temporary().next().is_some() {
            ddl::at_commit(&self.session_of(&transaction), &mut transaction)?;
        }
        transaction.commit(waiter)
    }

    /// Begins a transaction, ends one of few changes, if it need not wait for its write locks, or does what
    /// is said of a savepoint, if little has changed since. Otherwise does nothing and returns `None`.
    pub(super) fn control_at_once(&self, control: &Statement, waiter: &Waiter<'_>) -> Result<Option<Rows>> {
        self.session.cancel.clear();
        guarded(|| {
            let mut open = self.open_transaction();
            match (control, open.as_mut()) {
                (Statement::Begin, None) => {
                    self.session.refresh()?;
                    *open = Some(TransactionContext::begin(&self.session.here()));
                }
                (Statement::Rollback, Some(transaction)) if transaction.is_small() => *open = None,
                (Statement::Commit, Some(transaction)) if transaction.is_small() => {
                    // First, because a commit that fails cannot be tried again.
                    if !transaction.takes_write_locks(waiter) {
                        return Ok(None);
                    }
                    let transaction = open.take().expect("it is open");
                    self.commit(transaction, waiter)?;
                }
                // What it writes of new values that are kept is little.
                (Statement::Savepoint { name }, Some(transaction)) => transaction.save(name.clone()),
                (Statement::Release { name }, Some(transaction)) => transaction.release(name)?,
                (Statement::RollbackTo { name }, Some(transaction)) if transaction.is_small_since(name) => {
                    transaction.roll_back_to(name)?;
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

    /// True if a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.transaction_number().is_some()
    }

    /// The number of the open transaction ([`TransactionContext::number`]).
    pub(crate) fn transaction_number(&self) -> Option<u64> {
        if self.is_elsewhere() {
            return None;
        }
        let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().and_then(TransactionContext::number)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database, Value};

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
