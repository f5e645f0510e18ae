//! Parts that are finalized as a CHT: each row has the bucket of its hash or the next one, or overflows.
//!
//! The rows of a part take buckets in the order in which they are stored, twice: the first time bits are set;
//! the second time, when ranks are known, each row learns its bucket. Rows that overflow are after the other
//! rows of their part.

use super::super::cht::Cht;
use super::super::directory::{Directory, count};
use super::super::partitions::cut;
use super::cat::{ranks, take};
use super::{Numbering, PrecountedRows};
use crate::exec::join::table::directory::rank;
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use entasis_vector::{Buffer, Result};
use std::ops::Range;

/// A CHT that does not know its overflow yet, and its rows.
pub(crate) struct FinalCht {
    /// The table.
    pub table: Cht,
    /// Its rows.
    pub rows: Materialized,
    /// The ids of the rows that overflow.
    pub overflow: Vec<Range<usize>>,
}

impl PrecountedRows {
    /// Finalizes rows that are numbered by buckets.
    ///
    /// # Errors
    /// Those of the tasks; internal, if rows are missing.
    ///
    /// # Panics
    /// If rows are numbered by something else.
    pub(crate) fn finalize_cht(self, tasks: &dyn Tasks) -> Result<FinalCht> {
        self.check()?;
        let PrecountedRows { parts, numbers, placing, .. } = self;
        let &Numbering::Buckets(buckets) = parts.numbering() else { panic!("rows that have no buckets") };
        let mut room = Directory::room(buckets.count());
        let (_, words) = room.split_last_mut().expect("there is one more");
        let numbers: Vec<Option<Buffer>> = numbers.into_iter().map(|own| Some(own.into_buffer())).collect();
        let mut overflow = vec![0..0; parts.count()];
        let work = cut(words, parts.words()).into_iter().zip(numbers).zip(&mut overflow).collect();
        in_parallel(tasks, work, &|part, ((words, numbers), overflow)| {
            // Freed at the end of the task.
            let numbers = numbers.take().expect("nobody has taken them");
            let rows = parts.rows(part);
            let own = &numbers.as_slice::<u32>()[..rows.len()];
            // A part begins with a partition.
            let after = |bucket: u32| buckets.after(u64::from(bucket)) as u32;
            let mut taken = 0;
            own.iter().for_each(|&bucket| {
                taken += u32::from(take(words, bucket) || take(words, after(bucket)));
            });
            count(words, rows.start);
            let mut to = ranks(words, own, rows.start);
            let mut is_given = vec![false; taken as usize];
            let mut give = |rank: u32| {
                is_given.get_mut(rank as usize).is_some_and(|given| !std::mem::replace(given, true))
            };
            let mut last = taken;
            for (to, &bucket) in to.iter_mut().zip(own) {
                if give(*to) {
                    continue;
                }
                let next = after(bucket);
                // Beyond all ranks if it is not taken.
                let next = rank(words[next as usize / 32], u64::from(next)).wrapping_sub(rows.start as u32);
                *to = if give(next) {
                    next
                } else {
                    last += 1;
                    last - 1
                };
            }
            **overflow = rows.start + taken as usize..rows.end;
            placing.finalize(rows, &to);
            Ok(())
        })?;
        overflow.retain(|ids| !ids.is_empty());
        Ok(FinalCht { table: Cht::of(buckets, Directory::of(room)), rows: placing.into_rows(), overflow })
    }
}
