//! Adds rows in bulk: each worker has an appender, which encodes rows as they come, and one commit adds the
//! rows of all of them.
//!
//! A worker's rows come morsel by morsel, in ascending order, but other workers may have the morsels in
//! between. So rows are only encoded together if their morsels are consecutive: they make a *piece*, or
//! several once they fill a row group. The commit sorts pieces by morsel.

use super::head::Table;
use super::loads::StoredLoad;
use crate::builder::{Effort, GroupBuilder};
use crate::tree::Piece;
use crate::value::{Datum, Sketch};
use entasis_vector::error::sqlstate::NOT_NULL;
use entasis_vector::{Chunk, Error, ErrorKind, PhysicalType, Result, Vector};
use std::sync::Arc;

/// Takes the rows that one worker adds to a table. None of them is visible before [`Table::commit`].
pub struct Appender {
    table: Arc<Table>,
    builder: GroupBuilder,
    /// The first and the last morsel of the piece that is being built.
    first_morsel: u64,
    last_morsel: u64,
    pieces: Vec<(u64, Arc<Piece>)>,
    pieces_bytes: usize,
}

/// The rows that an [`Appender`] took, encoded. Cheap to clone; but while there is a clone, adding the rows
/// may copy them.
#[derive(Debug, Clone)]
pub struct AppendedRows {
    /// Pieces, each with the first of its morsels; those with equal morsels in their order.
    pub(crate) pieces: Vec<(u64, Arc<Piece>)>,
    /// A sketch for each column.
    pub(crate) sketches: Vec<Sketch>,
    types: Vec<PhysicalType>,
}

/// Rows that are ready to be added to the tree.
pub(crate) struct Added {
    pub(crate) pieces: Vec<Arc<Piece>>,
    /// For each appender, a sketch for each column.
    pub(crate) sketches: Vec<Vec<Sketch>>,
    /// Where the data file has them, if they have been written there.
    pub(crate) stored: Option<Arc<dyn StoredLoad>>,
}

impl Table {
    /// An appender for one worker.
    pub fn appender(self: &Arc<Table>) -> Appender {
        Appender::new(self.clone())
    }

    /// The pieces of all appenders in the order of their morsels, small ones encoded together.
    pub(crate) fn join(&self, appended: Vec<AppendedRows>) -> Result<Added> {
        let (pieces, sketches): (Vec<_>, Vec<_>) =
            appended.into_iter().map(|a| (a.pieces, a.sketches)).unzip();
        let mut pieces: Vec<(u64, Arc<Piece>)> = pieces.into_iter().flatten().collect();
        pieces.sort_by_key(|(morsel, _)| *morsel);
        let pieces = self.join_small(pieces.into_iter().map(|(_, piece)| piece))?;
        Ok(Added { pieces, sketches, stored: None })
    }

    /// How builders encode rows of this table. By key, slices already have ghost slots, so that rows that
    /// come in order need not be laid out again.
    pub(crate) fn effort(&self, sketch: bool) -> Effort {
        let options = &self.shape.options;
        let (width, keyed) = (options.block_slots, self.shape.key.is_some());
        let block_rows = if keyed { options.filled_slots(width) } else { width };
        Effort {
            sketch,
            block_rows,
            capacity: if block_rows < width { width } else { 0 },
            group_rows: options.group_slots / width * block_rows,
        }
    }

    /// Encodes neighbouring small pieces together.
    fn join_small(&self, pieces: impl Iterator<Item = Arc<Piece>>) -> Result<Vec<Arc<Piece>>> {
        let full = self.effort(false).group_rows;
        let mut joined = Vec::new();
        let mut small: Vec<Arc<Piece>> = Vec::new();
        let mut small_rows = 0;
        let flush = |small: &mut Vec<Arc<Piece>>, joined: &mut Vec<Arc<Piece>>| -> Result<()> {
            if small.len() <= 1 {
                joined.append(small);
                return Ok(());
            }
            let mut builder = GroupBuilder::new(&self.shape, self.effort(false));
            for piece in small.drain(..) {
                builder.append_slots(&*piece, 0..piece.rows, self.schema())?;
            }
            joined.push(Arc::new(builder.finish()));
            Ok(())
        };
        for piece in pieces {
            let is_small = piece.rows < full / 4;
            if !is_small || small_rows + piece.rows > full {
                flush(&mut small, &mut joined)?;
                small_rows = 0;
            }
            if is_small {
                small_rows += piece.rows;
                small.push(piece);
            } else {
                joined.push(piece);
            }
        }
        flush(&mut small, &mut joined)?;
        Ok(joined)
    }
}

