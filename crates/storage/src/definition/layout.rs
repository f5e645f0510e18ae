//! Layouts: how the slots of a table are ordered, and where the empty ones are (section 7 of *Optimal Column
//! Layout for Hybrid Workloads*).
//!
//! | layout | order of rows | empty slots | an insert |
//! |---|---|---|---|
//! | insertion | as they came | at the end | goes to the end |
//! | sorted | partitions of equal width, sorted inside | at the end of each partition | shifts rows: the slices of its partition are laid out again |
//! | delta | as sorted when they are laid out | at the end of each partition | takes one of these or of a short slice more, out of order; then the partition is laid out again |
//! | equi | partitions of equal width | at the end of the row group | ripples from there |
//! | equi_ghost | partitions of equal width | at the end of each partition | takes one of these, or of a short slice more |
//! | casper | as equi_ghost | where rows are inserted, as far as that pays (`write/demand.rs`) | as equi_ghost |
//!
//! The paper has one delta for the whole column. Here each partition has its own, so that all layouts find
//! and merge rows by the same code; the insert that finds no slot in the delta merges it.

use super::compression::Compression;
use super::curve::{CURVE_COLUMNS, Curve};
use super::declared::{Definition, LayoutChoice, LayoutName};
use crate::{BLOCK_ROWS, ROW_GROUP_ROWS};
use entasis_layout::cost::Engine;
use entasis_vector::Schema;

/// The share of the slots that *delta* leaves for new rows by default.
const DELTA_SHARE: f64 = 0.1;

/// So many rounds never pass: for [`TableOptions::rest`].
pub const NEVER: u32 = u32::MAX;

/// How the slots of a table are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Rows in the order in which they came.
    Insertion,
    /// Partitions of equal width, in order inside.
    Sorted,
    /// Partitions of equal width, in order but for the rows that came last.
    Delta,
    /// Partitions of equal width, without ghost slots.
    Equi,
    /// Partitions of equal width, with ghost slots.
    EquiGhost,
    /// Partitions of equal width, with ghost slots as the workload wants them.
    Casper,
}

impl Layout {
    /// True if rows are placed by their key.
    pub fn is_keyed(self) -> bool {
        self != Layout::Insertion
    }

    /// True if a full partition may get a slice more (`write/room.rs`).
    pub(crate) fn is_extended(self) -> bool {
        matches!(self, Layout::Delta | Layout::EquiGhost | Layout::Casper)
    }
}

/// How a table is laid out.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOptions {
    /// The layout.
    pub layout: Layout,
    /// Columns of the layout key. Empty for [`Layout::Insertion`].
    pub layout_key: Vec<usize>,
    /// The curve through the columns of the layout key, two to four ([`CURVE_COLUMNS`]), by which rows are in
    /// order; `None` for the order by one column after the other.
    pub curve: Option<Curve>,
    /// No two rows have the same layout key. Writers make sure of it; statistics rely on it.
    pub unique: bool,
    /// No two rows without a NULL in their layout key have the same one. Writers make sure of it; commits
    /// check it.
    pub distinct: bool,
    /// Partitions of a full row group.
    pub partitions: usize,
    /// The share of the slots that are left empty when rows are spread.
    pub ghost: f64,
    /// How many partitions away a ghost slot may be fetched from; otherwise rows are spread again.
    pub reach: usize,
    /// How its blocks are encoded.
    pub compression: Compression,
    /// The encodings of single columns, where they differ.
    pub column_compressions: Vec<(usize, Compression)>,
    /// Slots of a block: 1024, or fewer in tests.
    pub block_slots: usize,
    /// Slots of a row group, a multiple of those of a block.
    pub group_slots: usize,
    /// The rows of a table with a layout key are encoded for reading, with few ghosts, once their row group
    /// has not been written for so many rounds of upkeep; twice as many each time that they were written
    /// again, up to 64 times as many. With [`NEVER`] they never are. Files do not have it.
    pub rest: u32,
    /// How operations are counted, with [`Layout::Casper`]. Files do not have it.
    pub counters: CounterOptions,
}

/// How operations are counted, so that ghosts can be where the workload wants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterOptions {
    /// Slots of a range of keys that has counters of its own: the block size of the frequency model.
    pub slots: usize,
    /// One operation in so many is counted, by chance; 0 counts none.
    pub every: u32,
}

