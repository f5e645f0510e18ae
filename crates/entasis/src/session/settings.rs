//! `SET` and `SHOW`: settings by name, each with a one-line description.

use crate::catalog::search_path::SearchPath;
use crate::session::Session;
use crate::session::upkeep_mode;
use crate::state::AutoCheckpoint;
use crate::state::config::{format_bytes, parse_bytes, parse_threads};
use crate::values::rows::Rows;
use entasis_engine::exec::{
    Compaction, FilterKind, JoinSpill, Readings, Searching, Spilling, Swapping, TempCompression,
    parse_wanted, show_wanted,
};
use entasis_engine::relation::Compression;
use entasis_functions::TimeZone;
use entasis_storage::wal::Synchronous;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// A setting: its name, its description, how it is read and written.
struct Setting {
    name: &'static str,
    description: &'static str,
    get: fn(&Session) -> String,
    set: fn(&Session, &str) -> Result<()>,
}

macro_rules! engine_setting {
    ($name:literal, $description:literal, $field:ident, $parse:expr) => {
        Setting {
            name: $name,
            description: $description,
            get: |session| session.settings().$field.to_string(),
            set: |session, text| {
                let parse: fn(&str) -> Result<_> = $parse;
                session.settings.lock().expect("no panic while locked").$field = parse(text)?;
                Ok(())
            },
        }
    };
}

