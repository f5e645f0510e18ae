//! Following: a database that another process writes to, as this one sees it.
//!
//! All of a database is in memory once it was read, so who follows it has a catalog of its own: that of the
//! newest checkpoint, and behind it the commits of the log, each of which becomes visible as a whole. Who
//! begins something asks for what is new ([`Follower::follow`]):
//!
//! 1. Is the file still the one that has its name? Else all begins anew with the other one.
//! 2. The frames behind the last one that was published are done once more, on forks, and published as one
//!    commit; one that makes a table of another one is published by itself. A frame that is not whole is not
//!    there: it is being written.
//! 3. Has the data file another header? If not, that was all. The order matters: a writer gives a segment of
//!    the log to new frames only behind a header that makes the old ones needless, so where the header is the
//!    old one *behind* the look at the log, what was not in the log was not committed.
//! 4. If it has: what the log still has is done once more. If that does not reach the position at which the
//!    new state begins, the frames in between are gone, and the checkpoint is read instead: tables that it
//!    has not changed, and no commit has, are taken over. Then the log that the name stands for now is gone
//!    on with, and 2. comes again.
//!
//! Where nothing is new that is a question for the name of the file, a read of a place in the log and one of
//! the headers.
//!
//! **Races.** Nothing that is read can be taken for something else: a frame has its position, run and
//! checksum, an extent the checksum of whoever refers to it. What cannot be read was written over, or is
//! damaged: it was written over iff the newest header is another one by then, since what the newest one
//! reaches stays. So whatever fails is tried again as long as headers come ([`TRIES`]), and is an error when
//! none does. A log that its writer has removed is read to its end, as it stays open; no other file has its
//! [`FileId`] meanwhile.
//!
//! What is seen is a prefix of the commits, and has all that were handed to the operating system before it
//! was asked for. Neither file is written to, or locked: the writer cannot be kept waiting.

use super::batches::{Batches, Batching};
use super::objects::{Relation, lasting, tables_of};
use super::read_all;
use super::record::Checkpointed;
use super::replay::{KnownObjects, Replay, at};
use crate::backend::{Backend, FileId};
use crate::catalog::{Catalog, CatalogVersion, Entry};
use crate::definition::ObjectId;
use crate::file::{Access, DataFile, Extent, Header, State};
use crate::record::{Record, Records, damaged, kind};
use crate::table::{ReadLoad, Table, Waiter};
use crate::transaction::Transaction;
use crate::wal::{Commit, LogReader, SegmentBytes};
use entasis_vector::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// How often what was written over meanwhile is looked for again.
const TRIES: usize = 200;
/// Bytes of records that are published at once, about.
const BATCH: usize = 8 << 20;

/// Which file of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePart {
    /// The data file.
    Data,
    /// The log.
    Log,
}

/// The files of a database, by their names: whoever writes may put other files in their places.
pub trait Files: Debug + Send {
    /// What errors call one.
    fn name(&self, part: FilePart) -> String;

    /// Which file it is now, if it is there.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn id(&self, part: FilePart) -> io::Result<Option<FileId>>;

    /// Opens it to be read, if it is there.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn open(&self, part: FilePart) -> io::Result<Option<(FileId, Arc<dyn Backend>)>>;

    /// True if the state of the last checkpoint is wanted where a log should be there and is not.
    fn may_lack_log(&self) -> bool {
        false
    }

    /// How many threads may read its tables at once.
    fn threads(&self) -> usize {
        1
    }
}

/// The error for a database that was not closed, and whose log is not there.
pub fn lost_log(data: &str, log: &str) -> Error {
    let message = format!("{log} is missing, and {data} was not closed: the last commits are in the log");
    Error::new(ErrorKind::Corruption, message).with_hint(
        "put the log back; if it is lost, open the state of the last checkpoint, without what was committed since: \
         ATTACH 'file' (ALLOW_MISSING_LOG), or allow_missing_log=True in Python",
    )
}

/// What [`Follower::follow`] has changed.
#[derive(Debug, Default)]
pub struct News {
    /// Something was published.
    pub are_there: bool,
    /// Tables and indexes that have no name any more.
    pub left: Vec<Arc<Table>>,
}

/// See the module.
#[derive(Debug)]
pub struct Follower {
    files: Box<dyn Files>,
    /// Which file had its name, when that was last looked at.
    looked: Option<FileId>,
    data: FileId,
    file: DataFile,
    /// The header whose state is published.
    header: Header,
    /// What is read of the log; `None` as long as there is none.
    log: Option<(FileId, LogReader)>,
    /// The position up to which all is published.
    position: u64,
    /// What was read and is not published yet.
    pending: Vec<Commit>,
    known: KnownObjects,
    loaded: BTreeMap<ObjectId, Loaded>,
}

