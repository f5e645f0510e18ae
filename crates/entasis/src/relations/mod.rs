//! Relations that are neither stored by the engine nor files: table snapshots as the front end names them, Arrow
//! objects of the host program, table functions.

mod arrow;
mod series;
mod table;

pub use arrow::arrow_relation;
pub(crate) use table::TableRelation;

use crate::files;
use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

/// The table functions, for error messages.
const TABLE_FUNCTIONS: [&str; 4] = ["read_parquet", "read_csv", "generate_series", "range"];

/// The relation that a call in `FROM` gives. Arguments: name, if it was given by name, value and type.
pub(crate) fn table_function(name: &str, args: &[(Option<String>, Value, DataType)]) -> Result<Arc<dyn Relation>> {
    match name.to_ascii_lowercase().as_str() {
        "read_parquet" | "parquet_scan" => files::read_function(files::Format::Parquet, args),
        "read_csv" | "read_csv_auto" => files::read_function(files::Format::Csv, args),
        "generate_series" => series::series("generate_series", args, true),
        "range" => series::series("range", args, false),
        _ => Err(Error::input(format!("there is no table function '{name}'"))
            .with_hint(format!("the table functions are {}", TABLE_FUNCTIONS.join(", ")))),
    }
}
