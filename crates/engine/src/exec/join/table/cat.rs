//! The concise array table: places are the keys themselves, and rows are stored in their order (Barber et
//! al., section 2.4).
//!
//! A directory tells which places are taken, and a key's rank is the id of its row, since the rows have been
//! moved to their ranks. No key is stored or compared, and rows of neighbouring keys are neighbours. If every
//! place is taken, ranks are places and there is no directory. Rows of one key are adjacent, and a list gives
//! where each key's rows start.
//!
//! If the bounds of a single key are too wide, the packing may be a window over most of the keys. Rows
//! outside it are stored after the others and found by hash; these candidates must be compared, and come when
//! there are no others left.
//!
//! Build: rows by partition of their places; bits; counts; the order of the rows. Then the rows move.

use super::chained::Chained;
use super::directory::{Directory, NO_RANK, count, rank_in};
use super::partitions::{Partitions, cut, shift_for};
use super::{Arranged, Cursor, JoinTable, NO_ROW, Pairs, ProbeKeys};
use crate::exec::key_filter::{BuildInput, OUTSIDE, Packing, for_each_batch};
use crate::exec::materialized::Materialized;
use crate::exec::operator::in_parallel;
use crate::sync::{Mutex, lock};
use entasis_vector::Result;
use entasis_vector::simd::widest;

/// Ranks of keys as row ids.
pub(crate) struct Cat {
    packing: Packing,
    /// The directory; absent if every place is taken.
    directory: Option<Directory>,
    /// The first row of each key, by rank, and the end; empty if no key occurs twice.
    firsts: Vec<u32>,
    /// Distinct keys inside the packing.
    keys: usize,
    /// Rows outside the packing, by hash.
    outside: Option<Chained>,
}

