//! Arrow in and out.
//!
//! `arrow_relation` makes a table of record batches in memory, without copying them; statements read it by
//! its name. `TableLoad` copies batches into a table of the database, all of them or none. Any result can be
//! read as record batches.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use entasis::TableLoad;
use entasis::{Config, Database, Result, arrow_relation};
use std::sync::Arc;

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();

    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let names: ArrayRef =
        Arc::new(StringArray::from_iter((0..1000).map(|i| (i % 10 != 0).then(|| format!("name {}", i % 7)))));
    let batch =
        RecordBatch::try_from_iter([("id", ids), ("name", names)]).expect("the columns are of one length");

    // Read in place …
    connection.register("people", arrow_relation("people", &batch.schema(), vec![batch.clone()]));
    let rows = connection
        .execute("SELECT name, count(*) AS n, max(id) AS last FROM people GROUP BY name ORDER BY name")?;

    // … kept as a table, which can be changed …
    let mut load = TableLoad::create(&connection, "kept", &batch.schema())?;
    load.append(&batch)?;
    load.commit()?;
    connection.execute("UPDATE kept SET name = 'nobody' WHERE name IS NULL")?;

    // … and returned.
    for batch in rows.record_batches()? {
        println!(
            "{} rows of {:?}",
            batch.num_rows(),
            batch.schema().fields().iter().map(|f| f.name()).collect::<Vec<_>>()
        );
    }
    assert_eq!(rows.rows(), 8);
    assert_eq!(connection.execute("SELECT 1 FROM kept WHERE name = 'nobody'")?.rows(), 100);
    Ok(())
}
