//! Tables that are loaded and then rest: shared by the examples.

use entasis_storage::Table;
use entasis_vector::{Chunk, PhysicalType, Selection, Value, Vector};
use std::sync::Arc;
use std::time::Duration;

/// A number that looks random.
pub fn mixed(row: i64, column: u64) -> i64 {
    let z = (row as u64).wrapping_add(column.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((z ^ (z >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20) as i64
}

/// Appends the rows of some keys, in this order, and commits them.
pub fn load(table: &Arc<Table>, keys: &[i64], row: impl Fn(i64) -> Vec<Value>) {
    let mut appender = table.appender();
    let mut chunk = Chunk::new();
    for part in keys.chunks(2048) {
        chunk.reset(part.len());
        let group = chunk.push_group(Selection::ALL);
        let rows: Vec<Vec<Value>> = part.iter().map(|&key| row(key)).collect();
        for (column, field) in table.schema().iter().enumerate() {
            let values: Vec<Value> = rows.iter().map(|row| row[column].clone()).collect();
            let physical: PhysicalType = field.ty.physical();
            chunk.push_column(Vector::from_values(physical, &values).expect("they fit"), group);
        }
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
}

/// What upkeep has done until nothing was left to do.
pub struct Rested {
    /// Calls of it.
    pub rounds: usize,
    /// Slices that were laid anew.
    pub spread: usize,
    /// Slices that were encoded.
    pub encoded: usize,
}

/// Upkeep until nothing is left to do.
pub fn rest(table: &Arc<Table>) -> Rested {
    let mut rested = Rested { rounds: 0, spread: 0, encoded: 0 };
    loop {
        let done = table.upkeep(Duration::from_millis(20));
        rested.rounds += 1;
        rested.spread += done.spread;
        rested.encoded += done.encoded;
        if done.is_done && done.warm + done.spread + done.encoded + done.overtaken == 0 {
            return rested;
        }
    }
}