/// All settings, in the order in which `SHOW ALL` prints them.
const SETTINGS: &[Setting] = &[
    engine_setting!("threads", "workers of a statement, the calling thread included", threads, parse_threads),
    Setting {
        name: "memory_limit",
        description: "memory that tables, statements and results may use together",
        get: |session| format_bytes(session.here().shared.memory.limit()),
        set: |session, text| {
            session.here().shared.memory.set_limit(parse_bytes(text)?);
            Ok(())
        },
    },
    Setting {
        name: "compression",
        description: "default encoding of new tables: auto, none, or an encoding",
        get: |session| session.compression().name().to_string(),
        set: |session, text| {
            let name = text.trim().to_ascii_lowercase();
            let compression = Compression::parse(&name).ok_or_else(|| Compression::unknown(&name))?;
            *session.compression.lock().unwrap_or_else(PoisonError::into_inner) = compression;
            Ok(())
        },
    },
    Setting {
        name: "timezone",
        description: "time zone: a name of the IANA database, such as 'Europe/Berlin', or hours east of UTC",
        get: |session| session.time_zone().to_string(),
        set: |session, text| {
            session.set_time_zone(TimeZone::setting(text)?);
            Ok(())
        },
    },
    Setting {
        name: "search_path",
        description: "schemas in which unqualified names are looked up; new objects go to the first",
        get: |session| session.search_path().to_string(),
        set: |session, text| {
            session.set_search_path(SearchPath::parse(text));
            Ok(())
        },
    },
    Setting {
        name: "lock_timeout",
        description: "how long a statement waits for another writer of its table, such as '100ms' or '2s'; 0: no limit",
        get: |session| match session.lock_timeout.load(Ordering::Relaxed) {
            0 => "0".into(),
            milliseconds => format!("{milliseconds}ms"),
        },
        set: |session, text| {
            session.lock_timeout.store(parse_milliseconds(text)?, Ordering::Relaxed);
            Ok(())
        },
    },
    Setting {
        name: "synchronous",
        description: "when a commit returns: full (it is on the disk), normal (the operating system has it, and the disk \
                      within a second), off (immediately; synced occasionally, and when the database is closed); for all \
                      connections, and off in memory",
        get: |session| session.here().shared.synchronous().to_string(),
        set: |session, text| {
            let names =
                [(Synchronous::Full, "full"), (Synchronous::Normal, "normal"), (Synchronous::Off, "off")];
            session.here().shared.set_synchronous(one_of("synchronous", names, text)?);
            Ok(())
        },
    },
    Setting {
        name: "wal_autocheckpoint",
        description: "log size that triggers an automatic checkpoint: bytes ('64MB'), auto (a quarter of the file, 16 to 512 \
                      MiB), off; for all connections, and off in memory",
        get: |session| session.here().shared.auto_checkpoint().to_string(),
        set: |session, text| {
            session.here().shared.set_auto_checkpoint(parse_auto_checkpoint(text)?);
            Ok(())
        },
    },
    Setting {
        name: "upkeep",
        description: "when upkeep of tables runs: auto (when idle), always (after every statement as well, for tests)",
        get: |session| {
            let rests = session.rests.load(Ordering::Relaxed);
            upkeep_mode::NAMES
                .into_iter()
                .find(|(own, _)| *own == rests)
                .map_or("auto", |(_, name)| name)
                .to_string()
        },
        set: |session, text| {
            session.rests.store(one_of("upkeep", upkeep_mode::NAMES, text)?, Ordering::Relaxed);
            Ok(())
        },
    },
    engine_setting!(
        "temp_compression",
        "whether rows that joins and sorts keep are compressed: auto (if memory is short), on, off",
        temp_compression,
        |text| one_of("temp_compression", TempCompression::NAMES, text)
    ),
    Setting {
        name: "join_table",
        description: "kind of join table, if the keys allow: auto, bitmap, array, ranked, cat, cht, unchained, chained, radix, \
                      bloom_radix; or also those of single joins: auto, 3=cht",
        get: |session| {
            let settings = session.settings();
            show_wanted(settings.join_table, &settings.join_tables)
        },
        set: |session, text| {
            let (all, single) = parse_wanted(text)?;
            let mut settings = session.settings.lock().expect("no panic while locked");
            (settings.join_table, settings.join_tables) = (all, single.into());
            Ok(())
        },
    },
    engine_setting!(
        "join_filter",
        "join filters that drop probe rows without a match early: auto, off, bits, bloom",
        join_filter,
        |text| one_of("join_filter", FilterKind::NAMES, text)
    ),
    engine_setting!(
        "join_spill",
        "which partitions of joins go to temporary files: auto (if memory is short), half, all, deep (for tests)",
        join_spill,
        |text| one_of("join_spill", JoinSpill::NAMES, text)
    ),
    engine_setting!(
        "aggregate_spill",
        "when aggregations and set operations write rows to temporary files: auto (if memory is short), all, deep (for tests)",
        aggregate_spill,
        |text| one_of("aggregate_spill", Spilling::NAMES, text)
    ),
    engine_setting!(
        "sort_spill",
        "when sorts write rows to temporary files: auto (if memory is short), all, deep (for tests)",
        sort_spill,
        |text| one_of("sort_spill", Spilling::NAMES, text)
    ),
    Setting {
        name: "join_partition_size",
        description: "target size of a radix join partition with its table (a worker's cache)",
        get: |session| format_bytes(session.settings().join_partition_size),
        set: |session, text| {
            let size = parse_bytes(text)?;
            session.settings.lock().expect("no panic while locked").join_partition_size = size;
            Ok(())
        },
    },
    Setting {
        name: "join_stride",
        description: "bytes of probe rows that a worker buffers, to look them up in the order of a join's table; \
                      0: none",
        get: |session| format_bytes(session.settings().join_stride),
        set: |session, text| {
            let size = parse_bytes(text)?;
            session.settings.lock().expect("no panic while locked").join_stride = size;
            Ok(())
        },
    },
    engine_setting!(
        "join_build",
        "how often the input of a join's build side is read: auto (twice, keys first, where that pays), once, or twice",
        join_build,
        |text| one_of("join_build", Readings::NAMES, text)
    ),
    engine_setting!(
        "join_swap",
        "whether a join keeps its other side if far more rows come than were expected: auto (where that pays), off, or always",
        join_swap,
        |text| one_of("join_swap", Swapping::NAMES, text)
    ),
    engine_setting!(
        "join_bounds",
        "whether joins find rows by the bounds of inequalities in an order: auto (where that pays), off, or always",
        join_bounds,
        |text| one_of("join_bounds", Searching::NAMES, text)
    ),
    engine_setting!(
        "compaction",
        "how small chunks become larger ones: auto, none, full, binary, dynamic, learning, logical, or smart",
        compaction,
        |text| one_of("compaction", Compaction::NAMES, text)
    ),
    engine_setting!(
        "temp_directory",
        "where temporary files are; empty: there are none, and what does not fit into memory fails",
        temp_directory,
        |text| Ok(text.into())
    ),
    Setting {
        name: "result_buffer",
        description: "rows of a stream that wait for its reader in memory; more wait in a temporary file",
        get: |session| format_bytes(session.settings().result_buffer),
        set: |session, text| {
            session.settings.lock().expect("no panic while locked").result_buffer = parse_bytes(text)?;
            Ok(())
        },
    },
    Setting {
        name: "max_temp_directory_size",
        description: "bytes that all temporary files may have together",
        get: |session| {
            format_bytes(usize::try_from(session.settings().max_temp_directory_size).unwrap_or(usize::MAX))
        },
        set: |session, text| {
            let size =
                if text.eq_ignore_ascii_case("unlimited") { u64::MAX } else { parse_bytes(text)? as u64 };
            session.settings.lock().expect("no panic while locked").max_temp_directory_size = size;
            Ok(())
        },
    },
];