/// A table that was read from a checkpoint.
#[derive(Debug)]
struct Loaded {
    manifest: Extent,
    table: Arc<Table>,
    /// [`Table::changes`] then.
    changes: u64,
}

/// A checkpoint that was read.
struct Read {
    names: CatalogVersion,
    loaded: BTreeMap<ObjectId, Loaded>,
    log: Option<(FileId, LogReader)>,
}

impl Follower {
    /// Reads a database as it is now.
    ///
    /// # Errors
    /// I/O, also if it is not there; input, if it is no database; corruption, with the place.
    pub fn open(files: Box<dyn Files>) -> Result<(Follower, Catalog)> {
        for _ in 0..TRIES {
            let (data, file) = open_data(&*files)?;
            let header = file.header();
            match read_all_of(&*files, &file) {
                Ok((Read { names, loaded, log }, known, position)) => {
                    let (pending, looked) = (Vec::new(), Some(data));
                    let follower =
                        Follower { files, looked, data, file, header, log, position, pending, known, loaded };
                    return Ok((follower, Catalog::of(names)));
                }
                Err(error) if !is_overtaken(&*files, Some(data), &file, &header)? => return Err(error),
                Err(_) => {}
            }
        }
        Err(restless(&*files))
    }

    /// Which file it reads.
    pub fn data_id(&self) -> FileId {
        self.data
    }

    /// Publishes all that was committed before this is called.
    ///
    /// # Errors
    /// I/O, also if the file is not there any more; corruption, with the place; input, if another file has
    /// taken its name that is no database.
    pub fn follow(&mut self, catalog: &Catalog, news: &mut News) -> Result<()> {
        for _ in 0..TRIES {
            let header = self.file.header();
            match self.step(catalog, news) {
                Ok(true) => return Ok(()),
                Err(error) if !is_overtaken(&*self.files, self.looked, &self.file, &header)? => {
                    return Err(error);
                }
                Ok(false) | Err(_) => {}
            }
        }
        Err(restless(&*self.files))
    }

    /// Publishes what is new. True if that is all.
    fn step(&mut self, catalog: &Catalog, news: &mut News) -> Result<bool> {
        let id = self.files.id(FilePart::Data);
        self.looked = id.map_err(|error| Error::io(self.files.name(FilePart::Data), &error))?;
        if self.looked != Some(self.data) {
            let (data, file) = open_data(&*self.files)?;
            let (header, read) = read_newest(&*self.files, data, &file)?;
            self.begin_anew(&header, read, catalog, news)?;
            (self.data, self.file) = (data, file);
            return Ok(false);
        }
        // A commit that does not apply may refer to what was written over.
        let mut went_on = self.go_on(catalog, news);
        let header = self.file.refresh()?;
        let has_lost_track = self.log.as_ref().is_some_and(|(_, log)| log.has_lost_track());
        if header == self.header && !has_lost_track {
            return went_on.map(|()| true);
        }
        if let Some((_, log)) = self.log.as_mut().filter(|_| !has_lost_track) {
            // What the new state made needless may still be there.
            let found = log.find_segments();
            went_on = found.and_then(|()| self.go_on(catalog, news));
        }
        if self.position < header.log_position || has_lost_track {
            let read = read_checkpoint(&*self.files, &self.file, &header, &self.loaded)?;
            self.begin_anew(&header, read, catalog, news)?;
            return Ok(false);
        }
        went_on?;
        if header.state == State::Open && !is_without_log(&*self.files)? {
            let id = self.files.id(FilePart::Log);
            let id = id.map_err(|error| Error::io(self.files.name(FilePart::Log), &error))?;
            if id.is_none() || id != self.log.as_ref().map(|(id, _)| *id) {
                self.log = Some(open_log(&*self.files, &self.file, &header, self.position)?);
            }
        }
        self.header = header;
        Ok(false)
    }

    /// Publishes the commits that the log has.
    fn go_on(&mut self, catalog: &Catalog, news: &mut News) -> Result<()> {
        loop {
            let mut bytes: usize = self.pending.iter().map(|commit| commit.records.len()).sum();
            let Some((_, log)) = &mut self.log else { return Ok(()) };
            while bytes < BATCH && !self.pending.last().is_some_and(makes_heirs) {
                let Some(commit) = log.next_commit_beside()? else { break };
                bytes += commit.records.len();
                self.pending.push(commit);
            }
            // A table is made of what is published of another one, and is published before it is written.
            let alone = self.pending.iter().position(makes_heirs);
            let count = alone.map_or(self.pending.len(), |at| at.max(1));
            let Some(last) = self.pending[..count].last() else { return Ok(()) };
            let position = last.end;
            self.publish(count, catalog, news)?;
            self.pending.drain(..count);
            self.position = position;
        }
    }

