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
//! | many rows at once | [`Connection::appender`]; Arrow batches: [`TableLoad`] |
//! | which Rust type is which SQL type | [`convert`] |
//!
//! `docs/rust.md` is a page for those who come from rusqlite or duckdb-rs. The programs in `examples/` show
//! more: `query` (parameters, printing rows), `transaction` (retrying after a conflict), `arrow` (record
//! batches in and out), `keyed` (reading and changing rows by key).
//!
//! # Features
//! `chrono`, `uuid`, `rust_decimal` and `json` (for `serde_json`) make the types of these crates parameters
//! and results; `serde` reads rows as types with `Deserialize`; `parquet`, a default, reads and writes
//! Parquet files; `derive` is for `#[derive(FromRow)]`; `tpch` has the TPC-H generator.
//!
//! This crate connects the others: [`Connection`] passes text to the front end (`entasis-sql`), the bound
//! plan to the engine (`entasis-engine`), and changes to storage (`entasis-storage`). It adds everything that
//! touches the outside: files ([`files`]), Arrow objects of the host program, settings, memory limits.
//!
//! # Rooms
//! A room uses only those below it, and so do the modules of a room.
//!
//! ```text
//! api            statements in Rust's types, streams, appenders, guards of transactions
//! connection     text in, rows out: which way a statement goes, and how it runs in a transaction
//! auto_layout    tables that get another layout as their workload wants it
//! statements     what each kind of statement does; those about the whole database
//! ddl            statements that create, alter and drop objects
//! dml            statements that change rows, with a plan
//! query          running plans; EXPLAIN and SUMMARIZE
//! binding        how names become relations; plans of queries that run often
//! layouts        what layouts cost: EXPLAIN LAYOUT, which layout key
//! keyed          rows named by their key, read and changed inline
//! transaction    names and rows of one moment, and what was done to them; which database is written to
//! constraints    what rows must satisfy
//! session        the state of a connection besides its transaction: settings, names, functions
//! prepared       what is kept of statements that run again; programs of keyed statements
//! catalog        what FROM may name besides tables and files; the search path
//! state          what the connections of a database share: its file and log, memory, upkeep
//! values         parameters, cells and rows in Rust's types
//! ```

mod api;
mod auto_layout;
mod binding;
mod catalog;
mod connection;
mod constraints;
mod ddl;
mod dml;
mod keyed;
mod layouts;
mod prepared;
mod query;
mod session;
mod state;
mod statements;
#[cfg(feature = "tpch")]
pub mod tpch;
mod transaction;
mod values;

pub use api::appender::Appender;
pub use api::describe::Description;
pub use api::prepared_statement::PreparedStatement;
pub use api::queries::OptionalRow;
pub use api::row_stream::{BatchStream, RowStream};
pub use api::stream::Stream;
pub use api::table_load::TableLoad;
pub use api::transaction::{Savepoint, Transaction};
pub use catalog::{arrow_relation, arrow_relation_schema};
pub use connection::{Connection, Replacement};
#[cfg(feature = "derive")]
pub use entasis_derive::FromRow;
pub use entasis_engine::exec::{CancelFlag, Progress};
pub use entasis_engine::relation::Relation;
pub use entasis_files::json::{write_json, write_json_text};
pub use entasis_functions::TimeZone;
pub use entasis_functions::host::HostArguments;
pub use entasis_sql::{functions, keywords, parse_type};
pub use entasis_vector::{DataType, Error, ErrorKind, Field, Interval, Result, Schema, Value};
pub use session::host_functions::{Function, MakeTable, TableArgument, cast_value};
pub use state::config::{self, Config};
pub use state::database::Database;
pub use state::refuse_database;
#[doc(hidden)]
pub use state::retry_lock::RetryGuard;
pub use values::arguments::{Argument, Arguments};
pub use values::convert::{self, Date, Decimal, FromValue, Time, Timestamp, ToValue};
pub use values::params::{self, Given, Params};
pub use values::row::{self, ColumnIndex, FromRow, Row, RowIter, Struct};
pub use values::rows::{self, Rows};

/// Runs the programs of the page as tests.
#[cfg(all(doctest, feature = "chrono", feature = "derive", feature = "serde"))]
#[doc = include_str!("../../../docs/rust.md")]
struct RustPage;
