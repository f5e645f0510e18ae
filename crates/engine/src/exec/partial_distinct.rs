//! Drops rows that repeat ones that came shortly before, where a later operator drops all duplicates.
//!
//! A worker keeps rows in a small table, each in the place that its hash says. A row that equals the one in
//! its place is dropped; any other takes the place. So a row that was never seen always passes, some
//! duplicates pass too, memory does not grow, and no row waits. Rows are compared bit by bit: two that are
//! equal in SQL but not in their bits both pass.
//!
//! If most rows pass, the worker lets a million pass untested, and tries again. Without memory for its table
//! it lets all pass.

use super::key_filter::for_each_integer;
use super::operator::{Flow, Operator, OperatorFactory, Push};
use super::profile::PassRate;
use super::trials::Trials;
use crate::memory::{MemoryBudget, Reservation};
use crate::plan::Distinct;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{Buffer, Chunk, Encoding, PhysicalType, Result, Vector, bitmap};
use std::sync::Arc;

/// Bytes of a worker's table.
// PERF: half of the cache of a core that is not shared.
const BYTES: usize = if cfg!(test) { 512 } else { 512 << 10 };
/// The number of rows after which the test is continued or suspended.
const TRIAL_ROWS: usize = 16_384;
/// The percentage of rows that pass above which it is suspended.
const USELESS: usize = 70;

/// See the module.
pub(crate) struct DropRepeats {
    /// The columns in which rows are compared.
    columns: Vec<usize>,
    /// The test may be suspended.
    may_rest: bool,
    rate: Arc<PassRate>,
    memory: Arc<MemoryBudget>,
}

impl DropRepeats {
    /// True if rows of `input` can be compared in `columns`.
    pub(crate) fn is_possible(columns: &[usize], input: &[ColumnMeta]) -> bool {
        (1..=Distinct::MOST_PARTIAL).contains(&columns.len())
            && columns.iter().all(|&column| Distinct::may_be_partial(input[column].physical))
    }

    /// Compares rows in `columns`, with tables from `memory`.
    pub(crate) fn new(
        columns: Vec<usize>,
        may_rest: bool,
        rate: Arc<PassRate>,
        memory: &Arc<MemoryBudget>,
    ) -> DropRepeats {
        DropRepeats { columns, may_rest, rate, memory: memory.clone() }
    }
}

impl OperatorFactory for DropRepeats {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        fn boxed<const WORDS: usize>(own: &DropRepeats) -> Box<dyn Operator> {
            let places = 1 << (BYTES / (8 * WORDS)).ilog2();
            let mut reservation = Reservation::new(&own.memory);
            let has_memory = reservation.resize(places * 8 * WORDS).is_ok();
            let trials = Trials::new(&own.rate, own.may_rest, TRIAL_ROWS);
            Box::new(Worker::<WORDS> {
                columns: own.columns.clone(),
                trials: if has_memory { trials } else { trials.without_test() },
                table: if has_memory { vec![[0; WORDS]; places] } else { Vec::new() },
                _reservation: reservation,
                rows: Vec::new(),
                flat: Vector::new(PhysicalType::I64),
                picks: Vec::new(),
                spares: Vec::new(),
            })
        }
        // The last word says which values are NULL.
        Ok(match self.columns.len() {
            1 => boxed::<2>(self),
            2 => boxed::<3>(self),
            _ => boxed::<4>(self),
        })
    }
}

/// A row: its values, and a word with a bit for each of them that is not NULL and one that is always set.
type Row<const WORDS: usize> = [u64; WORDS];

/// The bit that tells rows from places that no row has taken.
const TAKEN: u64 = 1 << 63;

struct Worker<const WORDS: usize> {
    columns: Vec<usize>,
    trials: Trials,
    table: Vec<Row<WORDS>>,
    /// The table's memory.
    _reservation: Reservation,
    /// The rows of the current chunk.
    rows: Vec<Row<WORDS>>,
    /// Decoded values of a column that came in codes, or is a constant.
    flat: Vector,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
}

impl<const WORDS: usize> Operator for Worker<WORDS> {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        let count = chunk.len();
        if self.trials.rests(count) {
            return next.push(chunk);
        }
        self.read(chunk);
        self.find_new();
        self.trials.count(count, self.picks.len(), || USELESS);
        if self.picks.is_empty() {
            return Ok(Flow::Continue);
        }
        if self.picks.len() < count {
            chunk.select(&self.picks, &mut self.spares);
        }
        next.push(chunk)
    }
}

impl<const WORDS: usize> Worker<WORDS> {
    /// Reads the rows of a chunk.
    fn read(&mut self, chunk: &Chunk) {
        self.rows.clear();
        self.rows.resize(chunk.len(), [0; WORDS]);
        for row in &mut self.rows {
            row[WORDS - 1] = TAKEN;
        }
        for (word, &column) in self.columns.iter().enumerate() {
            let mut vector = chunk.vector(column);
            let mut positions = chunk.positions(column);
            if vector.encoding() != Encoding::Flat {
                if self.flat.physical() != vector.physical() {
                    self.flat = Vector::new(vector.physical());
                }
                chunk.flatten_column(column, &mut self.flat);
                (vector, positions) = (&self.flat, None);
            }
            write(vector, positions, word, &mut self.rows);
        }
    }

