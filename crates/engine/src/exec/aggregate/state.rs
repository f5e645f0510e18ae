//! Aggregate states: for each aggregate one array over the groups, and the loops that fold a chunk's values
//! into it.
//!
//! | state | holds per group | for |
//! |---|---|---|
//! | [`State::Count`] | `i64` | `count`, and whether a group has had a value at all |
//! | [`State::Integers`] | `i64`, later `i128` | `sum` and `avg` of integers and decimals |
//! | [`State::Floats`] | `f64` | `sum` and `avg` of floats |
//! | [`State::Extreme`] | the best value so far | `min`, `max`, `bool_and`, `bool_or` |
//! | [`State::Any`] | a row of kept values | `any_value` |
//! | [`State::External`] | the library's state | everything else |
//!
//! Values come as one flat vector, the rows that count already picked: NULLs and rows that a `FILTER` rejects
//! are gone, except for external functions, which see NULLs. Integer sums are exact: they run in 64 bits as
//! long as the largest magnitude of the column times the rows so far fits, and then switch to 128 bits for
//! good.

use super::extreme::Extreme;
use super::rows::{Rows, accumulate, combine, permute};
use crate::exec::group_table::marked;
use crate::exec::group_table::marked::MASKED_GROUPS;
use crate::exec::materialized::Materialized;
use crate::sync::{Mutex, lock};
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::simd::widest;
use entasis_vector::{CHUNK_ROWS, Error, Native, PhysicalType, Result, Stored, Vector};
use std::sync::Arc;

/// What a state computes.
#[derive(Debug, Clone)]
pub enum StateKind {
    /// Rows.
    Count,
    /// Exact sum of integers or decimals.
    Integers,
    /// Sum of floats in double precision.
    Floats,
    /// Largest, or else smallest.
    Extreme {
        /// Largest.
        largest: bool,
    },
    /// The first value.
    Any,
    /// A function of another library.
    External(Arc<dyn ExternalAggregate>),
}

impl PartialEq for StateKind {
    fn eq(&self, other: &StateKind) -> bool {
        match (self, other) {
            (StateKind::Count, StateKind::Count)
            | (StateKind::Integers, StateKind::Integers)
            | (StateKind::Floats, StateKind::Floats)
            | (StateKind::Any, StateKind::Any) => true,
            (StateKind::Extreme { largest: a }, StateKind::Extreme { largest: b }) => a == b,
            // Two calls of one name may differ in their options.
            _ => false,
        }
    }
}

/// The states of one aggregate for all groups of a table.
pub enum State {
    /// Rows that count.
    Count(Vec<i64>),
    /// Exact sums.
    Integers(IntegerSums),
    /// Sums in double precision.
    Floats(Vec<f64>),
    /// Smallest or largest values.
    Extreme(Extreme),
    /// First values.
    Any(AnyValues),
    /// States of another library. The lock is never contended: it lets sealed tables be shared.
    External(Mutex<Box<dyn GroupStates>>),
    /// The results of an external state, one row per group.
    Results(Materialized),
}

impl State {
    /// Fresh states for arguments like `argument`.
    ///
    /// # Errors
    /// Those of an external function that refuses its arguments.
    pub fn new(kind: &StateKind, argument: Option<&ColumnMeta>) -> Result<State> {
        let argument = || argument.ok_or_else(|| Error::internal(format!("{kind:?} without an argument")));
        Ok(match kind {
            StateKind::Count => State::Count(Vec::new()),
            StateKind::Integers => State::Integers(IntegerSums::new(argument()?)),
            StateKind::Floats => State::Floats(Vec::new()),
            StateKind::Extreme { largest } => State::Extreme(Extreme::new(argument()?.physical, *largest)),
            StateKind::Any => State::Any(AnyValues::new(argument()?)),
            StateKind::External(function) => State::External(Mutex::new(function.state()?)),
        })
    }

    /// Makes room for `groups` groups; new ones start empty.
    pub fn resize(&mut self, groups: usize) {
        match self {
            State::Count(counts) => counts.resize(groups, 0),
            State::Integers(sums) => sums.resize(groups),
            State::Floats(sums) => sums.resize(groups, 0.0),
            State::Extreme(extreme) => extreme.resize(groups),
            State::Any(any) => any.rows.resize(groups, Materialized::NO_ROW),
            State::External(_) | State::Results(_) => {}
        }
    }

    /// Bytes of a group, at most, without those of texts and of other libraries.
    pub fn width(&self) -> usize {
        match self {
            State::Count(_) | State::Floats(_) => 8,
            State::Integers(sums) => sums.width(),
            State::Extreme(extreme) => extreme.width(),
            State::Any(_) => 4,
            State::External(_) | State::Results(_) => 0,
        }
    }

