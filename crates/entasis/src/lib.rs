//! Entasis: the columnar database you can update, in your process.
//!
//! ```
//! use entasis::{Config, Database};
//!
//! let database = Database::in_memory(Config::default())?;
//! let connection = database.connect();
//! connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(n, name)")?;
//! for row in &connection.query_with("SELECT * FROM t WHERE n >= ?", (2,))? {
//!     assert_eq!((row.get::<i64>("n")?, row.get::<String>("name")?), (2, "two".to_owned()));
//! }
//! let all: Vec<(i64, String)> = connection.query_as("SELECT * FROM t ORDER BY n", ())?;
//! assert_eq!(all.len(), 2);
//! # Ok::<(), entasis::Error>(())
//! ```
//!
//! | | |
//! |---|---|
//! | statements with parameters, rows in Rust's types | [`Connection::query_with`], [`Connection::query_as`], [`Params`], [`Row`], [`FromRow`] |
//! | statements that run often | [`Connection::prepare`] |
//! | results that are read while the query runs | [`Connection::stream_with`] |
//! | transactions, savepoints, and trying again after a conflict | [`Connection::transaction`], [`Connection::retry`] |
//! | many rows at once | [`Connection::appender`]; Arrow batches: [`append::TableLoad`] |
//! | which Rust type is which SQL type | [`convert`] |
//!
//! `docs/rust.md` is a page for those who come from rusqlite or duckdb-rs. The programs in `examples/` show
//! more: `query` (parameters, printing rows), `transaction` (retrying after a conflict), `arrow` (record
//! batches in and out), `keyed` (reading and changing rows by key).
//!
//! # Features
//! `chrono`, `uuid`, `rust_decimal` and `json` (for `serde_json`) make the types of these crates parameters
//! and results; `derive` is for `#[derive(FromRow)]`; `tpch` has the TPC-H generator.
//!
//! This crate connects the others: [`Connection`] passes text to the front end (`entasis-sql`), the bound
//! plan to the engine (`entasis-engine`), and changes to storage (`entasis-storage`). It adds everything that
//! touches the outside: files ([`files`]), Arrow objects of the host program, settings, memory limits.
//!
//! # Layers
//! A module uses only those in layers below its own.
//!
//! ```text
//! appender  prepared_statement     rows added one by one; handles of statements
//! queries  row_stream  transaction  statements in Rust's types; streams by rows; guards of transactions
//! describe  stream  row            what a statement takes and returns; rows that are read while it runs
//! registration                     relations and functions of the host program
//! batch  append  preparing  tpch   many sets of arguments; Arrow batches; statements by name
//! connection  placed  hints        text in, rows out: transactions, and how statements run in them; places and
//!                                  hints for their errors
//! command                          statements about the whole database
//! statement                        what each kind of statement does
//! follow                           tables that are laid anew as their workload wants it
//! define                           statements that create, alter and drop objects
//! change  template                 statements that change rows; plans of queries that are run often
//! catalog                          how names become relations
//! layouts                          what layouts cost: EXPLAIN LAYOUT, which layout key
//! home                             which database a statement works on
//! settings  keyed  databases       SET and SHOW; rows named by their key, inline; USE and SHOW TABLES
//! summarize                        SUMMARIZE
//! work  execute  resting           names and rows of one moment, and what was done to them; running plans
//! place                            where a named object is
//! session                          the state of a connection besides its transaction
//! constraints  prepared  database  what rows must satisfy; prepared statements; what a program opens
//! functions                        functions of the host program
//! relations                        what FROM may name
//! shared  program                  what connections share, and upkeep; keyed statements
//! params                           what a program passes for parameters
//! config  rows  arguments  search_path  interrupt  record  numbers  foreign  running  convert
//! ```

pub mod append;
mod appender;
mod arguments;
mod batch;
mod catalog;
mod change;
mod command;
pub mod config;
pub mod connection;
mod constraints;
pub mod convert;
pub mod database;
mod databases;
mod define;
mod describe;
mod execute;
mod explain;
mod follow;
mod foreign;
mod functions;
mod hints;
mod home;
mod interrupt;
mod keyed;
mod layouts;
mod numbers;
pub mod params;
mod place;
mod placed;
mod prepared;
mod prepared_statement;
mod preparing;
mod program;
mod queries;
mod record;
mod registration;
mod relations;
mod resting;
pub mod row;
mod row_stream;
pub mod rows;
mod running;
mod search_path;
mod session;
mod settings;
mod shared;
mod statement;
mod stream;
mod summarize;
mod template;
#[cfg(feature = "tpch")]
pub mod tpch;
mod transaction;
mod work;

pub use appender::Appender;
pub use arguments::{Argument, Arguments};
pub use config::Config;
pub use connection::{Connection, Replacement};
pub use convert::{Date, Decimal, FromValue, Time, Timestamp, ToValue};
pub use database::Database;
pub use describe::Description;
#[cfg(feature = "derive")]
pub use entasis_derive::FromRow;
pub use entasis_engine::exec::{CancelFlag, Progress};
pub use entasis_engine::relation::Relation;
pub use entasis_files::json::{write_json, write_json_text};
pub use entasis_functions::TimeZone;
pub use entasis_functions::host::HostArguments;
pub use entasis_sql::{functions, keywords, parse_type};
pub use entasis_vector::{DataType, Error, ErrorKind, Field, Interval, Result, Schema, Value};
pub use functions::{Function, MakeTable, TableArgument, cast_value};
pub use params::{Given, Params};
pub use prepared_statement::PreparedStatement;
pub use queries::OptionalRow;
pub use relations::{arrow_relation, arrow_relation_schema};
pub use row::{ColumnIndex, FromRow, Row, RowIter, Struct};
pub use row_stream::{BatchStream, RowStream};
pub use rows::Rows;
pub use shared::refuse_database;
pub use stream::Stream;
pub use transaction::{Savepoint, Transaction};

/// Runs the programs of the page as tests.
#[cfg(all(doctest, feature = "chrono", feature = "derive"))]
#[doc = include_str!("../../../docs/rust.md")]
struct RustPage;
