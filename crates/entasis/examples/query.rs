//! Opens a database, creates a table, runs a query.
//!
//! Everything goes through a connection: `execute` runs any statement and returns its rows, `query_with` adds
//! parameters, and `query_as` reads each row as a tuple. A cell is read by the name or the index of its
//! column as a Rust type, or printed as SQL shows it.

use entasis::{Config, Database, Decimal, Result};

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();

    connection.execute("CREATE TABLE trips (city VARCHAR, day DATE, km DECIMAL(8, 1))")?;
    connection.execute(
        "INSERT INTO trips VALUES
            ('Oslo', '2026-05-01', 12.5), ('Oslo', '2026-05-02', 3.0), ('Turin', '2026-05-02', 40.0), ('Turin', '2026-05-03', NULL)",
    )?;

    let sql =
        "SELECT city, count(*) AS trips, sum(km) AS km FROM trips WHERE day >= ? GROUP BY city ORDER BY city";
    let rows = connection.query_with(sql, ("2026-05-02",))?;
    for row in &rows {
        println!("{}: {} trips", row.get::<String>("city")?, row.get::<u32>("trips")?);
        println!("{row:?}");
    }
    assert_eq!(rows.rows(), 2);

    let all: Vec<(String, u32, Decimal)> = connection.query_as(sql, ("2026-05-02",))?;
    assert_eq!(all[1], ("Turin".to_owned(), 2, "40.0".parse()?));
    Ok(())
}
