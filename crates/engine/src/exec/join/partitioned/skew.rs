//! Skew: whether some keys of the probe side are far more frequent than others, estimated from a sample of
//! the table that they come from.
//!
//! The more frequent a few keys are, the more lookups in a large table hit a cache, and the less partitions
//! can save (Bandle, Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, section 5.4.5 and
//! table 4).
//!
//! 1. *Origin of keys.* If the keys are plain columns of a stored table, below nothing but filters and
//!    projections, that table is sampled ([`StoredKeys`]). Filters are ignored.
//! 2. *Sample.* The table is cut into as many stretches as rows are wanted, and one slot of each is chosen at
//!    random: stretches, so that adjacent equal keys count once; random slots, so that periodic keys do not
//!    all hit the same value.
//! 3. *Exponent.* The number of repeated keys in the sample gives the exponent of the Zipf distribution that
//!    would repeat as many, over as many keys as the build side has. So any kind of skew gets the exponent
//!    that it behaves like.
//!
//! Not here: probe sides that are computed, or come from files or other joins. They are assumed to have no
//! skew.

use crate::plan::Node;
use entasis_storage::{Datum, RowId, TableSnapshot};
use entasis_vector::expr::Expr;
use entasis_vector::hash::hash_u64;
use std::fmt;

/// The most rows of a sample, and their most as a fraction of the keys, so that few are repeated without
/// skew.
const SAMPLE: usize = 4096;
const PART: usize = 16;
/// A sample with fewer rows is inconclusive.
const LEAST: usize = 256;
/// The greatest exponent that is distinguished, and the step between exponents.
const GREATEST: f64 = 2.0;
const STEP: f64 = 0.05;

/// The table that the keys of a probe side come from.
#[derive(Debug, Clone)]
pub(crate) struct StoredKeys {
    table: TableSnapshot,
    columns: Vec<usize>,
}

impl StoredKeys {
    /// The table of `keys` over the rows of `node`; `None` if they are not from one.
    pub(crate) fn of(node: &Node, keys: &[Expr]) -> Option<StoredKeys> {
        let mut keys = keys.to_vec();
        let mut node = node;
        loop {
            match node {
                Node::Filter(filter) => node = &filter.input,
                Node::Project(project) => {
                    for key in &mut keys {
                        let Expr::Column { id, .. } = key else { return None };
                        let own = project.exprs.iter().find(|(own, _)| own == id);
                        own.into_iter().for_each(|(_, expr)| *key = expr.clone());
                    }
                    node = &project.input;
                }
                Node::Scan(scan) => {
                    let table = scan.relation.table()?.clone();
                    let place = |key: &Expr| match key {
                        Expr::Column { id, .. } => {
                            let column = scan.columns.iter().find(|(own, _)| own == id)?.1;
                            // A row id is not a column, and each occurs once.
                            (column < table.schema().len()).then_some(column)
                        }
                        _ => None,
                    };
                    let columns = keys.iter().map(place).collect::<Option<Vec<usize>>>()?;
                    return Some(StoredKeys { table, columns });
                }
                _ => return None,
            }
        }
    }

