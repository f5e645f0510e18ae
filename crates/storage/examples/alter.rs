//! What a column more and a column less take, in storage alone, from the snapshot until the new table is
//! published and the old one is gone: a table of 16 columns of numbers. Prints medians of seven, and the
//! bytes of memory before and behind `ADD`, for tables of several sizes.
//!
//! `cargo run --release -p entasis-storage --example alter -- [rows …]`

use entasis_storage::{Catalog, ColumnSource, Entry, IfExists, Table, TableEntry, TableOptions};
use entasis_vector::{Chunk, DataType, Field, PhysicalType, Selection, Value, Vector};
use std::sync::Arc;
use std::time::Instant;

const COLUMNS: usize = 16;

/// A table of random numbers, published.
fn filled(rows: usize, options: TableOptions, catalog: &Catalog) -> Arc<Table> {
    let fields = (0..COLUMNS).map(|column| Field::new(format!("c{column}"), DataType::Int32));
    let table = Table::with_options("t", fields.collect(), options);
    let mut appender = table.appender();
    let mut state = 88_172_645_463_325_252_u64;
    for first in (0..rows).step_by(2048) {
        let count = (rows - first).min(2048);
        let mut chunk = Chunk::new();
        chunk.reset(count);
        let group = chunk.push_group(Selection::ALL);
        for column in 0..COLUMNS {
            let value = |row: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                Value::Integer(if column == 0 { row as i128 } else { i128::from(state >> 45) })
            };
            let values: Vec<Value> = (first..first + count).map(value).collect();
            chunk.push_column(Vector::from_values(PhysicalType::I32, &values).expect("they fit"), group);
        }
        appender.append(&chunk, (first / 131_072) as u64).expect("numbers fit");
    }
    table.commit(vec![appender.finish()]).expect("it is not logged");
    publish(&table, catalog);
    table
}

fn publish(table: &Arc<Table>, catalog: &Catalog) {
    let base = catalog.version();
    let mut now = base.clone();
    now.add(Entry::Table(Arc::new(TableEntry::plain(table.clone()))), IfExists::Replace).expect("it is new");
    assert!(catalog.publish(&base, &now, &[], &mut || true).expect("nobody else changes names"));
}

/// The table with other columns, published; microseconds that this took.
fn altered(
    table: Arc<Table>,
    columns: std::ops::Range<usize>,
    adds: bool,
    catalog: &Catalog,
) -> (Arc<Table>, f64) {
    let mut schema = table.schema()[columns.clone()].to_vec();
    let mut sources: Vec<ColumnSource> = columns.map(ColumnSource::Old).collect();
    if adds {
        schema.push(Field::new("added", DataType::Int32));
        sources.push(ColumnSource::Constant(Value::Integer(7)));
    }
    let options = table.options().clone();
    let start = Instant::now();
    let new = table.snapshot().with_columns(schema, &sources, options).expect("it is published");
    publish(&new, catalog);
    drop(table);
    (new, start.elapsed().as_secs_f64() * 1e6)
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100_000, 1_000_000, 10_000_000] } else { sizes };
    println!("rows, layout: microseconds of ADD and DROP, nanoseconds a slice; bytes before, after ADD");
    for (rows, layout) in sizes.iter().flat_map(|rows| [(*rows, "insertion"), (*rows, "equi_ghost")]) {
        let catalog = Catalog::default();
        let options =
            if layout == "insertion" { TableOptions::default() } else { TableOptions::keyed(vec![0]) };
        let table = filled(rows, options, &catalog);
        let before = table.bytes();
        let (mut table, mut times) = (table, [Vec::new(), Vec::new()]);
        let mut after = 0;
        for _ in 0..7 {
            let (new, time) = altered(table, 0..COLUMNS, true, &catalog);
            times[0].push(time);
            after = new.bytes();
            let (new, time) = altered(new, 0..COLUMNS, false, &catalog);
            times[1].push(time);
            table = new;
        }
        let [add, drop] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        let slices = rows.div_ceil(1024) as f64;
        let (per_add, per_drop) = (add * 1000.0 / slices, drop * 1000.0 / slices);
        println!("{rows}, {layout}: {add:.0}, {drop:.0}; {per_add:.0}, {per_drop:.0}; {before}, {after}");
    }
}
