//! Transactions that never hang and never lie: faults that several connections showed, each with neighbours
//! of its kind.
//!
//! | module | subject |
//! |---|---|
//! | [`hangs`] | writers, commits and changes of the catalog that wait for each other |
//! | [`moments`] | one statement sees all of its tables as of one moment |
//! | [`keys`] | UNIQUE under bulk changes and concurrent transactions |
//! | [`foreign_keys`] | foreign keys under ALTER TABLE, between types, beside other sessions |
//! | [`names`] | names of indexes, sequences and tables that other objects depend on |
//! | [`attached`] | several databases: which one a statement means, and which one a transaction writes to |
//! | [`temporary`] | temporary objects, which are one connection's |
//! | [`memory`] | the memory limit for single rows and for old versions |
//! | [`conflicts`] | conflicts that are none, statements that starve, commits of many rows |
//! | [`waiting`] | statements that wait for a writer can be interrupted and have a time limit |
//!
//! Where sessions take turns and there is one right outcome, a text test says it more briefly:
//! `tests/anomalies`. Here are tests that need threads, accounting, many rows, or a choice of right outcomes.
//! [`sessions`] runs statements of named sessions one after the other; [`race`] runs them in threads, for a
//! number of rounds, and aborts the process if nobody gets on.

mod attached;
mod conflicts;
mod foreign_keys;
mod hangs;
mod keys;
mod memory;
mod moments;
mod names;
mod race;
mod sessions;
mod temporary;
mod waiting;
