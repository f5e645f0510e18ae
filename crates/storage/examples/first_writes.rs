//! What the first writes to slices at rest take: `cargo run --release -p entasis-storage --example
//! first_writes -- [rows]`.
//!
//! A table with a layout key is loaded in the order of the key and rests, until upkeep has nothing left to
//! do: its rows are laid together and encoded for reading. Then every fourth slice is written, once each and
//! in random order, so that no write finds what another one has left in a neighbour. Before each run it is
//! counted how many of these slices are at rest, which must be all.
//!
//! | column | |
//! |---|---|
//! | first | the first insert into the slice |
//! | next | the [`NEXT`] inserts into the same slice that follow |
//! | update | the first update of one column, in a table that has rested as well |
//! | delete | the first delete |
//!
//! Rows of a quarter of all slices are timed one by one, with the median, the 99th and the 999th of a
//! thousand, in microseconds. *Beside* means that a snapshot is held, so that blocks are shared with a
//! reader.

mod resting;

use entasis_storage::{Datum, Layout, Table, TableOptions};
use entasis_vector::{DataType, Field, Schema, Value};
use resting::{load, mixed, rest};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Inserts into a slice after the first one.
const NEXT: usize = 40;
/// Every so manieth slice is written.
const STRIDE: usize = 4;
/// Keys of loaded rows are so far apart.
const APART: i64 = 1 << 10;

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    /// Numbers of 20 bits, as in the HAP benchmark: their codes are packed at rest.
    Numbers,
    /// In turn: numbers, multiples of a hundred, decimals as doubles, texts with few values, longer texts
    /// with many.
    Mixed,
}

impl Data {
    fn ty(self, column: usize) -> DataType {
        match (self, column % 5) {
            (Data::Numbers, _) | (_, 0) => DataType::Int32,
            (_, 1) => DataType::Int64,
            (_, 2) => DataType::Float64,
            _ => DataType::Varchar,
        }
    }

    fn value(self, key: i64, column: usize) -> Value {
        let number = mixed(key, column as u64) & 0xF_FFFF;
        match (self, column % 5) {
            (Data::Numbers, _) | (_, 0) => Value::Integer(number.into()),
            (_, 1) => Value::Integer(i128::from(number) * 100),
            (_, 2) => Value::Float(number as f64 / 100.0),
            (_, 3) => Value::Text(format!("kind {}", number % 9).into()),
            _ => Value::Text(format!("the text of number {number}").into()),
        }
    }
}

fn row(key: i64, payloads: usize, data: Data) -> Vec<Value> {
    let key_value = std::iter::once(Value::Integer(key.into()));
    key_value.chain((0..payloads).map(|column| data.value(key, column))).collect()
}

fn schema(payloads: usize, data: Data) -> Schema {
    let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let payload = (0..payloads).map(|c| Field { nullable: false, ..Field::new(format!("a{c}"), data.ty(c)) });
    std::iter::once(key).chain(payload).collect()
}

/// A table that has been loaded in the order of the key, and rests.
fn rested(rows: i64, payloads: usize, data: Data, options: TableOptions) -> Arc<Table> {
    let table = Table::with_options("t", schema(payloads, data), options);
    let keys: Vec<i64> = (0..rows).map(|number| number * APART).collect();
    load(&table, &keys, |key| row(key, payloads, data));
    settle(&table);
    table
}

/// Upkeep until nothing is left to do, and memory is returned.
fn settle(table: &Arc<Table>) {
    rest(table);
    table.sweep();
}

/// The bounds of the keys of every fourth slice, in random order, and how many of these are at rest.
fn targets(table: &Arc<Table>) -> (Vec<(i64, i64)>, usize) {
    let snapshot = table.snapshot();
    let (mut bounds, mut at_rest) = (Vec::new(), 0);
    for group in snapshot.row_groups() {
        // The greatest keys are left out: rows come behind them in another way.
        for block in (0..group.blocks().saturating_sub(1)).step_by(STRIDE) {
            let info = group.block_info(0, block);
            let (Value::Integer(low), Value::Integer(high)) = (&info.zone.min, &info.zone.max) else {
                continue;
            };
            bounds.push((*low as i64, *high as i64));
            at_rest += usize::from(info.is_settled && !info.is_hot);
        }
    }
    bounds.sort_by_key(|&(low, _)| mixed(low, 77));
    (bounds, at_rest)
}

/// Times in microseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn measure<R>(&mut self, operation: impl FnOnce() -> R) {
        let start = Instant::now();
        black_box(operation());
        self.0.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }

    fn shown(&mut self) -> String {
        self.0.sort_by(f64::total_cmp);
        let at = |share: f64| self.0[((self.0.len() as f64 * share) as usize).min(self.0.len() - 1)];
        let mean = self.0.iter().sum::<f64>() / self.0.len() as f64;
        format!("{:6.1}{:7.1}{:7.1}{mean:6.1}", at(0.5), at(0.99), at(0.999))
    }
}

