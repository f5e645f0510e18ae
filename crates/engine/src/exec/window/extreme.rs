//! `min`, `max`, `bool_and` and `bool_or` over frames.
//!
//! Numbers of up to 64 bits are compared as ordinals, `i64`s whose order is theirs; what is wanted is always
//! the least, so that for a maximum they are inverted. All else is compared row by row, and an extreme is the
//! row that has it. Either way frames that begin with their partitions take the extreme of all rows so far,
//! others fold a segment tree. Whether a frame has a value at all is a matter of counting.

use super::View;
use super::copied::copied;
use super::counted::Counted;
use super::frame::Frames;
use super::scan::scan;
use super::section::Section;
use super::tree::Tree;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use crate::exec::window::counting::{Counting, read};
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Result, Vector};

/// Values of which the least or the largest is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtremeSpec {
    /// Their column.
    pub column: usize,
    /// The rows that count.
    pub counting: Counting,
    /// The largest is wanted.
    pub largest: bool,
    /// All frames begin with their partitions and have no holes.
    pub running: bool,
}

/// The extremes of the rows so far, or of any stretch.
enum Least<T> {
    Running(Vec<T>),
    Tree(Tree<T>),
}

impl<T: Copy + Send + Sync> Least<T> {
    fn new(
        mut values: Vec<T>,
        running: bool,
        section: &Section,
        least: impl Fn(T, T) -> T + Sync,
        tasks: &dyn Tasks,
    ) -> Result<Least<T>> {
        if !running {
            return Ok(Least::Tree(Tree::new(values, least, tasks)?));
        }
        scan(&mut values, section.partitions(), least, tasks)?;
        Ok(Least::Running(values))
    }

    /// The extreme of the frame of row `row`; `none` of no rows.
    fn of(&self, frames: &Frames, row: usize, none: T, least: impl Fn(T, T) -> T) -> T {
        match self {
            Least::Running(values) => match frames.ends[row] {
                end if end > frames.starts[row] => values[end as usize - 1],
                _ => none,
            },
            Least::Tree(tree) => {
                frames.pieces(row).iter().fold(none, |found, piece| tree.fold(piece, found, &least))
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Least::Running(values) => values.capacity() * size_of::<T>(),
            Least::Tree(tree) => tree.bytes(),
        }
    }
}

/// See the module.
pub struct ExtremeFrames {
    largest: bool,
    values: Values,
}

enum Values {
    Ordinals(Least<i64>),
    /// Positions, and the values of the section by position.
    Rows(Least<u32>, Box<Materialized>),
}

/// The position that stands for no row.
const NONE: u32 = Materialized::NO_ROW;

impl ExtremeFrames {
    /// Gets ready for the extremes of the values in `section`, all columns of which `metas` describe.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn new(
        spec: &ExtremeSpec,
        metas: &[ColumnMeta],
        section: &Section,
        tasks: &dyn Tasks,
    ) -> Result<ExtremeFrames> {
        let inverted = if spec.largest { -1 } else { 0 };
        macro_rules! ordinals {
            ($t:ty, $ordinal:expr) => {
                read(
                    spec.column,
                    &spec.counting,
                    section,
                    None,
                    i64::MAX,
                    0,
                    |v: $t| $ordinal(v) ^ inverted,
                    tasks,
                )?
            };
        }
        let ordinals: Vec<i64> = match metas[spec.column].physical {
            PhysicalType::Bool | PhysicalType::U8 => ordinals!(u8, i64::from),
            PhysicalType::I8 => ordinals!(i8, i64::from),
            PhysicalType::I16 => ordinals!(i16, i64::from),
            PhysicalType::I32 => ordinals!(i32, i64::from),
            PhysicalType::I64 => ordinals!(i64, i64::from),
            PhysicalType::U16 => ordinals!(u16, i64::from),
            PhysicalType::U32 => ordinals!(u32, i64::from),
            PhysicalType::U64 => ordinals!(u64, flip),
            PhysicalType::F32 => ordinals!(f32, |v: f32| ordinal(v.into())),
            PhysicalType::F64 => ordinals!(f64, ordinal),
            PhysicalType::I128 | PhysicalType::Str | PhysicalType::Interval => {
                let (rows, _) = copied(section, &[spec.column], metas, 0..section.len(), None, tasks)?;
                let mut positions = vec![NONE; section.len()];
                spec.counting.each_chunk(section, 0..section.len(), None, |at, counts| {
                    let counting = at.zip(counts).filter(|(_, counts)| **counts);
                    counting.for_each(|(position, _)| positions[position] = position as u32);
                    Ok(())
                })?;
                let better = |a, b| better(&rows, spec.largest, a, b);
                let least = Least::new(positions, spec.running, section, better, tasks)?;
                return Ok(ExtremeFrames {
                    largest: spec.largest,
                    values: Values::Rows(least, Box::new(rows)),
                });
            }
        };
        let least = Least::new(ordinals, spec.running, section, i64::min, tasks)?;
        Ok(ExtremeFrames { largest: spec.largest, values: Values::Ordinals(least) })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Ordinals(least) => least.bytes(),
            Values::Rows(least, rows) => least.bytes() + rows.bytes(),
        }
    }
}

