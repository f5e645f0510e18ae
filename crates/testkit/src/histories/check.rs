//! The checker: finds the first violation in a history.

use super::anomaly::Violation;
use super::chains::Chains;
use super::history::{Effect, History, Predicate, Span, Statement, Step, Transaction, TransactionId};
use super::order::{Edge, Order};
use super::walk::{Walk, walk};
use super::written::Written;
use super::{classify, constraints, cycles, model, observe, stamps, unfold};

/// What was checked in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Rows whose versions were put in order.
    pub rows: u64,
    /// Their versions.
    pub versions: u64,
    /// Reads that were placed between commits.
    pub reads: u64,
    /// Dependencies between transactions.
    pub edges: u64,
    /// Stamps that were read.
    pub stamps: u64,
    /// Rows that were compared with the model.
    pub compared: u64,
}

/// Checks a history all of whose calls had ended before its contents were read.
///
/// # Errors
/// The first violation that is found.
pub fn check(mut history: History) -> Result<Checked, Violation> {
    append_last_reader(&mut history);
    unfold::unfold(&mut history)?;
    let written = Written::new(&history);
    constraints::judge(&written)?;
    let walks = history.transactions.iter().map(|transaction| walk(transaction, &written));
    let walks: Vec<Walk> = walks.collect::<Result<_, _>>()?;
    let chains = Chains::new(&walks, &written)?;
    let edges = observe::edges(&walks, &chains, &written)?;
    let commits = in_order(&history, &edges, &chains, &walks, &written)?;
    let stamps = stamps::judge(&written)?;
    let compared = model::compare(&commits, &chains, &written)?;
    Ok(Checked {
        rows: chains.all.len() as u64,
        versions: chains.all.iter().map(|chain| chain.states.len() as u64 - 1).sum(),
        reads: walks.iter().map(|walk| walk.observations.len() as u64).sum(),
        edges: edges.len() as u64,
        stamps,
        compared,
    })
}

/// The commits in an order that explains everything.
fn in_order(
    history: &History,
    edges: &[Edge],
    chains: &Chains,
    walks: &[Walk],
    written: &Written<'_>,
) -> Result<Vec<TransactionId>, Violation> {
    // A violation that does not need the clock has a better name.
    for timed in [false, true] {
        let order = Order::new(&history.transactions, edges, timed);
        match order.commits(&history.transactions) {
            Some(commits) if timed => return Ok(commits),
            Some(_) => {}
            None => {
                let cycle = cycles::shortest(&order).expect("what has no order has a cycle");
                return Err(classify::classify(&cycle, chains, walks, written));
            }
        }
    }
    unreachable!("the second order is the last")
}

/// Adds the read of the final contents as another transaction.
fn append_last_reader(history: &mut History) {
    let last = history
        .transactions
        .iter()
        .map(|transaction| transaction.commit.end.max(transaction.begin.end))
        .max();
    let at = last.unwrap_or(0) + 1;
    let mut effects = Vec::new();
    for (table, rows) in history.contents.clone().into_iter().enumerate() {
        let shown = rows.into_iter().map(|row| history.note(table, row)).collect();
        effects.push(Effect::Read { table, predicate: Predicate::All, shown });
    }
    let sql = "(what is left in the end)".into();
    let steps = vec![Step::Statement(Statement { sql, effects, ..Statement::default() })];
    let span = Span { start: at, end: at };
    history.transactions.push(Transaction {
        begin: span,
        commit: span,
        steps,
        committed: true,
        ..Transaction::default()
    });
}
