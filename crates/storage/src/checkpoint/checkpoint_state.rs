//! The state that a checkpoint saves: names, tables and the position of the log, all of one moment.

use super::costs::MachineCosts;
use super::images::Images;
use super::objects::{lasting, tables_of};
use super::record::Image;
use super::stored::Load;
use crate::catalog::{Catalog, CatalogVersion, Entry};
use crate::file::Length;
use crate::table::{HeadGuard, Table, TableSnapshot};
use std::sync::Arc;

/// A consistent state of the database. Its tables are pinned while it is held, so that writers copy what they
/// change.
#[derive(Debug)]
pub struct Moment {
    pub(super) names: CatalogVersion,
    /// The permanent tables and indexes, each with the round of checkpoints that this one ends.
    pub(super) tables: Vec<(TableSnapshot, u32)>,
    pub(super) log_position: u64,
    /// The images that were added since the last checkpoint.
    pub(super) images: Vec<Image>,
    /// The loads that were added since.
    pub(super) loads: Vec<Arc<Load>>,
    /// Costs that were measured; `None`: those that the file has.
    pub(super) costs: Option<Arc<MachineCosts>>,
    /// How long the file may stay.
    pub(super) length: Length,
}

impl Moment {
    /// The newest state. No commit is only partly in it, because each publishes under the lock of the names
    /// and of all its heads, and `log_position` is called under the same locks. The caller must make the next
    /// checkpoint of it, since it takes the `images` and loads.
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
            let ((images, loads), log_position) = (images.take(), log_position());
            drop(heads);
            Moment {
                names: names.clone(),
                tables: pinned,
                log_position,
                images,
                loads,
                costs: None,
                length: Length::default(),
            }
        })
    }

    /// The same with costs that were measured.
    pub fn with_costs(self, costs: Option<Arc<MachineCosts>>) -> Moment {
        Moment { costs, ..self }
    }

    /// The same, for a file that may stay so long.
    pub fn with_length(self, length: Length) -> Moment {
        Moment { length, ..self }
    }

    /// The position of the log: all commits before it are in this state, and none behind it.
    pub fn log_position(&self) -> u64 {
        self.log_position
    }

    /// The tables and indexes of that moment.
    pub fn tables(&self) -> impl Iterator<Item = &TableSnapshot> {
        self.tables.iter().map(|(snapshot, _)| snapshot)
    }
}
