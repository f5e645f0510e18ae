//! Compares kept keys with the rows of a chunk: of the pairs that a hash has brought together, keeps those
//! that are equal.
//!
//! There is one loop over all pairs for each encoding of the chunk's vector and each type, without a branch
//! on the result.

use super::column::Column;
use super::rows::Materialized;
use crate::exec::prefetch::BLOCK;
use entasis_vector::simd::{Kernel, widest_of};
use entasis_vector::{Encoding, Interval, Native, PhysicalType, StringView, Vector};

impl Materialized {
    /// Keeps the pairs (row of a chunk, own row) whose values are equal: in `vector` at the chunk's row
    /// (mapped by `positions`; `None`: the row itself), and in the own key `column`. NULL equals NULL iff
    /// `null_equals_null`. Both lists have equal length and shrink together; order is kept.
    /// [`Materialized::NO_ROW`] must not be among the own rows.
    pub fn retain_equal(
        &self,
        column: usize,
        vector: &Vector,
        positions: Option<&[u16]>,
        null_equals_null: bool,
        probe_rows: &mut Vec<u16>,
        build_rows: &mut Vec<u32>,
    ) {
        debug_assert_eq!(probe_rows.len(), build_rows.len());
        debug_assert!(self.field_of(column).is_none());
        let column = &self.columns[column];
        let check = Check {
            column,
            vector,
            positions,
            nulls: (vector.validity().is_some() || column.has_nulls).then_some(null_equals_null),
        };
        let pairs = (probe_rows, build_rows);
        if column.physical != vector.physical() {
            check.retain_widened(pairs);
            return;
        }
        match column.physical {
            PhysicalType::Bool | PhysicalType::I8 | PhysicalType::U8 => {
                check.retain(pairs, |a: u8, b: u8| a == b)
            }
            PhysicalType::I16 | PhysicalType::U16 => check.retain(pairs, |a: u16, b: u16| a == b),
            PhysicalType::I32 | PhysicalType::U32 => check.retain(pairs, |a: u32, b: u32| a == b),
            PhysicalType::I64 | PhysicalType::U64 => check.retain(pairs, |a: u64, b: u64| a == b),
            PhysicalType::I128 => check.retain(pairs, |a: i128, b: i128| a == b),
            PhysicalType::F32 => check.retain(pairs, |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan())),
            PhysicalType::F64 => check.retain(pairs, |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan())),
            PhysicalType::Str => check.retain(pairs, |a: StringView, b: StringView| a == b),
            PhysicalType::Interval => check.retain(pairs, |a: Interval, b: Interval| a == b),
        }
    }
}

/// One comparison of [`Materialized::retain_equal`].
struct Check<'a> {
    column: &'a Column,
    vector: &'a Vector,
    positions: Option<&'a [u16]>,
    /// Set if NULLs may occur: whether NULL equals NULL.
    nulls: Option<bool>,
}

