//! Bulk statements report to how many rows they appended, but not to which. This is found from lists that
//! were read later, or whose rows were deleted later: each prefix that ends with the statement's number is a
//! version that it wrote. Columns other than the list are those of the previous version.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, Fingerprint, History, Row, Step, TableId, TransactionId, list_hash};
use std::collections::{HashMap, HashSet};

/// Replaces each [`Effect::Append`] by the versions that were written.
///
/// # Errors
/// A wrong count, if a statement by itself changed more or fewer rows than it reported.
pub(crate) fn unfold(history: &mut History) -> Result<(), Violation> {
    let mut appends: HashMap<u64, (TransactionId, usize, TableId)> = HashMap::new();
    let mut by_list: HashMap<u64, Fingerprint> = HashMap::new();
    for (id, transaction) in history.transactions.iter().enumerate() {
        for (number, statement) in transaction.statements() {
            for effect in &statement.effects {
                match *effect {
                    Effect::Append { table, .. } => {
                        appends.insert(statement.numbers.start, (id, number, table));
                    }
                    Effect::Put { version, .. } | Effect::Held { version, .. } => {
                        by_list.insert(list_hash(&history.rows[&version].list), version);
                    }
                    _ => {}
                }
            }
        }
    }
    if appends.is_empty() {
        return Ok(());
    }
    let mut prefixes: HashSet<&[u64]> = HashSet::new();
    for row in history.rows.values() {
        for end in 1..row.list.len() {
            if appends.contains_key(&row.list[end]) {
                prefixes.insert(&row.list[..=end]);
            }
        }
    }
    let mut prefixes: Vec<Vec<u64>> = prefixes.into_iter().map(<[u64]>::to_vec).collect();
    prefixes.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    let mut found: HashMap<(TransactionId, usize), Vec<Effect>> = HashMap::new();
    for list in prefixes {
        let (before, number) = (&list[..list.len() - 1], list[list.len() - 1]);
        let (id, step, table) = appends[&number];
        // The previous version was written by nobody: this is reported for the read that returned it.
        let Some(&before) = by_list.get(&list_hash(before)) else { continue };
        let hash = list_hash(&list);
        let row = Row { list, ..history.rows[&before].clone() };
        let version = history.note(table, row);
        by_list.insert(hash, version);
        found.entry((id, step)).or_default().push(Effect::Put { table, version });
    }
    for (id, step, table) in appends.into_values() {
        let puts = found.remove(&(id, step)).unwrap_or_default();
        let transaction = &mut history.transactions[id];
        let is_alone = transaction.committed && transaction.steps.len() == 1;
        let Step::Statement(statement) = &mut transaction.steps[step] else { continue };
        let said = statement.effects.iter().find_map(|effect| match effect {
            Effect::Append { rows, .. } => Some(*rows),
            _ => None,
        });
        if is_alone && said != Some(puts.len() as u64) {
            let (name, said) = (&history.tables[table].name, said.unwrap_or(0));
            let account = format!(
                "{}\nsays that it changed {said} rows of {name}; {} rows bear its number {}",
                statement.sql,
                puts.len(),
                statement.numbers.start
            );
            return Err(Violation::new(Anomaly::WrongCount, account));
        }
        statement.effects.retain(|effect| !matches!(effect, Effect::Append { .. }));
        statement.effects.extend(puts);
    }
    Ok(())
}
