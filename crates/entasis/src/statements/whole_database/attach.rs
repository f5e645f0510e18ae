//! `ATTACH`, `DETACH` and `SHOW DATABASES`: other databases that a connection sees (docs/decisions/0026).

use crate::session::{Attached, Session};
use crate::state::config::Config;
use crate::state::{Shared, User};
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::quoted;
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value};
use std::path::Path;
use std::sync::Arc;

/// Names that a database must not have, because every database has schemas with these names.
const TAKEN: [&str; 5] = ["main", "public", "temp", "pg_temp", "information_schema"];

/// The options of `ATTACH`.
pub(super) struct Wanted<'a> {
    /// The name for the database; by default that of its file.
    pub(super) name: Option<String>,
    /// If the name is taken, do nothing.
    pub(super) if_not_exists: bool,
    /// If the name is taken, detach that database first.
    pub(super) or_replace: bool,
    /// The options in brackets.
    pub(super) options: &'a [(String, Value)],
}

/// Opens another database, under its name or that of its file.
pub(super) fn attach(
    session: &Session,
    transaction: &TransactionContext,
    path: &str,
    wanted: Wanted<'_>,
) -> Result<Rows> {
    let Wanted { name, if_not_exists, or_replace, options } = wanted;
    let (mut is_read_only, mut allow_missing_log) = (false, false);
    for (option, value) in options {
        match (option.as_str(), value) {
            ("read_only", Value::Boolean(value)) => is_read_only = *value,
            ("allow_missing_log", Value::Boolean(value)) => allow_missing_log = *value,
            (option @ ("read_only" | "allow_missing_log"), _) => {
                return Err(Error::input(format!("option {option} of ATTACH takes true or false")));
            }
            _ => {
                let error = Error::input(format!("ATTACH has no option '{option}'"));
                let hint =
                    "the options are read_only and allow_missing_log: ATTACH 'file' AS name (READ_ONLY)";
                return Err(error.with_hint(hint));
            }
        }
    }
    let is_memory = path.is_empty() || path == ":memory:";
    let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase());
    let name = name.or(stem.filter(|_| !is_memory));
    let name = name.ok_or_else(|| {
        Error::input("a database in memory needs a name").with_hint("ATTACH ':memory:' AS name")
    })?;
    let mut attached = session.attached();
    let is_attached = attached.iter().any(|other| *other.name == *name);
    if if_not_exists && (is_attached || *session.own().name == *name) {
        return Ok(Rows::empty());
    }
    let is_taken = *session.own().name == *name || (is_attached && !or_replace);
    if is_taken || TAKEN.contains(&name.as_str()) {
        return Err(Error::input(format!("a database cannot be called {name}: the name is taken"))
            .with_sqlstate(sqlstate::TAKEN)
            .with_hint("ATTACH 'file' AS another_name"));
    }
    if name.contains('.') {
        return Err(Error::input(format!("the name of a database has no dot: {name}"))
            .with_hint("ATTACH 'file' AS another_name"));
    }
    if is_attached {
        // Both may have the same file.
        detach(session, transaction, &name, false)?;
        attached.retain(|other| *other.name != *name);
    }
    let config = session.own().shared.config.clone();
    let config = Config { read_only: is_read_only && !is_memory, allow_missing_log, ..config };
    let user = match is_memory {
        true => User::new(&Arc::new(Shared::new(config))),
        false => Shared::open(Path::new(path), &config)?,
    };
    let shared = (*user).clone();
    if let Some(same) = session.databases().iter().find(|other| Arc::ptr_eq(&other.shared, &shared)) {
        let text = format!("'{path}' is attached already, as {}", same.name);
        return Err(Error::input(text).with_sqlstate(sqlstate::TAKEN));
    }
    let is_hidden = session.here().newest_names().get(&format!("{name}.")).is_some();
    let owner = shared.next_connection();
    attached.push(Attached { name: name.into(), shared, owner, is_read_only, _user: Some(user) });
    session.set_attached(attached);
    let note = "a schema of that name hides it: write its name, a schema and the table's";
    Ok(Rows::empty().with_note(is_hidden.then_some(note)))
}

/// Closes a database, unless other connections see it.
pub(super) fn detach(
    session: &Session,
    transaction: &TransactionContext,
    name: &str,
    if_exists: bool,
) -> Result<Rows> {
    if *name == *session.own().name {
        return Err(Error::input(format!("{name} is the connection's own database and cannot be detached")));
    }
    let mut attached = session.attached();
    let Some(at) = attached.iter().position(|other| *other.name == *name) else {
        if if_exists {
            return Ok(Rows::empty());
        }
        return Err(Error::input(format!("no database {name} is attached"))
            .with_hint("SHOW DATABASES lists the attached databases"));
    };
    if session.current().database.is_some_and(|current| *current == *name) {
        return Err(Error::input(format!("{name} is the current database"))
            .with_hint(format!("USE {} first", quoted(&session.own().name))));
    }
    if transaction.has_seen(name) {
        return Err(Error::input(format!("the open transaction has read the database {name}"))
            .with_hint("COMMIT or ROLLBACK first"));
    }
    attached.remove(at);
    session.set_attached(attached);
    Ok(Rows::empty())
}

/// Lists the databases that the session sees.
pub(super) fn show(session: &Session) -> Result<Rows> {
    let row = |name: &str, shared: &Shared, is_read_only: bool, is_current: bool| {
        let path = shared.path.as_deref().map(|path| path.display().to_string());
        vec![
            Value::Text(name.into()),
            path.map_or(Value::Null, |path| Value::Text(path.into())),
            Value::Boolean(is_read_only),
            Value::Boolean(is_current),
        ]
    };
    let current = session.here().database;
    let databases = session.databases();
    let rows = databases.iter().map(|it| row(&it.name, &it.shared, it.is_read_only, it.name == current));
    let rows: Vec<Vec<Value>> = rows.collect();
    Rows::from_values(&COLUMNS, &rows)
}

/// The columns of `SHOW DATABASES`.
pub(crate) const COLUMNS: [(&str, DataType); 4] = [
    ("database_name", DataType::Varchar),
    ("path", DataType::Varchar),
    ("read_only", DataType::Boolean),
    ("is_current", DataType::Boolean),
];
