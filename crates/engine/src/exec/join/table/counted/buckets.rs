//! Keys by bucket, for a CHT.
//!
//! A bucket is *owned* if it is the bucket of some row's hash, *shared* if it is that of several. The first row of a shared bucket stands
//! there, the second one in the next bucket if that is not owned, all others overflow. So which buckets are taken does not depend on
//! the order in which rows come, which differs from reading to reading; other than in a table that is built by partitions, a row gives way
//! to those that own the next bucket.
//!
//! In the second reading a row whose bucket is not shared has its rank as its id. Rows of shared buckets claim theirs. What is
//! asked of a bucket then, whether it is shared and whether it was given to a second row, stands by rank: a bit for each row, not for each
//! bucket, so that it stays in the caches.

use super::super::bits::TASK_WORDS;
use super::super::chained::Chained;
use super::super::cht::{Buckets, Cht};
use super::super::directory::Directory;
use super::super::{BuildInput, JoinTable, NO_ROW, ProbeKeys};
use super::{Placer, without_unmatchable};
use crate::exec::ahead::{BLOCK, ask};
use crate::exec::join::held_back::part_of_hash;
use crate::exec::operator::{Tasks, in_parallel};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{Array, Result};
use std::borrow::Borrow;
use std::ops::Range;

/// Rows by bucket while they are counted, by one worker.
pub(crate) struct BucketCount {
    buckets: Buckets,
    /// A bit a bucket, 64 in a word.
    owned: Array<u64>,
    shared: Array<u64>,
    rows: usize,
}

impl BucketCount {
    /// The bytes of counting about so many rows.
    pub(crate) fn bytes_for(rows: usize) -> usize {
        2 * Array::<u64>::bytes_for(Buckets::for_rows(rows).words())
    }

    /// No rows yet, of which about so many are expected.
    pub(crate) fn new(rows: usize) -> BucketCount {
        let buckets = Buckets::for_rows(rows);
        let none = || Array::zeroed(buckets.words());
        BucketCount { buckets, owned: none(), shared: none(), rows: 0 }
    }

    /// Counts the rows of a chunk but those that nothing equals.
    pub(crate) fn add(&mut self, keys: &mut ProbeKeys) {
        let (rows, hashes) = keys.hashes();
        let count = rows.map_or(hashes.len(), <[u16]>::len);
        let buckets = self.buckets;
        let (owned, shared) = (&mut *self.owned, &mut *self.shared);
        let at = |bucket: u64| ((bucket / 64) as usize, 1 << (bucket % 64));
        let (mut block, mut again) = ([0; BLOCK], [0; BLOCK]);
        for first in (0..count).step_by(BLOCK) {
            let block = &mut block[..(count - first).min(BLOCK)];
            match rows {
                None => block.iter_mut().zip(&hashes[first..]).for_each(|(to, &hash)| *to = buckets.of(hash)),
                Some(rows) => {
                    let hashes = rows[first..].iter().map(|&row| hashes[usize::from(row)]);
                    block.iter_mut().zip(hashes).for_each(|(to, hash)| *to = buckets.of(hash));
                }
            }
            ask(owned, block, |bucket| at(bucket).0);
            // PERF: without a branch that nothing foresees.
            let mut repeated = 0;
            for &bucket in &*block {
                let (word, bit) = at(bucket);
                let old = owned[word];
                again[repeated] = bucket;
                repeated += usize::from(old & bit != 0);
                owned[word] = old | bit;
            }
            for &bucket in &again[..repeated] {
                let (word, bit) = at(bucket);
                shared[word] |= bit;
            }
        }
        self.rows += count;
    }

