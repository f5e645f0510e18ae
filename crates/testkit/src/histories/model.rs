//! The slow twin of the tables: maps from roots to rows, to which the committed transactions are applied in
//! order.

use super::anomaly::{Anomaly, Violation};
use super::chains::Chains;
use super::history::{Row, TransactionId};
use super::written::{Written, show};
use std::collections::BTreeMap;

/// Compares the final contents of the tables with those of the model after `commits`.
///
/// # Errors
/// Wrong contents.
pub(crate) fn compare(
    commits: &[TransactionId],
    chains: &Chains,
    written: &Written<'_>,
) -> Result<u64, Violation> {
    let history = written.history;
    let mut writes: Vec<Vec<(usize, usize)>> = vec![Vec::new(); history.transactions.len()];
    for (number, chain) in chains.all.iter().enumerate() {
        for (place, state) in chain.states.iter().enumerate() {
            if let Some(writer) = state.writer {
                writes[writer].push((number, place));
            }
        }
    }
    let mut model: Vec<BTreeMap<u64, &Row>> = vec![BTreeMap::new(); history.tables.len()];
    for &(number, place) in commits.iter().flat_map(|id| &writes[*id]) {
        let chain = &chains.all[number];
        let rows = &mut model[chain.table];
        let before = chain.states[place - 1].version.map(|version| &written.rows[&version]);
        if rows.get(&chain.root).copied() != before {
            return Err(Violation::new(
                Anomaly::WrongContents,
                "the model does not hold what a commit wrote upon",
            ));
        }
        match chain.states[place].version {
            Some(version) => rows.insert(chain.root, &written.rows[&version]),
            None => rows.remove(&chain.root),
        };
    }
    let mut compared = 0;
    for ((rules, model), contents) in history.tables.iter().zip(&model).zip(&history.contents) {
        let found: BTreeMap<u64, &Row> = contents.iter().map(|row| (row.root(), row)).collect();
        let roots = model.keys().chain(found.keys());
        for root in roots {
            compared += 1;
            let (expected, found) = (model.get(root), found.get(root));
            if expected != found {
                let text = |row: Option<&&Row>| row.map_or("nothing".to_owned(), |row| show(row));
                let (expected, found) = (text(expected), text(found));
                let text = format!("table {} holds {found}, the model {expected}", rules.name);
                return Err(Violation::new(Anomaly::WrongContents, text));
            }
        }
    }
    Ok(compared)
}
