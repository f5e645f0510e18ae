//! Foreign keys of a changed table: its rows that refer to others.
//!
//! New references, and keys that are gone, are checked at the end of the statement, after the actions of
//! foreign keys ([`super::actions`]), and claimed for the commit ([`Claims`](crate::constraints::claims)).

use crate::constraints::claims::{Claim, Side, judge_unreferred, without_nulls};
use crate::constraints::values::Values;
use crate::work::Work;
use entasis_storage::definition::ForeignKey;
use entasis_storage::{AppendedRows, TableEntry};
use entasis_vector::error::sqlstate::FOREIGN_KEY;
use entasis_vector::{DataType, Error, ErrorKind, Result};
use std::sync::Arc;

/// The columns that foreign keys ask of a table: of each of its own the columns, then of each that refers to
/// it the columns that are referred to.
pub(crate) fn columns(work: &Work, entry: &TableEntry) -> impl Iterator<Item = Vec<usize>> {
    let own = entry.definition.foreign_keys.iter().map(|key| key.columns.clone());
    let referring = referring(work, entry).into_iter().map(|(_, key)| key.references);
    own.chain(referring).collect::<Vec<_>>().into_iter()
}

/// The foreign keys that refer to a table, with the tables that they are of.
pub(crate) fn referring(work: &Work, entry: &TableEntry) -> Vec<(Arc<TableEntry>, ForeignKey)> {
    let mut found = Vec::new();
    let name = entry.name.to_lowercase();
    for other in work.names.tables() {
        let keys = other.definition.foreign_keys.iter().filter(|key| key.table == name);
        found.extend(keys.map(|key| (other.clone(), key.clone())));
    }
    found
}

/// True if foreign keys refer to a table.
pub(crate) fn is_referred_to(work: &Work, entry: &TableEntry) -> bool {
    !referring(work, entry).is_empty()
}

/// Judges a claim now; and when the transaction commits, if the other table has changed by then.
pub(crate) fn claim(work: &mut Work, claim: Claim) -> Result<()> {
    claim.judge(&mut |table| work.snapshot(table))?;
    rely(work, claim);
    Ok(())
}

/// Has a claim judged that is known to hold now when the transaction commits, if the other table has changed
/// by then.
pub(crate) fn rely(work: &mut Work, claim: Claim) {
    work.claim(&claim.other().clone(), |claims| claims.push(claim));
}

/// Judges that no row refers to keys that are gone, whether others have come with these or not.
///
/// # Errors
/// Constraint.
pub(crate) fn restrict(
    work: &mut Work,
    parent: &TableEntry,
    child: &TableEntry,
    key: &ForeignKey,
    keys: &[Values],
) -> Result<()> {
    judge_unreferred(&mut |table| work.snapshot(table), parent, child, key, keys)
}

/// Judges rows that were added in bulk.
pub(crate) fn judge_added(work: &mut Work, entry: &Arc<TableEntry>, added: &[AppendedRows]) -> Result<()> {
    for key in &entry.definition.foreign_keys {
        let types: Vec<DataType> =
            key.columns.iter().map(|&column| entry.table.schema()[column].ty).collect();
        let mut came: Vec<Values> = Vec::new();
        for rows in added {
            rows.each_row(&key.columns, |datums| {
                came.push(datums.iter().zip(&types).map(|(datum, ty)| datum.value(*ty)).collect());
            });
        }
        if let Some(came) = came_to_refer(work, entry, key, came)? {
            claim(work, came)?;
        }
    }
    Ok(())
}

/// The claim that rows of `child` find what they have come to refer to; `None`, if that is nothing.
pub(crate) fn came_to_refer(
    work: &Work,
    child: &Arc<TableEntry>,
    key: &ForeignKey,
    came: Vec<Values>,
) -> Result<Option<Claim>> {
    let keys = without_nulls(came);
    if keys.is_empty() {
        return Ok(None);
    }
    let parent = work.names.table(&key.table).cloned();
    let parent = parent.ok_or_else(|| Error::internal(format!("table {} is gone", key.table)))?;
    Ok(Some(Claim::Held { parent, child: child.clone(), key: key.clone(), keys, side: Side::Came }))
}

/// Adds the tables that refer to some, and so on.
pub(crate) fn add_referring(work: &Work, entries: &mut Vec<Arc<TableEntry>>) {
    let mut next = 0;
    while let Some(entry) = entries.get(next).cloned() {
        for (child, _) in referring(work, &entry) {
            if !entries.iter().any(|entry| Arc::ptr_eq(entry, &child)) {
                entries.push(child);
            }
        }
        next += 1;
    }
}

/// Refuses to remove all rows of a table that rows of another refer to, which is not among `all`.
pub(crate) fn refuse_truncate(work: &mut Work, entry: &TableEntry, all: &[Arc<TableEntry>]) -> Result<()> {
    for (child, key) in referring(work, entry) {
        if !all.iter().any(|entry| Arc::ptr_eq(entry, &child)) && work.snapshot(&child.table).rows() > 0 {
            let text =
                format!("foreign key {}: table {} refers to table {}", key.name, child.name, entry.name);
            let error = Error::new(ErrorKind::Constraint, text).with_sqlstate(FOREIGN_KEY);
            let hint = format!(
                "truncate both: TRUNCATE {}, {}; or all that refer to it: CASCADE",
                entry.name, child.name
            );
            return Err(error.with_hint(hint));
        }
    }
    Ok(())
}

/// Claims of a table that has no rows any more that nothing refers to it.
pub(crate) fn claim_truncated(work: &mut Work, entry: &Arc<TableEntry>) -> Result<()> {
    for (child, key) in referring(work, entry) {
        claim(work, Claim::Whole { parent: entry.clone(), child, key })?;
    }
    Ok(())
}
