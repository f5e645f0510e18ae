//! Strings as codes of a symbol table (FSST, [`super::symbols`]), which the blocks of a row group share.
//!
//! A scan decompresses the strings that it needs to the heap of its vector. If a single string is read by
//! reference, as single rows are, all strings of the block are decompressed and kept; tables whose rows are
//! read by key have no such blocks.

use super::symbols::SymbolTable;
use super::{StringBytes, abreast};
use entasis_vector::{StringHeap, StringView, bitmap};
use std::sync::{Arc, OnceLock};

/// The most bytes of a block's texts that are compressed several at a time, which takes memory for the worst
/// case. Larger blocks are compressed text by text, until compression turns out not to pay.
const ABREAST_MAX: usize = 4 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Fsst {
    table: Arc<SymbolTable>,
    codes: StringBytes,
    /// This block's share of the table's memory.
    share: usize,
    /// All strings, once one was requested by reference.
    whole: OnceLock<Box<StringBytes>>,
}

impl Fsst {
    /// Compresses strings, whose bytes are in `bytes` and end at `ends`; `None` if their codes take more than
    /// `most` bytes.
    pub(crate) fn new(table: Arc<SymbolTable>, ends: &[u32], bytes: &[u8], most: usize) -> Option<Fsst> {
        let (code_ends, codes) = match bytes.len() <= ABREAST_MAX {
            true => abreast::compress(&table, ends, bytes),
            false => one_by_one(&table, ends, bytes, most)?,
        };
        if codes.len() > most {
            return None;
        }
        Some(Fsst { table, codes: StringBytes::new(&code_ends, &codes), share: 0, whole: OnceLock::new() })
    }

    /// Strings from codes that a table made.
    pub(crate) fn of_parts(table: Arc<SymbolTable>, codes: StringBytes) -> Fsst {
        Fsst { table, codes, share: 0, whole: OnceLock::new() }
    }

    /// The codes of its strings.
    pub(crate) fn codes(&self) -> &StringBytes {
        &self.codes
    }

    /// The symbols.
    pub(crate) fn table(&self) -> &Arc<SymbolTable> {
        &self.table
    }

    /// Sets how many bytes of the symbols' memory count as this block's.
    pub(crate) fn share(&mut self, bytes: usize) {
        self.share = bytes;
    }

    /// A copy of the strings.
    pub(crate) fn copy(&self) -> Fsst {
        Fsst {
            table: self.table.clone(),
            codes: self.codes.clone(),
            share: self.share,
            whole: OnceLock::new(),
        }
    }

    /// Bytes of memory, as long as no string is requested by reference.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.bytes() + self.share
    }

    /// The string in `slot`.
    pub(crate) fn get(&self, slot: usize) -> &[u8] {
        self.whole.get_or_init(|| Box::new(self.strings())).get(slot)
    }

    /// All strings.
    pub(crate) fn strings(&self) -> StringBytes {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(self.codes.len()));
        for slot in 0..self.codes.len() {
            self.table.decompress(self.codes.get(slot), &mut bytes);
            ends.push(bytes.len() as u32);
        }
        StringBytes::new(&ends, &bytes)
    }

    /// A view of the string in `slot`, in a heap.
    #[inline]
    pub(crate) fn view(&self, slot: usize, heap: &mut StringHeap) -> StringView {
        let codes = self.codes.get(slot);
        heap.push_with(self.table.room(codes), |bytes| self.table.decompress_into(codes, bytes))
    }

    /// Writes views of the strings from slot `from` on to all of `out`; those of slots that `live` says are
    /// dead are empty.
    pub(crate) fn views(&self, from: usize, live: &[u64], out: &mut [StringView], heap: &mut StringHeap) {
        for (i, view) in out.iter_mut().enumerate() {
            *view =
                if bitmap::get(live, from + i) { self.view(from + i, heap) } else { StringView::default() };
        }
    }
}

/// The end of each text's codes, and all codes; `None` as soon as they take more than `most` bytes.
fn one_by_one(table: &SymbolTable, ends: &[u32], bytes: &[u8], most: usize) -> Option<(Vec<u32>, Vec<u8>)> {
    let (mut codes, mut code_ends, mut start) = (Vec::new(), Vec::with_capacity(ends.len()), 0);
    for &end in ends {
        table.compress(&bytes[start..end as usize], &mut codes);
        if codes.len() > most {
            return None;
        }
        code_ends.push(codes.len() as u32);
        start = end as usize;
    }
    Some((code_ends, codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_one_by_one_have_the_codes_of_texts_abreast() {
        let texts: Vec<String> = (0..40).map(|i| "packages haggle ".repeat(i % 5)).collect();
        let table = SymbolTable::train(texts.iter().map(|text| text.as_bytes()));
        let bytes = texts.concat().into_bytes();
        let ends: Vec<u32> = texts
            .iter()
            .scan(0, |end, text| {
                *end += text.len() as u32;
                Some(*end)
            })
            .collect();
        let together = abreast::compress(&table, &ends, &bytes);
        let least = together.1.len();
        assert_eq!(one_by_one(&table, &ends, &bytes, least), Some(together));
        assert_eq!(one_by_one(&table, &ends, &bytes, least - 1), None);
    }
}
