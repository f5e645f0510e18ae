//! The session's time zone in all plans of a bound statement ([`entasis_binder::zone`]).

use super::bound::{Alteration, Statement};
use entasis_binder::zone::apply_to_plan;
use entasis_engine::plan::Plan;
use entasis_functions::TimeZone;

/// Applies `zone` to all plans of a statement.
pub(crate) fn apply(statement: &mut Statement, zone: TimeZone) {
    for plan in plans(statement) {
        apply_to_plan(plan, zone);
    }
}

/// All plans of a statement.
pub(super) fn plans(statement: &mut Statement) -> Vec<&mut Plan> {
    match statement {
        Statement::Query(plan)
        | Statement::CreateTableAs { plan, .. }
        | Statement::Summarize { plan }
        | Statement::CopyTo { plan, .. } => vec![plan],
        Statement::Insert(insert) => vec![&mut insert.plan],
        Statement::Change(change) => vec![&mut change.plan],
        Statement::Explain { statement, .. } => plans(statement),
        Statement::AlterTable { alteration: Alteration::Columns(columns), .. } => {
            let violations = columns.violations.iter_mut().map(|(_, plan)| plan);
            columns.rows.iter_mut().chain(violations).collect()
        }
        _ => Vec::new(),
    }
}
