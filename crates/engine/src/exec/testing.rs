//! Drives blocking operators by hand in tests: rows to chunks of every encoding, several workers, and back to
//! rows.

use crate::context::QueryContext;
use crate::exec::operator::{Sink, Tasks};
use crate::relation::Source;
use crate::settings::Settings;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Chunk, ColumnId, DataType, Dictionary, PhysicalType, Result, Selection, Value, Vector};
use std::sync::{Arc, Mutex};

/// A seeded random number generator (xorshift).
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Runs tasks on two threads.
pub struct TwoThreads;

impl Tasks for TwoThreads {
    fn run(&self, count: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let first_error = Mutex::new(Ok(()));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let first_error = &first_error;
                scope.spawn(move || {
                    for i in (thread..count).step_by(2) {
                        if let Err(error) = task(i) {
                            *first_error.lock().unwrap() = Err(error);
                        }
                    }
                });
            }
        });
        first_error.into_inner().unwrap()
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

pub fn context(chunk_rows: usize, hash_collisions: bool) -> QueryContext {
    let settings = Settings { chunk_rows, hash_collisions, ..Settings::default() };
    QueryContext { settings: Arc::new(settings), ..QueryContext::default() }
}

pub fn column(id: u32, ty: DataType) -> ColumnMeta {
    ColumnMeta::new(ColumnId(id), ty)
}

/// A chunk of `rows`, with columns in random encodings and selections.
pub fn chunk_of(metas: &[ColumnMeta], rows: &[Vec<Value>], chance: &mut Chance) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows.len());
    let dense = chunk.push_group(Selection::ALL);
    let backwards: Vec<u16> = (0..rows.len() as u16).map(|r| 2 * (rows.len() as u16 - 1 - r) + 1).collect();
    let reversed = chunk.push_group(Selection::from_indices(&backwards));
    for (c, meta) in metas.iter().enumerate() {
        let values: Vec<Value> = rows.iter().map(|row| row[c].clone()).collect();
        let all_equal = values.iter().all(|v| *v == values[0]);
        let (vector, group) = match chance.below(3) {
            0 if all_equal => (Vector::constant(meta.physical, &values[0]).unwrap(), reversed),
            1 => {
                let mut spread = vec![Value::Null; rows.len() * 2];
                for (value, &at) in values.iter().zip(&backwards) {
                    spread[at as usize] = value.clone();
                }
                let mut vector = Vector::from_values(meta.physical, &spread).unwrap();
                if values.iter().all(|v| !v.is_null()) {
                    vector.set_validity(None);
                }
                (vector, reversed)
            }
            2 => (dictionary_of(meta.physical, &values), dense),
            _ => (Vector::from_values(meta.physical, &values).unwrap(), dense),
        };
        chunk.push_column(vector, group);
    }
    chunk
}

fn dictionary_of(physical: PhysicalType, values: &[Value]) -> Vector {
    let mut entries: Vec<Value> = values.iter().filter(|v| !v.is_null()).cloned().collect();
    entries.sort_by(Value::total_cmp);
    entries.dedup();
    if entries.is_empty() {
        return Vector::from_values(physical, values).unwrap();
    }
    let dictionary = Dictionary::new(Vector::from_values(physical, &entries).unwrap(), entries.len());
    let mut vector = Vector::new(physical);
    let codes = vector.begin_codes(&dictionary, values.len());
    for (code, value) in codes.iter_mut().zip(values) {
        *code = entries.iter().position(|e| e == value).unwrap_or(0) as u32;
    }
    for (at, _) in values.iter().enumerate().filter(|(_, v)| v.is_null()) {
        vector.set_null(at);
    }
    vector
}

/// Pushes `rows` in chunks of `chunk_rows` to `workers` workers of `sink`, one morsel after another, and
/// finishes the sink.
pub fn push_all(
    sink: &dyn Sink,
    metas: &[ColumnMeta],
    rows: &[Vec<Value>],
    chunk_rows: usize,
    workers: usize,
    chance: &mut Chance,
) -> Result<()> {
    let mut parts = (0..workers).map(|_| sink.worker()).collect::<Result<Vec<_>>>()?;
    for (morsel, rows) in rows.chunks(chunk_rows * 3).enumerate() {
        let worker = &mut parts[chance.below(workers as u64) as usize];
        worker.start_morsel(morsel as u64);
        for rows in rows.chunks(chunk_rows) {
            worker.push(&mut chunk_of(metas, rows, chance))?;
        }
    }
    parts.into_iter().try_for_each(|worker| worker.finish())?;
    sink.finish(&TwoThreads)
}

/// All rows of `source`, whose chunks have at most `chunk_rows`.
pub fn drain(source: &dyn Source, output: &[ColumnMeta], chunk_rows: usize) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let mut worker = source.worker()?;
    let mut chunk = Chunk::new();
    while worker.next(&mut chunk)? {
        assert!(chunk.len() <= chunk_rows && chunk.columns().len() == output.len());
        for row in 0..chunk.len() {
            rows.push(output.iter().enumerate().map(|(c, meta)| chunk.value(row, c, meta.ty)).collect());
        }
    }
    source.end();
    Ok(rows)
}
