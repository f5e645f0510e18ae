//! Transactions and savepoints as values: what is not committed is rolled back when they go out of scope.
//!
//! A guard is the connection in a certain state, to which it dereferences: everything that the connection
//! runs until the guard ends is part of the transaction, whoever runs it. Underneath are the statements
//! `BEGIN`, `COMMIT`, `SAVEPOINT` and so on, which may also be run as texts.

use crate::connection::Connection;
use crate::connection::planned::TRIES;
use crate::state::retry_lock::RetryGuard;
use entasis_vector::{Error, ErrorKind, Result};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An open transaction, made by [`Connection::transaction`].
///
/// ```
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// connection.execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT CHECK (balance >= 0))")?;
/// connection.execute("INSERT INTO accounts VALUES (1, 100), (2, 0)")?;
/// let pay = |amount: i64| {
///     let transaction = connection.transaction()?;
///     transaction.query_with("UPDATE accounts SET balance = balance + ? WHERE id = 2", (amount,))?;
///     transaction.query_with("UPDATE accounts SET balance = balance - ? WHERE id = 1", (amount,))?;
///     transaction.commit()
/// };
/// pay(70)?;
/// assert_eq!(pay(70).unwrap_err().sqlstate(), "23514");
/// // The first statement of the second payment is undone, because its transaction was not committed.
/// let balance: i64 = connection.query_row_as("SELECT balance FROM accounts WHERE id = 2", ())?;
/// assert_eq!(balance, 70);
/// # Ok::<(), entasis::Error>(())
/// ```
pub struct Transaction<'c> {
    scope: Scope<'c>,
}

/// A part of a transaction that can be undone by itself, made by [`Transaction::savepoint`].
///
/// ```
/// use entasis::{Config, Database};
///
/// let connection = Database::in_memory(Config::default())?.connect();
/// connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")?;
/// let mut transaction = connection.transaction()?;
/// transaction.execute("INSERT INTO t VALUES (1)")?;
/// let mut savepoint = transaction.savepoint()?;
/// savepoint.execute("INSERT INTO t VALUES (2)")?;
/// let inner = savepoint.savepoint()?;
/// inner.execute("INSERT INTO t VALUES (3)")?;
/// inner.commit()?;
/// savepoint.rollback()?;
/// transaction.commit()?;
/// assert_eq!(connection.query_as::<i64>("SELECT id FROM t", ())?, [1]);
/// # Ok::<(), entasis::Error>(())
/// ```
pub struct Savepoint<'t> {
    scope: Scope<'t>,
}

impl Connection {
    /// Begins a transaction.
    ///
    /// # Errors
    /// Input, if one is open already.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        Ok(Transaction { scope: Scope::transaction(self)? })
    }

    /// Runs `body` in a transaction and commits it; again, if it conflicts with another transaction, up to
    /// ten times in all. While it is tried again, others that would begin by `retry` on this database wait,
    /// for up to 50 ms, so that of equals none loses always. An error of `body`, conflict or not, rolls the
    /// transaction back.
    ///
    /// ```
    /// use entasis::{Config, Database};
    /// use std::thread;
    ///
    /// let database = Database::in_memory(Config::default())?;
    /// database.connect().execute("CREATE TABLE counters AS SELECT 0 AS n")?;
    /// thread::scope(|scope| {
    ///     let count = || {
    ///         let connection = database.connect();
    ///         connection.retry(|transaction| {
    ///             let n: i64 = transaction.query_row_as("SELECT n FROM counters", ())?;
    ///             transaction.query_with("UPDATE counters SET n = ?", (n + 1,))?;
    ///             Ok(n + 1)
    ///         })
    ///     };
    ///     let counting: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
    ///     counting.into_iter().try_for_each(|thread| thread.join().expect("no panic").map(drop))
    /// })?;
    /// assert_eq!(database.connect().query_row_as::<i64>("SELECT n FROM counters", ())?, 4);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `body` and of the commit; conflict, if the last try conflicted; input, if a transaction is
    /// open already.
    pub fn retry<T>(&self, body: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        self.retry_up_to(TRIES, body)
    }

    /// As [`Connection::retry`], up to `tries` times in all, and at least once.
    ///
    /// # Errors
    /// Those of [`Connection::retry`].
    pub fn retry_up_to<T>(
        &self,
        tries: usize,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut held = None;
        for conflicts in 0..tries.saturating_sub(1) {
            held = self.retry_guard(conflicts, held);
            match self.attempt(&mut body) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        // The last one, whose conflict is the caller's.
        let _held = self.retry_guard(tries.saturating_sub(1), held);
        self.attempt(&mut body)
    }

    /// Waits for the time to try a transaction that has conflicted `conflicts` times, as
    /// [`Connection::retry`] does. `held` is what the last call for this transaction returned. The result is
    /// to be kept until it is done: others that are tried again wait for it, for a short time.
    #[doc(hidden)]
    pub fn retry_guard(&self, conflicts: usize, held: Option<RetryGuard>) -> Option<RetryGuard> {
        self.session.shared.retry_lock.wait(conflicts, held)
    }

    /// Runs `body` in a transaction, once.
    fn attempt<T>(&self, body: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut transaction = self.transaction()?;
        let done = body(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

impl Transaction<'_> {
    /// Makes what was done durable and visible to others.
    ///
    /// # Errors
    /// Conflict, if another transaction was first; the transaction is rolled back then ([`Connection::retry`]
    /// runs it again). I/O.
    pub fn commit(self) -> Result<()> {
        self.scope.commit()
    }

    /// Undoes everything, as dropping the transaction does.
    ///
    /// # Errors
    /// Input, if the transaction was ended by a statement.
    pub fn rollback(self) -> Result<()> {
        self.scope.rollback()
    }

    /// Begins a part that can be undone by itself. Until it ends, it is what runs statements.
    ///
    /// # Errors
    /// Input, if the transaction was ended by a statement.
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Ok(Savepoint { scope: Scope::savepoint(self.scope.connection)? })
    }
}

impl Savepoint<'_> {
    /// Keeps what was done, as a part of the transaction around it.
    ///
    /// # Errors
    /// Input, if the savepoint was released by a statement.
    pub fn commit(self) -> Result<()> {
        self.scope.commit()
    }

    /// Undoes what was done since it began, as dropping it does.
    ///
    /// # Errors
    /// Input, if the savepoint was released by a statement.
    pub fn rollback(self) -> Result<()> {
        self.scope.rollback()
    }

    /// Begins a part of this part.
    ///
    /// # Errors
    /// Input, if the transaction was ended by a statement.
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Ok(Savepoint { scope: Scope::savepoint(self.scope.connection)? })
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.scope.connection
    }
}

