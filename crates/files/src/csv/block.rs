//! Blocks of whole records, into which CSV files are cut one after the other.

use super::encoding::Input;
use super::files::{CsvFile, CsvFiles};
use super::lines::{lines, preamble};
use super::record::last_record_end;
use crate::source::{PipeUse, open_bytes};
use entasis_engine::exec::{CancelFlag, MemoryBudget, Reservation};
use entasis_vector::{Error, Result};
use std::sync::Arc;

/// Size of the first blocks of a scan: a `LIMIT` needs no more.
const BLOCK_BYTES_MIN: usize = 1 << 20;
/// Size of later blocks: each has enough rows for a row group of its own when they are loaded.
const BLOCK_BYTES_MAX: usize = 8 << 20;
/// The longest possible record.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// Whose memory it is, in the words of an error.
pub(super) const OWNER: &str = "long records of CSV files";
/// How many times a buffer becomes larger that has no room for a long record. Memory that is not written to
/// costs nothing, and moving costs what was there.
const LONG_GROWTH: usize = 4;

/// The bytes of some records, and the memory that is reserved for them if they are more than those of a
/// block.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) bytes: Vec<u8>,
    pub(super) memory: Reservation,
}

impl Records {
    pub(super) fn new(budget: &Arc<MemoryBudget>) -> Records {
        Records { bytes: Vec::new(), memory: Reservation::new(budget) }
    }

    /// Makes room for `more` bytes.
    fn reserve(bytes: &mut Vec<u8>, memory: &mut Reservation, more: usize) -> Result<()> {
        let needed = bytes.len() + more;
        let is_long = needed > 2 * BLOCK_BYTES_MAX;
        // The buffers that it had before have been freed a moment ago.
        let all = needed + needed / (LONG_GROWTH - 1);
        if is_long && all > memory.bytes() {
            memory.resize(all)?;
        }
        if needed > bytes.capacity() {
            let growth = if is_long { LONG_GROWTH } else { 2 };
            bytes.reserve_exact(needed.max(growth * bytes.capacity()) - bytes.len());
        }
        Ok(())
    }

    /// Forgets all bytes, and keeps memory for those of a block.
    fn clear(&mut self) {
        self.bytes.clear();
        if self.memory.bytes() > 0 {
            self.bytes = Vec::new();
            self.memory.resize(0).ok();
        }
    }
}

/// Cuts the files into blocks of whole records.
pub(super) struct Splitter {
    relation: Arc<CsvFiles>,
    cancel: CancelFlag,
    /// The files to read, in order.
    files: Vec<usize>,
    next_file: usize,
    input: Option<Input>,
    /// Whether nothing of the current file has been read yet.
    fresh: bool,
    /// The bytes after the last record that ended in the previous block.
    carry: Records,
    /// The line on which `carry` begins, counted from 1.
    line: usize,
    blocks: u64,
    bytes: u64,
}

/// Whole records of one file.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) records: Records,
    pub(super) number: u64,
    pub(super) file: usize,
    /// The line on which the block begins.
    pub(super) line: usize,
    /// Whether its first record holds the names of the columns.
    pub(super) header: bool,
}

impl Block {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.records.bytes
    }
}

impl Splitter {
    /// Cuts these files of a relation, in order.
    pub(super) fn new(
        relation: Arc<CsvFiles>,
        files: Vec<usize>,
        cancel: CancelFlag,
        memory: &Arc<MemoryBudget>,
    ) -> Splitter {
        Splitter {
            relation,
            cancel,
            files,
            next_file: 0,
            input: None,
            fresh: false,
            carry: Records::new(memory),
            line: 1,
            blocks: 0,
            bytes: 0,
        }
    }

    /// How many bytes of text have been read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills `block` with the next records. False at the end of the last file, and after an error: no other
    /// worker is to meet it again.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<bool> {
        let filled = self.fill(block);
        if filled.is_err() {
            (self.input, self.next_file) = (None, self.files.len());
            self.carry.clear();
        }
        filled
    }

    /// Opens the next file, and says whether it has a header; `None` after the last one.
    fn open_next(&mut self) -> Result<Option<bool>> {
        let Some(&index) = self.files.get(self.next_file) else { return Ok(None) };
        let file = &self.relation.files[index];
        let options = &self.relation.options;
        let source = open_bytes(&file.path, file.pipe.as_ref(), options.codec, PipeUse::Take, &self.cancel)?;
        self.input = Some(Input::new(source, options.encoding, self.cancel.clone()));
        self.next_file += 1;
        self.fresh = true;
        self.carry.clear();
        self.line = 1;
        Ok(Some(file.header))
    }

    fn fill(&mut self, block: &mut Block) -> Result<bool> {
        block.records.clear();
        block.header = false;
        let usual = (BLOCK_BYTES_MIN << (self.blocks / 4).min(8)).min(BLOCK_BYTES_MAX);
        loop {
            if self.input.is_none() {
                let Some(header) = self.open_next()? else { return Ok(false) };
                block.header = header;
            }
            let index = self.files[self.next_file - 1];
            let CsvFile { path, dialect, .. } = &self.relation.files[index];
            let Some(input) = &mut self.input else { continue };
            if self.carry.memory.bytes() > 0 {
                std::mem::swap(&mut block.records, &mut self.carry);
            } else {
                block.records.bytes.append(&mut self.carry.bytes);
            }
            let Records { bytes, memory } = &mut block.records;
            // A record that is longer than a block is scanned again each time, so each time the block is
            // doubled.
            let wanted = usual.max(bytes.len());
            let mut room = |bytes: &mut Vec<u8>, more| Records::reserve(bytes, memory, more);
            let read = input.read(path, wanted, bytes, &mut room).map_err(|error| {
                let line = self.line + lines(bytes);
                error.with_context(format!("'{}', line {line}", path.display()))
            })?;
            self.bytes += read as u64;
            let ended = read < wanted;
            if std::mem::take(&mut self.fresh) {
                let (skipped, lines) = preamble(bytes, self.relation.options.skip);
                bytes.drain(..skipped);
                self.line += lines;
            }
            if ended {
                self.input = None;
            } else {
                match last_record_end(bytes, *dialect) {
                    Some(end) => {
                        let Records { bytes: carry, memory } = &mut self.carry;
                        Records::reserve(carry, memory, bytes.len() - end)?;
                        carry.extend_from_slice(&bytes[end..]);
                        bytes.truncate(end);
                    }
                    None if bytes.len() < RECORD_BYTES_MAX => {
                        std::mem::swap(&mut block.records, &mut self.carry);
                        continue;
                    }
                    None => {
                        let text =
                            format!("'{}', line {}: a record of more than 1 GB", path.display(), self.line);
                        return Err(Error::input(text).with_hint("a quote may be missing; try quote => ''"));
                    }
                }
            }
            block.file = index;
            block.line = self.line;
            self.line += lines(block.bytes());
            if block.bytes().is_empty() {
                continue;
            }
            block.number = self.blocks;
            self.blocks += 1;
            return Ok(true);
        }
    }
}
