//! Tables to extents: what is unchanged since the last checkpoint is taken over, all else is written anew.
//!
//! 1. A table, and a row group, whose node is the one that was written keeps its extents.
//! 2. So does a block in a row group that has changed, unless a ghost slot of it was stored to.
//! 3. Data extents of which less than half is still needed are given up, and so is whatever stands at the end
//!    of a file that is mostly free ([`Tail`]): what is needed of it is written anew, changed or not.
//! 4. Blocks that are written are those of the snapshot: slots that its live bits do not show are blanked in
//!    the copy, so that it does not matter who stores a ghost meanwhile.
//!
//! Debug builds read every block that is taken over in a changed row group from the file, and compare it with
//! the one in memory, value by value.

use super::manifest::{ALIGNMENT, BlockPlace, GroupIndex, Manifest, Place, SliceIndex};
use super::record::{GroupRecord, Known, TableRecord};
use crate::backend::bytes::checksum;
use crate::block::Block;
use crate::block::serialized::{self, Column, Shared};
use crate::file::{DataFile, Extent, Tail};
use crate::node::Link;
use crate::table::TableSnapshot;
use crate::tree::RowGroup;
use entasis_vector::{Result, Schema, bitmap};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes of a data extent from which on the next one is begun.
const EXTENT_BYTES: usize = 4 << 20;

/// The extents that a checkpoint writes.
pub(super) struct Writer<'a> {
    file: &'a DataFile,
    /// Extents that are not to stay where they are.
    tail: Tail,
    /// All that were written, to be given back if nothing comes of it.
    written: Vec<Extent>,
    /// For debug builds: the extent that was read last.
    read: Option<(Extent, Vec<u8>)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(file: &'a DataFile, tail: Tail) -> Writer<'a> {
        Writer { file, tail, written: Vec::new(), read: None }
    }

    /// Writes an extent.
    pub(super) fn put(&mut self, payload: &[u8]) -> Result<Extent> {
        let extent = self.file.write(payload)?;
        self.written.push(extent);
        Ok(extent)
    }

    /// Says that nothing will refer to what was written.
    pub(super) fn abandon(self) {
        self.written.into_iter().for_each(|extent| self.file.give_up(extent));
    }

    /// Writes a table as far as it has changed.
    pub(super) fn table(
        &mut self,
        snapshot: &TableSnapshot,
        round: u32,
        last: Option<&Arc<TableRecord>>,
    ) -> Result<Arc<TableRecord>> {
        let mut known = Known::new(last.map(|last| &**last), snapshot);
        let is_far = |extent: Extent| self.tail.holds(extent);
        if let (Some(table), Some(last)) = (known.table(snapshot), last)
            && !table.extents().any(is_far)
        {
            return Ok(last.clone());
        }
        let (root, _) = snapshot.pinned();
        known.look_into_changed(&root.groups);
        let plan = Plan::new(&root.groups, &known, self.tail);
        let mut tables = TableWriter { schema: snapshot.schema(), shared: plan.shared(&known), writer: self };
        let mut groups = Vec::with_capacity(root.groups.len());
        for &group in &root.groups {
            groups.push(match known.group(group).filter(|group| plan.keeps(group)) {
                Some(kept) => kept.clone(),
                None => tables.group(group, &known, &plan)?,
            });
        }
        // An estimate, which need not be of the same moment.
        let sketches = snapshot.table().head().sketches.clone();
        let indexes = groups.iter().map(|group| group.index).collect();
        let manifest =
            self.put(&Manifest { next_number: root.next_number, sketches, groups: indexes }.encode())?;
        Ok(Arc::new(TableRecord::new(snapshot, round, manifest, groups)))
    }
}

/// Which extents of a table stay.
struct Plan {
    /// Data extents of which too little is needed.
    sparse: HashSet<u64>,
    tail: Tail,
}

impl Plan {
    /// Gives up the extents of which the row groups need less than half as they are now.
    fn new(groups: &[Link<RowGroup>], known: &Known<'_>, tail: Tail) -> Plan {
        let mut needed: BTreeMap<u64, (Extent, u64)> = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut need = |place: &Place| {
            // Dictionaries are needed by several.
            if seen.insert(place.in_file()) {
                needed.entry(place.extent.offset).or_insert((place.extent, 0)).1 += place.bytes;
            }
        };
        let shared = known.shared();
        for &group in groups {
            match known.group(group) {
                Some(kept) => kept.places().for_each(&mut need),
                None => blocks_of(group).for_each(|block| {
                    known.block(block).iter().for_each(&mut need);
                    let address = block.shared().address();
                    address.and_then(|address| shared.get(&address)).into_iter().for_each(&mut need);
                }),
            }
        }
        let sparse = needed.into_iter().filter(|(_, (extent, bytes))| bytes * 2 < extent.bytes);
        Plan { sparse: sparse.map(|(offset, _)| offset).collect(), tail }
    }

    fn keeps_place(&self, place: &Place) -> bool {
        !self.sparse.contains(&place.extent.offset) && !self.tail.holds(place.extent)
    }

    fn keeps(&self, group: &GroupRecord) -> bool {
        !self.tail.holds(group.index) && group.places().all(|place| self.keeps_place(place))
    }

    /// Where what blocks share stays.
    fn shared(&self, known: &Known<'_>) -> HashMap<usize, Place> {
        let mut shared = known.shared();
        shared.retain(|_, place| self.keeps_place(place));
        shared
    }
}

fn blocks_of(group: Link<RowGroup>) -> impl Iterator<Item = Link<Block>> {
    let slices: Vec<_> = group.slices.clone();
    slices.into_iter().flat_map(|slice| slice.blocks().to_vec())
}

