//! A transaction that is tried again after a conflict.
//!
//! Transactions see the database as of when they began. If two change the same row, the one that commits
//! first wins, and the other gets an error of the kind `Conflict` (SQLSTATE 40001), with all of its changes
//! undone. `retry` runs it again; other errors roll it back and are returned.

use entasis::{Config, Connection, Database, ErrorKind, Result};
use std::thread;

/// Moves an amount from one account to another.
fn transfer(connection: &Connection, from: i64, to: i64, amount: i64) -> Result<()> {
    connection.retry(|transaction| {
        let change = transaction.prepare("UPDATE accounts SET balance = balance + ? WHERE id = ?")?;
        change.execute((-amount, from))?;
        change.execute((amount, to))?;
        Ok(())
    })
}

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();
    connection
        .execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT CHECK (balance >= 0))")?;
    connection.execute("INSERT INTO accounts VALUES (1, 1000), (2, 1000)")?;

    thread::scope(|threads| {
        let workers: Vec<_> = [(1, 2), (2, 1)]
            .into_iter()
            .map(|(from, to)| {
                let connection = database.connect();
                threads.spawn(move || (0..100).try_for_each(|_| transfer(&connection, from, to, 1)))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic in a worker"))
    })?;

    let error = transfer(&connection, 1, 2, 5000).expect_err("nobody has so much");
    assert_eq!((error.kind(), error.table()), (ErrorKind::Constraint, Some("accounts")));

    let sum: i64 = connection.query_row_as("SELECT sum(balance) FROM accounts", ())?;
    println!("both accounts together: {sum}");
    assert_eq!(sum, 2000);
    Ok(())
}
