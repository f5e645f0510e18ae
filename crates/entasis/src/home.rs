//! Which database a statement works on: its home (docs/decisions/0026).
//!
//! 1. A statement that writes to something, or makes it: the database of that, which its text tells
//!    ([`entasis_sql::Subject`]), together with the names that there are.
//! 2. One about a whole database: that one.
//! 3. One that only reads: that of the transaction that is open; else the current one.
//!
//! To what runs the statement its home is the only database; all that is in others can be read.

use crate::place::Places;
use crate::session::{Attached, Session};
use crate::work::Work;
use entasis_sql::{Parsed, Subject, What, WrittenName};
use entasis_storage::CatalogVersion;
use entasis_vector::{Error, Result};

/// Where a statement works.
pub(crate) struct Home {
    /// The session there.
    pub(crate) session: Session,
    /// The tables whose rows it changes, and what is declared of them.
    pub(crate) targets: Vec<WrittenName>,
}

/// The home of a statement, by itself or in the transaction that is open.
///
/// # Errors
/// Input, if it would write to several databases, or to one that is not to be written to.
pub(crate) fn of(session: &Session, parsed: &Parsed, open: Option<&Work>) -> Result<Home> {
    if !session.sees_others() {
        return Ok(Home { session: session.clone(), targets: parsed.targets() });
    }
    let places = Places::of(session);
    let mut names = |database: &Attached| -> CatalogVersion {
        let seen = open.and_then(|work| work.names_seen_of(&database.name));
        seen.unwrap_or_else(|| database.newest_names())
    };
    let mut home: Option<(&Attached, String)> = None;
    let mut targets = Vec::new();
    for subject in parsed.subjects() {
        let (database, target) = database_of(&subject, &places, &mut names);
        let written = subject.parts.join(".");
        match &home {
            Some((first, other)) if first.name != database.name => {
                let error = Error::input(format!(
                    "a statement writes to one database: {other} is in {}, and {written} in {}",
                    first.name, database.name
                ));
                return Err(error.with_hint("write a statement for each"));
            }
            _ => home = Some((database, written)),
        }
        targets.extend(target.filter(|_| subject.has_rows));
    }
    let Some((home, _)) = home else {
        let of_transaction = open.and_then(|work| places.database(work.database()));
        let home = of_transaction.unwrap_or_else(|| places.current());
        return Ok(Home { session: session.at(home), targets });
    };
    if home.is_read_only && parsed.writes() {
        return Err(read_only(home));
    }
    Ok(Home { session: session.at(home), targets })
}

/// The error of writing to a database that is not to be written to.
pub(crate) fn read_only(database: &Attached) -> Error {
    let name = &database.name;
    Error::input(format!("the database {name} is attached READ_ONLY"))
        .with_hint(format!("DETACH {name}, and ATTACH it without READ_ONLY"))
}

/// The database of what a statement is about, and the object's name there, if it is known.
fn database_of<'a>(
    subject: &Subject,
    places: &'a Places,
    names: &mut dyn FnMut(&Attached) -> CatalogVersion,
) -> (&'a Attached, Option<WrittenName>) {
    let current = places.current();
    let parts = subject.parts.as_slice();
    let found = match (subject.what, parts) {
        (What::Database, [name]) => return (places.database(name).unwrap_or(current), None),
        // A table comes before a database of its name.
        (What::TableOrDatabase, [name]) => {
            return match places.find(parts, names) {
                Some(place) => (places.database(&place.database).unwrap_or(current), None),
                None => (places.database(name).unwrap_or(current), None),
            };
        }
        (What::Schema, [database, _]) => return (places.database(database).unwrap_or(current), None),
        // What is new and has no schema goes to the current database.
        (What::Schema | What::Database | What::New, [] | [_]) => None,
        _ => places.find(parts, names),
    };
    match found {
        Some(place) => {
            let database = places.database(&place.database).unwrap_or(current);
            (database, Some(WrittenName { name: place.own_name(), has_schema: true }))
        }
        None => (current, Some(WrittenName { name: parts.join("."), has_schema: parts.len() > 1 })),
    }
}
