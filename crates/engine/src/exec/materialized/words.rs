//! Words: columns of a row whose values are in known ranges, together in one number of up to 64 bits.
//!
//! Random access to rows costs a cache miss for each column. If a key and a payload of 28 bits each share a
//! word, they come with one cache line, and take 8 bytes instead of 16.
//!
//! ```text
//! | column 0: distance from its least value | column 2: the same | … |   one word of 1, 2, 4 or 8 bytes a row
//! ```
//!
//! A [`WordPlan`] tells which columns share a word, which takes columns in turn while there are bits. Wider
//! columns, and those that gain nothing, stay as they are. The bits of a NULL are arbitrary; validity stays
//! with the column.
//!
//! Only rows that are [put in place](super::placing) have words: other rows are appended as columns, and
//! later copied.

use super::segments::{joined, visit_segments};
use crate::exec::gather::gather;
use crate::exec::prefetch::BLOCK;
use crate::exec::row_id::SEGMENT_ROWS;
use crate::exec::tuple::range_of;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{Buffer, Buffers, Native, PhysicalType};
use std::sync::Arc;

/// Bits of the widest word.
const WORD_BITS: u32 = 64;

/// Where a column's values are in its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WordField {
    shift: u32,
    mask: u64,
    /// Added to a distance, modulo the range of the column's type.
    least: u64,
}

impl WordField {
    /// A value, shifted to its field in a word.
    #[inline(always)]
    fn pack(self, value: u64) -> u64 {
        (value.wrapping_sub(self.least) & self.mask) << self.shift
    }

    /// The value in a word. The caller cuts off bits beyond its type.
    #[inline(always)]
    fn unpack(self, word: u64) -> u64 {
        (word >> self.shift & self.mask).wrapping_add(self.least)
    }
}

/// Which columns share a word.
pub(super) struct WordPlan {
    /// Bytes of each word.
    pub widths: Vec<usize>,
    /// For each column, its word and its field there; absent if it stays a column, or is not kept.
    pub places: Vec<Option<(usize, WordField)>>,
}

impl WordPlan {
    /// No words.
    pub fn none(columns: usize) -> WordPlan {
        WordPlan { widths: Vec::new(), places: vec![None; columns] }
    }

    /// The words of the columns that are `kept`.
    pub fn new(metas: &[ColumnMeta], kept: &[bool]) -> WordPlan {
        let mut plan = WordPlan::none(metas.len());
        // For each word, its used bits and the bytes of its columns.
        let mut words: Vec<(u32, usize)> = Vec::new();
        for (i, meta) in metas.iter().enumerate().filter(|(i, _)| kept[*i]) {
            let Some((least, bits)) = field_bits(meta) else { continue };
            let room = words.iter().position(|(used, _)| used + bits <= WORD_BITS);
            let word = room.unwrap_or(words.len());
            if word == words.len() {
                words.push((0, 0));
            }
            let mask = u64::MAX >> (WORD_BITS - bits);
            plan.places[i] = Some((word, WordField { shift: words[word].0, mask, least }));
            words[word].0 += bits;
            words[word].1 += meta.physical.width();
        }
        // A word wider than its columns loses, and a word of a single column of equal width gains nothing.
        let width = |bits: u32| (bits.div_ceil(8) as usize).next_power_of_two();
        let alone = |word: usize| plan.places.iter().flatten().filter(|place| place.0 == word).count() == 1;
        let useless: Vec<bool> =
            words.iter().enumerate().map(|(i, w)| width(w.0) + usize::from(alone(i)) > w.1).collect();
        let numbers: Vec<usize> = useless
            .iter()
            .scan(0, |next, &skip| Some(std::mem::replace(next, *next + usize::from(!skip))))
            .collect();
        for place in &mut plan.places {
            *place = place.filter(|place| !useless[place.0]).map(|(word, field)| (numbers[word], field));
        }
        plan.widths =
            words.iter().zip(&useless).filter(|(_, skip)| !**skip).map(|(w, _)| width(w.0)).collect();
        plan
    }
}

