//! Every way to read a table, against single values.
//!
//! A scan reads runs of live slots one behind the other, so that the positions of a vector go from block to
//! block at any bit. So runs are taken as a scan takes them, and cut at random, with some left out and some
//! dead slots among them. Of these, columns are decoded whole, at some positions, and gathered, as they are
//! held and narrower; they are counted, summed, and compared with ranges and with codes of dictionaries.

use crate::tests::random::Random;
use crate::{
    CodeSet, Condition, Datum, Layout, RowGroup, RowId, Table, TableOptions, TableSnapshot, ValueRange,
};
use entasis_vector::{CHUNK_ROWS, DataType, Field, PhysicalType, Value, Vector};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Holds every way to read the rows of a snapshot against single values.
pub(crate) fn check_every_way(snapshot: &TableSnapshot, random: &mut Random) {
    for (number, group) in snapshot.row_groups().enumerate() {
        let windows = windows(group, random);
        for (column, field) in snapshot.schema().iter().enumerate() {
            let single =
                |slot: usize| snapshot.datum(RowId { group: number as u32, slot: slot as u32 }, column);
            let column = Column { group, column, ty: field.ty, single: &single };
            for runs in &windows {
                column.check_vectors(runs, random);
                column.check_conditions(runs, random);
                column.check_folds(runs, random);
            }
        }
    }
}

/// The rows of a row group in windows: as a scan takes them, then cut at random, then some of them only.
fn windows(group: &RowGroup, random: &mut Random) -> Vec<Vec<Range<usize>>> {
    let mut live = Vec::new();
    group.each_run(0..group.slots(), |run| live.push(run));
    let mut windows = packed(live.iter().cloned());
    let (mut end, mut cut) = (0, Vec::new());
    for run in &live {
        // Some dead slots before it come along now and then.
        let before = random.below((run.start - end) as u64 + 1) as usize;
        let start = if random.below(4) == 0 { run.start - before } else { run.start };
        end = run.end;
        let middle = start + random.below((end - start) as u64 + 1) as usize;
        cut.extend([start..middle, middle..end].into_iter().filter(|run| !run.is_empty()));
    }
    windows.extend(packed(cut.into_iter()));
    let mut some = Vec::new();
    for run in live {
        if random.below(3) > 0 {
            let rows = 1 + random.below(run.len() as u64) as usize;
            some.push(run.start..run.start + rows);
        }
    }
    windows.extend(packed(some.into_iter()));
    windows
}

/// Runs one behind the other in windows of a chunk's size.
fn packed(runs: impl Iterator<Item = Range<usize>>) -> Vec<Vec<Range<usize>>> {
    let mut windows: Vec<Vec<Range<usize>>> = Vec::new();
    let mut room = 0;
    for mut run in runs {
        while !run.is_empty() {
            if room == 0 {
                windows.push(Vec::new());
                room = CHUNK_ROWS;
            }
            let rows = run.len().min(room);
            windows.last_mut().expect("one was just begun").push(run.start..run.start + rows);
            (run.start, room) = (run.start + rows, room - rows);
        }
    }
    windows
}

/// A column of a row group, and what its live slots hold one by one.
struct Column<'a> {
    group: &'a RowGroup,
    column: usize,
    ty: DataType,
    single: &'a dyn Fn(usize) -> Datum<'a>,
}

