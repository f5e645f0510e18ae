//! Any bytes as the log beside a data file of everything: the database is recovered, and all of it is read.
//!
//! Records change rows of all layouts, by key, by number and by all of their values, one by one and many at
//! once. So what is tried here is what reads records and does them once more.

use crate::file::read;
use crate::samples::{LOG_SEGMENT, Sample, everything};
use crate::{seal, without_numbers};
use entasis_storage::backend::MemoryBackend;
use entasis_storage::checkpoint::{self, Loads, Recovered};
use entasis_storage::file::{Access, DataFile};
use entasis_storage::wal::{Log, LogReader, SegmentBytes};
use entasis_storage::{Datum, RowId, Table, TableSnapshot};
use entasis_vector::{Chunk, Result, Selection, Value, Vector};
use std::sync::{Arc, LazyLock};

/// The data file that the log belongs to.
static DATA: LazyLock<Sample> = LazyLock::new(everything);

/// The target: see the module.
pub fn run(bytes: &[u8]) -> String {
    match recover(bytes.to_vec()) {
        Ok(read) => read,
        Err(error) => {
            let sealed = recover(seal::log(bytes, LOG_SEGMENT, DATA.id.0));
            let sealed = sealed.unwrap_or_else(|error| error.message().to_owned());
            without_numbers(&format!("{} / {sealed}", error.message()))
        }
    }
}

fn data() -> Result<DataFile> {
    DataFile::open(Arc::new(MemoryBackend::of("data", DATA.file.clone())), Access::Write)
}

fn recover(log: Vec<u8>) -> Result<String> {
    let file = data()?;
    let (header, segment) = (file.header(), SegmentBytes::new(LOG_SEGMENT).unwrap_or_default());
    let log = Arc::new(MemoryBackend::of("fuzzed", log));
    let reader = LogReader::open(log, DATA.id, segment, header.log_position, header.state)?;
    let Recovered { catalog, commits, .. } = checkpoint::recover(&file, reader, &mut |_| Ok(()))?;
    let mut encodings = Vec::new();
    for entry in catalog.version().tables() {
        read(&entry.table, &mut encodings);
        entry.indexes.iter().flatten().for_each(|index| read(index, &mut encodings));
    }
    Ok(format!("{} commits, {}", commits.min(20), encodings.join(" ")))
}

/// Logs of rows that came, changed and went in all tables.
pub fn seeds(_: &[Sample]) -> Vec<Vec<u8>> {
    let rounds: [&[Step]; 5] = [
        &[Step::Insert, Step::Insert, Step::Update],
        &[Step::Insert, Step::Delete, Step::Update, Step::Update],
        &[Step::Many, Step::Delete, Step::DeleteMany],
        &[Step::Clear, Step::Insert, Step::Many, Step::Update],
        &[Step::Many, Step::Clear],
    ];
    rounds.into_iter().map(|steps| written(steps).expect("memory does not fail")).collect()
}

/// What is done to a table.
#[derive(Clone, Copy)]
enum Step {
    Insert,
    Update,
    Delete,
    /// Rows that go at once.
    DeleteMany,
    /// Rows that come at once: some of the table's once more.
    Many,
    Clear,
}

/// The log of some steps, each done to each table.
fn written(steps: &[Step]) -> Result<Vec<u8>> {
    let file = Arc::new(data()?);
    let (catalog, _) = checkpoint::open(&file)?;
    let backend = MemoryBackend::new("log");
    let segment = SegmentBytes::new(LOG_SEGMENT).unwrap_or_default();
    let log = Arc::new(Log::create(Arc::new(backend.clone()), DATA.id, segment)?);
    // Its rows are not in the data file that the log is read beside.
    let loads = Loads::new(&file, &Arc::default());
    loads.set_least(u64::MAX);
    checkpoint::log_all(&catalog.version(), &log, &loads);
    for (number, step) in steps.iter().enumerate() {
        for entry in catalog.version().tables() {
            change(&entry.table, *step, number as i128)?;
        }
    }
    Ok(backend.bytes())
}

fn change(table: &Arc<Table>, step: Step, number: i128) -> Result<()> {
    let before = table.snapshot();
    let columns: Vec<usize> = (0..before.schema().len()).collect();
    let ids: Vec<RowId> = before.row_ids().take(70).collect();
    let Some(&first) = ids.first() else { return Ok(()) };
    if matches!(step, Step::Many) {
        return append(table, &before, &ids);
    }
    let mut row = Vec::new();
    before.read(first, &columns, &mut row);
    let mut writer = table.write();
    match step {
        Step::Insert => {
            row.iter_mut().for_each(|datum| {
                if let Datum::Integer(value) = datum {
                    *value = number % 2;
                }
            });
            writer.insert(&row);
        }
        Step::Update => _ = writer.update(first, &[(columns.len() - 1, Datum::Null)]),
        Step::Delete => writer.delete(first),
        Step::DeleteMany => writer.delete_many(&ids),
        Step::Clear | Step::Many => _ = writer.clear(),
    }
    writer.commit()
}

/// Adds some rows of a table to it once more.
fn append(table: &Arc<Table>, rows: &TableSnapshot, ids: &[RowId]) -> Result<()> {
    let mut chunk = Chunk::new();
    chunk.reset(ids.len());
    let selection = chunk.push_group(Selection::ALL);
    for (column, field) in table.schema().iter().enumerate() {
        let values: Vec<Value> = ids.iter().map(|&id| rows.datum(id, column).value(field.ty)).collect();
        chunk.push_column(Vector::from_values(field.ty.physical(), &values)?, selection);
    }
    let mut appender = table.appender();
    appender.append(&chunk, 0)?;
    table.commit(vec![appender.finish()]).map(|_| ())
}