    /// Makes room for exactly `groups` groups, so that they may be added without a copy of all others.
    pub fn reserve(&mut self, groups: usize) {
        fn exactly<T>(list: &mut Vec<T>, groups: usize) {
            list.reserve_exact(groups.saturating_sub(list.len()));
        }
        match self {
            State::Count(counts) => exactly(counts, groups),
            State::Floats(sums) => exactly(sums, groups),
            State::Integers(sums) => match &mut sums.sums {
                Sums::Narrow(sums) => exactly(sums, groups),
                Sums::Wide(sums) => exactly(sums, groups),
            },
            State::Any(any) => exactly(&mut any.rows, groups),
            State::Extreme(_) | State::External(_) | State::Results(_) => {}
        }
    }

    /// Folds rows in. `args` are flat, as the rows' positions say; for external functions dense, flat or
    /// constant.
    ///
    /// # Errors
    /// Overflow, and what an external function raises.
    pub fn update(&mut self, args: &[Vector], rows: &Rows<'_>, group_count: usize) -> Result<()> {
        match self {
            State::Count(counts) => match (rows.marks, rows.groups) {
                (Some(marks), _) => {
                    let groups = counts.iter_mut().enumerate();
                    groups.for_each(|(group, count)| *count += marked::count(marks, group as u8) as i64);
                }
                (None, None) => counts[0] += rows.count as i64,
                (None, Some(groups)) if counts.len() <= MASKED_GROUPS => {
                    for (group, count) in counts.iter_mut().enumerate() {
                        let is_in = |g: &&u32| **g == group as u32;
                        *count += widest(|| groups[..rows.count].iter().filter(is_in).count()) as i64;
                    }
                }
                (None, Some(groups)) => groups[..rows.count].iter().for_each(|&g| counts[g as usize] += 1),
            },
            State::Integers(sums) => sums.update(&args[0], rows)?,
            State::Floats(sums) => match args[0].physical() {
                PhysicalType::F32 => accumulate_floats(args[0].values::<f32>(), rows, sums, |v| v.into()),
                _ => accumulate_floats(args[0].values::<f64>(), rows, sums, |v| v),
            },
            State::Extreme(extreme) => extreme.update(&args[0], rows),
            State::Any(any) => any.update(&args[0], rows),
            State::External(state) => {
                let zeros = [0; CHUNK_ROWS];
                let groups = rows.groups.unwrap_or(&zeros[..rows.count]);
                lock(state).update(args, &groups[..rows.count], rows.count, group_count)?;
            }
            State::Results(_) => return Err(Error::internal("an aggregate was updated after its end")),
        }
        Ok(())
    }

    /// Folds `rows` stored rows into the only group: values of `column`, or the rows themselves without one.
    ///
    /// # Errors
    /// Internal, if this state cannot fold stored rows.
    pub fn fold(&mut self, stored: &dyn Stored, column: Option<usize>, rows: usize) -> Result<()> {
        match (self, column) {
            (State::Count(counts), None) => counts[0] += rows as i64,
            (State::Count(counts), Some(column)) => counts[0] += stored.count(column) as i64,
            (State::Integers(sums), Some(column)) => sums.add(stored.sum(column), rows),
            (State::Extreme(extreme), Some(column)) => extreme.fold(stored, column),
            _ => return Err(Error::internal("an aggregate that wants single values was given stored rows")),
        }
        Ok(())
    }

    /// Prepares to merge groups of `other`; called once before any number of [`State::merge`] from it.
    pub fn begin_merge(&mut self, other: &State) {
        if let (State::Integers(own), State::Integers(other)) = (self, other) {
            own.make_room(other.rows);
        }
    }

    /// Adds `other`'s group `ids[i]` to the own group `map[i]`. Not for external states.
    ///
    /// # Errors
    /// Overflow.
    pub fn merge(&mut self, other: &State, ids: &[u32], map: &[u32]) -> Result<()> {
        match (self, other) {
            (State::Count(own), State::Count(other)) => combine(own, other, ids, map, |a, b| a + b),
            (State::Floats(own), State::Floats(other)) => combine(own, other, ids, map, |a, b| a + b),
            (State::Integers(own), State::Integers(other)) => own.merge(other, ids, map)?,
            (State::Extreme(own), State::Extreme(other)) => own.merge(other, ids, map),
            (State::Any(own), State::Any(other)) => own.merge(other, ids, map),
            _ => return Err(Error::internal("states of different aggregates cannot be merged")),
        }
        Ok(())
    }

