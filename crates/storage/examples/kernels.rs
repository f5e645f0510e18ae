//! How fast blocks are read as they are encoded: values per nanosecond of one thread, beside the machine's
//! stream.
//!
//! `make bench-kernels`, or
//! `cargo run --release -p entasis-storage --example kernels -- [rows] [part of a column's name]`
//!
//! One column a width, and columns of floats, without a layout key, each of about as many bytes as `rows`
//! numbers of 8 (32 M). *In
//! cache*: one row group again and again; *from memory*: all of them, one after the other, beside the share
//! of the stream's bytes in that time. Where one row in some is decoded, all count as values: so it compares
//! with decoding all. The stream is the sum of as many bytes as a plain array of 64-bit numbers.

// As the programs have it.
use entasis_allocator as _;
use entasis_storage::{Compression, Condition, RowGroup, Table, TableOptions, ValueRange};
use entasis_vector::value::float_ordinal;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Field, PhysicalType, Selection, Vector};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name, type, bits of the values.
const INTEGERS: [(&str, DataType, u32); 9] = [
    ("packed, 4 bits", DataType::Int32, 4),
    ("packed, 6 bits", DataType::Int32, 6),
    ("codes of 1 byte", DataType::Int32, 8),
    ("packed, 12 bits", DataType::Int32, 12),
    ("codes of 2 bytes", DataType::Int64, 16),
    ("packed, 17 bits", DataType::Int32, 17),
    ("packed, 24 bits", DataType::Int32, 24),
    ("flat, 4 bytes", DataType::Int32, 31),
    ("flat, 8 bytes", DataType::Int64, 62),
];

/// What a float is of its row and of a random number from 0 to 1.
type OfRow = fn(usize, f64) -> f64;

/// Name, type, the encoding that is forced, values, and the numbers between which a tenth of them lie.
const FLOATS: [(&str, DataType, Compression, OfRow, [f64; 2]); 9] = [
    ("doubles, flat", DataType::Float64, Compression::Flat, |_, v| v, [0.3, 0.4]),
    ("doubles, uniform", DataType::Float64, Compression::Split, |_, v| v, [0.3, 0.4]),
    ("doubles, sines", DataType::Float64, Compression::Split, |row, _| (row as f64).sin(), [0.31, 0.59]),
    ("doubles, normal", DataType::Float64, Compression::Split, normal, [0.0, 0.253]),
    ("doubles, coordinates", DataType::Float64, Compression::Split, |_, v| 48.1 + v / 3.0, [48.2, 48.2333]),
    (
        "doubles, any bits",
        DataType::Float64,
        Compression::Split,
        |_, v| f64::from_bits((v * 1.8e19) as u64),
        [0.0, 1e62],
    ),
    ("prices, scaled", DataType::Float64, Compression::Scaled, |_, v| (v * 1e6).round() / 100.0, [0.0, 1e3]),
    ("floats, flat", DataType::Float32, Compression::Flat, |_, v| v, [0.3, 0.4]),
    ("floats, uniform", DataType::Float32, Compression::Split, |_, v| v, [0.3, 0.4]),
];

/// The normal distribution, by Box and Muller.
fn normal(row: usize, v: f64) -> f64 {
    (-2.0 * v.max(f64::MIN_POSITIVE).ln()).sqrt() * (row as f64).cos()
}

fn main() {
    let rows = std::env::args().nth(1).map_or(32 << 20, |rows| rows.parse().expect("rows are a number"));
    println!(
        "values per ns, {rows} times 8 bytes  {:>10} {:>12} {:>10}",
        "in cache", "from memory", "of stream"
    );
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let stream = stream(rows);
    for (name, ty, bits) in INTEGERS.into_iter().filter(|(name, ..)| name.contains(&wanted)) {
        let span = 1u64 << bits;
        let table = load(rows * 64 / bits as usize, ty, Compression::Auto, |chunk, random| {
            let values = (0..chunk.len()).map(|_| random() % span);
            match ty.physical() {
                PhysicalType::I32 => Vector::from_slice(&values.map(|v| v as i32).collect::<Vec<_>>()),
                _ => Vector::from_slice(&values.map(|v| v as i64).collect::<Vec<_>>()),
            }
        });
        // A tenth of the values; and one in the middle, which few rows have, so that comparing is all.
        let ends = [(0, i128::from(span / 10)), (i128::from(span / 2), i128::from(span / 2))];
        print_column(name, &table, ty, ends, stream);
    }
    for (name, compression) in [("keys, packed", Compression::Packed), ("keys, line", Compression::Line)] {
        if !name.contains(&wanted) {
            continue;
        }
        // With gaps: ten bits above a line, thirteen in a block.
        let table = load(rows * 2, DataType::Int32, compression, |chunk, random| {
            Vector::from_slice(
                &chunk.map(|row| (row * 7) as i32 + (random() & 1023) as i32).collect::<Vec<_>>(),
            )
        });
        let last = rows as i128 * 14;
        print_column(name, &table, DataType::Int32, [(0, last / 10), (last / 2, last / 2)], stream);
    }
    for (name, ty, compression, of_row, tenth) in
        FLOATS.into_iter().filter(|(name, ..)| name.contains(&wanted))
    {
        let table = load(rows, ty, compression, |chunk, random| {
            let mut values = chunk.map(|row| of_row(row, (random() >> 11) as f64 / (1u64 << 53) as f64));
            match ty.physical() {
                PhysicalType::F32 => {
                    Vector::from_slice(&values.by_ref().map(|v| v as f32).collect::<Vec<_>>())
                }
                _ => Vector::from_slice(&values.collect::<Vec<_>>()),
            }
        });
        let [low, high] = tenth.map(|end| i128::from(float_ordinal(end)));
        print_column(name, &table, ty, [(low, high), (low, low)], stream);
    }
}

