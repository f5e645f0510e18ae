//! `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints.
//!
//! Transactions see one snapshot of the database (snapshot isolation). A request for a lower isolation level
//! gets that; one for a higher level is refused.

use super::bound::Statement;
use entasis_syntax::clauses::refuse;
use entasis_syntax::parsed::{Ast, Parsed};
use entasis_vector::{Error, Result};
use sqlparser::ast::{self, Ident, TransactionAccessMode, TransactionIsolationLevel, TransactionMode};

/// The statement, if it is one that controls transactions, which need no catalog; `None` for every other one,
/// and for forms that are not supported.
pub fn transaction_control(parsed: &Parsed) -> Option<Statement> {
    let Ast::Sql(sql) = &parsed.ast else { return None };
    statement(sql)?.ok()
}

/// The statement, if it is one that controls transactions.
pub(crate) fn statement(statement: &ast::Statement) -> Option<Result<Statement>> {
    use ast::Statement as Sql;
    Some(match statement {
        Sql::StartTransaction {
            modes,
            begin: _,
            transaction: _,
            modifier,
            statements,
            exception,
            has_end_keyword,
        } => refuse([
            (!statements.is_empty() || exception.is_some() || *has_end_keyword, "BEGIN … END blocks"),
            (modifier.is_some(), "BEGIN DEFERRED, IMMEDIATE and EXCLUSIVE"),
        ])
        .and_then(|()| begin(modes)),
        Sql::Commit { chain, end: _, modifier } => {
            refuse([(*chain, "AND CHAIN"), (modifier.is_some(), "END TRY")]).map(|()| Statement::Commit)
        }
        Sql::Rollback { chain, savepoint } => refuse([(*chain, "AND CHAIN")]).map(|()| match savepoint {
            None => Statement::Rollback,
            Some(savepoint) => Statement::RollbackTo { name: name(savepoint) },
        }),
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
                    .with_hint("use REPEATABLE READ: every transaction sees one snapshot"));
            }
            TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => {
                return Err(Error::not_supported("READ ONLY transactions"));
            }
            TransactionMode::IsolationLevel(_)
            | TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {}
        }
    }
    Ok(Statement::Begin)
}

fn name(savepoint: &Ident) -> String {
    savepoint.value.to_ascii_lowercase()
}
