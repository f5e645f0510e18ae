//! The build side of a partitioned join: its rows are split as they arrive, or all at once.

use super::shared::Partitioning;
use super::split::{Keys, Room, Split, Taken};
use crate::exec::join::table::ProbeKeys;
use crate::exec::key_filter::{BuildInput, FilterSlot};
use crate::exec::materialized::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::spill::store::MOST_SEGMENTS;
use crate::memory::Reservation;
use crate::settings::FilterKind;
use crate::sync::{Mutex, Ordering, PoisonError, lock};
use entasis_vector::{Chunk, Result};
use std::sync::Arc;

/// One worker's build rows, by partition.
pub(crate) struct SplitRows {
    split: Split,
    keys: Box<ProbeKeys>,
    partitioning: Arc<Partitioning>,
}

impl SplitRows {
    /// Takes all rows of `chunk`: column i is the chunk's column `columns[i]`, keys first.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take(&mut self, chunk: &Chunk, columns: &[usize]) -> Result<()> {
        let spec = &self.partitioning.spec;
        let nulls = &spec.null_equals_null;
        self.keys.begin(chunk, &columns[..nulls.len()], nulls);
        if self.keys.has_unmatchable() {
            self.partitioning.has_null_keys.store(true, Ordering::Relaxed);
        }
        let rows = Taken { all: spec.keeps_unmatchable(), ..Taken::default() };
        let taken = self.split.take(&mut self.keys, chunk, columns, rows);
        self.keys.release();
        taken
    }

    /// Takes all rows of `rows`, whose reservation is `memory`.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn take_all(&mut self, rows: Materialized, memory: Reservation) -> Result<()> {
        self.note_nulls(&rows);
        let spec = &self.partitioning.spec;
        let (null_equals_null, all) = (&spec.null_equals_null[..], spec.keeps_unmatchable());
        self.split.take_all(rows, memory, &mut Keys { keys: &mut self.keys, null_equals_null, all })
    }

    /// Takes all rows of a segment.
    ///
    /// # Errors
    /// Those of writing.
    fn take_segment(&mut self, rows: &Materialized, segment: usize) -> Result<()> {
        self.note_nulls(rows);
        let spec = &self.partitioning.spec;
        let (null_equals_null, all) = (&spec.null_equals_null[..], spec.keeps_unmatchable());
        self.split.take_segment(rows, segment, &mut Keys { keys: &mut self.keys, null_equals_null, all })
    }

    fn note_nulls(&self, rows: &Materialized) {
        let nulls = &self.partitioning.spec.null_equals_null;
        if (0..nulls.len()).any(|key| !nulls[key] && rows.has_nulls(key)) {
            self.partitioning.has_null_keys.store(true, Ordering::Relaxed);
        }
    }
}

impl Partitioning {
    /// Splits `rows`, all build rows, whose reservation is `memory`, by partition; one part for each worker.
    ///
    /// # Errors
    /// Those of the tasks; resource.
    pub(crate) fn split_all(
        self: &Arc<Partitioning>,
        rows: Materialized,
        memory: Reservation,
        tasks: &dyn Tasks,
    ) -> Result<Vec<SplitRows>> {
        let splits = Mutex::new(Vec::new());
        let lock = || lock(&splits);
        tasks.run(rows.segments(), &|segment| {
            let free = lock().pop();
            let mut own = free.unwrap_or_else(|| self.build_rows());
            own.take_segment(&rows, segment)?;
            lock().push(own);
            Ok(())
        })?;
        drop((rows, memory));
        Ok(splits.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// One worker's build rows, by partition.
    pub(crate) fn build_rows(self: &Arc<Partitioning>) -> SplitRows {
        let room = Room {
            most: usize::MAX,
            left: self.policy.memory().left(),
            least: self.policy.memory().least(),
            segments: self.context.settings.most_segments,
        };
        let split =
            Split::new(&self.build, &self.marks, 0, room, &self.context.memory).telling(self.seen.clone());
        SplitRows { split, keys: Box::new(self.spec.keys()), partitioning: self.clone() }
    }

    /// Completes the build side: writes what must be written, and returns the other rows and their
    /// reservation. Publishes a filter of all keys in `slot`.
    ///
    /// # Errors
    /// Those of writing; resource.
    pub(crate) fn complete(
        &self,
        parts: Vec<SplitRows>,
        slot: Option<&FilterSlot>,
        tasks: &dyn Tasks,
    ) -> Result<(Materialized, Reservation)> {
        let mut splits: Vec<Split> = parts.into_iter().map(|part| part.split).collect();
        let count = self.marks.len();
        (0..count)
            .filter(|&p| self.policy.wants(p, count))
            .for_each(|p| self.marks[p].store(true, Ordering::Relaxed));
        in_parallel(tasks, splits.iter_mut().collect(), &|_, split: &mut &mut Split| split.write_marked())?;
        while !self.is_radix() {
            let size = |p: usize| {
                let sizes = splits.iter().map(|split| split.size(p));
                sizes.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1))
            };
            let sizes: Vec<(usize, usize)> = (0..count).map(size).collect();
            let rows: usize = sizes.iter().map(|(_, rows)| rows).sum();
            let largest = (0..count).max_by_key(|&p| sizes[p]).expect("there is a partition");
            let has_memory =
                self.table_bytes(rows) + self.policy.memory().left() / 2 <= self.context.memory.free();
            if rows == 0 || has_memory && rows <= self.policy.most_rows() {
                break;
            }
            tasks.check()?;
            self.marks[largest].store(true, Ordering::Relaxed);
            splits.iter_mut().try_for_each(|split| split.write_one(largest))?;
        }
        if self.is_radix() {
            self.keep_build(splits, slot, tasks)?;
            return Ok((Materialized::new(self.build.columns()), Reservation::new(&self.context.memory)));
        }
        // A partition with rows in the file has none in memory.
        for partition in (0..count).filter(|&p| self.build.rows(p) > 0) {
            splits
                .iter_mut()
                .filter(|split| split.size(partition).1 > 0)
                .try_for_each(|s| s.write_one(partition))?;
        }
        self.mark_stored();
        let (parts, reservations): (Vec<_>, Vec<_>) =
            splits.into_iter().map(|split| split.into_parts(true)).unzip();
        self.publish_seen(slot);
        // Tables may have an entry for each id, so ids must be dense.
        let rows = Materialized::dense(self.build.columns(), parts.into_iter().flatten().collect());
        drop(reservations);
        let mut memory = Reservation::new(&self.context.memory);
        memory.resize(rows.bytes())?;
        Ok((rows, memory))
    }

