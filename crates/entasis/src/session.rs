//! What a connection knows, whatever it does: its settings, the names that are its own, what it remembers of
//! statements, and the flag that cancels the one that runs.
//!
//! All that runs for a statement sees so much of its connection. The transaction that is open, and how
//! statements are run in it, is the connection's ([`crate::connection`]).

use crate::files::csv::Rejects;
use crate::prepared::{ByName, Remembered};
use crate::search_path::SearchPath;
use crate::shared::Shared;
use entasis_engine::exec::{CancelFlag, Progress, QueryContext, Settings};
use entasis_engine::relation::{Compression, Relation};
use entasis_sql::{Parsed, TimeZone};
use entasis_storage::{CatalogVersion, Entry, Waiter, WriterName};
use entasis_vector::{Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Asked for names that the catalog does not have: variables of the host program.
pub type Replacement = Arc<dyn Fn(&str) -> Option<Arc<dyn Relation>> + Send + Sync>;

/// Bytes of a statement's text that others are shown who wait for it.
const SHOWN: usize = 200;
/// Another database that a session sees.
#[derive(Clone)]
pub(crate) struct Attached {
    /// What it is called.
    pub(crate) name: String,
    /// The database.
    pub(crate) shared: Arc<Shared>,
    /// The session's number there.
    pub(crate) owner: u64,
    /// It is not to be written to.
    pub(crate) is_read_only: bool,
}

/// See the module.
pub(crate) struct Session {
    /// The database.
    pub(crate) shared: Arc<Shared>,
    /// Its number, by which errors of other connections name it.
    pub(crate) id: u64,
    /// Milliseconds that a statement waits for another writer; 0 for as long as it takes.
    pub(crate) lock_timeout: AtomicU64,
    /// Other databases that it sees.
    attached: RwLock<Vec<Attached>>,
    /// What its database is called, if not as its file.
    called: Option<String>,
    /// Of one that stands in for another while that one's statement writes to this database: which of the
    /// attached ones that is, and its search path. Names without a database are looked for there.
    pub(crate) stands_for: Option<(String, SearchPath)>,
    /// Of the engine, for its statements.
    pub(crate) settings: Mutex<Settings>,
    /// How tables that are created without saying so are encoded.
    pub(crate) compression: Mutex<Compression>,
    /// Where its clocks are.
    time_zone: Mutex<TimeZone>,
    /// True if all tables are put in order after each of its statements.
    pub(crate) rests: AtomicBool,
    /// Where names without a schema are looked for.
    pub(crate) search_path: Mutex<SearchPath>,
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

impl Session {
    /// A new one, with the settings that a connection begins with.
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        let settings = Settings { threads: shared.config.threads, ..Settings::default() };
        Session {
            id: shared.next_connection(),
            shared,
            attached: RwLock::default(),
            called: None,
            stands_for: None,
            lock_timeout: AtomicU64::new(0),
            settings: Mutex::new(settings),
            compression: Mutex::default(),
            time_zone: Mutex::new(TimeZone::UTC),
            rests: AtomicBool::default(),
            search_path: Mutex::default(),
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

    /// One with its settings of the engine, and nothing else of its own: names mean what they mean to a new
    /// connection, and clocks are where they begin. It is cancelled with this one, and is as far as it.
    pub(crate) fn plain(&self) -> Session {
        Session {
            settings: Mutex::new(self.settings()),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            ..Session::new(self.shared.clone())
        }
    }

    /// One that stands in for it while a statement of it writes to another database.
    fn at(&self, to: &Attached) -> Session {
        let own = Attached {
            name: self.database_name(),
            shared: self.shared.clone(),
            owner: self.id,
            is_read_only: false,
        };
        let others = self.attached().into_iter().filter(|other| other.name != to.name);
        Session {
            id: to.owner,
            attached: RwLock::new(others.chain([own]).collect()),
            called: Some(to.name.clone()),
            stands_for: Some((self.database_name(), self.search_path())),
            lock_timeout: AtomicU64::new(self.lock_timeout.load(Ordering::Relaxed)),
            compression: Mutex::new(self.compression()),
            time_zone: Mutex::new(self.time_zone()),
            registered: RwLock::new(self.registered.read().expect("no panic while locked").clone()),
            replacement: RwLock::new(self.replacement.read().expect("no panic while locked").clone()),
            rejects: self.rejects.clone(),
            settings: Mutex::new(self.settings()),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            ..Session::new(to.shared.clone())
        }
    }

    /// The session in which a statement is to run that writes to another database; `None` for all others.
    ///
    /// # Errors
    /// Input, if that one is not to be written to.
    pub(crate) fn elsewhere(&self, parsed: &Parsed) -> Result<Option<Session>> {
        let attached = self.attached();
        if attached.is_empty() {
            return Ok(None);
        }
        let names = self.newest_names();
        let is_schema = |name: &str| names.get(&format!("{name}.")).is_some();
        let places = parsed.places().into_iter().filter(|place| !is_schema(place));
        for place in places {
            let Some(to) = attached.iter().find(|other| other.name == place) else { continue };
            if to.is_read_only {
                return Err(Error::input(format!("the database {place} is attached READ_ONLY")));
            }
            return Ok(Some(self.at(to)));
        }
        Ok(None)
    }

    /// What its database is called: as its file, without the extension.
    pub(crate) fn database_name(&self) -> String {
        let stem = self.shared.path.as_deref().and_then(|path| path.file_stem());
        let named = || stem.map_or("memory".to_owned(), |stem| stem.to_string_lossy().to_lowercase());
        self.called.clone().unwrap_or_else(named)
    }

    /// The other databases that it sees.
    pub(crate) fn attached(&self) -> Vec<Attached> {
        self.attached.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    pub(crate) fn refresh(&self) -> Result<()> {
        self.shared.refresh()?;
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        attached.iter().try_for_each(|other| other.shared.refresh())
    }

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

    /// Where it looks for names without a schema.
    pub(crate) fn search_path(&self) -> SearchPath {
        self.search_path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks for them elsewhere from now on.
    pub(crate) fn set_search_path(&self, path: SearchPath) {
        *self.search_path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        self.forget_plans();
    }

    /// Forgets what it learnt of statements, as names in them have got another meaning.
    fn forget_plans(&self) {
        self.remembered.clear();
        self.named.start_afresh();
    }

    /// The newest names, its temporary ones among them.
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
            memory: self.shared.memory.clone(),
            temp: self.shared.temp.clone(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            pool: self.shared.workers.clone(),
        }
    }
}
