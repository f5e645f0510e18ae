//! Followers beside a writer: whatever the writer does, and at whatever moment, what a follower sees is one
//! of the states that commits have left, none older than what was handed to the system before it looked, and
//! none older than what it saw before.
//!
//! The writer's twin is a map of maps. A look is put between any two halves of writes of the writer, and
//! anything that a writer does between any two reads of a look; both come the same way for the same seed.

use super::{ID, create};
use crate::backend::{Backend, FileId, Lock, MemoryBackend};
use crate::catalog::{Catalog, CatalogVersion, Entry, IfExists, TableEntry};
use crate::checkpoint::{
    Checkpointed, FilePart, Files, Follower, Images, Loads, Moment, NameChanges, News, checkpoint, log_all,
    recover,
};
use crate::file::{Access, Contents, DataFile, State};
use crate::table::tests::model::datums;
use crate::table::tests::rows::column_chunk;
use crate::table::{Table, Waiter};
use crate::tests::random::Random;
use crate::value::Datum;
use crate::wal::{Log, LogReader, SegmentBytes, Synchronous};
use crate::{ColumnSource, Layout, TableOptions, Transaction};
use entasis_vector::{DataType, Error, Field, Result, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Is called between the halves of whatever is done to a file.
type Hook = Arc<dyn Fn() + Send + Sync>;

/// A file in memory that somebody has open.
struct Opened {
    bytes: MemoryBackend,
    hook: Hook,
    /// Writes that are still done; the process stops at the next one.
    left: Arc<AtomicU64>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl Opened {
    fn count(&self) -> io::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Err(io::Error::other("the process has stopped")) } else { Ok(()) }
    }
}

impl Backend for Opened {
    fn name(&self) -> &str {
        self.bytes.name()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (self.hook)();
        self.bytes.read(offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (one, other) = bytes.split_at(bytes.len() / 2);
        (self.hook)();
        self.bytes.write(offset, one)?;
        self.count()?;
        (self.hook)();
        self.bytes.write(offset + one.len() as u64, other)
    }

    fn length(&self) -> io::Result<u64> {
        (self.hook)();
        self.bytes.length()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        (self.hook)();
        self.count()?;
        self.bytes.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.count()
    }

    fn lock(&self, _: Lock) -> io::Result<bool> {
        Ok(true)
    }
}

/// A directory of two names.
#[derive(Clone, Default)]
struct Directory(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    files: [Option<(FileId, MemoryBackend)>; 2],
    made: u64,
}

impl Directory {
    /// Gives a name to a new file.
    fn put(&self, part: FilePart, bytes: Vec<u8>) -> MemoryBackend {
        let mut names = lock(&self.0);
        names.made += 1;
        let file = MemoryBackend::of(["my.db", "my.db.wal"][part as usize], bytes);
        names.files[part as usize] = Some((FileId::new(1, names.made), file.clone()));
        file
    }

    fn remove(&self, part: FilePart) {
        lock(&self.0).files[part as usize] = None;
    }

    fn get(&self, part: FilePart) -> Option<(FileId, MemoryBackend)> {
        lock(&self.0).files[part as usize].clone()
    }
}

/// The directory as a follower sees it.
struct Seen {
    directory: Directory,
    hook: Hook,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seen")
    }
}

impl Files for Seen {
    fn name(&self, part: FilePart) -> String {
        ["my.db", "my.db.wal"][part as usize].to_owned()
    }

    fn id(&self, part: FilePart) -> io::Result<Option<FileId>> {
        (self.hook)();
        Ok(self.directory.get(part).map(|(id, _)| id))
    }

    fn open(&self, part: FilePart) -> io::Result<Option<(FileId, Arc<dyn Backend>)>> {
        (self.hook)();
        let left = Arc::new(AtomicU64::new(0));
        let open =
            |(id, bytes)| (id, Arc::new(Opened { bytes, hook: self.hook.clone(), left }) as Arc<dyn Backend>);
        Ok(self.directory.get(part).map(open))
    }
}

