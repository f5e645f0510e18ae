//! Layouts: how the slots of a table are ordered, and where the empty ones are (section 7 of *Optimal Column Layout for
//! Hybrid Workloads*).
//!
//! | layout | order of rows | empty slots | an insert |
//! |---|---|---|---|
//! | insertion | as they came | at the end | goes to the end |
//! | equi | partitions of equal width | at the end of the row group | ripples from there |
//! | equi_ghost | partitions of equal width | at the end of each partition | takes one of these |
//! | casper | as equi_ghost until boundaries are solved for | | |
//!
//! The paper's *sorted* and *delta* are not here yet.

use crate::definition::{Definition, Key, KeyKind, LayoutName};
use crate::{BLOCK_ROWS, ROW_GROUP_ROWS};
use entasis_vector::{Error, Result, Schema};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Rows in the order in which they came.
    Insertion,
    /// Partitions of equal width, without ghost slots.
    Equi,
    /// Partitions of equal width, with ghost slots.
    EquiGhost,
    /// Partitions and ghost slots as the workload wants them. Equal widths for now.
    Casper,
}

impl Layout {
    /// True if rows are placed by their key.
    pub fn is_keyed(self) -> bool {
        self != Layout::Insertion
    }
}

/// How a table is laid out.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOptions {
    /// The layout.
    pub layout: Layout,
    /// Columns of the layout key. Empty for [`Layout::Insertion`].
    pub layout_key: Vec<usize>,
    /// No two rows have the same layout key. Whoever writes makes sure of it; statistics rely on it.
    pub unique: bool,
    /// Partitions of a full row group.
    pub partitions: usize,
    /// Share of the slots that are left empty when rows are spread.
    pub ghost: f64,
    /// Partitions on either side that ghost slots are fetched from, before rows are spread anew.
    pub reach: usize,
    /// Slots of a block: 1024, or fewer in tests.
    pub block_slots: usize,
    /// Slots of a row group, a multiple of those of a block.
    pub group_slots: usize,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            layout: Layout::Insertion,
            layout_key: Vec::new(),
            unique: false,
            partitions: ROW_GROUP_ROWS / BLOCK_ROWS,
            ghost: 0.01,
            reach: 1,
            block_slots: BLOCK_ROWS,
            group_slots: ROW_GROUP_ROWS,
        }
    }
}

impl TableOptions {
    /// A table laid out by `layout_key`, in partitions of equal width with ghost slots.
    pub fn keyed(layout_key: Vec<usize>) -> TableOptions {
        TableOptions { layout: Layout::EquiGhost, layout_key, ..TableOptions::default() }
    }

    /// How a table with these columns is laid out by what was declared of it.
    ///
    /// # Errors
    /// Input, if the layout needs a key and there is none; not supported, for layouts that are not there yet.
    pub fn of(definition: &Definition, schema: &Schema) -> Result<TableOptions> {
        let choice = &definition.layout;
        let first_key = definition.keys.iter().map(|key| &key.columns).next();
        let key = choice.key.as_ref().or(first_key);
        let layout = match choice.layout {
            LayoutName::Auto if key.is_some() => Layout::EquiGhost,
            LayoutName::Auto | LayoutName::Insertion => Layout::Insertion,
            LayoutName::Equi => Layout::Equi,
            LayoutName::EquiGhost => Layout::EquiGhost,
            LayoutName::Casper => Layout::Casper,
            LayoutName::Sorted => return Err(Error::not_supported("the layout 'sorted'")),
            LayoutName::Delta => return Err(Error::not_supported("the layout 'delta'")),
        };
        let mut options = TableOptions { layout, ..TableOptions::default() };
        if layout.is_keyed() {
            let error = || Error::input("a layout by key needs layout_key = (…), or a primary key");
            options.layout_key = key.ok_or_else(error)?.clone();
            let promises = |key: &Key| {
                let mut columns = key.columns.iter();
                key.columns == options.layout_key
                    && (key.kind == KeyKind::Primary
                        || (key.kind == KeyKind::Unique && columns.all(|&column| !schema[column].nullable)))
            };
            options.unique = definition.keys.iter().any(promises);
        } else if first_key.is_some() {
            return Err(Error::not_supported("keys and indexes of a table in the order of insertion"));
        }
        options.partitions = choice.partitions.unwrap_or(options.partitions);
        options.ghost = choice.ghost.unwrap_or(options.ghost);
        Ok(options)
    }

    /// Slots of a partition.
    pub(crate) fn partition_slots(&self) -> usize {
        (self.group_slots / self.partitions).max(1)
    }
}
