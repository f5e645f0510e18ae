//! Hashes of column values, for joins and aggregation.
//!
//! Equal values hash equally however they are held: an integer hashes by its number in every physical integer
//! type, a float by its canonical double, a string by its bytes in every encoding, an interval by its
//! estimated length. NULL has one fixed hash, so that grouping may treat NULLs as equal; joins drop NULL keys
//! themselves.
//!
//! The mixing function is one 64 × 64 → 128 bit multiplication whose halves are folded together. Every input
//! bit reaches the high half, every bit of the high half the result, and it costs four cycles. Dictionary
//! vectors hash each entry once, as soon as the rows seen make that pay; [`HashCache`] keeps the entries'
//! hashes by dictionary.

use crate::buffer::Native;
use crate::types::{Interval, PhysicalType};
use crate::value::canonical_bits;
use crate::vector::{Dictionary, Encoding, Vector};
use crate::{StringView, bitmap};

/// Odd constants with well spread bits: the fractional parts of the golden ratio and of √3.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 0xBB67_AE85_84CA_A73B;
/// The hash of NULL.
pub const NULL_HASH: u64 = 0x6A09_E667_F3BC_C909;

/// Dictionaries whose hashes a cache keeps; the oldest goes first.
const CACHED_DICTIONARIES: usize = 16;

/// Both halves of the product, folded.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of one word.
#[inline(always)]
pub fn hash_u64(v: u64) -> u64 {
    fold(v ^ SEED, MULTIPLIER)
}

/// The hash of two hashes in this order.
#[inline(always)]
pub fn combine(first: u64, second: u64) -> u64 {
    fold(first.rotate_left(29) ^ second, MULTIPLIER)
}

/// The hash of an integer: by its low word alone if that is all there is.
#[inline(always)]
fn hash_i128(v: i128) -> u64 {
    let low = v as u64;
    if i64::try_from(v).is_ok() { hash_u64(low) } else { combine(hash_u64(low), (v >> 64) as u64) }
}

/// The hash of a string of bytes.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
    let n = bytes.len();
    // The tail is read as whole words that overlap what came before, so that no loop runs over single bytes.
    let (a, b) = match n {
        0 => (0, 0),
        1..=3 => {
            let ends = u64::from(bytes[0]) | u64::from(bytes[n / 2]) << 8 | u64::from(bytes[n - 1]) << 16;
            (ends, 0)
        }
        4..=7 => (half(0), half(n - 4)),
        _ => (word(n.saturating_sub(16)), word(n - 8)),
    };
    let mut state = SEED ^ n as u64;
    let mut at = 0;
    while at + 16 < n {
        state = fold(word(at) ^ state, word(at + 8) ^ MULTIPLIER);
        at += 16;
    }
    fold(fold(a ^ state, MULTIPLIER) ^ b, SEED | 1)
}

/// Hashes of dictionary entries, kept from chunk to chunk. Each operator's worker has one per key column, or
/// one for all.
#[derive(Debug, Default)]
pub struct HashCache {
    entries: Vec<CachedDictionary>,
    next: usize,
    /// Scratch: the hashes before NULLs are mixed in.
    old: Vec<u64>,
}

#[derive(Debug)]
struct CachedDictionary {
    id: u64,
    /// Rows that were hashed one by one so far.
    rows: usize,
    /// A hash per code, once that has paid.
    hashes: Vec<u64>,
}

impl HashCache {
    /// The hash per code of `dictionary`, or `None` while so few rows have come that hashing those is
    /// cheaper.
    fn hashes(&mut self, dictionary: &Dictionary, rows: usize) -> Option<&[u64]> {
        let at = match self.entries.iter().position(|e| e.id == dictionary.id()) {
            Some(at) => at,
            None => {
                let fresh = CachedDictionary { id: dictionary.id(), rows: 0, hashes: Vec::new() };
                if self.entries.len() < CACHED_DICTIONARIES {
                    self.entries.push(fresh);
                    self.entries.len() - 1
                } else {
                    let at = self.next % CACHED_DICTIONARIES;
                    self.next += 1;
                    self.entries[at] = fresh;
                    at
                }
            }
        };
        let entry = &mut self.entries[at];
        if entry.hashes.is_empty() {
            entry.rows += rows;
            if dictionary.len() > 2 * entry.rows {
                return None;
            }
            entry.hashes.resize(dictionary.len(), 0);
            hash_flat(dictionary.values(), &mut Writer { combine: false, out: &mut entry.hashes }, |i| i);
        }
        Some(&entry.hashes)
    }
}

/// How hashes are written: over the existing ones, or mixed into them.
struct Writer<'a> {
    combine: bool,
    out: &'a mut [u64],
}

