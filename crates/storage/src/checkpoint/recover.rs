//! Recovery: the state of a file, and what the log says was done since.
//!
//! 1. [`super::open`] makes the catalog and the tables of the newest checkpoint.
//! 2. The records of each commit are done once more, in the order of the log: names change here, rows in
//!    [`Table::redo_one`]. A record that does not apply is damage: the log and the file do not belong together.
//! 3. What the log refers to in the file ([`super::images`]) is taken out of the free pages, and is known to
//!    the next checkpoint. Pages that neither it nor the checkpoint reaches are free.
//!
//! The log is not written meanwhile, so a machine that stops here is opened again as before.

use super::objects::{self, Relation, tables_of};
use super::read;
use super::record::Checkpointed;
use super::source::Source;
use crate::catalog::{Catalog, CatalogVersion, Entry};
use crate::definition::{ObjectId, Sequence};
use crate::file::{DataFile, Extent};
use crate::record::{Record, Records, damaged, kind};
use crate::table::Table;
use crate::wal::{LogReader, Tail};
use entasis_vector::{Error, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A database as it was when its last commit ended.
pub struct Recovered {
    /// Its names and tables.
    pub catalog: Catalog,
    /// What the next checkpoint is to know.
    pub written: Checkpointed,
    /// The end of the log.
    pub tail: Tail,
    /// Commits that were done once more.
    pub commits: u64,
}

/// Opens a file together with its log, which was opened at the position that the file says. `progress` is
/// told the position, now and then.
///
/// # Errors
/// I/O; corruption, with the place.
pub fn recover(
    file: &DataFile,
    mut log: LogReader,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Recovered> {
    let (catalog, written) = super::open(file)?;
    let names = catalog.version();
    let mut replay = Replay { file, names, written, tables: HashMap::new(), sequences: HashMap::new() };
    replay.names.clone().entries().for_each(|entry| replay.know(entry));
    let mut commits = 0;
    while let Some(commit) = log.next_commit()? {
        progress(commit.position)?;
        replay.commit(&commit.records).map_err(|error| {
            Error::new(
                error.kind(),
                format!("{}, position {}: {}", log.name(), commit.position, error.message()),
            )
        })?;
        commits += 1;
    }
    let Replay { names, written, .. } = replay;
    file.keep_only(&written.reached())?;
    let catalog = if commits == 0 { catalog } else { Catalog::of(names) };
    Ok(Recovered { catalog, written, tail: log.end()?, commits })
}

/// The state so far.
struct Replay<'a> {
    file: &'a DataFile,
    names: CatalogVersion,
    written: Checkpointed,
    /// Tables and indexes that have names, or had them before the commit.
    tables: HashMap<u64, Arc<Table>>,
    sequences: HashMap<u64, Arc<Sequence>>,
}

impl Replay<'_> {
    fn commit(&mut self, records: &[u8]) -> Result<()> {
        let mut are_names_changed = false;
        for record in Records::new(records) {
            let record = record?;
            match record.kind() {
                kind::PUT => self.put(record)?,
                kind::DROP => self.drop(record)?,
                kind::SEQUENCE => self.sequence(record)?,
                _ => {
                    Table::redo_one(record, &|id| self.tables.get(&id).cloned())?;
                    continue;
                }
            }
            are_names_changed = true;
        }
        if are_names_changed {
            // Tables that were dropped may have been written to by the same commit.
            let named = self.names.tables().flat_map(|entry| tables_of(entry).map(|table| table.object()));
            let named: HashSet<u64> = named.map(ObjectId::number).collect();
            self.tables.retain(|id, _| named.contains(id));
        }
        Ok(())
    }

    /// Knows the tables and sequences of an entry by their ids.
    fn know(&mut self, entry: &Entry) {
        match entry {
            Entry::Table(entry) => {
                self.tables.extend(tables_of(entry).map(|table| (table.object().number(), table.clone())));
            }
            Entry::Sequence(sequence) => {
                self.sequences.insert(sequence.id().number(), sequence.clone());
            }
            Entry::View(_) | Entry::Schema(_) => {}
        }
    }

    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let mut source = Source::of_record(record.body());
        let object = objects::object(&mut source, u64::MAX)?;
        let images = source.list(|source| Ok((source.varint()?, source.extent()?)))?;
        source.end()?;
        let mut images: BTreeMap<u64, Extent> = images.into_iter().collect();
        let entry = object.entry(&mut |relation| self.table(relation, &mut images))?;
        source.check(images.is_empty(), "rows of a table that it does not make")?;
        // A sequence that has another entry now goes on with what it has given out.
        if let Entry::Sequence(sequence) = &entry {
            ObjectId::reserve(sequence.id().number() + 1);
        }
        self.know(&entry);
        self.names.put(entry);
        Ok(())
    }

    /// The table of a relation: one that is known, or a new one with the rows that the log refers to.
    fn table(&mut self, relation: Relation, images: &mut BTreeMap<u64, Extent>) -> Result<Arc<Table>> {
        let id = relation.id;
        if let Some(table) = self.tables.get(&id.number()) {
            return Ok(table.clone());
        }
        ObjectId::reserve(id.number() + 1);
        let Some(manifest) = images.remove(&id.number()) else {
            let Relation { id, name, schema, options } = relation;
            return Ok(Table::with_id(id, name, schema, options));
        };
        let (table, written) = read::table(self.file, relation, manifest)?;
        let extents: BTreeMap<u64, Extent> =
            written.extents().map(|extent| (extent.offset, extent)).collect();
        extents
            .into_values()
            .filter(|extent| extent.bytes > 0)
            .try_for_each(|extent| self.file.claim(extent))?;
        self.written.tables.insert(id, written);
        Ok(table)
    }

    fn drop(&mut self, record: Record<'_>) -> Result<()> {
        let mut source = Source::of_record(record.body());
        let name = source.text()?;
        source.end()?;
        if self.names.take(name) { Ok(()) } else { Err(damaged("what it drops is not there")) }
    }

    fn sequence(&mut self, record: Record<'_>) -> Result<()> {
        let mut source = Source::of_record(record.body());
        let (id, next) = (source.varint()?, source.maybe(Source::i64)?);
        source.end()?;
        // Somebody may have taken a number of one that was just dropped.
        if let Some(sequence) = self.sequences.get(&id) {
            sequence.go_on_with(next);
        }
        Ok(())
    }
}
