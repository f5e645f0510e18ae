//! What a connection knows, whatever it does: its settings, the names that are its own, what it remembers of
//! statements, and the flag that cancels the one that runs.
//!
//! All that runs for a statement sees so much of its connection. The transaction that is open, and how
//! statements are run in it, is the connection's ([`crate::connection`]).
//!
//! A session has two parts (docs/decisions/0026): what it knows, and its *home*, the one database that a
//! statement works on. It sees several: the one that the connection was made for, and those that are
//! attached, one of which is the current one, where names without a database are looked for. What a statement
//! takes of memory, workers and costs is that of the connection's own database.

use crate::files::csv::Rejects;
use crate::prepared::{ByName, Remembered};
use crate::search_path::SearchPath;
use crate::shared::Shared;
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_engine::relation::{Compression, Relation};
use entasis_sql::TimeZone;
use entasis_storage::{CatalogVersion, Entry, Waiter, WriterName};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Asked for names that the catalog does not have: variables of the host program.
pub type Replacement = Arc<dyn Fn(&str) -> Option<Arc<dyn Relation>> + Send + Sync>;

/// Bytes of a statement's text that others are shown who wait for it.
const SHOWN: usize = 200;

/// A database that a session sees.
#[derive(Clone)]
pub(crate) struct Attached {
    /// What it is called, in lower case.
    pub(crate) name: Arc<str>,
    /// The database.
    pub(crate) shared: Arc<Shared>,
    /// The session's number there, by which errors of other connections name it.
    pub(crate) owner: u64,
    /// It is not to be written to.
    pub(crate) is_read_only: bool,
}

impl Attached {
    /// The database that a connection is made for, which is called as its file is, without the extension.
    fn own(shared: Arc<Shared>) -> Attached {
        let stem = shared.path.as_deref().and_then(|path| path.file_stem());
        let name = stem.map_or("memory".to_owned(), |stem| stem.to_string_lossy().to_lowercase());
        Attached { name: name.into(), owner: shared.next_connection(), shared, is_read_only: false }
    }

    /// The newest names in it, with the session's temporary ones.
    pub(crate) fn newest_names(&self) -> CatalogVersion {
        self.shared.catalog.version().seen_by(self.owner)
    }
}

/// Where names are looked for that have no database, or no schema.
#[derive(Clone, Default)]
pub(crate) struct Current {
    /// The name of the database; `None` for the connection's own.
    pub(crate) database: Option<Arc<str>>,
    /// Schemas of it.
    pub(crate) path: SearchPath,
}

/// What a session knows, and one of the databases that it sees: its home, which statements work on. Cheap to
/// clone.
#[derive(Clone)]
pub(crate) struct Session {
    known: Arc<SessionState>,
    /// The home.
    pub(crate) shared: Arc<Shared>,
    /// Its number there.
    pub(crate) id: u64,
    /// What the home is called.
    pub(crate) database: Arc<str>,
}

/// What a session knows, whatever the home.
pub(crate) struct SessionState {
    /// The database that the connection was made for, which has its temporary objects.
    own: Attached,
    /// The others that it sees.
    attached: RwLock<Vec<Attached>>,
    /// Where it looks for names.
    current: Mutex<Current>,
    /// True if the current database is not its own.
    is_away: AtomicBool,
    /// How often names have got another meaning.
    meanings: AtomicU64,
    /// Milliseconds that a statement waits for another writer; 0 for as long as it takes.
    pub(crate) lock_timeout: AtomicU64,
    /// Of the engine, for its statements.
    pub(crate) settings: Mutex<Settings>,
    /// How tables that are created without saying so are encoded.
    pub(crate) compression: Mutex<Compression>,
    /// Where its clocks are.
    time_zone: Mutex<TimeZone>,
    /// True if all tables are put in order after each of its statements.
    pub(crate) rests: AtomicBool,
    /// Relations of the host program, by their names in lower case.
    pub(crate) registered: RwLock<HashMap<String, Arc<dyn Relation>>>,
    /// Who is asked for names that are nowhere else.
    pub(crate) replacement: RwLock<Option<Replacement>>,
    /// Statements by their texts.
    pub(crate) remembered: Remembered,
    /// Statements by the names that `PREPARE` gave them.
    pub(crate) named: ByName,
    /// By sequence, the value that was taken last.
    pub(crate) taken: Arc<Mutex<HashMap<String, i64>>>,
    /// Rows of files that its statements have left out.
    pub(crate) rejects: Arc<Rejects>,
    /// Cancels its statement.
    pub(crate) cancel: CancelFlag,
    /// How far its statement is.
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
            replacement: RwLock::default(),
            remembered: Remembered::default(),
            named: ByName::default(),
            taken: Arc::default(),
            rejects: Arc::default(),
            cancel: CancelFlag::default(),
            progress: Arc::default(),
        }
    }
}