impl Check<'_> {
    fn position(&self, row: u16) -> usize {
        self.positions.map_or(row as usize, |at| at[row as usize] as usize)
    }

    /// Reads the vector as flat, selected or in another encoding, then keeps the equal pairs.
    #[inline(always)]
    fn retain<T: Native>(&self, pairs: (&mut Vec<u16>, &mut Vec<u32>), equal: impl Fn(T, T) -> bool) {
        let plain = self.nulls.is_none() && self.vector.encoding() == Encoding::Flat;
        match (plain, self.positions) {
            (true, None) => {
                let values = self.vector.values::<T>();
                let Some(last) = values.len().checked_sub(1) else {
                    return debug_assert!(pairs.0.is_empty());
                };
                // The minimum avoids a bounds check.
                keep(self.column, pairs, |p, _, own| equal(values[usize::from(p).min(last)], own));
            }
            (true, Some(at)) => {
                let values = self.vector.values::<T>();
                keep(self.column, pairs, |p, _, own| equal(values[at[p as usize] as usize], own));
            }
            (false, _) => self.retain_any(pairs, |v: T| v, equal),
        }
    }

    /// Reads any encoding, with or without NULLs; converts the vector's values to the column's type.
    #[inline(always)]
    fn retain_any<S: Native, T: Native>(
        &self,
        pairs: (&mut Vec<u16>, &mut Vec<u32>),
        convert: impl Fn(S) -> T,
        equal: impl Fn(T, T) -> bool,
    ) {
        let dictionary = self.vector.dictionary();
        let values = dictionary.map_or(self.vector, |d| d.values()).values::<S>();
        let codes = dictionary.map(|_| self.vector.codes());
        let constant = self.vector.is_constant();
        let get = |position: usize| match codes {
            Some(codes) => values[codes[position] as usize],
            None if constant => values[0],
            None => values[position],
        };
        match self.nulls {
            None => keep(self.column, pairs, |p, _, own| equal(convert(get(self.position(p))), own)),
            Some(null_equals_null) => keep(self.column, pairs, |p, b, own| {
                let position = self.position(p);
                match (self.vector.is_valid(position), self.column.is_valid(b)) {
                    (true, true) => equal(convert(get(position)), own),
                    (false, false) => null_equals_null,
                    _ => false,
                }
            }),
        }
    }

    /// Reads a vector with narrower integers than the column's.
    fn retain_widened(&self, pairs: (&mut Vec<u16>, &mut Vec<u32>)) {
        macro_rules! widened {
            ($($from:ident $s:ty => $to:ident $t:ty),* $(,)?) => {
                match (self.vector.physical(), self.column.physical) {
                    $((PhysicalType::$from, PhysicalType::$to) => {
                        self.retain_any(pairs, |v: $s| <$t>::from(v), |a: $t, b: $t| a == b)
                    })*
                    (from, to) => panic!("a column of {to:?} was compared with {from:?}"),
                }
            };
        }
        widened!(
            I64 i64 => I128 i128, I32 i32 => I128 i128, I16 i16 => I128 i128, I8 i8 => I128 i128,
            I32 i32 => I64 i64, I16 i16 => I64 i64, I8 i8 => I64 i64,
            I16 i16 => I32 i32, I8 i8 => I32 i32,
        );
    }
}

/// Keeps the pairs (row of the chunk, own row) for which `equal` holds, which also receives the own value.
// PERF: values are compared by vector code, and if all of a block are equal, as with foreign keys, nothing
// moves.
#[inline(always)]
fn keep<T: Native>(
    column: &Column,
    (probe_rows, build_rows): (&mut Vec<u16>, &mut Vec<u32>),
    equal: impl Fn(u16, u32, T) -> bool,
) {
    let len = probe_rows.len();
    let (probes, builds) = (&mut probe_rows[..len], &mut build_rows[..len]);
    let (mut kept, mut flags, mut fetched) = (0, [false; BLOCK], [T::default(); BLOCK]);
    for first in (0..len).step_by(BLOCK) {
        let block = first..len.min(first + BLOCK);
        let flags = &mut flags[..block.len()];
        column.gather_to(&builds[block.clone()], false, &mut fetched);
        let pairs = (&probes[block.clone()], &builds[block.clone()]);
        if widest_of(Compare { pairs, own: &fetched, equal: &equal, flags }) {
            if kept < first {
                probes.copy_within(block.clone(), kept);
                builds.copy_within(block.clone(), kept);
            }
            kept += block.len();
            continue;
        }
        for (i, &is_equal) in block.zip(&*flags) {
            (probes[kept], builds[kept]) = (probes[i], builds[i]);
            kept += usize::from(is_equal);
        }
    }
    probe_rows.truncate(kept);
    build_rows.truncate(kept);
}

/// Which pairs are equal; true if all are. A branch-free loop, for vector code.
struct Compare<'a, T, E> {
    pairs: (&'a [u16], &'a [u32]),
    /// The own values.
    own: &'a [T],
    equal: E,
    flags: &'a mut [bool],
}

impl<T: Native, E: Fn(u16, u32, T) -> bool> Kernel for Compare<'_, T, E> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Compare { pairs: (probes, builds), own, equal, flags } = self;
        let pairs = probes.iter().zip(builds).zip(own);
        flags.iter_mut().zip(pairs).fold(true, |all, (flag, ((&probe, &build), &own))| {
            *flag = equal(probe, build, own);
            all & *flag
        })
    }
}
