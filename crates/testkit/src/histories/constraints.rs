//! Checks keys and foreign keys in everything that a single statement returned and in the final contents.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, History, Predicate, Row, TableId};
use super::written::{Written, show};
use std::collections::{BTreeSet, HashMap};

/// Checks all reads of a history, and its contents.
///
/// # Errors
/// Unique violations and dangling references.
pub(crate) fn judge(written: &Written<'_>) -> Result<(), Violation> {
    let history = written.history;
    for transaction in &history.transactions {
        for (step, statement) in transaction.statements() {
            let mut whole: HashMap<TableId, Vec<&Row>> = HashMap::new();
            for effect in &statement.effects {
                let Effect::Read { table, predicate, shown } = effect else { continue };
                let rows: Vec<&Row> = shown.iter().map(|version| &history.rows[version]).collect();
                if *predicate != Predicate::Some {
                    unique(written, *table, &rows)
                        .map_err(|violation| within(violation, step, &written.account(transaction)))?;
                }
                if *predicate == Predicate::All {
                    whole.insert(*table, rows);
                }
            }
            references(history, &whole)
                .map_err(|violation| within(violation, step, &written.account(transaction)))?;
        }
    }
    let whole: HashMap<TableId, Vec<&Row>> =
        history.contents.iter().map(|rows| rows.iter().collect()).enumerate().collect();
    for (table, rows) in &whole {
        unique(written, *table, rows)
            .map_err(|violation| within(violation, 0, "    (what is left in the end)"))?;
    }
    references(history, &whole).map_err(|violation| within(violation, 0, "    (what is left in the end)"))
}

fn within(violation: Violation, step: usize, account: &str) -> Violation {
    Violation { account: format!("{}\nin step {step} of\n{account}", violation.account), ..violation }
}

fn unique(written: &Written<'_>, table: TableId, rows: &[&Row]) -> Result<(), Violation> {
    let rules = &written.history.tables[table];
    let (mut keys, mut numbers) = (HashMap::new(), HashMap::new());
    for row in rows {
        let same = rules.has_unique_key.then(|| keys.insert(row.key, row)).flatten();
        let number = row.unique.filter(|_| rules.has_unique);
        let same = same.or_else(|| number.and_then(|number| numbers.insert(number, row)));
        if let Some(other) = same {
            let text = format!(
                "table {} has {}, written by\n{}and {}, written by\n{}",
                rules.name,
                show(other),
                writer(written, table, other),
                show(row),
                writer(written, table, row)
            );
            return Err(Violation::new(Anomaly::UniqueViolation, text));
        }
    }
    Ok(())
}

/// The writer of a version, for reports.
fn writer(written: &Written<'_>, table: TableId, row: &Row) -> String {
    let writer = written.writer(row.fingerprint(table));
    writer.map_or(String::new(), |(writer, _)| written.account(&written.history.transactions[writer]))
}

fn references(history: &History, whole: &HashMap<TableId, Vec<&Row>>) -> Result<(), Violation> {
    for (table, rows) in whole {
        let rules = &history.tables[*table];
        let Some(parents) = rules.refers_to.and_then(|parent| whole.get(&parent)) else { continue };
        let keys: BTreeSet<i64> = parents.iter().map(|row| row.key).collect();
        if let Some(row) = rows.iter().find(|row| row.refers.is_some_and(|key| !keys.contains(&key))) {
            let text = format!("table {} has {}, which refers to nothing", rules.name, show(row));
            return Err(Violation::new(Anomaly::DanglingReference, text));
        }
    }
    Ok(())
}
