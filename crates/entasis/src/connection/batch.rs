//! One statement with many sets of arguments, all or nothing.
//!
//! Outside a transaction the batch is a transaction of its own: it sees one moment, others see all of it or
//! none, and if it conflicts with another transaction, it is run again. Within a transaction, a batch that
//! fails is undone, and the transaction goes on.

use crate::connection::planned::TRIES;
use crate::connection::{Connection, guarded};
use crate::keyed;
use crate::prepared::{self, Prepared};
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::transaction::target_database;
use crate::transaction::target_database::TargetDatabase;
use crate::values::arguments::{self, Arguments};
use entasis_vector::{Error, ErrorKind, Result};

impl Connection {
    /// Runs one statement once for each set of arguments, in one transaction. Returns the total number of
    /// changed rows.
    ///
    /// # Errors
    /// Those of [`Connection::query`]; nothing of the batch is done then.
    pub fn execute_many(&self, sql: &str, sets: &[Arguments]) -> Result<u64> {
        self.refuse_elsewhere()?;
        self.session.cancel.clear();
        let Ok(prepared) = self.session.prepare(sql)? else {
            return Err(Error::input("a batch takes exactly one statement"));
        };
        if prepared.control.is_some() {
            return Err(Error::input("a batch neither begins nor ends a transaction"));
        }
        let values = sets.iter().flat_map(|set| match set {
            Arguments::Values(values) => &values[..],
            Arguments::Lists(_) => &[],
        });
        let values = values.map(|(value, _)| value);
        let _memory = prepared::reserve(|| self.session.context().memory, values)?;
        self.settled(&prepared.parsed, &|| {
            let mut open = self.open_transaction();
            let changed = match &mut *open {
                None => self.batch_by_itself(&prepared, sets),
                Some(transaction) => {
                    let session = self.enter(transaction, &prepared.parsed)?;
                    let mark = transaction.mark();
                    let changed = guarded(|| self.batch(&session, &mut open, &prepared, sets));
                    if let Some(transaction) = &mut *open {
                        if changed.is_err() {
                            transaction.roll_back(&mark);
                        }
                        transaction.forget(&mark);
                    }
                    changed
                }
            };
            self.numbers_kept(open.is_none() || changed.is_err(), changed)
        })
    }

    /// Runs a batch as a transaction of its own, again if it conflicts with another one.
    fn batch_by_itself(&self, prepared: &Prepared, sets: &[Arguments]) -> Result<u64> {
        let TargetDatabase { session, .. } = target_database::of(&self.session, &prepared.parsed, None)?;
        let mut tries = 0..TRIES;
        guarded(|| self.session.refresh())?;
        loop {
            let mut open = Some(TransactionContext::begin(&session));
            let changed = guarded(|| self.batch(&session, &mut open, prepared, sets))?;
            let Some(transaction) = open else { return Err(Error::internal("a batch lost its transaction")) };
            let committed = session
                .waiting(Some(prepared.parsed.sql()), |waiter| guarded(|| self.commit(transaction, waiter)));
            match committed {
                Err(error) if error.kind() == ErrorKind::Conflict && tries.next().is_some() => {}
                committed => return committed.map(|()| changed),
            }
        }
    }

    /// Runs the statement for all sets of arguments in the transaction, whose target database is the
    /// session's.
    fn batch(
        &self,
        session: &Session,
        open: &mut Option<TransactionContext>,
        prepared: &Prepared,
        sets: &[Arguments],
    ) -> Result<u64> {
        let mut changed = 0;
        for arguments in sets {
            if self.session.cancel.is_raised() {
                return Err(Error::interrupted());
            }
            let spread;
            let (one, values) = match arguments {
                Arguments::Values(values) => (prepared, values),
                Arguments::Lists(arguments) => {
                    let (parsed, values) = arguments::spread(&prepared.parsed, arguments)?;
                    spread = (Prepared::new(parsed), values);
                    (&spread.0, &spread.1)
                }
            };
            entasis_sql::check_arguments(one.parsed.parameters(), values.len())?;
            let keyed = match one.is_keyed() {
                true => session.waiting(None, |waiter| keyed::run(session, open, one, values, waiter))?,
                false => None,
            };
            let rows = match keyed {
                Some(rows) => rows,
                None => {
                    let Some(transaction) = open else {
                        return Err(Error::internal("a batch lost its transaction"));
                    };
                    self.step(session, transaction, one, values)?
                }
            };
            changed += rows.changed().unwrap_or(0);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Argument, Arguments, Config, Connection, DataType, Database, Value};

    fn int(value: i128) -> (Value, DataType) {
        (Value::Integer(value), DataType::Int64)
    }

    fn count(connection: &Connection) -> Value {
        connection.execute("SELECT count(*) FROM t").unwrap().row_values().next().unwrap()[0].clone()
    }

    #[test]
    fn all_or_nothing() {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").unwrap();
        let sets =
            |keys: &[i128]| keys.iter().map(|&key| Arguments::Values(vec![int(key)])).collect::<Vec<_>>();
        // By key, and with a plan.
        for sql in ["INSERT INTO t VALUES (?)", "INSERT INTO t SELECT ?"] {
            assert!(connection.execute_many(sql, &sets(&[1, 2, 1])).is_err());
            assert_eq!(count(&connection), Value::Integer(0));
        }
        assert_eq!(connection.execute_many("INSERT INTO t VALUES (?)", &sets(&[1, 2, 3])).unwrap(), 3);
        connection.execute("BEGIN").unwrap();
        assert!(connection.execute_many("INSERT INTO t VALUES (?)", &sets(&[4, 1])).is_err());
        assert_eq!(connection.execute_many("INSERT INTO t VALUES (?)", &sets(&[5])).unwrap(), 1);
        connection.execute("COMMIT").unwrap();
        assert_eq!(count(&connection), Value::Integer(4));
    }

    #[test]
    fn lists_are_compared_with() {
        let database = Database::in_memory(Config::default()).unwrap();
        let connection = database.connect();
        connection.execute("CREATE TABLE t AS SELECT * FROM range(10) r(k)").unwrap();
        let list = |keys: &[i128]| Argument::List(keys.iter().map(|&key| int(key)).collect());
        let sets = [&[1, 2][..], &[], &[3]].map(|keys| Arguments::from(vec![list(keys)]));
        assert_eq!(connection.execute_many("DELETE FROM t WHERE k IN ?", &sets).unwrap(), 3);
        let arguments =
            Arguments::from(vec![list(&[3, 4, 5]), Argument::Value(Value::Integer(4), DataType::Int64)]);
        let rows = connection.query_with("SELECT k FROM t WHERE k = ANY(?) AND k > ?", &arguments).unwrap();
        assert_eq!(rows.row_values().collect::<Vec<_>>(), [[Value::Integer(5)]]);
        assert!(connection.query_with("SELECT ? + ?", &arguments).is_err());
    }
}
