//! `min`, `max`, `bool_and` and `bool_or` over frames.
//!
//! Numbers of up to 64 bits are compared as ordinals, `i64`s of the same order; the code always finds the
//! least, so ordinals are inverted for a maximum. All else is compared row by row, and an extreme is the row
//! that has it. Either way, frames that begin with their partitions take the extreme of all rows so far,
//! others fold a segment tree. A count tells whether a frame has a value at all.
//!
//! A [gap](super::gaps) has the extreme of its blocks: an ordinal, or a row that is copied after those of the
//! section.

use super::copied::copied;
use super::counted::Counted;
use super::counting::{Counting, read};
use super::frame::Frames;
use super::scan::scan;
use super::section::Section;
use super::tree::Tree;
use super::view::View;
use crate::context::QueryContext;
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, PhysicalType, Result, Vector};
use std::cmp::Ordering;

/// Values of which the least or the largest is sought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtremeSpec {
    /// Their column.
    pub column: usize,
    /// The rows that count.
    pub counting: Counting,
    /// True for the largest.
    pub largest: bool,
    /// All frames begin with their partitions and have no holes.
    pub running: bool,
}

/// The extremes of the blocks of a stored partition.
pub enum BlockExtremes {
    /// Ordinals.
    Ordinals(Vec<i64>),
    /// Values, or NULL for blocks without any.
    Rows(Vec<u32>, Box<Materialized>),
}

/// The same, for any consecutive blocks.
pub enum GapExtremes {
    /// Ordinals.
    Ordinals(Tree<i64>),
    /// Values.
    Rows(Tree<u32>, Box<Materialized>),
}

impl BlockExtremes {
    /// Extremes of no blocks yet, of values that `meta` describes.
    pub fn new(meta: &ColumnMeta) -> BlockExtremes {
        if is_ordinal(meta.physical) {
            return BlockExtremes::Ordinals(Vec::new());
        }
        BlockExtremes::Rows(Vec::new(), Box::new(Materialized::new(std::slice::from_ref(meta))))
    }

    /// Adds the block whose extremes these are.
    pub fn push(&mut self, block: &ExtremeFrames) {
        match (self, &block.values) {
            (BlockExtremes::Ordinals(blocks), Values::Ordinals(least)) => {
                blocks.push(least.of_all(i64::MAX, i64::min));
            }
            (BlockExtremes::Rows(blocks, values), Values::Rows(least, kept)) => {
                match least.of_all(NONE, |a, b| kept.better(block.largest, a, b)) {
                    NONE => blocks.push(NONE),
                    row => {
                        blocks.push(values.rows() as u32);
                        copy_row(&kept.rows, row, values);
                    }
                }
            }
            _ => debug_assert!(false, "ordinals for rows"),
        }
    }

    /// Completes the extremes once all blocks are added; `largest` as in the spec.
    ///
    /// # Errors
    /// Those of `tasks`.
    pub fn finish(self, largest: bool, tasks: &dyn Tasks) -> Result<GapExtremes> {
        Ok(match self {
            BlockExtremes::Ordinals(values) => GapExtremes::Ordinals(Tree::new(values, i64::min, tasks)?),
            BlockExtremes::Rows(rows, values) => {
                let tree = Tree::new(rows, |a, b| better(&values, largest, |row| row, a, b), tasks)?;
                GapExtremes::Rows(tree, values)
            }
        })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match self {
            BlockExtremes::Ordinals(values) => values.capacity() * size_of::<i64>(),
            BlockExtremes::Rows(rows, values) => rows.capacity() * size_of::<u32>() + values.bytes(),
        }
    }
}

