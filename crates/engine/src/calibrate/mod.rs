//! Calibration: measuring what reading, joining ([`joins`]) and chunks ([`chunks`]) cost on this machine
//! ([`crate::cost`]), in half a second: small tables, one for each encoding, are looked through again and
//! again. The fastest pass counts, as a machine has slow moments and no fast ones.
//!
//! A condition on integers is compared with the codes of blocks; of all others the values are decoded, which
//! is what the machine for expressions begins with.

mod chunks;
mod joins;

use crate::cost::Costs;
use entasis_storage::block::{Example, examples};
use entasis_storage::{Condition, Datum, Table, TableOptions, ValueRange};
use entasis_vector::statement::STEP;
use entasis_vector::{
    CHUNK_ROWS, Chunk, DataType, Field, Result, Schema, Selection, Value, Vector, statement,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Rows of a table of one encoding, which fit the second-level cache.
const ROWS: usize = 1 << 16;
/// Passes over each.
const PASSES: usize = 12;
/// Numbers of 8 bytes that are read from end to end, far more than caches hold.
const NUMBERS: usize = 16 << 20;
/// Bytes of memory that is accessed in no order, up to that of all numbers, and how often.
const ACCESSED: [usize; 4] = [1 << 20, 8 << 20, 32 << 20, NUMBERS * 8];
const ACCESSES: usize = 1 << 19;
/// Rows of the table in which rows are looked up, and how many.
const LOOKUP_ROWS: usize = 1 << 20;
const LOOKUPS: usize = 20_000;

impl Costs {
    /// Measures them on this machine, on the calling thread.
    ///
    /// # Errors
    /// Interrupted: nothing begins any more then, and what was measured is of no use; resource, if there is
    /// no memory for it.
    pub fn measure() -> Result<Costs> {
        let mut costs = Costs::default();
        for ((_, cost), example) in costs.value.iter_mut().zip(examples()) {
            *cost = value(example);
            statement::check()?;
        }
        costs.lookup = lookup();
        statement::check()?;
        joins::measure(&mut costs)?;
        chunks::measure(&mut costs)?;
        let _memory = statement::reserve(NUMBERS * size_of::<u64>())?;
        let mut numbers = Vec::with_capacity(NUMBERS);
        while numbers.len() < NUMBERS {
            numbers.resize(numbers.len() + STEP, 1u64);
            statement::check()?;
        }
        costs.byte = byte(&numbers);
        costs.access = ACCESSED.iter().map(|&bytes| (bytes as f64, access(&numbers[..bytes / 8]))).collect();
        statement::check()?;
        Ok(costs)
    }
}

/// Nanoseconds of the fastest of some passes.
fn fastest(passes: usize, mut pass: impl FnMut()) -> f64 {
    let times = (0..passes).take_while(|_| statement::check().is_ok()).map(|_| {
        let start = Instant::now();
        pass();
        start.elapsed().as_nanos() as f64
    });
    times.fold(f64::MAX, f64::min).max(1.0)
}

fn byte(numbers: &[u64]) -> f64 {
    fastest(3, || {
        black_box(entasis_vector::simd::widest(|| black_box(numbers).iter().sum::<u64>()));
    }) / size_of_val(numbers) as f64
}

/// One of some numbers, as many as a power of two.
fn access(numbers: &[u64]) -> f64 {
    let mask = numbers.len() - 1;
    let place = |number: usize| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & mask;
    fastest(3, || {
        black_box((0..ACCESSES).map(|number| black_box(numbers)[place(number)]).sum::<u64>());
    }) / ACCESSES as f64
}

/// A number below a million for each row, in no order.
fn scattered(row: usize) -> usize {
    (row * 2_654_435_761) % 1_000_003
}

/// A row and a value of it, in no order.
fn lookup() -> f64 {
    let key = |row: usize| row as i64 * 2;
    let table = table(TableOptions::keyed(vec![0]), &[DataType::Int64], LOOKUP_ROWS, |_, rows| {
        Vector::from_slice(&rows.map(key).collect::<Vec<_>>())
    });
    let snapshot = table.snapshot();
    let mut found = Vec::new();
    fastest(3, || {
        for number in 0..LOOKUPS {
            // A step that shares no factor with the rows.
            let row = number * 655_363 % LOOKUP_ROWS;
            found.clear();
            if let Some(row) = snapshot.find(&[Datum::Integer(key(row).into())]) {
                snapshot.read(row, &[0], &mut found);
            }
            black_box(&found);
        }
    }) / LOOKUPS as f64
}

/// A value of an encoding, of data that it is for.
fn value(example: &Example) -> f64 {
    let options = TableOptions { compression: example.compression, ..TableOptions::default() };
    let table = table(options, &[example.ty], ROWS, |_, rows| {
        let values: Vec<Value> = rows.map(example.value).collect();
        Vector::from_values(example.ty.physical(), &values).expect("they are of the type")
    });
    let snapshot = table.snapshot();
    let physical = snapshot.schema()[0].ty.physical();
    // Without rows it was stopped.
    let Some(group) = snapshot.row_group(0) else { return f64::MAX };
    let mut positions = Vec::with_capacity(CHUNK_ROWS);
    let mut decoded = Vector::new(physical);
    let range = [Condition::Range(ValueRange { column: 0, physical, low: 77, high: 78 })];
    let pass = || {
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let slots = first..group.slots().min(first + CHUNK_ROWS);
            if snapshot.schema()[0].ty.is_integer() {
                positions.clear();
                group.select_runs(&range, std::slice::from_ref(&slots), &mut positions);
                black_box(&positions);
            } else {
                group.decode(0, slots.start, slots.len(), &mut decoded);
                black_box(&decoded);
            }
        }
    };
    fastest(PASSES, pass) / group.slots() as f64
}

