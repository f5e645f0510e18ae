//! `DROP`: which objects are dropped. How each is dropped: [`super::remove`] and [`super::schemas`].

use super::index::drop_index;
use super::{remove, schemas};
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::ObjectKind;
use entasis_vector::{Error, Result};

/// Drops objects of one kind.
pub(super) fn objects(
    session: &Session,
    transaction: &mut TransactionContext,
    kind: ObjectKind,
    names: &[String],
    if_exists: bool,
    cascade: bool,
) -> Result<Rows> {
    let word = match kind {
        ObjectKind::Table => "table",
        ObjectKind::View => "view",
        ObjectKind::Sequence => "sequence",
        ObjectKind::Type => "type",
        ObjectKind::Schema => "schema",
        ObjectKind::Index => {
            for name in names {
                drop_index(session, transaction, name, if_exists, cascade)?;
            }
            return Ok(Rows::empty());
        }
    };
    let mut found = Vec::new();
    for name in names {
        match transaction.names.find(name, word)? {
            Some(entry) => found.push(entry.clone()),
            None if if_exists => {}
            None => {
                let name = name.trim_end_matches('.');
                return Err(Error::input(format!("there is no {word} \"{name}\"")));
            }
        }
    }
    if kind == ObjectKind::Schema {
        found.iter().try_for_each(|schema| schemas::drop(session, transaction, schema, cascade))?;
        return Ok(Rows::empty());
    }
    let together: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    for entry in found {
        remove::object(session, transaction, &entry, &together, cascade)?;
    }
    Ok(Rows::empty())
}
