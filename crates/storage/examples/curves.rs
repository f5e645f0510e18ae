//! What the order of rows is worth to conditions on several columns: rows in the order of insertion, by one
//! column, by all of them one after the other, and along curves. Boxes of some share of each column are
//! counted, and a column is summed, over the blocks whose zones meet the box.
//!
//! Prints for each order what the load took, bytes a row, and for each kind of box the median blocks that
//! were read and the median microseconds; one thread. All orders must give the same answers.
//!
//! `cargo run --release -p entasis-storage --example curves -- [rows] [uniform|zipf|correlated] [2|3]`

use entasis_storage::{Condition, Curve, Table, TableOptions, TableSnapshot, ValueRange};
use entasis_vector::{Chunk, DataType, Field, PhysicalType, Schema, Selection, Value, Vector};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Boxes of each kind.
const BOXES: usize = 101;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to less than 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn schema(columns: usize) -> Schema {
    let keys = (0..columns).map(|column| Field::new(format!("c{column}"), DataType::Int64));
    keys.chain([Field::new("v", DataType::Int64)]).collect()
}

/// The rows, column by column; the last is the one that is summed.
fn columns_of(rows: usize, values: &str, columns: usize) -> Vec<Vec<i64>> {
    let mut random = Random(42);
    let mut all = vec![Vec::with_capacity(rows); columns + 1];
    for _ in 0..rows {
        let first = random.share();
        for (column, own) in all[..columns].iter_mut().enumerate() {
            own.push(match values {
                // As many values as rows, the more frequent the smaller: about 1 / value.
                "zipf" => (rows as f64).powf(random.share()) as i64,
                "correlated" if column > 0 => ((first * 0.8 + random.share() * 0.2) * 1e9) as i64,
                "correlated" => (first * 1e9) as i64,
                _ => (random.share() * 1e9) as i64,
            });
        }
        all[columns].push((random.next() >> 44) as i64);
    }
    all
}