    /// Adds what another worker has counted.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn absorb(&mut self, other: &BucketCount, tasks: &dyn Tasks) -> Result<()> {
        let own = self.owned.chunks_mut(TASK_WORDS).zip(self.shared.chunks_mut(TASK_WORDS));
        let more = other.owned.chunks(TASK_WORDS).zip(other.shared.chunks(TASK_WORDS));
        in_parallel(tasks, own.zip(more).collect(), &|_, ((owned, shared), more)| {
            let own = owned.iter_mut().zip(&mut **shared);
            for ((owned, shared), (&more_owned, &more_shared)) in own.zip(more.0.iter().zip(more.1)) {
                *shared |= more_shared | *owned & more_owned;
                *owned |= more_owned;
            }
            Ok(())
        })?;
        self.rows += other.rows;
        Ok(())
    }

    /// What all workers have counted.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn finish(self, tasks: &dyn Tasks) -> Result<CountedBuckets> {
        let ranked = AtomicUsize::new(0);
        tasks.run(self.owned.len().div_ceil(TASK_WORDS), &|part| {
            ranked.fetch_add(widest_of(CountTaken(&self, self.words_of(part))), Ordering::Relaxed);
            Ok(())
        })?;
        Ok(CountedBuckets { count: self, ranked: ranked.into_inner() })
    }

    /// The words of a task.
    fn words_of(&self, part: usize) -> Range<usize> {
        part * TASK_WORDS..((part + 1) * TASK_WORDS).min(self.owned.len())
    }

    /// The buckets that second rows are given, 64 in a word.
    #[inline(always)]
    fn given_words(&self, words: Range<usize>) -> impl Iterator<Item = u64> + '_ {
        // A bucket's next one is in the same partition, of whole words, which are a power of two.
        let of_partition = self.buckets.partition_words();
        let next = move |at: usize| {
            let before = if at & (of_partition - 1) == 0 { at + of_partition - 1 } else { at - 1 };
            self.shared[at] << 1 | self.shared[before] >> 63
        };
        words.map(move |at| next(at) & !self.owned[at])
    }

    /// The buckets that are taken.
    #[inline(always)]
    fn taken_words(&self, words: Range<usize>) -> impl Iterator<Item = u64> + '_ {
        self.owned[words.clone()].iter().zip(self.given_words(words)).map(|(owned, given)| owned | given)
    }
}

/// Which buckets are taken.
pub(crate) struct CountedBuckets {
    count: BucketCount,
    /// Rows that have a bucket.
    ranked: usize,
}

impl CountedBuckets {
    /// Rows that have a key.
    pub(crate) fn rows(&self) -> usize {
        self.count.rows
    }

    /// Those that overflow.
    pub(crate) fn overflow(&self) -> usize {
        self.count.rows - self.ranked
    }

    /// The bytes of the placer and of its table, at most, and of making it.
    pub(crate) fn bytes(&self) -> usize {
        let (places, taken) = (self.count.buckets.count(), Array::<u64>::bytes_for(self.count.owned.len()));
        taken
            + Directory::bytes_for(places)
            + 3 * Array::<u64>::bytes_for(self.ranked.div_ceil(64) + 1)
            + Chained::bytes_for(self.overflow())
    }

    /// Tells rows their ids.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn placer(self, tasks: &dyn Tasks) -> Result<Box<dyn Placer>> {
        let CountedBuckets { count, ranked } = self;
        let mut taken = Array::zeroed(count.owned.len());
        in_parallel(tasks, taken.chunks_mut(TASK_WORDS).collect(), &|part, taken| {
            taken.iter_mut().zip(count.taken_words(count.words_of(part))).for_each(|(to, word)| *to = word);
            Ok(())
        })?;
        let directory = Directory::of_bits(&taken, tasks)?;
        let none = || (0..ranked.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (shared, given): (Vec<AtomicU64>, Vec<AtomicU64>) = (none(), none());
        in_parallel(tasks, taken.chunks(TASK_WORDS).collect(), &|part, taken| {
            let words = count.words_of(part);
            let before = directory.before(64 * words.start as u64);
            let marks = &count.shared[words.clone()];
            widest_of(MarkByRank { taken, before, marks, by_rank: &shared });
            widest_of(MarkByRank { taken, before, marks: count.given_words(words), by_rank: &given });
            Ok(())
        })?;
        Ok(Box::new(BucketPlacer {
            table: Cht::of(count.buckets, directory),
            shared,
            given,
            claimed: none(),
            ranked,
            overflow: AtomicUsize::new(0),
        }))
    }
}

/// How many buckets of some words are taken.
struct CountTaken<'a>(&'a BucketCount, Range<usize>);

