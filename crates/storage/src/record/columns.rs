//! Many rows in one record: their columns as blocks, and hidden row numbers as runs.
//!
//! The rows are cut into slices of equal length, but for the last one. What blocks of a column share (a
//! dictionary or a symbol table) is written before the first block that uses it, and applies until the next
//! one comes.

use super::Flaw;
use super::row::{Columns, Names, SHORT, Wording};
use crate::BLOCK_ROWS;
use crate::backend::bytes::{Cursor, push_counted, push_varint};
use crate::block::Block;
use crate::block::serialized::{self, Column, Shared};
use crate::tree::{EncodedSlice, Piece, Root, RowId, Shape};

/// Columns of some rows of a version, as blocks.
pub(crate) fn gather(root: &Root, rows: &[RowId], columns: &[usize], shape: &Shape) -> Piece {
    let slice = |rows: &[RowId]| {
        let mut from = Vec::with_capacity(rows.len());
        let blocks = columns.iter().map(|&column| {
            from.clear();
            from.extend(rows.iter().map(|row| {
                let group = &*root.groups[row.group as usize];
                let (slice, slot) =
                    (row.slot as usize / group.block_slots, row.slot as usize % group.block_slots);
                Some((group.slices[slice].block(column), slot))
            }));
            Block::gather(&from, shape.schema[column].ty)
        });
        EncodedSlice::new(rows.len(), blocks.collect())
    };
    let slices = rows.chunks(BLOCK_ROWS).map(slice).collect();
    Piece { block_slots: BLOCK_ROWS, slices, rows: rows.len() }
}

/// The names of some rows of a version, in ascending order.
pub(crate) fn names_of(root: &Root, rows: &[RowId], shape: &Shape) -> Names {
    let wording = Wording::of(shape);
    if wording != Wording::Numbers {
        return Names::Columns(gather(root, rows, &wording.columns(), shape));
    }
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in rows.iter().map(|&row| root.number_of(row)) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    Names::Numbers(runs)
}

impl Columns<'_> {
    /// Appends the rows of a piece with these columns.
    pub(super) fn push_piece(&self, piece: &Piece, out: &mut Vec<u8>) {
        let width = piece.slices.first().map_or(0, |slice| slice.rows);
        debug_assert!(piece.slices.iter().rev().skip(1).all(|slice| slice.rows == width), "slices are full");
        push_varint(out, piece.rows as u64);
        push_varint(out, width as u64);
        let mut bytes = Vec::new();
        for (at, ty) in self.types().enumerate() {
            let mut last = Shared::Nothing;
            for slice in &piece.slices {
                let (block, shared) = (&slice.blocks[at], slice.blocks[at].shared());
                match shared {
                    Shared::Nothing => out.push(0),
                    shared if shared.is(&last) => out.push(0),
                    shared => {
                        push_counted(out, &shared.to_bytes());
                        last = shared;
                    }
                }
                bytes.clear();
                serialized::write(block, Column::of(ty), &slice.live, &mut bytes);
                push_counted(out, &bytes);
            }
        }
    }

    /// Reads the next rows.
    pub(super) fn read_piece(&self, cursor: &mut Cursor<'_>) -> Result<Piece, Flaw> {
        let number = |cursor: &mut Cursor<'_>| {
            cursor.varint().and_then(|number| usize::try_from(number).ok()).ok_or(SHORT)
        };
        let (rows, width) = (number(cursor)?, number(cursor)?);
        let is_width = (1..=BLOCK_ROWS).contains(&width);
        // Each block takes at least a byte.
        if !is_width || self.columns.is_empty() || rows.div_ceil(width) > cursor.left() {
            return Err("its number of rows");
        }
        let count = |slice: usize| width.min(rows - slice * width);
        let mut slices: Vec<Vec<Block>> = (0..rows.div_ceil(width)).map(|_| Vec::new()).collect();
        for ty in self.types() {
            let mut shared = Shared::Nothing;
            for (number, blocks) in slices.iter_mut().enumerate() {
                let new = cursor.counted().ok_or(SHORT)?;
                if !new.is_empty() {
                    shared = Shared::read(new, ty).map_err(|_| "what its blocks share")?;
                }
                let bytes = cursor.counted().ok_or(SHORT)?;
                let block = serialized::read(bytes, Column::of(ty), &shared).map_err(|_| "a block")?;
                if block.slots() < count(number) {
                    return Err("a block that is too short");
                }
                blocks.push(block);
            }
        }
        let slices = slices.into_iter().enumerate();
        let slices = slices.map(|(number, blocks)| EncodedSlice::new(count(number), blocks)).collect();
        Ok(Piece { block_slots: width, slices, rows })
    }
}

impl Names {
    /// The number of rows.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Names::Numbers(runs) => runs.iter().map(|(_, rows)| rows).sum(),
            Names::Columns(piece) => piece.rows as u64,
        }
    }

    pub(super) fn push(&self, shape: &Shape, wording: &Wording, out: &mut Vec<u8>) {
        match self {
            Names::Numbers(runs) => {
                push_varint(out, runs.len() as u64);
                let mut end = 0;
                for (first, rows) in runs {
                    push_varint(out, first - end);
                    push_varint(out, *rows);
                    end = first + rows;
                }
            }
            Names::Columns(piece) => {
                let columns = &wording.columns();
                Columns { shape, columns }.push_piece(piece, out);
            }
        }
    }

    pub(super) fn read(shape: &Shape, wording: &Wording, cursor: &mut Cursor<'_>) -> Result<Names, Flaw> {
        if *wording != Wording::Numbers {
            let columns = &wording.columns();
            return Ok(Names::Columns(Columns { shape, columns }.read_piece(cursor)?));
        }
        let (mut runs, mut end) = (Vec::new(), 0u64);
        for _ in 0..cursor.varint().ok_or(SHORT)? {
            let (gap, rows) = (cursor.varint().ok_or(SHORT)?, cursor.varint().ok_or(SHORT)?);
            let first = end.checked_add(gap).ok_or("its numbers")?;
            end = first.checked_add(rows).ok_or("its numbers")?;
            runs.push((first, rows));
        }
        Ok(Names::Numbers(runs))
    }
}
