//! What layouts are looked at with.

use crate::state::interrupt::Interrupt;
use crate::state::workload_stats::Record;
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
    /// What scans have asked of it, if it follows its workload.
    pub(crate) record: Option<Arc<Record>>,
    /// Ends long looks.
    pub(crate) interrupt: Interrupt,
}

/// What it takes to bind the statements of a sample.
pub(crate) struct Binding<'a> {
    /// The names.
    pub(crate) catalog: &'a dyn Catalog,
    /// How their plans are optimized.
    pub(crate) settings: &'a Settings,
}
