//! Relations that are neither stored by the engine nor files: snapshots of tables, Arrow objects of the host
//! program, table functions, rejected rows, memory, and lists of objects.

pub(crate) mod search_path;

mod arrow;
mod information_schema;
mod inspect;
mod listed;
mod memory;
mod rejects;
mod series;
mod table;

pub use arrow::{arrow_relation, arrow_relation_schema};
pub(crate) use information_schema::{Seen, information_schema, names as information_schema_names};
pub(crate) use listed::listed;
pub(crate) use memory::{NAME as MEMORY, memory};
pub(crate) use rejects::{NAME as REJECT_ERRORS, reject_errors};
pub(crate) use table::TableRelation;

use entasis_engine::relation::Relation;
use entasis_files::csv::Rejects;
use entasis_files::{Format, Host};
use entasis_functions::Argument;
use entasis_storage::TableSnapshot;
use entasis_vector::{Error, Result, Value};
use std::sync::Arc;

/// The table functions, as error messages list them.
const TABLE_FUNCTIONS: [&str; 13] = [
    "read_parquet",
    "read_csv",
    "generate_series",
    "range",
    "entasis_blocks",
    "entasis_dictionaries",
    "entasis_partitions",
    "entasis_workload",
    "entasis_layout_decisions",
    TABLES,
    MEMORY,
    LAYOUT_ADVICE,
    LAYOUT_PROFILE,
];

/// True for the name of a table function of ours, in lower case.
pub(crate) fn is_table_function(name: &str) -> bool {
    TABLE_FUNCTIONS.contains(&name) || matches!(name, "parquet_scan" | "read_csv_auto")
}

/// The function of all tables, which the catalog knows.
pub(crate) const TABLES: &str = "entasis_tables";
/// Functions that bind statements, which the catalog therefore runs itself.
pub(crate) const LAYOUT_ADVICE: &str = "entasis_layout_advice";
/// See [`LAYOUT_ADVICE`].
pub(crate) const LAYOUT_PROFILE: &str = "entasis_layout_profile";

/// The table that a call names, and the sample workload if there is one: `f('t')`, `f('t', 'ops.sql')`.
pub(crate) fn layout_arguments<'a>(
    name: &str,
    args: &'a [(Option<String>, Argument)],
) -> Result<(&'a str, Option<&'a str>)> {
    let (table, rest) = args.split_at(args.len().min(1));
    let table = inspect::table_argument(name, table)?;
    match rest {
        [] => Ok((table, None)),
        [(None, Argument::Value(Value::Text(workload), _))] => Ok((table, Some(workload))),
        _ => {
            let text = format!("{name} takes the name of a table, and a file of statements");
            Err(Error::input(text).with_hint(format!("as in {name}('orders', 'workload.sql')")))
        }
    }
}

/// The relation of a call in `FROM`. Each argument comes with its name, if it was passed by name. Rows that a
/// file scan skips go to `rejects`; waiting for a pipe ends when `cancel` is raised, and instants in files
/// that name no zone are in that of `host`. `stored` returns the stored table of a name.
pub(crate) fn table_function(
    name: &str,
    args: &[(Option<String>, Argument)],
    rejects: &Arc<Rejects>,
    host: &Host<'_>,
    stored: impl Fn(&str) -> Option<TableSnapshot>,
) -> Result<Arc<dyn Relation>> {
    let inspected = |name: &str, inspect: fn(TableSnapshot) -> Arc<dyn Relation>| {
        let table = inspect::table_argument(name, args)?;
        let unknown = || Error::input(format!("{name}: there is no table \"{table}\""));
        stored(table).map(inspect).ok_or_else(unknown)
    };
    match name.to_ascii_lowercase().as_str() {
        "read_parquet" | "parquet_scan" => {
            entasis_files::read_function(name, Format::Parquet, args, rejects, host)
        }
        "read_csv" | "read_csv_auto" => entasis_files::read_function(name, Format::Csv, args, rejects, host),
        "generate_series" => series::series("generate_series", args, true),
        "range" => series::series("range", args, false),
        "entasis_blocks" => inspected("entasis_blocks", inspect::blocks),
        "entasis_dictionaries" => inspected("entasis_dictionaries", inspect::dictionaries),
        "entasis_partitions" => inspected("entasis_partitions", inspect::partitions),
        "entasis_workload" => inspected("entasis_workload", inspect::workload),
        "entasis_layout_decisions" => inspected("entasis_layout_decisions", inspect::layout_decisions),
        _ => Err(Error::input(format!("there is no table function '{name}'"))
            .with_hint(format!("the table functions are {}", TABLE_FUNCTIONS.join(", ")))),
    }
}
