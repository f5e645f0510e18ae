//! Stamps: numbers that statements overwrite without reading, so that no list orders them.
//!
//! The clock limits which stamps can be read: a stamp that is returned was committed, not after the snapshot,
//! and no other stamp was written entirely after it and entirely before the snapshot.

use super::anomaly::{Anomaly, Violation};
use super::history::{Effect, Span, TableId, TransactionId};
use super::written::Written;
use std::collections::HashMap;

/// Checks all stamps that were returned. Returns their number.
///
/// # Errors
/// Stamps of transactions that did not commit, that were later, or that had been overwritten.
pub(crate) fn judge(written: &Written<'_>) -> Result<u64, Violation> {
    let transactions = &written.history.transactions;
    let mut stamps: HashMap<(TableId, i64), Vec<(u64, TransactionId)>> = HashMap::new();
    let mut writers: HashMap<u64, (TransactionId, usize)> = HashMap::new();
    for (id, transaction) in transactions.iter().enumerate() {
        for (step, statement) in transaction.statements() {
            for effect in &statement.effects {
                let Effect::Stamp { table, key, stamp } = *effect else { continue };
                writers.insert(stamp, (id, step));
                if written.counts((id, step)) {
                    stamps.entry((table, key)).or_default().push((stamp, id));
                }
            }
        }
    }
    let mut seen = 0;
    for (id, transaction) in transactions.iter().enumerate() {
        for (step, statement) in transaction.statements() {
            for effect in &statement.effects {
                let Effect::Stamped { table, key, stamp } = *effect else { continue };
                seen += 1;
                // Stamps from before the window have no writer.
                let writer = writers.get(&stamp).copied();
                if writer.is_some_and(|(writer, _)| writer == id) {
                    continue;
                }
                let wrong = |anomaly, what: &str| {
                    let name = &written.history.tables[table].name;
                    let account = written.account(transaction);
                    let text = format!(
                        "step {step} shows the stamp {stamp} of key {key} of {name}, {what}\n{account}"
                    );
                    Err(Violation::new(anomaly, text))
                };
                if writer.is_some_and(|writer| !written.counts(writer)) {
                    return wrong(Anomaly::AbortedRead, "which was not committed");
                }
                let since = writer.map_or(Span::default(), |(writer, _)| transactions[writer].commit);
                if since.start > transaction.begin.end {
                    return wrong(Anomaly::RealTime, "which was written later");
                }
                let between = |span: Span| since.end < span.start && span.end < transaction.begin.start;
                let others = stamps.get(&(table, key)).map_or(&[][..], Vec::as_slice);
                if let Some((other, _)) =
                    others.iter().find(|(_, other)| between(transactions[*other].commit))
                {
                    return wrong(Anomaly::StaleRead, &format!("over which stamp {other} had been written"));
                }
            }
        }
    }
    Ok(seen)
}
