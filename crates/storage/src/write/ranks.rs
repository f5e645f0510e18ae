//! Keys of bytes as words in the same order: so that rows with such keys are laid out by words
//! ([`super::load`]).
//!
//! The word of a key is its rank, the number of rows with lesser keys. Rows are sorted by the first bytes of
//! their keys, three words that say all of a key of two numbers, and by the keys themselves only where longer
//! ones begin alike.

use super::looking::{Look, sort};
use super::spread::SourceSlice;
use crate::tree::key::{Key, LayoutKey};
use entasis_vector::statement::Growth;
use entasis_vector::{Result, Schema};
use std::cmp::Ordering;

/// Bytes of a key that its prefix has: two columns of eight bytes that may be NULL take 18.
const PREFIX: usize = 23;

/// The first bytes of a key as words, and its length in the last byte.
type Prefix = [u64; (PREFIX + 1) / 8];

/// See the module.
pub(super) struct Ranks {
    /// The rank of each row, in the order of parts and slots.
    pub(super) of_rows: Vec<u64>,
    /// A row of each rank that some row has.
    of_ranks: Vec<u32>,
    keys: Keys,
    /// Holds the memory of the statement that all of this takes.
    _memory: Growth,
}

impl Ranks {
    /// The ranks of all rows of some parts, fewer than `u32::MAX`.
    ///
    /// # Errors
    /// Those of `look`; resource, if the statement has no memory for them.
    pub(super) fn of(
        parts: &[SourceSlice<'_>],
        key: &LayoutKey,
        schema: &Schema,
        look: Look<'_>,
    ) -> Result<Ranks> {
        let rows = parts.iter().map(SourceSlice::rows).sum();
        let mut memory = Growth::default();
        memory.add(rows * (2 * size_of::<usize>() + size_of::<(Prefix, u32)>() + size_of::<u32>()))?;
        let mut keys = Keys { bytes: Vec::new(), ends: Vec::with_capacity(rows) };
        for part in parts {
            look()?;
            let room = keys.bytes.capacity();
            part.each_live(|slot| {
                let datum = |column: usize| part.blocks[column].datum(slot, schema[column].ty.physical());
                key.push_row(datum, &mut keys.bytes);
                keys.ends.push(keys.bytes.len());
            });
            memory.add(keys.bytes.capacity() - room)?;
        }
        let mut sorted: Vec<(Prefix, u32)> =
            (0..keys.ends.len() as u32).map(|row| (prefix(keys.get(row)), row)).collect();
        let order = |a: &(Prefix, u32), b: &(Prefix, u32)| match a.0.cmp(&b.0) {
            Ordering::Equal if is_cut(&a.0) => keys.get(a.1).cmp(keys.get(b.1)),
            order => order,
        };
        sort(&mut sorted, &order, look)?;
        let mut of_rows = vec![0; sorted.len()];
        let mut first = 0;
        for (number, own) in sorted.iter().enumerate() {
            if order(&sorted[first], own).is_ne() {
                first = number;
            }
            of_rows[own.1 as usize] = first as u64;
        }
        let of_ranks = sorted.into_iter().map(|(_, row)| row).collect();
        Ok(Ranks { of_rows, of_ranks, keys, _memory: memory })
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
fn prefix(key: &[u8]) -> Prefix {
    let mut bytes = [0; PREFIX + 1];
    let kept = key.len().min(PREFIX);
    bytes[..kept].copy_from_slice(&key[..kept]);
    bytes[PREFIX] = key.len().min(PREFIX + 1) as u8;
    let mut words = Prefix::default();
    words.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u64::from_be_bytes(*bytes));
    words
}

/// True if a prefix does not have the whole key.
fn is_cut(prefix: &Prefix) -> bool {
    (prefix[prefix.len() - 1] & 0xFF) as usize > PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_in_the_order_of_keys() {
        let bytes = [0, 1, 254, 255];
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for len in [0, 1, 2, 7, 8, 21, 22, 23, 24, 25, 30] {
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
                    Ordering::Equal => assert!(a == b || is_cut(&first) && is_cut(&second), "{a:?} {b:?}"),
                    order => assert_eq!(order, a.cmp(b), "{a:?} {b:?}"),
                }
            }
        }
    }
}
