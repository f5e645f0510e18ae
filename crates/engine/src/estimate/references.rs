//! How many rows of a large table refer to the rows of a small one that satisfy its filters, found by
//! looking.
//!
//! A join of two keys is expected to keep the share of rows that the filters keep of the keys' values.
//! Keywords that people ask for are not like any other keyword, though: some have a thousand times as many
//! movies. So if a filtered table is small, all of its rows are tested when the query is planned, and the
//! keys of those that pass are looked up in a sample of the other table's column. That takes some hundred
//! microseconds, and is done only where the other table is large enough for queries to take much longer.
//!
//! How frequent values of two columns meet each other, of which neither is a key, samples of both tell
//! ([`entasis_storage::KeySample`]).
//!
//! The result is a factor, by which the join of the two columns keeps more rows than expected.

use super::tester::{NONE, Tester, candidates, places, zone_tests};
use crate::plan::{Columns, Scan};
use entasis_vector::{CHUNK_ROWS, ColumnId, Value};
use std::collections::HashMap;

/// The most rows of a table that is tested as a whole.
const SMALL: u64 = 100_000;
/// The least rows of a table that refers to it.
const LARGE: u64 = 100_000;
/// Keys that are kept at most: if there are more, they are like most. Also the most rows that may be expected
/// of a table, so that it is tested.
const KEYS: usize = 4096;
/// The number of runs of slots that are sampled of the referring column, and the slots of each: shorter runs
/// than for filters, as references to one row often stand together.
const RUNS: usize = 256;
const RUN_SLOTS: usize = 4;

/// The values of a column in the rows that satisfy the filters of `scan`, and how many rows have each; `None`
/// if the table is not small, there is no filter that can be tested, or there are many, as `expected` rows
/// say before any is tested.
pub(crate) fn keys(
    scan: &Scan,
    key: ColumnId,
    expected: f64,
    columns: &Columns,
) -> Option<HashMap<Value, usize>> {
    let table = scan.relation.table().filter(|table| table.rows() <= SMALL)?;
    if scan.filters.is_empty() || expected > KEYS as f64 {
        return None;
    }
    let ty = columns.ty(key);
    let mut tester = Tester::of(scan, Some(key), columns)?;
    let mut found = HashMap::new();
    for (group, block) in candidates(table, &zone_tests(scan), usize::MAX).blocks {
        let first = block * group.block_slots();
        for start in (first..first + group.block_slots()).step_by(CHUNK_ROWS) {
            let run = start..(start + CHUNK_ROWS).min(first + group.block_slots());
            tester.test(group, &[run], |position, key| {
                let value = key.map_or(Value::Null, |key| key.value(position, ty));
                if !value.is_null() {
                    *found.entry(value).or_insert(0) += 1;
                }
            })?;
        }
        if found.len() > KEYS {
            return None;
        }
    }
    Some(found)
}

/// True if a table has so many rows that queries of it take much longer than looking at a small one.
pub(crate) fn is_large(scan: &Scan) -> bool {
    scan.relation.table().is_some_and(|table| table.rows() >= LARGE)
}

/// The number of pairs of equal keys for each row of the table that `scan` reads, by a sample of its column
/// `key`; `None` if the table is not large, or the column not stored. `least` is returned if it is less than
/// what a sample without any pair allows for.
pub(crate) fn pairs(
    scan: &Scan,
    key: ColumnId,
    keys: &HashMap<Value, usize>,
    least: f64,
    columns: &Columns,
) -> Option<f64> {
    let table = scan.relation.table().filter(|_| is_large(scan))?;
    let ty = columns.ty(key);
    let unfiltered = Scan { filters: Vec::new(), ..scan.clone() };
    let mut tester = Tester::of(&unfiltered, Some(key), columns)?;
    let (mut rows, mut pairs) = (0, 0);
    for (group, runs) in places(&candidates(table, &[], RUNS).blocks, (RUNS, RUN_SLOTS)) {
        rows += tester.test(group, &runs, |position, key| {
            pairs += key.and_then(|key| keys.get(&key.value(position, ty))).copied().unwrap_or(0);
        })?;
    }
    match (rows, pairs) {
        (0, _) => None,
        (rows, 0) => Some(least.min(NONE / rows as f64)),
        (rows, pairs) => Some(pairs as f64 / rows as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{number, table};
    use super::*;
    use entasis_vector::expr::{CompareOp, Expr};

    #[test]
    fn frequent_keys_are_seen_as_they_are() {
        let mut columns = Columns::default();
        let words = table(["id", "length"], 1_000, |i| [i, i % 100], &mut columns);
        // Half of the rows refer to word 7, and the others to all.
        let texts =
            table(["word"], 120_000, |i| [if i * 7919 % 2 == 0 { 7 } else { i % 1_000 }], &mut columns);
        let [(id, _), (length, _)] = words.columns[..] else { unreachable!("it has two columns") };
        let word = texts.columns[0].0;
        let of = |op, value| {
            let filter = Expr::compare(op, columns.expr(length), number(value));
            Scan { filters: vec![filter], ..words.clone() }
        };
        let sevens = keys(&of(CompareOp::Eq, 7), id, 10.0, &columns).unwrap();
        assert_eq!(sevens.len(), 10);
        let share = pairs(&texts, word, &sevens, 0.01, &columns).unwrap();
        assert!((0.4..0.65).contains(&share), "{share}");
        let eights = keys(&of(CompareOp::Eq, 9), id, 10.0, &columns).unwrap();
        let share = pairs(&texts, word, &eights, 0.01, &columns).unwrap();
        assert!((0.0004..0.03).contains(&share), "{share}");
        assert_eq!(keys(&of(CompareOp::Eq, 100), id, 0.0, &columns), Some(HashMap::new()));
        assert_eq!(keys(&of(CompareOp::Eq, 7), id, 5_000.0, &columns), None, "many are not tested");
        assert_eq!(keys(&words, id, 1_000.0, &columns), None, "without filters statistics know as much");
        assert_eq!(pairs(&words, id, &sevens, 0.01, &columns), None, "the table is small");
    }
}