impl Default for CounterOptions {
    /// A range for each slice, and one operation in eight: so the cache line that all threads write is
    /// written seldom.
    fn default() -> CounterOptions {
        CounterOptions { slots: BLOCK_ROWS, every: 8 }
    }
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            layout: Layout::Insertion,
            layout_key: Vec::new(),
            curve: None,
            unique: false,
            distinct: false,
            partitions: ROW_GROUP_ROWS / BLOCK_ROWS,
            ghost: 0.01,
            reach: 1,
            compression: Compression::Auto,
            column_compressions: Vec::new(),
            block_slots: BLOCK_ROWS,
            group_slots: ROW_GROUP_ROWS,
            rest: 8,
            counters: CounterOptions::default(),
        }
    }
}

impl TableOptions {
    /// A table laid out by `layout_key`, in partitions of equal width with ghost slots.
    pub fn keyed(layout_key: Vec<usize>) -> TableOptions {
        TableOptions { layout: Layout::EquiGhost, layout_key, ..TableOptions::default() }
    }

    /// The options of a table with this definition. `auto` is [`Layout::EquiGhost`] by the primary key, or
    /// else by the first unique key, or else [`Layout::Insertion`]; a layout that needs a key and has none is
    /// the same.
    pub fn of(definition: &Definition, schema: &Schema) -> TableOptions {
        let choice = &definition.layout;
        let natural = definition.primary_key().or_else(|| definition.unique_keys().next());
        let key = choice.key.clone().or_else(|| natural.map(|key| key.columns.clone())).unwrap_or_default();
        let layout = match choice.layout.unwrap_or_default() {
            _ if key.is_empty() => Layout::Insertion,
            LayoutName::Insertion => Layout::Insertion,
            LayoutName::Sorted => Layout::Sorted,
            LayoutName::Delta => Layout::Delta,
            LayoutName::Equi => Layout::Equi,
            LayoutName::Auto | LayoutName::EquiGhost => Layout::EquiGhost,
            LayoutName::Casper => Layout::Casper,
        };
        let defaults = TableOptions::default();
        let ghost = if layout == Layout::Delta { DELTA_SHARE } else { defaults.ghost };
        let in_order = |columns: &[usize]| {
            let mut columns = columns.to_vec();
            columns.sort_unstable();
            columns
        };
        let is_not_null = |column: &usize| schema.get(*column).is_some_and(|field| !field.nullable);
        let is_unique = definition.unique_keys().any(|unique| in_order(&unique.columns) == in_order(&key));
        TableOptions {
            layout,
            unique: layout.is_keyed() && is_unique && key.iter().all(is_not_null),
            distinct: layout.is_keyed() && is_unique,
            curve: choice.curve.flatten().filter(|_| layout.is_keyed() && CURVE_COLUMNS.contains(&key.len())),
            layout_key: if layout.is_keyed() { key } else { Vec::new() },
            partitions: promised(choice, choice.partitions.unwrap_or(defaults.partitions)),
            ghost: choice.ghost.unwrap_or(ghost).clamp(0.0, 0.99),
            compression: choice.compression.unwrap_or_default(),
            column_compressions: choice.column_compressions.clone(),
            ..defaults
        }
    }

    /// True if no two rows without a NULL in their layout key may have the same one.
    pub fn is_distinct(&self) -> bool {
        self.unique || self.distinct
    }

    /// How blocks of a column are encoded.
    pub(crate) fn compression_of(&self, column: usize) -> Compression {
        let own = self.column_compressions.iter().find(|(own, _)| *own == column);
        own.map_or(self.compression, |(_, compression)| *compression)
    }

    /// True if operations are counted.
    pub(crate) fn are_counted(&self) -> bool {
        self.layout == Layout::Casper && self.counters.every > 0
    }

    /// How many of some slots are filled when rows are laid out.
    pub(crate) fn filled_slots(&self, slots: usize) -> usize {
        let ghost = if self.layout == Layout::Equi { 0.0 } else { self.ghost };
        ((slots as f64 * (1.0 - ghost)) as usize).max(1)
    }

    /// Slots of a partition.
    pub(crate) fn partition_slots(&self) -> usize {
        (self.group_slots / self.partitions).max(1)
    }
}