/// Settings for tests, which are hidden from users.
const TEST_SETTINGS: &[Setting] = &[
    engine_setting!("chunk_size", "rows of a chunk, 1 to 2048", chunk_rows, parse_chunk_rows),
    engine_setting!("hash_collisions", "give all rows the same hash", hash_collisions, parse_bool),
    engine_setting!(
        "adaptive",
        "scans order conditions, and leave out join filters, by what they are measured to do",
        adaptive,
        parse_bool
    ),
    engine_setting!("optimizer", "reorder and simplify plans", optimize, parse_bool),
];

/// The value of `setting` with this name. Unquoted `on` and `off` arrive as truth values.
fn one_of<T: Copy, const N: usize>(setting: &str, names: [(T, &str); N], text: &str) -> Result<T> {
    let text = text.trim();
    let of =
        |text: &str| names.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(value, _)| *value);
    let known = of(text).or_else(|| of(if parse_bool(text).ok()? { "on" } else { "off" }));
    known.ok_or_else(|| {
        let names = names.map(|(_, name)| name).join(", ");
        Error::input(format!("{setting} must be one of {names}, not '{text}'"))
    })
}

fn parse_auto_checkpoint(text: &str) -> Result<AutoCheckpoint> {
    match text.trim().to_ascii_lowercase().as_str() {
        "auto" => Ok(AutoCheckpoint::Auto),
        "off" => Ok(AutoCheckpoint::Off),
        bytes => Ok(AutoCheckpoint::Bytes(parse_bytes(bytes)? as u64)),
    }
}

fn parse_chunk_rows(text: &str) -> Result<usize> {
    match text.trim().parse::<usize>() {
        Ok(rows) if (1..=CHUNK_ROWS).contains(&rows) => Ok(rows),
        _ => Err(Error::input(format!("chunk_size must be a number from 1 to {CHUNK_ROWS}, not '{text}'"))),
    }
}

/// A duration: `100ms`, `2s`, `1min`, or a number of milliseconds, as in PostgreSQL.
fn parse_milliseconds(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let factor = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "ms" => Some(1.0),
        "s" => Some(1e3),
        "min" => Some(6e4),
        "h" => Some(3.6e6),
        _ => None,
    };
    let time = factor.and_then(|factor| Some(text[..digits].parse::<f64>().ok()? * factor));
    // Rounded up, because 0 would mean no limit.
    time.map(|time| time.ceil() as u64).ok_or_else(|| {
        Error::input(format!("'{text}' is not a time"))
            .with_hint("write it as '100ms', '2s' or '1min'; 0 is no limit")
    })
}

fn parse_bool(text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        _ => Err(Error::input(format!("'{text}' is neither true nor false"))),
    }
}

fn find(name: &str) -> Result<&'static Setting> {
    let mut all = SETTINGS.iter().chain(TEST_SETTINGS);
    all.find(|setting| setting.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        Error::input(format!("there is no setting '{name}'"))
            .with_hint(format!("the settings are {}", names.join(", ")))
    })
}

