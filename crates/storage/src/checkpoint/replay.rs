//! What commits of a log did, done once more: names change here, rows in [`Table::redo_one`], or as whoever
//! reads the log says. A record that does not apply is damage: the log and the file do not belong together.

use super::heirs::{self, Inherited};
use super::loads;
use super::objects::{self, Relation, lasting, tables_of};
use super::read::{self, Unread};
use super::record::Checkpointed;
use super::source::Source;
use crate::catalog::{CatalogVersion, Entry};
use crate::definition::{ObjectId, Sequence};
use crate::file::{DataFile, Extent};
use crate::record::{Record, Records, damaged, kind};
use crate::table::{ReadLoad, Table};
use crate::tree::Shape;
use crate::wal::{Commit, LogReader};
use entasis_vector::{Error, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The state so far.
pub(super) struct Replay<'a> {
    pub(super) file: &'a DataFile,
    pub(super) names: CatalogVersion,
    /// Images and loads that were read are taken out of the free pages of the file.
    pub(super) claims: bool,
    /// Nobody else knows the tables, so that those which are made of others succeed them at once. Otherwise
    /// they do when names are published.
    pub(super) is_alone: bool,
    /// What the next checkpoint is to know.
    pub(super) written: Checkpointed,
    pub(super) known: KnownObjects,
}

/// Tables, indexes and sequences by their ids. Copies share what they have, until one of them changes.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownObjects {
    /// Those that have names, or had them before the commit.
    pub(super) tables: Arc<HashMap<u64, Arc<Table>>>,
    sequences: Arc<HashMap<u64, Arc<Sequence>>>,
}

impl KnownObjects {
    /// Knows those of an entry.
    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Table(entry) => {
                let tables = tables_of(entry).map(|table| (table.object().number(), table.clone()));
                Arc::make_mut(&mut self.tables).extend(tables);
            }
            Entry::Sequence(sequence) => {
                Arc::make_mut(&mut self.sequences).insert(sequence.id().number(), sequence.clone());
            }
            Entry::View(_) | Entry::Type(_) | Entry::Schema(_) => {}
        }
    }

    /// Those of all objects that outlive their connections.
    pub(super) fn of(names: &CatalogVersion) -> KnownObjects {
        let mut known = KnownObjects::default();
        lasting(names).for_each(|entry| known.add(entry));
        known
    }
}

/// Does what a record of rows says.
pub(super) type RedoRows<'a> = dyn FnMut(Record<'_>, &KnownObjects, &mut ReadLoad<'_>) -> Result<()> + 'a;

/// Does what a record of rows says, in the place of [`Replay::commit`]'s `rows`, where nobody else knows the
/// tables.
pub(super) fn redo(record: Record<'_>, known: &KnownObjects, load: &mut ReadLoad<'_>) -> Result<()> {
    Table::redo_one(record, &|id| known.tables.get(&id).cloned(), load)
}

/// The error of a commit, with its place.
pub(super) fn at(log: &LogReader, commit: &Commit, error: &Error) -> Error {
    let message = format!("{}, position {}: {}", log.name(), commit.position, error.message());
    Error::new(error.kind(), message)
}

