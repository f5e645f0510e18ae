//! What a table with a layout key takes in memory when it rests, beside the same rows without a key: a table
//! like lineitem of TPC-H, by order and line. Prints bytes a row after the load and after upkeep has nothing
//! left to do, and how long upkeep took.
//!
//! `cargo run --release -p entasis-storage --example rest -- [rows] [sorted|random]`

mod resting;

use entasis_storage::{Table, TableOptions};
use entasis_vector::{DataType, Field, Schema, Value};
use resting::{Rested, load, mixed, rest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const WORDS: [&str; 12] = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "furiously",
    "regular",
    "ideas",
    "above",
    "the",
    "quickly",
    "bold",
    "accounts",
];

fn schema() -> Schema {
    let price = DataType::Decimal { precision: 15, scale: 2 };
    let types = [
        ("orderkey", DataType::Int64),
        ("linenumber", DataType::Int32),
        ("partkey", DataType::Int32),
        ("suppkey", DataType::Int32),
        ("quantity", price),
        ("extendedprice", price),
        ("discount", price),
        ("tax", price),
        ("returnflag", DataType::Varchar),
        ("linestatus", DataType::Varchar),
        ("shipdate", DataType::Date),
        ("commitdate", DataType::Date),
        ("receiptdate", DataType::Date),
        ("shipinstruct", DataType::Varchar),
        ("shipmode", DataType::Varchar),
        ("comment", DataType::Varchar),
    ];
    types.into_iter().map(|(name, ty)| Field { nullable: false, ..Field::new(name, ty) }).collect()
}

/// Four lines to an order; one order in four keys, as in TPC-H.
fn row(line: i64) -> Vec<Value> {
    let of = |column: u64, bound: i64| mixed(line, column) % bound;
    let integer = |value: i64| Value::Integer(value.into());
    let one_of =
        |column: u64, texts: &[&str]| Value::Text(texts[of(column, texts.len() as i64) as usize].into());
    let (order, quantity) = (line / 4, 1 + of(4, 50));
    let shipped = 8000 + mixed(order, 10) % 2400 + of(10, 121);
    let comment: Vec<&str> =
        (0..3 + of(15, 4) as u64).map(|word| WORDS[of(16 + word, WORDS.len() as i64) as usize]).collect();
    vec![
        integer(order / 8 * 32 + order % 8),
        integer(line % 4 + 1),
        integer(1 + of(2, 200_000)),
        integer(1 + of(3, 10_000)),
        integer(quantity * 100),
        integer(quantity * (90_000 + of(5, 110_000))),
        integer(of(6, 11)),
        integer(of(7, 9)),
        one_of(8, &["A", "N", "R"]),
        one_of(9, &["F", "O"]),
        integer(shipped),
        integer(shipped + of(11, 120) - 60),
        integer(shipped + 1 + of(12, 30)),
        one_of(13, &["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]),
        one_of(14, &["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]),
        Value::Text(comment.join(" ").into()),
    ]
}

/// Bytes a row, as they are counted.
fn bytes(table: &Arc<Table>) -> f64 {
    table.sweep();
    table.bytes() as f64 / table.rows() as f64
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: i64 = args.first().map_or(2_000_000, |rows| rows.parse().expect("a number of rows"));
    let mut lines: Vec<i64> = (0..rows).collect();
    if args.get(1).is_some_and(|order| order == "random") {
        lines.sort_by_key(|&line| mixed(line, 99));
    }
    let keyed = TableOptions { unique: true, ..TableOptions::keyed(vec![0, 1]) };
    for (name, options) in [("without a key", TableOptions::default()), ("by order and line", keyed)] {
        let table = Table::with_options("lineitem", schema(), options);
        load(&table, &lines, row);
        let loaded = bytes(&table);
        let start = Instant::now();
        let Rested { rounds, spread, encoded } = rest(&table);
        println!(
            "{name}: {loaded:.1} bytes a row when loaded, {:.1} at rest; {rounds} rounds of upkeep laid \
             {spread} slices anew and encoded {encoded}, in {:.2} s",
            bytes(&table),
            start.elapsed().as_secs_f64()
        );
        let snapshot = table.snapshot();
        for (column, field) in table.schema().iter().enumerate() {
            let mut names: BTreeMap<&str, usize> = BTreeMap::new();
            let mut bits = 0.0;
            for group in snapshot.row_groups() {
                for block in 0..group.blocks() {
                    let info = group.block_info(column, block);
                    *names.entry(info.encoding).or_default() += 1;
                    bits += info.bits_per_value * info.rows as f64;
                }
            }
            println!("    {:<14} {:>6.1} bits  {names:?}", field.name, bits / table.rows() as f64);
        }
    }
}