impl Session {
    /// A new one, with the settings that a connection begins with.
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        Session::with(SessionState::new(Attached::own(shared)))
    }

    fn with(known: SessionState) -> Session {
        let Attached { name, shared, owner, .. } = known.own.clone();
        Session { known: Arc::new(known), shared, id: owner, database: name }
    }

    /// One on its home with its settings of the engine, and nothing else of its own: names mean what they
    /// mean to a new connection, and clocks are where they begin. It is cancelled with this one, and is as
    /// far as it.
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

    // ---- databases ----------------------------------------------------------------------------------------

    /// The database that the connection was made for.
    pub(crate) fn own(&self) -> &Attached {
        &self.known.own
    }

    /// The other databases that it sees.
    pub(crate) fn attached(&self) -> Vec<Attached> {
        self.attached.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if it sees others.
    pub(crate) fn sees_others(&self) -> bool {
        !self.attached.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// All databases that it sees, its own first.
    pub(crate) fn databases(&self) -> Vec<Attached> {
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&self.own).chain(&*attached).cloned().collect()
    }

    /// The database of this name, if it sees one.
    pub(crate) fn database_called(&self, name: &str) -> Option<Attached> {
        if *self.own.name == *name {
            return Some(self.own.clone());
        }
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        attached.iter().find(|other| *other.name == *name).cloned()
    }

    /// Sees other ones from now on.
    pub(crate) fn set_attached(&self, attached: Vec<Attached>) {
        *self.attached.write().unwrap_or_else(PoisonError::into_inner) = attached;
        self.forget_plans();
    }

    /// Sees what other processes have committed to databases that are only read: whatever begins, begins with
    /// this.
    ///
    /// # Errors
    /// Those of their files.
    pub(crate) fn refresh(&self) -> entasis_vector::Result<()> {
        self.own.shared.refresh()?;
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        attached.iter().try_for_each(|other| other.shared.refresh())
    }

    /// The same session with another home.
    pub(crate) fn at(&self, home: &Attached) -> Session {
        let Attached { name, shared, owner, .. } = home.clone();
        Session { known: self.known.clone(), shared, id: owner, database: name }
    }

    /// The same session, whose home is the current database.
    pub(crate) fn here(&self) -> Session {
        let away = if self.is_away() { self.current().database } else { None };
        // It cannot go while it is the current one.
        let there = away.and_then(|name| self.database_called(&name));
        self.at(there.as_ref().unwrap_or(&self.own))
    }

    /// True if the current database is not the one that the connection was made for.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// True if its home is not to be written to.
    pub(crate) fn is_read_only(&self) -> bool {
        self.database_called(&self.database).is_some_and(|home| home.is_read_only)
    }

    /// True if its home is the current database.
    pub(crate) fn is_here(&self) -> bool {
        match self.is_away() {
            false => self.database == self.own.name,
            true => self.current().database.as_ref().is_some_and(|name| *name == self.database),
        }
    }

    /// Where names are looked for.
    pub(crate) fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks for them elsewhere from now on.
    pub(crate) fn set_current(&self, database: &Attached, path: SearchPath) {
        let is_away = database.name != self.own.name;
        let current = Current { database: is_away.then(|| database.name.clone()), path };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
        self.is_away.store(is_away, Ordering::Relaxed);
        self.forget_plans();
    }

    // ---- settings -----------------------------------------------------------------------------------------

    /// Where its clocks are.
    pub(crate) fn time_zone(&self) -> TimeZone {
        *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How tables that are created without saying so are encoded.
    pub(crate) fn compression(&self) -> Compression {
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts its clocks elsewhere. Plans that it remembers are for where they were.
    pub(crate) fn set_time_zone(&self, zone: TimeZone) {
        *self.time_zone.lock().unwrap_or_else(PoisonError::into_inner) = zone;
        self.forget_plans();
    }

    /// Where it looks for names without a schema, in the current database.
    pub(crate) fn search_path(&self) -> SearchPath {
        self.current().path
    }

    /// Looks for them elsewhere from now on.
    pub(crate) fn set_search_path(&self, path: SearchPath) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).path = path;
        self.forget_plans();
    }

    /// Forgets what it learnt of statements, as names in them have got another meaning.
    fn forget_plans(&self) {
        self.meanings.fetch_add(1, Ordering::Relaxed);
        self.remembered.clear();
        self.named.start_afresh();
    }

    /// How often names have got another meaning so far.
    pub(crate) fn meanings(&self) -> u64 {
        self.meanings.load(Ordering::Relaxed)
    }

    /// The newest names of its home, its temporary ones among them.
    pub(crate) fn newest_names(&self) -> CatalogVersion {
        self.shared.catalog.version().seen_by(self.id)
    }

    /// Calls `work` with what a statement of this connection waits for its turn by.
    pub(crate) fn waiting<R>(&self, statement: Option<&str>, work: impl FnOnce(&Waiter<'_>) -> R) -> R {
        let is_interrupted = || self.cancel.is_raised();
        let limit = match self.lock_timeout.load(Ordering::Relaxed) {
            0 => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        };
        let statement = statement.map(|text| text[..text.floor_char_boundary(SHOWN)].into());
        let name = WriterName { connection: self.id, statement };
        work(&Waiter { name, limit, is_interrupted: Some(&is_interrupted) })
    }

    /// True if the host program has registered a relation of this name.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        let registered = self.registered.read().expect("no panic while locked");
        !registered.is_empty() && registered.contains_key(&name.to_lowercase())
    }

    /// The names of tables and views among some, and of registered relations.
    pub(crate) fn names_of(&self, names: &CatalogVersion) -> Vec<String> {
        let shown = names.entries().filter(|entry| matches!(entry, Entry::Table(_) | Entry::View(_)));
        let mut names: Vec<String> = shown.map(|entry| entry.name().to_owned()).collect();
        names.extend(self.registered.read().expect("no panic while locked").keys().cloned());
        names.sort();
        names
    }

    /// Makes a relation of the host program visible under `name`, before tables of that name.
    pub(crate) fn register(&self, name: &str, relation: Arc<dyn Relation>) {
        self.registered.write().expect("no panic while locked").insert(name.to_lowercase(), relation);
        self.forget_plans();
    }

    /// Undoes [`Session::register`]. True if there was one.
    pub(crate) fn unregister(&self, name: &str) -> bool {
        self.forget_plans();
        self.registered.write().expect("no panic while locked").remove(&name.to_lowercase()).is_some()
    }

    /// The settings of the engine now.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.lock().expect("no panic while locked").clone()
    }

    /// How far the running statement is.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// What a statement that starts now carries.
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
        }
    }
}
