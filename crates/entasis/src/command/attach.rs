//! `ATTACH`, `DETACH` and `SHOW DATABASES`: other databases that a connection sees (docs/decisions/0026).

use crate::config::Config;
use crate::rows::Rows;
use crate::session::{Attached, Session};
use crate::shared::Shared;
use crate::work::Work;
use entasis_vector::error::sqlstate;
use entasis_vector::{DataType, Error, Result, Value};
use std::path::Path;
use std::sync::Arc;

/// What no database is called: schemas that each has.
const TAKEN: [&str; 5] = ["main", "public", "temp", "pg_temp", "information_schema"];

/// Opens another database, under its name or that of its file.
pub(super) fn attach(
    session: &Session,
    path: &str,
    name: Option<String>,
    options: &[(String, Value)],
) -> Result<Rows> {
    let mut is_read_only = false;
    for (option, value) in options {
        match (option.as_str(), value) {
            ("read_only", Value::Boolean(value)) => is_read_only = *value,
            ("read_only", _) => return Err(Error::input("option read_only of ATTACH takes true or false")),
            _ => {
                let error = Error::input(format!("ATTACH has no option '{option}'"));
                return Err(error.with_hint("the option is read_only: ATTACH 'file' AS name (READ_ONLY)"));
            }
        }
    }
    let is_memory = path.is_empty() || path == ":memory:";
    let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let name = name.or(stem.filter(|_| !is_memory));
    let name = name.ok_or_else(|| {
        Error::input("a database in memory needs a name").with_hint("ATTACH ':memory:' AS name")
    })?;
    let mut attached = session.attached();
    let is_taken = name == session.database_name() || attached.iter().any(|other| other.name == name);
    if is_taken || TAKEN.contains(&name.as_str()) {
        return Err(Error::input(format!("a database cannot be called {name}: the name is taken"))
            .with_sqlstate(sqlstate::TAKEN)
            .with_hint("ATTACH 'file' AS another_name"));
    }
    if name.contains('.') {
        return Err(Error::input(format!("the name of a database has no dot: {name}"))
            .with_hint("ATTACH 'file' AS another_name"));
    }
    let config = Config { read_only: is_read_only && !is_memory, ..session.shared.config.clone() };
    let shared = match is_memory {
        true => Arc::new(Shared::new(config)),
        false => Shared::open(Path::new(path), &config)?,
    };
    let is_hidden = session.newest_names().get(&format!("{name}.")).is_some();
    let owner = shared.next_connection();
    attached.push(Attached { name, shared, owner, is_read_only });
    session.set_attached(attached);
    let note = "a schema of that name hides it: write its name, a schema and the table's";
    Ok(Rows::empty().with_note(is_hidden.then_some(note)))
}

/// Closes one, unless somebody else sees it.
pub(super) fn detach(session: &Session, work: &Work, name: &str) -> Result<Rows> {
    if name == session.database_name() {
        return Err(Error::input(format!("{name} is the database that the connection was made for")));
    }
    let mut attached = session.attached();
    let Some(at) = attached.iter().position(|other| other.name == name) else {
        return Err(Error::input(format!("no database {name} is attached"))
            .with_hint("SHOW DATABASES lists those that are"));
    };
    if work.has_seen(name) {
        return Err(Error::input(format!("the open transaction has read the database {name}"))
            .with_hint("COMMIT or ROLLBACK first"));
    }
    attached.remove(at);
    session.set_attached(attached);
    Ok(Rows::empty())
}

/// Lists the databases that are seen.
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
    let mut rows = vec![row(&session.database_name(), &session.shared, session.shared.is_read_only(), true)];
    rows.extend(session.attached().iter().map(|o| row(&o.name, &o.shared, o.is_read_only, false)));
    let columns = [
        ("database_name", DataType::Varchar),
        ("path", DataType::Varchar),
        ("read_only", DataType::Boolean),
        ("is_current", DataType::Boolean),
    ];
    Rows::from_values(&columns, &rows)
}
