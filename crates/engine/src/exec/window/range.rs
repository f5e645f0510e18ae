//! Bounds by value: the rows whose key is no more than an offset away from that of the current row.
//!
//! Keys are read once per section, as numbers of the same order: dates and times as microseconds, if offsets
//! are intervals. A bound is a number too, the key of the current row plus or minus the offset, in enough
//! bits that it never overflows; a moment before all others stands for one beyond the calendar. Since keys
//! are in order, bounds of consecutive rows are close to each other: each is searched from the last one, in
//! steps that double.
//!
//! Where a bound lies in a [gap](super::gaps), the first keys of the partition's blocks tell which of the
//! gap's blocks to search.
//!
//! NULL is far from all values: where an offset is given, the frame of a row whose key is NULL covers its
//! peers, and that of any other row never covers rows with NULL.

use super::operand::Operand;
use super::section::{Places, Section, task_ranges};
use crate::exec::operator::{Tasks, in_parallel};
use crate::plan::bad_offset;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::expr::calendar::{add_interval, midnight, negate_interval};
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::cmp_float;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Interval, Native, PhysicalType, Result, Vector};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// The key whose differences are offsets.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeSpec {
    /// Its column.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
    /// The kinds of keys and offsets.
    pub kind: RangeKind,
}

/// The kinds of keys and of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeKind {
    /// Both integers, or decimals of one scale; or days, and a number of days.
    Integer,
    /// Both floats.
    Float,
    /// A day, and an interval.
    Date,
    /// A moment, and an interval.
    Moment,
    /// A time of day, and an interval, of which only the time counts.
    Time,
    /// Both intervals.
    Interval,
    /// A moment, and the moment at which the frame ends: what the offset leads to by the clocks of a zone.
    Limit,
}

impl RangeKind {
    /// The kind of a key and its offset.
    ///
    /// # Errors
    /// Not supported, if such keys have no difference.
    pub fn of(key: DataType, offset: DataType) -> Result<RangeKind> {
        let is_number = |ty: DataType| ty.is_integer() || ty == DataType::Null;
        Ok(match (key, offset) {
            (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) if a == b => {
                RangeKind::Integer
            }
            (key, offset) if key.is_float() && (offset.is_float() || offset == DataType::Null) => {
                RangeKind::Float
            }
            (key, offset) if (key.is_integer() || key == DataType::Date) && is_number(offset) => {
                RangeKind::Integer
            }
            (DataType::Date, DataType::Interval) => RangeKind::Date,
            (DataType::Timestamp | DataType::TimestampTz, DataType::Interval) => RangeKind::Moment,
            (DataType::TimestampTz, DataType::TimestampTz) => RangeKind::Limit,
            (DataType::Time, DataType::Interval) => RangeKind::Time,
            (DataType::Interval, DataType::Interval) => RangeKind::Interval,
            _ => {
                return Err(Error::not_supported(format!(
                    "a RANGE frame by {key} with an offset of type {offset}"
                )));
            }
        })
    }
}

/// The keys of a section.
pub struct RangeKeys {
    values: Values,
    /// Which keys are not NULL; empty if none is NULL.
    valid: Vec<bool>,
    /// The keys of the first rows of all blocks, if the section has gaps.
    blocks: Option<Arc<RangeKeys>>,
}

enum Values {
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
    Float(Vec<f64>),
}

/// Memory of a search.
#[derive(Default)]
pub struct RangeSearch {
    integers: Vec<Option<i128>>,
    floats: Vec<Option<f64>>,
    intervals: Vec<Option<Interval>>,
}

