//! Relations that are neither stored by the engine nor files: table snapshots as the front end names them, Arrow
//! objects of the host program, table functions.

mod arrow;
mod inspect;
mod series;
mod table;

pub use arrow::{arrow_relation, arrow_relation_schema};
pub(crate) use table::TableRelation;

use crate::files;
use entasis_engine::relation::Relation;
use entasis_storage::TableSnapshot;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

/// The table functions, for error messages.
const TABLE_FUNCTIONS: [&str; 6] =
    ["read_parquet", "read_csv", "generate_series", "range", "entasis_blocks", "entasis_dictionaries"];

/// The relation that a call in `FROM` gives. Arguments: name, if it was given by name, value and type. `stored` gives the
/// stored table of a name.
pub(crate) fn table_function(
    name: &str,
    args: &[(Option<String>, Value, DataType)],
    stored: impl Fn(&str) -> Option<TableSnapshot>,
) -> Result<Arc<dyn Relation>> {
    let inspected = |name: &str, inspect: fn(TableSnapshot) -> Arc<dyn Relation>| {
        let table = inspect::table_argument(name, args)?;
        let unknown = || Error::input(format!("{name}: there is no table \"{table}\""));
        stored(table).map(inspect).ok_or_else(unknown)
    };
    match name.to_ascii_lowercase().as_str() {
        "read_parquet" | "parquet_scan" => files::read_function(files::Format::Parquet, args),
        "read_csv" | "read_csv_auto" => files::read_function(files::Format::Csv, args),
        "generate_series" => series::series("generate_series", args, true),
        "range" => series::series("range", args, false),
        "entasis_blocks" => inspected("entasis_blocks", inspect::blocks),
        "entasis_dictionaries" => inspected("entasis_dictionaries", inspect::dictionaries),
        _ => Err(Error::input(format!("there is no table function '{name}'"))
            .with_hint(format!("the table functions are {}", TABLE_FUNCTIONS.join(", ")))),
    }
}