/// Appends a copy of a row of one column.
fn copy_row(from: &Materialized, row: u32, to: &mut Materialized) {
    let mut vector = Vector::new(to.columns()[0].physical);
    from.gather(0, &[row], &mut vector);
    to.append_vectors(&[(&vector, None)], 1);
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

    /// The extreme of the frame of row `row`; `none` for no rows.
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

    /// The extreme of all rows of a section that is one partition.
    fn of_all(&self, none: T, least: impl Fn(T, T) -> T) -> T {
        match self {
            Least::Running(values) => values.last().copied().unwrap_or(none),
            Least::Tree(tree) => tree.fold(0..tree.len(), none, least),
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
    /// The rows of the section's values.
    Rows(Least<u32>, Box<KeptValues>),
}

/// The values of a section by position, followed by those of its gaps.
struct KeptValues {
    rows: Materialized,
    /// Positions.
    len: u32,
    /// The position of each gap that has a value.
    gaps: Vec<u32>,
}

impl KeptValues {
    fn position(&self, row: u32) -> u32 {
        if row < self.len { row } else { self.gaps[(row - self.len) as usize] }
    }

    fn better(&self, largest: bool, a: u32, b: u32) -> u32 {
        better(&self.rows, largest, |row| self.position(row), a, b)
    }

    fn bytes(&self) -> usize {
        self.rows.bytes() + self.gaps.capacity() * size_of::<u32>()
    }
}

/// The position that stands for no row.
const NONE: u32 = Materialized::NO_ROW;

impl ExtremeFrames {
    /// Prepares the extremes of the values in `section`, whose columns `metas` describe. `blocks` has those
    /// of gaps.
    ///
    /// # Errors
    /// Resource, if there is no memory for them; those of `tasks`.
    pub fn new(
        spec: &ExtremeSpec,
        metas: &[ColumnMeta],
        section: &Section,
        blocks: Option<&GapExtremes>,
        context: &QueryContext,
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
        let mut ordinals: Vec<i64> = match metas[spec.column].physical {
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
                return ExtremeFrames::of_rows(spec, metas, section, blocks, context, tasks);
            }
        };
        if let Some(GapExtremes::Ordinals(tree)) = blocks {
            let gaps = section.gaps().into_iter().flat_map(|gaps| gaps.all());
            gaps.for_each(|(at, gap)| ordinals[at] = tree.fold(gap.clone(), i64::MAX, i64::min));
        }
        let least = Least::new(ordinals, spec.running, section, i64::min, tasks)?;
        Ok(ExtremeFrames { largest: spec.largest, values: Values::Ordinals(least) })
    }

    /// The same for values that are compared row by row.
    fn of_rows(
        spec: &ExtremeSpec,
        metas: &[ColumnMeta],
        section: &Section,
        blocks: Option<&GapExtremes>,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<ExtremeFrames> {
        let all = 0..section.len();
        let (mut rows, _memory) =
            copied(section, &[spec.column], metas, all, None, context, tasks)?.into_rows();
        let mut positions = vec![NONE; section.len()];
        spec.counting.each_chunk(section, 0..section.len(), None, |at, counts| {
            let counting = at.zip(counts).filter(|(_, counts)| **counts);
            counting.for_each(|(position, _)| positions[position] = position as u32);
            Ok(())
        })?;
        let mut of_gaps = Vec::new();
        if let Some(GapExtremes::Rows(tree, values)) = blocks {
            for (at, gap) in section.gaps().into_iter().flat_map(|gaps| gaps.all()) {
                let better = |a, b| better(values, spec.largest, |row| row, a, b);
                positions[at] = NONE;
                let row = tree.fold(gap.clone(), NONE, better);
                if row != NONE {
                    positions[at] = rows.rows() as u32;
                    of_gaps.push(at as u32);
                    copy_row(values, row, &mut rows);
                }
            }
        }
        let kept = KeptValues { rows, len: section.len() as u32, gaps: of_gaps };
        let better = |a, b| kept.better(spec.largest, a, b);
        let least = Least::new(positions, spec.running, section, better, tasks)?;
        Ok(ExtremeFrames { largest: spec.largest, values: Values::Rows(least, Box::new(kept)) })
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Ordinals(least) => least.bytes(),
            Values::Rows(least, kept) => least.bytes() + kept.bytes(),
        }
    }
}

/// The row with the better value; of equal ones that with the lower position.
fn better(rows: &Materialized, largest: bool, position: impl Fn(u32) -> u32, a: u32, b: u32) -> u32 {
    match (a, b) {
        (NONE, other) | (other, NONE) => other,
        (a, b) => match rows.compare(0, b, a, largest, false) {
            Ordering::Less => b,
            Ordering::Equal if position(b) < position(a) => b,
            _ => a,
        },
    }
}

/// True if values of this physical type are compared as ordinals.
fn is_ordinal(physical: PhysicalType) -> bool {
    !matches!(physical, PhysicalType::I128 | PhysicalType::Str | PhysicalType::Interval)
}

/// A call for the extreme of a frame.
#[derive(Debug)]
pub struct FrameExtreme {
    /// The state that has the extremes.
    pub state: usize,
    /// The state that tells which rows count, if not all do.
    pub counted: Option<usize>,
    /// The frame.
    pub frame: usize,
}

impl ExtremeFrames {
    /// Writes the extremes of the frames, values of the type `physical`.
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
                let better = |a, b| values.better(self.largest, a, b);
                let found =
                    (0..rows).map(|row| positions.of(frames, row, NONE, better)).collect::<Vec<u32>>();
                values.rows.gather(0, &found, out);
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

/// The place of a float in SQL's order, from which it can be recovered: the negative zero precedes the other.
fn ordinal(v: f64) -> i64 {
    let bits = if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() } as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The inverse of [`ordinal`].
fn of_ordinal(ordinal: i64) -> f64 {
    f64::from_bits(if ordinal < 0 { ordinal ^ i64::MAX } else { ordinal } as u64)
}