impl Writer<'_> {
    #[inline(always)]
    fn write(&mut self, hash: impl Fn(usize) -> u64) {
        if self.combine {
            self.out.iter_mut().enumerate().for_each(|(i, o)| *o = combine(*o, hash(i)));
        } else {
            self.out.iter_mut().enumerate().for_each(|(i, o)| *o = hash(i));
        }
    }
}

/// Writes (`combine` false) or mixes in (`combine` true) the hash of each row's value to `out[..rows]`. Row r
/// is at `positions[r]`, or at r if there are no positions.
pub fn hash_column(
    vector: &Vector,
    positions: Option<&[u16]>,
    rows: usize,
    combine: bool,
    cache: &mut HashCache,
    out: &mut [u64],
) {
    let mut writer = Writer { combine, out: &mut out[..rows] };
    match (vector.encoding(), vector.validity()) {
        (Encoding::Constant, _) => {
            let mut hash = [NULL_HASH];
            if vector.is_valid(0) {
                hash_flat(vector, &mut Writer { combine: false, out: &mut hash }, |_| 0);
            }
            writer.write(|_| hash[0]);
        }
        (_, Some(validity)) => {
            // NULLs are rare: hash all positions as if valid, then correct them. The old hashes are needed
            // for that.
            let at = |r: usize| positions.map_or(r, |p| p[r] as usize);
            let mut old = std::mem::take(&mut cache.old);
            if combine {
                old.clear();
                old.extend_from_slice(writer.out);
            }
            if vector.physical() == PhysicalType::Str && vector.encoding() == Encoding::Flat {
                // The view at a NULL position may be of a string that is gone.
                let views = vector.values::<StringView>();
                let hash = |r: usize| {
                    if bitmap::get(validity, at(r)) { hash_bytes(views[at(r)].as_bytes()) } else { 0 }
                };
                writer.write(hash);
            } else {
                hash_valid(vector, positions, rows, cache, &mut writer);
            }
            for (r, hash) in writer.out.iter_mut().enumerate() {
                if !bitmap::get(validity, at(r)) {
                    *hash = if combine { self::combine(old[r], NULL_HASH) } else { NULL_HASH };
                }
            }
            cache.old = old;
        }
        (_, None) => hash_valid(vector, positions, rows, cache, &mut writer),
    }
}

/// Hashes all rows of a flat or dictionary vector as if none were NULL.
fn hash_valid(
    vector: &Vector,
    positions: Option<&[u16]>,
    rows: usize,
    cache: &mut HashCache,
    writer: &mut Writer<'_>,
) {
    match vector.dictionary().filter(|_| vector.encoding() == Encoding::Dictionary) {
        None => match positions {
            None => hash_flat(vector, writer, |i| i),
            Some(p) => {
                let p = &p[..rows];
                hash_flat(vector, writer, |i| p[i] as usize);
            }
        },
        // All rows are NULL.
        Some(dictionary) if dictionary.is_empty() => writer.write(|_| NULL_HASH),
        Some(dictionary) => {
            let codes = vector.codes();
            // Codes at NULL positions may be of another dictionary; the caller corrects their hashes.
            let code = |p: usize| (codes[p] as usize).min(dictionary.len() - 1);
            match (cache.hashes(dictionary, rows), positions) {
                (Some(hashes), None) => writer.write(|i| hashes[code(i)]),
                (Some(hashes), Some(p)) => writer.write(|i| hashes[code(p[i] as usize)]),
                (None, None) => hash_flat(dictionary.values(), writer, code),
                (None, Some(p)) => hash_flat(dictionary.values(), writer, |i| code(p[i] as usize)),
            }
        }
    }
}

