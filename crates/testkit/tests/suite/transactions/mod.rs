//! Transactions that never hang and never lie: bugs found with several connections, each with similar cases.
//!
//! | module | subject |
//! |---|---|
//! | [`hangs`] | writers, commits and changes of the catalog that wait for each other |
//! | [`moments`] | one statement sees all of its tables as of one moment |
//! | [`keys`] | UNIQUE under bulk changes and concurrent transactions |
//! | [`row_numbers`] | indexes of tables in the order of insertion |
//! | [`foreign_keys`] | foreign keys under ALTER TABLE, between types, with concurrent sessions |
//! | [`names`] | names of indexes, sequences and tables that other objects depend on |
//! | [`attached`] | several databases: those that statements refer to and transactions write to |
//! | [`temporary`] | temporary objects, which belong to one connection |
//! | [`memory`] | the memory limit for single rows and for old versions |
//! | [`conflicts`] | false conflicts, starving statements, commits of many rows |
//! | [`waiting`] | statements that wait for a writer can be interrupted and have a time limit |
//!
//! Where sessions take turns and there is only one right outcome, text tests are shorter: `tests/anomalies`.
//! Here are tests that need threads, memory accounting, many rows, or a choice of right outcomes.
//! [`sessions`] runs statements of named sessions in turn; [`race`] runs them in threads, for a number of
//! rounds, and aborts the process if no thread makes progress.

mod attached;
mod conflicts;
mod foreign_keys;
mod hangs;
mod keys;
mod memory;
mod moments;
mod names;
mod race;
mod row_numbers;
mod sessions;
mod temporary;
mod waiting;