/// What one table's row groups are written with.
struct TableWriter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    schema: &'w Schema,
    /// By address.
    shared: HashMap<usize, Place>,
}

impl TableWriter<'_, '_> {
    /// Writes what is new in a row group, and its index.
    fn group(&mut self, group: Link<RowGroup>, known: &Known<'_>, plan: &Plan) -> Result<Arc<GroupRecord>> {
        let mut data = Data::default();
        let mut index = GroupIndex {
            shared: Vec::new(),
            partitions: group.partitions.clone(),
            fences: group.fences.clone(),
            numbers: group.numbers.clone(),
            slices: Vec::with_capacity(group.slices.len()),
        };
        // By column, the addresses of what is in `index.shared`, and where that will be.
        let mut numbers: HashMap<(usize, usize), usize> = HashMap::new();
        let mut at: Vec<Stands> = Vec::new();
        let mut blocks: Vec<Stands> = Vec::new();
        for slice in &group.slices {
            let mut own = Vec::with_capacity(self.schema.len());
            for (column, &block) in slice.blocks().iter().enumerate() {
                let shared = block.shared();
                let shared_by = match shared.address() {
                    None => None,
                    Some(address) => Some(match numbers.get(&(column, address)) {
                        Some(&number) => number,
                        None => {
                            numbers.insert((column, address), at.len());
                            at.push(self.stands(&shared, address, &mut data)?);
                            index.shared.push((column, Place::default()));
                            at.len() - 1
                        }
                    }),
                };
                own.push(BlockPlace { place: Place::default(), shared: shared_by });
                let kept = known.block(block).filter(|place| plan.keeps_place(place));
                blocks.push(match kept {
                    Some(place) => {
                        self.writer.compare(place, block, (column, self.schema), slice.live())?;
                        Stands::Kept(place)
                    }
                    None if block.slots() == 0 => Stands::Kept(Place::default()),
                    None => {
                        let column = Column::of(self.schema[column].ty);
                        data.add(self.writer, |out| serialized::write(&block, column, slice.live(), out))?
                    }
                });
            }
            index.slices.push(SliceIndex { live: *slice.live(), is_hot: slice.is_hot(), blocks: own });
        }
        data.flush(self.writer)?;
        let places = index.slices.iter_mut().flat_map(|slice| &mut slice.blocks);
        places.zip(blocks).for_each(|(block, stands)| block.place = data.place(stands));
        index.shared.iter_mut().zip(at).for_each(|((_, place), stands)| *place = data.place(stands));
        for ((_, address), number) in numbers {
            self.shared.insert(address, index.shared[number].1);
        }
        let extent = self.writer.put(&index.encode())?;
        Ok(Arc::new(GroupRecord::new(group, extent, &index)))
    }

    /// Where what blocks share stands; it is written if it does not yet.
    fn stands(&mut self, shared: &Shared, address: usize, data: &mut Data) -> Result<Stands> {
        match self.shared.get(&address) {
            Some(&place) => Ok(Stands::Kept(place)),
            None => data.add(self.writer, |out| out.extend(shared.to_bytes())),
        }
    }
}

/// Where bytes are, once their extent is written.
enum Stands {
    /// In an extent of a checkpoint before, or nowhere.
    Kept(Place),
    /// The number of what was added.
    Added(usize),
}

/// Bytes that are added end to end to data extents.
#[derive(Default)]
struct Data {
    /// Those of the extent that comes next.
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// How many of the places have their extents.
    placed: usize,
}

impl Data {
    /// Adds what `write` appends.
    fn add(&mut self, writer: &mut Writer<'_>, write: impl FnOnce(&mut Vec<u8>)) -> Result<Stands> {
        if self.bytes.len() >= EXTENT_BYTES {
            self.flush(writer)?;
        }
        let start = self.bytes.len().next_multiple_of(ALIGNMENT as usize);
        self.bytes.resize(start, 0);
        write(&mut self.bytes);
        let own = &self.bytes[start..];
        let (offset, bytes, checksum) = (start as u64, own.len() as u64, checksum(own, writer.file.seed()));
        self.places.push(Place { extent: Extent::default(), offset, bytes, checksum });
        Ok(Stands::Added(self.places.len() - 1))
    }

    /// Writes what was added to an extent.
    fn flush(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        if !self.bytes.is_empty() {
            let extent = writer.put(&self.bytes)?;
            self.places[self.placed..].iter_mut().for_each(|place| place.extent = extent);
            (self.placed, self.bytes) = (self.places.len(), Vec::new());
        }
        Ok(())
    }

    /// Where it is, after the last flush.
    fn place(&self, stands: Stands) -> Place {
        match stands {
            Stands::Kept(place) => place,
            Stands::Added(number) => self.places[number],
        }
    }
}

impl Writer<'_> {
    /// The slow twin of not writing a block: in debug builds, finds out that the file has the same rows.
    fn compare(
        &mut self,
        place: Place,
        block: Link<Block>,
        (column, schema): (usize, &Schema),
        live: &[u64],
    ) -> Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        let ty = schema[column].ty;
        let bytes = match self.read.take().filter(|(extent, _)| *extent == place.extent) {
            Some((_, bytes)) => bytes,
            None => self.file.read(place.extent)?,
        };
        let written = serialized::read(&bytes[place.range()], Column::of(ty), &block.shared())?;
        let mut slots = (0..block.slots()).filter(|slot| bitmap::get(live, *slot));
        let differs = slots.find(|&slot| {
            let (old, new) = (written.datum(slot, ty.physical()), block.datum(slot, ty.physical()));
            old.total_cmp(new).is_ne()
        });
        let name = &schema[column].name;
        assert!(differs.is_none(), "a block of {name} is taken for unchanged, and slot {differs:?} is not");
        self.read = Some((place.extent, bytes));
        Ok(())
    }
}
