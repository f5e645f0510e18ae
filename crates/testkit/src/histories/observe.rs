//! Derives the order of moments from what transactions observed.
//!
//! A version that is returned shows that the snapshot was after the commit of its writer and before that of
//! the next writer. A row that was requested but not returned was absent, or did not satisfy the predicate:
//! of its states that would explain this and were possible at the time of the call, the first and the last
//! bound the snapshot.

use super::anomaly::{Anomaly, Violation};
use super::chains::{Chain, Chains, State};
use super::history::{Predicate, TransactionId};
use super::order::{Edge, Why, commit, snapshot};
use super::walk::{Observation, Walk};
use super::written::Written;
use std::collections::{HashMap, HashSet};

/// The edges that follow from writes and observations.
///
/// # Errors
/// Versions that no snapshot could contain, and rows that it must have returned.
pub(crate) fn edges(walks: &[Walk], chains: &Chains, written: &Written<'_>) -> Result<Vec<Edge>, Violation> {
    let mut edges = Vec::new();
    for (number, chain) in chains.all.iter().enumerate() {
        for pair in chain.states.windows(2) {
            if let (Some(one), Some(two)) = (pair[0].writer, pair[1].writer) {
                edges.push(Edge { from: commit(one), to: commit(two), why: Why::Wrote { chain: number } });
            }
        }
    }
    for (id, walk) in walks.iter().enumerate() {
        let mut reader = Reader { id, chains, written, edges: &mut edges, bounds: HashMap::new() };
        for observation in &walk.observations {
            reader.observe(observation)?;
        }
    }
    Ok(edges)
}

struct Reader<'a> {
    id: TransactionId,
    chains: &'a Chains,
    written: &'a Written<'a>,
    edges: &'a mut Vec<Edge>,
    /// For each chain, the states that are known to have been observed, to avoid duplicate edges.
    bounds: HashMap<usize, (usize, usize)>,
}

impl Reader<'_> {
    fn observe(&mut self, observation: &Observation) -> Result<(), Violation> {
        let mut seen = HashSet::new();
        for &version in &observation.shown {
            let Some((chain, state)) = self.chains.place(version) else {
                return Err(self.wrong(
                    self.written.judge(version),
                    observation,
                    &self.written.show(version),
                ));
            };
            if !seen.insert(chain) && observation.predicate != Predicate::Some {
                return Err(self.wrong(Anomaly::RowTwice, observation, &self.written.show(version)));
            }
            if self.bounds.insert(chain, (state, state)) != Some((state, state)) {
                self.bound(chain, state, state, observation.step, false);
            }
        }
        let asked = match observation.predicate {
            Predicate::Some => &[],
            Predicate::Key(key) => self.chains.of_key(observation.table, key),
            Predicate::All | Predicate::Group(_) | Predicate::Keys(..) => {
                self.chains.of_table(observation.table)
            }
        };
        for &number in asked {
            let chain = &self.chains.all[number];
            if !seen.contains(&number) && observation.own.binary_search(&chain.root).is_err() {
                self.not_shown(number, chain, observation)?;
            }
        }
        Ok(())
    }

    fn not_shown(
        &mut self,
        number: usize,
        chain: &Chain,
        observation: &Observation,
    ) -> Result<(), Violation> {
        let is_silent = |state: &State| {
            state.version.is_none_or(|version| !observation.predicate.demands(&self.written.rows[&version]))
        };
        let mut first = None;
        let mut last = None;
        for place in 0..chain.states.len() {
            if is_silent(&chain.states[place]) && self.is_possible(chain, place) {
                first.get_or_insert(place);
                last = Some(place);
            }
        }
        let (Some(first), Some(last)) = (first, last) else {
            let there = chain.states.iter().rev().find_map(|state| state.version).expect("it was inserted");
            let contents = &self.written.history.contents;
            let is_left =
                contents.get(chain.table).is_some_and(|rows| rows.iter().any(|row| row.root() == chain.root));
            let is_lost = !is_left && chain.states[chain.states.len() - 1].version.is_some();
            let anomaly = if is_lost { Anomaly::LostRow } else { Anomaly::StaleRead };
            let inserter = chain.states[1].writer.expect("it was inserted");
            let inserter = self.written.account(&self.written.history.transactions[inserter]);
            let what = format!(
                "no state of {} explains why it is not shown; it was inserted by\n{inserter}",
                self.written.show(there)
            );
            return Err(self.wrong(anomaly, observation, &what));
        };
        if self.bounds.insert(number, (first, last)) != Some((first, last)) {
            self.bound(number, first, last, observation.step, true);
        }
        Ok(())
    }

    /// True if, by the clock, the snapshot can have contained a state.
    fn is_possible(&self, chain: &Chain, place: usize) -> bool {
        let transactions = &self.written.history.transactions;
        let begin = transactions[self.id].begin;
        let since = chain.states[place].writer.map(|writer| transactions[writer].commit.start);
        let until = chain
            .states
            .get(place + 1)
            .and_then(|next| next.writer)
            .map(|next| transactions[next].commit.end);
        since.is_none_or(|since| since <= begin.end) && until.is_none_or(|until| begin.start <= until)
    }

    /// Records that the snapshot contained one of the states from `first` to `last` of a chain.
    fn bound(&mut self, chain: usize, first: usize, last: usize, step: usize, searched: bool) {
        let states = &self.chains.all[chain].states;
        let transactions = &self.written.history.transactions;
        let begin = transactions[self.id].begin;
        // For rows that were not returned, edges that the clock implies anyway are omitted.
        if let Some(writer) = states[first].writer
            && writer != self.id
            && !(searched && transactions[writer].commit.end < begin.start)
        {
            let why = Why::Saw { chain, step };
            self.edges.push(Edge { from: commit(writer), to: snapshot(self.id), why });
        }
        if let Some(writer) = states.get(last + 1).and_then(|next| next.writer)
            && writer != self.id
            && !(searched && begin.end < transactions[writer].commit.start)
        {
            let why = Why::Missed { chain, step, searched };
            self.edges.push(Edge { from: snapshot(self.id), to: commit(writer), why });
        }
    }

    fn wrong(&self, anomaly: Anomaly, observation: &Observation, what: &str) -> Violation {
        let history = self.written.history;
        let table = &history.tables[observation.table].name;
        let reader = self.written.account(&history.transactions[self.id]);
        Violation::new(
            anomaly,
            format!("{what}\nin table {table}, in step {} of\n{reader}", observation.step),
        )
    }
}
