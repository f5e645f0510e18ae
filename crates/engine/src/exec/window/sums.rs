//! `count`, `sum` and `avg` over frames.
//!
//! | values | what is kept for each position | a frame's sum |
//! |---|---|---|
//! | integers, decimals | the sum of all values before it | a difference |
//! | the same, if that might overflow 128 bits | a segment tree that tracks overflow | a fold |
//! | floats, frames that begin with their partitions | the sum of the partition's values up to it | itself |
//! | floats, other frames | a segment tree | a fold |
//!
//! Sums of integers are exact, so that values can be subtracted again without a trace. Floats are only ever
//! added: a difference would keep the errors of values that have left the frame, and infinity for good.

use super::counted::Counted;
use super::counting::{Counting, read};
use super::frame::Frames;
use super::previous::Previous;
use super::scan::scan;
use super::section::Section;
use super::tree::Tree;
use super::view::View;
use crate::exec::operator::Tasks;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Error, Native, PhysicalType, Result, Value, Vector};
use std::ops::Range;

/// The sum of each block of a stored partition.
pub enum BlockSums {
    /// Sums of integers, and whether they have overflowed.
    Integers(Vec<(i128, bool)>),
    /// Floats.
    Floats(Vec<f64>),
}

/// The same, for any consecutive blocks.
pub enum GapSums {
    /// Sums of integers, and whether they have overflowed.
    Integers(Tree<(i128, bool)>),
    /// Floats.
    Floats(Tree<f64>),
}

impl BlockSums {
    /// Sums of no blocks yet, of values that `meta` describes.
    pub fn new(meta: &ColumnMeta) -> BlockSums {
        match meta.physical {
            PhysicalType::F32 | PhysicalType::F64 => BlockSums::Floats(Vec::new()),
            _ => BlockSums::Integers(Vec::new()),
        }
    }

    /// Adds the block whose values `sums` has summed.
    pub fn push(&mut self, sums: &Sums) {
        match (self, sums) {
            (BlockSums::Floats(blocks), Sums::Running(sums)) => {
                blocks.push(sums.last().copied().unwrap_or(0.0));
            }
            (BlockSums::Floats(blocks), Sums::Floats(tree)) => {
                blocks.push(tree.fold(0..tree.len(), 0.0, |a, b| a + b));
            }
            (BlockSums::Integers(blocks), Sums::Narrow(sums)) => {
                blocks.push((sums.last().copied().unwrap_or(0).into(), false));
            }
            (BlockSums::Integers(blocks), Sums::Wide(sums)) => {
                blocks.push((sums.last().copied().unwrap_or(0), false));
            }
            (BlockSums::Integers(blocks), Sums::Checked(tree)) => {
                blocks.push(tree.fold(0..tree.len(), (0, false), checked));
            }
            _ => debug_assert!(false, "sums of floats for those of integers"),
        }
    }

    /// Completes the sums once all blocks are added.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn finish(self, tasks: &dyn Tasks) -> Result<GapSums> {
        Ok(match self {
            BlockSums::Integers(sums) => GapSums::Integers(Tree::new(sums, checked, tasks)?),
            BlockSums::Floats(sums) => GapSums::Floats(Tree::new(sums, |a, b| a + b, tasks)?),
        })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match self {
            BlockSums::Integers(sums) => sums.capacity() * size_of::<(i128, bool)>(),
            BlockSums::Floats(sums) => sums.capacity() * size_of::<f64>(),
        }
    }
}

impl GapSums {
    fn integers(&self, blocks: &Range<usize>) -> (i128, bool) {
        match self {
            GapSums::Integers(tree) => tree.fold(blocks.clone(), (0, false), checked),
            GapSums::Floats(_) => (0, false),
        }
    }

    fn floats(&self, blocks: &Range<usize>) -> f64 {
        match self {
            GapSums::Integers(_) => 0.0,
            GapSums::Floats(tree) => tree.fold(blocks.clone(), 0.0, |a, b| a + b),
        }
    }
}

/// Values that are summed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumSpec {
    /// Their column.
    pub column: usize,
    /// The rows that count.
    pub counting: Counting,
    /// All frames begin with their partitions and have no holes.
    pub running: bool,
}

/// See the module.
pub enum Sums {
    /// Sums in 64 bits.
    Narrow(Vec<i64>),
    /// Sums in 128 bits.
    Wide(Vec<i128>),
    /// Sums that might overflow, and whether they have.
    Checked(Tree<(i128, bool)>),
    /// Sums of a partition's floats.
    Running(Vec<f64>),
    /// Sums of floats.
    Floats(Tree<f64>),
}