impl Cat {
    /// The table, and the order that the rows must be moved to. `apart` has the keys of each segment if the
    /// rows do not have them any more; they are freed.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn build(
        input: &BuildInput<'_>,
        packing: Packing,
        apart: Vec<Materialized>,
    ) -> Result<(Cat, Arranged)> {
        let (rows, tasks, places) = (input.rows, input.tasks, packing.places());
        let apart: Vec<Mutex<Option<Materialized>>> =
            apart.into_iter().map(|keys| Mutex::new(Some(keys))).collect();
        let of = |segment: usize, give: &mut dyn FnMut(usize, &[u64])| match apart.get(segment) {
            None => for_each_batch(rows, segment, &packing, give),
            Some(keys) => lock(keys).iter().for_each(|keys| for_each_batch(keys, 0, &packing, give)),
        };
        let done = |segment: usize| apart.get(segment).into_iter().for_each(|keys| *lock(keys) = None);
        let mut partitions =
            Partitions::spread(rows, places, shift_for(places, rows.rows()), &of, &done, tasks)?;

        let mut room = Directory::room(places);
        let (_, words) = room.split_last_mut().expect("there is one more");
        let mut keys = vec![0usize; partitions.count()];
        let parts = words.chunks_mut(partitions.words()).zip(&mut keys).collect();
        in_parallel(tasks, parts, &|partition, (words, keys)| {
            partitions.rows(partition).for_each(|(place, _)| words[place / 32] |= 1 << (place % 32));
            **keys = words.iter().map(|word| word.count_ones() as usize).sum();
            Ok(())
        })?;

        let ranked = partitions.start(partitions.count());
        let distinct: usize = keys.iter().sum();
        let is_unique = distinct == ranked;
        let mut order = vec![0; rows.rows()];
        let mut firsts = vec![0u32; if is_unique { 0 } else { distinct + 1 }];
        let key_starts: Vec<usize> =
            keys.iter().scan(0, |next, keys| Some(std::mem::replace(next, *next + keys))).collect();
        let entries = partitions.take();
        let first_lengths = keys.iter().map(|&keys| if is_unique { 0 } else { keys });
        let parts =
            words.chunks_mut(partitions.words()).zip(cut(&mut order, partitions.lengths())).zip(entries);
        // What is counted up for a key ends as the start of the next key.
        let parts = parts.zip(cut(firsts.get_mut(1..).unwrap_or_default(), first_lengths)).collect();
        in_parallel(tasks, parts, &|partition, (((words, order), entries), firsts)| {
            // Freed at the end of the task.
            let entries = std::mem::take(entries);
            let (first_key, first_row) = (key_starts[partition], partitions.start(partition));
            count(words, first_key);
            let rank = |place: usize| rank_in(words[place / 32], place as u64) - first_key;
            if is_unique {
                entries.rows().for_each(|(place, id)| order[rank(place)] = id);
                return Ok(());
            }
            entries.rows().for_each(|(place, _)| firsts[rank(place)] += 1);
            let mut next = first_row as u32;
            firsts.iter_mut().for_each(|first| next += std::mem::replace(first, next));
            for (place, id) in entries.rows() {
                let next = &mut firsts[rank(place)];
                order[*next as usize - first_row] = id;
                *next += 1;
            }
            Ok(())
        })?;
        let rest = partitions.outside().chain(partitions.nowhere());
        order[ranked..].iter_mut().zip(rest).for_each(|(to, id)| *to = id);
        let arranged = Arranged { order, ranked, overflow: partitions.outside().count() };
        let directory = (distinct as u64 != places).then(|| Directory::of(room));
        Ok((Cat::of(packing, directory, firsts, distinct), arranged))
    }

    /// The table of `keys` distinct keys; no directory means that every place is taken. `firsts`: the first
    /// row of each key, by rank, and the end; empty if no key occurs twice.
    pub(super) fn of(packing: Packing, directory: Option<Directory>, firsts: Vec<u32>, keys: usize) -> Cat {
        Cat { packing, directory, firsts, keys, outside: None }
    }

    /// Adds the rows outside the packing, which are already in this order in `input`.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn add_outside(&mut self, input: &BuildInput<'_>, arranged: &Arranged) -> Result<()> {
        if arranged.overflow > 0 {
            self.outside = Some(Chained::over(input, &[arranged.overflow_ids()], true)?);
        }
        Ok(())
    }

    /// True if no key inside the packing occurs twice.
    pub(super) fn is_unique(&self) -> bool {
        self.firsts.is_empty()
    }

    /// True if every place is taken.
    pub(super) fn is_full(&self) -> bool {
        self.directory.is_none()
    }

    /// The bounds of the packing, if it is for a single key.
    pub(super) fn window(&self) -> (i64, i64) {
        self.packing.window()
    }

    /// How keys become places.
    pub(crate) fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Distinct keys inside the packing.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// Writes the ranks of the keys at `places`.
    #[inline(always)]
    fn ranks(&self, places: &[u64], ranks: &mut [u32]) {
        match &self.directory {
            None => widest(|| {
                ranks.iter_mut().zip(places).for_each(|(to, &place)| {
                    *to = if place < self.keys as u64 { place as u32 } else { NO_RANK };
                });
            }),
            Some(directory) => directory.ranks(places, ranks),
        }
    }

    /// When there are no candidates left, moves on to the rows outside.
    fn go_outside(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        if let Some(outside) = &self.outside
            && pairs.len() == 0
            && !cursor.late.is_empty()
        {
            cursor.is_late = true;
            outside.first_of(&cursor.late, keys.hashes().1, pairs);
        }
    }
}

impl JoinTable for Cat {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        cursor.begin();
        let (rows, places) = keys.places(&self.packing);
        let ranks = cursor.heads(places.len());
        self.ranks(places, ranks);
        if self.firsts.is_empty() {
            pairs.take(rows, ranks);
        } else {
            let Cursor { heads: ranks, ends, .. } = cursor;
            ends.resize(ranks.len(), 0);
            pairs.fill(rows, places.len(), |row| {
                let Some(&[first, end]) =
                    self.firsts.get(ranks[row] as usize..).and_then(|f| f.first_chunk::<2>())
                else {
                    return NO_ROW;
                };
                ends[row] = end;
                first
            });
        }
        if self.outside.is_some() {
            let is_outside = |row: &u16| places[*row as usize] == OUTSIDE;
            match rows {
                None => cursor.late.extend((0..places.len() as u16).filter(is_outside)),
                Some(rows) => cursor.late.extend(rows.iter().copied().filter(is_outside)),
            }
            self.go_outside(keys, pairs, cursor);
        }
    }
    fn next(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        if let (true, Some(outside)) = (cursor.is_late, &self.outside) {
            return outside.advance(pairs);
        }
        if self.firsts.is_empty() {
            pairs.clear();
        } else {
            pairs.step(&cursor.ends);
        }
        self.go_outside(keys, pairs, cursor);
    }
    fn is_exact(&self, cursor: &Cursor) -> bool {
        !cursor.is_late
    }
    fn bytes(&self) -> usize {
        let directory = self.directory.as_ref().map_or(0, Directory::bytes);
        directory + self.firsts.len() * 4 + self.outside.as_ref().map_or(0, Chained::bytes)
    }
}