/// The value of all rows in columns that were added.
const ADDED: i128 = 5;

/// Rows by table.
type Model = BTreeMap<String, BTreeMap<i128, i128>>;

/// What commits have left, in their order.
struct States {
    all: Vec<Model>,
    /// What was handed to the system.
    safe: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn segment() -> SegmentBytes {
    SegmentBytes::new(4096).expect("some sectors")
}

fn new_table(name: &str, has_key: bool) -> Arc<Table> {
    let fields = ["k", "v"].map(|name| Field { nullable: false, ..Field::new(name, DataType::Int64) });
    let sizes = TableOptions { block_slots: 256, group_slots: 1024, ..TableOptions::default() };
    let key =
        TableOptions { layout: Layout::EquiGhost, layout_key: vec![0], distinct: true, ..sizes.clone() };
    Table::with_options(name, fields.to_vec(), if has_key { key } else { sizes })
}

/// A row of a table, to which columns may have been added.
fn row_of(table: &Table, key: i128, value: i128) -> Vec<Value> {
    let added = (2..table.schema().len()).map(|_| ADDED);
    [key, value].into_iter().chain(added).map(Value::Integer).collect()
}

fn state(catalog: &Catalog) -> Model {
    let names = catalog.version();
    let rows = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        let number = |id, column| match snapshot.datum(id, column) {
            Datum::Integer(number) => number,
            other => panic!("{other:?}"),
        };
        let added = 2..snapshot.schema().len();
        snapshot
            .row_ids()
            .inspect(|id| assert!(added.clone().all(|column| number(*id, column) == ADDED)))
            .map(|id| (number(id, 0), number(id, 1)))
            .collect()
    };
    names.tables().map(|entry| (entry.name.clone(), rows(&entry.table))).collect()
}

/// A process that writes, if it runs.
struct Writer {
    directory: Directory,
    hook: Hook,
    left: Arc<AtomicU64>,
    random: Random,
    states: Arc<Mutex<States>>,
    next_key: i128,
    files: (Arc<DataFile>, Arc<Log>),
    images: Arc<Images>,
    loads: Loads,
    last: Checkpointed,
    catalog: Catalog,
}

impl Writer {
    fn new(seed: u64, hook: Hook) -> Writer {
        let directory = Directory::default();
        let data = directory.put(FilePart::Data, Vec::new());
        let file = create(&data);
        let bytes = data.bytes();
        drop(file);
        directory.put(FilePart::Data, bytes);
        let states = Arc::new(Mutex::new(States { all: vec![Model::new()], safe: 0 }));
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let Process { files, images, loads, last, catalog } = opened(&directory, &hook, &left);
        let (random, next_key) = (Random(seed), 0);
        Writer { directory, hook, left, random, states, next_key, files, images, loads, last, catalog }
    }

    /// The process begins anew, whatever the last one has left.
    fn open(&mut self) {
        self.left.store(u64::MAX, Ordering::Relaxed);
        let Process { files, images, loads, last, catalog } = opened(&self.directory, &self.hook, &self.left);
        (self.files, self.images, self.loads, self.last, self.catalog) =
            (files, images, loads, last, catalog);
        let (found, mut states) = (state(&self.catalog), lock(&self.states));
        let at = states.all.iter().rposition(|state| *state == found).expect("it is one of them");
        assert!(at >= states.safe, "{at} was recovered behind {}", states.safe);
        states.all.truncate(at + 1);
    }

    /// Does something that a writer does.
    fn step(&mut self) {
        let done = match self.random.below(28) {
            0 | 1 => self.checkpoint(State::Open),
            2 => self.close(),
            3 => {
                self.open();
                Ok(())
            }
            4 => {
                self.left.store(self.random.below(12), Ordering::Relaxed);
                Ok(())
            }
            5..8 => self.rename(),
            8..11 => self.alter(),
            _ => self.commit(),
        };
        if done.is_err() {
            self.open();
        }
    }

