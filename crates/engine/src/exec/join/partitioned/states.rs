//! The states of probe rows of a partition that is joined in blocks: a byte per probe row, which every block
//! reads and changes, in row order.
//!
//! The bytes are in memory if twice as many are free. Otherwise they are in temporary files, in pieces: while
//! a block runs, pieces are read from the file of the previous block and written to a new file. Only one
//! piece is in memory, which is not reserved.
//!
//! Every block must process the rows in the same steps, so that no step crosses the end of a piece.

use crate::context::QueryContext;
use crate::exec::spill::file::{Extent, TempFile};
use crate::memory::Reservation;
use entasis_vector::Result;

/// The size from which a piece is written, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// See the module.
pub(super) struct States {
    /// All of the states, or one piece of them.
    bytes: Vec<u8>,
    /// How many of `bytes` have been taken.
    taken: usize,
    files: Option<Files>,
    _memory: Reservation,
}

struct Files {
    /// What the previous block wrote, and how many of its pieces have been read; absent for the first block.
    old: Option<(Pieces, usize)>,
    new: Pieces,
    piece_bytes: usize,
    context: QueryContext,
}

struct Pieces {
    file: TempFile,
    extents: Vec<Extent>,
}

impl Pieces {
    fn new(context: &QueryContext) -> Result<Pieces> {
        Ok(Pieces { file: TempFile::new(context)?, extents: Vec::new() })
    }
}

impl States {
    /// Zeros for this many rows.
    ///
    /// # Errors
    /// If memory is short: I/O, if no file can be created; resource, if none may be.
    pub(super) fn new(rows: usize, context: &QueryContext) -> Result<States> {
        let mut memory = Reservation::new(&context.memory);
        let may_write = !context.settings.temp_directory.is_empty();
        if !may_write {
            memory.resize(rows)?;
        }
        if !may_write || (rows <= memory.free() / 2 && memory.resize(rows).is_ok()) {
            return Ok(States { bytes: vec![0; rows], taken: 0, files: None, _memory: memory });
        }
        States::in_files(PIECE_BYTES, context)
    }

    fn in_files(piece_bytes: usize, context: &QueryContext) -> Result<States> {
        let files = Files { old: None, new: Pieces::new(context)?, piece_bytes, context: context.clone() };
        Ok(States { bytes: Vec::new(), taken: 0, files: Some(files), _memory: Reservation::default() })
    }

    /// The states of the next `count` rows, to be changed.
    ///
    /// # Errors
    /// I/O; resource, if temporary files would be too large.
    pub(super) fn take(&mut self, count: usize) -> Result<&mut [u8]> {
        if let Some(files) = &mut self.files {
            if self.taken == self.bytes.len() && (files.old.is_some() || self.taken >= files.piece_bytes) {
                files.turn(&mut self.bytes)?;
                self.taken = 0;
            }
            if files.old.is_none() {
                self.bytes.resize(self.taken + count, 0);
            }
        }
        let first = self.taken;
        self.taken += count;
        Ok(&mut self.bytes[first..self.taken])
    }

    /// Called when a block has seen all rows: the next block begins at the first row.
    ///
    /// # Errors
    /// As for [`States::take`].
    pub(super) fn begin_again(&mut self) -> Result<()> {
        self.taken = 0;
        let Some(files) = &mut self.files else { return Ok(()) };
        files.write(&self.bytes)?;
        self.bytes.clear();
        let written = std::mem::replace(&mut files.new, Pieces::new(&files.context)?);
        files.old = Some((written, 0));
        Ok(())
    }
}

impl Files {
    fn write(&mut self, piece: &[u8]) -> Result<()> {
        if !piece.is_empty() {
            self.new.extents.push(self.new.file.add(piece)?);
        }
        Ok(())
    }

    /// Writes a piece that has been changed, and replaces it with the next one.
    fn turn(&mut self, piece: &mut Vec<u8>) -> Result<()> {
        self.write(piece)?;
        piece.clear();
        if let Some((old, read)) = &mut self.old {
            old.file.read(old.extents[*read], piece)?;
            *read += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::Chance;

    #[test]
    fn states_in_files_are_those_in_memory() {
        let context = QueryContext::default();
        let mut chance = Chance(20);
        for rows in [0, 1, 100, 5000] {
            let mut counts = Vec::new();
            let mut left = rows;
            while left > 0 {
                let count = 1 + chance.below(left.min(70) as u64) as usize;
                counts.push(count);
                left -= count;
            }
            for piece_bytes in [1, 64, 10_000] {
                let (mut twin, mut in_memory) = (vec![0u8; rows], States::new(rows, &context).unwrap());
                let mut in_files = States::in_files(piece_bytes, &context).unwrap();
                for block in 1..6 {
                    let mut first = 0;
                    for &count in &counts {
                        let own = &mut twin[first..first + count];
                        let states = [in_memory.take(count).unwrap(), in_files.take(count).unwrap()];
                        assert!(states.iter().all(|states| **states == *own));
                        let changed = chance.below(count as u64) as usize;
                        own[changed] = block;
                        states.into_iter().for_each(|states| states[changed] = block);
                        first += count;
                    }
                    in_memory.begin_again().unwrap();
                    in_files.begin_again().unwrap();
                    // The file of the block before the previous one is gone.
                    assert_eq!(context.temp.used(), rows as u64);
                }
            }
        }
        assert_eq!((context.memory.used(), context.temp.used()), (0, 0));
    }
}
