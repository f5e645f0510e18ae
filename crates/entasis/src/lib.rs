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
//! # Floors
//! A module names only those on floors below its own.
//!
//! ```text
//! batch  append  preparing  tpch   many sets of arguments; Arrow batches; statements by name
//! connection                       text in, rows out: transactions, and how statements run in them
//! command                          statements about the whole database
//! statement                        what each kind of statement does
//! define                           statements that change what there is
//! change  template                 statements that change rows; plans of queries that are run often
//! catalog                          how names become relations
//! home                             which database a statement works on
//! settings  keyed  databases       SET and SHOW; rows named by their key, inline; USE and SHOW TABLES
//! summarize                        SUMMARIZE
//! work  execute  resting           names and rows of one moment, and what was done to them; running plans
//! place                            where an object is that is named
//! session                          what a connection knows, however statements run in it
//! constraints  prepared  database  what rows must satisfy; statements that are kept; what a program opens
//! shared  program  relations       what connections share, and upkeep; keyed statements; what FROM may name
//! config  files  rows  arguments  search_path  interrupt
//! ```

pub mod append;
mod arguments;
mod batch;
mod catalog;
mod change;
mod command;
pub mod config;
pub mod connection;
mod constraints;
pub mod database;
mod databases;
mod define;
mod execute;
pub mod files;
mod home;
mod interrupt;
mod keyed;
mod place;
mod prepared;
mod preparing;
mod program;
mod relations;
mod resting;
pub mod rows;
mod search_path;
mod session;
mod settings;
mod shared;
mod statement;
mod summarize;
mod template;
#[cfg(feature = "tpch")]
pub mod tpch;
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