    /// Says that a commit is about to leave a state.
    fn expect(&self, state: Model) -> usize {
        let mut states = lock(&self.states);
        states.all.push(state);
        states.all.len() - 1
    }

    fn newest(&self) -> Model {
        lock(&self.states).all.last().expect("there is always one").clone()
    }

    /// Changes some rows of some tables.
    fn commit(&mut self) -> Result<()> {
        let names = self.catalog.version();
        let (mut rows, mut state, mut has_written) = (Transaction::default(), self.newest(), false);
        for entry in names.tables() {
            let own = state.get_mut(&entry.name).expect("it has a twin");
            for _ in 0..self.random.below(4) {
                has_written = true;
                if self.random.below(8) == 0 {
                    let new: Vec<i128> =
                        (self.next_key + 1..).take(1 + self.random.below(300) as usize).collect();
                    self.next_key += new.len() as i128;
                    let new_rows: Vec<_> =
                        new.iter().map(|key| row_of(&entry.table, *key, key % 1000)).collect();
                    let mut appender = entry.table.appender();
                    appender.append(&column_chunk(&new_rows, entry.table.schema(), false), 0)?;
                    rows.append(&entry.table, vec![appender.finish()])?;
                    own.extend(new.into_iter().map(|key| (key, key % 1000)));
                    continue;
                }
                let mut writer = rows.write(&entry.table);
                let known = own.keys().nth(self.random.below(own.len() as u64 + 1) as usize).copied();
                let value = i128::from(self.random.below(1000));
                match known.filter(|_| !entry.table.options().layout_key.is_empty()) {
                    Some(key) => {
                        let row = writer.find(&[Datum::Integer(key)]).expect("its twin has it");
                        if self.random.below(3) == 0 {
                            writer.delete(row);
                            own.remove(&key);
                        } else {
                            writer.update(row, &[(1, Datum::Integer(value))]);
                            own.insert(key, value);
                        }
                    }
                    None if self.random.below(30) == 0 => {
                        writer.clear();
                        own.clear();
                    }
                    None => {
                        self.next_key += 1;
                        let row = row_of(&entry.table, self.next_key, value);
                        writer.insert(&datums(&row, entry.table.schema()));
                        own.insert(self.next_key, value);
                    }
                }
            }
        }
        let synchronous = Synchronous::ALL[self.random.below(3) as usize];
        self.files.1.set_synchronous(synchronous);
        let number = self.expect(state);
        rows.commit(|_| Ok(()))?;
        // Who has written nothing waits for nothing.
        if has_written && synchronous != Synchronous::Off {
            lock(&self.states).safe = number;
        }
        Ok(())
    }

    /// Adds a column to a table, or drops those that were added; now and then rows come in the same commit.
    fn alter(&mut self) -> Result<()> {
        let base = self.catalog.version();
        let (mut now, mut state) = (base.clone(), self.newest());
        let name = format!("t{}", self.random.below(4));
        let Some(old) = base.table(&name).map(|entry| entry.table.clone()) else { return self.rename() };
        let mut schema = old.schema()[..2].to_vec();
        let mut sources = vec![ColumnSource::Old(0), ColumnSource::Old(1)];
        if old.schema().len() < 4 {
            schema.extend_from_slice(&old.schema()[2..]);
            sources.extend((2..schema.len()).map(ColumnSource::Old));
            schema.push(Field::new(format!("c{}", schema.len()), DataType::Int64));
            sources.push(ColumnSource::Constant(Value::Integer(ADDED)));
        }
        let new = old.snapshot().with_columns(schema, &sources, old.options().clone());
        let new = new.expect("it is a version of the head");
        if self.random.below(4) == 0 {
            self.next_key += 1;
            new.write_unknown().insert(&datums(&row_of(&new, self.next_key, 3), new.schema()));
            state.get_mut(&name).expect("it has a twin").insert(self.next_key, 3);
        }
        now.put(Entry::Table(Arc::new(TableEntry::plain(new))));
        self.files.1.set_synchronous(Synchronous::Full);
        let number = self.expect(state);
        self.publish(&base, &now)?;
        lock(&self.states).safe = number;
        Ok(())
    }