impl Sums {
    /// Sums the values in `section`. `blocks` has the sums of gaps.
    ///
    /// # Errors
    /// Internal, for values that are no numbers; those of `tasks`.
    pub fn new(
        spec: &SumSpec,
        meta: &ColumnMeta,
        section: &Section,
        previous: Option<&Previous>,
        blocks: Option<&GapSums>,
        tasks: &dyn Tasks,
    ) -> Result<Sums> {
        let values = Values { spec, meta, section, previous, tasks };
        match meta.physical {
            PhysicalType::F32 | PhysicalType::F64 => Sums::of_floats(&values, blocks),
            _ => Sums::of_integers(&values, blocks),
        }
    }

    fn of_floats(of: &Values<'_>, blocks: Option<&GapSums>) -> Result<Sums> {
        let mut values = of.floats()?;
        if let Some(blocks) = blocks {
            of.gaps().for_each(|(at, gap)| values[at] = blocks.floats(gap));
        }
        if !of.spec.running {
            return Ok(Sums::Floats(Tree::new(values, |a, b| a + b, of.tasks)?));
        }
        scan(&mut values, of.section.partitions(), |a, b| a + b, of.tasks)?;
        Ok(Sums::Running(values))
    }

    /// In as few bits as hold the sum of all values.
    fn of_integers(of: &Values<'_>, blocks: Option<&GapSums>) -> Result<Sums> {
        let (min, max) = of.meta.range.unwrap_or((i128::MIN, i128::MAX));
        let most = min.unsigned_abs().max(max.unsigned_abs()).saturating_mul(of.section.rows().into());
        if most <= i64::MAX as u128 {
            let mut sums = of.narrow(1)?;
            if let Some(blocks) = blocks {
                of.gaps().for_each(|(at, gap)| sums[at + 1] = blocks.integers(gap).0 as i64);
            }
            scan(&mut sums[1..], &[0], |a, b| a + b, of.tasks)?;
            return Ok(Sums::Narrow(sums));
        }
        if most <= i128::MAX as u128 {
            let mut sums = of.wide(1)?;
            if let Some(blocks) = blocks {
                of.gaps().for_each(|(at, gap)| sums[at + 1] = blocks.integers(gap).0);
            }
            scan(&mut sums[1..], &[0], |a, b| a + b, of.tasks)?;
            return Ok(Sums::Wide(sums));
        }
        let mut sums: Vec<(i128, bool)> = of.wide(0)?.into_iter().map(|value| (value, false)).collect();
        if let Some(blocks) = blocks {
            of.gaps().for_each(|(at, gap)| sums[at] = blocks.integers(gap));
        }
        Ok(Sums::Checked(Tree::new(sums, checked, of.tasks)?))
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match self {
            Sums::Narrow(sums) => sums.capacity() * 8,
            Sums::Wide(sums) => sums.capacity() * 16,
            Sums::Checked(tree) => tree.bytes(),
            Sums::Running(sums) => sums.capacity() * 8,
            Sums::Floats(tree) => tree.bytes(),
        }
    }
}

/// The values of a section that are summed.
struct Values<'a> {
    spec: &'a SumSpec,
    meta: &'a ColumnMeta,
    section: &'a Section,
    previous: Option<&'a Previous>,
    tasks: &'a dyn Tasks,
}

/// Reads integers of the column's type, converted to another one.
macro_rules! integers {
    ($of:expr, $to:ty, $lead:expr) => {
        match $of.meta.physical {
            PhysicalType::I8 => $of.read($lead, |v: i8| v as $to),
            PhysicalType::I16 => $of.read($lead, |v: i16| v as $to),
            PhysicalType::I32 => $of.read($lead, |v: i32| v as $to),
            PhysicalType::I64 => $of.read($lead, |v: i64| v as $to),
            PhysicalType::I128 => $of.read($lead, |v: i128| v as $to),
            PhysicalType::U8 => $of.read($lead, |v: u8| v as $to),
            PhysicalType::U16 => $of.read($lead, |v: u16| v as $to),
            PhysicalType::U32 => $of.read($lead, |v: u32| v as $to),
            PhysicalType::U64 => $of.read($lead, |v: u64| v as $to),
            other => Err(Error::internal(format!("{other:?} cannot be summed"))),
        }
    };
}

