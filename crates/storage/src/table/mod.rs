//! Tables: the newest version of some rows, who may change it when, and what goes on beside it.
//!
//! ```text
//! redo_batch ──▶ redo           repeats what the log says, many records at once or one by one
//! fork  kept  together          versions that a statement or a transaction writes apart from the head; new
//!                               values that it keeps beside one; several heads at once
//! writer                        changes of rows, to the head or to a fork
//! log  difference  rewrite      operations on a fork; two versions compared; tables made of others
//! restore                       tables made of row groups of a file
//! successor                     tables made of others with other columns
//! key_sample                    values of some rows, which tell how often columns have equal ones
//! row_sample                    rows to test predicates on
//! snapshot                      a version, pinned while it is held
//! duplicates  workload          finds equal keys where keys are unique; shows partitions and workload
//! appender  reader  in_place    rows added in bulk; single rows that are read, and changed beside others
//! index  upkeep  write_guard    indexes; background work; a write lock to keep
//! head                          the table: its newest version, and the lock of that
//! logged                        tables whose changes go to the write-ahead log
//! loads                         rows that the log refers to in the data file
//! write locks  attempts  summaries    one writer at a time; whether changes beside others succeed; what is
//! known of overlay  latencies          a version's columns; new values of a few rows; how long operations
//! take
//! ```
//! Each knows only those in lines below it. A module that makes something of a table has the table's method
//! for it: [`Table::snapshot`] stands beside [`TableSnapshot`].

mod appender;
mod attempts;
mod change_list;
mod difference;
mod duplicates;
mod fork;
mod head;
mod in_place;
pub mod index;
mod key_sample;
pub mod latencies;
mod loads;
mod logged;
mod overlay;
mod pending_updates;
mod reader;
mod redo;
mod redo_batch;
mod restore;
mod rewrite;
mod row_sample;
mod snapshot;
mod successor;
mod summaries;
mod together;
mod upkeep;
mod workload;
mod write_guard;
mod write_lock;
mod writer;

pub(crate) use appender::Added;
pub use appender::{AppendedRows, Appender};
pub(crate) use change_list::{OldRow, Operation, datums};
pub use difference::Difference;
pub use duplicates::Among;
pub(crate) use fork::{ForkSavepoint, TableFork};
pub(crate) use head::HeadGuard;
pub use head::Table;
pub use in_place::LatchedRow;
pub use key_sample::{KEY_SAMPLES_MAX, KeySample};
pub(crate) use loads::{LoadStore, Loaded, ReadLoad, StoredLoad};
pub(crate) use logged::{Appended, Framed, Recorded};
pub(crate) use pending_updates::PendingUpdates;
pub use pending_updates::SingleRows;
pub use reader::TableReader;
pub(crate) use restore::{HungGroup, RestoredGroup};
pub use row_sample::{RowSample, SampledSlots};
pub use snapshot::TableSnapshot;
pub use together::HeadWriters;
pub use upkeep::Upkeep;
pub use workload::{BinInfo, Frequencies, PartitionInfo};
pub(crate) use write_guard::OwnedWriteGuard;
pub use write_lock::{Interrupt, Waiter, WriterName};
pub use writer::TableWriter;

#[cfg(test)]
pub(crate) mod tests {
    mod counters;
    mod curves;
    mod drift;
    mod ghosts_by_workload;
    mod in_place;
    pub(crate) mod lineages;
    mod long_texts;
    pub(crate) mod model;
    mod reasons;
    mod rest;
    pub(crate) mod rows;
}
