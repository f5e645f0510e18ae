//! Keys of bytes as words in the same order: so that rows with such keys are laid out by words
//! ([`super::load`]).
//!
//! The word of a key is its rank, the number of rows with lesser keys. Rows are sorted by the first bytes of
//! their keys, two words that say of a short key all, and by the keys themselves only where long ones begin
//! alike.

use super::spread::SourceSlice;
use crate::tree::key::{Key, LayoutKey};
use entasis_vector::Schema;
use std::cmp::Ordering;

/// Bytes of a key that its prefix has.
const PREFIX: usize = 15;

/// See the module.
pub(super) struct Ranks {
    /// The rank of each row, in the order of parts and slots.
    pub(super) of_rows: Vec<u64>,
    /// A row of each rank that some row has.
    of_ranks: Vec<u32>,
    keys: Keys,
}

impl Ranks {
    /// The ranks of all rows of some parts, fewer than `u32::MAX`.
    pub(super) fn of(parts: &[SourceSlice<'_>], key: &LayoutKey, schema: &Schema) -> Ranks {
        let mut keys = Keys { bytes: Vec::new(), ends: Vec::new() };
        for part in parts {
            part.each_live(|slot| {
                let datum = |column: usize| part.blocks[column].datum(slot, schema[column].ty.physical());
                key.push_row(datum, &mut keys.bytes);
                keys.ends.push(keys.bytes.len());
            });
        }
        let mut sorted: Vec<(u64, u64, u32)> = (0..keys.ends.len() as u32)
            .map(|row| {
                let (high, low) = prefix(keys.get(row));
                (high, low, row)
            })
            .collect();
        let order = |a: &(u64, u64, u32), b: &(u64, u64, u32)| match (a.0, a.1).cmp(&(b.0, b.1)) {
            Ordering::Equal if is_cut(a.1) => keys.get(a.2).cmp(keys.get(b.2)),
            order => order,
        };
        sorted.sort_unstable_by(order);
        let mut of_rows = vec![0; sorted.len()];
        let mut first = 0;
        for (number, own) in sorted.iter().enumerate() {
            if order(&sorted[first], own).is_ne() {
                first = number;
            }
            of_rows[own.2 as usize] = first as u64;
        }
        let of_ranks = sorted.into_iter().map(|(_, _, row)| row).collect();
        Ranks { of_rows, of_ranks, keys }
    }

    /// The key of a rank that some row has.
    pub(super) fn key(&self, rank: u64) -> Key {
        Key::Bytes(self.keys.get(self.of_ranks[rank as usize]).into())
    }
}

/// Keys of rows, one after the other.
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn get(&self, row: u32) -> &[u8] {
        let row = row as usize;
        &self.bytes[row.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[row]]
    }
}

/// The first bytes of a key, and its length in the last byte, or a greater number if it is longer. So keys
/// are in the order of their prefixes, and only two that are cut may differ with the same one.
fn prefix(key: &[u8]) -> (u64, u64) {
    let mut bytes = [0; PREFIX + 1];
    let kept = key.len().min(PREFIX);
    bytes[..kept].copy_from_slice(&key[..kept]);
    bytes[PREFIX] = key.len().min(PREFIX + 1) as u8;
    let word = u128::from_be_bytes(bytes);
    ((word >> 64) as u64, word as u64)
}

/// True if a prefix with this low word does not have the whole key.
fn is_cut(low: u64) -> bool {
    low as u8 as usize > PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_in_the_order_of_keys() {
        let bytes = [0, 1, 254, 255];
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for len in [0, 1, 2, 13, 14, 15, 16, 17, 20] {
            for number in 0..64 {
                // Keys differ in the bytes before the end, where they are cut.
                let at = |i: usize| if i + 3 < len { 7 } else { bytes[number >> (2 * (len - 1 - i)) & 3] };
                keys.push((0..len).map(at).collect());
            }
        }
        for a in &keys {
            for b in &keys {
                let (first, second) = (prefix(a), prefix(b));
                match first.cmp(&second) {
                    Ordering::Equal => assert!(a == b || is_cut(first.1) && is_cut(second.1), "{a:?} {b:?}"),
                    order => assert_eq!(order, a.cmp(b), "{a:?} {b:?}"),
                }
            }
        }
    }
}
