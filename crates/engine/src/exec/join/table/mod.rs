//! Join tables: from a key to the build rows that may have it.
//!
//! A table sees row ids and either hashes or integers, never columns. The interface is that of a chain: the first
//! candidate of each probe row, then each pair's next one. [`choose`] picks the kind when the facts are known and says
//! why; further kinds plug in there.
//!
//! | table | when | candidate |
//! |---|---|---|
//! | [`Indexed::direct`] | one integer key whose values span less than `4 n + 1024` | `heads[key - min]`, always a match |
//! | [`Indexed::ranked`] | one integer key, at least one value in 64 occupied | `heads[rank of the key]`, always a match |
//! | [`Chained`] | all else | `heads[high bits of the hash]`, keys must be compared |
//! | [`Everything`] | no keys | every row |
//!
//! The kinds that search are built by all workers at once without locks: a row becomes the head of its chain by one
//! atomic exchange and remembers the old head as its successor. Successors stand in an array of their own, indexed by
//! row id; where no key occurs twice there is none.

mod chained;
mod everything;
mod indexed;
mod keys;
mod pairs;

pub(crate) use keys::{ProbeKeys, for_each_key, is_integer, key_span};
pub(crate) use pairs::Pairs;

use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use chained::Chained;
use entasis_vector::Result;
use everything::Everything;
use indexed::Indexed;
use std::sync::atomic::AtomicU32;

/// No row: the end of a chain.
const NO_ROW: u32 = Materialized::NO_ROW;

/// How far a probe is that goes through all build rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// Build rows that have been candidates.
    at: usize,
    /// Rows of the probe chunk.
    count: usize,
}

/// Finds the build rows that may match a probe row.
pub(crate) trait JoinTable: Send + Sync {
    /// Replaces `pairs` by the first candidate of each probe row that has one. `cursor` is this probe's own, for
    /// [`JoinTable::next`].
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor);
    /// Moves each pair to its row's next candidate; pairs without one vanish.
    fn next(&self, pairs: &mut Pairs, cursor: &mut Cursor);
    /// True if candidates need no comparison of keys.
    fn is_exact(&self) -> bool;
    /// Bytes of memory in use.
    fn bytes(&self) -> usize;
}

/// What is known of a finished build side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Rows.
    pub rows: usize,
    /// Number of key columns.
    pub keys: usize,
    /// Smallest and largest key, if the key is one integer that 64 bits hold and NULL equals nothing.
    pub span: Option<(i64, i64)>,
}

/// How a table is built from the rows of one build side.
pub(crate) struct BuildInput<'a> {
    /// The rows; keys are the first columns.
    pub rows: &'a Materialized,
    /// For each key, whether NULL equals NULL.
    pub null_equals_null: &'a [bool],
    /// Every hash is the same.
    pub hash_collisions: bool,
    /// Runs work on all workers.
    pub tasks: &'a dyn Tasks,
}

/// The table for these facts, and the reason.
///
/// # Errors
/// Those of the tasks.
pub(crate) fn choose(facts: Facts, input: &BuildInput<'_>) -> Result<(Box<dyn JoinTable>, String)> {
    if facts.keys == 0 {
        return Ok((Box::new(Everything::new(input.rows)), "nested loop: no equality to search by".into()));
    }
    let Facts { rows, .. } = facts;
    if let Some((min, max)) = facts.span {
        let span = max.abs_diff(min);
        let uniqueness = |unique: bool| if unique { "unique" } else { "repeated" };
        if span < 4 * rows as u64 + 1024 {
            let table = Indexed::direct(input, min, span)?;
            let unique = uniqueness(table.is_unique());
            return Ok((Box::new(table), format!("direct array: {rows} rows, {unique} keys from {min} to {max}")));
        }
        if span / 64 <= rows as u64 {
            let table = Indexed::ranked(input, min, span)?;
            let unique = uniqueness(table.is_unique());
            return Ok((
                Box::new(table),
                format!("ranked array: {rows} rows, {unique} sparse keys from {min} to {max}"),
            ));
        }
        let table = Chained::build(input)?;
        return Ok((
            Box::new(table),
            format!("chained: {rows} rows, keys from {min} to {max} are too sparse to index"),
        ));
    }
    let keys = if facts.keys == 1 { "a key that is not an integer".into() } else { format!("{} keys", facts.keys) };
    Ok((Box::new(Chained::build(input)?), format!("chained: {rows} rows, {keys}")))
}

/// `count` chains without rows.
fn empty_chains(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(NO_ROW)).collect()
}