fn loaded(options: TableOptions, columns: &[Vec<i64>]) -> Arc<Table> {
    let table = Table::with_options("t", schema(columns.len() - 1), options);
    let mut appender = table.appender();
    let mut chunk = Chunk::new();
    for from in (0..columns[0].len()).step_by(2048) {
        let to = (from + 2048).min(columns[0].len());
        chunk.reset(to - from);
        let group = chunk.push_group(Selection::ALL);
        columns.iter().for_each(|own| chunk.push_column(Vector::from_slice(&own[from..to]), group));
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
    while !table.upkeep(Duration::from_secs(60)).is_done {}
    table
}

/// A box: for each column that is restricted its bounds.
type Bounds = Vec<(usize, (i64, i64))>;

/// Blocks read, rows found, and the sum of the last column.
fn answer(snapshot: &TableSnapshot, of: &Bounds) -> (usize, usize, i128) {
    let conditions: Vec<Condition> = of
        .iter()
        .map(|&(column, (low, high))| {
            let (low, high) = (low.into(), high.into());
            Condition::Range(ValueRange { column, physical: PhysicalType::I64, low, high })
        })
        .collect();
    let summed = snapshot.schema().len() - 1;
    let (mut blocks, mut found, mut sum) = (0, 0, 0);
    let (mut rows, mut runs) = (Vec::new(), Vec::new());
    for group in snapshot.row_groups() {
        let meets = |zone: &entasis_storage::Zone, (low, high): (i64, i64)| match (&zone.min, &zone.max) {
            (Value::Integer(min), Value::Integer(max)) => *min <= high.into() && *max >= low.into(),
            _ => false,
        };
        if !of.iter().all(|&(column, bounds)| meets(group.column_zone(column), bounds)) {
            continue;
        }
        let width = group.block_slots();
        for block in 0..group.blocks() {
            if !of.iter().all(|&(column, bounds)| meets(group.zone(column, block), bounds)) {
                continue;
            }
            blocks += 1;
            rows.clear();
            let slots = block * width..(block + 1) * width;
            group.select_runs(&conditions, std::slice::from_ref(&slots), &mut rows);
            found += rows.len();
            runs.clear();
            let at = |row: &u16| slots.start + usize::from(*row);
            runs.extend(rows.iter().map(|row| at(row)..at(row) + 1));
            sum += group.sum_runs(summed, PhysicalType::I64, &runs);
        }
    }
    (blocks, found, sum)
}

/// A box that holds about these shares of the rows by each column; 1 for no bounds.
fn a_box(sorted: &[Vec<i64>], shares: &[f64], random: &mut Random) -> Bounds {
    let bounds = shares.iter().enumerate().filter(|(_, share)| **share < 1.0);
    bounds
        .map(|(column, share)| {
            let own = &sorted[column];
            let wide = (own.len() as f64 * share) as usize;
            let from = (random.share() * (own.len() - wide) as f64) as usize;
            (column, (own[from], own[from + wide]))
        })
        .collect()
}

fn median<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: usize = args.first().map_or(10_000_000, |rows| rows.parse().expect("a number of rows"));
    let values = args.get(1).map_or("uniform", |values| values);
    let count: usize = args.get(2).map_or(2, |count| count.parse().expect("a number of columns"));
    let columns = columns_of(rows, values, count);
    let sorted: Vec<Vec<i64>> = columns[..count]
        .iter()
        .map(|own| {
            let mut own = own.clone();
            own.sort_unstable();
            own
        })
        .collect();
    let shares: Vec<Vec<f64>> = match count {
        2 => vec![vec![0.01, 0.01], vec![0.1, 0.1], vec![0.001, 1.0], vec![1.0, 0.001], vec![0.01, 0.1]],
        _ => vec![
            vec![0.05, 0.05, 0.05],
            vec![0.01, 0.01, 1.0],
            vec![1.0, 0.01, 0.01],
            vec![0.001, 1.0, 1.0],
            vec![1.0, 1.0, 0.001],
        ],
    };
    let mut random = Random(7);
    let boxes: Vec<Vec<Bounds>> = shares
        .iter()
        .map(|shares| (0..BOXES).map(|_| a_box(&sorted, shares, &mut random)).collect())
        .collect();
    let all: Vec<usize> = (0..count).collect();
    let keyed = |key: &[usize], curve| TableOptions { curve, ..TableOptions::keyed(key.to_vec()) };
    let orders = [
        ("insertion", TableOptions::default()),
        ("by c0", keyed(&[0], None)),
        ("by all in turn", keyed(&all, None)),
        ("zorder", keyed(&all, Some(Curve::ZOrder))),
        ("hilbert", keyed(&all, Some(Curve::Hilbert))),
    ];
    println!("{rows} rows, {values}, {count} columns; blocks read, microseconds");
    print!("{:<16}{:>8}{:>8}", "order", "load s", "bytes");
    shares.iter().for_each(|shares| print!("{:>20}", format!("{shares:?}")));
    println!();
    let mut expected: Option<Vec<Vec<(usize, i128)>>> = None;
    for (name, options) in orders {
        let start = Instant::now();
        let table = loaded(options, &columns);
        let load = start.elapsed().as_secs_f64();
        let snapshot = table.snapshot();
        print!("{name:<16}{load:>8.1}{:>8.1}", table.bytes() as f64 / rows as f64);
        let mut answers = Vec::new();
        for boxes in &boxes {
            let (mut blocks, mut times, mut own) = (Vec::new(), Vec::new(), Vec::new());
            for of in boxes {
                let start = Instant::now();
                let (read, found, sum) = answer(&snapshot, of);
                times.push(start.elapsed().as_micros());
                blocks.push(read);
                own.push((found, sum));
            }
            print!("{:>20}", format!("{} / {}", median(blocks), median(times)));
            answers.push(own);
        }
        println!();
        match &expected {
            None => expected = Some(answers),
            Some(expected) => assert_eq!(*expected, answers, "{name}"),
        }
    }
}
