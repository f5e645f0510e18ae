//! The concise hash table: a linear probing table with eight buckets per row, of which only the taken ones
//! are stored (Barber et al., section 2).
//!
//! A directory tells which buckets are taken; a bucket's rank is the id of its row, since the rows, with
//! their keys, have been moved to their ranks. A row is in the bucket of its hash or, if that is taken, in
//! the next one of its partition; if that is taken too, the row *overflows*: it is stored after the others,
//! in a chained table under a second hash. So a probe has at most two adjacent candidates, and only if both
//! buckets are taken may there be more. Rows of keys that occur more than twice overflow, so the table suits
//! keys that are hardly repeated.
//!
//! A probe runs in rounds over a chunk: all first buckets, then all second ones, then the overflow. No access
//! of a round depends on another.
//!
//! Build: rows by partition of their buckets; a first pass takes buckets; a second pass over the rows in the
//! same order takes the same ones, and so assigns each row its bucket. The table with empty buckets never
//! exists.
//!
//! Unlike in the paper, the second hash is a hash of the first one's 64 bits: keys that agree in all of these
//! collide in both.

use super::chained::Chained;
use super::directory::{Directory, NO_RANK, count, rank, rank_after, rank_in};
use super::partitions::{Partitions, cut, shift_for};
use super::{Arranged, Cursor, JoinTable, NARROW, NO_ROW, Pairs, ProbeKeys, scale, scale_narrow};
use crate::exec::key_filter::{BuildInput, KeyHashes, NOWHERE};
use crate::exec::operator::in_parallel;
use crate::exec::prefetch::BLOCK;
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{CHUNK_ROWS, Result};
use std::ops::Range;

/// Buckets per row.
const SPARSITY: u64 = 8;

/// The binary logarithm of the buckets in a word of the directory: partitions have whole words.
const WORD_SHIFT: u32 = 5;

/// Ranks of buckets as row ids.
pub(crate) struct Cht {
    buckets: Buckets,
    directory: Directory,
    /// Rows that found no bucket, if there are any.
    overflow: Option<Chained>,
}

/// The number of buckets, in partitions of equal size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets {
    count: u64,
    shift: u32,
}

impl Buckets {
    pub(super) fn for_rows(rows: usize) -> Buckets {
        let wanted = (rows as u64 * SPARSITY).max(1);
        let shift = shift_for(wanted, rows).max(WORD_SHIFT);
        Buckets { count: wanted.next_multiple_of(1 << shift), shift }
    }
    /// The number of buckets.
    pub(super) fn count(self) -> u64 {
        self.count
    }
    /// The binary logarithm of the buckets of a partition.
    pub(super) fn shift(self) -> u32 {
        self.shift
    }
    /// Writes the bucket of each hash.
    pub(super) fn write(self, hashes: &[u64], out: &mut [u64]) {
        widest_of(Places { buckets: self, hashes, own: out, after: &mut [] });
    }
    /// The bucket of a hash.
    #[inline(always)]
    fn of(self, hash: u64) -> u64 {
        scale(hash, self.count)
    }
    /// The bucket after `bucket`, in the same partition.
    #[inline(always)]
    pub(super) fn after(self, bucket: u64) -> u64 {
        let within = (1 << self.shift) - 1;
        bucket & !within | (bucket + 1) & within
    }
}

impl Cht {
    /// The table, and the order that the rows must be moved to.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(super) fn build(input: &BuildInput<'_>) -> Result<(Cht, Arranged)> {
        let (rows, tasks, buckets) = (input.rows, input.tasks, Buckets::for_rows(input.rows.rows()));
        let of = |segment: usize, give: &mut dyn FnMut(usize, &[u64])| {
            let mut keys = KeyHashes::new(input);
            let mut places = [0u64; CHUNK_ROWS];
            keys.for_each(input, segment, 0..rows.segment_rows(segment), |first, hashes, nulls| {
                let places = &mut places[..hashes.len()];
                places.iter_mut().zip(hashes).for_each(|(to, &hash)| *to = buckets.of(hash));
                nulls.iter().for_each(|&i| places[i as usize] = NOWHERE);
                give(first, places);
            });
        };
        let mut partitions = Partitions::spread(rows, buckets.count, buckets.shift, &of, &|_| {}, tasks)?;
        let within = Buckets { count: 1 << buckets.shift, ..buckets };
        let after = |bucket: usize| within.after(bucket as u64) as usize;

        let mut room = Directory::room(buckets.count);
        let (_, words) = room.split_last_mut().expect("there is one more");
        let mut taken = vec![0usize; partitions.count()];
        let parts = words.chunks_mut(partitions.words()).zip(&mut taken).collect();
        in_parallel(tasks, parts, &|partition, (words, taken)| {
            let mut take = |bucket: usize| {
                let (word, bit) = (&mut words[bucket / 32], 1 << (bucket % 32));
                let is_free = *word & bit == 0;
                *word |= bit;
                is_free
            };
            for (bucket, _) in partitions.rows(partition) {
                **taken += usize::from(take(bucket) || take(after(bucket)));
            }
            Ok(())
        })?;

