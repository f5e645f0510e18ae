//! What `CALIBRATE` measures of a machine, as far as the model of our storage depends on it: a look-up, and a
//! byte that is read. `entasis_engine::calibrate` has the same in a crate that takes long to compile; here
//! times of few look-ups and bytes are taken, and the slowest of them left out, so that others who use the
//! processor do not count, in the same way as with the operations that are measured.

use crate::measure::undisturbed;
use entasis_layout::cost::{Machine, Stored};
use entasis_storage::{Datum, Table, TableOptions, TableSnapshot};
use entasis_vector::{Chunk, DataType, Field, Selection, Vector};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Rows of the table in which rows are looked up, how many are, and how many are timed together.
const ROWS: usize = 1 << 20;
const LOOKUPS: usize = 20_000;
const AT_ONCE: usize = 20;
/// Numbers of 8 bytes that are read from end to end, and how many are timed together.
const NUMBERS: usize = 16 << 20;
const NUMBERS_AT_ONCE: usize = 1 << 13;

/// What is measured with.
pub struct Measured {
    table: TableSnapshot,
    numbers: Vec<u64>,
}

/// The mean time of the parts of some work, by unit of it.
fn time<T>(parts: impl Iterator<Item = T>, units: usize, mut work: impl FnMut(T)) -> f64 {
    let times = parts.map(|part| {
        let start = Instant::now();
        work(part);
        start.elapsed().as_nanos() as f64 / units as f64
    });
    undisturbed(times.collect())
}

impl Measured {
    /// What it takes to measure this machine.
    pub fn new() -> Measured {
        let schema = vec![Field { nullable: false, ..Field::new("k", DataType::Int64) }];
        let table = Table::with_options("measured", schema, TableOptions::keyed(vec![0]));
        let (mut appender, mut chunk) = (table.appender(), Chunk::new());
        let keys: Vec<i64> = (0..ROWS as i64).map(|row| row * 2).collect();
        for keys in keys.chunks(2048) {
            chunk.reset(keys.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(Vector::from_slice(keys), group);
            appender.append(&chunk, 0).expect("rows are fine");
        }
        table.commit(vec![appender.finish()]).expect("rows are fine");
        Measured { table: table.snapshot(), numbers: vec![1; NUMBERS] }
    }

    /// What the machine takes at this moment.
    pub fn now(&self) -> Machine {
        let sum = |numbers: &[u64]| {
            _ = black_box(entasis_vector::simd::widest(|| black_box(numbers).iter().sum::<u64>()));
        };
        let byte = time(self.numbers.chunks(NUMBERS_AT_ONCE), size_of::<u64>() * NUMBERS_AT_ONCE, sum);
        Machine { lookup: self.lookup(), byte }
    }

    fn lookup(&self) -> f64 {
        let mut found = Vec::new();
        time((0..LOOKUPS).step_by(AT_ONCE), AT_ONCE, |first| {
            for number in first..first + AT_ONCE {
                let key = (number * 655_363 % ROWS) as i128 * 2;
                found.clear();
                if let Some(row) = self.table.find(&[Datum::Integer(key)]) {
                    self.table.read(row, &[0], &mut found);
                }
                black_box(&found);
            }
        })
    }
}

/// What the model depends on in a table: ranges read one column of average width, as in `EXPLAIN LAYOUT`.
pub fn stored(table: &Arc<Table>) -> Stored {
    let snapshot = table.snapshot();
    let columns = snapshot.schema().len();
    Stored {
        columns,
        key_bits: snapshot.encoded_bits(&table.options().layout_key),
        read_bits: snapshot.encoded_bits(&(0..columns).collect::<Vec<usize>>()) / columns as f64,
        ghosts: table.options().ghost,
        row_bytes: table.bytes() as f64 / snapshot.rows().max(1) as f64,
    }
}