/// Prints a column's rates; `ends` are those of a range of a tenth of the values, and of one of next to none.
fn print_column(name: &str, table: &Arc<Table>, ty: DataType, ends: [(i128, i128); 2], stream: f64) {
    let snapshot = table.snapshot();
    let groups: Vec<&RowGroup> = snapshot.row_groups().collect();
    let physical = ty.physical();
    let [range, none] =
        ends.map(|(low, high)| [Condition::Range(ValueRange { column: 0, physical, low, high })]);
    let shown = groups[0].block_info(0, 0);
    println!("{name}: {} of {:.1} bits", shown.encoding, shown.bits_per_value);
    let share = |values: f64| format!("{:>8.0} %", values * shown.bits_per_value / 8.0 / stream * 100.0);
    let measure_all = |what: &str, read: &mut dyn FnMut(&RowGroup, Range<usize>)| {
        let (cached, from_memory) = measure(&groups, read);
        let what = format!("{name}: {what}");
        println!("{what:<34} {cached:>10.1} {from_memory:>12.1} {}", share(from_memory));
    };
    let mut positions = Vec::with_capacity(CHUNK_ROWS);
    for (what, range) in [("compare", none), ("range to positions", range)] {
        measure_all(what, &mut |group, chunk| {
            positions.clear();
            group.select_runs(&range, std::slice::from_ref(&chunk), &mut positions);
            black_box(&positions);
        });
    }
    if ty.is_integer() {
        measure_all("sum", &mut |group, chunk| {
            black_box(group.sum_runs(0, physical, std::slice::from_ref(&chunk)));
        });
    }
    let mut out = Vector::new(physical);
    measure_all("decode", &mut |group, chunk| {
        group.decode(0, chunk.start, chunk.len(), &mut out);
        black_box(&out);
    });
    for every in [4, 8, 16, 32, 64] {
        let positions: Vec<u16> = (0..CHUNK_ROWS as u16).step_by(every).collect();
        let (cached, from_memory) = measure(&groups, &mut |group, chunk| {
            group.decode_selected(0, chunk.start, &positions, chunk.len(), &mut out);
            black_box(&out);
        });
        println!("{:<34} {cached:>10.1} {from_memory:>12.1}", format!("{name}: decode 1 in {every}"));
    }
}

/// A table of one column; `values` makes those of some rows with random numbers.
fn load(
    rows: usize,
    ty: DataType,
    compression: Compression,
    values: impl Fn(Range<usize>, &mut dyn FnMut() -> u64) -> Vector,
) -> Arc<Table> {
    let options = TableOptions { compression, ..TableOptions::default() };
    let table = Table::with_options("t", vec![Field::new("a", ty)], options);
    let mut appender = table.appender();
    let mut chunk = Chunk::new();
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let start = Instant::now();
    for number in 0..rows / CHUNK_ROWS {
        chunk.reset(CHUNK_ROWS);
        let group = chunk.push_group(Selection::ALL);
        let first = number * CHUNK_ROWS;
        chunk.push_column(values(first..first + CHUNK_ROWS, &mut random), group);
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
    println!(
        "loaded in {:.1} ns a row, making the values included",
        start.elapsed().as_nanos() as f64 / rows as f64
    );
    table
}

/// Values per nanosecond in cache and from memory.
fn measure(groups: &[&RowGroup], read: &mut dyn FnMut(&RowGroup, Range<usize>)) -> (f64, f64) {
    let mut all = |group: &RowGroup| {
        let slots = group.slots();
        (0..slots).step_by(CHUNK_ROWS).for_each(|first| read(group, first..slots.min(first + CHUNK_ROWS)));
    };
    let cached = best(groups[0].rows(), 50, || all(groups[0]));
    let rows = groups.iter().map(|group| group.rows()).sum();
    (cached, best(rows, 5, || groups.iter().for_each(|group| all(group))))
}

/// The sum of a plain array: its bytes per nanosecond from memory.
fn stream(rows: usize) -> f64 {
    let values = vec![1u64; rows];
    let sum = |values: &[u64]| black_box(entasis_vector::simd::widest(|| values.iter().sum::<u64>()));
    let cached = best(1 << 14, 500, || {
        sum(&values[..1 << 14]);
    });
    let from_memory = best(rows, 5, || {
        sum(&values);
    });
    println!("{:<34} {cached:>10.1} {from_memory:>12.1}", "stream of 8-byte numbers");
    println!("{:<34} {:>10.1} {:>12.1}", "  in bytes per ns", cached * 8.0, from_memory * 8.0);
    from_memory * 8.0
}

/// Values per nanosecond of the fastest of some runs.
fn best(values: usize, times: usize, mut run: impl FnMut()) -> f64 {
    run();
    let time = (0..times).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    values as f64 / time.min().unwrap_or(Duration::MAX).as_nanos().max(1) as f64
}