    /// Leaves partitions with rows in the store to the join phase.
    fn mark_stored(&self) {
        let count = self.marks.len();
        (0..count).for_each(|p| self.marks[p].store(self.build.rows(p) > 0, Ordering::Relaxed));
        self.is_active.store((0..count).any(|p| self.is_marked(p)), Ordering::Relaxed);
    }

    /// Publishes a filter of the seen keys in `slot`.
    fn publish_seen(&self, slot: Option<&FilterSlot>) {
        if let (Some(slot), Some(seen)) = (slot, &self.seen) {
            slot.publish(seen.filter(Reservation::new(&self.context.memory)));
        }
    }

    /// Keeps all build rows in memory, by partition, and makes filters of their keys; if some had to be
    /// written, writes the others too.
    fn keep_build(&self, mut splits: Vec<Split>, slot: Option<&FilterSlot>, tasks: &dyn Tasks) -> Result<()> {
        if self.build.has_written() {
            self.marks.iter().for_each(|mark| mark.store(true, Ordering::Relaxed));
            in_parallel(tasks, splits.iter_mut().collect(), &|_, split: &mut &mut Split| {
                split.write_marked()
            })?;
            self.publish_seen(slot);
            self.mark_stored();
            return Ok(());
        }
        let segments: usize = splits.iter().map(Split::segments).sum();
        let is_whole = segments < MOST_SEGMENTS;
        let mut rows = Materialized::new(self.build.columns());
        let mut memory = Reservation::new(&self.context.memory);
        let mut workers = Vec::new();
        for split in splits {
            let (parts, own) = split.into_parts(!is_whole);
            memory.merge(own);
            workers.push(parts.into_iter());
        }
        let mut partitions = Vec::new();
        for partition in 0..self.marks.len() {
            let first = rows.segments();
            for part in workers.iter_mut().filter_map(Iterator::next) {
                if is_whole {
                    rows.absorb(part);
                } else {
                    let (own, segments) = (memory.split_off(part.bytes()), part.segments());
                    self.build.keep(part, own, [(partition, 0..segments)]);
                }
            }
            partitions.push((partition, first..rows.segments()));
        }
        if is_whole {
            self.fill(&rows, slot, tasks)?;
        } else {
            self.publish_seen(slot);
        }
        self.build.keep(rows, memory, partitions);
        self.mark_stored();
        Ok(())
    }

    /// Makes filters of the keys of `rows`, all build rows: for the probe side's scans and, if none of these
    /// tests them, for probe rows before they go to the partitions.
    fn fill(&self, rows: &Materialized, slot: Option<&FilterSlot>, tasks: &dyn Tasks) -> Result<()> {
        let null_equals_null = &self.spec.null_equals_null;
        let hash_collisions = self.context.settings.hash_collisions;
        let input = BuildInput { rows, null_equals_null, hash_collisions, tasks };
        let memory = &self.context.memory;
        let mut is_tested = false;
        if let Some(slot) = slot {
            let bounds = self.spec.facts(rows, tasks)?.bounds;
            let spared = self.table_bytes(rows.rows()) / self.marks.len();
            let kind = self.context.settings.join_filter;
            if let Some((filter, reason)) = slot.fill(&input, bounds.as_deref(), kind, memory, spared)? {
                is_tested = filter.is_tested();
                self.recorder.note(reason);
            }
        }
        if let Some((bloom, _)) = self.bloom.as_ref().filter(|_| !is_tested) {
            bloom.want();
            if let Some((_, reason)) = bloom.fill(&input, None, FilterKind::Bloom, memory, 0)? {
                self.recorder.note(format!("{reason}, tested before probe rows are partitioned"));
            }
        }
        Ok(())
    }
}
