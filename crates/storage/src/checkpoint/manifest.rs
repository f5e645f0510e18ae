//! The manifest of a table and the index of each row group, as bytes and back.
//!
//! ```text
//! manifest ──▶ index of a row group ──▶ blocks, dictionaries and symbols, end to end in data extents
//!              live bits, partitions, fences
//! ```
//! Whoever reads an index checks that it is consistent: places lie within their extents, partitions cover the
//! slots and count their rows, fences ascend, and no slot beyond the last one is live. What the places hold
//! is checked by [`super::read`].

use super::counted::{counted_group, push_counted_group};
use super::fences::{fences, push_fences};
use super::grid::{grid, push_grid};
use super::source::{Source, push_list, push_maybe};
use crate::backend::bytes::push_varint;
use crate::block::masks::{WORDS, bits_inside};
use crate::file::Extent;
use crate::tree::key::{Fences, Grid};
use crate::tree::{Counted, Numbers, Partition, Shape};
use crate::value::{REGISTERS, Sketch};
use entasis_vector::{Result, bitmap};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Pieces in a data extent begin at multiples of so many bytes.
pub(super) const ALIGNMENT: u64 = 8;

/// Where a piece is in a data extent; by default nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) extent: Extent,
    /// Its first byte, counted from the beginning of the extent.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The checksum of its bytes.
    pub(super) checksum: u64,
}

impl Place {
    /// False if there are no bytes.
    pub(super) fn is_somewhere(&self) -> bool {
        self.bytes > 0
    }

    /// Its first byte, counted from the beginning of the file.
    pub(super) fn in_file(&self) -> u64 {
        self.extent.offset + self.offset
    }

    /// Its bytes within those of its extent.
    pub(super) fn range(&self) -> Range<usize> {
        self.offset as usize..(self.offset + self.bytes) as usize
    }
}

/// Where a block is, and what it needs besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockPlace {
    /// Nowhere if the block has no slots.
    pub(super) place: Place,
    /// The index of its dictionary or symbol table in [`GroupIndex::shared`].
    pub(super) shared: Option<usize>,
}

/// A slice in the index of a row group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SliceIndex {
    pub(super) live: [u64; WORDS],
    /// The slice has been written since it was encoded.
    pub(super) is_hot: bool,
    /// A block for each column.
    pub(super) blocks: Vec<BlockPlace>,
}

/// All of a row group but the contents of its blocks.
#[derive(Debug)]
pub(super) struct GroupIndex {
    /// Dictionaries and symbol tables, each with its column.
    pub(super) shared: Vec<(usize, Place)>,
    pub(super) partitions: Vec<Partition>,
    pub(super) fences: Fences,
    /// The row numbers, of a table without a layout key.
    pub(super) numbers: Numbers,
    pub(super) slices: Vec<SliceIndex>,
}

/// What the file keeps of a table beside its row groups.
pub(super) struct Manifest {
    /// The number that the next row gets, in a table without a layout key.
    pub(super) next_number: u64,
    /// A sketch for each column.
    pub(super) sketches: Vec<Sketch>,
    /// Where the index of each row group is.
    pub(super) groups: Vec<Extent>,
    /// In a table by a curve, its grid, as far as that is decided; `None` in all others.
    pub(super) grid: Option<Option<Option<Arc<Grid>>>>,
    /// What was counted of each row group; nothing in tables that do not count, and in older files.
    pub(super) counted: Vec<Option<Counted>>,
}

// ---- manifests --------------------------------------------------------------------------------------------

impl Manifest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_varint(&mut out, self.next_number);
        push_list(&mut out, &self.sketches, push_sketch);
        push_list(&mut out, &self.groups, |out, group| out.extend(group.to_bytes()));
        if let Some(grid) = &self.grid {
            push_grid(&mut out, grid);
        }
        if self.counted.iter().any(Option::is_some) {
            push_list(&mut out, &self.counted, |out, own| push_maybe(out, own.as_ref(), push_counted_group));
        }
        out
    }

    pub(super) fn decode(source: &mut Source<'_>, shape: &Shape) -> Result<Manifest> {
        let next_number = source.varint()?;
        let sketches = source.list(sketch)?;
        source.check(sketches.len() == shape.schema.len(), "the number of columns")?;
        let groups = source.list(Source::extent)?;
        let curved = shape.key.as_ref().filter(|key| key.curve.is_some());
        let grid = curved.map(|key| grid(source, key)).transpose()?;
        let counted = match source.is_at_end() {
            true => vec![None; groups.len()],
            false => source.list(|source| source.maybe(|source| counted_group(source, shape)))?,
        };
        source.check(counted.len() == groups.len(), "counters of row groups that there are not")?;
        source.end()?;
        Ok(Manifest { next_number, sketches, groups, grid, counted })
    }
}