    /// Publishes the first `count` of what is pending, as one commit.
    fn publish(&mut self, count: usize, catalog: &Catalog, news: &mut News) -> Result<()> {
        let mut tries = 0;
        loop {
            match self.try_publish(count, catalog) {
                // A connection has changed temporary names meanwhile.
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(known) => {
                    self.knows(known, news);
                    return Ok(());
                }
            }
        }
    }

    fn try_publish(&self, count: usize, catalog: &Catalog) -> Result<KnownObjects> {
        let Some((_, log)) = &self.log else { return Ok(self.known.clone()) };
        let pending = &self.pending[..count];
        let base = catalog.version();
        let mut written = HashSet::new();
        for record in pending.iter().flat_map(|commit| Records::new(&commit.records)) {
            let mut record = record?;
            if record.is_of_rows() {
                written.insert(record.table()?);
            }
        }
        // Others see these, so that they change at one moment. What is new nobody sees before.
        let shared: Vec<Arc<Table>> =
            written.iter().filter_map(|id| self.known.tables.get(id).cloned()).collect();
        let shared_ids: HashSet<u64> = shared.iter().map(|table| table.object().number()).collect();
        let mut rows = Transaction::alone(&shared);
        let mut replay = Replay::knowing(&self.file, base.clone(), self.known.clone());
        for commit in pending {
            let mut each = |mut record: Record<'_>, known: &KnownObjects, load: &mut ReadLoad<'_>| {
                let id = record.table()?;
                let table = known.tables.get(&id).ok_or_else(|| damaged("its table is not there"))?;
                match shared_ids.contains(&id) {
                    true => rows.redo(table, record, load),
                    false => table.redo_rows(record, load),
                }
            };
            replay.commit(&commit.records, &mut each).map_err(|error| at(log, commit, &error))?;
        }
        let Replay { names, known, .. } = replay;
        let publish = |rows: &mut dyn FnMut() -> bool| catalog.publish(&base, &names, &[], rows);
        rows.commit_as(&Waiter::default(), |_| Ok(None), publish, |_| Ok(()))?;
        Ok(known)
    }

    /// Takes what was published for what there is.
    fn knows(&mut self, known: KnownObjects, news: &mut News) {
        news.are_there = true;
        if !Arc::ptr_eq(&known.tables, &self.known.tables) {
            let is_left = |(id, table): &(&u64, &Arc<Table>)| {
                known.tables.get(id).is_none_or(|now| !Arc::ptr_eq(now, table))
            };
            news.left.extend(self.known.tables.iter().filter(is_left).map(|(_, table)| table.clone()));
            self.loaded.retain(|id, _| known.tables.contains_key(&id.number()));
        }
        self.known = known;
    }

    /// Publishes a checkpoint that was read, and goes on at its position.
    fn begin_anew(&mut self, header: &Header, read: Read, catalog: &Catalog, news: &mut News) -> Result<()> {
        let Read { names, loaded, log } = read;
        let mut tries = 0;
        loop {
            let base = catalog.version();
            let mut now = base.clone();
            lasting(&base).for_each(|entry| _ = now.take(entry.name()));
            lasting(&names).for_each(|entry| now.put(entry.clone()));
            match catalog.publish(&base, &now, &[], &mut || true) {
                // A connection has changed temporary names meanwhile.
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => tries += 1,
                published => break published.map(drop)?,
            }
        }
        self.knows(KnownObjects::of(&names), news);
        (self.loaded, self.log, self.header, self.position) = (loaded, log, *header, header.log_position);
        self.pending.clear();
        Ok(())
    }
}

/// True if a commit makes tables of others. A record that is none is found by whoever reads it.
fn makes_heirs(commit: &Commit) -> bool {
    Records::new(&commit.records).any(|record| record.is_ok_and(|record| record.kind() == kind::INHERIT))
}

/// Reads the newest checkpoint and all of the log: nobody knows any of the tables yet. Also what there is by
/// id, and the position behind the last commit.
fn read_all_of(files: &dyn Files, file: &DataFile) -> Result<(Read, KnownObjects, u64)> {
    let header = file.header();
    let Read { names, loaded, mut log } = read_checkpoint(files, file, &header, &BTreeMap::new())?;
    let mut batches = Batches::new(Replay::of(file, names), Batching::by(1));
    let mut position = header.log_position;
    if let Some((_, log)) = &mut log {
        while let Some(commit) = log.next_commit_beside()? {
            position = commit.end;
            batches.take(commit, log)?;
        }
        batches.write(log)?;
    }
    let Replay { names, known, .. } = batches.replay;
    Ok((Read { names, loaded, log }, known, position))
}

