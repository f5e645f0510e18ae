//! The table of the HAP benchmark (*Optimal Column Layout for Hybrid Workloads*, section 7.1) straight on the
//! storage: an eight-byte key, 16 columns of four bytes. Prints microseconds per operation: median, mean,
//! 99th percentile.
//!
//! ```text
//! cargo run --release -p entasis-storage --example hap -- \
//!     [rows] [layout] [sorted|random] [reach] [upkeep in ms] [pace in µs] [partitions] [rest]
//! ```
//!
//! With the fifth argument another thread does upkeep, and rests as many milliseconds between rounds; `-` is
//! none. With the sixth, operations begin that long one after the other, if the one before is over. The
//! seventh is how many partitions a row group has. With the eighth, `rest`, upkeep is done after the load
//! until nothing is left to do.
//!
//! Each operation is measured alone, and once more with a new snapshot every millisecond that replaces the
//! last one.

use entasis_storage::{Datum, Layout, Table, TableOptions, TableSnapshot, Upkeep};
use entasis_vector::{Chunk, DataType, Field, Schema, Selection, Vector};
use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAYLOADS: usize = 16;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn schema() -> Schema {
    let key = Field { nullable: false, ..Field::new("a0", DataType::Int64) };
    let payload = (1..=PAYLOADS).map(|i| Field::new(format!("a{i}"), DataType::Int32));
    std::iter::once(key).chain(payload).collect()
}

fn payload(key: i64, column: usize) -> i32 {
    ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(column as u32 * 7) >> 12) as i32 & 0xF_FFFF
}

/// Even keys, so that odd ones can be inserted.
fn load(table: &Arc<Table>, rows: u64, random_order: bool) {
    let mut keys: Vec<i64> = (0..rows as i64).map(|i| i * 2).collect();
    if random_order {
        let mut random = Random(7);
        (1..keys.len()).rev().for_each(|i| keys.swap(i, random.below(i as u64 + 1) as usize));
    }
    let start = Instant::now();
    let mut appender = table.appender();
    let mut chunk = Chunk::new();
    for part in keys.chunks(2048) {
        chunk.reset(part.len());
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_slice(part), group);
        for column in 1..=PAYLOADS {
            let values: Vec<i32> = part.iter().map(|&key| payload(key, column)).collect();
            chunk.push_column(Vector::from_slice(&values), group);
        }
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
    let seconds = start.elapsed().as_secs_f64();
    println!("load {:.2} s, {:.1} M rows/s, {:.0} bytes a row", seconds, rows as f64 / seconds / 1e6, {
        table.bytes() as f64 / rows as f64
    });
}

/// Does upkeep until nothing is left to do.
fn rest(table: &Arc<Table>) {
    let start = Instant::now();
    let mut encoded = 0;
    loop {
        let done = table.upkeep(Duration::from_millis(10));
        encoded += done.encoded;
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            break;
        }
    }
    table.sweep();
    let bytes = table.bytes() as f64 / table.rows() as f64;
    println!("rest {:.2?}, {encoded} slices encoded, {bytes:.1} bytes a row", start.elapsed());
}