impl Appender {
    pub(crate) fn new(table: Arc<Table>) -> Appender {
        let builder = GroupBuilder::new(&table.shape, table.effort(true));
        Appender { table, builder, first_morsel: 0, last_morsel: 0, pieces: Vec::new(), pieces_bytes: 0 }
    }

    /// Takes the rows of `chunk`, which has the table's columns in order, each of its type's default physical
    /// type (a wide decimal may also come in 64 bits). Morsels must not descend.
    ///
    /// # Errors
    /// Constraint, if a NULL is in a column that is declared `NOT NULL`; resource, if 1024 strings exceed 4
    /// GiB.
    pub fn append(&mut self, chunk: &Chunk, morsel: u64) -> Result<()> {
        if chunk.columns().len() != self.table.schema().len() {
            return Err(Error::internal(format!(
                "table {} has {} columns and was given {}",
                self.table.name(),
                self.table.schema().len(),
                chunk.columns().len()
            )));
        }
        self.check_not_null(chunk)?;
        debug_assert!(morsel >= self.last_morsel);
        if morsel > self.last_morsel + 1 {
            self.seal();
        }
        if self.builder.rows() == 0 {
            self.first_morsel = morsel;
        }
        self.last_morsel = morsel;
        let mut done = 0;
        while done < chunk.len() {
            let rows = (chunk.len() - done).min(self.builder.room());
            for (column, builder) in self.builder.columns_mut().iter_mut().enumerate() {
                builder.append(chunk.vector(column), chunk.positions(column), done..done + rows)?;
            }
            self.builder.added(rows);
            done += rows;
            if self.builder.room() == 0 {
                self.seal();
            }
        }
        Ok(())
    }

    fn check_not_null(&self, chunk: &Chunk) -> Result<()> {
        for (column, field) in self.table.schema().iter().enumerate() {
            let vector = chunk.vector(column);
            if !field.nullable && has_null(vector, chunk.positions(column), chunk.len()) {
                let text = format!(
                    "NULL in column {}.{}, which is declared NOT NULL",
                    self.table.name(),
                    field.name
                );
                return Err(Error::new(ErrorKind::Constraint, text)
                    .with_sqlstate(NOT_NULL)
                    .with_table(self.table.name())
                    .with_column(&*field.name));
            }
        }
        Ok(())
    }

    fn seal(&mut self) {
        if self.builder.rows() > 0 {
            let piece = self.builder.finish();
            self.pieces_bytes += piece.bytes();
            self.pieces.push((self.first_morsel, Arc::new(piece)));
        }
    }

    /// Bytes of memory that the rows taken so far need.
    pub fn bytes(&self) -> usize {
        self.pieces_bytes + self.builder.bytes()
    }

    /// The rows, to be committed.
    pub fn finish(mut self) -> AppendedRows {
        self.seal();
        let types = self.table.schema().iter().map(|field| field.ty.physical()).collect();
        AppendedRows { pieces: self.pieces, sketches: self.builder.take_sketches(), types }
    }
}

impl AppendedRows {
    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|(_, piece)| piece.rows as u64).sum()
    }

    /// Calls `each` with the values of some columns of every row.
    pub fn each_row(&self, columns: &[usize], mut each: impl FnMut(&[Datum<'_>])) {
        let mut datums = Vec::with_capacity(columns.len());
        for slice in self.pieces.iter().flat_map(|(_, piece)| &piece.slices) {
            for slot in 0..slice.rows {
                datums.clear();
                datums.extend(
                    columns.iter().map(|&column| slice.blocks[column].datum(slot, self.types[column])),
                );
                each(&datums);
            }
        }
    }
}

fn has_null(vector: &Vector, positions: Option<&[u16]>, rows: usize) -> bool {
    if vector.validity().is_none() {
        return false;
    }
    match positions {
        None => (0..rows).any(|position| !vector.is_valid(position)),
        Some(positions) => positions.iter().any(|&position| !vector.is_valid(position as usize)),
    }
}