impl Values<'_> {
    /// The positions of gaps, with their blocks.
    fn gaps(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.section.gaps().into_iter().flat_map(|gaps| gaps.all())
    }

    /// Floats; rows that do not count are zero.
    fn floats(&self) -> Result<Vec<f64>> {
        // A negative zero changes no sum, since sums begin with zero.
        match self.meta.physical {
            PhysicalType::F32 => self.read(0, |v: f32| v as f64 + 0.0),
            _ => self.read(0, |v: f64| v + 0.0),
        }
    }

    /// Integers in 64 bits; rows that do not count are zero, as are the first `lead` values.
    fn narrow(&self, lead: usize) -> Result<Vec<i64>> {
        integers!(self, i64, lead)
    }

    /// The same in 128 bits.
    fn wide(&self, lead: usize) -> Result<Vec<i128>> {
        integers!(self, i128, lead)
    }

    fn read<T: Native, V: Copy + Default + Send + Sync>(
        &self,
        lead: usize,
        convert: impl Fn(T) -> V + Sync,
    ) -> Result<Vec<V>> {
        let Values { spec, section, previous, tasks, .. } = *self;
        read(spec.column, &spec.counting, section, previous, V::default(), lead, convert, tasks)
    }
}

fn checked(a: (i128, bool), b: (i128, bool)) -> (i128, bool) {
    let (sum, over) = a.0.overflowing_add(b.0);
    (sum, a.1 | b.1 | over)
}

/// How a call uses counts and sums.
#[derive(Debug)]
pub struct Additive {
    /// The state that tells which rows count, if not all do.
    pub counted: Option<usize>,
    /// The frame.
    pub frame: usize,
    /// The column of the result.
    pub result: AdditiveResult,
}

/// See [`Additive`].
#[derive(Debug)]
pub enum AdditiveResult {
    /// The number of rows.
    Count,
    /// The sum of this state.
    Sum(usize),
    /// The sum of this state, divided by the count and a unit.
    Mean(usize, f64),
}

/// Writes the numbers of rows in the frames.
pub fn write_counts(counted: Option<&Counted>, frame: usize, view: &View<'_>, out: &mut Vector) {
    let frames = &view.frames[frame];
    let room = view.places.rows.len().max(CHUNK_ROWS);
    let counts = out.begin_flat::<i64>(room)[..view.places.rows.len()].iter_mut();
    match counted {
        Some(counted) => each_frame(frames, counts, |piece| i64::from(counted.count(piece))),
        None => each_frame(frames, counts, |piece| rows_of(&piece, view)),
    }
}

/// The rows of a piece of a frame.
#[inline]
fn rows_of(piece: &Range<usize>, view: &View<'_>) -> i64 {
    view.section.rows_between(piece.start as u32, piece.end as u32)
}

/// Sums, for each frame, what `of` returns for its pieces.
fn each_frame<'o>(frames: &Frames, out: impl Iterator<Item = &'o mut i64>, of: impl Fn(Range<usize>) -> i64) {
    if frames.are_whole() {
        let bounds = frames.starts.iter().zip(&frames.ends);
        out.zip(bounds).for_each(|(out, (&start, &end))| *out = of(start as usize..end as usize));
    } else {
        out.enumerate().for_each(|(row, out)| *out = frames.pieces(row).iter().map(&of).sum());
    }
}