/// Runs `operation` `count` times; with a new snapshot every millisecond if `snapshots`.
fn measure(
    name: &str,
    table: &Arc<Table>,
    count: usize,
    (snapshots, pace): (bool, Duration),
    mut operation: impl FnMut(),
) {
    let mut times = Vec::with_capacity(count);
    let mut held = snapshots.then(|| table.snapshot());
    let mut taken = Instant::now();
    let began = Instant::now();
    for number in 0..count {
        while began.elapsed() < pace * number as u32 {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        operation();
        let end = Instant::now();
        if held.is_some() && end - taken > Duration::from_millis(1) {
            held = Some(table.snapshot());
            taken = end;
        }
        times.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    black_box(&held);
    let mean = times.iter().sum::<f64>() / count as f64;
    times.sort_by(f64::total_cmp);
    let (median, tail) = (times[count / 2], times[count * 99 / 100]);
    let when = if snapshots { "snapshots" } else { "" };
    println!("{name:<28} {when:<10} median {median:>10.3}  mean {mean:>10.3}  p99 {tail:>10.3}");
}

/// Rows of a key range: those of whole slot ranges are counted, the others tested.
fn count_range(snapshot: &TableSnapshot, low: i64, high: i64) -> usize {
    let mut keys = Vector::new(entasis_vector::PhysicalType::I64);
    let bounds = [Datum::Integer(low.into()), Datum::Integer(high.into())];
    let mut count = 0;
    for range in snapshot.range(Bound::Included(&bounds[..1]), Bound::Included(&bounds[1..])) {
        let group = snapshot.row_group(range.group).expect("it has the range");
        if range.is_whole {
            count += group.live_rows(range.slots);
        } else {
            each_window(range.slots, |first, slots| {
                group.decode(0, first, slots, &mut keys);
                let values = keys.values::<i64>();
                group.each_live(first..first + slots, |at| {
                    count += usize::from((low..=high).contains(&values[at]))
                });
            });
        }
    }
    count
}

/// The sum of four columns over a key range.
fn sum_range(snapshot: &TableSnapshot, low: i64, high: i64) -> i64 {
    let mut keys = Vector::new(entasis_vector::PhysicalType::I64);
    let mut column = Vector::new(entasis_vector::PhysicalType::I32);
    let bounds = [Datum::Integer(low.into()), Datum::Integer(high.into())];
    let mut sum = 0;
    for range in snapshot.range(Bound::Included(&bounds[..1]), Bound::Included(&bounds[1..])) {
        let group = snapshot.row_group(range.group).expect("it has the range");
        each_window(range.slots.clone(), |first, slots| {
            let mut rows: Vec<u16> = Vec::new();
            if !range.is_whole {
                group.decode(0, first, slots, &mut keys);
                group.each_live(first..first + slots, |at| rows.push(at as u16));
                rows.retain(|&at| (low..=high).contains(&keys.values::<i64>()[at as usize]));
            }
            for number in 1..=4 {
                group.decode(number, first, slots, &mut column);
                let values = &column.values::<i32>()[..slots];
                if range.is_whole {
                    group.each_run(first..first + slots, |run| sum += total(&values[run]));
                } else {
                    sum += rows.iter().map(|&at| i64::from(values[at as usize])).sum::<i64>();
                }
            }
        });
    }
    sum
}

fn each_window(slots: std::ops::Range<usize>, mut each: impl FnMut(usize, usize)) {
    let mut first = slots.start;
    while first < slots.end {
        let end = slots.end.min((first / 1024 + 2) * 1024);
        each(first, end - first);
        first = end;
    }
}

fn total(values: &[i32]) -> i64 {
    values.iter().map(|&v| i64::from(v)).sum()
}

/// Sum and greatest value of one column.
fn full_scan(snapshot: &TableSnapshot) -> (i64, i32) {
    let mut column = Vector::new(entasis_vector::PhysicalType::I32);
    let (mut sum, mut max) = (0, i32::MIN);
    for group in snapshot.row_groups() {
        each_window(0..group.slots(), |first, slots| {
            group.decode(1, first, slots, &mut column);
            let values = &column.values::<i32>()[..slots];
            group.each_run(first..first + slots, |run| {
                sum += total(&values[run.clone()]);
                max = values[run].iter().fold(max, |max, &v| max.max(v));
            });
        });
    }
    (sum, max)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows: u64 = args.first().map_or(10_000_000, |rows| rows.parse().expect("a number of rows"));
    let layout = match args.get(1).map_or("equi_ghost", String::as_str) {
        "equi" => Layout::Equi,
        "equi_ghost" => Layout::EquiGhost,
        "casper" => Layout::Casper,
        other => panic!("{other} is no keyed layout"),
    };
    let random_order = args.get(2).is_some_and(|order| order == "random");
    let reach = args.get(3).map_or(TableOptions::default().reach, |reach| reach.parse().expect("a number"));
    let options = TableOptions { layout, unique: true, reach, ..TableOptions::keyed(vec![0]) };
    let pause: Option<u64> =
        args.get(4).filter(|pause| *pause != "-").map(|pause| pause.parse().expect("milliseconds"));
    let pace = Duration::from_micros(args.get(5).map_or(0, |pace| pace.parse().expect("microseconds")));
    let partitions =
        args.get(6).map_or(options.partitions, |partitions| partitions.parse().expect("a number"));
    let options = TableOptions { partitions, ..options };
    println!(
        "{rows} rows, {layout:?}, loaded in {} order, reach {reach}",
        if random_order { "random" } else { "key" }
    );
    let table = Table::with_options("hap", schema(), options);
    load(&table, rows, random_order);
    if args.get(7).is_some_and(|word| word == "rest") {
        rest(&table);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let upkeep = pause.map(|pause| {
        let (table, is_over) = (table.clone(), is_over.clone());
        let thread = std::thread::Builder::new().name("upkeep".into());
        let run = move || {
            let (mut sum, mut busy, mut longest) = (Upkeep::default(), Duration::ZERO, Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                let done = table.upkeep(Duration::from_millis(10));
                busy += start.elapsed();
                sum.spread += done.spread;
                sum.encoded += done.encoded;
                sum.overtaken += done.overtaken;
                longest.push(done.longest);
                if done.is_done {
                    std::thread::sleep(Duration::from_millis(pause));
                }
            }
            longest.sort();
            let (median, most) = (longest[longest.len() / 2], longest[longest.len() - 1]);
            println!("upkeep was busy for {busy:?}: {sum:?}; kept others waiting, longest of 10 ms {median:?}, of all {most:?}");
        };
        thread.spawn(run).expect("a thread")
    });

    let mut random = Random(42);
    let key = |key: u64| [Datum::Integer(i128::from(key as i64))];
    let operations = 100_000;
    for snapshots in [false, true] {
        measure("point query, 4 columns", &table, operations, (snapshots, pace), || {
            let writer = table.write();
            let row = writer.find(&key(random.below(rows) * 2)).expect("the key is there");
            let mut values = Vec::with_capacity(4);
            writer.read(row, &[1, 5, 9, 13], &mut values);
            black_box(values);
        });
        let width = rows as i64 / 100 * 2;
        measure("count of 1 % range", &table, 200, (snapshots, pace), || {
            let low = random.below(rows - rows / 100) as i64 * 2;
            black_box(count_range(&table.snapshot(), low, low + width));
        });
        measure("sum of 4 columns over 1 %", &table, 200, (snapshots, pace), || {
            let low = random.below(rows - rows / 100) as i64 * 2;
            black_box(sum_range(&table.snapshot(), low, low + width));
        });
        let mut inserted = Vec::new();
        measure("insert", &table, operations, (snapshots, pace), || {
            let new = random.below(rows) * 2 + 1;
            let mut writer = table.write();
            if writer.find(&key(new)).is_none() {
                let mut row = [Datum::Integer(new.into()); PAYLOADS + 1];
                (1..=PAYLOADS).for_each(|c| row[c] = Datum::Integer(payload(new as i64, c).into()));
                writer.insert(&row);
                inserted.push(new);
            }
        });
        println!("{:.0} bytes a row", table.bytes() as f64 / table.rows() as f64);
        measure("update payload", &table, operations, (snapshots, pace), || {
            let mut writer = table.write();
            let row = writer.find(&key(random.below(rows) * 2)).expect("the key is there");
            writer.update(row, &[(3, Datum::Integer((random.below(1 << 20)).into()))]);
        });
        let mut next = 0;
        measure("update key", &table, operations / 2, (snapshots, pace), || {
            let new = random.below(rows) * 2 + 1;
            let mut writer = table.write();
            let row = writer.find(&key(inserted[next])).expect("it was inserted");
            if writer.find(&key(new)).is_none() {
                writer.update(row, &[(0, Datum::Integer(new.into()))]);
                inserted[next] = new;
            }
            next += 1;
        });
        let mut left = inserted.len();
        measure("delete", &table, left, (snapshots, pace), || {
            left -= 1;
            let mut writer = table.write();
            let row = writer.find(&key(inserted[left])).expect("it was inserted");
            writer.delete(row);
        });
        measure("full scan, sum and max", &table, 20, (snapshots, pace), || {
            black_box(full_scan(&table.snapshot()));
        });
    }
    is_over.store(true, Ordering::Relaxed);
    if let Some(thread) = upkeep {
        thread.join().expect("upkeep does not panic");
    }
    table.sweep();
    println!("{:.0} bytes a row", table.bytes() as f64 / table.rows() as f64);
    println!("retired nodes left: {}", table.retired());
}
