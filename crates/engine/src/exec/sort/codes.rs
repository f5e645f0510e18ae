//! Codes of rows: one unsigned integer for each, in the order of some keys.
//!
//! Each row gets a *code*, one unsigned integer of 64 or 128 bits whose order is the order of the rows. The
//! keys are packed into it from the top, each in as many bits as its values need:
//!
//! | values | bits |
//! |---|---|
//! | integers, decimals, dates, booleans, intervals | `value - min`, as wide as `max - min` |
//! | floats | IEEE bits made monotone: NaN largest, the zeros equal |
//! | strings | their first bytes, as many as fit, or their [ranks](super::ranks) |
//!
//! A column with NULLs takes one more bit on top; descending keys are inverted. If everything fits, comparing
//! codes is comparing rows; otherwise rows with equal codes are compared by the values themselves
//! ([`super::ties`]). The order of arrival decides last, so every order is total and equal rows keep their
//! order.

use super::ranks::TextRanks;
use crate::exec::materialized::Materialized;
use entasis_vector::value::canonical_bits;
use entasis_vector::{CHUNK_ROWS, Interval, Native, PhysicalType, StringView, Vector, bitmap};
use std::cmp::Ordering;

/// The most bytes of a string in a code.
const PREFIX_BYTES: u32 = 16;

/// One key of an order over the columns of a [`Materialized`].
#[derive(Debug, Clone, Copy)]
pub struct OrderKey {
    /// The column.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

/// A row while it is sorted: its code, and below that its place in the order of arrival.
pub(super) trait Entry: Ord + Copy + Send + Sync {
    fn new(code: u128, place: u32) -> Self;
    fn code(self) -> u128;
    fn place(self) -> u32;
}

impl Entry for u64 {
    fn new(code: u128, place: u32) -> u64 {
        (code as u64) << 32 | u64::from(place)
    }
    fn code(self) -> u128 {
        (self >> 32).into()
    }
    fn place(self) -> u32 {
        self as u32
    }
}

impl Entry for u128 {
    fn new(code: u128, place: u32) -> u128 {
        code << 32 | u128::from(place)
    }
    fn code(self) -> u128 {
        self >> 32
    }
    fn place(self) -> u32 {
        self as u32
    }
}

impl Entry for (u128, u32) {
    fn new(code: u128, place: u32) -> (u128, u32) {
        (code, place)
    }
    fn code(self) -> u128 {
        self.0
    }
    fn place(self) -> u32 {
        self.1
    }
}

/// How rows become codes.
pub(super) struct SortCodes<'a> {
    rows: &'a Materialized,
    keys: &'a [OrderKey],
    /// The keys that take part, from the first.
    parts: Vec<Part>,
    /// Bits in all.
    pub(super) bits: u32,
    /// The first key that the code does not fully decide.
    inexact_from: Option<usize>,
}

/// One key's share of a code.
struct Part {
    key: OrderKey,
    kind: PartKind,
    /// Bits of the value.
    bits: u32,
    /// One more bit, on top.
    has_nulls: bool,
    /// Low bits of the value that did not fit.
    dropped: u32,
    /// Where the share starts in the code.
    shift: u32,
}

enum PartKind {
    Integer { min: i128 },
    Float,
    Text,
    Ranked(TextRanks),
}

