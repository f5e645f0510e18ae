//! The state of a connection besides its transaction: its settings, the names of its own, the statements that
//! it remembers, and the flag that cancels the running statement.
//!
//! Code that runs a statement sees this part of its connection. The open transaction, and how statements run
//! in it, belong to the connection ([`crate::connection`]).
//!
//! A session has two parts (docs/decisions/0026): its state, and its *target database*, the one database that
//! a statement works on. It sees several databases: the one for which the connection was made, and those that
//! are attached. One of them is the current one, in which names without a database are looked up. Memory,
//! workers and costs of a statement are those of the connection's own database.

pub(crate) mod host_functions;
pub(crate) mod place;
pub(crate) mod sequence_numbers;
pub(crate) mod settings;
pub(crate) mod upkeep_mode;

use crate::catalog::search_path::SearchPath;
use crate::prepared::{self, ByName, Prepared, Remembered};
use crate::session::host_functions::Functions;
use crate::session::sequence_numbers::Numbers;
use crate::state::{Shared, User};
use entasis_engine::exec::{CancelFlag, Overdrawn, Progress, QueryContext, Settings};
use entasis_engine::relation::{Compression, Relation};
use entasis_files::csv::Rejects;
use entasis_functions::TimeZone;
use entasis_sql::{Parsed, aside};
use entasis_storage::{CatalogVersion, Entry, Waiter, WriterName};
use entasis_vector::statement::within;
use entasis_vector::{Result, name};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Looks up names that the catalog does not have: variables of the host program.
pub type Replacement = Arc<dyn Fn(&str) -> Option<Arc<dyn Relation>> + Send + Sync>;

/// The length of a text whose parsing may take much memory.
const LONG_TEXT: usize = 4 << 10;
/// The length of a text whose parsing takes longer than a statement may go without an answer to an interrupt.
const VERY_LONG_TEXT: usize = 256 << 10;
/// Bytes of a statement's text that are shown to those who wait for it.
const SHOWN: usize = 200;

/// A database that a session sees.
#[derive(Clone)]
pub(crate) struct Attached {
    /// Its name, in lower case.
    pub(crate) name: Arc<str>,
    /// The database.
    pub(crate) shared: Arc<Shared>,
    /// The session's number in that database, which errors of other connections mention.
    pub(crate) owner: u64,
    /// True if it must not be written to.
    pub(crate) is_read_only: bool,
    /// Present if it was attached. Dropped last.
    pub(crate) _user: Option<User>,
}

/// What a session has been told, besides which database it is for.
pub(crate) struct Settled {
    settings: Settings,
    time_zone: TimeZone,
    compression: Compression,
    path: SearchPath,
    lock_timeout: u64,
    rests: bool,
}

impl Attached {
    /// The database for which a connection is made; it is named after its file, without the extension.
    fn own(shared: Arc<Shared>) -> Attached {
        let stem = shared.path.as_deref().and_then(|path| path.file_stem());
        let name = stem.map_or("memory".to_owned(), |stem| stem.to_string_lossy().to_ascii_lowercase());
        let owner = shared.next_connection();
        Attached { name: name.into(), owner, shared, is_read_only: false, _user: None }
    }

    /// The newest names in it, including the session's temporary ones.
    pub(crate) fn newest_names(&self) -> CatalogVersion {
        self.shared.catalog.version().seen_by(self.owner)
    }
}

/// Where names without a database or schema are looked up.
#[derive(Clone, Default)]
pub(crate) struct Current {
    /// The name of the database; `None` for the connection's own.
    pub(crate) database: Option<Arc<str>>,
    /// The schemas of that database in which they are looked up.
    pub(crate) path: SearchPath,
}

/// The state of a session together with its target database, the one of its databases that statements work
/// on. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Session {
    known: Arc<SessionState>,
    /// The target database.
    pub(crate) shared: Arc<Shared>,
    /// The session's number in its target database.
    pub(crate) id: u64,
    /// The name of the target database.
    pub(crate) database: Arc<str>,
}

