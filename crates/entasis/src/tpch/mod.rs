//! The TPC-H benchmark: its tables, generated in memory, and its 22 queries.
//!
//! Enabled by the feature `tpch`, for the demo, the tests and the benchmarks. The generator is the crate
//! `tpchgen`; its rows become Arrow batches ([`batches`]), which are appended like any other Arrow data, part
//! by part, so that there is progress to show.

mod batches;

pub use batches::batches;

use crate::api::table_load::TableLoad;
use crate::{Connection, Result};

macro_rules! queries {
    ($($number:literal),* $(,)?) => {
        [$((concat!("q", $number), include_str!(concat!("../../../../tests/tpch/queries/q", $number, ".sql")))),*]
    };
}

/// The queries with the parameters of the specification's validation run: name, SQL.
pub const QUERIES: [(&str, &str); 22] = queries!(
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20", "21", "22",
);

/// Tables, smallest first, with their number of rows at scale factor 1.
pub const TABLES: [(&str, f64); 8] = [
    ("region", 5.0),
    ("nation", 25.0),
    ("supplier", 10_000.0),
    ("customer", 150_000.0),
    ("part", 200_000.0),
    ("partsupp", 800_000.0),
    ("orders", 1_500_000.0),
    ("lineitem", 6_001_215.0),
];

/// Creates the eight tables and fills them at `scale` (1.0 is about 1 GB of text). Calls `progress` with the
/// share done, 0 to 1, and the table being filled.
///
/// # Errors
/// Input, if one of the tables exists; resource, if memory runs out; interrupted, if the connection is
/// cancelled. The table being filled does not exist then.
pub fn load(connection: &Connection, scale: f64, progress: &mut dyn FnMut(f64, &str)) -> Result<()> {
    let total: f64 = TABLES.iter().map(|(_, rows)| rows * scale).sum();
    let mut done = 0.0;
    for (table, rows_at_one) in TABLES {
        progress(done / total, table);
        // Region and nation do not scale; every part contains all of their rows.
        let parts =
            if rows_at_one < 100.0 { 1 } else { (rows_at_one * scale / 500_000.0).ceil().max(1.0) as i32 };
        let mut load: Option<TableLoad> = None;
        for part in 1..=parts {
            for batch in batches(table, scale, part, parts) {
                connection.context().check()?;
                let load = match &mut load {
                    Some(load) => load,
                    None => load.insert(TableLoad::create(connection, table, &batch.schema())?),
                };
                load.append(&batch)?;
                done += batch.num_rows() as f64;
                progress((done / total).min(1.0), table);
            }
        }
        if let Some(load) = load {
            load.commit()?;
        }
    }
    Ok(())
}
