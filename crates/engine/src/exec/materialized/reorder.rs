//! Putting rows in another order, and taking columns out.

use super::column::Picks;
use super::rows::Materialized;
use crate::exec::operator::{Tasks, in_parallel};
use crate::exec::row_id::SEGMENT_ROWS;
use entasis_vector::{Buffer, CHUNK_ROWS, PhysicalType, Result, Vector};

impl Materialized {
    /// The rows `ids`, in that order. Long strings are not copied: their bytes are handed over.
    pub fn reordered(mut self, ids: &[u32]) -> Materialized {
        let mut out = Materialized::new(&self.metas);
        let mut scratch: Vec<Vector> = self.metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        for ids in ids.chunks(CHUNK_ROWS) {
            for (column, vector) in scratch.iter_mut().enumerate() {
                self.gather(column, ids, vector);
                vector.set_strings_stable(true);
            }
            let mut done = 0;
            while done < ids.len() {
                let (offset, part) = out.make_room(ids.len() - done);
                for (column, vector) in scratch.iter().enumerate() {
                    out.write(column, vector, Picks::From(done), offset, part);
                }
                out.advance(part);
                done += part;
            }
        }
        for (own, old) in out.columns.iter_mut().zip(&self.columns) {
            own.strings_are_stable = old.strings_are_stable;
        }
        drop(scratch);
        out.heap = std::mem::take(&mut self.heap);
        out
    }

    /// The rows `ids`, in that order, with new ids from 0: gathered by all workers, column by column. Columns
    /// that are not `kept` lose their values and must not be read any more. No row may be a tuple, now or
    /// later.
    ///
    /// # Errors
    /// Those of the tasks.
    pub fn rearranged(mut self, ids: &[u32], kept: &[bool], tasks: &dyn Tasks) -> Result<Materialized> {
        debug_assert!(self.layout.is_none() && kept.len() == self.columns.len());
        let stays = ids.len() == self.rows && ids.iter().enumerate().all(|(i, &id)| i == id as usize);
        let mut bytes = 0;
        for (column, &kept) in self.columns.iter_mut().zip(kept) {
            let segments = ids.chunks(SEGMENT_ROWS).map(|ids| (ids, Buffer::zeroed(0), None));
            let mut segments: Vec<(&[u32], Buffer, Option<Buffer>)> = segments.collect();
            if kept && stays {
                let buffers =
                    std::mem::take(&mut column.values).into_iter().zip(std::mem::take(&mut column.validity));
                segments
                    .iter_mut()
                    .zip(buffers)
                    .for_each(|(to, (values, words))| (to.1, to.2) = (values, words));
            } else if kept {
                in_parallel(tasks, segments.iter_mut().collect(), &|_, (ids, values, validity)| {
                    // Allocated segment by segment, to reuse memory that has just been freed.
                    *values = Buffer::zeroed(ids.len() * column.physical.width());
                    *validity = column.pick(ids, values);
                    Ok(())
                })?;
            }
            (column.values, column.validity) =
                segments.into_iter().map(|(_, values, words)| (values, words)).unzip();
            let buffers = column.values.iter().chain(column.validity.iter().flatten());
            bytes += buffers.map(Buffer::capacity).sum::<usize>();
        }
        self.segments = ids.chunks(SEGMENT_ROWS).map(<[u32]>::len).collect();
        self.tuples = self.segments.iter().map(|_| None).collect();
        (self.rows, self.growth.room, self.bytes) = (ids.len(), 0, bytes);
        Ok(self)
    }

    /// Takes out the first `count` columns, which must not be read here any more; those of each segment
    /// separately, so that each can be freed alone. They are keys, and not strings.
    pub fn take_columns(&mut self, count: usize) -> Vec<Materialized> {
        debug_assert!(self.columns[..count].iter().all(|column| column.physical != PhysicalType::Str));
        let mut parts = Vec::with_capacity(self.segments());
        for segment in 0..self.segments() {
            let mut part = Materialized::new(&self.metas[..count]);
            (part.segments, part.tuples) = (vec![self.segments[segment]], vec![None]);
            part.rows = self.segments[segment];
            for (to, from) in part.columns.iter_mut().zip(&mut self.columns) {
                let values = std::mem::replace(&mut from.values[segment], Buffer::zeroed(0));
                let validity = from.validity[segment].take();
                part.bytes += values.capacity() + validity.as_ref().map_or(0, Buffer::capacity);
                self.bytes += from.values[segment].capacity();
                to.values.push(values);
                to.validity.push(validity);
                to.has_nulls = from.has_nulls;
            }
            self.bytes -= part.bytes;
            parts.push(part);
        }
        parts
    }
}