impl Column<'_> {
    fn check(&self, vector: &Vector, position: usize, slot: usize, how: &str) {
        let (found, expected) = (Datum::of_vector(vector, position), (self.single)(slot));
        let Column { column, ty, .. } = self;
        assert!(
            found.is_same(expected),
            "{how}: column {column}, {ty}, slot {slot}: {found:?} is not {expected:?}"
        );
    }

    /// Runs decoded whole, at some positions, and gathered.
    fn check_vectors(&self, runs: &[Range<usize>], random: &mut Random) {
        let slots: Vec<usize> = runs.iter().flat_map(Range::clone).collect();
        let held = self.ty.physical();
        let fits = |physical: &PhysicalType| {
            let holds = |slot: &usize| match (self.single)(*slot) {
                Datum::Integer(value) => physical.holds((value, value)),
                _ => true,
            };
            let is_narrower = self.ty.is_integer() && physical.width() < held.width();
            is_narrower
                && (0..self.group.slots()).filter(|slot| self.group.is_live(*slot)).all(|slot| holds(&slot))
        };
        let narrower = [PhysicalType::I32, PhysicalType::I64].into_iter().find(fits);
        for physical in std::iter::once(held).chain(narrower) {
            let mut out = Vector::new(physical);
            self.group.decode_runs(self.column, held, runs, &mut out);
            let live = |(_, slot): &(usize, &usize)| self.group.is_live(**slot);
            slots
                .iter()
                .enumerate()
                .filter(live)
                .for_each(|(at, slot)| self.check(&out, at, *slot, "decoded"));
            for every in [1, 3, 40] {
                let positions = slots.iter().enumerate().filter(live).filter(|_| random.below(every) == 0);
                let positions: Vec<u16> = positions.map(|(at, _)| at as u16).collect();
                self.group.decode_selected_runs(self.column, held, runs, &positions, &mut out);
                positions
                    .iter()
                    .for_each(|&at| self.check(&out, at.into(), slots[usize::from(at)], "selected"));
                self.group.gather_runs(self.column, held, runs, &positions, &mut out);
                let gathered = positions.iter().enumerate();
                gathered.for_each(|(i, &at)| self.check(&out, i, slots[usize::from(at)], "gathered"));
            }
        }
    }

    /// Positions in runs where a condition holds.
    fn check_condition(
        &self,
        runs: &[Range<usize>],
        condition: Condition,
        holds: impl Fn(Datum<'_>) -> bool,
    ) {
        let mut selected = Vec::new();
        self.group.select_runs(std::slice::from_ref(&condition), runs, &mut selected);
        let slots = runs.iter().flat_map(Range::clone).enumerate();
        let twin = slots.filter(|&(_, slot)| self.group.is_live(slot) && holds((self.single)(slot)));
        let twin: Vec<u16> = twin.map(|(at, _)| at as u16).collect();
        assert_eq!(selected, twin, "column {}, {}: {condition:?} in {runs:?}", self.column, self.ty);
    }

    /// Ranges around a value, and sets of codes.
    fn check_conditions(&self, runs: &[Range<usize>], random: &mut Random) {
        let physical = self.ty.physical();
        let is_float = matches!(physical, PhysicalType::F32 | PhysicalType::F64);
        let is_integer = physical.is_integer() && self.ty != DataType::Boolean;
        let first = runs.iter().flat_map(Range::clone).find(|&slot| self.group.is_live(slot));
        if is_integer || is_float {
            let ordinal = |datum: Datum<'_>| datum.value(self.ty).ordinal();
            let middle = first.and_then(|slot| ordinal((self.single)(slot))).unwrap_or(0);
            let low = middle - i128::from(random.below(3));
            let (low, high) =
                [(low, middle + 2), (i128::MIN, middle), (low, i128::MAX)][random.below(3) as usize];
            let range = ValueRange { column: self.column, physical, low, high };
            self.check_condition(runs, Condition::Range(range), |datum| {
                ordinal(datum).is_some_and(|value| (low..=high).contains(&value))
            });
        }
        if let Some(dictionary) = self.group.dictionary(self.column, runs) {
            let entries: Vec<bool> = (0..dictionary.len()).map(|_| random.below(2) == 0).collect();
            let null = random.below(2) == 0;
            let text = |code: usize| Datum::of_vector(dictionary.values(), code);
            let set = Arc::new(CodeSet::new(dictionary.clone(), entries.clone(), null));
            self.check_condition(runs, Condition::Codes(self.column, set), |datum| match datum {
                Datum::Null => null,
                datum => (0..entries.len()).any(|code| entries[code] && text(code).is_same(datum)),
            });
        }
    }

    /// Counts, sums and extremes of the live slots of runs.
    fn check_folds(&self, runs: &[Range<usize>], random: &mut Random) {
        let physical = self.ty.physical();
        if !physical.is_integer() || self.ty == DataType::Boolean {
            return;
        }
        let mut live = Vec::new();
        for run in runs {
            self.group.each_run(run.clone(), |own| live.push(run.start + own.start..run.start + own.end));
        }
        let values = live.iter().flat_map(Range::clone).filter_map(|slot| match (self.single)(slot) {
            Datum::Integer(value) => Some(value),
            _ => None,
        });
        let values: Vec<i128> = values.collect();
        let what = format!("column {}, {} in {live:?}", self.column, self.ty);
        assert_eq!(self.group.count_runs(self.column, &live), values.len(), "count of {what}");
        assert_eq!(
            self.group.sum_runs(self.column, physical, &live),
            values.iter().sum::<i128>(),
            "sum of {what}"
        );
        let start = i128::from(random.below(50));
        let (least, most) =
            values.iter().fold((start, start), |(least, most), &v| (least.min(v), most.max(v)));
        assert_eq!(
            self.group.extreme_runs(self.column, physical, &live, false, start),
            least,
            "least of {what}"
        );
        assert_eq!(
            self.group.extreme_runs(self.column, physical, &live, true, start),
            most,
            "greatest of {what}"
        );
    }
}

