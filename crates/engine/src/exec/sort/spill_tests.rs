//! Sorts in temporary files against a stable sort of rows of values: all types, NULLs, ties, limits, and
//! every amount of memory.

use super::tests::{compare, input, make_rows};
use super::*;
use crate::exec::testing::{Chance, column, drain, push_all};
use crate::memory::MemoryBudget;
use crate::settings::{Settings, Spilling, TempCompression};
use entasis_vector::{DataType, ErrorKind, Value};

/// Column, descending, NULLs first.
type Keys<'a> = &'a [(usize, bool, bool)];

/// A sort and its input.
struct Case<'a> {
    metas: Vec<ColumnMeta>,
    rows: &'a [Vec<Value>],
    keys: Keys<'a>,
    limit: Option<usize>,
    settings: Settings,
    memory: usize,
    workers: usize,
}

/// The outcome of it.
struct Outcome {
    rows: Result<Vec<Vec<Value>>>,
    notes: Vec<String>,
    peak: usize,
}

impl<'a> Case<'a> {
    fn new(rows: &'a [Vec<Value>], keys: Keys<'a>) -> Case<'a> {
        let settings = Settings { temp_compression: TempCompression::Off, ..Settings::default() };
        Case { metas: input(), rows, keys, limit: None, settings, memory: usize::MAX, workers: 2 }
    }

    fn spilling(mut self, sort_spill: Spilling, chunk_rows: usize) -> Case<'a> {
        (self.settings.sort_spill, self.settings.chunk_rows) = (sort_spill, chunk_rows);
        self
    }

    fn run(&self) -> Outcome {
        let key = |&(column, descending, nulls_first): &(usize, bool, bool)| SortKey {
            expr: Expr::column(self.metas[column].id, self.metas[column].ty),
            descending,
            nulls_first,
        };
        let keys: Vec<SortKey> = self.keys.iter().map(key).collect();
        let memory = Arc::new(MemoryBudget::new(self.memory));
        let context =
            QueryContext { settings: Arc::new(self.settings.clone()), memory, ..QueryContext::default() };
        let recorder = Recorder::new(String::new());
        let chunk_rows = self.settings.chunk_rows;
        let rows = (|| {
            let blocking = sort(&self.metas, &keys, self.limit, None, &context, &recorder)?;
            push_all(&*blocking.sink, &self.metas, self.rows, chunk_rows, self.workers, &mut Chance(99))?;
            drain(&*blocking.source, &self.metas, chunk_rows)
        })();
        assert_eq!((context.memory.used(), context.temp.used()), (0, 0), "all is given back");
        assert!(context.memory.peak() <= self.memory);
        Outcome { rows, notes: recorder.report().details, peak: context.memory.peak() }
    }

    fn expected(&self) -> Vec<Vec<Value>> {
        let mut expected = self.rows.to_vec();
        expected.sort_by(|a, b| compare(self.keys, a, b));
        expected.truncate(self.limit.unwrap_or(usize::MAX));
        expected
    }

    /// Runs it and compares; returns the notes.
    fn check(&self) -> Vec<String> {
        let outcome = self.run();
        self.compare(&outcome.rows.unwrap());
        outcome.notes
    }

    fn compare(&self, rows: &[Vec<Value>]) {
        let expected = self.expected();
        let Settings { sort_spill, chunk_rows, .. } = self.settings;
        assert_eq!(rows.len(), expected.len());
        for (i, (got, expected)) in rows.iter().zip(&expected).enumerate() {
            assert_eq!(
                got, expected,
                "row {i} by {:?} limit {:?}, {sort_spill}, chunks of {chunk_rows}",
                self.keys, self.limit
            );
        }
    }
}

fn has_runs(notes: &[String]) -> bool {
    notes.iter().any(|note| note.contains("sorted runs in temporary files"))
}

