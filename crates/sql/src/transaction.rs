//! `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints.
//!
//! Transactions see one snapshot of the database (snapshot isolation). A statement that asks for less gets that; one that
//! asks for more is refused.

use crate::Statement;
use datafusion_sql::sqlparser::ast::{self, Ident, TransactionAccessMode, TransactionIsolationLevel, TransactionMode};
use entasis_vector::{Error, Result};

/// The statement, if it is one about transactions.
pub(crate) fn statement(statement: &ast::Statement) -> Option<Result<Statement>> {
    use ast::Statement as Sql;
    Some(match statement {
        Sql::StartTransaction { modes, statements, exception, .. } => {
            if statements.is_empty() && exception.is_none() {
                begin(modes)
            } else {
                Err(Error::not_supported("BEGIN … END blocks"))
            }
        }
        Sql::Commit { chain: true, .. } | Sql::Rollback { chain: true, .. } => Err(Error::not_supported("AND CHAIN")),
        Sql::Commit { .. } => Ok(Statement::Commit),
        Sql::Rollback { savepoint: None, .. } => Ok(Statement::Rollback),
        Sql::Rollback { savepoint: Some(savepoint), .. } => Ok(Statement::RollbackTo { name: name(savepoint) }),
        Sql::Savepoint { name: savepoint } => Ok(Statement::Savepoint { name: name(savepoint) }),
        Sql::ReleaseSavepoint { name: savepoint } => Ok(Statement::Release { name: name(savepoint) }),
        _ => return None,
    })
}

fn begin(modes: &[TransactionMode]) -> Result<Statement> {
    for mode in modes {
        match mode {
            TransactionMode::IsolationLevel(TransactionIsolationLevel::Serializable) => {
                return Err(Error::not_supported("the isolation level SERIALIZABLE")
                    .with_hint("REPEATABLE READ is there: every transaction sees one snapshot"));
            }
            TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => {
                return Err(Error::not_supported("READ ONLY transactions"));
            }
            TransactionMode::IsolationLevel(_) | TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {}
        }
    }
    Ok(Statement::Begin)
}

fn name(savepoint: &Ident) -> String {
    savepoint.value.to_lowercase()
}
