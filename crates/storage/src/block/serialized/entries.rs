//! The entries of a dictionary as bytes in a file: one after the other, or, where that saves a fifth, without
//! what each has in common with the one before, and compressed with LZ4. Entries ascend, so that names,
//! numbers and addresses in particular begin as their neighbours do.
//!
//! In memory entries stay as they are: vectors refer to them ([decision
//! 52](../../../../../docs/decisions/0052-dictionaries-are-compressed-in-files.md)).

use super::reader::{Flaw, Reader};
use super::{PLAIN_DICTIONARY, SHORTENED_DICTIONARY, Shared};
use crate::backend::bytes::{Cursor, push_varint};
use entasis_vector::{Dictionary, PhysicalType, StringView, Vector};

/// Entries of fewer bytes stay as they are.
const LEAST: usize = 1 << 10;
/// Entries of more bytes stay as they are: so many are the most that a few bytes of a file can become.
const MOST: usize = 16 << 20;
/// More entries stay as they are; a builder makes no more.
const MOST_ENTRIES: usize = 1 << 16;
/// LZ4 decompresses one byte to at most so many.
const MOST_OF_A_BYTE: usize = 255;

/// Appends a dictionary.
pub(super) fn write(dictionary: &Dictionary, out: &mut Vec<u8>) {
    let entries = &dictionary.values().values::<StringView>()[..dictionary.len()];
    let bytes: usize = entries.iter().map(|entry| entry.len()).sum();
    if (LEAST..=MOST).contains(&bytes) && entries.len() <= MOST_ENTRIES {
        let shortened = shortened(entries);
        let compressed = lz4_flex::block::compress(&shortened);
        if compressed.len() <= (bytes + 4 * entries.len()) / 5 * 4 {
            out.push(SHORTENED_DICTIONARY);
            push_varint(out, entries.len() as u64);
            push_varint(out, shortened.len() as u64);
            out.extend_from_slice(&compressed);
            return;
        }
    }
    out.push(PLAIN_DICTIONARY);
    push_varint(out, entries.len() as u64);
    let mut end = 0;
    for entry in entries {
        end += entry.len() as u32;
        out.extend(end.to_le_bytes());
    }
    entries.iter().for_each(|entry| out.extend_from_slice(entry.as_bytes()));
}

/// For each entry how many bytes it has in common with the one before, and how many more it has; and then all
/// of those.
fn shortened(entries: &[StringView]) -> Vec<u8> {
    let (mut lengths, mut rests, mut last) = (Vec::new(), Vec::new(), &[][..]);
    for entry in entries {
        let entry = entry.as_bytes();
        let common = entry.iter().zip(last).take_while(|(own, other)| own == other).count();
        push_varint(&mut lengths, common as u64);
        push_varint(&mut lengths, (entry.len() - common) as u64);
        rests.extend_from_slice(&entry[common..]);
        last = entry;
    }
    lengths.append(&mut rests);
    lengths
}

impl Reader<'_> {
    /// A dictionary whose entries stand one after the other.
    pub(super) fn plain_dictionary(&mut self) -> Result<Shared, Flaw> {
        let count = self.count()?;
        let bytes =
            count.checked_mul(4).filter(|bytes| *bytes <= self.cursor.left()).ok_or("its dictionary")?;
        let mut cursor = Cursor::new(self.cursor.take(bytes).ok_or("its dictionary")?);
        let ends: Option<Vec<u32>> = (0..count).map(|_| cursor.u32()).collect();
        let ends = ends.ok_or("its dictionary")?;
        let length = ends.last().copied().unwrap_or(0) as usize;
        let entries = self.cursor.take(length).ok_or("its dictionary")?;
        self.dictionary(&ends, entries)
    }

    /// A dictionary whose entries were shortened and compressed.
    pub(super) fn shortened_dictionary(&mut self) -> Result<Shared, Flaw> {
        let (count, length) = (self.count()?, self.count()?);
        let compressed = self.cursor.take(self.cursor.left()).ok_or("its dictionary")?;
        // Checked before memory is allocated for them.
        if length > compressed.len().saturating_mul(MOST_OF_A_BYTE) || count > MOST_ENTRIES {
            return Err("a dictionary that is too long for its bytes");
        }
        let shortened = lz4_flex::block::decompress(compressed, length).map_err(|_| "its dictionary")?;
        let mut cursor = Cursor::new(&shortened);
        let mut next = || cursor.varint().and_then(|length| usize::try_from(length).ok());
        let lengths: Option<Vec<(usize, usize)>> = (0..count).map(|_| Some((next()?, next()?))).collect();
        let (mut entries, mut ends, mut start) = (Vec::new(), Vec::with_capacity(count), 0);
        for (common, more) in lengths.ok_or("its dictionary")? {
            let end = entries.len();
            let is_right = |_: &&[u8]| common <= end - start && end + common + more <= MOST;
            let rest = cursor.take(more).filter(is_right).ok_or("the entries of its dictionary")?;
            entries.extend_from_within(start..start + common);
            entries.extend_from_slice(rest);
            ends.push(entries.len() as u32);
            start = end;
        }
        match cursor.left() {
            0 => self.dictionary(&ends, &entries),
            _ => Err("the entries of its dictionary"),
        }
    }

    fn count(&mut self) -> Result<usize, Flaw> {
        self.cursor.varint().and_then(|count| usize::try_from(count).ok()).ok_or("its dictionary")
    }

    /// The dictionary of entries that end at `ends`.
    fn dictionary(&self, ends: &[u32], bytes: &[u8]) -> Result<Shared, Flaw> {
        let (mut texts, mut start, mut last) = (Vector::new(PhysicalType::Str), 0, None);
        let strings = texts.begin_strings(ends.len());
        for (rank, &end) in ends.iter().enumerate() {
            let end = end as usize;
            let entry = bytes.get(start..end).ok_or("the ends of its dictionary")?;
            // Codes are compared instead of strings, and strings are found by binary search.
            if last.is_some_and(|last| last >= entry) {
                return Err("the order of its dictionary");
            }
            if self.column.is_text && std::str::from_utf8(entry).is_err() {
                return Err("a text that is not UTF-8");
            }
            strings.views[rank] = strings.heap.push(entry);
            (start, last) = (end, Some(entry));
        }
        texts.set_strings_stable(true);
        Ok(Shared::Dictionary(Dictionary::new(texts, ends.len())))
    }
}
