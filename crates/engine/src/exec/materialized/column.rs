//! One column of kept rows: writes values of a chunk's vector to it, and reads rows of it.
//!
//! All loops run over one column of many rows. Narrower integers are widened; bytes of strings that do not
//! outlive the statement are copied to a heap.

use super::segments::{joined, visit_segments};
use super::words::{Packed, by_width};
use crate::exec::gather::gather;
use crate::exec::row_id::{NO_ROW, SEGMENT_ROWS};
use entasis_vector::bitmap;
use entasis_vector::buffer::seen_as_mut;
use entasis_vector::{Buffer, Buffers, Encoding, Native, PhysicalType, StringHeap, StringView, Vector};

/// One column, segment by segment.
pub(super) struct Column {
    pub(super) physical: PhysicalType,
    /// The values; empty buffers if they are fields of words.
    pub(super) values: Buffers,
    /// The words that have the values, if any.
    pub(super) packed: Option<Packed>,
    /// Absent if all are valid.
    pub(super) validity: Vec<Option<Buffer>>,
    pub(super) has_nulls: bool,
    /// All strings outlive the statement; none are in the heap.
    pub(super) strings_are_stable: bool,
}

/// Positions of a vector: `n` in a row, or listed ones.
#[derive(Clone, Copy)]
pub(super) enum Picks<'a> {
    From(usize),
    At(&'a [u16]),
}

impl Column {
    /// Writes the values in the given rows and their validity to `out`.
    pub(super) fn gather(&self, rows: &[u32], missing: bool, out: &mut Vector) {
        self.gather_values(rows, missing, out, 0);
        if missing || self.has_nulls {
            let words = out.validity_mut(rows.len());
            for (word, rows) in words.iter_mut().zip(rows.chunks(64)) {
                *word =
                    rows.iter().enumerate().fold(0, |w, (i, &row)| w | u64::from(self.is_valid(row)) << i);
            }
        }
    }

    /// Writes the values in the given rows to `out`, from position `first`.
    pub(super) fn gather_values(&self, rows: &[u32], missing: bool, out: &mut Vector, first: usize) {
        match self.physical.width() {
            1 => self.gather_to(rows, missing, &mut out.values_mut::<u8>()[first..]),
            2 => self.gather_to(rows, missing, &mut out.values_mut::<u16>()[first..]),
            4 => self.gather_to(rows, missing, &mut out.values_mut::<u32>()[first..]),
            8 => self.gather_to(rows, missing, &mut out.values_mut::<u64>()[first..]),
            _ => self.gather_to(rows, missing, &mut out.values_mut::<i128>()[first..]),
        }
    }

    /// Writes the values in the given rows to `out`, whose type is the column's or one as wide.
    #[inline(always)]
    pub(super) fn gather_to<T: Native>(&self, rows: &[u32], missing: bool, out: &mut [T]) {
        match &self.packed {
            None => gather_values(&self.values, rows, missing, out),
            Some(packed) => {
                by_width!(size_of::<T>(), |N| packed.gather::<N>(rows, missing, seen_as_mut(out)))
            }
        }
    }

    /// Writes `rows` values from offset `first` of `segment` to `out`.
    pub(super) fn read_values(&self, segment: usize, first: usize, rows: usize, out: &mut Vector) {
        match &self.packed {
            None => copy_range(&self.values[segment], first, rows, out),
            Some(packed) => by_width!(self.physical.width(), |T| {
                packed.read(segment, first, &mut out.values_mut::<T>()[..rows]);
            }),
        }
    }

    /// Writes the values in the given rows to `values`; returns their validity if some are NULL.
    pub(super) fn pick(&self, rows: &[u32], values: &mut Buffer) -> Option<Buffer> {
        match self.physical.width() {
            1 => self.gather_to(rows, false, &mut values.as_mut_slice::<u8>()[..rows.len()]),
            2 => self.gather_to(rows, false, &mut values.as_mut_slice::<u16>()[..rows.len()]),
            4 => self.gather_to(rows, false, &mut values.as_mut_slice::<u32>()[..rows.len()]),
            8 => self.gather_to(rows, false, &mut values.as_mut_slice::<u64>()[..rows.len()]),
            _ => self.gather_to(rows, false, &mut values.as_mut_slice::<i128>()[..rows.len()]),
        }
        let all_valid = !self.has_nulls || rows.iter().all(|&row| self.is_valid(row));
        (!all_valid).then(|| {
            let mut words = Buffer::zeroed(SEGMENT_ROWS / 8);
            rows.iter()
                .enumerate()
                .for_each(|(i, &row)| bitmap::set(words.as_mut_slice(), i, self.is_valid(row)));
            words
        })
    }

    #[inline(always)]
    pub(super) fn get<T: Native>(&self, row: u32) -> T {
        debug_assert!(self.packed.is_none());
        self.values[(row >> 16) as usize].as_slice::<T>()[(row & 0xffff) as usize]
    }

    #[inline(always)]
    pub(super) fn is_valid(&self, row: u32) -> bool {
        row != NO_ROW
            && match &self.validity[(row >> 16) as usize] {
                None => true,
                Some(words) => bitmap::get(words.as_slice(), (row & 0xffff) as usize),
            }
    }

