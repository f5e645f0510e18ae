//! Row groups with other columns, for a table that is made of another one ([`crate::tree::lineage`]).
//!
//! Rows keep their slots, and blocks of columns that stay are the same nodes. So the work is a microsecond or
//! two for a slice, whatever its blocks hold: only those of columns that go are looked at, to count their
//! bytes.

use super::RowGroup;
use crate::block::Block;
use crate::node::Link;
use crate::tree::slice::ColumnBlock;
use crate::tree::{Edit, Shape};
use crate::value::Zone;
use entasis_vector::{DataType, Value};
use std::sync::Arc;

/// Where a column of a new table comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnSource {
    /// A column of the old table, of the same type.
    Old(usize),
    /// One value in all rows.
    Constant(Value),
}

impl ColumnSource {
    /// The column of the old table.
    pub(crate) fn old(&self) -> Option<usize> {
        match self {
            ColumnSource::Old(column) => Some(*column),
            ColumnSource::Constant(_) => None,
        }
    }
}

impl RowGroup {
    /// The row group with columns from `sources`, for a table of this shape; `dropped` are the columns that
    /// it does not have any more.
    pub(crate) fn with_columns(
        &self,
        sources: &[ColumnSource],
        dropped: &[usize],
        shape: &Shape,
        edit: &Edit,
    ) -> RowGroup {
        // Rows that are NULL are counted exactly. A block without any is one that ascends: no NULL comes to
        // it without being counted.
        let constant = |value: &Value, ty: DataType, rows: usize| {
            let block = Block::constant(value, self.block_slots, ty);
            match block.is_all_null() {
                true => {
                    Block { zone: Zone { nulls: rows as u32, ..Zone::EMPTY }, ascending: rows == 0, ..block }
                }
                false => block,
            }
        };
        let types = || shape.schema.iter().map(|field| field.ty);
        let slices = self.slices.iter().map(|slice| {
            let block = |(source, ty): (&ColumnSource, DataType)| match source {
                ColumnSource::Old(column) => ColumnBlock::Kept(*column),
                ColumnSource::Constant(value) => ColumnBlock::New(constant(value, ty, slice.rows())),
            };
            Link::new(slice.with_columns(sources.iter().zip(types()).map(block), dropped, edit))
        });
        let zone = |(source, ty): (&ColumnSource, DataType)| match source {
            ColumnSource::Old(column) => self.zones[*column].clone(),
            ColumnSource::Constant(_) if self.rows == 0 => Zone::EMPTY,
            ColumnSource::Constant(value) => constant(value, ty, self.rows).zone,
        };
        let digests = self.digests.as_ref();
        let digests = digests.map(|own| own.with_columns(sources.iter().map(ColumnSource::old)));
        let group = RowGroup {
            stamp: edit.stamp,
            slices: slices.collect(),
            zones: sources.iter().zip(types()).map(zone).collect::<Arc<[Zone]>>(),
            partitions: self.partitions.clone(),
            fences: self.fences.clone(),
            counters: self.counters.as_ref().and_then(|counters| counters.twin(shape)),
            numbers: self.numbers.clone(),
            wear: self.wear.copy(),
            digests,
            ..*self
        };
        edit.count(group.digest_bytes() as isize - self.digest_bytes() as isize);
        group
    }
}