/// Hashes the values of a flat vector, row i at position `at(i)`.
#[inline(always)]
fn hash_flat(vector: &Vector, writer: &mut Writer<'_>, at: impl Fn(usize) -> usize) {
    fn values<T: Native>(vector: &Vector) -> &[T] {
        vector.values::<T>()
    }
    macro_rules! word {
        ($t:ty) => {{
            let values = values::<$t>(vector);
            writer.write(|i| hash_u64(values[at(i)] as i64 as u64))
        }};
    }
    match vector.physical() {
        PhysicalType::Bool | PhysicalType::U8 => word!(u8),
        PhysicalType::I8 => word!(i8),
        PhysicalType::I16 => word!(i16),
        PhysicalType::U16 => word!(u16),
        PhysicalType::I32 => word!(i32),
        PhysicalType::U32 => word!(u32),
        PhysicalType::I64 => word!(i64),
        PhysicalType::U64 => {
            let values = values::<u64>(vector);
            writer.write(|i| hash_i128(i128::from(values[at(i)])));
        }
        PhysicalType::I128 => {
            let values = values::<i128>(vector);
            writer.write(|i| hash_i128(values[at(i)]));
        }
        PhysicalType::F32 => {
            let values = values::<f32>(vector);
            writer.write(|i| hash_u64(canonical_bits(values[at(i)].into())));
        }
        PhysicalType::F64 => {
            let values = values::<f64>(vector);
            writer.write(|i| hash_u64(canonical_bits(values[at(i)])));
        }
        PhysicalType::Str => {
            let values = values::<StringView>(vector);
            writer.write(|i| hash_bytes(values[at(i)].as_bytes()));
        }
        PhysicalType::Interval => {
            let values = values::<Interval>(vector);
            writer.write(|i| hash_i128(values[at(i)].estimate()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn hashes(vector: &Vector, positions: Option<&[u16]>, rows: usize) -> Vec<u64> {
        let mut out = vec![0; rows];
        hash_column(vector, positions, rows, false, &mut HashCache::default(), &mut out);
        out
    }

    #[test]
    fn an_integer_hashes_by_its_number() {
        let numbers = [-128i64, -1, 0, 1, 127];
        let expected = hashes(&Vector::from_slice(&numbers), None, 5);
        for ty in [PhysicalType::I8, PhysicalType::I16, PhysicalType::I32, PhysicalType::I128] {
            let values = numbers.map(|n| Value::Integer(n.into()));
            assert_eq!(hashes(&Vector::from_values(ty, &values).unwrap(), None, 5), expected);
        }
        let big = u64::MAX - 1;
        let wide = Vector::from_slice(&[i128::from(big)]);
        assert_eq!(hashes(&Vector::from_slice(&[big]), None, 1), hashes(&wide, None, 1));
        assert_ne!(
            hashes(&Vector::from_slice(&[big]), None, 1),
            hashes(&Vector::from_slice(&[big as i64]), None, 1)
        );
    }

    #[test]
    fn floats_hash_as_they_compare() {
        let out = hashes(&Vector::from_slice(&[0.0f64, -0.0, f64::NAN, -f64::NAN, 1.5]), None, 5);
        assert_eq!((out[0], out[2]), (out[1], out[3]));
        assert_eq!(hashes(&Vector::from_slice(&[1.5f32]), None, 1)[0], out[4]);
    }

    #[test]
    fn encodings_and_positions_do_not_matter() {
        let texts =
            ["", "a", "four", "eightchr", "a text of some length", "abcdefghijklmnopqrstuvwxyz0123456789"];
        let values = texts.map(|t| Value::Text(t.into()));
        let flat = Vector::from_values(PhysicalType::Str, &values).unwrap();
        let dictionary = Dictionary::new(flat.clone(), texts.len());
        let mut coded = Vector::new(PhysicalType::Str);
        coded.begin_codes(&dictionary, 8)[..8].copy_from_slice(&[5, 4, 3, 2, 1, 0, 5, 5]);
        coded.set_null(7);
        let by_entry = hashes(&flat, None, 6);
        let positions = [7u16, 6, 5, 0, 0];
        let expected = [NULL_HASH, by_entry[5], by_entry[0], by_entry[5], by_entry[5]];
        // Once one by one, once through the cache.
        let mut cache = HashCache::default();
        for rows in [1, 5, 5] {
            let mut out = vec![7; rows];
            hash_column(&coded, Some(&positions), rows, false, &mut cache, &mut out);
            assert_eq!(out, expected[..rows]);
            let mut mixed = vec![9; rows];
            hash_column(&coded, Some(&positions), rows, true, &mut cache, &mut mixed);
            assert_eq!(mixed, expected[..rows].iter().map(|&h| combine(9, h)).collect::<Vec<_>>());
        }
        let mut distinct = by_entry.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), texts.len());
        let constant = Vector::constant(PhysicalType::Str, &values[4]).unwrap();
        assert_eq!(hashes(&constant, Some(&positions), 2), [by_entry[4]; 2]);
    }

    #[test]
    fn sequences_spread_over_high_and_low_bits() {
        let numbers: Vec<i64> = (0..2048).map(|i| i * 1024).collect();
        let out = hashes(&Vector::from_slice(&numbers), None, 2048);
        for shift in [0, 53] {
            let mut hit = vec![false; 2048];
            out.iter().for_each(|h| hit[(h >> shift) as usize % 2048] = true);
            // 2048 balls in 2048 bins fill 63 % of them if thrown at random.
            assert!(hit.iter().filter(|&&h| h).count() > 1200);
        }
    }
}
