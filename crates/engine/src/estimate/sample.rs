//! Samples: how many rows of a table satisfy the filters of a scan, found by testing them on a few rows.
//!
//! Statistics know one column at a time, and nothing of which values are frequent: they expect that a value
//! `IN` a list of four of ten thousand is rare, though half of the rows may have it, and take conditions on
//! several columns for independent. A sample sees them as they are.
//!
//! A sample of up to 16,384 rows is kept with each table ([`entasis_storage::RowSample`]). Dates come in
//! order more often than not, though, and a year of a century is in few blocks, which a sample of all rows
//! would miss or overrate. So the zones of row groups are tested, and then those of up to [`BLOCKS`] of
//! their blocks. If these leave so few blocks that the kept sample has less than [`ENOUGH`] rows in them,
//! [`RUNS`] short runs of slots are spread over them and decoded, only the columns that filters read,
//! which takes some ten microseconds a column. A run's place within its part is pseudo-random, so that
//! values that repeat at regular distances are not all the same in it, and the same for the same table, so
//! that plans are.
//!
//! A scan with filters that fail on a row of the sample, or give another answer when they are asked again, is
//! not sampled.
//!
//! If no row of the sample satisfies the filters, statistics decide whether that is less than a row's share.

use super::tester::{BlockPlace, Candidates, NONE, Tester, candidates, places, pruning_predicates};
use super::values::position;
use crate::plan::{Columns, Sampled, Scan};
use entasis_vector::{ColumnId, DataType};

/// Tables of fewer rows are not sampled: errors in them do little harm.
pub(crate) const LEAST_ROWS: u64 = 10_000;
/// The rows of a sample that are enough, as many as are looked at where the kept sample has fewer.
const ENOUGH: f64 = (RUNS * RUN_SLOTS) as f64;
/// The most blocks whose zones are tested.
const BLOCKS: usize = 256;
/// The most blocks whose bounds are looked at.
const BOUNDED: usize = 64;
/// The number of runs of slots.
const RUNS: usize = 64;
/// The slots of a run.
const RUN_SLOTS: usize = 16;

impl Sampled {
    /// The share of a table's rows that satisfy the filters, of which statistics believe that it is
    /// `believed`.
    pub(super) fn share(&self, believed: f64) -> f64 {
        match (self.rows, self.passed) {
            // No block may have such rows, of those that were looked at.
            (0, _) => believed.min(self.within),
            (rows, 0) => believed.min(self.within * NONE / rows as f64),
            (rows, passed) => self.within * passed as f64 / rows as f64,
        }
    }
}

/// What a sample says of the filters of `scan`; `None` if there is no table, no filter that can be tested, or
/// the table is small.
pub(crate) fn sample(scan: &Scan, columns: &Columns) -> Option<Sampled> {
    let table = scan.relation.table().filter(|table| table.rows() >= LEAST_ROWS)?;
    if scan.filters.is_empty() {
        return None;
    }
    let mut tester = Tester::of(scan, &[], columns)?;
    let (mut rows, mut passed) = (0, 0);
    let Candidates { blocks, within } = candidates(table, &pruning_predicates(scan), BLOCKS);
    let kept = table.row_sample();
    let is_enough = kept.rows() as f64 * within >= ENOUGH;
    if is_enough {
        rows += tester.test_sample(&kept, |_, _| passed += 1)?;
    } else {
        for (group, runs) in places(&blocks, (RUNS, RUN_SLOTS)) {
            rows += tester.test(group, &runs, |_, _| passed += 1)?;
        }
    }
    let ranges = if within < 1.0 { ranges(scan, &blocks, columns) } else { Vec::new() };
    let of = if is_enough { 1.0 } else { within };
    let sampled = Sampled { filters: scan.filters.len(), within: of, rows, passed, ranges };
    (rows > 0 || blocks.is_empty()).then_some(sampled)
}

