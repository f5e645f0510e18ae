//! Any bytes as a data file: it is opened, and all rows of its tables and indexes are read.

use crate::samples::Sample;
use crate::{seal, without_numbers};
use entasis_storage::backend::MemoryBackend;
use entasis_storage::file::{Access, DataFile};
use entasis_storage::{Table, checkpoint};
use entasis_vector::{Result, Vector};
use std::sync::Arc;

/// Rows of a table that are read one by one. A block of equal values takes a few bytes for a thousand rows,
/// so all of them may be many.
const ROWS: usize = 20_000;
/// Slots that are decoded at once.
const WINDOW: usize = 1024;

/// The target: see the module.
pub fn run(bytes: &[u8]) -> String {
    match open(bytes.to_vec()) {
        Ok(read) => read,
        Err(error) => {
            let sealed = open(seal::file(bytes)).unwrap_or_else(|error| error.message().to_owned());
            without_numbers(&format!("{} / {sealed}", error.message()))
        }
    }
}

/// Files with a few tables.
pub fn seeds(samples: &[Sample]) -> Vec<Vec<u8>> {
    samples.iter().map(|sample| sample.file.clone()).collect()
}

/// Opens a file and reads all of it. What was there.
fn open(bytes: Vec<u8>) -> Result<String> {
    let file = DataFile::open(Arc::new(MemoryBackend::of("fuzzed", bytes)), Access::Read)?;
    let (catalog, _) = checkpoint::open(&file)?;
    let names = catalog.version();
    let mut encodings: Vec<&str> = Vec::new();
    let mut objects = 0;
    for entry in names.entries() {
        objects += usize::from(!entry.name().is_empty() || !entry.kind().is_empty());
    }
    for entry in names.tables() {
        read(&entry.table, &mut encodings);
        entry.indexes.iter().flatten().for_each(|index| read(index, &mut encodings));
    }
    Ok(format!("{} objects, {}", objects.min(9), encodings.join(" ")))
}

/// Reads rows by their places, by their keys, and as columns.
pub(crate) fn read(table: &Arc<Table>, encodings: &mut Vec<&'static str>) {
    let snapshot = table.snapshot();
    let columns: Vec<usize> = (0..snapshot.schema().len()).collect();
    let key = table.options().layout_key.clone();
    let mut row = Vec::new();
    for id in snapshot.row_ids().take(ROWS) {
        row.clear();
        snapshot.read(id, &columns, &mut row);
        if !key.is_empty() {
            let key: Vec<_> = key.iter().map(|&column| row[column]).collect();
            snapshot.find(&key);
        }
    }
    let mut vectors: Vec<Vector> =
        snapshot.schema().iter().map(|field| Vector::new(field.ty.physical())).collect();
    for group in snapshot.row_groups().take(ROWS / WINDOW) {
        for first in (0..group.slots()).step_by(WINDOW).take(ROWS / WINDOW) {
            for (column, vector) in vectors.iter_mut().enumerate() {
                group.decode(column, first, WINDOW.min(group.slots() - first), vector);
            }
        }
        for block in 0..group.blocks().min(16) {
            for column in &columns {
                let encoding = group.block_info(*column, block).encoding;
                if !encodings.contains(&encoding) {
                    encodings.push(encoding);
                }
            }
        }
    }
    encodings.sort_unstable();
    columns.iter().for_each(|&column| _ = snapshot.column_statistics(column));
}