    /// Finds the rows that differ from those in their places, which they take.
    // PERF: branch-free, as rows that repeat come at random: every row is written to its place and to the
    // picks, and one that is new stays there.
    fn find_new(&mut self) {
        self.picks.clear();
        self.picks.resize(self.rows.len(), 0);
        let shift = 64 - self.table.len().ilog2();
        let mut found = 0;
        for (number, row) in self.rows.iter().enumerate() {
            let hash = row.iter().fold(0, |hash: u64, &word| {
                (hash.rotate_left(32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            });
            let place = &mut self.table[(hash >> shift) as usize];
            let is_new = place != row;
            *place = *row;
            self.picks[found] = number as u16;
            found += usize::from(is_new);
        }
        self.picks.truncate(found);
    }
}

/// Writes the values of a flat column as word `word` of `rows`, 0 for NULL.
fn write<const WORDS: usize>(
    vector: &Vector,
    positions: Option<&[u16]>,
    word: usize,
    rows: &mut [Row<WORDS>],
) {
    let at = |row: usize| positions.map_or(row, |positions| usize::from(positions[row]));
    let count = rows.len();
    let mut put = |value: &dyn Fn(usize) -> u64| {
        for (row, to) in rows.iter_mut().enumerate() {
            to[word] = value(at(row));
        }
    };
    match vector.physical() {
        PhysicalType::Bool => put(&|at| vector.values::<u8>()[at].into()),
        PhysicalType::F32 => put(&|at| vector.values::<f32>()[at].to_bits().into()),
        PhysicalType::F64 => put(&|at| vector.values::<f64>()[at].to_bits()),
        physical => for_each_integer!(physical, |T| {
            let values = vector.values::<T>();
            match positions {
                None => {
                    for (to, &value) in rows.iter_mut().zip(values) {
                        to[word] = value as i64 as u64;
                    }
                }
                Some(positions) => {
                    for (to, &position) in rows.iter_mut().zip(positions) {
                        to[word] = values[usize::from(position)] as i64 as u64;
                    }
                }
            }
        }),
    }
    if let Some(validity) = vector.validity() {
        for (row, to) in rows[..count].iter_mut().enumerate() {
            let is_valid = u64::from(bitmap::get(validity, at(row)));
            to[word] &= 0u64.wrapping_sub(is_valid);
            to[WORDS - 1] |= is_valid << word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::column_of;
    use crate::exec::profile::Recorder;
    use crate::exec::testing::{Chance, chunk_of};
    use entasis_vector::{DataType, Value};
    use std::collections::HashSet;

    /// Keeps what passes, as rows.
    struct Passed(Vec<Vec<Value>>, Vec<DataType>);

    impl Push for Passed {
        fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
            for row in 0..chunk.len() {
                let values = self.1.iter().enumerate();
                self.0.push(values.map(|(column, &ty)| chunk.value(row, column, ty)).collect());
            }
            Ok(Flow::Continue)
        }
    }

    #[test]
    fn no_row_is_lost_and_few_pass_again() {
        let mut chance = Chance(5);
        let types = [
            vec![DataType::Int64],
            vec![DataType::Int32, DataType::Boolean],
            vec![DataType::Date, DataType::Float64, DataType::UInt8],
        ];
        for types in types {
            for distinct in [1, 3, 5000] {
                let metas: Vec<ColumnMeta> = types.iter().map(|&ty| column_of(ty)).collect();
                let value = |chance: &mut Chance, ty: DataType| match (chance.below(7), ty) {
                    (0, _) => Value::Null,
                    (_, DataType::Boolean) => Value::Boolean(chance.below(2) == 0),
                    (_, DataType::Float64) => Value::Float(chance.below(distinct) as f64 - 0.5),
                    _ => Value::Integer((chance.below(distinct) % 200).into()),
                };
                let recorder = Recorder::new(String::new());
                let rate = recorder.pass_rate("repeats", "a");
                let columns: Vec<usize> = (0..types.len()).collect();
                let memory = Arc::new(MemoryBudget::default());
                assert!(DropRepeats::is_possible(&columns, &metas));
                let operator = DropRepeats::new(columns, false, rate, &memory);
                let mut worker = operator.worker().unwrap();
                assert!(memory.used() > BYTES / 2);
                let mut passed = Passed(Vec::new(), types.clone());
                let (mut seen, mut total) = (HashSet::new(), 0);
                for _ in 0..20 {
                    let row = |chance: &mut Chance| types.iter().map(|&ty| value(chance, ty)).collect();
                    let rows: Vec<Vec<Value>> = (0..100).map(|_| row(&mut chance)).collect();
                    seen.extend(rows.iter().map(|row| format!("{row:?}")));
                    total += rows.len();
                    worker.push(&mut chunk_of(&metas, &rows, &mut chance), &mut passed).unwrap();
                }
                let again: HashSet<String> = passed.0.iter().map(|row| format!("{row:?}")).collect();
                assert_eq!(again, seen, "{types:?} {distinct}");
                assert!(distinct > 1 || passed.0.len() < total / 2, "{types:?}: {}", passed.0.len());
            }
        }
        let texts = [column_of(DataType::Varchar)];
        let rate = Recorder::new(String::new()).pass_rate("repeats", "a");
        let nothing = Arc::new(MemoryBudget::new(0));
        assert!(!DropRepeats::is_possible(&[0], &texts));
        let numbers = [column_of(DataType::Int64)];
        let operator = DropRepeats::new(vec![0], true, rate, &nothing);
        let mut worker = operator.worker().unwrap();
        let mut passed = Passed(Vec::new(), vec![DataType::Int64]);
        let rows = vec![vec![Value::Integer(7)]; 50];
        worker.push(&mut chunk_of(&numbers, &rows, &mut chance), &mut passed).unwrap();
        assert_eq!(passed.0, rows, "without memory all pass");
    }
}