/// The state of a session, whatever its target database.
pub(crate) struct SessionState {
    /// The database for which the connection was made, which has its temporary objects.
    own: Attached,
    /// The other databases that it sees.
    attached: RwLock<Vec<Attached>>,
    /// Where it looks up names.
    current: Mutex<Current>,
    /// True if the current database is not its own.
    is_away: AtomicBool,
    /// Number of changes of what names mean.
    meanings: AtomicU64,
    /// Milliseconds that a statement waits for another writer; 0: without limit.
    pub(crate) lock_timeout: AtomicU64,
    /// Settings of the engine for its statements.
    pub(crate) settings: Mutex<Settings>,
    /// How new tables are encoded unless their statement says otherwise.
    pub(crate) compression: Mutex<Compression>,
    /// The time zone.
    time_zone: Mutex<TimeZone>,
    /// True if upkeep of all tables is done after each of its statements.
    pub(crate) rests: AtomicBool,
    /// Relations of the host program, by their names in lower case.
    pub(crate) registered: RwLock<HashMap<String, Arc<dyn Relation>>>,
    /// Functions of the host program.
    pub(crate) functions: Functions,
    /// Looks up names that are found nowhere else.
    pub(crate) replacement: RwLock<Option<Replacement>>,
    /// Statements by their texts.
    pub(crate) remembered: Remembered,
    /// Statements by the names that `PREPARE` gave them.
    pub(crate) named: ByName,
    /// The numbers that it has taken from sequences.
    pub(crate) numbers: Arc<Numbers>,
    /// Rejected rows of files that its statements read.
    pub(crate) rejects: Arc<Rejects>,
    /// Cancels the running statement.
    pub(crate) cancel: CancelFlag,
    /// Progress of the running statement.
    progress: Arc<Progress>,
}

impl Deref for Session {
    type Target = SessionState;

    fn deref(&self) -> &SessionState {
        &self.known
    }
}

impl SessionState {
    fn new(own: Attached) -> SessionState {
        let settings = Settings { threads: own.shared.config.threads, ..Settings::default() };
        SessionState {
            own,
            attached: RwLock::default(),
            current: Mutex::default(),
            is_away: AtomicBool::new(false),
            meanings: AtomicU64::new(0),
            lock_timeout: AtomicU64::new(0),
            settings: Mutex::new(settings),
            compression: Mutex::default(),
            time_zone: Mutex::new(TimeZone::UTC),
            rests: AtomicBool::default(),
            registered: RwLock::default(),
            functions: Functions::default(),
            replacement: RwLock::default(),
            remembered: Remembered::default(),
            named: ByName::default(),
            numbers: Arc::default(),
            rejects: Arc::default(),
            cancel: CancelFlag::default(),
            progress: Arc::default(),
        }
    }
}