        let with_place = partitions.start(partitions.count());
        let ranked: usize = taken.iter().sum();
        let mut order = vec![0; rows.rows()];
        let (in_buckets, rest) = order.split_at_mut(ranked);
        let starts: Vec<usize> =
            taken.iter().scan(0, |next, taken| Some(std::mem::replace(next, *next + taken))).collect();
        let parts = words.chunks_mut(partitions.words()).zip(cut(in_buckets, taken.iter().copied()));
        let overflowing = partitions.lengths().zip(&taken).map(|(rows, taken)| rows - taken);
        let overflowing = cut(rest, overflowing);
        let parts = parts.zip(overflowing).zip(partitions.take()).collect();
        in_parallel(tasks, parts, &|partition, (((words, order), overflow), entries)| {
            // Freed at the end of the task.
            let entries = std::mem::take(entries);
            order.fill(NO_ROW);
            count(words, starts[partition]);
            let rank = |bucket: usize| {
                let word = words[bucket / 32];
                let is_taken = word >> (bucket % 32) & 1 != 0;
                is_taken.then(|| rank_in(word, bucket as u64) - starts[partition])
            };
            let mut overflow = overflow.iter_mut();
            for (bucket, id) in entries.rows() {
                let own = rank(bucket).filter(|&rank| order[rank] == NO_ROW);
                match own.or_else(|| rank(after(bucket)).filter(|&rank| order[rank] == NO_ROW)) {
                    Some(rank) => order[rank] = id,
                    None => *overflow.next().expect("as many as have no bucket") = id,
                }
            }
            Ok(())
        })?;
        order[with_place..].iter_mut().zip(partitions.nowhere()).for_each(|(to, id)| *to = id);
        let arranged = Arranged { order, ranked, overflow: with_place - ranked };
        Ok((Cht { buckets, directory: Directory::of(room), overflow: None }, arranged))
    }

    /// The table of the taken buckets, without overflow.
    pub(super) fn of(buckets: Buckets, directory: Directory) -> Cht {
        Cht { buckets, directory, overflow: None }
    }

    /// Adds the rows that overflow, which have these ids in `input`, ascending.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn add_overflow(&mut self, input: &BuildInput<'_>, ids: &[Range<usize>]) -> Result<()> {
        if !ids.is_empty() {
            self.overflow = Some(Chained::over(input, ids, true)?);
        }
        Ok(())
    }

    /// Writes the rank of each hash's bucket, and that of the next bucket if both are taken; otherwise
    /// [`NO_RANK`].
    fn look_up(&self, hashes: &[u64], own: &mut [u32], after: &mut [u32]) {
        let none = [0; BLOCK];
        let mut looked = Looked { own: none, after: none, own_words: none, after_words: none };
        let out = own.chunks_mut(BLOCK).zip(after.chunks_mut(BLOCK));
        for (hashes, (own, after)) in hashes.chunks(BLOCK).zip(out) {
            let Looked { own: places, after: next, own_words, after_words } = &mut looked;
            let (places, next) = (&mut places[..hashes.len()], &mut next[..hashes.len()]);
            widest_of(Places { buckets: self.buckets, hashes, own: places, after: next });
            self.directory.gather(places, own_words);
            self.directory.fetch_neighbours(next, after_words);
            widest_of(Ranks { looked: &looked, own, after });
        }
    }
}

/// The bucket of each hash, and the next one for as many as there is room.
struct Places<'a> {
    buckets: Buckets,
    hashes: &'a [u64],
    own: &'a mut [u64],
    after: &'a mut [u64],
}

impl Kernel for Places<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Places { buckets, hashes, own, after } = self;
        if buckets.count <= NARROW {
            own.iter_mut().zip(hashes).for_each(|(to, &hash)| *to = scale_narrow(hash, buckets.count));
        } else {
            own.iter_mut().zip(hashes).for_each(|(to, &hash)| *to = buckets.of(hash));
        }
        after.iter_mut().zip(own).for_each(|(to, &mut bucket)| *to = buckets.after(bucket));
    }
}

/// A block of hashes: their buckets and the next ones, and the words of both.
struct Looked {
    own: [u64; BLOCK],
    after: [u64; BLOCK],
    own_words: [u64; BLOCK],
    after_words: [u64; BLOCK],
}

/// The rank of each bucket, and that of the next bucket if both are taken; otherwise [`NO_RANK`].
// PERF: a branch-free loop, for vector code: a loop over rows that wrote pairs as it went took half as long
// again.
struct Ranks<'a> {
    looked: &'a Looked,
    own: &'a mut [u32],
    after: &'a mut [u32],
}

impl Kernel for Ranks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Ranks { looked, own, after } = self;
        let own_places = looked.own.iter().zip(&looked.own_words);
        let after_places = looked.after.iter().zip(&looked.after_words);
        let out = own.iter_mut().zip(after);
        for (((own, after), (&bucket, &word)), (&next, &next_word)) in out.zip(own_places).zip(after_places) {
            *own = rank(word, bucket);
            let rank = rank_after((bucket, *own), next_word, next);
            *after = if *own == NO_RANK { NO_RANK } else { rank };
        }
    }
}

impl JoinTable for Cht {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        cursor.begin();
        let (rows, hashes) = keys.hashes();
        let [own, after] = cursor.heads_and_ends(hashes.len());
        self.look_up(hashes, own, after);
        pairs.take(rows, own);
        let Cursor { ends: after, second, .. } = cursor;
        second.fill(rows, hashes.len(), |row| after[row]);
    }
    fn next(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        if let (true, Some(overflow)) = (cursor.is_late, &self.overflow) {
            return overflow.advance(pairs);
        }
        // The first call returns the second buckets; the next one, none.
        std::mem::swap(pairs, &mut cursor.second);
        cursor.second.clear();
        if self.overflow.is_some() {
            cursor.late.extend_from_slice(&pairs.rows);
        }
        if let Some(overflow) = &self.overflow
            && pairs.len() == 0
            && !cursor.late.is_empty()
        {
            cursor.is_late = true;
            overflow.first_of(&cursor.late, keys.known_hashes(), pairs);
        }
    }
    fn is_exact(&self, _: &Cursor) -> bool {
        false
    }
    fn is_by_hash(&self) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.directory.bytes() + self.overflow.as_ref().map_or(0, Chained::bytes)
    }
}
