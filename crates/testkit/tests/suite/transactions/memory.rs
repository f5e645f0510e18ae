//! The memory limit applies to rows that are written one by one, and to versions of rows that old snapshots
//! still see.
//!
//! The values that a test writes cannot be compressed, so its rows are a lower bound of the memory that it
//! takes; bounds leave room for what is charged a few thousand rows at a time. Only the database's own limit
//! is used, not the memory of the process.

use super::sessions::{query, run};
use entasis::{Arguments, Config, Connection, DataType, Database, ErrorKind, Rows, Value};

/// A megabyte.
const MB: u64 = 1_000_000;

fn limited(megabytes: u64) -> Database {
    let memory_limit = usize::try_from(megabytes * MB).expect("it is small");
    Database::in_memory(Config::new().with_threads(1).with_memory_limit(memory_limit))
        .expect("a database in memory")
}

/// Pseudorandom numbers of 60 bits.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 4
    }

    fn number(&mut self) -> (Value, DataType) {
        (Value::Integer(self.next().into()), DataType::Int64)
    }
}

/// True if it succeeded, false if memory was short; no other outcome is allowed.
fn is_done(result: entasis::Result<Rows>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Resource, "{error:?}");
            false
        }
    }
}

/// Inserts rows until a hundred in a row were refused, or there are `enough` bytes of them. Returns the
/// number of bytes inserted.
fn fill(
    connection: &Connection,
    enough: u64,
    bytes_of_row: u64,
    mut row: impl FnMut() -> Vec<(Value, DataType)>,
) -> u64 {
    let (mut bytes, mut refused) = (0, 0);
    while refused < 100 && bytes < enough {
        let values = row();
        let sql = format!("INSERT INTO t VALUES ({})", vec!["?"; values.len()].join(", "));
        if is_done(connection.query(&sql, &values)) {
            bytes += bytes_of_row;
            refused = 0;
        } else {
            refused += 1;
        }
    }
    bytes
}

#[test]
fn rows_that_come_one_by_one_are_refused_at_the_limit() {
    let connection = limited(8).connect();
    run(&connection, &["CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, c BIGINT)"]);
    let mut dice = Dice(1);
    let bytes = fill(&connection, 16 * MB, 32, || (0..4).map(|_| dice.number()).collect());
    assert!(bytes < 10 * MB, "{bytes} bytes of rows are in the table");
    assert!(bytes > 2 * MB, "all were refused after {bytes} bytes");
    assert_eq!(query(&connection, "SELECT count(*) FROM t"), (bytes / 32).to_string());
}

#[test]
fn long_strings_that_come_one_by_one_are_refused_at_the_limit() {
    let connection = limited(8).connect();
    run(&connection, &["CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)"]);
    let mut dice = Dice(2);
    let bytes = fill(&connection, 16 * MB, 8192, || {
        let text: String = (0..8192 / 16).map(|_| format!("{:016x}", dice.next())).collect();
        vec![dice.number(), (Value::Text(text.into()), DataType::Varchar)]
    });
    assert!(bytes < 10 * MB, "{bytes} bytes of strings are in the table");
    assert!(bytes > 2 * MB, "all were refused after {bytes} bytes");
}

#[test]
fn rows_of_one_transaction_are_refused_at_the_limit() {
    let database = limited(8);
    let connection = database.connect();
    run(&connection, &["CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, c BIGINT)", "BEGIN"]);
    let mut dice = Dice(3);
    let bytes = fill(&connection, 16 * MB, 32, || (0..4).map(|_| dice.number()).collect());
    assert!(bytes < 10 * MB, "{bytes} bytes of rows are in the transaction");
    run(&connection, &["ROLLBACK"]);
    // Its memory has been freed.
    let bytes = fill(&connection, MB, 32, || (0..4).map(|_| dice.number()).collect());
    assert!(bytes >= MB, "only {bytes} bytes of rows are in the table");
}

/// Changes rows again and again, each time with one more open transaction that sees their old versions. At
/// some point the change must be refused; when the transactions have ended, it succeeds. In total, the
/// changes would take far more than the limit.
fn check_versions(change: impl Fn(&Connection, u64) -> entasis::Result<Rows>) {
    let database = limited(40);
    let connection = database.connect();
    run(
        &connection,
        &[
            "CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT)",
            "INSERT INTO t SELECT i, i * 7919 % 1000003 * 1000007, i FROM range(200000) r(i)",
        ],
    );
    let mut readers = Vec::new();
    let mut is_refused = false;
    while readers.len() < 100 && !is_refused {
        let reader = database.connect();
        run(&reader, &["BEGIN"]);
        let sum = query(&reader, "SELECT sum(a), sum(b), count(*) FROM t");
        readers.push((reader, sum));
        is_refused = !is_done(change(&connection, readers.len() as u64));
    }
    assert!(is_refused, "{} versions of 200,000 rows fit into 40 MB", readers.len());
    assert!(readers.len() > 2, "not even two versions fit");
    for (reader, sum) in &readers {
        assert_eq!(&query(reader, "SELECT sum(a), sum(b), count(*) FROM t"), sum);
    }
    drop(readers);
    // Memory may be freed by upkeep, which runs ten times a second.
    let again = (0..300).any(|_| {
        let done = is_done(change(&connection, 0));
        if !done {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        done
    });
    assert!(again, "nobody needs the old versions, but they are still in the way");
}

#[test]
fn versions_that_updates_of_all_rows_leave_are_counted() {
    check_versions(|connection, _| connection.execute("UPDATE t SET a = a + 1"));
}

#[test]
fn versions_that_single_updates_leave_are_counted() {
    check_versions(|connection, round| {
        let sql = "UPDATE t SET a = ? WHERE k = ?";
        let sets = (0..400).map(|part| {
            let number = |value: u64| (Value::Integer(value.into()), DataType::Int64);
            Arguments::Values(vec![number(part * 1_000_000_007 + round), number(part * 500 + round)])
        });
        let sets: Vec<_> = sets.collect();
        connection.execute_many(sql, &sets)?;
        connection.execute("SELECT 1")
    });
}

#[test]
fn versions_that_deletes_and_inserts_leave_are_counted() {
    check_versions(|connection, _| {
        connection.execute("DELETE FROM t WHERE k % 4 = 1")?;
        connection
            .execute("INSERT INTO t SELECT i, i * 7919 % 1000003 * 1000007, i FROM range(1, 200000, 4) r(i)")
    });
}
