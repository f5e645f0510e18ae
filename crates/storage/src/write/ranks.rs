//! Keys of bytes as words in the same order: so that rows with such keys are laid out by words
//! ([`super::load`]).
//!
//! The word of a key is its rank, the number of rows with lesser keys.
//!
//! 1. Workers share out the parts and write the first bytes of each row's key, three words that say all of a
//!    key of two numbers, or of a short text and a number. The bytes of longer keys are kept beside them.
//! 2. Rows are sorted by those words, and by the bytes that were kept only where longer keys begin alike.
//! 3. Rows with equal keys get the number of the first of them.

use super::looking::sort;
use super::spread::SourceSlice;
use crate::parallel::{Look, share};
use crate::tree::key::{Key, LayoutKey};
use entasis_vector::statement::{Growth, Looks};
use entasis_vector::{Result, Schema};
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// Bytes of a key that its prefix has: two columns of eight bytes that may be NULL take 18.
const PREFIX: usize = 23;
/// The fewest rows that a worker gets at a time.
const SHARED: usize = 1 << 14;

/// The first bytes of a key as words, and its length in the last byte.
type Prefix = [u64; (PREFIX + 1) / 8];

/// See the module.
pub(super) struct Ranks {
    /// The rank of each row, in the order of parts and slots.
    pub(super) of_rows: Vec<u64>,
    /// The rows in the order of their keys.
    sorted: Vec<(Prefix, u32)>,
    cut: CutKeys,
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
        (workers, look): (usize, Look<'_>),
    ) -> Result<Ranks> {
        let rows: usize = parts.iter().map(SourceSlice::rows).sum();
        let mut memory = Growth::default();
        memory.add(rows * (2 * size_of::<u64>() + size_of::<(Prefix, u32)>()))?;
        let mut sorted = vec![(Prefix::default(), 0); rows];
        let mut runs = Vec::new();
        let (mut parts, mut rest, mut first) = (parts, &mut sorted[..], 0);
        let shared = rows.div_ceil(4 * workers).max(SHARED);
        while !parts.is_empty() {
            let (mut count, mut own) = (0, 0);
            while own < shared && count < parts.len() {
                own += parts[count].rows();
                count += 1;
            }
            let of_run;
            let parts_of_run;
            (parts_of_run, parts) = parts.split_at(count);
            (of_run, rest) = rest.split_at_mut(own);
            runs.push((first, parts_of_run, Mutex::new(of_run)));
            first += own as u32;
        }
        let write = |bytes: &mut Vec<u8>, run: usize, look: Look<'_>| {
            let (first, parts, rows) = &runs[run];
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            CutKeys::write(parts, (key, schema), *first, &mut rows, bytes, look)
        };
        let cut = share((workers, look), runs.len(), Vec::new, write)?;
        let cut = CutKeys { firsts: runs.into_iter().map(|(first, ..)| first).collect(), runs: cut };
        let order = |a: &(Prefix, u32), b: &(Prefix, u32)| match a.0.cmp(&b.0) {
            Ordering::Equal if is_cut(&a.0) => cut.get(a.1).cmp(cut.get(b.1)),
            order => order,
        };
        sort(&mut sorted, &order, (workers, look))?;
        let mut of_rows = vec![0; sorted.len()];
        let mut first = 0;
        let mut looks = Looks::default();
        for (number, own) in sorted.iter().enumerate() {
            looks.after(size_of_val(own))?;
            if order(&sorted[first], own).is_ne() {
                first = number;
            }
            of_rows[own.1 as usize] = first as u64;
        }
        Ok(Ranks { of_rows, sorted, cut, _memory: memory })
    }

    /// The key of a rank that some row has.
    pub(super) fn key(&self, rank: u64) -> Key {
        let (prefix, row) = self.sorted[rank as usize];
        match is_cut(&prefix) {
            true => Key::Bytes(self.cut.get(row).into()),
            false => Key::Bytes(bytes_of(&prefix).into()),
        }
    }
}

/// The keys of rows that their prefixes do not have, in runs of consecutive rows.
struct CutKeys {
    /// The first row of each run.
    firsts: Vec<u32>,
    runs: Vec<Run>,
}

/// See [`CutKeys`].
struct Run {
    bytes: Vec<u8>,
    /// For each row where its key ends, which is empty if its prefix has it.
    ends: Vec<usize>,
    _memory: Growth,
}

impl CutKeys {
    /// Writes the prefixes of the rows of some parts, whose numbers begin with `first`, and keeps the keys
    /// that are cut. `key` has room for one.
    fn write(
        parts: &[SourceSlice<'_>],
        (layout_key, schema): (&LayoutKey, &Schema),
        first: u32,
        rows: &mut [(Prefix, u32)],
        key: &mut Vec<u8>,
        look: Look<'_>,
    ) -> Result<Run> {
        let mut run =
            Run { bytes: Vec::new(), ends: Vec::with_capacity(rows.len()), _memory: Growth::default() };
        let mut numbers = first..;
        let mut rows = rows.iter_mut();
        for part in parts {
            look()?;
            let room = run.bytes.capacity();
            part.each_live(|slot| {
                let datum = |column: usize| part.blocks[column].datum(slot, schema[column].ty.physical());
                key.clear();
                layout_key.push_row(datum, key);
                let prefix = prefix(key);
                if is_cut(&prefix) {
                    run.bytes.extend_from_slice(key);
                }
                run.ends.push(run.bytes.len());
                let number = numbers.next().expect("rows are fewer than `u32::MAX`");
                *rows.next().expect("room for each row") = (prefix, number);
            });
            run._memory.add(run.bytes.capacity() - room)?;
        }
        Ok(run)
    }

    /// The key of a row whose prefix does not have it.
    fn get(&self, row: u32) -> &[u8] {
        let number = self.firsts.partition_point(|first| *first <= row) - 1;
        let (run, row) = (&self.runs[number], (row - self.firsts[number]) as usize);
        &run.bytes[row.checked_sub(1).map_or(0, |before| run.ends[before])..run.ends[row]]
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

/// The key of a prefix that is not cut.
fn bytes_of(prefix: &Prefix) -> Vec<u8> {
    let mut bytes: Vec<u8> = prefix.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.truncate(bytes[PREFIX] as usize);
    bytes
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
            let own = prefix(a);
            assert!(is_cut(&own) || bytes_of(&own) == *a, "{a:?}");
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
