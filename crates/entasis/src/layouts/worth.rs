//! Whether a table that follows its workload is to be laid anew: by the standings of its layouts
//! ([`entasis_layout::standing`]).
//!
//! The advice ([`super::advice`]) says what was asked since the last judgement, with the rows that were added
//! since, costs under each layout key. These costs, in the unit of what laying the table anew costs, are
//! added to the standings of the keys, and the standings say whether the present one is to be left. So what
//! is paid is bounded by what would have been paid with the best keys in hindsight, whatever is asked.
//!
//! **When to judge.** To be judged costs something as well, a sample of rows for each key ([`judging`]). So
//! it is judged when the present layout has cost as much as laying it anew does, or [`PATIENCE`] times as
//! much as the judgement. What it has cost is known at the judgement only; until then it is taken to grow
//! with the slots that scans may look into ([`Batch::slots`]), at the rate of the last batch.
//!
//! [`Batch::slots`]: crate::state::workload_stats::Batch::slots

use super::Looked;
use super::advice::{Advice, advise};
use super::column::{Column, SAMPLE_ROWS};
use super::words::time;
use crate::state::workload_stats::{LaidBy, Record};
use entasis_storage::TableSnapshot;
use entasis_vector::Result;

/// What it takes to lay a row anew, in nanoseconds, beside its columns.
const ROW: f64 = 220.0;
/// What it takes for each of its columns.
const COLUMN: f64 = 40.0;
/// What it takes to look at a row of the sample for one layout key, in nanoseconds.
const SAMPLED: f64 = 100.0;
/// The present layout has to cost so many times as much as a judgement before there is one.
const PATIENCE: f64 = 2.0;
/// A slot costs at least so much, in nanoseconds, to a scan that may look into it: a sixteenth of one that
/// does. So zone maps that rule out everything today do not put the next judgement off for ever.
const SLOT: f64 = 0.1 / 16.0;

/// What a table is to be laid anew by; `None` if it is to be left as it is, or the time has not come.
///
/// # Errors
/// Interrupted.
pub(crate) fn better_key(looked: &Looked<'_>, record: &Record) -> Result<Option<LaidBy>> {
    let rows = looked.snapshot.rows();
    let Some(batch) = record.turn(rows) else { return Ok(None) };
    let Some(sample) = looked.asked(&batch).filter(|_| rows > 0) else { return Ok(None) };
    let present = Column::present(looked.snapshot, &looked.interrupt)?;
    let mut candidates = advise(looked, &present, Some(&sample))?.candidates;
    let price = moving(looked.snapshot);
    let budget = price.max(PATIENCE * judging(candidates.len(), rows));
    let slot = candidates[0].total() / batch.slots() as f64;
    record.wait_for((budget / slot.max(SLOT)) as u64);
    let costs = candidates.iter().map(|own| (own.by.clone(), own.total() / price));
    let better = record.ask(&costs.collect::<Vec<_>>());
    Ok(better.map(|better| candidates.swap_remove(better).by))
}

/// What it costs to lay a table anew, in nanoseconds.
fn moving(snapshot: &TableSnapshot) -> f64 {
    snapshot.rows() as f64 * (ROW + COLUMN * snapshot.schema().len() as f64)
}

/// What it costs to judge so many layouts of a table with so many rows, in nanoseconds.
fn judging(candidates: usize, rows: u64) -> f64 {
    candidates as f64 * SAMPLED * rows.min(SAMPLE_ROWS as u64) as f64
}

/// What the advice comes to for a table that follows its workload, in words.
pub(super) fn line(looked: &Looked<'_>, record: &Record, advice: &Advice) -> String {
    if advice.recommended == 0 {
        return "'auto' leaves the table as it is".to_owned();
    }
    let (standings, price) = (record.standings(), moving(looked.snapshot));
    let above = |number: usize| standings.of(&advice.candidates[number].by);
    // From 0 to 2: at first the present key has the least standing, and all others are at the bound.
    let judged = match standings.known().next() {
        None => 0.0,
        Some(_) => 1.0 + above(0) - above(advice.recommended),
    };
    let not_judged = if record.latest().1 { 0.0 } else { advice.saved() };
    format!(
        "'auto' lays the table anew, which takes about {}, once that would have saved twice as much: {} by now",
        time(price),
        time(judged * price + not_judged)
    )
}
