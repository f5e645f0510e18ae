//! Statements about a whole database: export to a directory of text and data files and import from it, backup
//! to another file, checks, compaction.
//!
//! ```text
//! export  import   EXPORT DATABASE, IMPORT DATABASE
//! integrity        PRAGMA integrity_check
//! backup  vacuum   BACKUP, VACUUM
//! attach           ATTACH, DETACH, SHOW DATABASES
//! script           the declarations, as the statements that create them
//! ```
//! They are independent of the connection's state: they see names as a new connection does
//! ([`Session::plain`]), and no temporary objects.

mod attach;
mod backup;
mod export;
mod import;
mod integrity;
mod script;
mod vacuum;

use self::attach::Wanted;
use crate::session::Session;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_sql::Command;
use entasis_storage::CatalogVersion;
use entasis_vector::{DataType, Result};

/// The statements that create the table or view of this name again, or everything that is not temporary.
/// `None` if there is no such table or view, or it is temporary.
pub(crate) fn declarations(names: &CatalogVersion, object: Option<&str>) -> Result<Option<String>> {
    match object {
        Some(object) => script::Script::of_object(names, object),
        None => {
            let all = script::Script::of(names)?;
            Ok(Some(all.schema + &all.later))
        }
    }
}

/// The columns of what a command returns; none, if it returns no rows.
pub(crate) fn columns(command: &Command<String>) -> &'static [(&'static str, DataType)] {
    match command {
        Command::CheckIntegrity { .. } => &integrity::COLUMNS,
        Command::ShowDatabases => &attach::COLUMNS,
        _ => &[],
    }
}

/// Runs a command.
pub(crate) fn run(
    session: &Session,
    transaction: &mut TransactionContext,
    command: Command<String>,
) -> Result<Rows> {
    match command {
        Command::Export { path, options } => export::export(session, transaction, path.as_ref(), &options),
        Command::Import { path } => import::import(session, transaction, path.as_ref()),
        Command::CheckIntegrity { table } => integrity::check(session, transaction, table.as_deref()),
        Command::Attach { path, name, if_not_exists, or_replace, options } => {
            let wanted = Wanted { name, if_not_exists, or_replace, options: &options };
            attach::attach(session, transaction, &path, wanted)
        }
        Command::Detach { name, if_exists } => attach::detach(session, transaction, &name, if_exists),
        Command::ShowDatabases => attach::show(session),
        Command::Backup { path, options } => backup::backup(&session.here(), path.as_ref(), &options),
        Command::Vacuum { table } => vacuum::vacuum(session, transaction, table.as_deref()),
    }
}