/// The least value of a column, and the bits that its distances need; `None` if it cannot be a field.
fn field_bits(meta: &ColumnMeta) -> Option<(u64, u32)> {
    match meta.physical {
        PhysicalType::F32 => return Some((0, 32)),
        // A byte other than 0 and 1 is not a bool, even at a NULL.
        PhysicalType::Bool => return Some((0, 1)),
        _ => {}
    }
    let (min, max) = range_of(meta).filter(|_| meta.physical.width() <= 8)?;
    let span = u64::try_from(max - min).ok()?;
    // A column of one value takes one bit too: a shift by all bits of a word is undefined.
    Some((min as u64, (WORD_BITS - span.leading_zeros()).max(1)))
}

/// One word of all rows, segment by segment.
pub(super) struct Words {
    pub values: Buffers,
    pub width: usize,
}

/// A column that is a field.
pub(super) struct Packed {
    pub words: Arc<Words>,
    pub field: WordField,
}

/// An unsigned number as wide as a column's values, or a word.
pub(super) trait Number: Native + Into<u64> {
    /// The lowest bits.
    fn cut(bits: u64) -> Self;
}

macro_rules! numbers {
    ($($t:ty),*) => {
        $(impl Number for $t {
            #[inline(always)]
            fn cut(bits: u64) -> $t {
                bits as $t
            }
        })*
    };
}

numbers!(u8, u16, u32, u64);

/// Runs an expression with `$t` as the unsigned type of `$width` bytes.
macro_rules! by_width {
    ($width:expr, |$t:ident| $body:expr) => {
        match $width {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}
pub(super) use by_width;

impl Packed {
    /// Writes the values in the given rows to `out`. If `missing`,
    /// [`Materialized::NO_ROW`](super::Materialized::NO_ROW) may be among them, and gives an arbitrary value.
    pub fn gather<T: Number>(&self, rows: &[u32], missing: bool, out: &mut [T]) {
        by_width!(self.words.width, |W| self.gather_from::<W, T>(rows, missing, out));
    }

    fn gather_from<W: Number, T: Number>(&self, rows: &[u32], missing: bool, out: &mut [T]) {
        let segments = &self.words.values;
        let joined = if missing { None } else { joined::<W>(segments, rows) };
        let mut words = [0u64; BLOCK];
        for (rows, out) in rows.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            match joined {
                Some((base, values)) => {
                    gather(values, rows, |row| row.wrapping_sub(base) as usize, &mut words)
                }
                None => visit_segments::<W, _>(segments, rows, &mut words, |row, to| {
                    let segment = segments.get((row >> 16) as usize).map(Buffer::as_slice::<W>);
                    *to = segment.map_or(0, |words| words[(row & 0xffff) as usize].into());
                }),
            }
            widest_of(Unpack { field: self.field, words: &words[..rows.len()], out });
        }
    }

    /// Writes the values of `segment` from offset `first` to all of `out`.
    pub fn read<T: Number>(&self, segment: usize, first: usize, out: &mut [T]) {
        by_width!(self.words.width, |W| {
            let words = &self.words.values[segment].as_slice::<W>()[first..first + out.len()];
            widest_of(Unpack { field: self.field, words, out });
        });
    }
}

/// Extracts the values from words, in a branch-free loop, for vector code.
struct Unpack<'a, W, T> {
    field: WordField,
    words: &'a [W],
    out: &'a mut [T],
}

impl<W: Number, T: Number> Kernel for Unpack<'_, W, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let values = self.words.iter().map(|&word| T::cut(self.field.unpack(word.into())));
        self.out.iter_mut().zip(values).for_each(|(to, value)| *to = value);
    }
}

/// Adds a column's values to words, in a branch-free loop, for vector code.
pub(super) struct Pack<'a, T> {
    pub field: WordField,
    pub values: &'a [T],
    pub words: &'a mut [u64],
}