impl Kernel for CountTaken<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        self.0.taken_words(self.1).map(|word| word.count_ones() as usize).sum()
    }
}

/// Marks of taken buckets, by the buckets' ranks. Few are marked, and only these are gone through.
struct MarkByRank<'a, M> {
    taken: &'a [u64],
    /// Buckets that are taken before these.
    before: usize,
    marks: M,
    /// Tasks share the words at their ends.
    by_rank: &'a [AtomicU64],
}

impl<M: IntoIterator<Item: Borrow<u64>>> Kernel for MarkByRank<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (mut before, mut word, mut at) = (self.before, 0, self.before / 64);
        let write = |at: usize, word: u64| {
            if word != 0 {
                self.by_rank[at].fetch_or(word, Ordering::Relaxed);
            }
        };
        for (&taken, marks) in self.taken.iter().zip(self.marks) {
            let mut left = *marks.borrow();
            while left != 0 {
                let bit = left & left.wrapping_neg();
                let rank = before + (taken & (bit - 1)).count_ones() as usize;
                if rank / 64 != at {
                    write(at, word);
                    (word, at) = (0, rank / 64);
                }
                word |= 1 << (rank % 64);
                left ^= bit;
            }
            before += taken.count_ones() as usize;
        }
        write(at, word);
    }
}

struct BucketPlacer {
    table: Cht,
    /// By rank, whether several rows have this bucket.
    shared: Vec<AtomicU64>,
    /// By rank, whether the bucket is a second row's.
    given: Vec<AtomicU64>,
    /// By rank, whether a row has claimed it.
    claimed: Vec<AtomicU64>,
    ranked: usize,
    /// Rows that have overflowed.
    overflow: AtomicUsize,
}

impl BucketPlacer {
    fn claim(&self, rank: u32) -> bool {
        let (word, bit) = (&self.claimed[rank as usize / 64], 1 << (rank % 64));
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// The id of a row whose bucket, which has this rank, is that of others as well.
    fn id_in_shared(&self, hash: u64, rank: u32) -> u32 {
        if self.claim(rank) {
            return rank;
        }
        let next = self.table.next_rank(hash);
        if next != NO_ROW && is_set(&self.given, next) && self.claim(next) {
            return next;
        }
        (self.ranked + self.overflow.fetch_add(1, Ordering::Relaxed)) as u32
    }
}

#[inline(always)]
fn is_set(words: &[AtomicU64], rank: u32) -> bool {
    words[rank as usize / 64].load(Ordering::Relaxed) >> (rank % 64) & 1 != 0
}

impl Placer for BucketPlacer {
    fn parts(&self, keys: &mut ProbeKeys, parts: &mut Vec<u8>) {
        parts.extend(keys.hashes().1.iter().map(|&hash| part_of_hash(hash)));
    }

    fn ids(&self, keys: &mut ProbeKeys, ids: &mut Vec<u32>) {
        let (rows, hashes) = keys.hashes();
        ids.resize(hashes.len(), NO_ROW);
        self.table.ranks(hashes, ids);
        // They must not claim a bucket.
        without_unmatchable(rows, ids);
        for (ids, hashes) in ids.chunks_mut(BLOCK).zip(hashes.chunks(BLOCK)) {
            ask(&self.shared, ids, |id| id as usize / 64);
            // PERF: an eighth of the rows, which no branch foresees.
            let (mut of_shared, mut count) = ([0; BLOCK], 0);
            for (i, &id) in ids.iter().enumerate() {
                of_shared[count] = i as u16;
                count += usize::from(id != NO_ROW && is_set(&self.shared, id));
            }
            let of_shared = &of_shared[..count];
            ask(&self.claimed, of_shared, |i| ids[usize::from(i)] as usize / 64);
            for i in of_shared.iter().map(|&i| usize::from(i)) {
                ids[i] = self.id_in_shared(hashes[i], ids[i]);
            }
        }
    }

    fn finish(mut self: Box<Self>, input: &BuildInput<'_>) -> Result<Box<dyn JoinTable>> {
        let overflow = self.overflow.into_inner();
        self.table.add_overflow(input, self.ranked..self.ranked + overflow)?;
        Ok(Box::new(self.table))
    }
}
