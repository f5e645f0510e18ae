//! Pieces in the file: the rows of a load as appenders have encoded them (docs/design/file-format.md,
//! "Loads").
//!
//! ```text
//! index ──▶ blocks, dictionaries and symbols, end to end in data extents, slice by slice
//! ```
//! Blocks are written as a checkpoint would write those of the table's slices, so that it can leave them
//! where they are. Whoever reads an index checks it as that of a row group; the slices of a piece are full
//! but for the last one.

use super::data::{Data, Stands};
use super::extents::ExtentWriter;
use super::manifest::{BlockPlace, Place, numbers_of, place, push_place, push_sketch, sketch};
use super::source::{Source, push_list};
use crate::backend::bytes::{checksum, push_varint};
use crate::block::Block;
use crate::block::serialized::{self, Column, Shared};
use crate::builder::put_together;
use crate::file::{DataFile, Extent};
use crate::tree::{EncodedSlice, Piece, Shape};
use crate::value::Sketch;
use entasis_vector::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// Extents that are kept while their blocks are read: the one that is read, and the one before, which may end
/// with a dictionary.
const KEPT: usize = 2;

/// What is kept of pieces beside their blocks.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// A sketch for each column.
    pub(super) sketches: Vec<Sketch>,
    /// The data extents.
    pub(super) extents: Vec<Extent>,
    /// Dictionaries and symbol tables, each with its column.
    shared: Vec<(usize, Place)>,
    pieces: Vec<PieceIndex>,
}

/// One of the pieces.
#[derive(Debug)]
struct PieceIndex {
    rows: usize,
    /// Rows of each slice but the last.
    width: usize,
    /// The blocks, slice by slice, in the order of columns.
    blocks: Vec<BlockPlace>,
}

/// The index of what a block shares, if it shares something, and where its bytes are.
type Added = (Stands, Option<usize>);

/// Writes pieces to data extents. `look` is called before each of them.
pub(super) fn write(
    writer: &mut ExtentWriter<'_>,
    shape: &Shape,
    pieces: &[Arc<Piece>],
    sketches: Vec<Sketch>,
    look: &dyn Fn() -> Result<()>,
) -> Result<Index> {
    let mut parts = Parts { shape, data: Data::default(), shared: Vec::new(), numbers: HashMap::new() };
    let mut added: Vec<Vec<Added>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        look()?;
        let mut blocks = Vec::with_capacity(piece.slices.len() * shape.schema.len());
        for slice in &piece.slices {
            for column in 0..slice.blocks.len() {
                blocks.push(parts.block(writer, slice, column)?);
            }
        }
        added.push(blocks);
    }
    parts.data.flush(writer)?;
    let at = |stands| parts.data.place(stands);
    let piece = |(piece, blocks): (&Arc<Piece>, Vec<Added>)| PieceIndex {
        rows: piece.rows,
        width: piece.slices.first().map_or(1, |slice| slice.rows),
        blocks: blocks.into_iter().map(|(own, shared)| BlockPlace { place: at(own), shared }).collect(),
    };
    Ok(Index {
        sketches,
        extents: writer.written().to_vec(),
        shared: parts.shared.iter().map(|&(column, stands)| (column, at(stands))).collect(),
        pieces: pieces.iter().zip(added).map(piece).collect(),
    })
}

/// What has been written of some pieces.
struct Parts<'a> {
    shape: &'a Shape,
    data: Data,
    /// Dictionaries and symbol tables, each with its column.
    shared: Vec<(usize, Stands)>,
    /// The index in `shared`, by column and address.
    numbers: HashMap<(usize, usize), usize>,
}

impl Parts<'_> {
    fn block(&mut self, writer: &mut ExtentWriter<'_>, slice: &EncodedSlice, column: usize) -> Result<Added> {
        let block = &slice.blocks[column];
        let shared = self.shared_by(writer, block, column)?;
        let ty = Column::of(self.shape.schema[column].ty);
        let stands = self.data.add(writer, |out| {
            let start = out.len();
            serialized::write(block, ty, &slice.live, out);
            if self.shape.key.is_some() {
                // As it is in the tree, where rows will be inserted between these.
                serialized::forget_order(&mut out[start..]);
            }
        })?;
        Ok((stands, shared))
    }

    fn shared_by(
        &mut self,
        writer: &mut ExtentWriter<'_>,
        block: &Block,
        column: usize,
    ) -> Result<Option<usize>> {
        let shared = block.shared();
        let Some(address) = shared.address() else { return Ok(None) };
        if let Some(&number) = self.numbers.get(&(column, address)) {
            return Ok(Some(number));
        }
        let stands = self.data.add(writer, |out| out.extend(shared.to_bytes()))?;
        let number = self.shared.len();
        self.shared.push((column, stands));
        self.numbers.insert((column, address), number);
        Ok(Some(number))
    }
}

