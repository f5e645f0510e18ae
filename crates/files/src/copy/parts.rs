//! The parts of a file: rows of one morsel as text, as a record batch or as an encoded row group, and the
//! output that they are written to.

use super::batch::Batch;
use super::settings::Settings;
use crate::codec::Compressor;
use crate::csv::text::Text;
use crate::parquet::{Encoded, RowGroups};
use crate::strings::string_bytes;
use crate::target::TargetFile;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use entasis_arrow::{chunk_to_batch, vector_to_array};
use entasis_engine::exec::{MemoryBudget, Reservation};
use entasis_vector::{Chunk, DataType, Error, Result, Schema};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the strings of rows that become a record batch together.
const BATCH_BYTES: usize = 1 << 20;

/// How rows become parts.
pub(super) struct RowFormat {
    pub(super) schema: Schema,
    pub(super) types: Vec<DataType>,
    pub(super) arrow: SchemaRef,
    pub(super) settings: Settings,
    /// The most bytes of rows that become a row group.
    pub(super) most_bytes: usize,
}

impl RowFormat {
    /// Some rows of a chunk as a record batch.
    pub(super) fn batch(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Batch> {
        let RowFormat { types, arrow, .. } = self;
        let mut memory = Reservation::new(memory);
        memory.resize(rows.clone().map(|row| string_bytes(chunk, row)).sum())?;
        let batch = if rows.len() == chunk.len() {
            chunk_to_batch(chunk, arrow, types)?
        } else {
            let array = |(column, &ty): (usize, &DataType)| {
                let positions: Vec<u16> = match chunk.positions(column) {
                    Some(positions) => positions[rows.clone()].to_vec(),
                    None => rows.clone().map(|row| row as u16).collect(),
                };
                vector_to_array(chunk.vector(column), Some(&positions), rows.len(), ty)
            };
            let arrays = types.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
            RecordBatch::try_new(arrow.clone(), arrays)
                .map_err(|e| Error::internal(format!("rows do not fit their schema: {e}")))?
        };
        memory.resize(batch.get_array_memory_size())?;
        Ok(Batch::new(batch, memory))
    }
}

/// Cuts the rows of a chunk into parts whose strings have about [`BATCH_BYTES`], or one row.
pub(super) fn parts_of(chunk: &Chunk) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..chunk.len() {
        let own = string_bytes(chunk, row);
        if row > start && bytes + own > BATCH_BYTES {
            parts.push(start..row);
            (start, bytes) = (row, 0);
        }
        bytes += own;
    }
    parts.push(start..chunk.len());
    parts
}

pub(super) enum Output {
    Text(Box<Compressor<BufWriter<TargetFile>>>),
    Parquet(Box<RowGroups>),
}

/// Rows of one morsel, ready to be written.
pub(super) enum FilePart {
    /// A text, with its memory if it is to wait.
    Text(Text, Option<Reservation>),
    Batch(Batch),
    /// A row group, encoded.
    Group(Encoded),
}

impl FilePart {
    pub(super) fn bytes(&self) -> usize {
        match self {
            FilePart::Text(text, _) => text.memory(),
            FilePart::Batch(batch) => batch.bytes(),
            FilePart::Group(group) => group.bytes(),
        }
    }
}

impl Output {
    /// Writes a part, without the first bytes of a text that are left out. Returns the text, of which only
    /// the buffer is of use.
    pub(super) fn write(&mut self, part: FilePart, left_out: &mut usize, path: &str) -> Result<Option<Text>> {
        let in_file = |e: Error| e.with_context(format!("'{path}'"));
        match (self, part) {
            (Output::Text(out), FilePart::Text(text, _)) => {
                out.write_all(&text.as_bytes()[std::mem::take(left_out)..])
                    .map_err(|e| Error::io(format!("'{path}'"), &e))?;
                Ok(Some(text))
            }
            (Output::Parquet(out), FilePart::Batch(batch)) => out.add(batch).map(|()| None).map_err(in_file),
            (Output::Parquet(out), FilePart::Group(group)) => {
                out.add_encoded(group).map(|()| None).map_err(in_file)
            }
            _ => Err(Error::internal("a part of another format than the file's")),
        }
    }

    pub(super) fn finish(self, end: &str, path: &str) -> Result<()> {
        match self {
            Output::Text(mut out) => {
                let ended = out.write_all(end.as_bytes()).and_then(|()| (*out).finish());
                ended.and_then(|mut out| out.flush()).map_err(|e| Error::io(format!("'{path}'"), &e))
            }
            Output::Parquet(out) => out.finish().map_err(|e| e.with_context(format!("'{path}'"))),
        }
    }
}