#[test]
fn orders_in_files_agree_with_the_twin() {
    let rows = make_rows(1500, &mut Chance(31));
    let orders: [Keys<'_>; 11] = [
        &[(0, false, false)],
        &[(0, true, true)],
        &[(1, false, true)],
        &[(1, true, false)],
        &[(2, true, false), (6, false, true)],
        &[(3, true, true)],
        &[(3, false, false), (2, false, false), (1, true, true)],
        &[(5, false, false), (4, true, false)],
        &[(6, true, false), (0, false, false)],
        &[(2, false, false), (3, false, true), (5, true, false), (0, false, false), (1, true, false)],
        &[],
    ];
    for keys in orders {
        for (sort_spill, chunk_rows, workers) in [
            (Spilling::All, 3, 2),
            (Spilling::All, 2048, 3),
            (Spilling::Deep, 3, 3),
            (Spilling::Deep, 100, 1),
        ] {
            for temp_compression in [TempCompression::Off, TempCompression::On] {
                let mut case = Case { workers, ..Case::new(&rows, keys) }.spilling(sort_spill, chunk_rows);
                case.settings.temp_compression = temp_compression;
                let notes = case.check();
                assert!(has_runs(&notes), "{notes:?}");
                if sort_spill == Spilling::Deep && chunk_rows == 3 {
                    assert!(notes.iter().any(|note| note.contains("passes")), "{notes:?}");
                }
            }
        }
    }
}

#[test]
fn a_limit_ends_runs_and_the_merge() {
    let rows = make_rows(MOST_TOP_ROWS + 9000, &mut Chance(32));
    for limit in [MOST_TOP_ROWS + 1, MOST_TOP_ROWS + 5000, MOST_TOP_ROWS + 9000, MOST_TOP_ROWS + 10_000] {
        for keys in [&[(1, true, false), (0, false, false)][..], &[(4, false, false)]] {
            let case = Case { limit: Some(limit), ..Case::new(&rows, keys) }.spilling(Spilling::All, 512);
            assert!(has_runs(&case.check()));
        }
    }
}

/// Keys in order, in reverse, all equal, and with one that is much longer than the others.
#[test]
fn runs_that_do_not_overlap_and_runs_that_are_equal() {
    let metas = vec![column(0, DataType::Int64), column(1, DataType::Varchar), column(2, DataType::Int64)];
    let make = |key: &dyn Fn(i128) -> i128| -> Vec<Vec<Value>> {
        let text =
            |i: i128| if i % 1000 == 7 { "long ".repeat(3000) } else { format!("a text of number {i}") };
        (0..20_000)
            .map(|i| vec![Value::Integer(key(i)), Value::Text(text(i).into()), Value::Integer(i)])
            .collect()
    };
    let inputs: [&dyn Fn(i128) -> i128; 5] = [&|i| i, &|i| -i, &|_| 1, &|i| i / 3000, &|i| i % 2];
    for key in inputs {
        let rows = make(key);
        for keys in [&[(0, false, false)][..], &[(0, true, false)], &[(0, false, false), (1, false, false)]] {
            for (sort_spill, memory) in
                [(Spilling::All, usize::MAX), (Spilling::Deep, usize::MAX), (Spilling::Auto, 1 << 20)]
            {
                let case =
                    Case { metas: metas.clone(), memory, ..Case::new(&rows, keys) }.spilling(sort_spill, 200);
                assert!(has_runs(&case.check()));
            }
        }
    }
}

/// Types that the other tests lack, and more of them than fit into a code.
#[test]
fn keys_of_all_integer_types() {
    use DataType::{Date, Int8, Int16, UInt8, UInt16, UInt32, UInt64};
    let types = [UInt64, Int8, UInt8, Int16, UInt16, UInt32, Date, DataType::Int64];
    let metas: Vec<ColumnMeta> = types.into_iter().enumerate().map(|(i, ty)| column(i as u32, ty)).collect();
    let mut chance = Chance(37);
    let mut value = |ty: DataType| {
        let (min, max) = ty.integer_range().unwrap_or((-40_000, 40_000));
        match chance.below(8) {
            0 => Value::Null,
            1 => Value::Integer(min),
            2 => Value::Integer(max),
            _ => Value::Integer((min + i128::from(chance.below(3))).min(max)),
        }
    };
    let rows: Vec<Vec<Value>> = (0..3000)
        .map(|i| {
            let keys = types[..7].iter().map(|ty| value(*ty));
            keys.chain([Value::Integer(i)]).collect()
        })
        .collect();
    let all: Vec<(usize, bool, bool)> = (0..7).map(|i| (i, i % 2 == 1, i % 3 == 1)).collect();
    let singles = all.iter().map(std::slice::from_ref);
    for keys in singles.chain([&all[..]]) {
        for sort_spill in [Spilling::All, Spilling::Deep] {
            let case = Case { metas: metas.clone(), ..Case::new(&rows, keys) }.spilling(sort_spill, 50);
            assert!(has_runs(&case.check()));
        }
    }
}

