//! Bytes and nanoseconds a row of kept rows as tuples and as columns.
//!
//! `make bench-tuples`, or `cargo run --release -p entasis-engine --example tuples`
//!
//! Rows look like the payload of joins over TPC-H at scale 1: some columns of `orders` and of `lineitem`,
//! with the ranges that their tables' statistics give. Strings are pinned, as those of tables are. Times are
//! the least of several rounds; random rows are drawn over all rows, 2048 a gather. A digest of what was read
//! is printed, so that nothing is skipped. At the end, the keys of a million groups are compared with those
//! of rows, as an aggregation does.

mod random;

use entasis_engine::exec::materialized::{Materialized, column_of};
use entasis_engine::exec::tuple::TupleLayout;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, DataType, StringView, Vector};
use random::Random;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 5;

/// What a column holds.
enum Values {
    /// Integers from the first to the last.
    Between(i64, i64),
    /// One of these.
    OneOf(&'static [&'static str]),
}
use Values::{Between, OneOf};

const PRIORITIES: &[&str] = &["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const MODES: &[&str] = &["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
const COMMENTS: &[&str] =
    &["egular courts above the", "ly final dependencies: slyly bold", "arefully slyly ex"];
const MONEY: DataType = DataType::Decimal { precision: 15, scale: 2 };

fn meta(ty: DataType, values: &Values) -> ColumnMeta {
    let range = match values {
        Between(min, max) => Some(((*min).into(), (*max).into())),
        OneOf(_) => None,
    };
    ColumnMeta { nullable: false, range, ..column_of(ty) }
}

fn vector(ty: DataType, values: &Values, random: &mut Random) -> Vector {
    let mut out = Vector::new(ty.physical());
    out.begin(CHUNK_ROWS);
    match values {
        Between(min, max) if ty == DataType::Date => {
            out.values_mut::<i32>().fill_with(|| (min + random.below((max - min + 1) as u64) as i64) as i32);
        }
        Between(min, max) => {
            out.values_mut::<i64>().fill_with(|| min + random.below((max - min + 1) as u64) as i64);
        }
        OneOf(texts) => {
            let views = out.begin_strings(CHUNK_ROWS);
            for view in &mut views.views[..CHUNK_ROWS] {
                *view = views.heap.push(texts[random.below(texts.len() as u64) as usize].as_bytes());
            }
        }
    }
    out
}

/// A sum over what was read.
fn digest(vector: &Vector, rows: usize) -> u64 {
    match vector.physical().width() {
        4 => vector.values::<u32>()[..rows].iter().fold(0, |sum, &v| sum.wrapping_add(v.into())),
        8 => vector.values::<u64>()[..rows].iter().fold(0, |sum, &v| sum.wrapping_add(v)),
        _ => vector.values::<StringView>()[..rows].iter().fold(0, |sum, v| sum.wrapping_add(v.head())),
    }
}

/// The least nanoseconds a row of several rounds.
fn time(rows: usize, mut run: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / rows as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// The keys of groups, in no order, compared with what comes: where they are as columns, and fetched from
/// tuples.
fn compare() {
    let columns = [(DataType::Int64, Between(1, 1 << 20)), (DataType::Varchar, OneOf(MODES))];
    let metas: Vec<ColumnMeta> = columns.iter().map(|(ty, values)| meta(*ty, values)).collect();
    let layout = Arc::new(TupleLayout::new(&metas, &[false; 2]).expect("two columns fit a tuple"));
    let mut random = Random(4711);
    let mut vectors: Vec<Vector> =
        columns.iter().map(|(ty, values)| vector(*ty, values, &mut random)).collect();
    vectors.iter_mut().for_each(|vector| vector.set_strings_stable(true));
    let fill = || {
        let mut rows = Materialized::new(&metas);
        (0..512).for_each(|_| rows.append_vectors(&[(&vectors[0], None), (&vectors[1], None)], CHUNK_ROWS));
        rows
    };
    let (plain, mut packed) = (fill(), fill());
    (0..packed.segments()).for_each(|segment| packed.compress(segment, &layout));
    let total = plain.rows();
    let chunks: Vec<(Vec<u32>, [Vector; 2])> = (0..total / CHUNK_ROWS)
        .map(|_| {
            let ids: Vec<u32> = (0..CHUNK_ROWS).map(|_| random.below(total as u64) as u32).collect();
            let mut keys = [DataType::Int64, DataType::Varchar].map(|ty| Vector::new(ty.physical()));
            plain.gather_all(&[0, 1], &ids, &mut keys);
            (ids, keys)
        })
        .collect();
    let mut equal = 0;
    let (mut rows, mut own): (Vec<u16>, Vec<u32>) = Default::default();
    let as_columns = time(total, || {
        for (ids, keys) in &chunks {
            rows.clear();
            rows.extend(0..CHUNK_ROWS as u16);
            own.clone_from(ids);
            (0..2).for_each(|key| plain.retain_equal(key, &keys[key], None, false, &mut rows, &mut own));
            equal += own.len();
        }
    });
    let mut out = [DataType::Int64, DataType::Varchar].map(|ty| Vector::new(ty.physical()));
    let as_tuples = time(total, || {
        for (ids, keys) in &chunks {
            packed.gather_all(&[0, 1], ids, &mut out);
            rows.clear();
            rows.extend(0..CHUNK_ROWS as u16);
            rows.retain(|&row| {
                let row = usize::from(row);
                let numbers = [&keys[0], &out[0]].map(|keys| keys.values::<u64>()[row]);
                let texts = [&keys[1], &out[1]].map(|keys| keys.values::<StringView>()[row]);
                numbers[0] == numbers[1] && texts[0] == texts[1]
            });
            equal += rows.len();
        }
    });
    assert_eq!(equal, 2 * ROUNDS * total, "each row has the keys of its group");
    println!(
        "keys of {total} groups, two columns: as columns {as_columns:.1}, as tuples {as_tuples:.1} ns a row"
    );
}

fn measure(name: &str, chunks: usize, columns: &[(DataType, Values)]) {
    let metas: Vec<ColumnMeta> = columns.iter().map(|(ty, values)| meta(*ty, values)).collect();
    let layout =
        Arc::new(TupleLayout::new(&metas, &vec![false; metas.len()]).expect("a few columns fit a tuple"));
    let mut random = Random(4711);
    // The strings' bytes outlive the rows in these.
    let pools: Vec<Vec<Vector>> = (0..16)
        .map(|_| {
            let mut vectors: Vec<Vector> =
                columns.iter().map(|(ty, values)| vector(*ty, values, &mut random)).collect();
            vectors.iter_mut().for_each(|vector| vector.set_strings_stable(true));
            vectors
        })
        .collect();
    let fill = || {
        let mut rows = Materialized::new(&metas);
        for chunk in 0..chunks {
            let vectors: Vec<(&Vector, Option<&[u16]>)> = (0..metas.len())
                .map(|column| (&pools[(chunk * 7 + column * 5) % 16][column], None))
                .collect();
            rows.append_vectors(&vectors, CHUNK_ROWS);
        }
        rows
    };
    let total = chunks * CHUNK_ROWS;
    let append = time(total, || drop(fill()));
    let plain = fill();
    let mut packed = fill();
    let start = Instant::now();
    (0..packed.segments()).for_each(|segment| packed.compress(segment, &layout));
    let mut encode = start.elapsed().as_nanos() as f64 / total as f64;
    for _ in 1..ROUNDS {
        let mut again = fill();
        let start = Instant::now();
        (0..again.segments()).for_each(|segment| again.compress(segment, &layout));
        encode = encode.min(start.elapsed().as_nanos() as f64 / total as f64);
    }
    let ids: Vec<u32> = (0..total).map(|_| random.below(total as u64) as u32).collect();
    println!("{name}: {total} rows, {} columns", metas.len());
    println!("  append {append:.1} ns a row, encode {encode:.1} ns a row");
    for (name, rows) in [("columns", &plain), ("tuples", &packed)] {
        let mut out: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        let mut sum = 0u64;
        let mut gather = |columns: &[usize], ids: &[u32]| {
            time(total, || {
                for ids in ids.chunks(CHUNK_ROWS) {
                    let out = &mut out[..columns.len()];
                    rows.gather_all(columns, ids, out);
                    sum = out.iter().fold(sum, |sum, out| sum.wrapping_add(digest(out, ids.len())));
                }
            })
        };
        let all: Vec<usize> = (0..metas.len()).collect();
        let read = gather(&all, &rows.ids().collect::<Vec<_>>());
        let (one, all) = (gather(&[0], &ids), gather(&all, &ids));
        let bytes = rows.bytes() as f64 / total as f64;
        print!("  {name:8} {bytes:6.1} bytes a row; ns a row: all in order {read:.1}, ");
        println!("one at random {one:.1}, all at random {all:.1}");
        println!("           digest {sum:x}");
    }
}

fn main() {
    let dates = || Between(8036, 10591);
    measure(
        "orders",
        732,
        &[
            (DataType::Int64, Between(1, 150_000)),
            (DataType::Date, dates()),
            (MONEY, Between(85_771, 55_528_516)),
            (DataType::Int64, Between(0, 0)),
            (DataType::Varchar, OneOf(PRIORITIES)),
        ],
    );
    measure(
        "lineitem",
        2930,
        &[
            (DataType::Int64, Between(1, 200_000)),
            (DataType::Int64, Between(1, 10_000)),
            (MONEY, Between(100, 5000)),
            (MONEY, Between(90_091, 10_494_950)),
            (MONEY, Between(0, 10)),
            (MONEY, Between(0, 8)),
            (DataType::Date, dates()),
            (DataType::Varchar, OneOf(&["A", "N", "R"])),
            (DataType::Varchar, OneOf(MODES)),
            (DataType::Varchar, OneOf(COMMENTS)),
        ],
    );
    measure("one key", 732, &[(DataType::Int64, Between(1, 6_000_000))]);
    measure(
        "numbers of which nothing is known",
        732,
        &[
            (DataType::Int64, Between(i64::MIN / 2, i64::MAX / 2)),
            (DataType::Int64, Between(i64::MIN / 2, i64::MAX / 2)),
            (DataType::Int64, Between(i64::MIN / 2, i64::MAX / 2)),
            (DataType::Int64, Between(i64::MIN / 2, i64::MAX / 2)),
            (DataType::Int64, Between(i64::MIN / 2, i64::MAX / 2)),
        ],
    );
    compare();
}
