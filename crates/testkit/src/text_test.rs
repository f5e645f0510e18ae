//! The runner of SQL text tests (`tests/slt/**/*.slt`, and `tests/anomalies/*.slt` for sessions that
//! interleave), in the format of sqllogictest.
//!
//! Each file gets a database of its own with the settings of a [`Configuration`], and every record in it is
//! run, so that one run shows all failures. There are the following additions to the format:
//!
//! - `__TEST_DIR__` in a statement is a temporary directory of the file, removed after the run.
//! - NULL prints as `NULL`, an empty text as `(empty)`; several blanks count as one.
//! - Column types are checked: `I` integers, `R` floats and decimals, `B` booleans, `T` text, `D` dates,
//!   times and intervals, `?` anything.
//! - With `reopen` in the configuration, the database is in a file, and before each statement it is closed
//!   and reopened, while the file's only connection has no state of its own: no transaction, no setting, no
//!   temporary object, no prepared statement.
//! - `statement error <regex>` is matched against the error as a user sees it.

use crate::configuration::{Configuration, files_below, tests_directory};
use entasis::{Connection, Database};
use entasis_vector::DataType;
use sqllogictest::{ColumnType, DB, DBOutput, Record, Runner};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs all files under `configuration`. With `ENTASIS_SLT=text`, only files whose path contains that text.
///
/// # Errors
/// All failures, each with file, line and configuration.
pub fn run_all(configuration: &Configuration) -> Result<(), String> {
    let root = tests_directory();
    let wanted = std::env::var("ENTASIS_SLT").unwrap_or_default();
    let (mut failures, mut files) = (Vec::new(), 0);
    let directories = ["slt", "anomalies"].map(|directory| files_below(&root.join(directory), "slt"));
    for file in directories.into_iter().flatten() {
        let name =
            file.strip_prefix(&root).map_or_else(|_| file.display().to_string(), |p| p.display().to_string());
        if !name.contains(&wanted) || !configuration.runs(&name) {
            continue;
        }
        files += 1;
        failures.extend(run_file(&file, &name, configuration));
    }
    if failures.is_empty() {
        return if files > 0 { Ok(()) } else { Err(format!("no file matches '{wanted}'")) };
    }
    let count = failures.len();
    Err(format!("{count} failures under '{}':\n\n{}", configuration.name, failures.join("\n")))
}

/// Runs one file; returns its failures.
pub fn run_file(file: &Path, name: &str, configuration: &Configuration) -> Vec<String> {
    let records = match sqllogictest::parse_file::<Kind>(file) {
        Ok(records) => records,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let directory = TemporaryDirectory::new();
    let place = match Place::new(configuration, &directory.0) {
        Ok(place) => Arc::new(place),
        Err(error) => return vec![format!("{name} [{}]: {error}", configuration.name)],
    };
    let mut runner = Runner::new(|| {
        let directory = directory.0.display().to_string();
        let connection = place.connect();
        let place = place.clone();
        async move {
            let connection = Some(connection?);
            Ok(Session { connection, place, directory, has_own: false })
        }
    });
    runner.with_column_validator(|found, expected| {
        found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| *e == Kind::Any || f == e)
    });
    let mut failures = Vec::new();
    for record in records {
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        if let Err(error) = runner.run(record) {
            failures.push(format!("[{}] {}", configuration.name, error.display(false)));
        }
    }
    failures
}

/// The source of the connections of a file.
struct Place {
    settings: Vec<String>,
    /// The database's file, if it is to be reopened again and again.
    path: Option<PathBuf>,
    database: Mutex<Option<Database>>,
    /// Number of connections so far.
    connections: AtomicUsize,
}

impl Place {
    fn new(configuration: &Configuration, directory: &Path) -> entasis::Result<Place> {
        let path = configuration.reopens.then(|| directory.join("database"));
        let database = match &path {
            Some(path) => Database::open(path, entasis::Config::default())?,
            None => Database::in_memory(entasis::Config::default())?,
        };
        let settings = configuration.settings.clone();
        Ok(Place { settings, path, database: Mutex::new(Some(database)), connections: AtomicUsize::new(0) })
    }

    fn database(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> entasis::Result<Connection> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connect_again()
    }