/// A table of columns of these types, whose values are given by column and rows.
fn table(
    options: TableOptions,
    types: &[DataType],
    rows: usize,
    values: impl Fn(usize, std::ops::Range<usize>) -> Vector,
) -> Arc<Table> {
    let schema: Schema = types.iter().map(|ty| Field { nullable: false, ..Field::new("a", *ty) }).collect();
    let table = Table::with_options("measured", schema, options);
    let mut appender = table.appender();
    let mut chunk = Chunk::new();
    for first in (0..rows).step_by(CHUNK_ROWS).take_while(|_| statement::check().is_ok()) {
        let part = first..rows.min(first + CHUNK_ROWS);
        chunk.reset(part.len());
        let group = chunk.push_group(Selection::ALL);
        for column in 0..types.len() {
            chunk.push_column(values(column, part.clone()), group);
        }
        appender.append(&chunk, 0).expect("the rows are of the table's type");
    }
    // Nothing but an interrupt makes it fail, and then nobody looks at the figures.
    let _ = table.commit(vec![appender.finish()]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_storage::Compression;

    #[test]
    fn every_encoding_has_a_cost() {
        let costs = Costs::default();
        let measured = Costs::measure().unwrap();
        assert!(measured.byte > 0.0 && measured.lookup > 0.0);
        let names = |costs: &Costs| costs.value.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(&costs), names(&measured));
        assert!(measured.value.iter().all(|(_, cost)| cost.is_finite() && *cost > 0.0), "{measured:?}");
    }

    #[test]
    fn what_is_packed_is_cheaper_to_scan() {
        let costs = Costs::default();
        let [flat, packed] = [Compression::None, Compression::Packed].map(|compression| {
            let options = TableOptions { compression, ..TableOptions::default() };
            table(options, &[DataType::Int64], 100_000, |_, rows| {
                Vector::from_slice(&rows.map(|row| (row * 7 % 1000) as i64).collect::<Vec<_>>())
            })
        });
        let [flat, packed] = [flat, packed].map(|table| costs.scan(&table.snapshot(), 0));
        assert!(packed * 2.0 < flat, "{packed} and {flat}");
    }
}