pub(super) fn push_sketch(out: &mut Vec<u8>, sketch: &Sketch) {
    let (updates, registers) = sketch.parts();
    match registers {
        Some(registers) => {
            out.push(1);
            out.extend_from_slice(registers);
        }
        None => {
            out.push(0);
            push_list(out, updates, |out, (register, rank)| {
                out.extend(register.to_le_bytes());
                out.push(*rank);
            });
        }
    }
}

pub(super) fn sketch(source: &mut Source<'_>) -> Result<Sketch> {
    let found = match source.bool()? {
        true => Sketch::of_registers(source.bytes(REGISTERS)?),
        false => Sketch::of_updates(source.list(|source| Ok((source.u16()?, source.u8()?)))?),
    };
    found.ok_or_else(|| source.flaw("a sketch"))
}

// ---- indexes of row groups --------------------------------------------------------------------------------

impl GroupIndex {
    /// The places of everything that it refers to.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let blocks = self.slices.iter().flat_map(|slice| &slice.blocks).map(|block| &block.place);
        self.shared.iter().map(|(_, place)| place).chain(blocks).filter(|place| place.is_somewhere())
    }

    /// The data extents that it refers to.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for place in self.places() {
            if extents.last() != Some(&place.extent) && !extents.contains(&place.extent) {
                extents.push(place.extent);
            }
        }
        extents
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (mut out, extents) = (Vec::new(), self.extents());
        let numbers = numbers_of(&extents);
        push_varint(&mut out, self.slices.len() as u64);
        push_varint(&mut out, self.numbers.first());
        push_list(&mut out, &extents, |out, extent| out.extend(extent.to_bytes()));
        push_list(&mut out, &self.shared, |out, (column, place)| {
            push_varint(out, *column as u64);
            push_place(out, place, &numbers);
        });
        push_list(&mut out, &self.partitions, |out, partition| {
            push_varint(out, (partition.end - partition.start).into());
            push_varint(out, partition.rows.into());
        });
        push_fences(&mut out, &self.fences);
        for slice in &self.slices {
            slice.live.iter().for_each(|word| out.extend(word.to_le_bytes()));
            out.push(u8::from(slice.is_hot));
            for block in &slice.blocks {
                push_maybe(&mut out, Some(block).filter(|block| block.place.is_somewhere()), |out, block| {
                    push_place(out, &block.place, &numbers);
                    push_varint(out, block.shared.map_or(0, |number| number as u64 + 1));
                });
            }
        }
        let runs: Vec<(usize, u64)> = self.numbers.runs().collect();
        push_list(&mut out, &runs[1..], |out, (slot, number)| {
            push_varint(out, *slot as u64);
            push_varint(out, *number);
        });
        out
    }

    pub(super) fn decode(source: &mut Source<'_>, shape: &Shape) -> Result<GroupIndex> {
        let columns = shape.schema.len();
        let most = shape.options.group_slots / shape.options.block_slots;
        let slices = source.size()?;
        source.check((1..=most).contains(&slices), "the number of slices")?;
        let first = source.varint()?;
        let extents = source.list(Source::extent)?;
        let shared = source.list(|source| {
            Ok((source.below(columns, "a column that there is not")?, place(source, &extents)?))
        })?;
        let partitions = partitions(source)?;
        let fences = fences(source, shape, partitions.len())?;
        let mut read = Vec::with_capacity(slices);
        for _ in 0..slices {
            read.push(slice(source, shape, &extents, &shared)?);
        }
        let slots = slices * shape.options.block_slots;
        let breaks =
            source.list(|source| Ok((source.below(slots, "a slot that there is not")?, source.varint()?)))?;
        source.end()?;
        let numbers = Numbers::of_runs(&[vec![(0, first)], breaks].concat());
        let numbers = numbers.ok_or_else(|| source.flaw("row numbers that do not ascend"))?;
        let index = GroupIndex { shared, partitions, fences, numbers, slices: read };
        source.check(index.are_partitions_right(shape), "the partitions of a row group")?;
        Ok(index)
    }

    /// The last live slot, for slices of `width` slots.
    pub(super) fn last_row(&self, width: usize) -> Option<usize> {
        let of_slice = |(number, slice): (usize, &SliceIndex)| {
            let words = slice.live.iter().enumerate().rev();
            let last = words
                .filter(|(_, bits)| **bits != 0)
                .map(|(word, bits)| word * 64 + 63 - bits.leading_zeros() as usize)
                .next()?;
            Some(number * width + last)
        };
        self.slices.iter().enumerate().rev().find_map(of_slice)
    }

    /// True if the partitions cover the slots and count the live ones; or if the table has no key, and there
    /// are no partitions.
    fn are_partitions_right(&self, shape: &Shape) -> bool {
        if shape.key.is_none() {
            return self.partitions.is_empty();
        }
        let width = shape.options.block_slots;
        let slots = self.slices.len() * width;
        let covered = self.partitions.last().is_some_and(|last| last.end as usize == slots);
        covered && self.partitions.iter().all(|own| self.live_rows(own.slots(), width) == own.rows as usize)
    }

    /// The number of live slots in a range.
    fn live_rows(&self, slots: Range<usize>, width: usize) -> usize {
        let of_slice = |number: usize| {
            let start = number * width;
            let inside = slots.start.max(start) - start..slots.end.min(start + width) - start;
            let words = self.slices[number].live.iter().enumerate();
            words
                .map(|(word, live)| (live & bits_inside(word * 64, &inside)).count_ones() as usize)
                .sum::<usize>()
        };
        (slots.start / width..slots.end.div_ceil(width)).map(of_slice).sum()
    }
}