    fn connect_again(&self) -> entasis::Result<Connection> {
        let connection = self.database().as_ref().expect("it is open").connect();
        self.settings.iter().try_for_each(|setting| connection.execute(setting).map(drop))?;
        Ok(connection)
    }
}

struct Session {
    /// `None` only while the database is reopened.
    connection: Option<Connection>,
    place: Arc<Place>,
    directory: String,
    /// True once it has state that would be lost with its connection.
    has_own: bool,
}

impl Session {
    /// Closes the database and reopens it, if the configuration says so and no state is lost.
    fn reopen(&mut self, sql: &str) -> entasis::Result<()> {
        let Some(path) = &self.place.path else { return Ok(()) };
        if self.place.connections.load(Ordering::Relaxed) > 1 || self.has_own {
            return Ok(());
        }
        if !self.connection.as_ref().is_some_and(Connection::in_transaction) {
            self.connection = None;
            *self.place.database() = None;
            let database = Database::open(path, entasis::Config::default())?;
            *self.place.database() = Some(database);
            self.connection = Some(self.place.connect_again()?);
        }
        const OWN: [&str; 9] =
            ["SET", "RESET", "USE", "PREPARE", "PRAGMA", "ATTACH", "TEMP", "TEMPORARY", "NEXTVAL"];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = sql.split(|c| !is_word(c)).map(str::to_ascii_uppercase);
        let first = words.next().unwrap_or_default();
        self.has_own = OWN.contains(&&*first) || words.any(|word| OWN[6..].contains(&&*word));
        Ok(())
    }
}

impl DB for Session {
    type Error = entasis::Error;
    type ColumnType = Kind;

    fn run(&mut self, sql: &str) -> entasis::Result<DBOutput<Kind>> {
        self.reopen(sql)?;
        let connection = self.connection.as_ref().expect("it is open");
        let rows = connection.execute(&sql.replace("__TEST_DIR__", &self.directory))?;
        if rows.schema().is_empty() {
            return Ok(DBOutput::StatementComplete(rows.changed().unwrap_or(0)));
        }
        let types: Vec<DataType> = rows.schema().iter().map(|field| field.ty).collect();
        let print = |row: Vec<entasis::Value>| {
            let cells = row.iter().zip(&types).map(|(value, ty)| value.display(*ty).to_string());
            cells.map(|cell| if cell.is_empty() { "(empty)".to_string() } else { cell }).collect()
        };
        let printed = rows.row_values().map(print).collect();
        Ok(DBOutput::Rows { types: types.iter().map(|ty| Kind::of(*ty)).collect(), rows: printed })
    }

    fn engine_name(&self) -> &str {
        "entasis"
    }
}

/// The letters for types in test files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Boolean,
    Text,
    Time,
    Any,
}

impl Kind {
    fn of(ty: DataType) -> Kind {
        match ty {
            // The type of a sum of BIGINTs.
            DataType::Decimal { precision: 38, scale: 0 } => Kind::Integer,
            _ if ty.is_integer() => Kind::Integer,
            _ if ty.is_float() || ty.is_decimal() => Kind::Real,
            DataType::Boolean => Kind::Boolean,
            DataType::Varchar | DataType::Json | DataType::Enum(_) => Kind::Text,
            DataType::Date
            | DataType::Time
            | DataType::TimeTz
            | DataType::Timestamp
            | DataType::TimestampNs
            | DataType::TimestampTz
            | DataType::Interval => Kind::Time,
            _ => Kind::Any,
        }
    }
}

impl ColumnType for Kind {
    fn from_char(value: char) -> Option<Kind> {
        Some(match value {
            'I' => Kind::Integer,
            'R' => Kind::Real,
            'B' => Kind::Boolean,
            'T' => Kind::Text,
            'D' => Kind::Time,
            '?' => Kind::Any,
            _ => return None,
        })
    }
    fn to_char(&self) -> char {
        match self {
            Kind::Integer => 'I',
            Kind::Real => 'R',
            Kind::Boolean => 'B',
            Kind::Text => 'T',
            Kind::Time => 'D',
            Kind::Any => '?',
        }
    }
}

struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> TemporaryDirectory {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("entasis-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        TemporaryDirectory(path)
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // A directory that remains is not a failure of the tested code.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
