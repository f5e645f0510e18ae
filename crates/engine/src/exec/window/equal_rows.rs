//! Finds [equal rows](super::previous): the code of the sort orders the rows by the columns; equal ones are
//! then adjacent, in the order of their positions.

use super::copied::copied;
use super::counting::Counting;
use super::previous::Previous;
use super::section::Section;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::{OrderKey, order};
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;

impl Previous {
    /// Finds equal rows among those of `section` that count, by the columns `counting.args`, which are
    /// described by `metas`.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        counting: &Counting,
        metas: &[ColumnMeta],
        section: &Section,
        tasks: &dyn Tasks,
    ) -> Result<Previous> {
        let (rows, at) = copied(section, &counting.args, metas, 0..section.len(), Some(counting), tasks)?;
        let keys: Vec<OrderKey> = (0..counting.args.len())
            .map(|column| OrderKey { column, descending: false, nulls_first: false })
            .collect();
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

    /// By position, the position of the equal row before it plus one, or 0 without one; for a row that does
    /// not count, a number above all positions.
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
}
