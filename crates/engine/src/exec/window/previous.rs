//! Equal rows: for each row that counts the last one before it that counts and is equal in some columns.
//!
//! A value is new in a stretch of rows if its row before it is not in the stretch. So rows that have none in their partition stand for
//! all distinct values of every frame that begins where the partition does.
//!
//! Rows are put in the order of the columns by the sort's own code; equal ones then stand side by side, in the order of
//! their positions.

use super::copied::copied;
use super::counted::Counting;
use super::section::Section;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, order};
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;
use std::ops::Range;

/// See the module.
pub struct Previous {
    /// By position: that of the equal row before it, plus one; 0 if there is none or if the row does not count.
    positions: Vec<u32>,
}

impl Previous {
    /// Finds equal rows among those of `section` that count, by the columns `counting.args`, which are described by `metas`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(counting: &Counting, metas: &[ColumnMeta], section: &Section, tasks: &dyn Tasks) -> Result<Previous> {
        let (rows, at) = copied(section, &counting.args, metas, 0..section.len(), Some(counting), tasks)?;
        let keys: Vec<OrderKey> =
            (0..counting.args.len()).map(|column| OrderKey { column, descending: false, nulls_first: false }).collect();
        let ids = order(&rows, &keys, rows.ids().collect(), Some(tasks))?;
        let mut positions = vec![0; section.len()];
        for pair in ids.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if (0..keys.len()).all(|column| rows.compare(column, a, b, false, false).is_eq()) {
                positions[at[b as usize] as usize] = at[a as usize] + 1;
            }
        }
        Ok(Previous { positions })
    }

    /// Leaves out of `counts` the rows at `positions` that have an equal one before them in their partition.
    pub fn only_first(&self, section: &Section, positions: Range<usize>, counts: &mut [bool]) {
        let starts = section.partitions();
        let mut partition = starts.partition_point(|&start| start as usize <= positions.start);
        for (position, counts) in positions.zip(counts) {
            while starts[partition] as usize <= position {
                partition += 1;
            }
            *counts &= self.positions[position] <= starts[partition - 1];
        }
    }

    /// By position that of the equal row before it, plus one, and 0 without one; of a row that does not count, a number above all
    /// positions.
    ///
    /// # Errors
    /// Internal, if a filter cannot be read.
    pub fn into_numbers(mut self, counting: &Counting, section: &Section) -> Result<Vec<u32>> {
        let beyond = section.len() as u32 + 1;
        counting.each_chunk(section, 0..section.len(), None, |positions, counts| {
            let left_out = positions.zip(counts).filter(|(_, counts)| !**counts);
            left_out.for_each(|(position, _)| self.positions[position] = beyond);
            Ok(())
        })?;
        Ok(self.positions)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.positions.capacity() * size_of::<u32>()
    }
}
