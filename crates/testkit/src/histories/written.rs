//! All writes, with their writers and whether they count: a write counts if its statement succeeded and was
//! not rolled back, and its transaction was committed.

use super::anomaly::Anomaly;
use super::history::{Effect, Fingerprint, History, Row, Span, Step, Transaction, TransactionId, list_hash};
use std::collections::HashMap;
use std::fmt::Write as _;

/// See the module.
pub(crate) struct Written<'a> {
    pub(crate) history: &'a History,
    pub(crate) rows: &'a HashMap<Fingerprint, Row>,
    /// The writer of each version: a transaction and one of its steps.
    by: HashMap<Fingerprint, (TransactionId, usize)>,
    by_list: HashMap<u64, Fingerprint>,
    /// The owners of numbers, by the first: the end of the range, a transaction and one of its steps.
    numbers: Vec<(u64, u64, TransactionId, usize)>,
    /// Whether writes count, by transaction and step.
    counts: Vec<Vec<bool>>,
}

impl<'a> Written<'a> {
    pub(crate) fn new(history: &'a History) -> Written<'a> {
        let rows = &history.rows;
        let (mut by, mut by_list, mut numbers) = (HashMap::new(), HashMap::new(), Vec::new());
        for (id, transaction) in history.transactions.iter().enumerate() {
            for (number, step) in transaction.steps.iter().enumerate() {
                let Step::Statement(statement) = step else { continue };
                if !statement.numbers.is_empty() {
                    numbers.push((statement.numbers.start, statement.numbers.end, id, number));
                }
                for effect in &statement.effects {
                    if let Effect::Put { version, .. } | Effect::Held { version, .. } = *effect {
                        by.insert(version, (id, number));
                        by_list.insert(list_hash(&rows[&version].list), version);
                    }
                }
            }
        }
        numbers.sort_unstable();
        let counts = history.transactions.iter().map(counting_steps).collect();
        Written { history, rows, by, by_list, numbers, counts }
    }

    /// The version on which a version is based, if it was written by a known transaction.
    pub(crate) fn before(&self, row: &Row) -> Option<Fingerprint> {
        self.by_list.get(&list_hash(&row.list[..row.list.len() - 1])).copied()
    }

    /// True if the writes of a step of a transaction count.
    pub(crate) fn counts(&self, (transaction, step): (TransactionId, usize)) -> bool {
        self.counts[transaction][step]
    }

    /// The writer of a version.
    pub(crate) fn writer(&self, version: Fingerprint) -> Option<(TransactionId, usize)> {
        self.by.get(&version).copied()
    }

    /// The step that drew a number.
    pub(crate) fn drawer(&self, number: u64) -> Option<(TransactionId, usize)> {
        let behind = self.numbers.partition_point(|(start, ..)| *start <= number);
        let (_, end, transaction, step) = *self.numbers.get(behind.checked_sub(1)?)?;
        (number < end).then_some((transaction, step))
    }

    /// The anomaly of a version that is not the last one of any transaction.
    pub(crate) fn judge(&self, version: Fingerprint) -> Anomaly {
        match self.writer(version) {
            Some(writer) if self.counts(writer) => Anomaly::IntermediateRead,
            Some(_) => Anomaly::AbortedRead,
            None => {
                let list = &self.rows[&version].list;
                if self.by_list.contains_key(&list_hash(list)) {
                    Anomaly::TornRow
                } else {
                    self.judge_list(list)
                }
            }
        }
    }

    /// The anomaly of a list that nobody wrote.
    pub(crate) fn judge_list(&self, list: &[u64]) -> Anomaly {
        let mut drawers = list.iter().filter_map(|number| self.drawer(*number));
        if drawers.any(|drawer| !self.counts(drawer)) { Anomaly::AbortedRead } else { Anomaly::UnwrittenRow }
    }

    /// A version, for reports.
    pub(crate) fn show(&self, version: Fingerprint) -> String {
        show(&self.rows[&version])
    }

    /// A transaction, for reports.
    pub(crate) fn account(&self, transaction: &Transaction) -> String {
        if transaction.begin == Span::default() {
            return "    (what there was when the window began)\n".into();
        }
        let mut text = format!(
            "    session {}, began in ticks {}–{}, {} in {}–{}\n",
            transaction.session,
            transaction.begin.start,
            transaction.begin.end,
            if transaction.committed { "committed" } else { "ended without a commit" },
            transaction.commit.start,
            transaction.commit.end
        );
        for (number, step) in transaction.steps.iter().enumerate() {
            let what = match step {
                Step::Statement(statement) if statement.failed => format!("{} -- failed", statement.sql),
                Step::Statement(statement) => statement.sql.clone(),
                Step::Savepoint => "SAVEPOINT".into(),
                Step::RollBackTo => "ROLLBACK TO".into(),
                Step::Release => "RELEASE".into(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    step {number}: {what}");
        }
        text
    }
}

/// A row, for reports.
pub(crate) fn show(row: &Row) -> String {
    let list: Vec<String> = row.list.iter().map(u64::to_string).collect();
    let mut text = format!("row {} [{}] (key {}, group {}", row.root(), list.join(" "), row.key, row.group);
    for (name, value) in [("unique", row.unique), ("refers to", row.refers)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {value}");
        }
    }
    text + ")"
}

/// For each step, whether its writes count.
fn counting_steps(transaction: &Transaction) -> Vec<bool> {
    let mut counts = vec![false; transaction.steps.len()];
    let mut savepoints = Vec::new();
    for (number, step) in transaction.steps.iter().enumerate() {
        match step {
            Step::Statement(statement) => counts[number] = transaction.committed && !statement.failed,
            Step::Savepoint => savepoints.push(number),
            Step::RollBackTo => counts[*savepoints.last().expect("it was set")..number].fill(false),
            Step::Release => drop(savepoints.pop()),
        }
    }
    counts
}
