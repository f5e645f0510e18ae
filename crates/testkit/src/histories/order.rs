//! The order of snapshots and commits.
//!
//! Under snapshot isolation each transaction has two moments: that of its snapshot and that of its commit. A
//! history is valid if its moments can be put in one order, that is, if these edges have no cycle:
//!
//! | edge | from | to | because |
//! |---|---|---|---|
//! | own | snapshot of T | commit of T | |
//! | ww | commit of T | commit of U | U overwrote T's version |
//! | wr | commit of T | snapshot of U | U read T's version |
//! | rw | snapshot of T | commit of U | T did not see U's version |
//! | time | a moment | another | the first had ended before the second began |
//!
//! Write skew, which snapshot isolation allows, is not a cycle of these edges. The theory is in Adya's "Weak
//! Consistency" (1999) and Cerone and Gotsman's "Analysing Snapshot Isolation" (2016), the use of lists in
//! Kingsbury and Alvaro's "Elle" (2020).

use super::history::{Span, Transaction, TransactionId};

/// Why one moment was before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Own,
    Time,
    /// ww, in a chain.
    Wrote {
        chain: usize,
    },
    /// wr, in a chain and a step of the reader.
    Saw {
        chain: usize,
        step: usize,
    },
    /// rw, in a chain and a step of the reader. `searched`: the reader returned no version of the row, but
    /// searched for what it missed.
    Missed {
        chain: usize,
        step: usize,
        searched: bool,
    },
}

/// Two moments, the earlier first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) why: Why,
}

/// The moment of a transaction's snapshot.
pub(crate) fn snapshot(id: TransactionId) -> usize {
    2 * id
}

/// The moment of a transaction's commit.
pub(crate) fn commit(id: TransactionId) -> usize {
    2 * id + 1
}

/// The transaction of a moment.
pub(crate) fn owner(moment: usize) -> TransactionId {
    moment / 2
}

/// Moments and edges between them. Moments after those of transactions are times of the clock.
pub(crate) struct Order {
    /// For each moment, where its edges begin.
    starts: Vec<usize>,
    edges: Vec<Edge>,
    transactions: usize,
}

impl Order {
    /// The order of transactions by `edges`, and by the clock if `timed`.
    pub(crate) fn new(transactions: &[Transaction], edges: &[Edge], timed: bool) -> Order {
        let mut edges = edges.to_vec();
        let mut moments = 2 * transactions.len();
        for (id, _) in transactions.iter().enumerate().filter(|(_, transaction)| transaction.committed) {
            edges.push(Edge { from: snapshot(id), to: commit(id), why: Why::Own });
        }
        if timed {
            moments += add_clock(transactions, moments, &mut edges);
        }
        edges.sort_by_key(|edge| edge.from);
        let mut starts = vec![0; moments + 1];
        for edge in &edges {
            starts[edge.from + 1] += 1;
        }
        for moment in 0..moments {
            starts[moment + 1] += starts[moment];
        }
        Order { starts, edges, transactions: transactions.len() }
    }

    /// Number of moments.
    pub(crate) fn moments(&self) -> usize {
        self.starts.len() - 1
    }

    /// True if a moment is a time of the clock.
    pub(crate) fn is_clock(&self, moment: usize) -> bool {
        moment >= 2 * self.transactions
    }

    /// The edges from a moment.
    pub(crate) fn from(&self, moment: usize) -> &[Edge] {
        &self.edges[self.starts[moment]..self.starts[moment + 1]]
    }

    /// The commits of transactions in an order that agrees with the edges, if there is one; of several
    /// possible next ones, the one whose call was first.
    pub(crate) fn commits(&self, transactions: &[Transaction]) -> Option<Vec<TransactionId>> {
        let mut waits_for = vec![0_usize; self.moments()];
        self.edges.iter().for_each(|edge| waits_for[edge.to] += 1);
        let time = |moment: usize| match self.is_clock(moment) {
            true => 0,
            false => transactions[owner(moment)].commit.start,
        };
        let mut ready = std::collections::BinaryHeap::new();
        let first = (0..self.moments()).filter(|moment| waits_for[*moment] == 0);
        ready.extend(first.map(|moment| std::cmp::Reverse((time(moment), moment))));
        let (mut done, mut commits) = (0, Vec::new());
        while let Some(std::cmp::Reverse((_, moment))) = ready.pop() {
            done += 1;
            if !self.is_clock(moment) && moment % 2 == 1 && transactions[owner(moment)].committed {
                commits.push(owner(moment));
            }
            for edge in self.from(moment) {
                waits_for[edge.to] -= 1;
                if waits_for[edge.to] == 0 {
                    ready.push(std::cmp::Reverse((time(edge.to), edge.to)));
                }
            }
        }
        (done == self.moments()).then_some(commits)
    }
}

/// Adds the order of calls: a moment that ended before another began has an edge to a time of the clock,
/// these times have edges to each other, and one of them to the other moment. Returns the number of times.
fn add_clock(transactions: &[Transaction], first: usize, edges: &mut Vec<Edge>) -> usize {
    let moments = transactions.iter().enumerate().flat_map(|(id, transaction)| {
        let end = transaction.committed.then_some((commit(id), transaction.commit));
        std::iter::once((snapshot(id), transaction.begin)).chain(end)
    });
    let moments: Vec<(usize, Span)> = moments.collect();
    let mut starts: Vec<u64> = moments.iter().map(|(_, span)| span.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let why = Why::Time;
    for place in 1..starts.len() {
        edges.push(Edge { from: first + place - 1, to: first + place, why });
    }
    for &(moment, span) in &moments {
        let own = starts.partition_point(|start| *start < span.start);
        edges.push(Edge { from: first + own, to: moment, why });
        let next = starts.partition_point(|start| *start <= span.end);
        if next < starts.len() {
            edges.push(Edge { from: moment, to: first + next, why });
        }
    }
    starts.len()
}