/// Settings of PostgreSQL, DuckDB and SQLite that scripts set at their beginning, and that change no result:
/// they are accepted, with a note. Those that would change one are errors.
const OF_OTHERS: &[&str] = &[
    // PostgreSQL: what pg_dump writes, and drivers.
    "application_name",
    "bytea_output",
    "check_function_bodies",
    "client_encoding",
    "client_min_messages",
    "default_table_access_method",
    "default_tablespace",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "jit",
    "maintenance_work_mem",
    "row_security",
    "standard_conforming_strings",
    "transaction_timeout",
    "work_mem",
    "xmloption",
    // DuckDB.
    "checkpoint_threshold",
    "enable_object_cache",
    "enable_progress_bar",
    "enable_verification",
    "preserve_insertion_order",
    // SQLite.
    "busy_timeout",
    "cache_size",
    "foreign_keys",
    "journal_mode",
    "locking_mode",
    "mmap_size",
    "page_size",
    "temp_store",
];

/// The note for a setting of another system that is accepted and has no effect. One of our own is none of
/// these.
pub(crate) fn of_others(name: &str) -> Option<String> {
    let is_it = |other: &&&str| other.eq_ignore_ascii_case(name);
    OF_OTHERS
        .iter()
        .find(is_it)
        .filter(|name| find(name).is_err())
        .map(|name| format!("{name} is a setting of another system and has no effect here"))
}

/// `SET name = value`.
pub(crate) fn set(session: &Session, name: &str, value: &str) -> Result<()> {
    (find(name)?.set)(session, value).map_err(|error| error.with_context(format!("SET {name}")))
}

/// `RESET name`: sets the value of a new connection.
pub(crate) fn reset(session: &Session, name: &str) -> Result<()> {
    let setting = find(name)?;
    let fresh = Session::new(session.shared.clone());
    let value = match setting.name {
        "memory_limit" => session.here().shared.config.memory_limit.to_string(),
        "synchronous" => Synchronous::default().to_string(),
        "wal_autocheckpoint" => AutoCheckpoint::default().to_string(),
        _ => (setting.get)(&fresh),
    };
    (setting.set)(session, &value)
}

/// The value of one setting.
pub(crate) fn get(session: &Session, name: &str) -> Result<String> {
    Ok((find(name)?.get)(session))
}

/// The columns of `SHOW ALL`.
pub(crate) const COLUMNS: [(&str, DataType); 3] =
    [("name", DataType::Varchar), ("value", DataType::Varchar), ("description", DataType::Varchar)];

/// The column of `SHOW name`.
pub(crate) fn column(name: &str) -> Result<(&'static str, DataType)> {
    Ok((find(name)?.name, DataType::Varchar))
}

/// `SHOW name` (one row, one column) or, without a name, `SHOW ALL`.
pub(crate) fn show(session: &Session, name: Option<&str>) -> Result<Rows> {
    let text = |s: &str| Value::Text(s.into());
    if let Some(name) = name {
        let value = text(&get(session, name)?);
        return Rows::from_values(&[column(name)?], &[vec![value]]);
    }
    let rows: Vec<Vec<Value>> = SETTINGS
        .iter()
        .map(|setting| vec![text(setting.name), text(&(setting.get)(session)), text(setting.description)])
        .collect();
    Rows::from_values(&COLUMNS, &rows)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Database};

    #[test]
    fn settings_for_tests_are_there_and_not_shown() {
        let connection = Database::in_memory(Config::default()).unwrap().connect();
        let is_shown = |name: &str| {
            let all = connection.execute("SHOW ALL").unwrap();
            all.row_values().any(|row| row[0] == entasis_vector::Value::Text(name.into()))
        };
        assert!(is_shown("threads"));
        for setting in super::TEST_SETTINGS {
            assert!(!is_shown(setting.name), "{}", setting.name);
            connection.execute(&format!("SHOW {}", setting.name)).unwrap();
        }
    }
}