/// The row with the better value; the first of equal ones.
fn better(rows: &Materialized, largest: bool, a: u32, b: u32) -> u32 {
    match (a, b) {
        (NONE, other) | (other, NONE) => other,
        (a, b) if rows.compare(0, b, a, largest, false).is_lt() => b,
        (a, b) if rows.compare(0, b, a, largest, false).is_eq() => a.min(b),
        (a, _) => a,
    }
}

/// A call for the extreme of a frame.
#[derive(Debug)]
pub struct FrameExtreme {
    /// The state that knows the extremes.
    pub state: usize,
    /// Which rows count, if not all do: the state.
    pub counted: Option<usize>,
    /// The frame.
    pub frame: usize,
}

impl ExtremeFrames {
    /// Writes the extremes of the frames, values that are held as `physical`.
    pub fn write(
        &self,
        counted: Option<&Counted>,
        frame: usize,
        physical: PhysicalType,
        view: &View<'_>,
        out: &mut Vector,
    ) {
        let frames = &view.frames[frame];
        let rows = view.places.rows.len();
        let ordinals = match &self.values {
            Values::Ordinals(ordinals) => ordinals,
            Values::Rows(positions, values) => {
                let better = |a, b| better(values, self.largest, a, b);
                let found =
                    (0..rows).map(|row| positions.of(frames, row, NONE, better)).collect::<Vec<u32>>();
                values.gather(0, &found, out);
                return;
            }
        };
        let inverted = if self.largest { -1 } else { 0 };
        macro_rules! write {
            ($t:ty, $value:expr) => {{
                let out = out.begin_flat::<$t>(rows.max(CHUNK_ROWS))[..rows].iter_mut();
                for (row, out) in out.enumerate() {
                    *out = $value(ordinals.of(frames, row, i64::MAX, i64::min) ^ inverted);
                }
            }};
        }
        match physical {
            PhysicalType::Bool => write!(u8, |v| u8::from(v == 1)),
            PhysicalType::U8 => write!(u8, |v| v as u8),
            PhysicalType::I8 => write!(i8, |v| v as i8),
            PhysicalType::I16 => write!(i16, |v| v as i16),
            PhysicalType::I32 => write!(i32, |v| v as i32),
            PhysicalType::U16 => write!(u16, |v| v as u16),
            PhysicalType::U32 => write!(u32, |v| v as u32),
            PhysicalType::U64 => write!(u64, |v: i64| v as u64 ^ 1 << 63),
            PhysicalType::F32 => write!(f32, |v| of_ordinal(v) as f32),
            PhysicalType::F64 => write!(f64, of_ordinal),
            _ => write!(i64, |v| v),
        }
        let is_seen = |piece| counted.is_none_or(|counted| counted.count(piece) > 0);
        for row in (0..rows).filter(|&row| !frames.pieces(row).iter().any(is_seen)) {
            out.set_null(row);
        }
    }
}

fn flip(v: u64) -> i64 {
    (v ^ 1 << 63) as i64
}

/// The place of a float in SQL's order, of which it can be had again: the negative zero comes before the
/// other.
fn ordinal(v: f64) -> i64 {
    let bits = if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() } as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The inverse of [`ordinal`].
fn of_ordinal(ordinal: i64) -> f64 {
    f64::from_bits(if ordinal < 0 { ordinal ^ i64::MAX } else { ordinal } as u64)
}
