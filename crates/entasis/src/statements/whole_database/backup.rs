//! `BACKUP TO 'file'`: a copy of the committed state, as a database in another file, while others go on.

use crate::session::Session;
use crate::state::Watch;
use crate::values::rows::Rows;
use entasis_vector::{Error, Result, Value};
use std::path::Path;

/// Writes a backup.
pub(super) fn backup(session: &Session, path: &Path, options: &[(String, Value)]) -> Result<Rows> {
    let mut replaces = false;
    for (name, value) in options {
        match (name.as_str(), value) {
            ("overwrite", Value::Boolean(value)) => replaces = *value,
            ("overwrite", _) => return Err(Error::input("option overwrite of BACKUP takes true or false")),
            _ => {
                let error = Error::input(format!("BACKUP has no option '{name}'"));
                return Err(error.with_hint("the option is overwrite: BACKUP TO 'file' (OVERWRITE)"));
            }
        }
    }
    if path.file_name().is_none() {
        return Err(Error::input(format!("'{}' is not the path of a file", path.display())));
    }
    let watch = Watch { cancel: session.cancel.clone(), progress: session.progress() };
    session.shared.backup(path, replaces, watch)?;
    Ok(Rows::empty())
}