impl<'a> SortCodes<'a> {
    pub(super) fn plan(rows: &'a Materialized, keys: &'a [OrderKey]) -> SortCodes<'a> {
        let codes = SortCodes::with(rows, keys, keys.iter().map(|_| None));
        if codes.is_exact() {
            return codes;
        }
        let ranks = |key: &OrderKey| match rows.columns()[key.column].physical {
            PhysicalType::Str => TextRanks::of(rows, key.column),
            _ => None,
        };
        let ranks: Vec<Option<TextRanks>> = keys.iter().map(ranks).collect();
        if ranks.iter().all(Option::is_none) {
            return codes;
        }
        SortCodes::with(rows, keys, ranks)
    }

    /// The codes for which the strings of each key have these ranks, or none.
    fn with(
        rows: &'a Materialized,
        keys: &'a [OrderKey],
        ranks: impl IntoIterator<Item = Option<TextRanks>>,
    ) -> SortCodes<'a> {
        let mut parts = Vec::new();
        let mut used = 0;
        let mut inexact_from = None;
        for ((i, &key), ranks) in keys.iter().enumerate().zip(ranks) {
            let has_nulls = rows.has_nulls(key.column);
            let (kind, bits, exact) = match (rows.columns()[key.column].physical, ranks) {
                (PhysicalType::F32, _) => (PartKind::Float, 32, true),
                (PhysicalType::F64, _) => (PartKind::Float, 64, true),
                (_, Some(ranks)) => {
                    let bits = ranks.bits();
                    (PartKind::Ranked(ranks), bits, true)
                }
                (PhysicalType::Str, None) => {
                    let (longest, has_zeros) = text_facts(rows, key.column);
                    let bytes = longest.min(PREFIX_BYTES);
                    (PartKind::Text, bytes * 8, longest <= PREFIX_BYTES && !has_zeros)
                }
                _ => {
                    let (min, max) = integer_bounds(rows, key.column).unwrap_or((0, 0));
                    (PartKind::Integer { min }, 128 - (max.wrapping_sub(min) as u128).leading_zeros(), true)
                }
            };
            let free = 128 - used - u32::from(has_nulls);
            let dropped = bits.saturating_sub(free);
            used += bits - dropped + u32::from(has_nulls);
            parts.push(Part { key, kind, bits, has_nulls, dropped, shift: 0 });
            if !exact || dropped > 0 || (used == 128 && i + 1 < keys.len()) {
                inexact_from = Some(if exact && dropped == 0 { i + 1 } else { i });
                break;
            }
        }
        let mut shift = used;
        for part in &mut parts {
            shift -= part.bits - part.dropped + u32::from(part.has_nulls);
            part.shift = shift;
        }
        SortCodes { rows, keys, parts, bits: used, inexact_from }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.inexact_from.is_none()
    }

    /// The rows.
    pub(super) fn rows(&self) -> &'a Materialized {
        self.rows
    }

    /// If codes end within a string: its column, the bytes of it that they contain, and whether the order
    /// descends.
    pub(super) fn text_to_go_on(&self) -> Option<(usize, usize, bool)> {
        let part = self.parts.last()?;
        let ends_within =
            matches!(part.kind, PartKind::Text) && self.inexact_from == Some(self.parts.len() - 1);
        let bits = part.bits - part.dropped;
        (ends_within && bits.is_multiple_of(8)).then_some((
            part.key.column,
            bits as usize / 8,
            part.key.descending,
        ))
    }

    /// Compares two rows by the keys that their codes do not decide.
    pub(super) fn compare(&self, a: u32, b: u32) -> Ordering {
        let keys = &self.keys[self.inexact_from.unwrap_or(self.keys.len())..];
        keys.iter().fold(Ordering::Equal, |order, key| {
            order.then_with(|| self.rows.compare(key.column, a, b, key.descending, key.nulls_first))
        })
    }

    /// Calls `take` with place and code of `rows` rows from place `first` of `arrival`.
    pub(super) fn encode(&self, arrival: &[u32], first: usize, rows: usize, mut take: impl FnMut(u32, u128)) {
        let mut vectors: Vec<Vector> = self.parts.iter().map(|_| Vector::new(PhysicalType::I64)).collect();
        let mut codes = [0u128; CHUNK_ROWS];
        for (i, ids) in arrival[first..first + rows].chunks(CHUNK_ROWS).enumerate() {
            codes.fill(0);
            for (part, vector) in self.parts.iter().zip(&mut vectors) {
                self.rows.gather(part.key.column, ids, vector);
                part.add_to(&mut codes[..ids.len()], vector);
            }
            let start = first + i * CHUNK_ROWS;
            codes[..ids.len()].iter().enumerate().for_each(|(r, &code)| take((start + r) as u32, code));
        }
    }
}

impl Part {
    /// Adds this key's share to the codes of the rows of a flat vector.
    fn add_to(&self, codes: &mut [u128], vector: &Vector) {
        macro_rules! integers {
            ($t:ty, $min:expr) => {
                self.add(codes, vector, |v: $t| (v as i128).wrapping_sub(*$min) as u128)
            };
        }
        match &self.kind {
            PartKind::Integer { min } => match vector.physical() {
                PhysicalType::Bool | PhysicalType::U8 => integers!(u8, min),
                PhysicalType::I8 => integers!(i8, min),
                PhysicalType::I16 => integers!(i16, min),
                PhysicalType::I32 => integers!(i32, min),
                PhysicalType::I64 => integers!(i64, min),
                PhysicalType::U16 => integers!(u16, min),
                PhysicalType::U32 => integers!(u32, min),
                PhysicalType::U64 => integers!(u64, min),
                PhysicalType::Interval => {
                    self.add(codes, vector, |v: Interval| v.estimate().wrapping_sub(*min) as u128);
                }
                _ => integers!(i128, min),
            },
            PartKind::Float if vector.physical() == PhysicalType::F32 => {
                self.add(codes, vector, |v: f32| monotone_single(v).into());
            }
            PartKind::Float => self.add(codes, vector, |v: f64| monotone(v).into()),
            PartKind::Text => self.add(codes, vector, |v: StringView| prefix(v, self.bits / 8)),
            PartKind::Ranked(ranks) => self.add(codes, vector, |v: StringView| ranks.rank(v)),
        }
    }

