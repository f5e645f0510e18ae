//! Single rows by key: counters that are read and written one at a time, and a query over all of them.
//!
//! Statements that name one row by its primary key run in a microsecond or two, in the calling thread. Their
//! text is parsed once; only the parameters change from call to call.

use entasis::{Argument, Arguments, Config, Database, Result, Value};

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();
    connection.execute("CREATE TABLE counters (page BIGINT PRIMARY KEY, hits BIGINT NOT NULL)")?;

    // A visit to a page: its counter is created or incremented.
    let visit =
        "INSERT INTO counters VALUES (?, 1) ON CONFLICT (page) DO UPDATE SET hits = counters.hits + 1";
    for n in 0..10_000_i64 {
        connection.query_with(visit, &Arguments::from([Argument::from(n * n % 97)]))?;
    }

    let page = Arguments::from([Argument::from(16_i64)]);
    let rows = connection.query_with("SELECT hits FROM counters WHERE page = ?", &page)?;
    println!("page 16: {:?}", rows.single_row());

    connection.query_with("DELETE FROM counters WHERE page = ?", &page)?;
    assert_eq!(connection.query_with("SELECT hits FROM counters WHERE page = ?", &page)?.rows(), 0);

    // The same table, queried as a column store.
    let rows = connection.execute("SELECT count(*), max(hits) FROM counters WHERE hits > 100")?;
    let values = rows.row_values().next().expect("an aggregate has a row");
    println!("{} pages with more than 100 hits", values[0].display(rows.schema()[0].ty));
    assert!(matches!(values[0], Value::Integer(pages) if pages > 40));
    Ok(())
}