/// Data of a row.
fn datums<'v>(values: &'v [Value], schema: &Schema) -> Vec<Datum<'v>> {
    values.iter().zip(schema).map(|(value, field)| Datum::of_value(value, field.ty)).collect()
}

/// Keys between the bounds of a slice that no loaded row has.
fn new_key((low, high): (i64, i64), number: usize) -> i64 {
    let loaded = low + mixed(low, number as u64).rem_euclid((high - low) / APART) * APART;
    loaded + 1 + number as i64
}

fn inserts(table: &Arc<Table>, payloads: usize, data: Data, targets: &[(i64, i64)], times: &mut [Times; 2]) {
    let schema = table.schema().clone();
    for &bounds in targets {
        for number in 0..=NEXT {
            let values = row(new_key(bounds, number), payloads, data);
            let row = datums(&values, &schema);
            times[usize::from(number > 0)].measure(|| {
                let mut writer = table.write();
                if writer.find(&row[..1]).is_none() {
                    writer.insert(&row);
                }
            });
        }
    }
}

fn updates(table: &Arc<Table>, payloads: usize, data: Data, targets: &[(i64, i64)], times: &mut Times) {
    let schema = table.schema().clone();
    for (number, &(low, high)) in targets.iter().enumerate() {
        let key = [Datum::Integer(((low / APART + high / APART) / 2 * APART).into())];
        let column = number % payloads;
        let value = data.value(low + 1, column);
        let datum = Datum::of_value(&value, schema[column + 1].ty);
        times.measure(|| {
            let mut writer = table.write();
            if let Some(id) = writer.find(&key) {
                writer.update(id, &[(column + 1, datum)]);
            }
        });
    }
}

fn deletes(table: &Arc<Table>, targets: &[(i64, i64)], times: &mut Times) {
    for &(low, high) in targets {
        let key = [Datum::Integer(((low / APART + high / APART) / 2 * APART).into())];
        times.measure(|| {
            let mut writer = table.write();
            if let Some(id) = writer.find(&key) {
                writer.delete(id);
            }
        });
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: i64 = args.first().map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    // Layout, share of ghosts.
    let kinds = [
        (Layout::Delta, 0.1),
        (Layout::EquiGhost, 0.01),
        (Layout::Casper, 0.01),
        (Layout::EquiGhost, 0.0),
        (Layout::Casper, 0.0),
    ];
    println!("{rows} rows, µs: median, 99 %, 99.9 %, mean");
    println!(
        "{:12}{:>6}{:>8}{:>4}{:>8}{:>14} {:>26}{:>26}{:>26}{:>26}",
        "layout", "ghost", "data", "+", "beside", "at rest", "first", "next", "update", "delete"
    );
    let is_wanted = |name: &str| args.len() < 2 || args[1..].iter().any(|arg| name.contains(arg.as_str()));
    for data in [Data::Numbers, Data::Mixed] {
        for payloads in [1, 4, 16] {
            for (layout, ghost) in kinds {
                if !is_wanted(&format!("{layout:?},{ghost},{data:?},{payloads}.")) {
                    continue;
                }
                let options = TableOptions { layout, ghost, unique: true, ..TableOptions::keyed(vec![0]) };
                for is_beside in [false, true] {
                    let table = rested(rows, payloads, data, options.clone());
                    let (slices, at_rest) = targets(&table);
                    let held = is_beside.then(|| table.snapshot());
                    let mut times = [const { Times(Vec::new()) }; 4];
                    let [first, next, update, delete] = &mut times;
                    let mut both = [std::mem::take(first), std::mem::take(next)];
                    inserts(&table, payloads, data, &slices, &mut both);
                    [*first, *next] = both;
                    drop(held);
                    // Between the others it rests again.
                    settle(&table);
                    let (slices, still) = targets(&table);
                    let held = is_beside.then(|| table.snapshot());
                    updates(&table, payloads, data, &slices, update);
                    drop(held);
                    settle(&table);
                    let (slices, last) = targets(&table);
                    let held = is_beside.then(|| table.snapshot());
                    deletes(&table, &slices, delete);
                    drop(held);
                    let shown: Vec<String> = times.iter_mut().map(Times::shown).collect();
                    println!(
                        "{:12}{:>6}{:>8}{:>4}{:>8}{:>14} {}",
                        format!("{layout:?}"),
                        ghost,
                        format!("{data:?}"),
                        payloads,
                        is_beside,
                        format!("{at_rest},{still},{last}"),
                        shown.join("")
                    );
                }
            }
        }
    }
}
