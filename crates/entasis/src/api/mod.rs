//! What a program does with a connection besides passing it texts of statements.
//!
//! | module | subject |
//! |---|---|
//! | [`queries`], [`prepared_statement`] | statements with parameters and results in Rust's types |
//! | [`stream`], [`row_stream`] | results that are read while the statement runs |
//! | [`transaction`] | transactions and savepoints as values; conflicts that are tried again |
//! | [`appender`], [`table_load`] | many rows: one by one, or as Arrow batches |
//! | [`describe`] | what a statement takes and returns, without running it |
//! | [`registration`] | relations and functions of the program |

pub(crate) mod appender;
pub(crate) mod describe;
pub(crate) mod prepared_statement;
pub(crate) mod queries;
mod registration;
pub(crate) mod row_stream;
pub(crate) mod stream;
pub mod table_load;
pub(crate) mod transaction;
