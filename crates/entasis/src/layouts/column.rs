//! A layout key as the optimizer sees it: partitions in the order of the key, each of some slices.
//!
//! A table's own key has the partitions that the table has. For any other key the column is *imagined*: what
//! it would be if the table were laid by it, in partitions of a slice, from a sample of its rows.
//!
//! A key belongs to the last partition whose least key is not above it. Keys may be given by their first
//! columns alone, and stand for all that begin with these. Along a curve partitions are not in the order of
//! the key, so nothing is placed in them.

use crate::state::interrupt::Interrupt;
use crate::state::workload_stats::LaidBy;
use entasis_engine::access_path::Asked;
use entasis_layout::frequency::{Frequency, Kind, Operation};
use entasis_layout::partitioning::Partitioning;
use entasis_storage::{BLOCK_ROWS, Curve, Datum, PartitionInfo, TableSnapshot};
use entasis_vector::{Result, Value};
use std::cmp::Ordering;
use std::ops::Bound;

/// Rows from which the partitions of a key are imagined, at most.
pub(super) const SAMPLE_ROWS: usize = 1 << 16;

/// A partition.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The least key of its rows; `None` if it has no rows.
    pub(super) first_key: Option<Vec<Value>>,
    pub(super) rows: usize,
    pub(super) slots: usize,
    pub(super) ghosts: usize,
    /// Slices.
    pub(super) width: usize,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The columns of the key; empty for the order of insertion.
    pub(super) key: Vec<usize>,
    /// The curve of the table as it is laid, if there is one.
    pub(super) curve: Option<Curve>,
    /// There is at least one.
    pub(super) parts: Vec<Part>,
    /// What was counted, by partition; `None` if nothing was.
    pub(super) recorded: Option<Frequency>,
    /// The partitions that have rows, and so a least key.
    keyed: Vec<usize>,
}

impl Column {
    fn of(key: Vec<usize>, parts: Vec<Part>, recorded: Option<Frequency>) -> Column {
        let keyed = (0..parts.len()).filter(|&part| parts[part].first_key.is_some()).collect();
        Column { key, curve: None, parts, recorded, keyed }
    }

    /// The table as it is laid.
    pub(super) fn present(snapshot: &TableSnapshot, interrupt: &Interrupt) -> Result<Column> {
        let options = snapshot.table().options();
        let slices = |slots: usize| slots.div_ceil(options.block_slots).max(1);
        let mut infos: Vec<PartitionInfo> = Vec::new();
        if options.layout.is_keyed() {
            for group in 0..snapshot.row_groups().len() {
                interrupt.look()?;
                infos.extend(snapshot.partitions(group));
            }
        }
        let recorded = recorded(&infos);
        let mut parts: Vec<Part> = infos
            .into_iter()
            .map(|info| Part {
                width: slices(info.slots),
                first_key: info.first_key,
                rows: info.rows,
                slots: info.slots,
                ghosts: info.ghosts,
            })
            .collect();
        if parts.is_empty() {
            let slots: usize = snapshot.row_groups().map(|group| group.slots()).sum();
            let rows = snapshot.rows() as usize;
            parts.push(Part { first_key: None, rows, slots, ghosts: 0, width: slices(slots) });
        }
        Ok(Column { curve: options.curve, ..Column::of(options.layout_key.clone(), parts, recorded) })
    }

    /// The table as it would be laid by other columns.
    pub(super) fn imagined(snapshot: &TableSnapshot, key: &[usize], interrupt: &Interrupt) -> Result<Column> {
        let rows = snapshot.rows() as usize;
        let step = rows.div_ceil(SAMPLE_ROWS).max(1);
        let mut keys: Vec<Vec<Value>> = Vec::new();
        for (number, row) in snapshot.row_ids().step_by(step).enumerate() {
            if number.is_multiple_of(BLOCK_ROWS) {
                interrupt.look()?;
            }
            let value = |&column: &usize| {
                let datum: Datum<'_> = snapshot.datum(row, column);
                datum.value(snapshot.schema()[column].ty)
            };
            keys.push(key.iter().map(value).collect());
        }
        keys.sort_unstable_by(|a, b| order(a, b));
        let count = rows.div_ceil(BLOCK_ROWS).max(1);
        let part = |number: usize| {
            let rows = rows * (number + 1) / count - rows * number / count;
            let first_key = keys.get(keys.len() * number / count).cloned();
            Part { first_key, rows, slots: BLOCK_ROWS, ghosts: BLOCK_ROWS - rows, width: 1 }
        };
        Ok(Column::of(key.to_vec(), (0..count).map(part).collect(), None))
    }

    /// What it is ordered by.
    pub(super) fn by(&self) -> LaidBy {
        LaidBy { key: self.key.clone(), curve: self.curve }
    }

    /// The same rows in the order of insertion: one partition.
    pub(super) fn without_key(&self) -> Column {
        let sum = |of: fn(&Part) -> usize| self.parts.iter().map(of).sum();
        let part = Part {
            first_key: None,
            rows: sum(|part| part.rows),
            slots: sum(|part| part.slots),
            ghosts: 0,
            width: self.slices(),
        };
        Column::of(Vec::new(), vec![part], None)
    }

