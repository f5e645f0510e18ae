//! A transaction that is retried after a conflict.
//!
//! Transactions see the database as of when they began. If two change the same row, the one that commits
//! first wins, and the other gets an error of the kind `Conflict` (SQLSTATE 40001), with all of its changes
//! undone. Only conflicts are worth a retry.

use entasis::{Config, Connection, Database, ErrorKind, Result, Value};
use std::thread;

/// Moves an amount from one account to another.
fn transfer(connection: &Connection, from: i64, to: i64, amount: i64) -> Result<()> {
    connection.execute("BEGIN")?;
    connection.execute(&format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"))?;
    connection.execute(&format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}"))?;
    connection.execute("COMMIT")?;
    Ok(())
}

/// Runs `body` again until it does not conflict.
fn retrying(connection: &Connection, body: impl Fn(&Connection) -> Result<()>) -> Result<()> {
    loop {
        match body(connection) {
            Err(error) => {
                if connection.in_transaction() {
                    connection.execute("ROLLBACK")?;
                }
                if error.kind() != ErrorKind::Conflict {
                    return Err(error);
                }
            }
            done => return done,
        }
    }
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
                threads.spawn(move || {
                    (0..100).try_for_each(|_| retrying(&connection, |c| transfer(c, from, to, 1)))
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic in a worker"))
    })?;

    let rows = connection.execute("SELECT sum(balance) FROM accounts")?;
    let sum = rows.row_values().next().expect("an aggregate has a row").remove(0);
    println!("both accounts together: {}", sum.display(rows.schema()[0].ty));
    assert_eq!(sum, Value::Integer(2000));
    Ok(())
}