    /// The skew of a sample of the keys, given the number of `distinct` ones. `nulls_count`: rows with a NULL
    /// go to partitions as well, all to one.
    pub(crate) fn skew(&self, distinct: usize, nulls_count: bool) -> Skew {
        let slots: usize = self.table.row_groups().map(|group| group.slots()).sum();
        let count = SAMPLE.min(distinct / PART).min(slots);
        let mut hashes = Vec::with_capacity(count);
        let mut datums = Vec::new();
        let (mut number, mut before) = (0, 0);
        for i in 0..count {
            let stretch = slots * i / count..slots * (i + 1) / count;
            let at = stretch.start + (hash_u64(i as u64) % stretch.len() as u64) as usize;
            let mut group = self.table.row_group(number);
            while let Some(own) = group.filter(|own| at >= before + own.slots()) {
                (number, before) = (number + 1, before + own.slots());
                group = self.table.row_group(number);
            }
            let slot = at - before;
            if !group.is_some_and(|group| group.is_live(slot)) {
                continue;
            }
            datums.clear();
            self.table.read(RowId { group: number as u32, slot: slot as u32 }, &self.columns, &mut datums);
            if datums.iter().any(|datum| datum.is_null()) {
                hashes.extend(nulls_count.then_some(0));
            } else {
                hashes.push(datums.iter().fold(0, |hash, datum: &Datum<'_>| hash_u64(hash ^ datum.hash())));
            }
        }
        Skew::of(hashes, distinct)
    }
}

/// How often keys of a sample are repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skew {
    sampled: usize,
    repeated: usize,
    /// The exponent of the Zipf distribution.
    pub exponent: f64,
    /// The share of the most frequent key.
    pub most: f64,
}

impl Skew {
    /// The skew of keys with these hashes, of `distinct` keys in all.
    fn of(mut hashes: Vec<u64>, distinct: usize) -> Skew {
        let sampled = hashes.len();
        hashes.sort_unstable();
        let most = hashes.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
        if sampled < LEAST {
            return Skew { sampled, repeated: 0, exponent: 0.0, most: 0.0 };
        }
        hashes.dedup();
        let repeated = sampled - hashes.len();
        let steps = (GREATEST / STEP) as u32;
        // Repeated keys increase with the skew.
        let exponent = (0..steps).map(|step| f64::from(step) * STEP).find(|&exponent| {
            expected_repeated(sampled as f64, distinct as f64, exponent + STEP / 2.0) >= repeated as f64
        });
        let most = most as f64 / sampled.max(1) as f64;
        Skew { sampled, repeated, exponent: exponent.unwrap_or(GREATEST), most }
    }
}

/// How many of `draws` from `keys` Zipf-distributed keys are expected to be repeated.
fn expected_repeated(draws: f64, keys: f64, exponent: f64) -> f64 {
    // Ranges of ranks, each a twentieth longer than the one before, whose keys are taken to be equally
    // frequent: the first rank, and how many.
    let ranges = || {
        let next = |&(first, count): &(f64, f64)| {
            let first = first + count;
            (first <= keys).then(|| (first, (first / 20.0).floor().max(1.0).min(keys - first + 1.0)))
        };
        std::iter::successors(Some((1.0, 1.0)), next)
    };
    let weight = |first: f64, count: f64| (first + (count - 1.0) / 2.0).powf(-exponent);
    let whole: f64 = ranges().map(|(first, count)| count * weight(first, count)).sum();
    // Of n draws of a key, all but the first are repeated: n - (1 - exp(-n)).
    let repeated = |(first, count)| {
        let own = draws * weight(first, count) / whole;
        count * (own + (-own).exp_m1())
    };
    ranges().map(repeated).sum()
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skew { sampled, repeated, exponent, most } = self;
        write!(
            f,
            "{repeated} of {sampled} sampled probe keys are repeated (Zipf exponent {exponent:.2}), {:.1} % have the most frequent key",
            100.0 * most
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::testing::Chance;
    use crate::exec::tests::stored;
    use crate::plan::{Columns, Filter, Project};
    use entasis_vector::expr::CompareOp;
    use entasis_vector::{DataType, Value};

    /// Zipf-distributed keys from 0 to `keys`.
    fn zipf(keys: u64, exponent: f64, chance: &mut Chance) -> Vec<u64> {
        let n = keys as f64;
        let rank = |uniform: f64| match exponent {
            1.0 => (n.ln() * uniform).exp(),
            _ => ((n.powf(1.0 - exponent) - 1.0) * uniform + 1.0).powf(1.0 / (1.0 - exponent)),
        };
        let uniform = |chance: &mut Chance| (chance.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        (0..SAMPLE).map(|_| (rank(uniform(chance)) as u64 - 1).min(keys - 1)).collect()
    }

    #[test]
    fn the_exponent_of_keys_by_zipfs_law_is_found() {
        let mut chance = Chance(1897);
        for keys in [100_000, 10_000_000] {
            for exponent in [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5] {
                for _ in 0..20 {
                    let sample = zipf(keys, exponent, &mut chance).into_iter().map(hash_u64).collect();
                    let skew = Skew::of(sample, keys as usize);
                    // Up to an exponent of a half, only a few keys are repeated.
                    let range = if exponent > 0.5 { exponent - 0.1..exponent + 0.1 } else { 0.0..0.65 };
                    assert!(range.contains(&skew.exponent), "{keys} keys, exponent {exponent}: {skew}");
                }
            }
        }
    }

    #[test]
    fn a_small_sample_says_nothing() {
        for count in [0, 1, 2, LEAST - 1] {
            let skew = Skew::of(vec![7; count], 1000);
            assert_eq!((skew.sampled, skew.exponent, skew.most), (count, 0.0, 0.0));
        }
        assert_eq!(Skew::of(vec![7; LEAST], 1000).exponent, GREATEST);
    }

    /// Keys that recur periodically, or stand next to their equals, are not taken for frequent ones.
    #[test]
    fn the_order_of_a_table_is_no_skew() {
        let keys = 100_000;
        for key_of in [|row: i128| row % 100_000, |row: i128| row / 4, |row: i128| row * 7919 % 100_000] {
            let mut columns = Columns::default();
            let rows: Vec<Vec<Value>> = (0..4 * keys).map(|row| vec![Value::Integer(key_of(row))]).collect();
            let (scan, ids) = stored(&mut columns, &[DataType::Int64], &rows);
            let skew = StoredKeys::of(&scan, &[columns.expr(ids[0])]).unwrap().skew(keys as usize, false);
            assert!(skew.sampled > SAMPLE * 9 / 10 && skew.exponent < 0.65, "{skew}");
        }
    }

    #[test]
    fn keys_are_followed_to_their_table() {
        let mut columns = Columns::default();
        // All values of the second column are equal; two of three in the first one are NULL.
        let row = |i: i128| vec![if i % 3 == 0 { Value::Integer(i) } else { Value::Null }, Value::Integer(5)];
        let rows: Vec<Vec<Value>> = (0..9000).map(row).collect();
        let (scan, ids) = stored(&mut columns, &[DataType::Int64, DataType::Int64], &rows);
        let [first, second] = [0, 1].map(|i| columns.expr(ids[i]));
        let filter = Node::Filter(Filter {
            input: Box::new(scan),
            predicates: vec![Expr::compare(CompareOp::Lt, first.clone(), second.clone())],
        });
        let named = columns.add("named".to_string(), DataType::Int64, true);
        let computed = columns.add("computed".to_string(), DataType::Boolean, true);
        let computing = Expr::compare(CompareOp::Lt, first.clone(), second.clone());
        let exprs = vec![(named, second.clone()), (computed, computing)];
        let node = Node::Project(Project { input: Box::new(filter), exprs });
        let skew = |keys: &[Expr]| StoredKeys::of(&node, keys).map(|stored| stored.skew(1 << 20, false));
        let first_only = skew(std::slice::from_ref(&first)).unwrap();
        assert!((1200..1500).contains(&first_only.sampled) && first_only.repeated == 0, "{first_only}");
        let named_only = skew(&[columns.expr(named)]).unwrap();
        assert!(
            named_only.exponent == GREATEST && named_only.repeated == named_only.sampled - 1,
            "{named_only}"
        );
        let stored = StoredKeys::of(&node, std::slice::from_ref(&first)).unwrap();
        let with_nulls = stored.skew(1 << 20, true);
        assert!(with_nulls.sampled > 3900 && (0.6..0.7).contains(&with_nulls.most), "{with_nulls}");
        let both = skew(&[columns.expr(named), first]).unwrap();
        assert_eq!((both.sampled, both.repeated), (first_only.sampled, 0));
        assert!(skew(&[second, columns.expr(computed)]).is_none());
    }
}
