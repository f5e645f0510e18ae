//! Opens a database, creates a table, runs a query.
//!
//! Everything goes through a connection: `execute` runs any statement and returns its rows, `query_with` adds
//! parameters. The result has the names and types of its columns, which are needed to print a value.

use entasis::{Argument, Arguments, Config, Database, Result};

fn main() -> Result<()> {
    let database = Database::in_memory(Config::default())?;
    let connection = database.connect();

    connection.execute("CREATE TABLE trips (city VARCHAR, day DATE, km DECIMAL(8, 1))")?;
    connection.execute(
        "INSERT INTO trips VALUES
            ('Oslo', '2026-05-01', 12.5), ('Oslo', '2026-05-02', 3.0), ('Turin', '2026-05-02', 40.0), ('Turin', '2026-05-03', NULL)",
    )?;

    let from = [Argument::from("2026-05-02")];
    let rows = connection.query_with(
        "SELECT city, count(*) AS trips, sum(km) AS km FROM trips WHERE day >= ? GROUP BY city ORDER BY city",
        &Arguments::from(from),
    )?;
    for row in rows.row_values() {
        let cells = rows
            .schema()
            .iter()
            .zip(&row)
            .map(|(field, value)| format!("{} {}", field.name, value.display(field.ty)));
        println!("{}", cells.collect::<Vec<_>>().join(", "));
    }
    assert_eq!(rows.rows(), 2);
    Ok(())
}
