//! Samples: how many rows of a table satisfy the filters of a scan, found by testing them on a few rows.
//!
//! Statistics know one column at a time, and nothing of which values are frequent: they expect that a value
//! `IN` a list of four of ten thousand is rare, though half of the rows may have it, and take conditions on
//! several columns for independent. A sample sees them as they are.
//!
//! Nothing is stored. When a query is planned, the zones of up to [`BLOCKS`] blocks, spread over the table, are
//! tested first: dates come in order more often than not, and a year of a century is in few blocks, which a
//! sample of all would miss or overrate. [`RUNS`] short runs of slots are then spread over the blocks that may
//! have rows, and decoded, only the columns that filters read, which takes some ten microseconds a column. A
//! run's place within its part is pseudo-random, so that values that repeat at regular distances are not all
//! the same in it, and the same for the same table, so that plans are.
//!
//! A scan with filters that may fail, or give another answer when they are asked again, is not sampled.
//!
//! If no row of the sample satisfies the filters, statistics decide whether that is less than a row's share.

use super::values::position;
use crate::facts::relation_columns;
use crate::plan::{Columns, Sampled, Scan};
use crate::zone_test::ZoneTest;
use entasis_storage::{RowGroup, TableSnapshot};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, DataType, Selection, Vector};
use std::ops::Range;

/// Tables of fewer rows are not sampled: errors in them do little harm.
pub(crate) const LEAST_ROWS: u64 = 10_000;
/// The most blocks whose zones are tested.
const BLOCKS: usize = 256;
/// The most blocks whose bounds are looked at.
const BOUNDED: usize = 64;
/// The number of runs of slots.
const RUNS: usize = 64;
/// The slots of a run.
const RUN_SLOTS: usize = 16;
/// What is believed of filters that no row of a sample satisfies: half a row did.
const NONE: f64 = 0.5;

impl Sampled {
    /// The share of a table's rows that satisfy the filters, of which statistics believe that it is
    /// `believed`.
    pub(super) fn share(&self, believed: f64) -> f64 {
        match (self.rows, self.passed) {
            (0, _) => 0.0,
            (rows, 0) => believed.min(self.within * NONE / rows as f64),
            (rows, passed) => self.within * passed as f64 / rows as f64,
        }
    }
}

/// What a sample says of the filters of `scan`; `None` if there is no table, no filter that can be tested, or
/// the table is small.
pub(crate) fn sample(scan: &Scan, columns: &Columns) -> Option<Sampled> {
    let table = scan.relation.table().filter(|table| table.rows() >= LEAST_ROWS)?;
    let metas = relation_columns(&*scan.relation, &scan.columns, columns);
    let is_testable = |filter: &&Expr| {
        !filter.is_volatile()
            && Program::compile(&[(*filter).clone()], &metas).is_ok_and(|program| !program.is_fallible())
    };
    if scan.filters.is_empty() || !scan.filters.iter().all(|filter| is_testable(&filter)) {
        return None;
    }
    let mut read: Vec<ColumnId> = Vec::new();
    scan.filters.iter().for_each(|filter| filter.collect_columns(&mut read));
    let row_id = table.schema().len();
    let own = scan.columns.iter().zip(&metas).filter(|((id, _), _)| read.contains(id));
    let own: Vec<(usize, ColumnMeta)> = own.map(|((_, index), meta)| (*index, meta.clone())).collect();
    if own.iter().any(|(index, _)| *index == row_id) {
        return None;
    }
    let own_metas: Vec<ColumnMeta> = own.iter().map(|(_, meta)| meta.clone()).collect();
    let mut sampler = Sampler {
        machine: Machine::new(Program::compile(&scan.filters, &own_metas).ok()?),
        vectors: own.iter().map(|(_, meta)| Vector::new(meta.ty.physical())).collect(),
        columns: own,
        chunk: Chunk::new(),
        rows: 0,
        passed: 0,
    };
    let index = |id| scan.columns.iter().find(|(own, _)| *own == id).map(|(_, index)| *index);
    let tests: Vec<ZoneTest> =
        scan.filters.iter().filter_map(|filter| ZoneTest::of(filter, &index)).collect();
    let (blocks, within) = candidates(table, &tests);
    for (group, runs) in places(&blocks) {
        sampler.run(group, &runs)?;
    }
    let Sampler { rows, passed, .. } = sampler;
    let ranges = if within < 1.0 { ranges(scan, &blocks, columns) } else { Vec::new() };
    let sampled = Sampled { filters: scan.filters.len(), within, rows, passed, ranges };
    (rows > 0 || blocks.is_empty()).then_some(sampled)
}