impl<T: Number> Kernel for Pack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let fields = self.values.iter().map(|&value| self.field.pack(value.into()));
        self.words.iter_mut().zip(fields).for_each(|(word, field)| *word |= field);
    }
}

/// The rows of each segment of `rows` rows.
pub(super) fn segments(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows).step_by(SEGMENT_ROWS).map(move |first| SEGMENT_ROWS.min(rows - first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::column_of;
    use entasis_vector::DataType;

    /// A column's word, its shift and its bits.
    type Place = Option<(usize, u32, u32)>;

    fn plan(columns: &[(DataType, Option<(i128, i128)>)]) -> (Vec<usize>, Vec<Place>) {
        let metas: Vec<ColumnMeta> =
            columns.iter().map(|&(ty, range)| ColumnMeta { range, ..column_of(ty) }).collect();
        let plan = WordPlan::new(&metas, &vec![true; metas.len()]);
        let places =
            plan.places.iter().map(|place| place.map(|(word, f)| (word, f.shift, f.mask.count_ones())));
        (plan.widths, places.collect())
    }

    #[test]
    fn columns_share_words_as_long_as_there_are_bits() {
        use DataType::{Float32 as Float, Float64 as Double, Int16, Int32, Int64, UInt64, Varchar};
        let narrow = |bits: u32| Some((-5, (1 << bits) - 6));
        assert_eq!(
            plan(&[(Int64, narrow(28)), (Int64, narrow(27))]),
            (vec![8], vec![Some((0, 0, 28)), Some((0, 28, 27))])
        );
        assert_eq!(plan(&[(Int64, narrow(28))]), (vec![4], vec![Some((0, 0, 28))]));
        // Nothing is gained.
        assert_eq!(plan(&[(Int64, narrow(40))]), (vec![], vec![None]));
        assert_eq!(plan(&[(Int64, None), (Int32, None), (Double, None)]), (vec![], vec![None, None, None]));
        assert_eq!(
            plan(&[(UInt64, Some((0, u64::MAX.into()))), (Varchar, None)]),
            (vec![], vec![None, None])
        );
        // The second column does not fit beside the first; the third does.
        let (widths, places) = plan(&[
            (Int64, narrow(40)),
            (Int64, narrow(30)),
            (Int16, None),
            (Float, None),
            (Int64, Some((7, 7))),
        ]);
        assert_eq!(widths, [8, 8]);
        assert_eq!(
            places,
            [Some((0, 0, 40)), Some((1, 0, 30)), Some((0, 40, 16)), Some((1, 30, 32)), Some((0, 56, 1))]
        );
        // A word without columns is not numbered.
        let (widths, places) = plan(&[(Int64, None), (Int64, narrow(9))]);
        assert_eq!((widths, places), (vec![2], vec![None, Some((0, 0, 9))]));
    }

    #[test]
    fn values_come_back_whatever_the_sign_and_the_width() {
        let field = |least: i64, bits: u32, shift: u32| WordField {
            shift,
            mask: u64::MAX >> (64 - bits),
            least: least as u64,
        };
        for (field, values) in [
            (field(-5, 4, 0), vec![-5i64, 0, 10]),
            (field(i64::MAX - 3, 2, 62), vec![i64::MAX - 3, i64::MAX]),
            (field(i64::MIN, 64, 0), vec![i64::MIN, -1, 0, i64::MAX]),
        ] {
            for value in values {
                assert_eq!(field.unpack(field.pack(value as u64)) as i64, value);
                // Bits beyond the field change nothing else.
                assert_eq!(field.pack(value.wrapping_add(77) as u64) & !(field.mask << field.shift), 0);
            }
        }
        // Four-byte values, as unsigned numbers.
        let field = field(-5, 20, 7);
        for value in [-5i32, -1, 0, 1_000_000] {
            assert_eq!(u32::cut(field.unpack(field.pack((value as u32).into()))) as i32, value);
        }
    }
}