    /// Makes a table with rows, or drops one.
    fn rename(&mut self) -> Result<()> {
        let base = self.catalog.version();
        let (mut now, mut state) = (base.clone(), self.newest());
        let name = format!("t{}", self.random.below(4));
        if now.take(&name) {
            state.remove(&name);
        } else {
            let table = new_table(&name, self.random.below(2) == 0);
            let own = state.entry(name).or_default();
            for _ in 0..self.random.below(400) {
                self.next_key += 1;
                table.write_unknown().insert(&[Datum::Integer(self.next_key), Datum::Integer(0)]);
                own.insert(self.next_key, 0);
            }
            now.add(Entry::Table(Arc::new(TableEntry::plain(table))), IfExists::Fail)?;
        }
        self.files.1.set_synchronous(Synchronous::Full);
        let number = self.expect(state);
        self.publish(&base, &now)?;
        lock(&self.states).safe = number;
        Ok(())
    }

    fn publish(&self, base: &CatalogVersion, now: &CatalogVersion) -> Result<()> {
        let changes = RefCell::new(None::<NameChanges>);
        let (file, log) = &self.files;
        Transaction::default().commit_as(
            &Waiter::default(),
            |rows| {
                let files = (file, log, &self.loads);
                let new = NameChanges::record(files, base, now, &mut |table| rows.outcome(table))?;
                let prologue = new.as_ref().map(NameChanges::prologue);
                changes.replace(new);
                Ok(prologue)
            },
            |rows| {
                let published = self.catalog.publish(base, now, &[], rows)?;
                changes.take().expect("there are some").publish(&self.images);
                Ok(published)
            },
            |_| Ok(()),
        )
    }

    fn checkpoint(&mut self, state: State) -> Result<()> {
        let (file, log) = &self.files;
        let moment = Moment::take(&self.catalog, &self.images, || log.position());
        let number = lock(&self.states).all.len() - 1;
        log.wait(moment.log_position(), Synchronous::Full)?;
        lock(&self.states).safe = number;
        self.last = checkpoint(file, &moment, &self.last, state)?;
        log.cut(moment.log_position())
    }

    /// The process ends, and another one begins; now and then a copy of the file takes its name meanwhile.
    fn close(&mut self) -> Result<()> {
        self.checkpoint(State::Closed)?;
        self.directory.remove(FilePart::Log);
        (self.hook)();
        if self.random.below(3) == 0 {
            let bytes = self.directory.get(FilePart::Data).expect("it is there").1.bytes();
            self.directory.put(FilePart::Data, bytes);
            (self.hook)();
        }
        self.open();
        Ok(())
    }
}

/// What a process has when it has opened a database.
struct Process {
    files: (Arc<DataFile>, Arc<Log>),
    images: Arc<Images>,
    loads: Loads,
    last: Checkpointed,
    catalog: Catalog,
}

fn opened(directory: &Directory, hook: &Hook, left: &Arc<AtomicU64>) -> Process {
    let with = |bytes| Arc::new(Opened { bytes, hook: hook.clone(), left: left.clone() });
    let (_, data) = directory.get(FilePart::Data).expect("it is there");
    let file = DataFile::open(with(data), Access::Write).expect("it is whole");
    let header = file.header();
    let log =
        directory.get(FilePart::Log).map_or_else(|| directory.put(FilePart::Log, Vec::new()), |(_, log)| log);
    let log: Arc<dyn Backend> = with(log);
    let reader = LogReader::open(log.clone(), ID, segment(), header.log_position, header.state);
    let found = recover(&file, reader.expect("it is its log"), &mut |_| Ok(())).expect("it is whole");
    let log = Arc::new(Log::resume(log, found.tail).expect("nothing fails"));
    if header.state == State::Closed {
        let (roots, log_position) = (header.roots, header.log_position);
        file.commit(Contents { roots, log_position, state: State::Open }).expect("nothing fails");
    }
    let (file, images) = (Arc::new(file), Arc::new(Images::behind(&found.written)));
    let loads = Loads::new(&file, &images);
    loads.set_least(0);
    log_all(&found.catalog.version(), &log, &loads);
    Process { files: (file, log), images, loads, last: found.written, catalog: found.catalog }
}

