//! Reads tables from the extents that [`super::write`] wrote, trusting none of the bytes. A table is read as
//! a whole, by as many threads as may read the file, each of which reads a row group at a time; it stays in
//! memory.

use super::manifest::{GroupIndex, Manifest, Place};
use super::objects::Relation;
use super::record::{GroupRecord, TableRecord};
use super::source::Source;
use crate::backend::bytes::checksum;
use crate::block::Block;
use crate::block::serialized::{self, Column, Shared};
use crate::builder::put_together;
use crate::file::{DataFile, Extent};
use crate::parallel::{Look, share};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::table::{RestoredGroup, Table};
use crate::tree::{EncodedSlice, Shape};
use entasis_vector::{DataType, Error, Result, bitmap};
use std::collections::HashMap;
use std::sync::Arc;

/// The table of a manifest, and what the next checkpoint has to know of it.
pub(super) fn table(
    file: &DataFile,
    relation: Relation,
    extent: Extent,
) -> Result<(Arc<Table>, Arc<TableRecord>)> {
    let Relation { id, name, schema, options } = relation;
    let bytes = file.read(extent)?;
    let shape = Shape::new(name, schema, options);
    let manifest = Manifest::decode(&mut Source::new(file, extent, &bytes), &shape)?;
    if let (Some(key), Some(grid)) = (&shape.key, &manifest.grid)
        && let Some(curve) = &key.curve
    {
        curve.adopt(grid.clone());
    }
    let shared = Mutex::default();
    let reader =
        || Reader { file, shape: &shape, shared: &shared, extents: HashMap::new(), spare: Vec::new() };
    let read = |reader: &mut Reader<'_>, number: usize, _: Look<'_>| {
        let at = manifest.groups[number];
        let bytes = file.read(at)?;
        let index = GroupIndex::decode(&mut Source::new(file, at, &bytes), &shape)?;
        let group = reader.group(&index, at)?;
        Ok((RestoredGroup { counted: manifest.counted[number].clone(), ..group }, (at, index)))
    };
    let read = share((file.threads(), &|| Ok(())), manifest.groups.len(), reader, read)?;
    let (groups, indexes): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    check_fences(file, extent, &shape, &groups)?;
    check_numbers(file, extent, &shape, &manifest, &indexes)?;
    let Manifest { next_number, sketches, .. } = manifest;
    let (snapshot, round) = Table::restored(id, (shape, sketches), (groups, next_number));
    let (root, _) = snapshot.pinned();
    let records = root.groups.iter().zip(&indexes);
    let records =
        records.map(|(group, (at, index))| Arc::new(GroupRecord::new(*group, *at, index))).collect();
    let record = TableRecord::new(&snapshot, round, extent, records);
    Ok((snapshot.table().clone(), Arc::new(record)))
}

/// Checks that row groups follow one another by their fences, and that the first has no lower bound.
fn check_fences(file: &DataFile, at: Extent, shape: &Shape, groups: &[RestoredGroup]) -> Result<()> {
    let Some(key) = &shape.key else { return Ok(()) };
    let first = |group: &RestoredGroup| group.fences.get(0);
    let last = |group: &RestoredGroup| group.fences.get(group.fences.len() - 1);
    let is_first = groups.first().is_none_or(|group| first(group) == key.least());
    let follow = groups.windows(2).all(|pair| last(&pair[0]) <= first(&pair[1]));
    if is_first && follow { Ok(()) } else { Err(file.damaged(at.offset, "row groups that do not ascend")) }
}

