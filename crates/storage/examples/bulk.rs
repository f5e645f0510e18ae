//! Many rows at once, on the table of `hap.rs`: load, change a column of all rows, remove half of them.
//! Prints nanoseconds a row, and bytes.
//!
//! `cargo run --release -p entasis-storage --example bulk -- [rows] [sorted|random] [keyed|insertion]`

use entasis_storage::{Among, RowId, Table, TableOptions, Transaction};
use entasis_vector::{Chunk, DataType, Field, Schema, Selection, Vector};
use std::sync::Arc;
use std::time::Instant;

const PAYLOADS: usize = 16;

fn schema() -> Schema {
    let key = Field { nullable: false, ..Field::new("a0", DataType::Int64) };
    let payload = (1..=PAYLOADS).map(|i| Field::new(format!("a{i}"), DataType::Int32));
    std::iter::once(key).chain(payload).collect()
}

fn payload(key: i64, column: usize) -> i32 {
    ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(column as u32 * 7) >> 12) as i32 & 0xF_FFFF
}

/// Runs some work and prints what a row took.
fn timed<R>(name: &str, rows: u64, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    println!("{name:<40} {seconds:>7.3} s {:>8.1} ns a row", seconds * 1e9 / rows as f64);
    result
}

fn chunks_of(keys: &[i64]) -> Vec<Chunk> {
    let chunk = |part: &[i64]| {
        let mut chunk = Chunk::new();
        chunk.reset(part.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_slice(part), group);
        for column in 1..=PAYLOADS {
            let values: Vec<i32> = part.iter().map(|&key| payload(key, column)).collect();
            chunk.push_column(Vector::from_slice(&values), group);
        }
        chunk
    };
    keys.chunks(2048).map(chunk).collect()
}

fn ids(table: &Arc<Table>) -> Vec<RowId> {
    let snapshot = table.snapshot();
    let mut ids = Vec::with_capacity(snapshot.rows() as usize);
    for (number, group) in snapshot.row_groups().enumerate() {
        group.each_live(0..group.slots(), |slot| ids.push(RowId { group: number as u32, slot: slot as u32 }));
    }
    ids
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: u64 = args.first().map_or(10_000_000, |rows| rows.parse().expect("a number of rows"));
    let random_order = args.get(1).is_some_and(|order| order == "random");
    let keyed = args.get(2).is_none_or(|layout| layout == "keyed");
    let options = TableOptions { unique: true, ..TableOptions::keyed(vec![0]) };
    let table = Table::with_options("hap", schema(), if keyed { options } else { TableOptions::default() });
    let mut keys: Vec<i64> = (0..rows as i64).map(|i| i * 2).collect();
    if random_order {
        let mut state = 88_172_645_463_325_252u64;
        for i in (1..keys.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            keys.swap(i, (state % (i as u64 + 1)) as usize);
        }
    }
    let memory = |name: &str| {
        table.sweep();
        println!("{name:<40} {:>7.1} bytes a loaded row", table.bytes() as f64 / rows as f64);
    };
    // A part at a time, so that the chunks need not all be there.
    let mut appended = Vec::new();
    let mut encoding = 0.0;
    for (number, part) in keys.chunks(2_000_000).enumerate() {
        let chunks = chunks_of(part);
        let start = Instant::now();
        let mut appender = table.appender();
        chunks.iter().for_each(|chunk| appender.append(chunk, number as u64).expect("rows are fine"));
        appended.push(appender.finish());
        encoding += start.elapsed().as_secs_f64();
    }
    println!("{:<40} {encoding:>7.3} s {:>8.1} ns a row", "encode", encoding * 1e9 / rows as f64);
    let mut alone = Transaction::alone(std::slice::from_ref(&table));
    timed("append", rows, || alone.append(&table, appended).expect("rows are fine"));
    let groups = alone.write(&table).row_groups();
    let found =
        timed("look for duplicates", rows, || alone.write(&table).first_duplicate(Among::Groups(0..groups)));
    assert!(found.is_none());
    timed("commit", rows, || alone.commit(|_| Ok(())).expect("alone"));
    memory("loaded");
    let all = ids(&table);
    for name in ["update a column", "and once more", "and beside others"] {
        let values: Vec<i32> = (0..2048).map(|i| i * 7).collect();
        let mut transaction = match name {
            "and beside others" => Transaction::begin(std::slice::from_ref(&table)),
            _ => Transaction::alone(std::slice::from_ref(&table)),
        };
        timed(name, rows, || {
            let mut writer = transaction.write(&table);
            for part in all.chunks(2048) {
                let mut chunk = Chunk::new();
                chunk.reset(part.len());
                let group = chunk.push_group(Selection::ALL);
                chunk.push_column(Vector::from_slice(&values), group);
                writer.update_chunk(part, &[(3, 0)], &chunk);
            }
            drop(writer);
            transaction.commit(|_| Ok(())).expect("nobody else writes");
        });
    }
    memory("updated");
    let half: Vec<RowId> = all.iter().copied().step_by(2).collect();
    let mut alone = Transaction::alone(std::slice::from_ref(&table));
    timed("delete half, a deleted row", rows / 2, || {
        alone.write(&table).delete_many(&half);
        alone.commit(|_| Ok(())).expect("alone");
    });
    memory("half deleted");
    timed("truncate", rows / 2, || table.write().clear());
    memory("truncated");
}