/// A process that follows, and what it saw.
struct Reader {
    follower: Follower,
    catalog: Catalog,
    states: Arc<Mutex<States>>,
    seen: usize,
    looks: u64,
}

impl Reader {
    fn open(directory: &Directory, hook: Hook, states: &Arc<Mutex<States>>) -> Result<Reader> {
        let files = Seen { directory: directory.clone(), hook };
        let (follower, catalog) = Follower::open(Box::new(files))?;
        Ok(Reader { follower, catalog, states: states.clone(), seen: 0, looks: 0 })
    }

    /// Looks, and compares.
    fn look(&mut self) {
        let safe = lock(&self.states).safe.max(self.seen);
        let mut news = News::default();
        let followed = self.follower.follow(&self.catalog, &mut news);
        followed.unwrap_or_else(|error: Error| panic!("look {}: {error}", self.looks));
        let (found, states) = (state(&self.catalog), lock(&self.states));
        // An empty commit leaves what was there, so the last one that fits is meant.
        let at = states.all.iter().rposition(|state| *state == found);
        let at = at.unwrap_or_else(|| panic!("look {}: no commit has left {found:?}", self.looks));
        assert!(at >= safe, "look {}: {at} is seen behind {safe}", self.looks);
        // The first one that fits is what is known to be seen.
        let first = (0..=at).rev().take_while(|&at| states.all[at] == found).last().unwrap_or(at);
        self.seen = self.seen.max(first);
        self.looks += 1;
    }
}

/// Does something in a thread of its own, which holds none of the locks of this one.
fn aside(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        if let Err(panic) = scope.spawn(work).join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn no_hook() -> Hook {
    Arc::new(|| ())
}

#[test]
fn a_follower_sees_the_newest_state() {
    for seed in 1..30 {
        let mut writer = Writer::new(seed, no_hook());
        let mut reader = Reader::open(&writer.directory, no_hook(), &writer.states).expect("it is there");
        for number in 0..300 {
            writer.step();
            if number % (1 + seed as usize % 40) == 0 {
                reader.look();
            }
        }
        reader.look();
        Reader::open(&writer.directory, no_hook(), &writer.states).expect("it is there").look();
    }
}

#[test]
fn a_look_between_any_two_writes_sees_a_state() {
    let mut looks = 0;
    for seed in 1..16 {
        let reader: Arc<Mutex<Option<Reader>>> = Arc::default();
        let hook: Hook = Arc::new({
            let reader = reader.clone();
            move || {
                if let Some(reader) = &mut *lock(&reader) {
                    aside(|| reader.look());
                }
            }
        });
        let mut writer = Writer::new(seed, hook);
        *lock(&reader) = Reader::open(&writer.directory, no_hook(), &writer.states).ok();
        (0..150).for_each(|_| writer.step());
        looks += lock(&reader).as_ref().expect("it was opened").looks;
    }
    assert!(looks > 5000, "{looks}");
}

#[test]
fn whatever_is_written_during_a_look_it_sees_a_state() {
    for seed in 1..40 {
        let writer = Arc::new(Mutex::new(Writer::new(seed, no_hook())));
        let directory = lock(&writer).directory.clone();
        let states = lock(&writer).states.clone();
        // Steps that are left in this look; else no look would end.
        let (left, random) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Random(seed))));
        let hook: Hook = Arc::new({
            let (writer, left) = (writer.clone(), left.clone());
            move || {
                if left.load(Ordering::Relaxed) > 0 && lock(&random).below(3) == 0 {
                    left.fetch_sub(1, Ordering::Relaxed);
                    aside(|| lock(&writer).step());
                }
            }
        });
        let mut reader = None;
        for _ in 0..120 {
            left.store(12, Ordering::Relaxed);
            match &mut reader {
                None => reader = Some(Reader::open(&directory, hook.clone(), &states).expect("it is there")),
                Some(reader) => reader.look(),
            }
        }
        left.store(0, Ordering::Relaxed);
        reader.expect("it was opened").look();
    }
}