impl RangeKeys {
    /// Reads the keys of `section`. If it has gaps, `blocks` are the keys of the first rows of all blocks.
    ///
    /// # Errors
    /// Internal, for types that are no keys; those of `tasks`.
    pub fn read(
        spec: &RangeSpec,
        meta: &ColumnMeta,
        section: &Section,
        blocks: Option<&Arc<RangeKeys>>,
        tasks: &dyn Tasks,
    ) -> Result<RangeKeys> {
        let mut valid = if section.has_nulls(spec.column) { vec![true; section.len()] } else { Vec::new() };
        let values = match (spec.kind, meta.physical) {
            (RangeKind::Date, _) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: i32| midnight_of(v))?)
            }
            (RangeKind::Interval, _) => {
                Values::Wide(read(spec, section, &mut valid, tasks, |v: Interval| v.estimate())?)
            }
            (_, PhysicalType::F32) => {
                Values::Float(read(spec, section, &mut valid, tasks, |v: f32| v.into())?)
            }
            (_, PhysicalType::F64) => Values::Float(read(spec, section, &mut valid, tasks, |v: f64| v)?),
            (_, PhysicalType::I8) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: i8| v.into())?)
            }
            (_, PhysicalType::I16) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: i16| v.into())?)
            }
            (_, PhysicalType::I32) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: i32| v.into())?)
            }
            (_, PhysicalType::I64) => Values::Narrow(read(spec, section, &mut valid, tasks, |v: i64| v)?),
            (_, PhysicalType::U8) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: u8| v.into())?)
            }
            (_, PhysicalType::U16) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: u16| v.into())?)
            }
            (_, PhysicalType::U32) => {
                Values::Narrow(read(spec, section, &mut valid, tasks, |v: u32| v.into())?)
            }
            (_, PhysicalType::U64) => {
                Values::Wide(read(spec, section, &mut valid, tasks, |v: u64| v.into())?)
            }
            (_, PhysicalType::I128) => Values::Wide(read(spec, section, &mut valid, tasks, |v: i128| v)?),
            (_, other) => return Err(Error::internal(format!("a frame by values held as {other:?}"))),
        };
        Ok(RangeKeys { values, valid, blocks: blocks.cloned() })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Narrow(values) => values.capacity() * 8,
            Values::Wide(values) => values.capacity() * 16,
            Values::Float(values) => values.capacity() * 8,
        };
        values + self.valid.capacity()
    }

    /// The bounds of the rows at `places`: the offset before them, or after them if `forward`. An end is
    /// after the last row that is near enough, a start at the first one.
    ///
    /// # Errors
    /// Input, if an offset is NULL or negative.
    #[expect(clippy::too_many_arguments)]
    pub fn find(
        &self,
        spec: &RangeSpec,
        offset: &Operand,
        forward: bool,
        is_end: bool,
        section: &Section,
        places: &Places,
        memory: &mut RangeSearch,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        // Towards larger keys.
        let up = forward != spec.descending;
        let rows = places.rows.clone();
        let blocks = self.blocks.as_deref();
        match &self.values {
            Values::Float(keys) => {
                let firsts = match blocks.map(|blocks| &blocks.values) {
                    Some(Values::Float(firsts)) => firsts,
                    _ => &Vec::new(),
                };
                offset.floats(section, rows, &mut memory.floats)?;
                let bad = |offset: &Option<f64>| offset.is_none_or(|offset| offset.is_nan() || offset < 0.0);
                check(&memory.floats, bad)?;
                let limit = |at: usize, row: usize| match memory.floats[row] {
                    Some(offset) if up => keys[at] + offset,
                    Some(offset) => keys[at] - offset,
                    None => keys[at],
                };
                let compare = |key: f64, limit: &f64| cmp_float(key, *limit);
                self.search(spec, is_end, section, places, (keys, firsts), limit, compare, out);
            }
            Values::Narrow(keys) => {
                let firsts = match blocks.map(|blocks| &blocks.values) {
                    Some(Values::Narrow(firsts)) => firsts,
                    _ => &Vec::new(),
                };
                let limits = Limits::new(spec.kind, offset, up, section, rows, &self.valid, memory)?;
                let limit = |at: usize, row: usize| limits.of(keys[at].into(), row);
                let compare = |key: i64, limit: &i128| i128::from(key).cmp(limit);
                self.search(spec, is_end, section, places, (keys, firsts), limit, compare, out);
            }
            Values::Wide(keys) => {
                let firsts = match blocks.map(|blocks| &blocks.values) {
                    Some(Values::Wide(firsts)) => firsts,
                    _ => &Vec::new(),
                };
                let limits = Limits::new(spec.kind, offset, up, section, rows, &self.valid, memory)?;
                let limit = |at: usize, row: usize| limits.of(keys[at], row);
                self.search(
                    spec,
                    is_end,
                    section,
                    places,
                    (keys, firsts),
                    limit,
                    |key: i128, limit: &i128| key.cmp(limit),
                    out,
                );
            }
        }
        Ok(())
    }

    /// Searches the bounds among `keys`, those of positions and those of the first rows of blocks. `limit`
    /// returns the limit of a position and its row; `compare` compares a key with a limit.
    #[expect(clippy::too_many_arguments)]
    fn search<K: Copy, L>(
        &self,
        spec: &RangeSpec,
        is_end: bool,
        section: &Section,
        places: &Places,
        (keys, firsts): (&[K], &[K]),
        limit: impl Fn(usize, usize) -> L,
        compare: impl Fn(K, &L) -> Ordering,
        out: &mut Vec<u32>,
    ) {
        // The last block of a gap whose first row still passes contains the bound, or precedes it.
        let look_into = |gap: Option<&Range<usize>>, passes: &dyn Fn(usize, bool) -> bool| {
            let (Some(gaps), Some(gap), Some(blocks)) = (section.gaps(), gap, &self.blocks) else { return };
            let is_valid = |block: usize| blocks.valid.is_empty() || blocks.valid[block];
            let beyond = first_beyond(gap.clone(), gap.start, |block| passes(block, is_valid(block)));
            gaps.miss([beyond.max(gap.start + 1) - 1]);
        };
        let gap_before = |bound: usize| section.gaps()?.at(bound.checked_sub(1)?);
        let ahead = if spec.descending { Ordering::Greater } else { Ordering::Less };
        let mut partition = u32::MAX;
        let mut values = 0..0;
        let mut last = 0;
        for (row, position) in places.rows.clone().enumerate() {
            if places.partition_start[row] != partition {
                partition = places.partition_start[row];
                values = self.values_of(spec, partition as usize..places.partition_end[row] as usize);
                last = values.start;
            }
            if !values.contains(&position) {
                // One of the rows with NULL, which are all on one side.
                let ends = (partition as usize, places.partition_end[row] as usize);
                let nulls = if spec.nulls_first { ends.0..values.start } else { values.end..ends.1 };
                let bound = if is_end { nulls.end } else { nulls.start };
                if bound < ends.1 {
                    look_into(gap_before(bound), &|_, is_valid| is_valid != spec.nulls_first);
                }
                out.push(bound as u32);
                continue;
            }
            let limit = limit(position, row);
            // An end passes the rows that equal the limit, too.
            let passes = |key: K| {
                let order = compare(key, &limit);
                order == ahead || is_end && order.is_eq()
            };
            last = first_beyond(values.clone(), last, |at| passes(keys[at]));
            if section.gaps().is_some() {
                let of_block = |block: usize, is_valid: bool| {
                    if is_valid { passes(firsts[block]) } else { spec.nulls_first }
                };
                look_into(gap_before(last), &of_block);
            }
            out.push(last as u32);
        }
    }

    /// The rows of a partition whose key is not NULL.
    fn values_of(&self, spec: &RangeSpec, partition: Range<usize>) -> Range<usize> {
        if self.valid.is_empty() {
            return partition;
        }
        let part = &self.valid[partition.clone()];
        if spec.nulls_first {
            partition.start + part.partition_point(|valid| !valid)..partition.end
        } else {
            partition.start..partition.start + part.partition_point(|valid| *valid)
        }
    }
}

