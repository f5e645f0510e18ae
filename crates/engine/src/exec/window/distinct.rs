//! Counts and sums of the distinct values of frames that move at both ends.
//!
//! A value is new in a frame where its [equal row before](super::previous) is not in the frame. So the rows
//! of a frame that count are those whose number, the position of that row plus one, is not above the frame's
//! start: a query to a [wavelet matrix](super::wavelet). For sums it keeps, level by level, the sums of the
//! values that go with the zeros.

use super::counting::{Counting, read};
use super::frame::Frames;
use super::previous::Previous;
use super::section::Section;
use super::wavelet::Wavelet;
use crate::context::QueryContext;
use crate::exec::operator::Tasks;
use crate::memory::Reservation;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{CHUNK_ROWS, Error, PhysicalType, Result, Vector};

/// The largest magnitude of summed values for which sums of a section fit in 64 bits.
pub const MOST: u128 = 1 << 31;

/// Values of which the distinct ones count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DistinctSpec {
    /// Their column.
    pub column: usize,
    /// The rows that count.
    pub counting: Counting,
    /// True if they are summed.
    pub sums: bool,
}

/// See the module.
pub struct DistinctFrames {
    numbers: Wavelet,
    /// By level, and last for all rows in their order: the sum of the values that go with the zeros before a
    /// position. Empty if values are not summed.
    sums: Vec<Vec<i64>>,
}

impl DistinctFrames {
    /// Prepares the values in `section`, whose columns `metas` describe.
    ///
    /// # Errors
    /// Resource, if there is no memory for them; internal, for values that are no integers; those of `tasks`.
    pub fn new(
        spec: &DistinctSpec,
        metas: &[ColumnMeta],
        section: &Section,
        context: &QueryContext,
        tasks: &dyn Tasks,
    ) -> Result<DistinctFrames> {
        let previous = Previous::new(&spec.counting, metas, section, context, tasks)?;
        let numbers = previous.into_numbers(&spec.counting, section)?;
        // Until the owner of all of this reserves it.
        let mut memory = Reservation::new(&context.memory);
        if !spec.sums {
            memory.resize(Wavelet::bytes_for(numbers.len(), size_of::<u32>()))?;
            return Ok(DistinctFrames { numbers: Wavelet::new(numbers, tasks)?, sums: Vec::new() });
        }
        // Values, items, and sums, for which each level has about half of the rows.
        let levels = (usize::BITS - numbers.len().leading_zeros()) as usize;
        let sums = (levels / 2 + 2) * numbers.len() * size_of::<i64>();
        memory.resize(sums + Wavelet::bytes_for(numbers.len(), size_of::<(u32, i64)>()))?;
        macro_rules! values {
            ($t:ty) => {
                read(spec.column, &spec.counting, section, None, 0i64, 0, |v: $t| v as i64, tasks)?
            };
        }
        let values = match metas[spec.column].physical {
            PhysicalType::I8 => values!(i8),
            PhysicalType::I16 => values!(i16),
            PhysicalType::I32 => values!(i32),
            PhysicalType::I64 => values!(i64),
            PhysicalType::I128 => values!(i128),
            PhysicalType::U8 => values!(u8),
            PhysicalType::U16 => values!(u16),
            PhysicalType::U32 => values!(u32),
            PhysicalType::U64 => values!(u64),
            other => return Err(Error::internal(format!("{other:?} cannot be summed"))),
        };
        let all = sums_before(values.iter().copied());
        let items: Vec<(u32, i64)> = numbers.into_iter().zip(values).collect();
        let mut sums = Vec::new();
        let zeros = |zeros: &[(u32, i64)]| sums.push(sums_before(zeros.iter().map(|(_, value)| *value)));
        let numbers = Wavelet::of_items(items, |(number, _)| *number, zeros, tasks)?;
        sums.push(all);
        Ok(DistinctFrames { numbers, sums })
    }

    /// Writes the numbers of distinct values in the frames, which have no holes.
    pub fn write_counts(&self, frames: &Frames, out: &mut Vector) {
        let counts = out.begin_flat::<i64>(frames.starts.len().max(CHUNK_ROWS));
        for (count, (&start, &end)) in counts.iter_mut().zip(frames.starts.iter().zip(&frames.ends)) {
            *count = self.numbers.below(start as usize..end as usize, start + 1) as i64;
        }
    }

    /// Writes the sums of distinct values in the frames, or their means if there is a unit.
    pub fn write_sums(
        &self,
        frames: &Frames,
        unit: Option<f64>,
        meta: &ColumnMeta,
        out: &mut Vector,
    ) -> Result<()> {
        let room = frames.starts.len().max(CHUNK_ROWS);
        let mut nulls = Vec::new();
        let bounds = frames.starts.iter().zip(&frames.ends).enumerate();
        let mut results = bounds.map(|(row, (&start, &end))| {
            let mut sum = 0;
            let add = |level: usize, zeros: std::ops::Range<usize>| {
                sum += self.sums[level][zeros.end] - self.sums[level][zeros.start];
            };
            let count = self.numbers.each_below(start as usize..end as usize, start + 1, add);
            if count == 0 {
                nulls.push(row);
            }
            (sum, count)
        });
        match (unit, meta.physical) {
            (Some(unit), _) => {
                let means = out.begin_flat::<f64>(room).iter_mut().zip(&mut results);
                means.for_each(|(mean, (sum, count))| *mean = sum as f64 / (count.max(1) as f64 * unit));
            }
            (None, PhysicalType::I64) => {
                out.begin_flat::<i64>(room)
                    .iter_mut()
                    .zip(&mut results)
                    .for_each(|(out, (sum, _))| *out = sum);
            }
            (None, PhysicalType::U64) => {
                let out = out.begin_flat::<u64>(room).iter_mut().zip(&mut results);
                out.for_each(|(out, (sum, _))| *out = sum as u64);
            }
            (None, PhysicalType::I128) => {
                let out = out.begin_flat::<i128>(room).iter_mut().zip(&mut results);
                out.for_each(|(out, (sum, _))| *out = sum.into());
            }
            (None, other) => return Err(Error::internal(format!("a sum of integers as {other:?}"))),
        }
        drop(results);
        nulls.into_iter().for_each(|row| out.set_null(row));
        Ok(())
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.numbers.bytes() + self.sums.iter().map(|sums| sums.capacity() * size_of::<i64>()).sum::<usize>()
    }
}

/// The sum of all values before each one, and that of all.
fn sums_before(values: impl ExactSizeIterator<Item = i64>) -> Vec<i64> {
    let mut sums = Vec::with_capacity(values.len() + 1);
    let mut sum = 0;
    sums.push(sum);
    for value in values {
        sum += value;
        sums.push(sum);
    }
    sums
}
