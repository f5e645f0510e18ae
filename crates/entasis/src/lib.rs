//! Entasis: the columnar database you can update, in your process.
//!
//! ```
//! use entasis::{Config, Database};
//!
//! let database = Database::in_memory(Config::default())?;
//! let connection = database.connect();
//! connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(n, name)")?;
//! let rows = connection.execute("SELECT name FROM t WHERE n = 2")?;
//! assert_eq!(rows.row_values().next().unwrap()[0], entasis::Value::Text("two".into()));
//! # Ok::<(), entasis::Error>(())
//! ```
//!
//! The programs in `examples/` go on from here: `query` (parameters, printing rows), `transaction` (one that
//! is tried again after a conflict), `arrow` (record batches in and out), `keyed` (rows read and changed by
//! their key).
//!
//! This crate wires the others: [`Connection`] hands text to the front end (`entasis-sql`), the bound plan to
//! the engine (`entasis-engine`), and changes to storage (`entasis-storage`). It adds what touches the world:
//! files ([`files`]), Arrow objects of the host program, settings, memory limits.
//!
//! | module | subject |
//! |---|---|
//! | [`database`], [`connection`] | the objects that a program holds |
//! | `statement` | what each kind of statement does |
//! | `work` | what a statement or a transaction works on: names and rows of one moment |
//! | `change`, `define` | statements that change rows; that change what there is |
//! | `keyed` | statements on rows named by their key, run inline |
//! | `catalog` | how names become relations |
//! | [`rows`] | results |
//! | [`files`] | Parquet and CSV, in and out |
//! | `arguments`, `batch` | values for parameters; one statement with many sets of them |
//! | [`append`] | loading Arrow batches |

pub mod append;
mod arguments;
mod batch;
mod catalog;
mod catch_up;
mod change;
pub mod config;
pub mod connection;
pub mod database;
mod define;
pub mod files;
mod keyed;
mod prepared;
mod preparing;
mod relations;
mod resting;
pub mod rows;
mod search_path;
mod settings;
mod statement;
mod summarize;
#[cfg(feature = "tpch")]
pub mod tpch;
mod upkeep;
mod work;

pub use arguments::{Argument, Arguments};
pub use config::Config;
pub use connection::{Connection, Replacement};
pub use database::Database;
pub use entasis_engine::exec::{CancelFlag, Progress};
pub use entasis_engine::relation::Relation;
pub use entasis_sql::{TimeZone, functions, keywords};
pub use entasis_vector::{DataType, Error, ErrorKind, Field, Result, Schema, Value};
pub use relations::{arrow_relation, arrow_relation_schema};
pub use rows::Rows;