/// Checks that row numbers ascend from row group to row group, and that the next number is beyond all of
/// them.
fn check_numbers(
    file: &DataFile,
    at: Extent,
    shape: &Shape,
    manifest: &Manifest,
    indexes: &[(Extent, GroupIndex)],
) -> Result<()> {
    let mut end = 0;
    for (_, index) in indexes.iter().filter(|_| shape.key.is_none()) {
        if index.numbers.first() < end {
            return Err(file.damaged(at.offset, "row groups whose numbers do not ascend"));
        }
        let last = index.last_row(shape.options.block_slots);
        end = last.map_or(index.numbers.first(), |slot| index.numbers.of(slot).saturating_add(1));
    }
    if end <= manifest.next_number {
        Ok(())
    } else {
        Err(file.damaged(at.offset, "a number that comes twice"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads row groups of one table, one after the other.
struct Reader<'a> {
    file: &'a DataFile,
    shape: &'a Shape,
    /// Dictionaries and symbol tables of the table by their place in the file, since several row groups may
    /// share one.
    shared: &'a Mutex<HashMap<u64, Shared>>,
    /// The bytes of the row group's data extents, by offset.
    extents: HashMap<u64, Vec<u8>>,
    /// Memory for the bytes of the next extents.
    // PERF: the kernel clears memory that is new, which takes as long as reading what the system has cached.
    spare: Vec<Vec<u8>>,
}

impl Reader<'_> {
    /// The row group of an index, which was read from the extent `at`.
    fn group(&mut self, index: &GroupIndex, at: Extent) -> Result<RestoredGroup> {
        self.spare.extend(self.extents.drain().map(|(_, bytes)| bytes));
        for extent in index.extents() {
            let mut bytes = self.spare.pop().unwrap_or_default();
            self.file.read_parts(extent, &mut bytes)?;
            self.extents.insert(extent.offset, bytes);
        }
        let mut shared = Vec::with_capacity(index.shared.len());
        for (column, place) in &index.shared {
            shared.push(self.shared(place, self.shape.schema[*column].ty)?);
        }
        let mut slices: Vec<Vec<Block>> = index.slices.iter().map(|_| Vec::new()).collect();
        for column in 0..self.shape.schema.len() {
            let mut blocks = Vec::with_capacity(slices.len());
            for number in 0..slices.len() {
                blocks.push(self.block(index, (number, column), &shared, at)?);
            }
            if self.shape.key.is_none() {
                put_together(&mut blocks);
            }
            slices.iter_mut().zip(blocks).for_each(|(slice, block)| slice.push(block));
        }
        let slices = slices.into_iter().zip(&index.slices);
        Ok(RestoredGroup {
            slices: slices.map(|(blocks, slice)| EncodedSlice::of(slice.live, blocks)).collect(),
            are_hot: index.slices.iter().map(|slice| slice.is_hot).collect(),
            partitions: index.partitions.clone(),
            fences: index.fences.clone(),
            numbers: index.numbers.clone(),
            counted: None,
        })
    }

    /// The bytes of a place, whose checksum is verified.
    fn bytes(&self, place: &Place) -> Result<&[u8]> {
        let extent = self.extents.get(&place.extent.offset).map_or(&[][..], Vec::as_slice);
        let bytes = extent.get(place.range()).filter(|own| checksum(own, self.file.seed()) == place.checksum);
        bytes.ok_or_else(|| self.file.damaged(place.in_file(), "the checksum of a block is wrong"))
    }

    /// What is at a place, which blocks share. Two threads that read it at the same time share it, too.
    fn shared(&self, place: &Place, ty: DataType) -> Result<Shared> {
        if let Some(shared) = lock(self.shared).get(&place.in_file()) {
            return Ok(shared.clone());
        }
        let read = Shared::read(self.bytes(place)?, ty).map_err(|error| self.damaged(place, &error))?;
        Ok(lock(self.shared).entry(place.in_file()).or_insert(read).clone())
    }

    fn block(
        &self,
        index: &GroupIndex,
        (number, column): (usize, usize),
        shared: &[Shared],
        at: Extent,
    ) -> Result<Block> {
        let slice = &index.slices[number];
        let own = &slice.blocks[column];
        let mut block = match own.place.is_somewhere() {
            false => Block::without_slots(),
            true => {
                let bytes = self.bytes(&own.place)?;
                let shared = own.shared.map_or(&Shared::Nothing, |number| &shared[number]);
                let column = Column::of(self.shape.schema[column].ty);
                serialized::read(bytes, column, shared).map_err(|error| self.damaged(&own.place, &error))?
            }
        };
        let width = self.shape.options.block_slots;
        let has_memory = (block.slots()..width).all(|slot| !bitmap::get(&slice.live, slot));
        if block.slots() > width || !has_memory {
            return Err(self.file.damaged(at.offset, "live slots that a block does not have"));
        }
        if own.shared.is_some() && block.has_codes_of_strings() {
            let sharers = index.slices.iter().filter(|slice| slice.blocks[column].shared == own.shared);
            block.share_symbols(sharers.count());
        }
        Ok(block)
    }

    /// The error of a damaged block, with its place.
    fn damaged(&self, place: &Place, error: &Error) -> Error {
        self.file.damaged(place.in_file(), error.message())
    }
}
