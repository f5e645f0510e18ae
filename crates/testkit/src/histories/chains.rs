//! The versions of each row in the order of their commits.
//!
//! A list shows on which version another version is based, so what committed transactions did to a row is one
//! chain: absent, the version of the transaction that inserted it, that of the next writer, …, and absent
//! again once it is deleted. Two transactions that based their writes on the same version are a lost update.

use super::anomaly::{Anomaly, Violation};
use super::history::{Fingerprint, Row, TableId, TransactionId};
use super::walk::Walk;
use super::written::Written;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The state of a row from one commit to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// The transaction whose commit began it; `None` for the first state.
    pub(crate) writer: Option<TransactionId>,
    /// `None`: the row does not exist.
    pub(crate) version: Option<Fingerprint>,
}

/// The states of a row.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) table: TableId,
    pub(crate) root: u64,
    pub(crate) states: Vec<State>,
}

/// The chains of all rows that were ever committed.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    pub(crate) all: Vec<Chain>,
    /// The position of each version: a chain, and one of its states.
    places: HashMap<Fingerprint, (usize, usize)>,
    by_table: Vec<Vec<usize>>,
    /// Chains of rows that have, or had, a key.
    by_key: HashMap<(TableId, i64), Vec<usize>>,
}

impl Chains {
    /// The chains resulting from transactions.
    ///
    /// # Errors
    /// Lost updates, and versions based on uncommitted ones.
    pub(crate) fn new(walks: &[Walk], written: &Written<'_>) -> Result<Chains, Violation> {
        let tables = written.history.tables.len();
        let mut chains = Chains { by_table: vec![Vec::new(); tables], ..Chains::default() };
        let mut inserted: BTreeMap<u64, (TransactionId, TableId, Option<Fingerprint>)> = BTreeMap::new();
        let mut upon: HashMap<Fingerprint, (TransactionId, Option<Fingerprint>)> = HashMap::new();
        for (id, walk) in
            walks.iter().enumerate().filter(|(id, _)| written.history.transactions[*id].committed)
        {
            for (&root, write) in &walk.writes {
                match write.before {
                    None => drop(inserted.insert(root, (id, write.table, write.after))),
                    Some(before) => {
                        if let Some((other, _)) = upon.insert(before, (id, write.after)) {
                            return Err(lost_update(before, other, id, written));
                        }
                    }
                }
            }
        }
        for (root, (id, table, version)) in inserted {
            let mut states = vec![State { writer: None, version: None }, State { writer: Some(id), version }];
            while let Some((writer, version)) =
                states[states.len() - 1].version.and_then(|last| upon.remove(&last))
            {
                states.push(State { writer: Some(writer), version });
            }
            chains.add(Chain { table, root, states }, written.rows);
        }
        if let Some((before, (id, _))) = upon.into_iter().min_by_key(|(_, (id, _))| *id) {
            return Err(not_committed(before, id, written));
        }
        chains.delete_keys(walks, written)?;
        Ok(chains)
    }

    fn add(&mut self, chain: Chain, rows: &HashMap<Fingerprint, Row>) {
        let number = self.all.len();
        self.by_table[chain.table].push(number);
        let mut keys = HashSet::new();
        for (place, state) in chain.states.iter().enumerate() {
            if let Some(version) = state.version {
                self.places.insert(version, (number, place));
                if keys.insert(rows[&version].key) {
                    self.by_key.entry((chain.table, rows[&version].key)).or_default().push(number);
                }
            }
        }
        self.all.push(chain);
    }

    /// Applies deletions by key, of rows that were the only ones ever to have the key.
    fn delete_keys(&mut self, walks: &[Walk], written: &Written<'_>) -> Result<(), Violation> {
        for (id, walk) in
            walks.iter().enumerate().filter(|(id, _)| written.history.transactions[*id].committed)
        {
            for key in &walk.deleted_keys {
                let Some([chain]) = self.by_key.get(key).map(Vec::as_slice) else { continue };
                let states = &mut self.all[*chain].states;
                if let [.., before, State { writer: Some(other), version: None }] = states[..] {
                    let before = before.version.expect("it was there before it was deleted");
                    return Err(lost_update(before, other, id, written));
                }
                states.push(State { writer: Some(id), version: None });
            }
        }
        Ok(())
    }

    /// The position of a version, if it was the last one written by a committed transaction.
    pub(crate) fn place(&self, version: Fingerprint) -> Option<(usize, usize)> {
        self.places.get(&version).copied()
    }

    /// The chains of a table.
    pub(crate) fn of_table(&self, table: TableId) -> &[usize] {
        &self.by_table[table]
    }

    /// The chains of rows that have or had a key.
    pub(crate) fn of_key(&self, table: TableId, key: i64) -> &[usize] {
        self.by_key.get(&(table, key)).map_or(&[], Vec::as_slice)
    }
}

fn lost_update(
    before: Fingerprint,
    one: TransactionId,
    two: TransactionId,
    written: &Written<'_>,
) -> Violation {
    let transactions = &written.history.transactions;
    let account = format!(
        "both changed {}\none\n{}the other\n{}",
        written.show(before),
        written.account(&transactions[one]),
        written.account(&transactions[two])
    );
    Violation::new(Anomaly::LostUpdate, account)
}

fn not_committed(before: Fingerprint, id: TransactionId, written: &Written<'_>) -> Violation {
    let writer =
        written.writer(before).map(|(writer, _)| written.account(&written.history.transactions[writer]));
    let account = format!(
        "{} was changed by\n{}it was written by\n{}",
        written.show(before),
        written.account(&written.history.transactions[id]),
        writer.unwrap_or_default()
    );
    Violation::new(written.judge(before), account)
}
