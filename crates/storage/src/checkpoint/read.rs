//! Reads tables from the extents that [`super::write`] wrote, trusting none of the bytes. They are read as a
//! whole, and stay in memory.
//!
//! ```text
//! manifests ──▶ empty tables ──▶ row groups of all tables, each by one thread ──▶ tables with rows
//!                                index, blocks, nodes of the tree, record
//! ```
//! As many threads as may read the file take one row group after the other, and do all that is done for each
//! block: afterwards, only row groups are looked at.

use super::manifest::{GroupIndex, Manifest, Place};
use super::objects::Relation;
use super::record::{GroupRecord, TableRecord};
use super::source::Source;
use crate::backend::bytes::checksum;
use crate::block::Block;
use crate::block::serialized::{self, Column, Shared};
use crate::builder::put_together;
use crate::definition::ObjectId;
use crate::file::{DataFile, Extent};
use crate::parallel::{Look, share};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::table::{HungGroup, RestoredGroup, Table};
use crate::tree::{EncodedSlice, Shape};
use entasis_vector::{DataType, Error, Result, bitmap};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A table whose manifest has been read, and none of its rows.
pub(super) struct Unread {
    /// The table, which is empty.
    table: Arc<Table>,
    manifest: Manifest,
    /// Where the manifest is.
    extent: Extent,
    /// Dictionaries and symbol tables of the table by their place in the file, since several row groups may
    /// share one.
    shared: Mutex<HashMap<u64, Shared>>,
}

/// A row group that was read.
struct ReadGroup {
    node: HungGroup,
    /// What the next checkpoint has to know of it.
    record: Arc<GroupRecord>,
    /// The numbers that its rows are within, of a table without a layout key.
    numbers: Range<u64>,
}

/// Reads the rows of tables. Returns for each table, in their order, its id and what the next checkpoint has
/// to know of it.
// PERF: one table after the other, threads would wait for each other at the end of each, and ask the system
// for new memory at its beginning.
pub(super) fn rows(file: &DataFile, tables: Vec<Unread>) -> Result<Vec<(ObjectId, Arc<TableRecord>)>> {
    let groups = |(table, unread): (usize, &Unread)| {
        let numbers = 0..unread.manifest.groups.len();
        numbers.map(move |number| (table, number))
    };
    let tasks: Vec<(usize, usize)> = tables.iter().enumerate().flat_map(groups).collect();
    let reader = || Reader { file, extents: Vec::new(), spare: Vec::new() };
    let work = |reader: &mut Reader<'_>, task: usize, _: Look<'_>| {
        let (table, number) = tasks[task];
        reader.group(&tables[table], number)
    };
    let mut read = share((file.threads(), &|| Ok(())), tasks.len(), reader, work)?.into_iter();
    let mut records = Vec::with_capacity(tables.len());
    for unread in tables {
        let groups = read.by_ref().take(unread.manifest.groups.len()).collect();
        records.push((unread.table.object(), unread.with(file, groups)?));
    }
    Ok(records)
}

impl Unread {
    /// Reads the manifest of a table, which is in an extent.
    pub(super) fn new(file: &DataFile, relation: Relation, extent: Extent) -> Result<Unread> {
        let Relation { id, name, schema, options } = relation;
        let table = Table::with_id(id, name, schema, options);
        let bytes = file.read(extent)?;
        let manifest = Manifest::decode(&mut Source::new(file, extent, &bytes), &table.shape)?;
        if let (Some(key), Some(grid)) = (&table.shape.key, &manifest.grid)
            && let Some(curve) = &key.curve
        {
            curve.adopt(grid.clone());
        }
        Ok(Unread { table, manifest, extent, shared: Mutex::default() })
    }

    /// The table, which has its rows after [`rows`].
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Gives the table its row groups, and returns its record.
    fn with(self, file: &DataFile, groups: Vec<ReadGroup>) -> Result<Arc<TableRecord>> {
        let Unread { table, manifest, extent, .. } = self;
        check_fences(file, extent, &table.shape, &groups)?;
        check_numbers(file, extent, &table.shape, &manifest, &groups)?;
        let Manifest { next_number, sketches, .. } = manifest;
        let (nodes, records) = groups.into_iter().map(|group| (group.node, group.record)).unzip();
        let (snapshot, round) = table.restore(sketches, (nodes, next_number));
        Ok(Arc::new(TableRecord::new(&snapshot, round, extent, records)))
    }
}