/// Writes the sums of the frames, or their means if there is a unit. `meta` describes the result.
///
/// # Errors
/// Input, if a sum does not fit its type.
pub fn write_sums(
    sums: &Sums,
    counted: Option<&Counted>,
    frame: usize,
    unit: Option<f64>,
    meta: &ColumnMeta,
    view: &View<'_>,
    out: &mut Vector,
) -> Result<()> {
    let frames = &view.frames[frame];
    let rows = view.places.rows.len();
    let mut counts = vec![0i64; rows];
    match counted {
        Some(counted) => each_frame(frames, counts.iter_mut(), |piece| counted.count(piece).into()),
        None => each_frame(frames, counts.iter_mut(), |piece| rows_of(&piece, view)),
    }
    let fold = |tree: &Tree<f64>, row: usize| {
        frames.pieces(row).iter().fold(0.0, |sum, piece| tree.fold(piece, sum, |a, b| a + b))
    };
    // Running sums are those of the last row in the frame.
    let running = |sums: &[f64], row: usize| {
        let end = frames.ends[row] as usize;
        if frames.starts[row] as usize == end { 0.0 } else { sums[end - 1] }
    };
    match (sums, unit) {
        (Sums::Narrow(sums), None) if meta.physical == PhysicalType::I64 => {
            let out = out.begin_flat::<i64>(rows.max(CHUNK_ROWS))[..rows].iter_mut();
            each_frame(frames, out, |piece| sums[piece.end] - sums[piece.start]);
        }
        (Sums::Narrow(sums), Some(unit)) if frames.are_whole() => {
            let means = out.begin_flat::<f64>(rows.max(CHUNK_ROWS)).iter_mut().zip(&counts);
            for ((mean, &count), (&start, &end)) in means.zip(frames.starts.iter().zip(&frames.ends)) {
                *mean = (sums[end as usize] - sums[start as usize]) as f64 / (count.max(1) as f64 * unit);
            }
        }
        (Sums::Running(sums), unit) => write_floats(&counts, unit, meta, out, |row| running(sums, row)),
        (Sums::Floats(tree), unit) => write_floats(&counts, unit, meta, out, |row| fold(tree, row)),
        (Sums::Narrow(sums), unit) => write_integers(&counts, unit, meta, out, |row| {
            let of = |piece: Range<usize>| i128::from(sums[piece.end] - sums[piece.start]);
            Ok(frames.pieces(row).iter().map(of).sum())
        })?,
        (Sums::Wide(sums), unit) => write_integers(&counts, unit, meta, out, |row| {
            Ok(frames.pieces(row).iter().map(|piece| sums[piece.end] - sums[piece.start]).sum())
        })?,
        (Sums::Checked(tree), unit) => write_integers(&counts, unit, meta, out, |row| {
            let pieces = frames.pieces(row);
            match pieces.iter().fold((0, false), |sum, piece| tree.fold(piece, sum, checked)) {
                (sum, false) => Ok(sum),
                (_, true) => Err(Error::input("sum overflow: the sum has more than 38 digits")),
            }
        })?,
    }
    counts.iter().enumerate().filter(|(_, count)| **count == 0).for_each(|(row, _)| out.set_null(row));
    Ok(())
}

fn write_floats(
    counts: &[i64],
    unit: Option<f64>,
    meta: &ColumnMeta,
    out: &mut Vector,
    sum: impl Fn(usize) -> f64,
) {
    let rows = counts.len();
    let result = |row: usize| match unit {
        Some(unit) => sum(row) / (counts[row].max(1) as f64 * unit),
        None => sum(row),
    };
    if meta.physical == PhysicalType::F32 {
        let out = out.begin_flat::<f32>(rows.max(CHUNK_ROWS))[..rows].iter_mut();
        out.enumerate().for_each(|(row, out)| *out = result(row) as f32);
    } else {
        let out = out.begin_flat::<f64>(rows.max(CHUNK_ROWS))[..rows].iter_mut();
        out.enumerate().for_each(|(row, out)| *out = result(row));
    }
}

fn write_integers(
    counts: &[i64],
    unit: Option<f64>,
    meta: &ColumnMeta,
    out: &mut Vector,
    sum: impl Fn(usize) -> Result<i128>,
) -> Result<()> {
    let rows = counts.len();
    let room = rows.max(CHUNK_ROWS);
    if let Some(unit) = unit {
        let means = out.begin_flat::<f64>(room)[..rows].iter_mut().zip(counts);
        for (row, (mean, &count)) in means.enumerate() {
            *mean = sum(row)? as f64 / (count.max(1) as f64 * unit);
        }
        return Ok(());
    }
    let too_large = |sum: i128| {
        let ty = meta.ty;
        Error::input(format!("sum {} does not fit {ty}", Value::Integer(sum).display(ty)))
    };
    macro_rules! narrow {
        ($t:ty) => {
            for (row, out) in out.begin_flat::<$t>(room)[..rows].iter_mut().enumerate() {
                let sum = sum(row)?;
                *out = <$t>::try_from(sum).map_err(|_| too_large(sum))?;
            }
        };
    }
    match meta.physical {
        PhysicalType::I64 => narrow!(i64),
        PhysicalType::U64 => narrow!(u64),
        PhysicalType::I32 => narrow!(i32),
        PhysicalType::I128 => {
            let (least, most) = meta.ty.integer_range().unwrap_or((i128::MIN, i128::MAX));
            for (row, out) in out.begin_flat::<i128>(room)[..rows].iter_mut().enumerate() {
                *out = sum(row)?;
                if *out < least || *out > most {
                    return Err(too_large(*out));
                }
            }
        }
        other => return Err(Error::internal(format!("a sum of integers as {other:?}"))),
    }
    Ok(())
}