/// Reads the keys, each as `key` has it; clears `valid` where one is NULL.
fn read<T: Native, K: Copy + Default + Send>(
    spec: &RangeSpec,
    section: &Section,
    valid: &mut [bool],
    tasks: &dyn Tasks,
    key: impl Fn(T) -> K + Sync,
) -> Result<Vec<K>> {
    let mut keys = vec![K::default(); section.len()];
    let ranges = task_ranges(section.len());
    let (mut rest, mut rest_valid) = (&mut keys[..], valid);
    let mut parts = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (own, after) = rest.split_at_mut(range.len());
        let (own_valid, after_valid) = rest_valid.split_at_mut(range.len().min(rest_valid.len()));
        (rest, rest_valid) = (after, after_valid);
        parts.push((range, own, own_valid));
    }
    in_parallel(tasks, parts, &|_, (range, keys, valid)| {
        let mut vector = Vector::new(T::PHYSICAL);
        for (i, keys) in keys.chunks_mut(CHUNK_ROWS).enumerate() {
            let first = range.start + i * CHUNK_ROWS;
            section.read(spec.column, first..first + keys.len(), &mut vector);
            keys.iter_mut().zip(vector.values::<T>()).for_each(|(to, &from)| *to = key(from));
            if vector.validity().is_some() {
                let valid = &mut valid[i * CHUNK_ROWS..][..keys.len()];
                valid.iter_mut().enumerate().for_each(|(row, valid)| *valid = vector.is_valid(row));
            }
        }
        tasks.check()
    })?;
    Ok(keys)
}

