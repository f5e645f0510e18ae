//! Finds [equal rows](super::previous): the code of the sort orders the rows by the columns; equal ones are
//! then adjacent, in the order of their positions.

use super::copied::copied;
use super::counting::Counting;
use super::previous::Previous;
use super::section::Section;
use crate::context::QueryContext;
use crate::exec::operator::Tasks;
use crate::exec::sort::order::OrderKey;
use entasis_vector::Result;
use entasis_vector::expr::ColumnMeta;

impl Previous {
    /// Finds equal rows among those of `section` that count, by the columns `counting.args`, which are
    /// described by `metas`.
    ///
    /// # Errors
    /// Resource, if there is no memory for it; those of `tasks`.
    pub fn new(
        counting: &Counting,
        metas: &[ColumnMeta],
        section: &Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<Previous> {
        let all = 0..section.len();
        let mut copied = copied(section, &counting.args, metas, all, Some(counting), context, tasks)?;
        let keys: Vec<OrderKey> = (0..counting.args.len())
            .map(|column| OrderKey { column, descending: false, nulls_first: false })
            .collect();
        let ids = copied.order(&keys, tasks)?;
        copied.reserve(section.len() * size_of::<u32>())?;
        let (rows, at) = (&copied.rows, &copied.at);
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
