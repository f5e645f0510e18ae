//! Changes of names, as records of the log (docs/design/file-format.md, "Redo records").
//!
//! 1. [`NameChanges::record`] determines which objects a commit creates, changes or drops. It writes the rows
//!    of new tables to the data file, which is synced, so that the records can refer to them. This takes time
//!    in proportion to the rows, and holds no lock but the write locks that its caller has.
//! 2. [`NameChanges::prologue`] is what the commit appends to the log in front of its changes of rows.
//! 3. [`NameChanges::publish`] is called under the lock of the names, once the commit has been appended: from
//!    then on the new tables and sequences are logged, and the next checkpoint knows what the file has of
//!    them.
//!
//! If a change is not published, its extents are free again. Temporary objects are left out, because they end
//! with their connections.

use super::extents::ExtentWriter;
use super::heirs;
use super::images::Images;
use super::loads::Loads;
use super::objects::{self, tables_of};
use super::record::{Image, TableRecord};
use super::source::{push_list, push_maybe, push_text};
use super::write;
use crate::backend::bytes::push_varint;
use crate::catalog::{CatalogVersion, Entry, is_temporary};
use crate::definition::{ObjectId, Sequence, sequence::Reservations};
use crate::file::{DataFile, Extent, State};
use crate::record::{kind, push_record};
use crate::sync::lock_order::assert_none_is_held;
use crate::table::{Table, TableSnapshot};
use crate::transaction::Prologue;
use crate::wal::{Kind, Log, Synchronous};
use entasis_vector::Result;
use std::collections::HashSet;
use std::sync::Arc;

/// What a commit does to names, and what it has written for that.
pub struct NameChanges {
    file: Arc<DataFile>,
    log: Arc<Log>,
    loads: Loads,
    records: Vec<u8>,
    /// The new tables and indexes, with what the file has of their rows.
    tables: Vec<(Arc<Table>, Option<TableRecord>)>,
    /// The sequences that are new or have a new entry.
    sequences: Vec<Arc<Sequence>>,
}

impl NameChanges {
    /// The changes of a commit from `base` to `now`; `None` if no permanent object is among them. `outcome`
    /// gives the rows that a table will have after the commit.
    ///
    /// # Errors
    /// I/O.
    pub fn record(
        (file, log, loads): (&Arc<DataFile>, &Arc<Log>, &Loads),
        base: &CatalogVersion,
        now: &CatalogVersion,
        outcome: &mut dyn FnMut(&Arc<Table>) -> TableSnapshot,
    ) -> Result<Option<NameChanges>> {
        let mut changes = NameChanges {
            file: file.clone(),
            log: log.clone(),
            loads: loads.clone(),
            records: Vec::new(),
            tables: Vec::new(),
            sequences: Vec::new(),
        };
        let lasts = |entry: &&Entry| !is_temporary(entry.name());
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for change in now.changes_since(base) {
            old.extend(change.old.filter(lasts));
            new.extend(change.new.filter(lasts));
        }
        if old.is_empty() && new.is_empty() {
            return Ok(None);
        }
        // A name that passes to another object is dropped first.
        for entry in &old {
            let mut name = Vec::new();
            push_text(&mut name, entry.name());
            push_record(kind::DROP, &name, &mut changes.records);
        }
        let known: HashSet<ObjectId> = old.iter().flat_map(|entry| ids_of(entry)).collect();
        for entry in new {
            changes.put(entry, &known, outcome)?;
        }
        if changes.tables.iter().any(|(_, written)| written.is_some()) {
            changes.file.sync()?;
        }
        Ok(Some(changes))
    }

    /// Adds the record that an object has a name, and writes the rows of those of its tables that are not in
    /// `known`. A table that is made of one of these with other columns has that one's rows.
    fn put(
        &mut self,
        entry: &Entry,
        known: &HashSet<ObjectId>,
        outcome: &mut dyn FnMut(&Arc<Table>) -> TableSnapshot,
    ) -> Result<()> {
        let mut body = Vec::new();
        objects::push_entry(&mut body, entry, State::Open);
        let mut images: Vec<(ObjectId, Extent)> = Vec::new();
        let mut inherited = None;
        match entry {
            Entry::Table(entry) => {
                for table in tables_of(entry).filter(|table| !known.contains(&table.object())) {
                    let snapshot = outcome(table);
                    let of_known = snapshot.inherited().filter(|(old, _)| known.contains(old));
                    if let Some((old, sources)) = of_known.filter(|_| Arc::ptr_eq(table, &entry.table)) {
                        inherited = Some(heirs::encode(old, &sources, &table.shape));
                        self.tables.push((table.clone(), None));
                        continue;
                    }
                    let written = self.write(&snapshot)?;
                    images.extend(written.as_ref().map(|written| (table.object(), written.manifest)));
                    self.tables.push((table.clone(), written));
                }
            }
            Entry::Sequence(sequence) => self.sequences.push(sequence.clone()),
            Entry::View(_) | Entry::Type(_) | Entry::Schema(_) => {}
        }
        push_list(&mut body, &images, |out, (id, manifest)| {
            push_varint(out, id.number());
            out.extend(manifest.to_bytes());
        });
        let kind = if inherited.is_some() { kind::INHERIT } else { kind::PUT };
        body.extend(inherited.unwrap_or_default());
        push_record(kind, &body, &mut self.records);
        Ok(())
    }