impl Index {
    /// The places of everything that it refers to.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        let blocks = self.pieces.iter().flat_map(|piece| &piece.blocks).map(|block| &block.place);
        self.shared.iter().map(|(_, place)| place).chain(blocks)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (mut out, numbers) = (Vec::new(), numbers_of(&self.extents));
        push_list(&mut out, &self.sketches, push_sketch);
        push_list(&mut out, &self.extents, |out, extent| out.extend(extent.to_bytes()));
        push_list(&mut out, &self.shared, |out, (column, place)| {
            push_varint(out, *column as u64);
            push_place(out, place, &numbers);
        });
        push_list(&mut out, &self.pieces, |out, piece| {
            push_varint(out, piece.rows as u64);
            push_varint(out, piece.width as u64);
            for block in &piece.blocks {
                push_place(out, &block.place, &numbers);
                push_varint(out, block.shared.map_or(0, |number| number as u64 + 1));
            }
        });
        out
    }

    fn decode(source: &mut Source<'_>, shape: &Shape) -> Result<Index> {
        let columns = shape.schema.len();
        let sketches = source.list(sketch)?;
        source.check(sketches.len() == columns, "the number of columns")?;
        let extents = source.list(Source::extent)?;
        let shared = source.list(|source| {
            Ok((source.below(columns, "a column that there is not")?, place(source, &extents)?))
        })?;
        let pieces = source.list(|source| {
            let (rows, width) = (source.size()?, source.size()?);
            let options = &shape.options;
            let are_few =
                rows > 0 && rows <= options.group_slots && width > 0 && width <= options.block_slots;
            source.check(are_few, "the number of rows of a piece")?;
            let mut blocks = Vec::new();
            for column in (0..rows.div_ceil(width)).flat_map(|_| 0..columns) {
                let (place, number) = (place(source, &extents)?, source.size()?);
                let shared_by = number.checked_sub(1);
                let is_there =
                    shared_by.is_none_or(|of| shared.get(of).is_some_and(|(own, _)| *own == column));
                source.check(is_there, "what a block shares")?;
                blocks.push(BlockPlace { place, shared: shared_by });
            }
            Ok(PieceIndex { rows, width, blocks })
        })?;
        source.end()?;
        Ok(Index { sketches, extents, shared, pieces })
    }
}

/// The pieces whose index is in an extent, and the index.
///
/// # Errors
/// I/O; corruption, with the place.
pub(super) fn read(file: &DataFile, at: Extent, shape: &Shape) -> Result<(Index, Vec<Arc<Piece>>)> {
    let bytes = file.read(at)?;
    let index = Index::decode(&mut Source::new(file, at, &bytes), shape)?;
    let mut reader = Reader { file, shape, extents: Vec::new(), shared: HashMap::new() };
    let pieces = index.pieces.iter().map(|piece| reader.piece(piece, &index, at).map(Arc::new));
    let pieces = pieces.collect::<Result<Vec<_>>>()?;
    Ok((index, pieces))
}

/// Reads blocks in the order in which they were written.
struct Reader<'a> {
    file: &'a DataFile,
    shape: &'a Shape,
    /// The extents that were read last, with their bytes.
    extents: Vec<(Extent, Vec<u8>)>,
    /// What was read of what blocks share, by number.
    shared: HashMap<usize, Shared>,
}

impl Reader<'_> {
    fn piece(&mut self, piece: &PieceIndex, index: &Index, at: Extent) -> Result<Piece> {
        let columns = self.shape.schema.len();
        let count = |slice: usize| piece.width.min(piece.rows - slice * piece.width);
        let mut blocks: Vec<Vec<Block>> = (0..columns).map(|_| Vec::new()).collect();
        let mut sharers: HashMap<usize, usize> = HashMap::new();
        piece.blocks.iter().filter_map(|own| own.shared).for_each(|of| *sharers.entry(of).or_default() += 1);
        for (number, own) in piece.blocks.iter().enumerate() {
            let (slice, column) = (number / columns, number % columns);
            let mut block = self.block(own, column, index)?;
            if block.slots() < count(slice) || block.slots() > self.shape.options.block_slots {
                return Err(self.file.damaged(at.offset, "a block that has not the slots of its slice"));
            }
            if let Some(of) = own.shared.filter(|_| block.has_codes_of_strings()) {
                block.share_symbols(sharers[&of]);
            }
            blocks[column].push(block);
        }
        if self.shape.key.is_none() {
            blocks.iter_mut().for_each(|blocks| put_together(blocks));
        }
        let mut columns: Vec<_> = blocks.into_iter().map(Vec::into_iter).collect();
        let slice = |number| {
            let blocks = columns.iter_mut().filter_map(Iterator::next).collect();
            EncodedSlice::new(count(number), blocks)
        };
        let slices = (0..piece.rows.div_ceil(piece.width)).map(slice).collect();
        Ok(Piece { block_slots: piece.width, slices, rows: piece.rows })
    }

    fn block(&mut self, own: &BlockPlace, column: usize, index: &Index) -> Result<Block> {
        let ty = self.shape.schema[column].ty;
        let shared = match own.shared {
            None => Shared::Nothing,
            Some(number) if self.shared.contains_key(&number) => self.shared[&number].clone(),
            Some(number) => {
                let (_, place) = &index.shared[number];
                let read =
                    Shared::read(self.bytes(place)?, ty).map_err(|error| self.damaged(place, &error))?;
                self.shared.insert(number, read.clone());
                read
            }
        };
        let read = serialized::read(self.bytes(&own.place)?, Column::of(ty), &shared);
        read.map_err(|error| self.damaged(&own.place, &error))
    }

    /// The bytes of a place, whose checksum is verified.
    fn bytes(&mut self, place: &Place) -> Result<&[u8]> {
        if self.extents.iter().all(|(extent, _)| *extent != place.extent) {
            if self.extents.len() == KEPT {
                self.extents.remove(0);
            }
            self.extents.push((place.extent, self.file.read(place.extent)?));
        }
        let extent = self.extents.iter().find(|(extent, _)| *extent == place.extent);
        let bytes = extent.and_then(|(_, bytes)| bytes.get(place.range()));
        let bytes = bytes.filter(|own| checksum(own, self.file.seed()) == place.checksum);
        bytes.ok_or_else(|| self.file.damaged(place.in_file(), "the checksum of a block is wrong"))
    }

    /// The error of a damaged block, with its place.
    fn damaged(&self, place: &Place, error: &Error) -> Error {
        self.file.damaged(place.in_file(), error.message())
    }
}
