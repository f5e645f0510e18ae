//! Tables: the newest version of some rows, who may change it when, and what goes on beside it.
//!
//! ```text
//! turns     ◀── head ◀── writer_turn         one writer at a time; the newest version and its lock; a turn to keep
//! summaries ◀──┘  ▲
//!                 ├── reader, index          single rows of the newest version; indexes are tables
//!                 ├── appender ◀── duplicates ◀── snapshot       rows that come in bulk; a version that is held
//!                 │                  snapshot ◀── difference, rewrite, log
//!                 │                                   log ◀── writer ◀── fork      changes, to the head or aside
//!                 └── upkeep                 what writers leave undone
//! ```
//! A module that makes something of a table has the table's method for it: [`Table::snapshot`] stands beside
//! [`TableSnapshot`].

mod appender;
mod difference;
mod duplicates;
mod fork;
mod head;
pub mod index;
mod log;
mod reader;
mod rewrite;
mod snapshot;
mod summaries;
mod turns;
mod upkeep;
mod writer;
mod writer_turn;

#[cfg(test)]
pub(crate) mod tests {
    mod model;
    pub(crate) mod rows;
}

pub(crate) use appender::Added;
pub use appender::{AppendedRows, Appender};
pub use difference::Difference;
pub use duplicates::Among;
pub(crate) use fork::{ForkSavepoint, TableFork};
pub use head::Table;
pub(crate) use head::{HeadGuard, Steady};
pub(crate) use log::{Log, Operation};
pub use reader::TableReader;
pub use rewrite::ColumnSource;
pub use snapshot::TableSnapshot;
pub use turns::{Interrupt, Waiter, WriterName};
pub use upkeep::Upkeep;
pub use writer::TableWriter;
pub(crate) use writer_turn::WriterTurn;