/// The bounds of a scan's columns of numbers in some blocks.
fn ranges(scan: &Scan, blocks: &[Block<'_>], columns: &Columns) -> Vec<(ColumnId, (f64, f64))> {
    let few = || blocks.iter().step_by(blocks.len().div_ceil(BOUNDED).max(1));
    let bounds = |index: usize| {
        let of_block = |(group, block): &Block<'_>| {
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

/// A block: its row group and number.
type Block<'a> = (&'a RowGroup, usize);

/// Of blocks that are spread over the table those that have rows and satisfy all tests, and the share of rows
/// that is in them.
fn candidates<'a>(table: &'a TableSnapshot, tests: &[ZoneTest]) -> (Vec<Block<'a>>, f64) {
    let blocks: usize = table.row_groups().map(RowGroup::blocks).sum();
    let part = blocks.div_ceil(BLOCKS).max(1);
    let (mut found, mut rows, mut all) = (Vec::new(), 0, 0);
    let (mut before, mut number) = (0, 0);
    for group in table.row_groups() {
        let may_pass = tests.iter().all(|test| test.may_pass(&|column| group.column_zone(column)));
        loop {
            let block = number * part + scattered(number) % part;
            if block >= before + group.blocks() {
                break;
            }
            number += 1;
            let block = block - before;
            let own = group.block_rows(block);
            all += own;
            if own > 0
                && may_pass
                && tests.iter().all(|test| test.may_pass(&|column| group.zone(column, block)))
            {
                rows += own;
                found.push((group, block));
            }
        }
        before += group.blocks();
    }
    (found, rows as f64 / all.max(1) as f64)
}

/// The runs of slots, by row group: one in each equal part of the blocks, which are in the order of the table.
fn places<'a>(blocks: &[Block<'a>]) -> Vec<(&'a RowGroup, Vec<Range<usize>>)> {
    let mut places: Vec<(&RowGroup, Vec<Range<usize>>)> = Vec::new();
    let Some(block_slots) = blocks.first().map(|(group, _)| group.block_slots()) else { return places };
    let slots = blocks.len() * block_slots;
    let part = (slots / RUNS).max(RUN_SLOTS);
    for number in 0..RUNS {
        let start = number * part + scattered(number) % (part - RUN_SLOTS + 1);
        let Some((group, block)) = blocks.get(start / block_slots) else { break };
        // A run ends with its block, behind which another one may follow.
        let start = start % block_slots;
        let run = block * block_slots + start..block * block_slots + (start + RUN_SLOTS).min(block_slots);
        match places.last_mut() {
            Some((last, runs)) if std::ptr::eq(*last, *group) => runs.push(run),
            _ => places.push((group, vec![run])),
        }
    }
    places
}

/// A number that looks random and is always the same.
fn scattered(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize
}

/// Tests rows.
struct Sampler {
    machine: Machine,
    /// The columns that are read: index in the table.
    columns: Vec<(usize, ColumnMeta)>,
    vectors: Vec<Vector>,
    chunk: Chunk,
    rows: usize,
    passed: usize,
}

impl Sampler {
    /// Tests the live slots of these runs; `None` if a filter fails.
    fn run(&mut self, group: &RowGroup, runs: &[Range<usize>]) -> Option<()> {
        let slots: Vec<usize> = runs.iter().flat_map(Range::clone).collect();
        self.chunk.reset(slots.len());
        let dense = self.chunk.push_group(Selection::ALL);
        for ((index, meta), vector) in self.columns.iter().zip(&mut self.vectors) {
            group.decode_runs(*index, meta.ty.physical(), runs, vector);
            self.chunk.push_column(vector.clone(), dense);
        }
        let picks = self.machine.select(&self.chunk).ok()?;
        self.passed += picks.iter().filter(|&&pick| group.is_live(slots[usize::from(pick)])).count();
        self.rows += slots.iter().filter(|&&slot| group.is_live(slot)).count();
        self.chunk.reset(0);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::QueryContext;
    use crate::relation::{Relation, ScanRequest, Source, Statistics};
    use entasis_storage::{Datum, Table, TableOptions};
    use entasis_vector::expr::CompareOp;
    use entasis_vector::{DataType, Error, Field, Result, Schema, Value};
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

    /// A table of 20,000 rows: a number that repeats every 64 rows, and one that is 7 for nine rows in ten.
    fn scan(filter: impl Fn(&Expr, &Expr) -> Expr, rows: i128) -> (Scan, Columns) {
        let schema: Schema = ["a", "b"].map(|name| Field::new(name, DataType::Int64)).into();
        let options = TableOptions { block_slots: 128, group_slots: 1024, ..TableOptions::default() };
        let table = Table::with_options("t", schema, options);
        let mut writer = table.write();
        for i in 0..rows {
            let values = [i % 64, if i * 7919 % 10 == 0 { i } else { 7 }].map(Value::Integer);
            let datums: Vec<Datum<'_>> = values.iter().map(|v| Datum::of_value(v, DataType::Int64)).collect();
            writer.insert(&datums);
        }
        drop(writer);
        let mut columns = Columns::default();
        let ids = ["a", "b"].map(|name| columns.add(name, DataType::Int64, false));
        let filter = filter(&columns.expr(ids[0]), &columns.expr(ids[1]));
        let relation = Arc::new(Stored(table.snapshot()));
        let scan = Scan::all(relation, ids.into_iter().zip(0..).collect());
        (Scan { filters: vec![filter], ..scan }, columns)
    }

    fn share(filter: impl Fn(&Expr, &Expr) -> Expr) -> f64 {
        let (scan, columns) = scan(filter, 20_000);
        let sampled = sample(&scan, &columns).unwrap();
        assert_eq!(sampled.filters, 1);
        assert_eq!(sample(&scan, &columns), Some(sampled), "it is the same for the same table");
        sampled.share(1.0)
    }

    fn number(value: i128) -> Expr {
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

    #[test]
    fn what_may_fail_and_what_is_small_is_not_sampled() {
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