/// Checks that row groups follow one another by their fences, and that the first has no lower bound.
fn check_fences(file: &DataFile, at: Extent, shape: &Shape, groups: &[ReadGroup]) -> Result<()> {
    let Some(key) = &shape.key else { return Ok(()) };
    let first = |group: &ReadGroup| group.node.node().fences.get(0);
    let last = |group: &ReadGroup| {
        let node = group.node.node();
        node.fences.get(node.fences.len() - 1)
    };
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
    groups: &[ReadGroup],
) -> Result<()> {
    let mut end = 0;
    for ReadGroup { numbers, .. } in groups.iter().filter(|_| shape.key.is_none()) {
        if numbers.start < end {
            return Err(file.damaged(at.offset, "row groups whose numbers do not ascend"));
        }
        end = numbers.end;
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

/// Reads row groups, one after the other.
struct Reader<'a> {
    file: &'a DataFile,
    /// The bytes of the row group's data extents, which are few, each with its offset.
    extents: Vec<(u64, Vec<u8>)>,
    /// Memory for the bytes of the next extents.
    // PERF: the kernel clears memory that is new, which takes as long as reading what the system has cached.
    spare: Vec<Vec<u8>>,
}

impl Reader<'_> {
    /// A row group of a table.
    fn group(&mut self, of: &Unread, number: usize) -> Result<ReadGroup> {
        let shape = &of.table.shape;
        let at = of.manifest.groups[number];
        let bytes = self.file.read(at)?;
        let index = GroupIndex::decode(&mut Source::new(self.file, at, &bytes), shape)?;
        let group = self.encoded(of, &index, at)?;
        let node = of.table.hang(RestoredGroup { counted: of.manifest.counted[number].clone(), ..group });
        let record = Arc::new(GroupRecord::new(node.node(), at, &index));
        let (first, last) = (index.numbers.first(), index.last_row(shape.options.block_slots));
        let end = last.map_or(first, |slot| index.numbers.of(slot).saturating_add(1));
        Ok(ReadGroup { node, record, numbers: first..end })
    }

    /// The row group of an index, which was read from the extent `at`.
    fn encoded(&mut self, of: &Unread, index: &GroupIndex, at: Extent) -> Result<RestoredGroup> {
        self.spare.extend(self.extents.drain(..).map(|(_, bytes)| bytes));
        for extent in index.extents() {
            let mut bytes = self.spare.pop().unwrap_or_default();
            self.file.read_parts(extent, &mut bytes)?;
            self.extents.push((extent.offset, bytes));
        }
        let shape = &of.table.shape;
        let mut shared = Vec::with_capacity(index.shared.len());
        for (column, place) in &index.shared {
            shared.push((self.shared(of, place, shape.schema[*column].ty)?, 0));
        }
        let sharers = index.slices.iter().flat_map(|slice| &slice.blocks).filter_map(|block| block.shared);
        sharers.for_each(|number| shared[number].1 += 1);
        let columns = shape.schema.len();
        let mut slices: Vec<Vec<Block>> = index.slices.iter().map(|_| Vec::with_capacity(columns)).collect();
        for column in 0..columns {
            let mut blocks = Vec::with_capacity(slices.len());
            for number in 0..slices.len() {
                blocks.push(self.block(shape, index, (number, column), &shared, at)?);
            }
            if shape.key.is_none() {
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
        let extent = self.extents.iter().find(|(offset, _)| *offset == place.extent.offset);
        let extent = extent.map_or(&[][..], |(_, bytes)| &bytes[..]);
        let bytes = extent.get(place.range()).filter(|own| checksum(own, self.file.seed()) == place.checksum);
        bytes.ok_or_else(|| self.file.damaged(place.in_file(), "the checksum of a block is wrong"))
    }

    /// What is at a place, which blocks share. Two threads that read it at the same time share it, too.
    fn shared(&self, of: &Unread, place: &Place, ty: DataType) -> Result<Shared> {
        if let Some(shared) = lock(&of.shared).get(&place.in_file()) {
            return Ok(shared.clone());
        }
        let read = Shared::read(self.bytes(place)?, ty).map_err(|error| self.damaged(place, &error))?;
        Ok(lock(&of.shared).entry(place.in_file()).or_insert(read).clone())
    }

    /// A block of the row group of an index. `shared` is what blocks share, each with how many they are.
    fn block(
        &self,
        shape: &Shape,
        index: &GroupIndex,
        (number, column): (usize, usize),
        shared: &[(Shared, usize)],
        at: Extent,
    ) -> Result<Block> {
        let slice = &index.slices[number];
        let own = &slice.blocks[column];
        let mut block = match own.place.is_somewhere() {
            false => Block::without_slots(),
            true => {
                let bytes = self.bytes(&own.place)?;
                let shared = own.shared.map_or(&Shared::Nothing, |number| &shared[number].0);
                let column = Column::of(shape.schema[column].ty);
                serialized::read(bytes, column, shared).map_err(|error| self.damaged(&own.place, &error))?
            }
        };
        let width = shape.options.block_slots;
        let has_memory = (block.slots()..width).all(|slot| !bitmap::get(&slice.live, slot));
        if block.slots() > width || !has_memory {
            return Err(self.file.damaged(at.offset, "live slots that a block does not have"));
        }
        if let Some(number) = own.shared.filter(|_| block.has_codes_of_strings()) {
            block.share_symbols(shared[number].1);
        }
        Ok(block)
    }

    /// The error of a damaged block, with its place.
    fn damaged(&self, place: &Place, error: &Error) -> Error {
        self.file.damaged(place.in_file(), error.message())
    }
}