    /// The slices of each partition.
    pub(super) fn widths(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.width).collect()
    }

    /// All slices.
    pub(super) fn slices(&self) -> usize {
        self.parts.iter().map(|part| part.width).sum()
    }

    /// The partitions as a partitioning of slices.
    pub(super) fn partitioning(&self) -> Partitioning {
        let mut end = 0;
        let ends = self.parts.iter().map(|part| {
            end += part.width;
            end - 1
        });
        Partitioning::of_ends(ends.collect()).expect("there is a partition, and each has a slice")
    }

    /// Where a question touches the column: its first and last partition.
    pub(super) fn locate(&self, asked: &Asked) -> Operation<usize> {
        let first = match &asked.low {
            Bound::Unbounded => 0,
            // Keys that begin with it, or equal it, may begin before a partition that does.
            Bound::Included(key) if key.len() < self.key.len() => self.last_below(key, Ordering::is_lt),
            Bound::Included(key) | Bound::Excluded(key) => self.last_below(key, Ordering::is_le),
        };
        let last = match &asked.high {
            Bound::Unbounded => self.parts.len() - 1,
            Bound::Included(key) => self.last_below(key, Ordering::is_le),
            Bound::Excluded(key) => self.last_below(key, Ordering::is_lt),
        };
        if !asked.is_point {
            return Operation::Range(first, last.max(first));
        }
        // Equal values that begin several partitions are read as a range.
        let before = match &asked.low {
            Bound::Included(key) => self.last_below(key, Ordering::is_lt),
            _ => last,
        };
        if last > before + 1 { Operation::Range(before, last) } else { Operation::Point(last) }
    }

    /// The partition of a whole key.
    pub(super) fn part_of(&self, key: &[Value]) -> usize {
        self.last_below(key, Ordering::is_le)
    }

    /// The last partition whose least key is below a key, as `is_below` says; else the first one.
    fn last_below(&self, key: &[Value], is_below: fn(Ordering) -> bool) -> usize {
        // A partition without rows has no key, so those before and after it say where a key belongs.
        let is_low = |&part: &usize| {
            self.parts[part].first_key.as_ref().is_some_and(|first| is_below(order(first, key)))
        };
        let number = self.keyed.partition_point(is_low);
        number.checked_sub(1).map_or(0, |number| self.keyed[number])
    }
}

/// The order of two keys by as many columns as both have.
pub(super) fn order(a: &[Value], b: &[Value]) -> Ordering {
    let mut each = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// What was counted by partition; `None` if nothing was.
fn recorded(infos: &[PartitionInfo]) -> Option<Frequency> {
    let mut frequency = Frequency::new(infos.len());
    let mut sum = 0.0;
    for (number, info) in infos.iter().enumerate() {
        let own = info.frequencies.as_ref()?;
        for kind in Kind::ALL {
            frequency.of_mut(kind)[number] = own.0[kind as usize];
            sum += own.0[kind as usize];
        }
    }
    (sum > 0.0).then_some(frequency)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(keys: &[Option<i128>]) -> Column {
        let part = |key: &Option<i128>| Part {
            first_key: key.map(|key| vec![Value::Integer(key), Value::Integer(0)]),
            rows: 1,
            slots: 1,
            ghosts: 0,
            width: 1,
        };
        Column::of(vec![0, 1], keys.iter().map(part).collect(), None)
    }

    fn key(values: &[i128]) -> Vec<Value> {
        values.iter().copied().map(Value::Integer).collect()
    }

    /// The twin looks at each partition: it is touched if a key of the question can be in it.
    #[test]
    fn questions_touch_the_partitions_that_may_have_their_keys() {
        let bounds = [Some(10), Some(20), None, Some(30), Some(40)];
        let column = laid(&bounds);
        for low in 5..45 {
            for high in low..45 {
                let asked = |low, high| Asked { low, high, is_point: false };
                let whole = asked(Bound::Included(key(&[low, 5])), Bound::Included(key(&[high, 5])));
                let part = |number: i128| bounds.iter().rposition(|own| own.is_some_and(|own| own <= number));
                let (first, last) = (part(low).unwrap_or(0), part(high).unwrap_or(0));
                assert_eq!(column.locate(&whole), Operation::Range(first, last));
                // A prefix may begin in the partition before.
                let prefix = asked(Bound::Included(key(&[low])), Bound::Excluded(key(&[high])));
                let (first, last) = (part(low - 1).unwrap_or(0), part(high - 1).unwrap_or(0));
                assert_eq!(column.locate(&prefix), Operation::Range(first, last.max(first)));
            }
        }
        let point = |key: Vec<Value>| {
            let bound = Bound::Included(key);
            Asked { low: bound.clone(), high: bound, is_point: true }
        };
        assert_eq!(column.locate(&point(key(&[20, 0]))), Operation::Point(1));
        assert_eq!(column.locate(&point(key(&[35, 0]))), Operation::Point(3));
        let equal = laid(&[Some(1), Some(7), Some(7), Some(7), Some(9)]);
        assert_eq!(equal.locate(&point(key(&[7, 0]))), Operation::Range(0, 3));
        assert_eq!(column.part_of(&key(&[25, 0])), 1);
        assert_eq!(column.part_of(&key(&[1, 0])), 0);
    }
}