    /// Makes group `ids[i]` group i. Not for external states.
    pub fn reorder(&mut self, ids: &[u32]) {
        match self {
            State::Count(counts) => permute(counts, ids),
            State::Integers(sums) => match &mut sums.sums {
                Sums::Narrow(sums) => permute(sums, ids),
                Sums::Wide(sums) => permute(sums, ids),
            },
            State::Floats(sums) => permute(sums, ids),
            State::Extreme(extreme) => extreme.reorder(ids),
            State::Any(any) => permute(&mut any.rows, ids),
            State::External(_) | State::Results(_) => {}
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match self {
            State::Count(counts) => counts.capacity() * 8,
            State::Integers(sums) => sums.bytes(),
            State::Floats(sums) => sums.capacity() * 8,
            State::Extreme(extreme) => extreme.bytes(),
            State::Any(any) => any.rows.capacity() * 4 + any.values.bytes(),
            State::External(state) => lock(state).bytes(),
            State::Results(results) => results.bytes(),
        }
    }
}

/// As [`accumulate`]; a sum without groups runs in eight lanes, since float additions may not be reordered by
/// the compiler.
#[inline(always)]
fn accumulate_floats<T: Native>(values: &[T], rows: &Rows<'_>, sums: &mut [f64], widen: impl Fn(T) -> f64) {
    if let (None, None) = (rows.groups, rows.positions) {
        let mut lanes = [0.0; 8];
        let (blocks, rest) = values[..rows.count].as_chunks::<8>();
        for block in blocks {
            lanes.iter_mut().zip(block).for_each(|(lane, &v)| *lane += widen(v));
        }
        sums[0] += lanes.iter().sum::<f64>() + rest.iter().map(|&v| widen(v)).sum::<f64>();
    } else {
        accumulate(values, rows, sums, |sum, v| sum + widen(v));
    }
}

/// Exact sums of integers.
pub struct IntegerSums {
    /// The largest magnitude of a value.
    bound: u128,
    /// Values so far.
    rows: u128,
    sums: Sums,
}

enum Sums {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl IntegerSums {
    fn new(argument: &ColumnMeta) -> IntegerSums {
        let (min, max) = argument.range.unwrap_or((i128::MIN, i128::MAX));
        let bound = min.unsigned_abs().max(max.unsigned_abs());
        IntegerSums { bound, rows: 0, sums: Sums::Narrow(Vec::new()) }
    }

    fn resize(&mut self, groups: usize) {
        match &mut self.sums {
            Sums::Narrow(sums) => sums.resize(groups, 0),
            Sums::Wide(sums) => sums.resize(groups, 0),
        }
    }

    fn bytes(&self) -> usize {
        match &self.sums {
            Sums::Narrow(sums) => sums.capacity() * 8,
            Sums::Wide(sums) => sums.capacity() * 16,
        }
    }

    /// Bytes of a sum: of a wide one, if values are so large that few of them make it wide.
    fn width(&self) -> usize {
        match &self.sums {
            Sums::Narrow(_) if self.bound >> 40 == 0 => 8,
            _ => 16,
        }
    }

    /// The sum of group `group`.
    pub fn get(&self, group: usize) -> i128 {
        match &self.sums {
            Sums::Narrow(sums) => sums[group].into(),
            Sums::Wide(sums) => sums[group],
        }
    }

    /// Counts `rows` more values and widens the sums if they might no longer fit.
    fn make_room(&mut self, rows: u128) {
        self.rows += rows;
        if let Sums::Narrow(sums) = &self.sums
            && self.bound.saturating_mul(self.rows) > i64::MAX as u128
        {
            self.sums = Sums::Wide(sums.iter().map(|&sum| sum.into()).collect());
        }
    }

    /// Adds `sum`, of at most `rows` integers of up to 64 bits, to the only group.
    fn add(&mut self, sum: i128, rows: usize) {
        self.make_room(rows as u128);
        match &mut self.sums {
            Sums::Narrow(sums) => sums[0] += sum as i64,
            Sums::Wide(sums) => sums[0] += sum,
        }
    }

    fn may_overflow(&self) -> bool {
        self.bound.saturating_mul(self.rows) > i128::MAX as u128
    }