impl<'a> Replay<'a> {
    /// Begins with some names, whose tables nobody else knows.
    pub(super) fn of(file: &'a DataFile, names: CatalogVersion) -> Replay<'a> {
        let known = KnownObjects::of(&names);
        Replay { is_alone: true, ..Replay::knowing(file, names, known) }
    }

    /// The same, for who knows already what there is.
    pub(super) fn knowing(file: &'a DataFile, names: CatalogVersion, known: KnownObjects) -> Replay<'a> {
        Replay { file, names, claims: false, is_alone: false, written: Checkpointed::default(), known }
    }

    /// Does what the records of a commit say; those of rows by `rows`.
    pub(super) fn commit(&mut self, records: &[u8], rows: &mut RedoRows<'_>) -> Result<()> {
        let mut are_names_changed = false;
        for record in Records::new(records) {
            let record = record?;
            match record.kind() {
                kind::PUT | kind::INHERIT => self.put(record)?,
                kind::DROP => self.drop(record)?,
                kind::SEQUENCE => {
                    self.sequence(record)?;
                    continue;
                }
                _ => {
                    self.rows(record, rows)?;
                    continue;
                }
            }
            are_names_changed = true;
        }
        if are_names_changed {
            // Tables that were dropped may have been written to by the same commit.
            let named = self.names.tables().flat_map(|entry| tables_of(entry).map(|table| table.object()));
            let named: HashSet<u64> = named.map(ObjectId::number).collect();
            Arc::make_mut(&mut self.known.tables).retain(|id, _| named.contains(id));
        }
        Ok(())
    }

    fn rows(&mut self, record: Record<'_>, rows: &mut RedoRows<'_>) -> Result<()> {
        let Replay { file, claims, written, known, .. } = self;
        let id = ObjectId::of(record.clone().table()?);
        let mut read = |index: Extent, shape: &Shape| {
            let (load, loaded) = loads::read(file, id, shape, index)?;
            if *claims {
                load.extents().try_for_each(|extent| file.claim(extent))?;
                written.loads.push(Arc::new(load));
            }
            Ok(loaded)
        };
        rows(record, known, &mut read)
    }

    fn put(&mut self, record: Record<'_>) -> Result<()> {
        let kind = record.kind();
        let mut source = Source::of_record(record.body());
        let object = objects::object(&mut source, u64::MAX)?.renewed(&self.names);
        let images = source.list(|source| Ok((source.varint()?, source.extent()?)))?;
        let mut inherited = if kind == kind::INHERIT { Some(heirs::decode(&mut source)?) } else { None };
        source.end()?;
        let mut images: BTreeMap<u64, Extent> = images.into_iter().collect();
        // The table comes before its indexes.
        let entry = object.entry(&mut |relation| match inherited.take() {
            Some(inherited) => self.heir(relation, inherited),
            None => self.table(relation, &mut images),
        })?;
        source.check(images.is_empty() && inherited.is_none(), "rows of a table that it does not make")?;
        // A sequence that has another entry now goes on with what it has given out.
        if let Entry::Sequence(sequence) = &entry {
            ObjectId::reserve(sequence.id().number() + 1);
        }
        self.known.add(&entry);
        self.names.put(entry);
        Ok(())
    }

    /// The table of a relation: one that is known, or a new one with the rows that the log refers to.
    fn table(&mut self, relation: Relation, images: &mut BTreeMap<u64, Extent>) -> Result<Arc<Table>> {
        let id = relation.id;
        if let Some(table) = self.known.tables.get(&id.number()) {
            return Ok(table.clone());
        }
        ObjectId::reserve(id.number() + 1);
        let Some(manifest) = images.remove(&id.number()) else {
            let Relation { id, name, schema, options } = relation;
            return Ok(Table::with_id(id, name, schema, options));
        };
        let unread = Unread::new(self.file, relation, manifest)?;
        let table = unread.table().clone();
        for (object, written) in read::rows(self.file, vec![unread])? {
            if self.claims {
                let extents: BTreeMap<u64, Extent> =
                    written.extents().map(|extent| (extent.offset, extent)).collect();
                extents
                    .into_values()
                    .filter(|extent| extent.bytes > 0)
                    .try_for_each(|extent| self.file.claim(extent))?;
            }
            self.written.tables.insert(object, written);
        }
        Ok(table)
    }

    /// The table of a relation that has the rows of another one.
    fn heir(&mut self, relation: Relation, inherited: Inherited<'_>) -> Result<Arc<Table>> {
        let id = relation.id.number();
        let tables = &self.known.tables;
        let old = tables.get(&inherited.old).filter(|_| !tables.contains_key(&id));
        let old = old.ok_or_else(|| damaged("a table that it makes of one that is not there"))?;
        ObjectId::reserve(id.saturating_add(1));
        let table = inherited.table(relation, old)?;
        if self.is_alone {
            table.succeed();
        }
        Ok(table)
    }

    fn drop(&mut self, record: Record<'_>) -> Result<()> {
        let mut source = Source::of_record(record.body());
        let name = source.text()?;
        source.end()?;
        // Its schema may have been dropped just before.
        let is_there = self.names.take(name) || self.names.take(&objects::renewed(name, &self.names));
        if is_there { Ok(()) } else { Err(damaged("what it drops is not there")) }
    }

    /// Goes on with the numbers of a sequence as a record says.
    pub(super) fn sequence(&mut self, record: Record<'_>) -> Result<()> {
        let mut source = Source::of_record(record.body());
        let (id, next) = (source.varint()?, source.maybe(Source::i64)?);
        source.end()?;
        // Somebody may have taken a number of one that was just dropped.
        if let Some(sequence) = self.known.sequences.get(&id) {
            sequence.go_on_with(next);
        }
        Ok(())
    }
}