impl Deref for Savepoint<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.scope.connection
    }
}

/// A transaction or a savepoint that is undone when it is dropped, unless it was committed.
pub(crate) struct Scope<'c> {
    connection: &'c Connection,
    kind: Kind,
    /// The number of the transaction that it is, or is a part of.
    number: Option<u64>,
    is_over: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Transaction,
    /// With the number in its name.
    Savepoint(usize),
}

/// Numbers the savepoints of the process. No two have the same, so that ending them in the wrong order is an
/// error, and never ends another one.
static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);

impl<'c> Scope<'c> {
    fn transaction(connection: &'c Connection) -> Result<Scope<'c>> {
        connection.execute("BEGIN")?;
        Ok(Scope::of(connection, Kind::Transaction))
    }

    fn savepoint(connection: &'c Connection) -> Result<Scope<'c>> {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        connection.execute(&format!("SAVEPOINT entasis_scope_{number}"))?;
        Ok(Scope::of(connection, Kind::Savepoint(number)))
    }

    fn of(connection: &'c Connection, kind: Kind) -> Scope<'c> {
        Scope { connection, kind, number: connection.transaction_number(), is_over: false }
    }

    /// True while the transaction in which it began is open.
    fn is_open(&self) -> bool {
        self.number.is_some() && self.connection.transaction_number() == self.number
    }

    /// Refuses to end what began after its own transaction was ended by a statement.
    fn refuse_ended(&self) -> Result<()> {
        match self.is_open() {
            true => Ok(()),
            false => Err(Error::input("the transaction has been ended by a statement")),
        }
    }

    /// A savepoint in the open transaction, or a transaction, if none is open.
    pub(crate) fn begin(connection: &'c Connection) -> Result<Scope<'c>> {
        match connection.in_transaction() {
            true => Scope::savepoint(connection),
            false => Scope::transaction(connection),
        }
    }

    pub(crate) fn connection(&self) -> &'c Connection {
        self.connection
    }

    pub(crate) fn commit(mut self) -> Result<()> {
        self.refuse_ended()?;
        match self.kind {
            Kind::Transaction => self.connection.execute("COMMIT")?,
            Kind::Savepoint(number) => self.connection.execute(&format!("RELEASE entasis_scope_{number}"))?,
        };
        self.is_over = true;
        Ok(())
    }

    pub(crate) fn rollback(mut self) -> Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> Result<()> {
        self.is_over = true;
        self.refuse_ended()?;
        match self.kind {
            Kind::Transaction => self.connection.execute("ROLLBACK").map(drop),
            Kind::Savepoint(number) => {
                self.connection.execute(&format!("ROLLBACK TO entasis_scope_{number}"))?;
                self.connection.execute(&format!("RELEASE entasis_scope_{number}")).map(drop)
            }
        }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        // A statement, or a commit that failed, may have ended it already.
        if !self.is_over && self.is_open() {
            let _ = self.undo();
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transaction(of connection {})", self.id())
    }
}

impl fmt::Debug for Savepoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Savepoint(of connection {})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database, Error, ErrorKind};
    use std::thread;
    use std::time::Duration;

    fn database() -> Database {
        let database = Database::in_memory(Config::default()).unwrap();
        database.connect().execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
        database.connect().execute("INSERT INTO t VALUES (1, 0)").unwrap();
        database
    }

    #[test]
    fn transactions_end_with_their_scope() {
        let database = database();
        let connection = database.connect();
        let count = || database.connect().query_row_as::<i64>("SELECT count(*) FROM t", ()).unwrap();
        {
            let transaction = connection.transaction().unwrap();
            transaction.execute("DELETE FROM t").unwrap();
            assert_eq!(connection.transaction().unwrap_err().message(), "a transaction is open already");
            assert!(connection.in_transaction());
        }
        assert!(!connection.in_transaction());
        assert_eq!(count(), 1);
        let transaction = connection.transaction().unwrap();
        transaction.execute("DELETE FROM t").unwrap();
        // Ended by a statement: the guard says so, and does not end what began since.
        transaction.execute("COMMIT").unwrap();
        assert!(transaction.rollback().is_err());
        assert_eq!(count(), 0);
        type End = fn(crate::Transaction<'_>) -> crate::Result<()>;
        let ends: [End; 3] = [
            |guard| guard.commit(),
            |guard| guard.rollback(),
            |guard| {
                drop(guard);
                Ok(())
            },
        ];
        for (key, end) in (10..).zip(ends) {
            let transaction = connection.transaction().unwrap();
            connection.execute("ROLLBACK").unwrap();
            connection.execute("BEGIN").unwrap();
            connection.execute(&format!("INSERT INTO t VALUES ({key}, 0)")).unwrap();
            assert_eq!(end(transaction).is_ok(), key == 12);
            assert!(connection.in_transaction(), "the later transaction is not the guard's");
            connection.execute("COMMIT").unwrap();
        }
        assert_eq!(count(), 3);
    }

    #[test]
    fn savepoints_are_undone_from_the_innermost() {
        let connection = database().connect();
        let keys = || connection.query_as::<i64>("SELECT k FROM t ORDER BY k", ()).unwrap();
        let mut transaction = connection.transaction().unwrap();
        {
            let mut outer = transaction.savepoint().unwrap();
            outer.execute("INSERT INTO t VALUES (2, 0)").unwrap();
            {
                let inner = outer.savepoint().unwrap();
                inner.execute("INSERT INTO t VALUES (3, 0)").unwrap();
            }
            assert_eq!(keys(), [1, 2]);
            let inner = outer.savepoint().unwrap();
            inner.execute("INSERT INTO t VALUES (4, 0)").unwrap();
            inner.commit().unwrap();
            assert_eq!(keys(), [1, 2, 4]);
        }
        assert_eq!(keys(), [1]);
        transaction.execute("INSERT INTO t VALUES (5, 0)").unwrap();
        transaction.commit().unwrap();
        assert_eq!(keys(), [1, 5]);
    }

    #[test]
    fn conflicts_are_tried_again_and_other_errors_are_not() {
        let database = database();
        let (one, other) = (database.connect(), database.connect());
        let mut runs = 0;
        let value = one.retry(|transaction| {
            runs += 1;
            let v: i64 = transaction.query_row_as("SELECT v FROM t WHERE k = 1", ())?;
            if runs < 3 {
                other.execute("UPDATE t SET v = v + 10 WHERE k = 1")?;
            }
            transaction.query_with("UPDATE t SET v = ? WHERE k = 1", (v + 1,))?;
            Ok(v + 1)
        });
        assert_eq!((value.unwrap(), runs), (21, 3));
        runs = 0;
        let always = one.retry_up_to(4, |transaction| {
            runs += 1;
            transaction.query_row_as::<i64>("SELECT v FROM t WHERE k = 1", ())?;
            other.execute("UPDATE t SET v = v + 1 WHERE k = 1")?;
            transaction.execute("UPDATE t SET v = 0 WHERE k = 1").map(drop)
        });
        assert_eq!((always.unwrap_err().kind(), runs), (ErrorKind::Conflict, 4));
        runs = 0;
        let refused: Result<(), Error> = one.retry(|_| {
            runs += 1;
            Err(Error::input("no"))
        });
        assert_eq!((refused.unwrap_err().message(), runs), ("no", 1));
        assert!(!one.in_transaction());
    }

    /// Two threads that run transactions of the same length back to back: whoever began later would lose ten
    /// times in a row.
    #[test]
    fn nobody_loses_always() {
        let database = database();
        let add = || {
            let connection = database.connect();
            (0..50).try_for_each(|_| {
                connection.retry(|transaction| {
                    transaction.execute("UPDATE t SET v = v + 1 WHERE k = 1")?;
                    thread::sleep(Duration::from_millis(2));
                    Ok(())
                })
            })
        };
        thread::scope(|scope| {
            let threads = [scope.spawn(add), scope.spawn(add), scope.spawn(add)];
            threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("no conflict"));
        });
        let sum: i64 = database.connect().query_row_as("SELECT v FROM t WHERE k = 1", ()).unwrap();
        assert_eq!(sum, 150);
    }
}