    #[inline(always)]
    fn add<T: Native>(&self, codes: &mut [u128], vector: &Vector, code_of: impl Fn(T) -> u128) {
        let mask = if self.bits == 128 { u128::MAX } else { (1 << self.bits) - 1 };
        let flip = if self.key.descending { mask } else { 0 };
        let values = vector.values::<T>();
        // A dropped share of all bits would be an overlong shift.
        let share = |v: T| ((code_of(v) & mask) ^ flip).checked_shr(self.dropped).unwrap_or(0);
        // A part without bits may be past the end; its share is zero, wherever it is put.
        let shift = self.shift.min(127);
        match (self.has_nulls, vector.validity()) {
            (false, _) => codes.iter_mut().zip(values).for_each(|(code, &v)| *code |= share(v) << shift),
            (true, validity) => {
                let null_bit = 1u128.checked_shl(self.bits - self.dropped + self.shift).unwrap_or(0);
                let (of_null, of_value) = if self.key.nulls_first { (0, null_bit) } else { (null_bit, 0) };
                for (row, (code, &v)) in codes.iter_mut().zip(values).enumerate() {
                    *code |= match validity.is_none_or(|words| bitmap::get(words, row)) {
                        true => of_value | share(v) << shift,
                        false => of_null,
                    };
                }
            }
        }
    }
}

/// The bits of a single float, in the order of SQL.
fn monotone_single(v: f32) -> u32 {
    let bits = match v {
        _ if v.is_nan() => f32::NAN.to_bits(),
        0.0 => 0,
        _ => v.to_bits(),
    };
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The bits of a float, in the order of SQL.
fn monotone(v: f64) -> u64 {
    let bits = canonical_bits(v);
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The first `bytes` bytes of a string, at most sixteen, padded with zeros.
fn prefix(view: StringView, bytes: u32) -> u128 {
    let text = view.as_bytes();
    padded(&text[..text.len().min(bytes as usize)]).checked_shr(128 - bytes * 8).unwrap_or(0)
}

/// Up to sixteen bytes as a number of the same order, except for zero bytes at the end.
pub(super) fn padded(bytes: &[u8]) -> u128 {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    u128::from_be_bytes(padded)
}

/// Length of the longest string, and whether one has a zero byte.
fn text_facts(rows: &Materialized, column: usize) -> (u32, bool) {
    let mut longest = 0;
    let mut has_zeros = false;
    let see = |view: StringView| {
        longest = longest.max(view.len() as u32);
        has_zeros |= view.len() <= PREFIX_BYTES as usize && view.as_bytes().contains(&0);
    };
    for_all_valid(rows, column, see);
    (longest, has_zeros)
}

/// Smallest and largest value of a column of integers or intervals.
fn integer_bounds(rows: &Materialized, column: usize) -> Option<(i128, i128)> {
    let mut bounds: Option<(i128, i128)> = None;
    let mut see = |v: i128| bounds = Some(bounds.map_or((v, v), |(min, max)| (min.min(v), max.max(v))));
    macro_rules! scan {
        ($t:ty) => {
            for_all_valid(rows, column, |v: $t| see(v as i128))
        };
    }
    match rows.columns()[column].physical {
        PhysicalType::Bool | PhysicalType::U8 => scan!(u8),
        PhysicalType::I8 => scan!(i8),
        PhysicalType::I16 => scan!(i16),
        PhysicalType::I32 => scan!(i32),
        PhysicalType::I64 => scan!(i64),
        PhysicalType::U16 => scan!(u16),
        PhysicalType::U32 => scan!(u32),
        PhysicalType::U64 => scan!(u64),
        PhysicalType::Interval => for_all_valid(rows, column, |v: Interval| see(v.estimate())),
        _ => scan!(i128),
    }
    bounds
}

fn for_all_valid<T: Native>(rows: &Materialized, column: usize, mut see: impl FnMut(T)) {
    (0..rows.segments()).for_each(|segment| rows.for_each_valid(column, segment, &mut see));
}
