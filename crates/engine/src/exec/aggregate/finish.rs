//! The end of an aggregation: partials of all workers become parts whose groups are each other's strangers.
//!
//! Few groups, groups that are found without hashing, and states that only merge whole are merged into the largest
//! partial, one after another. Other groups are sealed and partitioned by hash, and then each partition is merged into a small table of its own, all partitions in
//! parallel. A single partial without duplicates is a part as it is.

use super::layout::Layout;
use super::partial::{Partial, Sealed};
use super::state::{State, lock};
use super::table::{GroupTable, Partition};
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::operator::Tasks;
use crate::exec::{QueryContext, Reservation};
use crate::sync::{AtomicUsize, Mutex, Ordering};
use entasis_vector::Result;
use std::ops::Range;
use std::sync::Arc;

/// Up to so many groups in all partials together are merged on one thread.
const FEW_GROUPS: usize = 16 << 10;
/// Groups that a partition should have at most.
const PARTITION_GROUPS: usize = 32 << 10;
/// Rows of a result morsel.
const MORSEL_ROWS: usize = 16 << 10;

/// Groups with their final states.
pub struct Part {
    /// The keys; row ids are 0, 1, 2, …
    pub keys: Materialized,
    /// The states, ready to be read.
    pub states: Vec<State>,
    /// Groups.
    pub groups: usize,
    _reservation: Reservation,
}

impl Part {
    /// The groups of a completed partial, without its hash table.
    pub fn new(partial: Partial) -> Result<Part> {
        let (groups, states, mut reservation) = (partial.table.groups(), partial.states, partial.reservation);
        let keys = partial.table.into_keys();
        reservation.resize(keys.bytes() + states.iter().map(State::bytes).sum::<usize>())?;
        Ok(Part { keys, states, groups, _reservation: reservation })
    }
}

/// Merges `partials`, and completes them.
///
/// # Errors
/// Those of the states; resource.
pub fn merge_partials(
    layout: &Layout,
    context: &QueryContext,
    mut partials: Vec<Partial>,
    tasks: &dyn Tasks,
) -> Result<Vec<Part>> {
    let collide = context.settings.hash_collisions;
    let groups: usize = partials.iter().map(|partial| partial.table.groups()).sum();
    let is_done = partials.len() == 1 && partials[0].table.is_unique();
    let is_cheap = groups <= FEW_GROUPS || partials.iter().all(|partial| partial.table.is_direct());
    if is_done || is_cheap || layout.merges_whole() || layout.keys.is_empty() {
        let largest = (0..partials.len())
            .filter(|&at| partials[at].table.is_unique())
            .max_by_key(|&at| partials[at].table.groups());
        let mut whole = match largest {
            Some(at) => partials.swap_remove(at),
            None if layout.keys.is_empty() => Partial::new(layout, GroupTable::new(&[], 0, collide), context)?,
            None => Partial::new(layout, GroupTable::hashed(&layout.keys, groups, collide), context)?,
        };
        for partial in partials {
            context.check()?;
            whole.absorb(partial)?;
        }
        whole.complete(layout, tasks)?;
        return Ok(vec![Part::new(whole)?]);
    }
    let bits = groups.div_ceil(PARTITION_GROUPS).next_power_of_two().trailing_zeros().clamp(4, 10);
    let waiting: Vec<Mutex<Option<Partial>>> = partials.into_iter().map(|partial| Mutex::new(Some(partial))).collect();
    let sealed: Mutex<Vec<Sealed>> = Mutex::default();
    tasks.run(waiting.len(), &|i| {
        let partial = lock(&waiting[i]).take().expect("each task runs once");
        let partial = partial.seal(bits)?;
        lock(&sealed).push(partial);
        Ok(())
    })?;
    let sealed = sealed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let parts: Mutex<Vec<Part>> = Mutex::default();
    tasks.run(1 << bits, &|partition| {
        context.check()?;
        let partition = Partition::ALL.part(partition, bits);
        let expected = sealed.iter().map(|sealed| sealed.most_groups(partition)).sum();
        let table = GroupTable::hashed(&layout.keys, expected, collide);
        let mut whole = Partial::new(layout, table, context)?;
        for sealed in &sealed {
            whole.merge(sealed, partition)?;
        }
        let part = Part::new(whole)?;
        if part.groups > 0 {
            lock(&parts).push(part);
        }
        Ok(())
    })?;
    Ok(parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Parts, handed out to workers in ranges of groups.
pub struct Finished {
    parts: Vec<Arc<Part>>,
    morsels: Vec<(usize, Range<usize>)>,
    next: AtomicUsize,
}

/// A range of groups.
pub struct Morsel {
    /// Its number: no other has it.
    pub number: u64,
    /// The part that has the groups.
    pub part: Arc<Part>,
    /// The groups that are still to be given.
    pub groups: Range<usize>,
}

impl Morsel {
    /// The next groups, at most `rows`, all in one segment of the keys.
    pub fn next(&mut self, rows: usize) -> Range<usize> {
        let start = self.groups.start;
        let end = self.groups.end.min(start + rows).min((start / SEGMENT_ROWS + 1) * SEGMENT_ROWS);
        self.groups.start = end;
        start..end
    }
}

impl Finished {
    /// Cuts `parts` into morsels.
    pub fn new(parts: Vec<Part>) -> Finished {
        let morsels = parts.iter().enumerate().flat_map(|(part, of)| {
            let starts = (0..of.groups).step_by(MORSEL_ROWS);
            starts.map(move |start| (part, start..of.groups.min(start + MORSEL_ROWS)))
        });
        let morsels = morsels.collect();
        Finished { morsels, parts: parts.into_iter().map(Arc::new).collect(), next: AtomicUsize::new(0) }
    }

    /// The next morsel.
    pub fn take(&self) -> Option<Morsel> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (part, groups) = self.morsels.get(number)?;
        Some(Morsel { number: number as u64, part: self.parts[*part].clone(), groups: groups.clone() })
    }

    /// The share of morsels that has been taken, 0 to 1.
    pub fn progress(&self) -> f64 {
        let taken = self.next.load(Ordering::Relaxed).min(self.morsels.len());
        taken as f64 / self.morsels.len().max(1) as f64
    }
}