#[test]
fn what_is_missing_or_damaged_is_told() {
    let mut writer = Writer::new(77, no_hook());
    while lock(&writer.states).all.len() < 20 {
        writer.step();
    }
    writer.open();
    writer.commit().expect("nothing fails");
    let open = |directory: &Directory| Reader::open(directory, no_hook(), &writer.states);
    let error =
        |directory: &Directory| open(directory).err().expect("it cannot be read").message().to_owned();
    let copy = || {
        let directory = Directory::default();
        for part in [FilePart::Data, FilePart::Log] {
            directory.put(part, writer.directory.get(part).expect("it is there").1.bytes());
        }
        directory
    };
    assert!(open(&copy()).is_ok());
    assert_eq!(error(&Directory::default()), "my.db is not there");
    let no_log = copy();
    no_log.remove(FilePart::Log);
    assert!(
        error(&no_log).starts_with("my.db.wal is missing, and my.db was not closed"),
        "{}",
        error(&no_log)
    );
    let gone = copy();
    let mut reader = open(&gone).expect("it is there");
    gone.remove(FilePart::Data);
    let followed = reader.follower.follow(&reader.catalog, &mut News::default());
    assert_eq!(followed.expect_err("it is gone").message(), "my.db is not there");
    // A commit that does not apply is damage, each time, and nothing of it is seen.
    let rotten = copy();
    let mut reader = open(&rotten).expect("it is there");
    let (_, log) = rotten.get(FilePart::Log).expect("it is there");
    let header = writer.files.0.header();
    let at = LogReader::open(Arc::new(log.clone()), ID, segment(), header.log_position, State::Open);
    let found = at.expect("it is its log").end().expect("it is whole");
    let next = Log::resume(Arc::new(log), found).expect("nothing fails");
    let end = next
        .append(&next.frame(crate::wal::Kind::Commit, 0, &[2, 3, 0xFF, 0xFF, 0x7F]).expect("it is short"));
    next.wait(end.expect("nothing fails"), Synchronous::Full).expect("nothing fails");
    let before = state(&reader.catalog);
    for _ in 0..3 {
        let followed = reader.follower.follow(&reader.catalog, &mut News::default());
        let error = followed.expect_err("it does not apply");
        assert!(error.message().contains("its table is not there"), "{error}");
        assert_eq!(state(&reader.catalog), before);
    }
}

#[test]
fn temporary_objects_of_a_reader_stay() {
    let mut writer = Writer::new(5, no_hook());
    let mut reader = Reader::open(&writer.directory, no_hook(), &writer.states).expect("it is there");
    let base = reader.catalog.version().seen_by(1);
    let mut now = base.clone();
    let own = Entry::Table(Arc::new(TableEntry {
        name: "temp.own".into(),
        ..TableEntry::plain(new_table("own", true))
    }));
    now.add(own, IfExists::Fail).expect("the name is new");
    reader.catalog.publish(&base, &now, &[], &mut || true).expect("nobody else changes names");
    for _ in 0..200 {
        writer.step();
        let mut news = News::default();
        reader.follower.follow(&reader.catalog, &mut news).expect("nothing fails");
        assert!(reader.catalog.version().seen_by(1).table("temp.own").is_some());
    }
}
