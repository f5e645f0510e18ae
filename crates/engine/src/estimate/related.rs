//! Columns of a small table that are related to others of it, found by counting.
//!
//! A calendar has the days of two centuries, with the numbers of their weeks and months. A filter that
//! leaves a year of it leaves 53 weeks, and sales of five years meet 262. Statistics tell neither: they
//! expect one year to have nearly as many weeks as days, and sales to be of any week of two centuries. So
//! all rows of the table that satisfy its filters, and those that have a partner in a join by its key, are
//! counted when the query is planned, if the zones of blocks lead to few of them.

use super::tester::{Tester, candidates, pruning_predicates};
use super::values::position;
use crate::plan::{Columns, Related, Scan};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{CHUNK_ROWS, ColumnId, DataType, Value, Vector};
use std::collections::HashSet;

/// The most rows of the table.
const SMALL: u64 = 100_000;
/// The most rows that are counted.
const ROWS: f64 = 8192.0;

/// The bounds of a key within which a join has partners for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    pub(crate) key: ColumnId,
    pub(crate) range: (f64, f64),
    /// The share of the table's rows that is within.
    pub(crate) share: f64,
}

/// What the rows of `scan` say of its columns `wanted`: those that satisfy the filters, of which
/// `expected` are expected, and those that meet a partner. Nothing if the table is not small, or there are
/// many of them.
pub(crate) fn related(
    scan: &Scan,
    met: Option<Met>,
    wanted: &[ColumnId],
    expected: f64,
    columns: &Columns,
) -> Vec<Related> {
    let Some(table) = scan.relation.table().filter(|table| table.rows() <= SMALL) else { return Vec::new() };
    let unfiltered = Scan { filters: Vec::new(), ..scan.clone() };
    let within = met.filter(|met| met.share * table.rows() as f64 <= ROWS);
    let domains = within.and_then(|met| count(&met.bounded(&unfiltered, columns)?, wanted, columns));
    let is_filtered = !scan.filters.is_empty() && expected <= ROWS;
    let left = if is_filtered { count(scan, wanted, columns) } else { None };
    let one = |at: usize| Related {
        column: wanted[at],
        domain: domains.as_ref().map(|counted| counted[at].domain()),
        distinct: left.as_ref().map(|counted| counted[at].distinct.len() as f64),
    };
    (0..wanted.len()).map(one).collect()
}

impl Met {
    /// The rows of a scan that are within the bounds.
    fn bounded(&self, scan: &Scan, columns: &Columns) -> Option<Scan> {
        let ty = columns.ty(self.key);
        ty.integer_range()?;
        let bound = |op, value: f64| {
            let value = Expr::literal(Value::Integer(value as i128), ty);
            Expr::compare(op, columns.expr(self.key), value)
        };
        let (low, high) = self.range;
        let filters = vec![bound(CompareOp::GtEq, low), bound(CompareOp::LtEq, high)];
        Some(Scan { filters, ..scan.clone() })
    }
}

/// The values of a column.
#[derive(Debug, Default)]
struct Counted {
    distinct: HashSet<Value>,
    range: Option<(f64, f64)>,
}

impl Counted {
    fn add(&mut self, value: Value) {
        if let Some(place) = position(&value) {
            let (low, high) = self.range.unwrap_or((place, place));
            self.range = Some((low.min(place), high.max(place)));
            self.distinct.insert(value);
        }
    }

    fn domain(&self) -> (f64, Option<(f64, f64)>) {
        (self.distinct.len() as f64, self.range)
    }
}

/// The values of columns in the rows of a scan; `None` if a filter may fail.
fn count(scan: &Scan, wanted: &[ColumnId], columns: &Columns) -> Option<Vec<Counted>> {
    let mut tester = Tester::of(scan, wanted, columns)?;
    let types: Vec<DataType> = wanted.iter().map(|id| columns.ty(*id)).collect();
    let mut counted: Vec<Counted> = wanted.iter().map(|_| Counted::default()).collect();
    let mut add = |row: usize, vectors: &[Vector]| {
        for ((counted, vector), ty) in counted.iter_mut().zip(vectors).zip(&types) {
            counted.add(vector.value(row, *ty));
        }
    };
    for (group, block) in candidates(scan.relation.table()?, &pruning_predicates(scan), usize::MAX).blocks {
        let first = block * group.block_slots();
        for start in (first..first + group.block_slots()).step_by(CHUNK_ROWS) {
            let run = start..(start + CHUNK_ROWS).min(first + group.block_slots());
            tester.test(group, &[run], &mut add)?;
        }
    }
    Some(counted)
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{number, table};
    use super::*;

    #[test]
    fn weeks_of_the_days_that_are_left_are_counted() {
        let mut columns = Columns::default();
        let days = table(["id", "week", "year"], 40_000, |i| [i, i / 7, i / 365], &mut columns);
        let [id, week, year] = [0, 1, 2].map(|at| days.columns[at].0);
        let filter = Expr::compare(CompareOp::Eq, columns.expr(year), number(40));
        let filtered = Scan { filters: vec![filter], ..days.clone() };
        let met = Met { key: id, range: (10_000.0, 11_825.0), share: 0.05 };
        let of = |scan: &Scan, met, expected| {
            let found = related(scan, met, &[week], expected, &columns);
            found.first().map(|found| (found.domain, found.distinct))
        };
        let domain = Some((262.0, Some((1_428.0, 1_689.0))));
        assert_eq!(of(&days, Some(met), 40_000.0), Some((domain, None)));
        assert_eq!(of(&filtered, Some(met), 365.0), Some((domain, Some(53.0))));
        assert_eq!(of(&filtered, None, 365.0), Some((None, Some(53.0))));
        assert_eq!(of(&filtered, None, 10_000.0), Some((None, None)), "many rows are expected");
        let wide = Met { share: 0.5, ..met };
        assert_eq!(of(&days, Some(wide), 40_000.0), Some((None, None)), "many rows have a partner");
    }
}