/// Does upkeep until nothing is warm or left to do.
pub(crate) fn rest(table: &Arc<Table>) {
    let mut is_busy = true;
    while is_busy {
        let done = table.upkeep(Duration::from_secs(60));
        is_busy = !done.is_done || done.warm + done.spread + done.encoded + done.overtaken > 0;
    }
}

fn pair(key: i128, text: Option<&str>) -> Vec<Value> {
    vec![Value::Integer(key), text.map_or(Value::Null, |text| Value::Text(text.into()))]
}

fn pairs(layout: Layout) -> Arc<Table> {
    let schema = vec![Field::new("m0", DataType::Int32), Field::new("s3", DataType::Varchar)];
    Table::with_options("r1", schema, TableOptions { layout, ghost: 0.1, ..TableOptions::keyed(vec![0]) })
}

#[test]
fn a_block_that_ends_in_null_says_nothing_of_the_next_one() {
    // Two slices, of which the first has a row or more and then NULL: dead slots are filled with it when the
    // table rests.
    let table = pairs(Layout::Equi);
    crate::table::tests::rows::insert(&table, &[pair(1, Some("a"))], false);
    crate::table::tests::rows::insert(&table, &vec![pair(1, Some("a")); 3], false);
    crate::table::tests::rows::insert(&table, &[pair(5, Some("c")), pair(0, None)], false);
    rest(&table);
    let snapshot = table.snapshot();
    let group = snapshot.row_group(0).unwrap();
    assert_eq!(group.blocks(), 2);
    let mut runs = Vec::new();
    group.each_run(0..group.slots(), |run| runs.push(run));
    let mut out = Vector::new(PhysicalType::Str);
    group.decode_runs(1, PhysicalType::Str, &runs, &mut out);
    let texts: Vec<Value> = (0..6).map(|at| out.value(at, DataType::Varchar)).collect();
    let text = |text: &str| Value::Text(text.into());
    assert_eq!(texts, [text("a"), Value::Null, text("a"), text("a"), text("a"), text("c")]);
    check_every_way(&snapshot, &mut Random(1));
}

#[test]
fn a_null_that_was_deleted_says_nothing_of_the_next_block() {
    // The same without upkeep: the slot of a deleted row keeps its NULL, and a scan goes on to the next
    // slice.
    let table = pairs(Layout::Equi);
    let text = |key: i128| if (1..1024).contains(&key) { None } else { Some("b") };
    let rows: Vec<Vec<Value>> = (0..2048).map(|key| pair(key, text(key))).collect();
    crate::table::tests::rows::insert(&table, &rows, false);
    let snapshot = table.snapshot();
    let nulls: Vec<RowId> = snapshot.row_ids().filter(|&id| snapshot.datum(id, 1).is_null()).collect();
    drop(snapshot);
    table.write().delete_many(&nulls);
    assert_eq!(table.rows(), 1025);
    (1..9).for_each(|seed| check_every_way(&table.snapshot(), &mut Random(seed)));
}

#[test]
fn tables_that_rest_are_read_alike_in_every_layout() {
    let layouts =
        [Layout::Insertion, Layout::Sorted, Layout::Delta, Layout::Equi, Layout::EquiGhost, Layout::Casper];
    for layout in layouts {
        let table = pairs(layout);
        let rows: Vec<Vec<Value>> = (0..1000).map(|i| pair(i * 10, Some("a"))).collect();
        crate::table::tests::rows::insert(&table, &rows, false);
        crate::table::tests::rows::insert(
            &table,
            &[pair(-2, None), pair(-1, Some("abc")), pair(-1, None)],
            false,
        );
        for round in 0..3 {
            rest(&table);
            check_every_way(&table.snapshot(), &mut Random(round + 1));
            let text = format!("a text that is longer, {round}");
            crate::table::tests::rows::insert(
                &table,
                &[pair(i128::from(round), None), pair(7777, Some(&text))],
                false,
            );
        }
        assert_eq!(table.rows(), 1009);
    }
}
