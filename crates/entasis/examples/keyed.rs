//! Single rows by key: counters that are read and written one at a time, and a query over all of them.
//!
//! Statements that name one row by its primary key run in a microsecond or two, in the calling thread. Their
//! text is parsed once; only the parameters change from call to call.

use entasis::{Config, Database, OptionalRow, Result};

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();
    connection.execute("CREATE TABLE counters (page BIGINT PRIMARY KEY, hits BIGINT NOT NULL)")?;

    // A visit to a page: its counter is created or incremented.
    let visit = connection.prepare(
        "INSERT INTO counters VALUES (?, 1) ON CONFLICT (page) DO UPDATE SET hits = counters.hits + 1",
    )?;
    for n in 0..10_000_i64 {
        visit.execute((n * n % 97,))?;
    }

    let hits = connection.prepare("SELECT hits FROM counters WHERE page = ?")?;
    println!("page 16: {}", hits.query_row_as::<i64>((16,))?);

    connection.query_with("DELETE FROM counters WHERE page = ?", (16,))?;
    assert_eq!(hits.query_row_as::<i64>((16,)).optional()?, None);

    // The same table, queried as a column store.
    let (pages, most): (i64, i64) =
        connection.query_row_as("SELECT count(*), max(hits) FROM counters WHERE hits > 100", ())?;
    println!("{pages} pages with more than 100 hits, up to {most}");
    assert!(pages > 40);
    Ok(())
}
