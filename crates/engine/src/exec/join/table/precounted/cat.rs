//! Parts that are finalized as a CAT: a bit for the place of each row, and rows in the order of places.
//!
//! A part without repeated keys is finalized at once: it has as many rows as bits, so the ranks of its keys
//! begin with its first row. Parts with repeated keys wait until all are known; then rows of equal keys are
//! adjacent, and a list by rank gives where they start.

use super::super::cat::Cat;
use super::super::directory::{Directory, count, write_ranks};
use super::super::partitions::cut;
use super::{Numbering, PrecountedRows};
use crate::exec::key_filter::Bits;
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::prefetch::BLOCK;
use crate::memory::Reservation;
use entasis_vector::{Buffer, Result};
use std::sync::Arc;

/// A CAT and its rows.
pub(crate) struct FinalCat {
    /// The table.
    pub table: Cat,
    /// Its rows.
    pub rows: Materialized,
    /// A bit for each place, if requested.
    pub bits: Option<Arc<Bits>>,
}

impl PrecountedRows {
    /// Finalizes rows that are numbered by places. `wants_bits`: also returns the bits of all places.
    /// `memory` is for what no reading has counted: where the rows of repeated keys start.
    ///
    /// # Errors
    /// Those of the tasks; resource; internal, if rows are missing.
    ///
    /// # Panics
    /// If rows are numbered by something else.
    pub(crate) fn finalize_cat(
        self,
        wants_bits: bool,
        memory: &mut Reservation,
        tasks: &dyn Tasks,
    ) -> Result<FinalCat> {
        self.check()?;
        let PrecountedRows { parts, numbers, placing, .. } = self;
        let Numbering::Places(packing) = parts.numbering().clone() else {
            panic!("rows that have no places")
        };
        let mut room = Directory::room(packing.places());
        let (_, words) = room.split_last_mut().expect("there is one more");
        let mut numbers: Vec<Option<Buffer>> =
            numbers.into_iter().map(|own| Some(own.into_buffer())).collect();
        let mut keys = vec![0usize; parts.count()];
        let work = cut(words, parts.words()).into_iter().zip(&mut numbers).zip(&mut keys).collect();
        in_parallel(tasks, work, &|part, ((words, numbers), keys)| {
            let rows = parts.rows(part);
            let own = &numbers.as_ref().expect("nobody has taken them").as_slice::<u32>()[..rows.len()];
            **keys = own.iter().map(|&number| usize::from(take(words, number))).sum();
            if **keys == rows.len() {
                count(words, rows.start);
                placing.finalize(rows.clone(), &ranks(words, own, rows.start));
                // Freed as soon as they are not needed.
                **numbers = None;
            }
            Ok(())
        })?;
        let distinct: usize = keys.iter().sum();
        let is_unique = distinct == parts.all_rows();
        if !is_unique {
            memory.resize(memory.bytes() + 4 * (distinct + 1))?;
        }
        let mut firsts = vec![0u32; if is_unique { 0 } else { distinct + 1 }];
        if !is_unique {
            let key_starts: Vec<usize> =
                keys.iter().scan(0, |next, keys| Some(std::mem::replace(next, *next + keys))).collect();
            // What is counted up for a key ends as the start of the next key.
            let firsts = cut(&mut firsts[1..], keys.iter().copied());
            let work = cut(words, parts.words()).into_iter().zip(&mut numbers).zip(firsts).collect();
            in_parallel(tasks, work, &|part, ((words, numbers), firsts)| {
                let rows = parts.rows(part);
                count(words, key_starts[part]);
                let Some(numbers) = numbers.take() else {
                    firsts.iter_mut().zip(rows.start as u32 + 1..).for_each(|(to, next)| *to = next);
                    return Ok(());
                };
                let mut to = ranks(words, &numbers.as_slice::<u32>()[..rows.len()], key_starts[part]);
                to.iter().for_each(|&rank| firsts[rank as usize] += 1);
                let mut next = rows.start as u32;
                firsts.iter_mut().for_each(|first| next += std::mem::replace(first, next));
                for to in &mut to {
                    let next = &mut firsts[*to as usize];
                    *to = *next - rows.start as u32;
                    *next += 1;
                }
                placing.finalize(rows, &to);
                Ok(())
            })?;
        }
        let bits = match wants_bits {
            true => Some(Arc::new(Bits::of_directory(words, (parts.all_rows(), distinct), tasks)?)),
            false => None,
        };
        let directory = (distinct as u64 != packing.places()).then(|| Directory::of(room));
        let table = Cat::of(packing, directory, firsts, distinct);
        Ok(FinalCat { table, rows: placing.into_rows(), bits })
    }
}

/// Sets the bit of a number. True if it was not set.
#[inline(always)]
pub(super) fn take(words: &mut [u64], number: u32) -> bool {
    let (word, bit) = (&mut words[number as usize / 32], 1 << (number % 32));
    let is_free = *word & bit == 0;
    *word |= bit;
    is_free
}

/// The ranks of numbers in counted words, minus `before`.
pub(super) fn ranks(words: &[u64], numbers: &[u32], before: usize) -> Vec<u32> {
    let (mut ranks, mut places) = (vec![0; numbers.len()], [0; BLOCK]);
    for (numbers, ranks) in numbers.chunks(BLOCK).zip(ranks.chunks_mut(BLOCK)) {
        let places = &mut places[..numbers.len()];
        places.iter_mut().zip(numbers).for_each(|(to, &number)| *to = u64::from(number));
        write_ranks(words, places, ranks);
        ranks.iter_mut().for_each(|rank| *rank -= before as u32);
    }
    ranks
}