/// Reads the newest checkpoint of a file that has just taken the name, and its header.
fn read_newest(files: &dyn Files, data: FileId, file: &DataFile) -> Result<(Header, Read)> {
    for _ in 0..TRIES {
        let header = file.header();
        match read_checkpoint(files, file, &header, &BTreeMap::new()) {
            Ok(read) => return Ok((header, read)),
            Err(error) if !is_overtaken(files, Some(data), file, &header)? => return Err(error),
            Err(_) => {}
        }
    }
    Err(restless(files))
}

/// True if something that could not be read may have been written over since a header was the newest one of a
/// file: there is another one, or another file has the name that was one's when it was `looked` at.
fn is_overtaken(files: &dyn Files, looked: Option<FileId>, file: &DataFile, header: &Header) -> Result<bool> {
    Ok(files.id(FilePart::Data).ok().flatten() != looked || file.refresh()?.number != header.number)
}

/// Reads a state of the data file, but for tables that are as they were `loaded` before, and opens its log.
fn read_checkpoint(
    files: &dyn Files,
    file: &DataFile,
    header: &Header,
    loaded: &BTreeMap<ObjectId, Loaded>,
) -> Result<Read> {
    let mut kept = BTreeMap::new();
    let mut known = |relation: &Relation, manifest: Extent| {
        let Loaded { manifest: own, table, changes } = loaded.get(&relation.id)?;
        let is_same = *own == manifest
            && *changes == table.changes()
            && (table.name(), table.schema(), table.options())
                == (&*relation.name, &relation.schema, &relation.options);
        is_same.then(|| {
            kept.insert(relation.id, Loaded { manifest, table: table.clone(), changes: *changes });
            table.clone()
        })
    };
    let (names, Checkpointed { tables: records, .. }) = read_all(file, header, &mut known)?;
    let mut loaded = kept;
    let tables =
        names.entries().filter_map(|entry| if let Entry::Table(table) = entry { Some(table) } else { None });
    for table in tables.flat_map(|entry| tables_of(entry)) {
        if let Some(record) = records.get(&table.object()) {
            let (manifest, changes) = (record.manifest, table.changes());
            loaded.insert(table.object(), Loaded { manifest, table: table.clone(), changes });
        }
    }
    let log = match header.state {
        State::Closed => None,
        State::Open if is_without_log(files)? => None,
        State::Open => Some(open_log(files, file, header, header.log_position)?),
    };
    Ok(Read { names, loaded, log })
}

/// True if there is no log, and that is no error.
fn is_without_log(files: &dyn Files) -> Result<bool> {
    let failed = |error| Error::io(files.name(FilePart::Log), &error);
    Ok(files.may_lack_log() && files.id(FilePart::Log).map_err(failed)?.is_none())
}

/// Opens the data file that has the name now.
fn open_data(files: &dyn Files) -> Result<(FileId, DataFile)> {
    let opened = files.open(FilePart::Data).map_err(|error| Error::io(files.name(FilePart::Data), &error))?;
    let (id, backend) = opened.ok_or_else(|| missing(files))?;
    Ok((id, DataFile::open(backend, Access::Read)?.with_threads(files.threads())))
}

/// Opens the log that has the name now, at a position.
fn open_log(
    files: &dyn Files,
    file: &DataFile,
    header: &Header,
    position: u64,
) -> Result<(FileId, LogReader)> {
    let opened = files.open(FilePart::Log).map_err(|error| Error::io(files.name(FilePart::Log), &error))?;
    let (id, backend) =
        opened.ok_or_else(|| lost_log(&files.name(FilePart::Data), &files.name(FilePart::Log)))?;
    let bytes = SegmentBytes::new(header.segment_bytes)
        .ok_or_else(|| file.damaged(0, "the length of a segment of the log"))?;
    Ok((id, LogReader::open(backend, file.id(), bytes, position, State::Open)?))
}

fn missing(files: &dyn Files) -> Error {
    Error::new(ErrorKind::Io, format!("{} is not there", files.name(FilePart::Data)))
}

/// Whoever writes has always been faster.
fn restless(files: &dyn Files) -> Error {
    let message = format!(
        "{} cannot be read: its writer has replaced what was being read {TRIES} times",
        files.name(FilePart::Data)
    );
    Error::new(ErrorKind::Io, message).with_hint("let it make fewer checkpoints: SET wal_autocheckpoint")
}