/// The least memory that sorts of these tests need.
const ENOUGH: usize = 512 << 10;

#[test]
fn every_amount_of_memory_gives_the_rows_or_an_error() {
    let rows = make_rows(20_000, &mut Chance(33));
    let keys: Keys<'_> = &[(1, false, false), (2, true, false)];
    let mut case = Case::new(&rows, keys).spilling(Spilling::Auto, 256);
    let all = case.run().peak;
    assert!(all > 2 << 20, "{all}");
    let expected = case.expected();
    let (mut failed, mut in_files, mut in_memory) = (0, 0, 0);
    let mut memory = 1 << 10;
    while memory < 2 * all {
        case.memory = memory;
        let outcome = case.run();
        match outcome.rows {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Resource, "{error}");
                assert!(memory < ENOUGH, "{memory} bytes: {error}");
                failed += 1;
            }
            Ok(rows) => {
                assert!(rows == expected, "{memory} bytes");
                if has_runs(&outcome.notes) { in_files += 1 } else { in_memory += 1 }
            }
        }
        memory += memory / 7;
    }
    assert!(failed > 0 && in_files > 10 && in_memory > 0, "{failed} {in_files} {in_memory}");
}

#[test]
fn without_files_what_does_not_fit_fails() {
    let rows = make_rows(20_000, &mut Chance(34));
    for sort_spill in [Spilling::Auto, Spilling::All] {
        let mut case = Case::new(&rows, &[(0, false, false)]).spilling(sort_spill, 256);
        case.settings.temp_directory = "".into();
        assert!(!has_runs(&case.check()));
        case.memory = 1 << 20;
        assert_eq!(case.run().rows.unwrap_err().kind(), ErrorKind::Resource);
    }
}

#[test]
fn files_that_are_too_large_or_nowhere_fail() {
    let rows = make_rows(5000, &mut Chance(35));
    let mut case = Case::new(&rows, &[(0, false, false)]).spilling(Spilling::All, 256);
    case.settings.max_temp_directory_size = 100_000;
    assert_eq!(case.run().rows.unwrap_err().kind(), ErrorKind::Resource);
    case.settings.max_temp_directory_size = u64::MAX;
    case.settings.temp_directory = "/nowhere/at/all".into();
    assert_eq!(case.run().rows.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn no_rows_make_no_runs() {
    for sort_spill in [Spilling::All, Spilling::Deep] {
        assert!(!has_runs(&Case::new(&[], &[(0, false, false)]).spilling(sort_spill, 3).check()));
    }
}

#[test]
fn a_cancelled_merge_ends() {
    let metas = input();
    let rows = make_rows(3000, &mut Chance(36));
    let settings = Settings { sort_spill: Spilling::All, ..Settings::default() };
    let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
    let key = SortKey { expr: Expr::column(metas[0].id, metas[0].ty), descending: false, nulls_first: false };
    let blocking = sort(&metas, &[key], None, None, &context, &Recorder::new(String::new())).unwrap();
    push_all(&*blocking.sink, &metas, &rows, 100, 2, &mut Chance(1)).unwrap();
    assert_eq!(blocking.source.progress(), Some(0.0));
    let mut worker = blocking.source.worker().unwrap();
    context.cancel.raise();
    assert_eq!(worker.next(&mut Chunk::new()).unwrap_err().kind(), ErrorKind::Interrupted);
    drop((worker, blocking));
    assert_eq!((context.memory.used(), context.temp.used()), (0, 0));
}