/// The partitions of a full row group: so many, or as many more as it takes to keep what is promised. Costs
/// are those of [`Engine::default`] on every machine, so that a definition means the same layout everywhere.
fn promised(choice: &LayoutChoice, partitions: usize) -> usize {
    let needed = Engine::default()
        .widest(&choice.sla_bounds())
        .map_or(1, |widest| (ROW_GROUP_ROWS / BLOCK_ROWS).div_ceil(Engine::declared_width(widest)));
    partitions.max(needed).clamp(1, ROW_GROUP_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::declared::{Key, KeyKind};
    use entasis_vector::{DataType, Field};

    #[test]
    fn a_definition_says_the_layout() {
        let field = |name: &str, nullable| Field { nullable, ..Field::new(name, DataType::Int64) };
        let schema = vec![field("a", true), field("b", false), field("c", false)];
        let key = |columns: &[usize], kind| Key { name: "k".into(), columns: columns.to_vec(), kind };
        let of = |keys: Vec<Key>, layout: LayoutName, chosen: Option<&[usize]>| {
            let layout = LayoutChoice {
                layout: Some(layout),
                key: chosen.map(<[usize]>::to_vec),
                ..LayoutChoice::default()
            };
            let options = TableOptions::of(&Definition { keys, layout, ..Definition::default() }, &schema);
            (options.layout, options.layout_key, options.unique)
        };
        use LayoutName::{Auto, Delta, Insertion};
        let (primary, unique, index) = (KeyKind::Primary, KeyKind::Unique, KeyKind::Index);
        assert_eq!(of(vec![], Auto, None), (Layout::Insertion, vec![], false));
        assert_eq!(of(vec![], Delta, None), (Layout::Insertion, vec![], false));
        assert_eq!(of(vec![key(&[1], index)], Auto, None), (Layout::Insertion, vec![], false));
        assert_eq!(of(vec![key(&[2, 1], primary)], Auto, None), (Layout::EquiGhost, vec![2, 1], true));
        assert_eq!(of(vec![key(&[0], unique)], Auto, None), (Layout::EquiGhost, vec![0], false));
        assert_eq!(of(vec![key(&[1], primary)], Insertion, None), (Layout::Insertion, vec![], false));
        assert_eq!(of(vec![key(&[1], primary)], Delta, Some(&[2])), (Layout::Delta, vec![2], false));
        assert_eq!(
            of(vec![key(&[1, 2], unique)], Auto, Some(&[2, 1])),
            (Layout::EquiGhost, vec![2, 1], true)
        );
    }

    #[test]
    fn curves_go_through_two_to_four_columns() {
        let schema: Vec<Field> = (0..5).map(|i| Field::new(format!("c{i}"), DataType::Int64)).collect();
        let of = |columns: usize, layout, curve| {
            let key = Some((0..columns).collect());
            let layout = LayoutChoice { key, curve, layout: Some(layout), ..LayoutChoice::default() };
            TableOptions::of(&Definition { layout, ..Definition::default() }, &schema).curve
        };
        let hilbert = Some(Some(Curve::Hilbert));
        let found = [1, 2, 4, 5].map(|columns| of(columns, LayoutName::EquiGhost, hilbert).is_some());
        assert_eq!(found, [false, true, true, false]);
        assert_eq!(of(2, LayoutName::Insertion, hilbert), None);
        assert_eq!(of(2, LayoutName::Sorted, Some(None)), None);
        assert_eq!(of(2, LayoutName::Sorted, Some(Some(Curve::ZOrder))), Some(Curve::ZOrder));
    }

    #[test]
    fn sla_bounds_bound_the_width_of_partitions() {
        let partitions = |partitions: Option<usize>, read: Option<u64>, update: Option<u64>| {
            let layout = LayoutChoice {
                key: Some(vec![0]),
                partitions,
                read_sla: read,
                update_sla: update,
                ..LayoutChoice::default()
            };
            let schema = vec![Field::new("a", DataType::Int64)];
            TableOptions::of(&Definition { layout, ..Definition::default() }, &schema).partitions
        };
        assert_eq!(partitions(Some(4), None, None), 4);
        assert_eq!(partitions(Some(4), Some(0), None), 4);
        // 210 ns and 23 for each further slice: 26 slices at most, so 13 are declared, of 128.
        assert_eq!(partitions(Some(4), Some(800), None), 10);
        assert_eq!(partitions(Some(100), Some(800), None), 100);
        // What cannot be kept makes partitions of a slice.
        assert_eq!(partitions(Some(4), Some(10), None), 128);
        assert_eq!(partitions(Some(4), Some(1_000_000), Some(10)), 128);
        assert_eq!(partitions(None, Some(1_000_000), None), 128);
    }
}
