//! The name of a cycle, and its explanation.

use super::anomaly::{Anomaly, Violation};
use super::chains::Chains;
use super::history::TransactionId;
use super::order::{Edge, Why, owner};
use super::walk::Walk;
use super::written::Written;
use std::fmt::Write as _;

/// The anomaly of a cycle of moments.
pub(crate) fn classify(cycle: &[Edge], chains: &Chains, walks: &[Walk], written: &Written<'_>) -> Violation {
    Violation::new(name(cycle, chains, walks), account(cycle, chains, written))
}

fn name(cycle: &[Edge], chains: &Chains, walks: &[Walk]) -> Anomaly {
    let is_saw = |edge: &&Edge| matches!(edge.why, Why::Saw { .. });
    let is_timed = cycle.iter().any(|edge| edge.why == Why::Time);
    let missed: Vec<&Edge> = cycle.iter().filter(|edge| matches!(edge.why, Why::Missed { .. })).collect();
    match missed[..] {
        [] if is_timed => Anomaly::RealTime,
        [] if cycle.iter().any(|edge| is_saw(&edge)) => Anomaly::CircularInformationFlow,
        [] => Anomaly::DirtyWrite,
        [edge] => {
            let Why::Missed { chain, step, searched } = edge.why else { unreachable!("it was looked for") };
            let reader = owner(edge.from);
            let saw = cycle.iter().find(|edge| is_saw(edge) && owner(edge.to) == reader);
            let Some(Edge { why: Why::Saw { chain: other, step: saw }, .. }) = saw else {
                return if is_timed { Anomaly::StaleRead } else { Anomaly::ReadSkew };
            };
            if walks[reader].writes.contains_key(&chains.all[chain].root) {
                Anomaly::LostUpdate
            } else if step == *saw {
                Anomaly::FracturedRead
            } else if searched {
                Anomaly::PredicateManyPreceders
            } else if chain == *other {
                Anomaly::NonRepeatableRead
            } else if step > *saw {
                Anomaly::ObservedTransactionVanishes
            } else {
                Anomaly::ReadSkew
            }
        }
        _ => Anomaly::LongFork,
    }
}

fn account(cycle: &[Edge], chains: &Chains, written: &Written<'_>) -> String {
    let mut names: Vec<TransactionId> = Vec::new();
    cycle.iter().for_each(|edge| {
        for id in [owner(edge.from), owner(edge.to)] {
            if !names.contains(&id) {
                names.push(id);
            }
        }
    });
    let name = |moment: usize| {
        let number = names.iter().position(|id| *id == owner(moment)).expect("all are named") + 1;
        format!("T{number}")
    };
    let mut text = String::new();
    for edge in cycle {
        let (from, to) = (name(edge.from), name(edge.to));
        let left = |chain: usize, writer: usize| {
            let chain = &chains.all[chain];
            let table = &written.history.tables[chain.table].name;
            let state = chain.states.iter().find(|state| state.writer == Some(owner(writer)));
            match state.and_then(|state| state.version) {
                Some(version) => format!("{table} as {}", written.show(version)),
                None => format!("{table} as row {} gone", chain.root),
            }
        };
        let line = match edge.why {
            Why::Own => continue,
            Why::Time => format!("{from} was over before {to} began"),
            Why::Wrote { chain } => format!("{to} wrote upon what {from} left in {}", left(chain, edge.from)),
            Why::Saw { chain, step } => {
                format!("{to} saw in step {step} what {from} left in {}", left(chain, edge.from))
            }
            Why::Missed { chain, step, .. } => {
                format!("{from} did not see in step {step} what {to} left in {}", left(chain, edge.to))
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {line}");
    }
    for (number, id) in names.iter().enumerate() {
        let transaction = &written.history.transactions[*id];
        let _ = write!(text, "  T{}\n{}", number + 1, written.account(transaction));
    }
    text
}
