//! Writes one row group to extents: the blocks that are not in the file in their present state, and an index
//! of all its blocks.

use super::data::{Data, Stands};
use super::extents::ExtentWriter;
use super::manifest::{BlockPlace, GroupIndex, Place, SliceIndex};
use super::plan::Plan;
use super::record::{GroupRecord, Known};
use crate::block::Block;
use crate::block::serialized::{self, Column};
use crate::node::Link;
use crate::tree::{RowGroup, Slice};
use entasis_vector::{Result, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes the row groups of one table.
pub(super) struct GroupWriter<'w, 'a> {
    pub(super) writer: &'w mut ExtentWriter<'a>,
    pub(super) schema: &'w Schema,
    pub(super) known: &'w Known<'w>,
    pub(super) plan: &'w Plan,
    /// The places of dictionaries and symbol tables, by their address in memory.
    pub(super) shared: HashMap<usize, Place>,
}

/// The blocks of a row group, and what they share, as far as they have been added.
#[derive(Default)]
struct Parts {
    data: Data,
    /// Dictionaries and symbol tables: the column, the address, and where the bytes are.
    shared: Vec<(usize, usize, Stands)>,
    /// The index in `shared`, by column and address.
    numbers: HashMap<(usize, usize), usize>,
}

impl GroupWriter<'_, '_> {
    /// Writes what has changed in a row group, and its index.
    pub(super) fn group(&mut self, group: Link<RowGroup>) -> Result<Arc<GroupRecord>> {
        let mut parts = Parts::default();
        let mut slices = Vec::with_capacity(group.slices.len());
        for slice in &group.slices {
            let columns = 0..self.schema.len();
            let blocks = columns.map(|column| self.block(slice, column, &mut parts));
            slices.push(blocks.collect::<Result<Vec<_>>>()?);
        }
        parts.data.flush(self.writer)?;
        for &(_, address, stands) in &parts.shared {
            self.shared.insert(address, parts.data.place(stands));
        }
        let index = parts.index(group, slices);
        let extent = self.writer.put(&index.encode())?;
        Ok(Arc::new(GroupRecord::new(group, extent, &index)))
    }

    /// Where the bytes of a block are, and the index of what it shares with others.
    fn block(&mut self, slice: &Slice, column: usize, parts: &mut Parts) -> Result<(Stands, Option<usize>)> {
        let block = slice.blocks()[column];
        let shared = self.shared_by(block, column, parts)?;
        let kept = self.known.block(block).filter(|place| self.plan.keeps_place(place));
        let stands = match kept {
            Some(place) => {
                self.writer.compare(place, block, &self.schema[column], slice.live())?;
                Stands::Kept(place)
            }
            None if block.slots() == 0 => Stands::Kept(Place::default()),
            None => {
                let column = Column::of(self.schema[column].ty);
                parts.data.add(self.writer, |out| serialized::write(&block, column, slice.live(), out))?
            }
        };
        Ok((stands, shared))
    }

    /// The index of what a block shares with others, which is added unless it is there.
    fn shared_by(&mut self, block: Link<Block>, column: usize, parts: &mut Parts) -> Result<Option<usize>> {
        let shared = block.shared();
        let Some(address) = shared.address() else { return Ok(None) };
        if let Some(&number) = parts.numbers.get(&(column, address)) {
            return Ok(Some(number));
        }
        let stands = match self.shared.get(&address) {
            Some(&place) => Stands::Kept(place),
            None => parts.data.add(self.writer, |out| out.extend(shared.to_bytes()))?,
        };
        let number = parts.shared.len();
        parts.shared.push((column, address, stands));
        parts.numbers.insert((column, address), number);
        Ok(Some(number))
    }
}

impl Parts {
    /// The index of a row group, all of whose blocks have been written.
    fn index(self, group: Link<RowGroup>, slices: Vec<Vec<(Stands, Option<usize>)>>) -> GroupIndex {
        let place = |stands| self.data.place(stands);
        let slice = |(blocks, slice): (Vec<(Stands, Option<usize>)>, &Link<Slice>)| SliceIndex {
            live: *slice.live(),
            is_hot: slice.is_hot(),
            blocks: blocks
                .into_iter()
                .map(|(stands, shared)| BlockPlace { place: place(stands), shared })
                .collect(),
        };
        GroupIndex {
            shared: self.shared.iter().map(|&(column, _, stands)| (column, place(stands))).collect(),
            partitions: group.partitions.clone(),
            fences: group.fences.clone(),
            numbers: group.numbers.clone(),
            slices: slices.into_iter().zip(&group.slices).map(slice).collect(),
        }
    }
}
