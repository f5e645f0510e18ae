//! Layouts for people: what a table's layout is, what its workload costs by the engine's cost model, what the
//! optimizer would choose and why, and which layout key would suit it.
//!
//! The workload is what the table has counted (layout `casper`), or a *sample*: SQL statements that are
//! parsed, bound and optimized, but not run. Costs are those of `entasis_layout::cost::Engine`
//! ([`machine`]): a model, not a measurement.
//!
//! ```text
//! page    advice   profile   EXPLAIN LAYOUT; which key; partition by partition
//! tables                     all tables, and what was chosen for them
//! workload                   how often each partition is touched, and where that is known from
//! sample                     statements as acts on the rows of one table
//! column   literals          a layout key in partitions; rows that stand in a plan
//! chosen                     which layout a table has, and why
//! machine  words             the cost model of this machine; numbers as people read them
//! ```

mod advice;
mod chosen;
mod column;
mod literals;
mod machine;
mod page;
mod profile;
mod sample;
mod tables;
#[cfg(test)]
mod tests;
mod words;
mod workload;

pub(crate) use advice::advice;
pub(crate) use machine::promise_note;
pub(crate) use page::page;
pub(crate) use profile::profile;
pub(crate) use tables::{NamedTable, tables};

use crate::interrupt::Interrupt;
use entasis_engine::cost::Costs;
use entasis_engine::exec::Settings;
use entasis_engine::relation::Definition;
use entasis_sql::Catalog;
use entasis_storage::TableSnapshot;
use std::sync::Arc;

/// A table that is looked at, and what it takes to look.
pub(crate) struct Looked<'a> {
    /// Its name, for people.
    pub(crate) name: &'a str,
    /// Its rows.
    pub(crate) snapshot: &'a TableSnapshot,
    /// What it declares.
    pub(crate) definition: Arc<Definition>,
    /// What the machine's accesses cost.
    pub(crate) costs: Arc<Costs>,
    /// The names against which a sample is bound.
    pub(crate) catalog: &'a dyn Catalog,
    /// How a sample is optimized.
    pub(crate) settings: &'a Settings,
    /// Ends long looks.
    pub(crate) interrupt: Interrupt,
}
