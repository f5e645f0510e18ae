//! Strings as codes of a symbol table (FSST, [`super::symbols`]), which the blocks of a row group share.
//!
//! A scan writes the strings that it wants to the heap of its vector. Where a single string is asked for by reference, as rows by
//! themselves are, all of the block's are made and kept; no table whose rows are read by key has such blocks.

use super::symbols::SymbolTable;
use super::{StringBytes, abreast};
use entasis_vector::{StringHeap, StringView, bitmap};
use std::sync::{Arc, OnceLock};

/// See the module.
#[derive(Debug)]
pub(crate) struct Fsst {
    table: Arc<SymbolTable>,
    codes: StringBytes,
    /// What of the table's memory is this block's.
    share: usize,
    /// All strings, once one was asked for by reference.
    whole: OnceLock<Box<StringBytes>>,
}

impl Fsst {
    /// Strings whose bytes stand in `bytes` and end at `ends`; `None` if their codes take more than `most` bytes.
    pub(crate) fn new(table: Arc<SymbolTable>, ends: &[u32], bytes: &[u8], most: usize) -> Option<Fsst> {
        let (code_ends, codes) = abreast::compress(&table, ends, bytes);
        if codes.len() > most {
            return None;
        }
        Some(Fsst { table, codes: StringBytes::new(&code_ends, &codes), share: 0, whole: OnceLock::new() })
    }

    /// The symbols.
    pub(crate) fn table(&self) -> &Arc<SymbolTable> {
        &self.table
    }

    /// Says how many bytes of the symbols' memory count as this block's.
    pub(crate) fn share(&mut self, bytes: usize) {
        self.share = bytes;
    }

    /// The same strings once more.
    pub(crate) fn copy(&self) -> Fsst {
        Fsst { table: self.table.clone(), codes: self.codes.clone(), share: self.share, whole: OnceLock::new() }
    }

    /// Bytes of memory, as long as nobody asks for a string by reference.
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

    /// Writes views of the strings from slot `from` on to all of `out`; those of slots that `live` says are dead are empty.
    pub(crate) fn views(&self, from: usize, live: &[u64], out: &mut [StringView], heap: &mut StringHeap) {
        for (i, view) in out.iter_mut().enumerate() {
            *view = if bitmap::get(live, from + i) { self.view(from + i, heap) } else { StringView::default() };
        }
    }
}
