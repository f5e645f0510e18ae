//! Statements by themselves that write to another database than their connection's: they run in a session
//! that stands in for the connection's there ([`Session::elsewhere`]), and read all that is not in it from
//! outside.

use crate::catalog::Names;
use crate::rows::Rows;
use crate::session::Session;
use crate::work::Work;
use crate::{define, statement};
use entasis_sql::{Parsed, Statement};
use entasis_storage::TableEntry;
use entasis_vector::statement::within;
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::sync::Arc;

/// How often a statement is run again that is in conflict with others.
const TRIES: usize = 10;

/// Runs a statement; once more if another one was first.
pub(crate) fn run(session: &Session, parsed: &Parsed, parameters: &[(Value, DataType)]) -> Result<Rows> {
    session.waiting(Some(parsed.sql()), |waiter| {
        let mut others: Vec<Arc<TableEntry>> = Vec::new();
        let mut tries = 0..TRIES;
        loop {
            let mut work = Work::statement(session, &[], &others, waiter)?;
            let context = Arc::new(session.context());
            let rows = within(context, || step(session, &mut work, parsed, parameters))?;
            let used = work.used();
            define::at_commit(session, &mut work)?;
            match work.commit(waiter) {
                Err(error) if error.kind() == ErrorKind::Conflict && tries.next().is_some() => {
                    others.extend(used)
                }
                result => return result.map(|()| rows),
            }
            waiter.look()?;
        }
    })
}

fn step(
    session: &Session,
    work: &mut Work,
    parsed: &Parsed,
    parameters: &[(Value, DataType)],
) -> Result<Rows> {
    let bound = loop {
        let bound = entasis_sql::bind(parsed, &Names::new(session, work), parameters);
        if work.sees_one_moment() {
            break bound?;
        }
    };
    match bound {
        Statement::Command(command) => Err(Error::internal(format!("{command:?} writes to no database"))),
        bound => {
            let rows = statement::run(session, work, bound)?;
            work.charge()?;
            Ok(rows)
        }
    }
}