/// The bounds of a scan's columns of numbers in some blocks.
fn ranges(scan: &Scan, blocks: &[BlockPlace<'_>], columns: &Columns) -> Vec<(ColumnId, (f64, f64))> {
    let few = || blocks.iter().step_by(blocks.len().div_ceil(BOUNDED).max(1));
    let bounds = |index: usize| {
        let of_block = |(group, block): &BlockPlace<'_>| {
            let zone = group.zone(index, *block);
            position(&zone.min).zip(position(&zone.max))
        };
        few().filter_map(of_block).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    };
    let stored = scan.relation.schema().len();
    let numbers = scan.columns.iter().filter(|(id, index)| {
        *index < stored && (columns.ty(*id).is_numeric() || columns.ty(*id) == DataType::Date)
    });
    numbers.filter_map(|(id, index)| Some((*id, bounds(*index)?))).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::context::QueryContext;
    use crate::relation::{Relation, ScanRequest, Source, Statistics};
    use entasis_storage::{Datum, Table, TableOptions, TableSnapshot};
    use entasis_vector::expr::{CompareOp, Expr};
    use entasis_vector::{Error, Field, Result, Schema, Value};
    use std::sync::Arc;

    #[derive(Debug)]
    struct Stored(TableSnapshot);

    impl Relation for Stored {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn schema(&self) -> &Schema {
            self.0.schema()
        }
        fn statistics(&self) -> Statistics {
            Statistics::default()
        }
        fn table(&self) -> Option<&TableSnapshot> {
            Some(&self.0)
        }
        fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
            Err(Error::internal("tables are scanned by the engine"))
        }
    }

    /// A table of numbers, `values` of each row, and a scan of it.
    pub(crate) fn table<const N: usize>(
        names: [&str; N],
        rows: i128,
        values: impl Fn(i128) -> [i128; N],
        columns: &mut Columns,
    ) -> Scan {
        let schema: Schema = names.map(|name| Field::new(name, DataType::Int64)).into();
        let options = TableOptions { block_slots: 128, group_slots: 1024, ..TableOptions::default() };
        let table = Table::with_options("t", schema, options);
        let mut writer = table.write();
        for row in 0..rows {
            let values = values(row).map(Value::Integer);
            let datums: Vec<Datum<'_>> = values.iter().map(|v| Datum::of_value(v, DataType::Int64)).collect();
            writer.insert(&datums);
        }
        drop(writer);
        let ids = names.map(|name| columns.add(name, DataType::Int64, false));
        Scan::all(Arc::new(Stored(table.snapshot())), ids.into_iter().zip(0..).collect())
    }

    /// A number that repeats every 64 rows, and one that is 7 for nine rows in ten.
    fn scan(filter: impl Fn(&Expr, &Expr) -> Expr, rows: i128) -> (Scan, Columns) {
        let mut columns = Columns::default();
        let values = |i: i128| [i % 64, if i * 7919 % 10 == 0 { i } else { 7 }];
        let scan = table(["a", "b"], rows, values, &mut columns);
        let [a, b] = [0, 1].map(|column| columns.expr(scan.columns[column].0));
        (Scan { filters: vec![filter(&a, &b)], ..scan }, columns)
    }

    fn share(filter: impl Fn(&Expr, &Expr) -> Expr) -> f64 {
        let (scan, columns) = scan(filter, 20_000);
        let sampled = sample(&scan, &columns).unwrap();
        assert_eq!(sampled.filters, 1);
        assert_eq!(sample(&scan, &columns).as_ref(), Some(&sampled), "it is the same for the same table");
        sampled.share(1.0)
    }

    pub(crate) fn number(value: i128) -> Expr {
        Expr::literal(Value::Integer(value), DataType::Int64)
    }

    #[test]
    fn frequent_values_and_regular_ones_are_seen_as_they_are() {
        let frequent = share(|_, b| Expr::compare(CompareOp::Eq, b.clone(), number(7)));
        assert!((0.8..1.0).contains(&frequent), "{frequent}");
        let regular = share(|a, _| Expr::compare(CompareOp::Lt, a.clone(), number(16)));
        assert!((0.15..0.35).contains(&regular), "{regular}");
        let none = share(|_, b| Expr::compare(CompareOp::Eq, b.clone(), number(8)));
        assert!(none > 0.0 && none < 0.001, "{none}");
    }

    #[test]
    fn rows_that_lie_together_are_found_by_their_zones() {
        let few = share(|_, b| Expr::compare(CompareOp::Gt, b.clone(), number(19_900)));
        assert!((0.0003..0.001).contains(&few), "nine rows of 20,000, in the last blocks: {few}");
        let none = share(|_, b| Expr::compare(CompareOp::Lt, b.clone(), number(0)));
        assert_eq!(none, 0.0, "all zones rule it out");
    }

    /// More blocks than are looked at: few rows that lie together are found by the zone of their row group,
    /// or believed to be few, and not none.
    #[test]
    fn rows_in_a_block_that_is_not_looked_at_are_not_ruled_out() {
        let of = |value: &dyn Fn(i128) -> i128, last: i128| {
            let mut columns = Columns::default();
            let scan = table(["a"], 100_000, |i| [value(i)], &mut columns);
            let filter = Expr::compare(CompareOp::Gt, columns.expr(scan.columns[0].0), number(last));
            let sampled = sample(&Scan { filters: vec![filter], ..scan }, &columns).unwrap();
            sampled.share(1.0)
        };
        // In order, the last hundred rows are in one row group of 98.
        let together = of(&|i| i, 99_899);
        assert!((0.0005..0.002).contains(&together), "{together}");
        // One row in a thousand has a large number, so that each row group may have some, and one block in 8.
        let apart = of(&|i| if i % 1_000 == 999 { 1_000_000 } else { i }, 500_000);
        assert!((0.0001..0.01).contains(&apart), "{apart}");
    }

    #[test]
    fn what_is_not_looked_at_may_have_rows() {
        // Each block has one value, and each row group two: no block may have a third, but if there are more
        // blocks than are looked at, that is not known.
        let of = |rows: i128, believed: f64| {
            let mut columns = Columns::default();
            let scan = table(["a"], rows, |i| [if i % 256 < 128 { 0 } else { 1_000 }], &mut columns);
            let filter = Expr::compare(CompareOp::Eq, columns.expr(scan.columns[0].0), number(500));
            sample(&Scan { filters: vec![filter], ..scan }, &columns).unwrap().share(believed)
        };
        assert_eq!(of(20_000, 0.5), 0.0);
        let unknown = of(100_000, 0.5);
        assert!((0.001..0.004).contains(&unknown), "{unknown}");
        assert_eq!(of(100_000, 0.0001), 0.0001, "statistics know better");
    }

    #[test]
    fn what_fails_and_what_is_small_is_not_sampled() {
        let divides = |a: &Expr, b: &Expr| {
            let quotient = Expr::Arithmetic {
                op: entasis_vector::expr::ArithmeticOp::Divide,
                left: Box::new(b.clone()),
                right: Box::new(a.clone()),
                ty: DataType::Int64,
            };
            Expr::compare(CompareOp::Gt, quotient, number(1))
        };
        let (failing, columns) = scan(divides, 20_000);
        assert_eq!(sample(&failing, &columns), None);
        let (small, columns) = scan(|a, _| Expr::compare(CompareOp::Lt, a.clone(), number(16)), 5_000);
        assert_eq!(sample(&small, &columns), None);
    }
}