/// The numbers of extents in a list, by their offsets.
pub(super) fn numbers_of(extents: &[Extent]) -> HashMap<u64, usize> {
    extents.iter().enumerate().map(|(number, extent)| (extent.offset, number)).collect()
}

/// Appends a place in one of the extents that have these numbers.
pub(super) fn push_place(out: &mut Vec<u8>, place: &Place, numbers: &HashMap<u64, usize>) {
    let number = numbers.get(&place.extent.offset).copied().unwrap_or(numbers.len());
    push_varint(out, number as u64);
    push_varint(out, place.offset / ALIGNMENT);
    push_varint(out, place.bytes);
    out.extend(place.checksum.to_le_bytes());
}

/// Reads a place in one of these extents.
pub(super) fn place(source: &mut Source<'_>, extents: &[Extent]) -> Result<Place> {
    let extent = extents[source.below(extents.len(), "an extent that there is not")?];
    let (offset, bytes, checksum) =
        (source.varint()?.checked_mul(ALIGNMENT), source.varint()?, source.u64()?);
    let end = offset.and_then(|offset| offset.checked_add(bytes));
    let is_inside = bytes > 0 && end.is_some_and(|end| end <= extent.bytes);
    source.check(is_inside, "a place outside of its extent")?;
    Ok(Place { extent, offset: offset.unwrap_or_default(), bytes, checksum })
}

fn partitions(source: &mut Source<'_>) -> Result<Vec<Partition>> {
    let mut start = 0u32;
    source.list(|source| {
        let (slots, rows) = (source.varint()?, source.varint()?);
        let end = u32::try_from(slots).ok().and_then(|slots| start.checked_add(slots));
        let end = end.filter(|end| *end as usize <= crate::ROW_GROUP_ROWS && rows <= slots);
        let end = end.ok_or_else(|| source.flaw("a partition"))?;
        let partition = Partition { start, end, rows: rows as u32 };
        start = end;
        Ok(partition)
    })
}

fn slice(
    source: &mut Source<'_>,
    shape: &Shape,
    extents: &[Extent],
    shared: &[(usize, Place)],
) -> Result<SliceIndex> {
    let mut live = [0; WORDS];
    for word in &mut live {
        *word = source.u64()?;
    }
    let width = shape.options.block_slots;
    let are_slots = (width..WORDS * 64).all(|slot| !bitmap::get(&live, slot));
    source.check(are_slots, "a live slot that there is not")?;
    let is_hot = source.bool()?;
    let mut blocks = Vec::with_capacity(shape.schema.len());
    for column in 0..shape.schema.len() {
        let found = source.maybe(|source| {
            let (place, number) = (place(source, extents)?, source.size()?);
            let shared_by = number.checked_sub(1);
            let is_there = shared_by.is_none_or(|of| shared.get(of).is_some_and(|(own, _)| *own == column));
            source.check(is_there, "what a block shares")?;
            Ok(BlockPlace { place, shared: shared_by })
        })?;
        blocks.push(found.unwrap_or(BlockPlace { place: Place::default(), shared: None }));
    }
    Ok(SliceIndex { live, is_hot, blocks })
}