    /// Writes the rows of a table, if it has any or has had any: numbers of rows are not used twice, so the
    /// next one has to be known.
    fn write(&self, snapshot: &TableSnapshot) -> Result<Option<TableRecord>> {
        if snapshot.rows() == 0 && snapshot.pinned().0.next_number == 0 {
            return Ok(None);
        }
        let mut writer = ExtentWriter::ahead(&self.file);
        match write::whole(&mut writer, snapshot) {
            Ok(written) => Ok(Some(written)),
            Err(error) => {
                writer.abandon();
                Err(error)
            }
        }
    }

    /// What the commit appends to the log before its changes of rows.
    pub fn prologue(&self) -> Prologue {
        Prologue { log: self.log.clone(), records: self.records.clone() }
    }

    /// Says that the commit is in the log and is about to become visible.
    pub fn publish(mut self, images: &Images) {
        for (table, written) in std::mem::take(&mut self.tables) {
            if let Some(written) = written {
                // Stores to ghost slots make its blocks differ from the file from now on, and not before.
                let round = table.end_round();
                let image: Image = (table.object(), Arc::new(TableRecord { round, ..written }));
                images.add(image);
            }
            table.log_to(self.log.clone(), Some(self.loads.store()));
        }
        self.sequences.iter().for_each(|sequence| log_sequence(sequence, &self.log));
    }
}

impl Drop for NameChanges {
    fn drop(&mut self) {
        let mut given_up = HashSet::new();
        for extent in self.tables.iter().flat_map(|(_, written)| written).flat_map(TableRecord::extents) {
            if given_up.insert(extent.offset) {
                self.file.take_back(extent);
            }
        }
    }
}

/// The ids of the tables of an entry.
fn ids_of(entry: &Entry) -> Vec<ObjectId> {
    match entry {
        Entry::Table(entry) => tables_of(entry).map(|table| table.object()).collect(),
        Entry::View(_) | Entry::Sequence(_) | Entry::Type(_) | Entry::Schema(_) => Vec::new(),
    }
}

/// Logs changes of all permanent objects of a version from now on; large loads go to the data file.
pub fn log_all(names: &CatalogVersion, log: &Arc<Log>, loads: &Loads) {
    for entry in objects::lasting(names) {
        match entry {
            Entry::Table(entry) => {
                tables_of(entry).for_each(|table| table.log_to(log.clone(), Some(loads.store())));
            }
            Entry::Sequence(sequence) => log_sequence(sequence, log),
            Entry::View(_) | Entry::Type(_) | Entry::Schema(_) => {}
        }
    }
}

/// Logs the numbers that a sequence gives out from now on.
fn log_sequence(sequence: &Sequence, log: &Arc<Log>) {
    sequence.reserve_by(Numbered { id: sequence.id(), log: log.clone() });
}

/// A sequence, in the log.
struct Numbered {
    id: ObjectId,
    log: Arc<Log>,
}

impl Reservations for Numbered {
    fn reserve(&self, next: Option<i64>) -> Result<u64> {
        let (mut body, mut record) = (Vec::new(), Vec::new());
        push_varint(&mut body, self.id.number());
        push_maybe(&mut body, next, |out, next| out.extend(next.to_le_bytes()));
        push_record(kind::SEQUENCE, &body, &mut record);
        // A commit that uses a number need not wait for this record: it comes after it in the log.
        self.log.append(&self.log.frame(Kind::Commit, 0, &record)?)
    }

    fn wait(&self, position: u64) -> Result<bool> {
        assert_none_is_held();
        let synchronous = self.log.synchronous();
        self.log.wait(position, synchronous)?;
        Ok(synchronous == Synchronous::Full)
    }
}