    fn update(&mut self, vector: &Vector, rows: &Rows<'_>) -> Result<()> {
        self.make_room(rows.count as u128);
        let may_overflow = self.may_overflow();
        // The sum of this many values fits into 32 bits.
        let most = (i32::MAX as u128 / self.bound.max(1)).min(CHUNK_ROWS as u128) as usize;
        macro_rules! sum {
            ($t:ty) => {
                match (&mut self.sums, rows.marks) {
                    (Sums::Narrow(sums), Some(marks)) => {
                        marked::add(vector.values::<$t>(), marks, sums, |v| v as i64)
                    }
                    (Sums::Narrow(sums), None) => {
                        accumulate(vector.values::<$t>(), rows, sums, |sum, v: $t| sum + v as i64);
                    }
                    (Sums::Wide(sums), Some(marks)) => {
                        marked::accumulate(vector.values::<$t>(), marks, sums, |sum, v: $t| sum + v as i128);
                    }
                    (Sums::Wide(sums), None) => {
                        accumulate(vector.values::<$t>(), rows, sums, |sum, v: $t| sum + v as i128)
                    }
                }
            };
        }
        match (vector.physical(), &mut self.sums, rows.marks) {
            (PhysicalType::I32, Sums::Narrow(sums), Some(marks)) if most > 1 => {
                marked::add_narrow(vector.values::<i32>(), marks, sums, most);
                return Ok(());
            }
            _ => {}
        }
        match vector.physical() {
            PhysicalType::I8 => sum!(i8),
            PhysicalType::I16 => sum!(i16),
            PhysicalType::I32 => sum!(i32),
            PhysicalType::I64 => sum!(i64),
            PhysicalType::U8 => sum!(u8),
            PhysicalType::U16 => sum!(u16),
            PhysicalType::U32 => sum!(u32),
            PhysicalType::U64 => sum!(u64),
            PhysicalType::I128 if may_overflow => {
                let Sums::Wide(sums) = &mut self.sums else { unreachable!("widened in make_room") };
                let overflow = std::cell::Cell::new(false);
                let add = |sum: i128, v: i128| {
                    let (sum, over) = sum.overflowing_add(v);
                    overflow.set(overflow.get() | over);
                    sum
                };
                match rows.marks {
                    Some(marks) => marked::accumulate(vector.values::<i128>(), marks, sums, add),
                    None => accumulate(vector.values::<i128>(), rows, sums, add),
                }
                if overflow.get() {
                    return Err(sum_overflow());
                }
            }
            PhysicalType::I128 => sum!(i128),
            ty => return Err(Error::internal(format!("{ty:?} cannot be summed"))),
        }
        Ok(())
    }

    fn merge(&mut self, other: &IntegerSums, ids: &[u32], map: &[u32]) -> Result<()> {
        match (&mut self.sums, &other.sums) {
            (Sums::Narrow(own), Sums::Narrow(other)) => combine(own, other, ids, map, |a, b| a + b),
            (Sums::Wide(own), _) => {
                for (&id, &to) in ids.iter().zip(map) {
                    let sum = &mut own[to as usize];
                    *sum = sum.checked_add(other.get(id as usize)).ok_or_else(sum_overflow)?;
                }
            }
            (Sums::Narrow(_), Sums::Wide(_)) => {
                unreachable!("together they have no fewer rows than the other alone")
            }
        }
        Ok(())
    }
}

fn sum_overflow() -> Error {
    Error::input("sum overflow: the sum has more than 38 digits")
}

/// A value of some row for each group, not NULL if there is one.
pub struct AnyValues {
    /// Row of `values` by group.
    rows: Vec<u32>,
    /// One column.
    values: Materialized,
    picks: Vec<u16>,
    scratch: Vector,
}

impl AnyValues {
    fn new(argument: &ColumnMeta) -> AnyValues {
        AnyValues {
            rows: Vec::new(),
            values: Materialized::new(std::slice::from_ref(argument)),
            picks: Vec::new(),
            scratch: Vector::new(argument.physical),
        }
    }

    fn update(&mut self, vector: &Vector, rows: &Rows<'_>) {
        self.picks.clear();
        let mut next = self.values.rows() as u32;
        for row in 0..rows.count {
            let state = &mut self.rows[rows.groups.map_or(0, |groups| groups[row] as usize)];
            if *state == Materialized::NO_ROW {
                *state = next;
                next += 1;
                self.picks.push(rows.positions.map_or(row as u16, |at| at[row]));
            }
        }
        if !self.picks.is_empty() {
            self.values.append_vectors(&[(vector, Some(&self.picks))], self.picks.len());
        }
    }

    fn merge(&mut self, other: &AnyValues, ids: &[u32], map: &[u32]) {
        let mut next = self.values.rows() as u32;
        let mut taken = Vec::new();
        for (&id, &to) in ids.iter().zip(map) {
            let (own, theirs) = (&mut self.rows[to as usize], other.rows[id as usize]);
            if *own == Materialized::NO_ROW && theirs != Materialized::NO_ROW {
                *own = next;
                next += 1;
                taken.push(theirs);
            }
        }
        for taken in taken.chunks(CHUNK_ROWS) {
            other.values.gather(0, taken, &mut self.scratch);
            self.values.append_vectors(&[(&self.scratch, None)], taken.len());
        }
    }

    /// Writes the values of groups `start` to `start + rows` to `out`.
    pub fn write(&self, start: usize, rows: usize, out: &mut Vector) {
        self.values.gather(0, &self.rows[start..start + rows], out);
    }
}
