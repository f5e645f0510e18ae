//! One transaction from its first step to its last: what it saw of others, its final writes, and whether it
//! saw its own writes.
//!
//! Reads of rows that the transaction has written must return exactly these writes; all others are
//! observations of its snapshot.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, Fingerprint, Predicate, Statement, Step, TableId, Transaction};
use super::written::Written;
use std::collections::BTreeMap;

/// What a transaction observed in a table of its snapshot.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) table: TableId,
    pub(crate) predicate: Predicate,
    /// Versions written by others.
    pub(crate) shown: Vec<Fingerprint>,
    /// Roots of rows about which it shows nothing, in order: the transaction has changed them.
    pub(crate) own: Vec<u64>,
    /// Number of the step.
    pub(crate) step: usize,
}

/// The write of a transaction to a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) table: TableId,
    /// The version that it changed; `None` if the row is new.
    pub(crate) before: Option<Fingerprint>,
    /// The resulting version; `None` if the row was deleted.
    pub(crate) after: Option<Fingerprint>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) observations: Vec<Observation>,
    /// Writes by root.
    pub(crate) writes: BTreeMap<u64, Write>,
    /// Keys of rows that it deleted without returning their versions.
    pub(crate) deleted_keys: Vec<(TableId, i64)>,
}

/// Walks through a transaction.
///
/// # Errors
/// If it does not see its own writes, or a write is based on a version that nobody wrote.
pub(crate) fn walk(transaction: &Transaction, written: &Written<'_>) -> Result<Walk, Violation> {
    let mut walk = Walk::default();
    let mut savepoints: Vec<(BTreeMap<u64, Write>, usize)> = Vec::new();
    for (number, step) in transaction.steps.iter().enumerate() {
        match step {
            Step::Statement(statement) if statement.failed => {}
            Step::Statement(statement) => {
                walk.statement(number, statement, written).map_err(|(anomaly, what)| {
                    Violation::new(
                        anomaly,
                        format!("{what}\nin step {number} of\n{}", written.account(transaction)),
                    )
                })?;
            }
            Step::Savepoint => savepoints.push((walk.writes.clone(), walk.deleted_keys.len())),
            Step::RollBackTo => {
                let (writes, deleted) = savepoints.last().expect("it was set");
                walk.writes = writes.clone();
                walk.deleted_keys.truncate(*deleted);
            }
            Step::Release => drop(savepoints.pop()),
        }
    }
    walk.writes.retain(|_, write| write.before.is_some() || write.after.is_some());
    Ok(walk)
}

impl Walk {
    fn statement(
        &mut self,
        step: usize,
        statement: &Statement,
        written: &Written<'_>,
    ) -> Result<(), (Anomaly, String)> {
        // What it searched for is as of before its changes.
        let before: Vec<u64> = self.writes.keys().copied().collect();
        for effect in &statement.effects {
            match effect {
                Effect::Read { table, predicate, shown } => {
                    let own = self.own_rows(*table, *predicate, shown, written)?;
                    let is_other = |version: &&Fingerprint| !own.contains(&written.rows[*version].root());
                    let shown = shown.iter().filter(is_other).copied().collect();
                    let (table, predicate) = (*table, *predicate);
                    self.observations.push(Observation { table, predicate, shown, own, step });
                }
                Effect::Put { table, version } => self.put(step, *table, *version, written)?,
                Effect::Held { table, version } => self.insert(*table, *version, written),
                Effect::Delete { table, version } => {
                    self.change(step, *table, *version, None, written)?;
                }
                Effect::DeleteKey { table, key } => self.deleted_keys.push((*table, *key)),
                Effect::Sought { .. }
                | Effect::Append { .. }
                | Effect::Stamp { .. }
                | Effect::Stamped { .. } => {}
            }
        }
        for effect in &statement.effects {
            let Effect::Sought { table, predicate } = *effect else { continue };
            let missed = before
                .iter()
                .filter_map(|root| self.writes[root].after.filter(|_| self.writes[root].table == table));
            let mut missed = missed.filter(|version| predicate.demands(&written.rows[version]));
            if let Some(version) = missed.find(|version| !statement_touches(statement, *version, written)) {
                return Err((Anomaly::OwnWrites, format!("{} is not found", written.show(version))));
            }
            // It changed what it found: those rows are now its own.
            let own = self.writes.keys().copied().collect();
            self.observations.push(Observation { table, predicate, shown: Vec::new(), own, step });
        }
        Ok(())
    }

    /// The rows of a table that the transaction has changed, after comparing them with what was returned.
    fn own_rows(
        &self,
        table: TableId,
        predicate: Predicate,
        shown: &[Fingerprint],
        written: &Written<'_>,
    ) -> Result<Vec<u64>, (Anomaly, String)> {
        for &version in shown {
            if let Some(write) = self.writes.get(&written.rows[&version].root())
                && write.after != Some(version)
            {
                let own = write.after.map_or("nothing".to_owned(), |own| written.show(own));
                let text = format!("{} is shown, the transaction itself left {own}", written.show(version));
                return Err((Anomaly::OwnWrites, text));
            }
        }
        let own = self.writes.iter().filter(|(_, write)| write.table == table);
        for (_, write) in own.clone() {
            if let Some(version) = write.after
                && predicate.demands(&written.rows[&version])
                && !shown.contains(&version)
            {
                return Err((Anomaly::OwnWrites, format!("{} is not shown", written.show(version))));
            }
        }
        Ok(own.map(|(root, _)| *root).collect())
    }

    fn insert(&mut self, table: TableId, version: Fingerprint, written: &Written<'_>) {
        self.writes
            .insert(written.rows[&version].root(), Write { table, before: None, after: Some(version) });
    }

    fn put(
        &mut self,
        step: usize,
        table: TableId,
        version: Fingerprint,
        written: &Written<'_>,
    ) -> Result<(), (Anomaly, String)> {
        let row = &written.rows[&version];
        if row.list.len() == 1 {
            self.insert(table, version, written);
            return Ok(());
        }
        match written.before(row) {
            Some(before) => self.change(step, table, before, Some(version), written),
            None => Err((
                written.judge_list(&row.list[..row.list.len() - 1]),
                format!("{} was written, upon a version that nobody wrote", written.show(version)),
            )),
        }
    }

    /// Records a write based on a version.
    fn change(
        &mut self,
        step: usize,
        table: TableId,
        before: Fingerprint,
        after: Option<Fingerprint>,
        written: &Written<'_>,
    ) -> Result<(), (Anomaly, String)> {
        let root = written.rows[&before].root();
        match self.writes.get_mut(&root) {
            Some(write) if write.after == Some(before) => write.after = after,
            Some(write) => {
                let own = write.after.map_or("nothing".to_owned(), |own| written.show(own));
                let text = format!("{} was changed, the transaction itself left {own}", written.show(before));
                return Err((Anomaly::OwnWrites, text));
            }
            None => {
                let (predicate, shown) = (Predicate::Some, vec![before]);
                self.observations.push(Observation { table, predicate, shown, own: Vec::new(), step });
                self.writes.insert(root, Write { table, before: Some(before), after });
            }
        }
        Ok(())
    }
}

/// True if a statement changed the row of a version.
fn statement_touches(statement: &Statement, version: Fingerprint, written: &Written<'_>) -> bool {
    let root = written.rows[&version].root();
    statement.effects.iter().any(|effect| match effect {
        Effect::Put { version, .. } | Effect::Delete { version, .. } => written.rows[version].root() == root,
        _ => false,
    })
}