impl Session {
    /// A new session, with the settings of a new connection.
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        Session::with(SessionState::new(Attached::own(shared)))
    }

    fn with(known: SessionState) -> Session {
        let Attached { name, shared, owner, .. } = known.own.clone();
        Session { known: Arc::new(known), shared, id: owner, database: name }
    }

    /// A session on the same target database that shares only the engine's settings: names mean what they
    /// mean to a new connection, and the time zone is the default one. It shares this one's cancel flag and
    /// progress.
    pub(crate) fn plain(&self) -> Session {
        Session::with(SessionState {
            settings: Mutex::new(self.settings()),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            ..SessionState::new(Attached {
                name: self.database.clone(),
                ..Attached::own(self.shared.clone())
            })
        })
    }

    /// The same in this session's time zone, by which constraints are judged when rows are written.
    pub(crate) fn plain_in_zone(&self) -> Session {
        let plain = self.plain();
        plain.set_time_zone(self.time_zone());
        plain
    }

    /// What it has been told; `None` if it sees other databases, or if a thread that does not exist in this
    /// forked process was about to change it.
    pub(crate) fn settled(&self) -> Option<Settled> {
        if !self.attached.try_read().is_ok_and(|attached| attached.is_empty()) {
            return None;
        }
        Some(Settled {
            settings: self.settings.try_lock().ok()?.clone(),
            time_zone: *self.time_zone.try_lock().ok()?,
            compression: *self.compression.try_lock().ok()?,
            path: self.current.try_lock().ok()?.path.clone(),
            lock_timeout: self.lock_timeout.load(Ordering::Relaxed),
            rests: self.rests.load(Ordering::Relaxed),
        })
    }

    /// Tells a new session what another one has been told.
    pub(crate) fn settle(&self, settled: Settled) {
        let Settled { settings, time_zone, compression, path, lock_timeout, rests } = settled;
        *self.settings.lock().expect("no panic while locked") = settings;
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner) = compression;
        self.lock_timeout.store(lock_timeout, Ordering::Relaxed);
        self.rests.store(rests, Ordering::Relaxed);
        self.set_time_zone(time_zone);
        self.set_search_path(path);
    }

    // ---- databases ----------------------------------------------------------------------------------------

    /// The database for which the connection was made.
    pub(crate) fn own(&self) -> &Attached {
        &self.known.own
    }

    /// The other databases that it sees.
    pub(crate) fn attached(&self) -> Vec<Attached> {
        self.attached.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if it sees other databases than its own.
    pub(crate) fn sees_others(&self) -> bool {
        !self.attached.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// All databases that it sees, its own first.
    pub(crate) fn databases(&self) -> Vec<Attached> {
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&self.own).chain(&*attached).cloned().collect()
    }

    /// The database of this name, if the session sees one.
    pub(crate) fn database_called(&self, name: &str) -> Option<Attached> {
        if *self.own.name == *name {
            return Some(self.own.clone());
        }
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        attached.iter().find(|other| *other.name == *name).cloned()
    }

    /// Replaces the other databases that it sees.
    pub(crate) fn set_attached(&self, attached: Vec<Attached>) {
        *self.attached.write().unwrap_or_else(PoisonError::into_inner) = attached;
        self.forget_plans();
    }

    /// Reads what other processes have committed to read-only databases; everything that begins afterwards
    /// sees it.
    ///
    /// # Errors
    /// Those of their files.
    pub(crate) fn refresh(&self) -> Result<()> {
        self.own.shared.refresh()?;
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        attached.iter().try_for_each(|other| other.shared.refresh())
    }

    /// The same session with another target database.
    pub(crate) fn at(&self, target: &Attached) -> Session {
        let Attached { name, shared, owner, .. } = target.clone();
        Session { known: self.known.clone(), shared, id: owner, database: name }
    }

    /// The same session, with the current database as its target database.
    pub(crate) fn here(&self) -> Session {
        let away = if self.is_away() { self.current().database } else { None };
        // The current database cannot be detached.
        let there = away.and_then(|name| self.database_called(&name));
        self.at(there.as_ref().unwrap_or(&self.own))
    }

    /// True if the current database is not the one for which the connection was made.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// True if its target database must not be written to.
    pub(crate) fn is_read_only(&self) -> bool {
        self.database_called(&self.database).is_some_and(|target| target.is_read_only)
    }

    /// True if its target database is the current database.
    pub(crate) fn is_here(&self) -> bool {
        match self.is_away() {
            false => self.database == self.own.name,
            true => self.current().database.as_ref().is_some_and(|name| *name == self.database),
        }
    }

    /// Where names are looked up.
    pub(crate) fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes where names are looked up.
    pub(crate) fn set_current(&self, database: &Attached, path: SearchPath) {
        let is_away = database.name != self.own.name;
        let current = Current { database: is_away.then(|| database.name.clone()), path };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
        self.is_away.store(is_away, Ordering::Relaxed);
        self.forget_plans();
    }

    // ---- settings -----------------------------------------------------------------------------------------

    /// The time zone.
    pub(crate) fn time_zone(&self) -> TimeZone {
        *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How new tables are encoded unless their statement says otherwise.
    pub(crate) fn compression(&self) -> Compression {
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time zone. Remembered plans depend on the previous one, so they are forgotten, unless it is
    /// the same.
    pub(crate) fn set_time_zone(&self, zone: TimeZone) {
        let before =
            std::mem::replace(&mut *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner), zone);
        if before != zone {
            self.forget_plans();
        }
    }

    /// The search path in the current database.
    pub(crate) fn search_path(&self) -> SearchPath {
        self.current().path
    }

    /// Sets the search path.
    pub(crate) fn set_search_path(&self, path: SearchPath) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).path = path;
        self.forget_plans();
    }

    /// Forgets what it learnt about statements, because the meaning of names has changed.
    pub(crate) fn forget_plans(&self) {
        self.meanings.fetch_add(1, Ordering::Relaxed);
        self.remembered.clear();
        self.named.start_afresh();
    }

    /// Number of changes of what names mean.
    pub(crate) fn meanings(&self) -> u64 {
        self.meanings.load(Ordering::Relaxed)
    }

    /// The newest names of its target database, including its temporary ones.
    pub(crate) fn newest_names(&self) -> CatalogVersion {
        self.shared.catalog.version().seen_by(self.id)
    }

    /// Calls `run` with the waiter for the write locks of a statement of this connection.
    pub(crate) fn waiting<R>(&self, statement: Option<&str>, run: impl FnOnce(&Waiter<'_>) -> R) -> R {
        let is_interrupted = || self.cancel.is_raised();
        let limit = match self.lock_timeout.load(Ordering::Relaxed) {
            0 => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        };
        let statement = statement.map(|text| text[..text.floor_char_boundary(SHOWN)].into());
        let name = WriterName { connection: self.id, statement };
        run(&Waiter { name, limit, is_interrupted: Some(&is_interrupted) })
    }

    /// The relation that the host program has registered under this name.
    pub(crate) fn registered_as(&self, name: &str) -> Option<Arc<dyn Relation>> {
        let registered = self.registered.read().expect("no panic while locked");
        if registered.is_empty() { None } else { registered.get(&name::fold(name)).cloned() }
    }

    /// True if the host program has registered relations.
    pub(crate) fn has_registered(&self) -> bool {
        !self.registered.read().expect("no panic while locked").is_empty()
    }

    /// Those of the given names that are tables and views, and the names of registered relations.
    pub(crate) fn names_of(&self, names: &CatalogVersion) -> Vec<String> {
        let shown = names.entries().filter(|entry| matches!(entry, Entry::Table(_) | Entry::View(_)));
        let mut names: Vec<String> = shown.map(Entry::shown_name).collect();
        let registered = self.registered.read().expect("no panic while locked");
        names.extend(registered.keys().map(|own| name::shown(&name::joined(name::MAIN, own))));
        drop(registered);
        names.sort();
        names
    }

    /// Makes a relation of the host program visible under `name`, in queries before tables of that name.
    pub(crate) fn register(&self, name: &str, relation: Arc<dyn Relation>) {
        self.registered.write().expect("no panic while locked").insert(name::fold(name), relation);
        self.forget_plans();
    }

    /// Undoes [`Session::register`]. True if there was such a relation.
    pub(crate) fn unregister(&self, name: &str) -> bool {
        let gone = self.registered.write().expect("no panic while locked").remove(&name::fold(name));
        self.forget_plans();
        gone.is_some()
    }

    /// The current settings of the engine.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.lock().expect("no panic while locked").clone()
    }

    /// The statement of a text, as [`Remembered::prepare`]. A long text takes much memory while it is parsed,
    /// which counts as the statement's; a very long one is not remembered, and is parsed aside, so that the
    /// statement answers an interrupt meanwhile.
    pub(crate) fn prepare(&self, sql: &str) -> Result<Result<Arc<Prepared>, Vec<Parsed>>> {
        if sql.len() < LONG_TEXT {
            return self.remembered.prepare(sql);
        }
        within(Arc::new(self.context()), || {
            if sql.len() < VERY_LONG_TEXT {
                return self.remembered.prepare(sql);
            }
            let text: Arc<str> = sql.into();
            aside(move || prepared::read(&text))
        })
    }

    /// The progress of the running statement.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// The context with which a statement that starts now would run.
    pub(crate) fn context(&self) -> QueryContext {
        self.progress.set(0.0);
        QueryContext {
            settings: Arc::new(self.settings()),
            memory: self.own.shared.memory.clone(),
            temp: self.own.shared.temp.clone(),
            learned: self.own.shared.learned.clone(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            pool: self.own.shared.workers.clone(),
            overdrawn: Overdrawn::default(),
        }
    }
}