/// The first microsecond of a day, including the days before and after all others.
fn midnight_of(days: i32) -> i64 {
    midnight(days).unwrap_or_else(|| i64::from(days).saturating_mul(MICROS_PER_DAY))
}

/// Limits of integer keys.
struct Limits<'a> {
    kind: RangeKind,
    up: bool,
    /// Limits of offsets that are intervals, which are added by the calendar.
    intervals: &'a [Option<Interval>],
    /// All other offsets, and limits that are given.
    integers: &'a [Option<i128>],
}

impl<'a> Limits<'a> {
    fn new(
        kind: RangeKind,
        offset: &Operand,
        up: bool,
        section: &Section,
        rows: Range<usize>,
        valid: &[bool],
        memory: &'a mut RangeSearch,
    ) -> Result<Limits<'a>> {
        if matches!(kind, RangeKind::Integer | RangeKind::Limit) {
            offset.integers(section, rows.clone(), &mut memory.integers)?;
        } else {
            offset.intervals(section, rows.clone(), &mut memory.intervals)?;
            let size = |interval: Interval| match kind {
                RangeKind::Time => interval.micros.into(),
                _ => interval.estimate(),
            };
            memory.integers.clear();
            memory.integers.extend(memory.intervals.iter().map(|interval| interval.map(size)));
        }
        if matches!(kind, RangeKind::Limit) {
            // The limit of a key that is NULL is NULL, and is not asked for.
            let is_key = |at: usize| valid.is_empty() || valid[at];
            if rows.zip(&memory.integers).any(|(at, limit)| limit.is_none() && is_key(at)) {
                return Err(bad_offset());
            }
        } else {
            check(&memory.integers, |offset| offset.is_none_or(|offset| offset < 0))?;
        }
        Ok(Limits { kind, up, intervals: &memory.intervals, integers: &memory.integers })
    }

    fn of(&self, key: i128, row: usize) -> i128 {
        if matches!(self.kind, RangeKind::Date | RangeKind::Moment)
            && let Some(offset) = self.intervals[row]
        {
            let offset = if self.up { Some(offset) } else { negate_interval(offset) };
            let moved = offset.and_then(|offset| add_interval(key as i64, offset));
            return moved.map_or(if self.up { i128::MAX } else { i128::MIN }, i128::from);
        }
        if matches!(self.kind, RangeKind::Limit) {
            return self.integers[row].unwrap_or(key);
        }
        let offset = self.integers[row].unwrap_or(0);
        if self.up { key.saturating_add(offset) } else { key.saturating_sub(offset) }
    }
}

fn check<T>(offsets: &[Option<T>], is_bad: impl Fn(&Option<T>) -> bool) -> Result<()> {
    if offsets.iter().any(is_bad) { Err(bad_offset()) } else { Ok(()) }
}

/// The first position of `range` for which `passes` does not hold; it holds for all before it. The search
/// begins at `near`.
fn first_beyond(range: Range<usize>, near: usize, passes: impl Fn(usize) -> bool) -> usize {
    let near = near.clamp(range.start, range.end);
    let (mut low, mut high);
    let mut step = 1;
    if near < range.end && passes(near) {
        (low, high) = (near + 1, range.end);
        while low + step < range.end {
            if !passes(low + step) {
                high = low + step;
                break;
            }
            low += step + 1;
            step *= 2;
        }
    } else {
        (low, high) = (range.start, near);
        while high - low > step {
            if passes(high - step) {
                low = high - step + 1;
                break;
            }
            high -= step;
            step *= 2;
        }
    }
    while low < high {
        let middle = low.midpoint(high);
        if passes(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_found_from_anywhere() {
        for length in 0..40 {
            for first in [0, 3] {
                let range = first..first + length;
                for bound in range.start..=range.end {
                    for near in 0..50 {
                        let found = first_beyond(range.clone(), near, |at| {
                            assert!(range.contains(&at));
                            at < bound
                        });
                        assert_eq!(found, bound, "{range:?} from {near}");
                    }
                }
            }
        }
    }
}
