//! What it costs to count operations: `cargo run --release -p entasis-storage --example counting [rows]`.
//!
//! Tables with the same rows and partitions, which count one operation in eight, all of them, or none, are
//! asked and changed in turn, so that whatever else the machine does meets all alike. Printed are the least
//! and the median of the rounds, in nanoseconds an operation.

use entasis_storage::{CounterOptions, Datum, Layout, Table, TableOptions};
use entasis_vector::{Chunk, DataType, Field, Selection, Vector};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 25;
const OPERATIONS: u64 = 40_000;
const COLUMNS: usize = 17;

fn table(rows: u64, layout: Layout, every: u32) -> Arc<Table> {
    let mut schema = vec![Field { nullable: false, ..Field::new("k", DataType::Int64) }];
    schema.extend(
        (1..COLUMNS).map(|i| Field { nullable: false, ..Field::new(format!("a{i}"), DataType::Int32) }),
    );
    let counters = CounterOptions { every, ..CounterOptions::default() };
    let options = TableOptions { layout, unique: true, counters, ..TableOptions::keyed(vec![0]) };
    let table = Table::with_options("t", schema, options);
    let mut appender = table.appender();
    for (morsel, first) in (0..rows).step_by(2048).enumerate() {
        let count = (rows - first).min(2048) as usize;
        let mut chunk = Chunk::new();
        chunk.reset(count);
        let group = chunk.push_group(Selection::ALL);
        for column in 0..COLUMNS {
            let ty = if column == 0 { DataType::Int64 } else { DataType::Int32 };
            let mut vector = Vector::new(ty.physical());
            vector.begin(count);
            for i in 0..count {
                let value = entasis_vector::Value::Integer(i128::from((first + i as u64) * 16));
                vector.write_value(i, &value).expect("it fits");
            }
            chunk.push_column(vector, group);
        }
        appender.append(&chunk, morsel as u64).expect("rows are as declared");
    }
    table.commit(vec![appender.finish()]).expect("there is memory");
    table
}

fn main() {
    let rows: u64 = std::env::args().nth(1).map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    let kinds = [
        ("equi_ghost", Layout::EquiGhost, 8),
        ("casper, counts none", Layout::Casper, 0),
        ("casper, counts one in 8", Layout::Casper, 8),
        ("casper, counts all", Layout::Casper, 1),
    ];
    let tables: Vec<Arc<Table>> =
        kinds.iter().map(|(_, layout, every)| table(rows, *layout, *every)).collect();
    let mut times = vec![[const { Vec::new() }; 3]; tables.len()];
    let mut random = 88_172_645_463_325_252u64;
    for _ in 0..ROUNDS {
        let start_state = random;
        for (table, times) in tables.iter().zip(&mut times) {
            random = start_state;
            let mut next = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                Datum::Integer(i128::from(random % (rows * 16)))
            };
            let mut measured = |kind: usize, operation: &mut dyn FnMut(Datum<'static>)| {
                let start = Instant::now();
                (0..OPERATIONS).for_each(|_| operation(next()));
                times[kind].push(start.elapsed().as_nanos() as f64 / OPERATIONS as f64);
            };
            let snapshot = table.snapshot();
            measured(0, &mut |key| {
                black_box(snapshot.find(&[key]));
            });
            drop(snapshot);
            measured(1, &mut |key| {
                let mut row = vec![Datum::Integer(7); COLUMNS];
                row[0] = key;
                table.write().insert(&row);
            });
            measured(2, &mut |key| {
                let mut writer = table.write();
                if let Some(id) = writer.find(&[key]) {
                    writer.delete(id);
                }
            });
        }
    }
    println!("{rows} rows, {ROUNDS} rounds of {OPERATIONS} operations; least and median ns");
    for ((name, ..), times) in kinds.iter().zip(&mut times) {
        let shown: Vec<String> = times
            .iter_mut()
            .map(|times| {
                times.sort_by(f64::total_cmp);
                format!("{:.0}, {:.0}", times[0], times[times.len() / 2])
            })
            .collect();
        println!("{name:24} point {} | insert {} | find and delete {}", shown[0], shown[1], shown[2]);
    }
}
