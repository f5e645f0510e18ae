//! The state that a checkpoint is of: names, tables, and the position of the log, all of one moment.

use super::costs::MachineCosts;
use super::images::Images;
use super::objects::{lasting, tables_of};
use super::record::Image;
use crate::catalog::{Catalog, CatalogVersion, Entry};
use crate::table::{HeadGuard, Table, TableSnapshot};
use std::sync::Arc;

/// See the module. Its tables are pinned as long as it is held: writers copy what they touch.
#[derive(Debug)]
pub struct Moment {
    pub(super) names: CatalogVersion,
    /// The tables and indexes that outlive their connections, each with the round of checkpoints that ends
    /// with this one.
    pub(super) tables: Vec<(TableSnapshot, u32)>,
    pub(super) log_position: u64,
    /// Tables that were written when they got their names, since the last one.
    pub(super) images: Vec<Image>,
    /// Costs that were measured; `None`: those that the file has.
    pub(super) costs: Option<Arc<MachineCosts>>,
}

impl Moment {
    /// The newest state: no commit falls into the middle of it, as each publishes under the lock of the names
    /// and those of all its heads. `log_position` is asked for under these locks; whoever takes it makes the
    /// next checkpoint, as it is told of `images`.
    pub fn take(catalog: &Catalog, images: &Images, log_position: impl FnOnce() -> u64) -> Moment {
        catalog.at_rest(|names| {
            let mut tables: Vec<Arc<Table>> = lasting(names)
                .filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None })
                .flat_map(|entry| tables_of(entry))
                .cloned()
                .collect();
            tables.sort_unstable_by_key(|table| table.id());
            tables.dedup_by_key(|table| table.id());
            let mut heads: Vec<HeadGuard<'_>> = tables.iter().map(|table| table.head()).collect();
            let pinned = tables.iter().zip(&mut heads).map(|(table, head)| table.pin_round(head)).collect();
            let (log_position, images) = (log_position(), images.take());
            drop(heads);
            Moment { names: names.clone(), tables: pinned, log_position, images, costs: None }
        })
    }

    /// The same with costs that were measured.
    pub fn with_costs(self, costs: Option<Arc<MachineCosts>>) -> Moment {
        Moment { costs, ..self }
    }

    /// The position of the log, behind which nothing was published.
    pub fn log_position(&self) -> u64 {
        self.log_position
    }

    /// The tables and indexes, as they were.
    pub fn tables(&self) -> impl Iterator<Item = &TableSnapshot> {
        self.tables.iter().map(|(snapshot, _)| snapshot)
    }
}