    pub(super) fn write_validity(
        &mut self,
        vector: &Vector,
        picks: Picks<'_>,
        offset: usize,
        rows: usize,
        (room, bytes): (usize, &mut usize),
    ) {
        let slot = self.validity.last_mut().expect("room was made");
        let any_null = match picks {
            Picks::From(first) => (first..first + rows).any(|p| !vector.is_valid(p)),
            Picks::At(positions) => positions.iter().any(|&p| !vector.is_valid(p as usize)),
        };
        if !any_null {
            // The bits beyond the written ones are already set.
            return;
        }
        self.has_nulls = true;
        let words = slot.get_or_insert_with(|| {
            let buffer = all_valid(room);
            *bytes += buffer.capacity();
            buffer
        });
        let words = words.as_mut_slice::<u64>();
        match picks {
            Picks::From(first) => {
                (0..rows).for_each(|i| bitmap::set(words, offset + i, vector.is_valid(first + i)));
            }
            Picks::At(positions) => {
                for (i, &p) in positions.iter().enumerate() {
                    bitmap::set(words, offset + i, vector.is_valid(p as usize));
                }
            }
        }
    }
}

/// Validity of so many rows, all valid.
pub(super) fn all_valid(rows: usize) -> Buffer {
    let mut buffer = Buffer::zeroed(bitmap::words_for(rows) * 8);
    buffer.as_mut_slice::<u64>().fill(u64::MAX);
    buffer
}

/// Writes the picked values of `vector`, converted, to all of `out`.
#[inline(always)]
pub(super) fn copy_values<S: Native, T>(
    vector: &Vector,
    picks: Picks<'_>,
    out: &mut [T],
    convert: impl Fn(S) -> T,
) where
    T: Native,
{
    match vector.encoding() {
        Encoding::Constant => out.fill(convert(vector.values::<S>()[0])),
        Encoding::Flat => {
            let values = vector.values::<S>();
            match picks {
                Picks::From(first) => {
                    let values = &values[first..first + out.len()];
                    out.iter_mut().zip(values).for_each(|(o, &v)| *o = convert(v));
                }
                Picks::At(at) => out.iter_mut().zip(at).for_each(|(o, &p)| *o = convert(values[p as usize])),
            }
        }
        Encoding::Dictionary => {
            let values = vector.dictionary().expect("a dictionary vector has one").values().values::<S>();
            let codes = vector.codes();
            match picks {
                Picks::From(first) => {
                    let codes = &codes[first..first + out.len()];
                    out.iter_mut().zip(codes).for_each(|(o, &c)| *o = convert(values[c as usize]));
                }
                Picks::At(at) => {
                    out.iter_mut()
                        .zip(at)
                        .for_each(|(o, &p)| *o = convert(values[codes[p as usize] as usize]));
                }
            }
        }
    }
}

/// Writes the picked strings of `vector` to all of `out`, and their bytes to `heap`.
pub(super) fn copy_strings(vector: &Vector, picks: Picks<'_>, heap: &mut StringHeap, out: &mut [StringView]) {
    copy_values(vector, picks, out, |view: StringView| view);
    let nulls = vector.validity().is_some();
    if vector.is_constant() {
        if nulls && !vector.is_valid(0) {
            out.fill(StringView::default());
        } else if let Some(&first) = out.first() {
            out.fill(heap.push(first.as_bytes()));
        }
        return;
    }
    for (i, view) in out.iter_mut().enumerate().filter(|(_, view)| !view.is_inline()) {
        let position = match picks {
            Picks::From(first) => first + i,
            Picks::At(at) => at[i] as usize,
        };
        // The view of a NULL may point anywhere.
        *view = if nulls && !vector.is_valid(position) {
            StringView::default()
        } else {
            heap.push(view.as_bytes())
        };
    }
}

/// Writes the picked values of `vector`, whose integer type is narrower than `own`, from `offset`.
pub(super) fn widen(
    vector: &Vector,
    picks: Picks<'_>,
    own: PhysicalType,
    to: &mut Buffer,
    offset: usize,
    rows: usize,
) {
    macro_rules! widen {
        ($($from:ident $s:ty => $to:ident $t:ty),* $(,)?) => {
            match (vector.physical(), own) {
                $((PhysicalType::$from, PhysicalType::$to) => copy_values(
                    vector, picks, &mut to.as_mut_slice::<$t>()[offset..offset + rows], |v: $s| <$t>::from(v)
                ),)*
                (from, to) => panic!("a column of {to:?} was given {from:?}"),
            }
        };
    }
    widen!(
        I64 i64 => I128 i128, I32 i32 => I128 i128, I16 i16 => I128 i128, I8 i8 => I128 i128,
        U64 u64 => I128 i128, U32 u32 => I128 i128, U16 u16 => I128 i128, U8 u8 => I128 i128,
        I32 i32 => I64 i64, I16 i16 => I64 i64, I8 i8 => I64 i64,
        U32 u32 => I64 i64, U16 u16 => I64 i64, U8 u8 => I64 i64,
        I16 i16 => I32 i32, I8 i8 => I32 i32, U16 u16 => I32 i32, U8 u8 => I32 i32,
        F32 f32 => F64 f64,
    );
}

#[inline(always)]
fn gather_values<T: Native>(segments: &Buffers, rows: &[u32], missing: bool, out: &mut [T]) {
    if let (false, Some((base, values))) = (missing, joined::<T>(segments, rows)) {
        return gather(values, rows, |row| row.wrapping_sub(base) as usize, out);
    }
    let get = |row: u32| segments[(row >> 16) as usize].as_slice::<T>()[(row & 0xffff) as usize];
    visit_segments::<T, _>(segments, rows, out, |row, to| {
        *to = if missing && row == NO_ROW { T::default() } else { get(row) };
    });
}

pub(super) fn copy_range(from: &Buffer, first: usize, rows: usize, out: &mut Vector) {
    macro_rules! copy {
        ($t:ty) => {
            out.values_mut::<$t>()[..rows].copy_from_slice(&from.as_slice::<$t>()[first..first + rows])
        };
    }
    match out.physical().width() {
        1 => copy!(u8),
        2 => copy!(u16),
        4 => copy!(u32),
        8 => copy!(u64),
        _ => copy!(i128),
    }
}
