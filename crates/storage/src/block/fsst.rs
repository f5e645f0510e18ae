//! Strings as codes of a symbol table (FSST, [`super::fsst_codec`]), which the blocks of a row group share.
//!
//! A scan decompresses the strings that it needs to the heap of its vector: some tens of consecutive ones
//! together, or else one by one, which is the slow twin. If a single string is read by
//! reference, as single rows are, all strings of the block are decompressed and kept; tables whose rows are
//! read by key have no such blocks.

use super::codec::{Codec, TextCodec};
use super::example::{Example, scattered, text};
use super::fsst_codec::{MAX_LENGTH, NO_PLACE, SymbolTable};
use super::serialized::{BlockWriter, Flaw, Reader, Shared};
use super::{Block, StringBytes, TextValues, Values, fsst_interleaved};
use crate::definition::Compression;
use entasis_vector::{StringHeap, StringView, bitmap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The most bytes of a block's texts that are compressed several at a time, which takes memory for the worst
/// case. Larger blocks are compressed text by text, until compression turns out not to pay.
const ABREAST_MAX: usize = 4 << 20;

/// Strings that are decompressed together, and the most codes that they may have. Longer ones, whose number
/// of codes matters less, are decompressed one by one.
const TOGETHER: usize = 32;
const MOST_CODES: usize = 1024;

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
            true => fsst_interleaved::compress(&table, ends, bytes),
            false => one_by_one(&table, ends, bytes, most)?,
        };
        if codes.len() > most {
            return None;
        }
        Some(Fsst { table, codes: StringBytes::new(&code_ends, &codes), share: 0, whole: OnceLock::new() })
    }

    /// Strings from codes that a table made.
    fn of_parts(table: Arc<SymbolTable>, codes: StringBytes) -> Fsst {
        Fsst { table, codes, share: 0, whole: OnceLock::new() }
    }

    /// The codes of its strings.
    pub(crate) fn codes(&self) -> &StringBytes {
        &self.codes
    }

    /// The bytes of those.
    pub(crate) fn code_bytes(&self) -> usize {
        self.codes.bytes()
    }

    /// The symbols.
    pub(crate) fn table(&self) -> &Arc<SymbolTable> {
        &self.table
    }

    /// Divides the memory of the symbols among so many blocks.
    fn share(&mut self, blocks: usize) {
        self.share = self.table.bytes() / blocks;
    }

    /// True if its strings are sure to be ASCII.
    fn is_surely_ascii(&self) -> bool {
        self.table.is_surely_ascii(self.codes.bytes_of(0..self.codes.len()))
    }

    /// All strings.
    fn strings(&self) -> StringBytes {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(self.codes.len()));
        for slot in 0..self.codes.len() {
            self.table.decompress(self.codes.get(slot), &mut bytes);
            ends.push(bytes.len() as u32);
        }
        StringBytes::new(&ends, &bytes)
    }

    /// Writes views of the strings in some slots, whose codes are `codes`, at most [`MOST_CODES`].
    fn views_together(
        &self,
        slots: Range<usize>,
        codes: &[u8],
        out: &mut [StringView],
        heap: &mut StringHeap,
        places: &mut [u32; MOST_CODES + 1],
    ) {
        let (mut ends, start) = ([0; TOGETHER], self.codes.start(slots.start));
        let ends = &mut ends[..out.len()];
        heap.push_all_with(MAX_LENGTH * codes.len(), ends, out, |bytes, ends| {
            self.table.decompress_run(codes, bytes, places);
            let mut is_damaged = false;
            for (slot, end) in slots.clone().zip(&mut *ends) {
                *end = places[self.codes.end(slot) - start];
                is_damaged |= *end == NO_PLACE;
            }
            if is_damaged {
                // Some text ends with an escape. It must not change the next one.
                let mut at = 0;
                for (slot, end) in slots.zip(ends) {
                    at += self.table.decompress_into(self.codes.get(slot), &mut bytes[at..]);
                    *end = at as u32;
                }
            }
        });
    }
}

impl Codec for Fsst {
    const NAME: &'static str = "FSST";
    const EXAMPLES: &'static [Example] = &[Example::of_texts(Self::NAME, Compression::Fsst, 15.0, |row| {
        text(format!("http://example.com/page/{}?from=here", scattered(row)))
    })];

    /// As long as no string is requested by reference.
    fn bytes(&self) -> usize {
        size_of::<Fsst>() + self.codes.bytes() + self.share
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.plain_texts(&self.codes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Fsst, Flaw> {
        let Shared::Symbols(symbols) = reader.shared else { return Err("its symbols are missing") };
        let codes = reader.strings(slots)?;
        let fsst = Fsst::of_parts(symbols.table().clone(), codes);
        if reader.column.is_text && !fsst.is_surely_ascii() {
            reader.check_texts(&fsst.strings())?;
        }
        Ok(fsst)
    }
}

impl TextCodec for Fsst {
    fn has_codes(&self) -> bool {
        true
    }

    fn get(&self, slot: usize) -> &[u8] {
        self.whole.get_or_init(|| Box::new(self.strings())).get(slot)
    }

    #[inline]
    fn view(&self, slot: usize, heap: &mut StringHeap) -> StringView {
        let codes = self.codes.get(slot);
        heap.push_with(self.table.room(codes), |bytes| self.table.decompress_into(codes, bytes))
    }

    fn views(&self, from: usize, live: &[u64], out: &mut [StringView], heap: &mut StringHeap) {
        let mut places = [0; MOST_CODES + 1];
        for (first, out) in (from..).step_by(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
            let slots = first..first + out.len();
            let codes = self.codes.bytes_of(slots.clone());
            if codes.len() <= MOST_CODES && slots.clone().all(|slot| bitmap::get(live, slot)) {
                self.views_together(slots, codes, out, heap, &mut places);
                continue;
            }
            for (slot, view) in slots.zip(out) {
                *view = if bitmap::get(live, slot) { self.view(slot, heap) } else { StringView::default() };
            }
        }
    }

    fn shared(&self) -> Shared {
        Shared::symbols(self.table.clone())
    }

    fn copy(&self, _: usize, _: &[u64]) -> Fsst {
        Fsst {
            table: self.table.clone(),
            codes: self.codes.clone(),
            share: self.share,
            whole: OnceLock::new(),
        }
    }

    /// Without keeping them, as [`Fsst::get`] does.
    fn decompressed(&self) -> Option<StringBytes> {
        Some(self.strings())
    }
}

impl Values {
    /// Its codes of symbols, if strings have such.
    pub(crate) fn fsst(&self) -> Option<&Fsst> {
        match self {
            Values::Text(TextValues::Fsst(fsst)) => Some(fsst.as_ref()),
            _ => None,
        }
    }
}

impl Block {
    /// Divides the memory of its symbols among so many blocks.
    pub(crate) fn share_symbols(&mut self, blocks: usize) {
        if let Values::Text(TextValues::Fsst(fsst)) = &mut self.values {
            fsst.share(blocks);
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
    use super::super::fsst_codec::ESCAPE;
    use super::*;
    use crate::tests::random::Random;

    fn of_texts(table: &SymbolTable, texts: &[Vec<u8>]) -> Fsst {
        let symbols: Vec<(u64, u8)> = table.symbols().collect();
        let table = Arc::new(SymbolTable::of_symbols(&symbols).expect("they are those of a table"));
        let end = |end: &mut u32, text: &Vec<u8>| {
            *end += text.len() as u32;
            Some(*end)
        };
        let ends: Vec<u32> = texts.iter().scan(0, end).collect();
        Fsst::new(table, &ends, &texts.concat(), usize::MAX).expect("there is no limit")
    }

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
        let together = fsst_interleaved::compress(&table, &ends, &bytes);
        let least = together.1.len();
        assert_eq!(one_by_one(&table, &ends, &bytes, least), Some(together));
        assert_eq!(one_by_one(&table, &ends, &bytes, least - 1), None);
    }

    /// The views of some slots are those of the texts one by one, and empty where slots are dead.
    fn check_views(fsst: &Fsst, live: &[u64]) {
        let rows = fsst.codes.len();
        for (from, to) in [(0, rows), (1, rows), (rows / 3, rows / 2), (rows, rows)] {
            let (mut heap, mut other) = (StringHeap::new(), StringHeap::new());
            let mut views = vec![StringView::default(); to - from];
            fsst.views(from, live, &mut views, &mut heap);
            for (slot, view) in (from..to).zip(&views) {
                let is_live = bitmap::get(live, slot);
                let twin = if is_live { fsst.view(slot, &mut other) } else { StringView::default() };
                assert_eq!(view.as_bytes(), twin.as_bytes(), "slot {slot} from {from}");
                assert!(!is_live || view.as_bytes() == fsst.get(slot));
            }
        }
    }

    #[test]
    fn views_of_many_texts_are_those_of_each() {
        let mut random = Random(11);
        let alphabets: [&[u8]; 4] = [b"ab", b"packages requests 0123456789", b"\xFF\xFEa\0", b""];
        let tables = [
            SymbolTable::train(std::iter::empty()),
            SymbolTable::train([&b"requests packages abab"[..]; 40].into_iter()),
            SymbolTable::train([&b"\0\xFF\xFFa"[..]; 40].into_iter()),
        ];
        for round in 0..60 {
            let (letters, most) = (alphabets[round % 4], [2, 13, 40, 400][round / 4 % 4]);
            let texts: Vec<Vec<u8>> = (0..1 + random.below(1024))
                .map(|_| {
                    let letter = |random: &mut Random| match letters.is_empty() {
                        true => random.below(256) as u8,
                        false => letters[random.below(letters.len() as u64) as usize],
                    };
                    (0..random.below(most)).map(|_| letter(&mut random)).collect()
                })
                .collect();
            let fsst = of_texts(&tables[round % 3], &texts);
            for (slot, text) in texts.iter().enumerate() {
                assert_eq!(fsst.get(slot), text);
            }
            check_views(&fsst, &[u64::MAX; 16]);
            let live: Vec<u64> = (0..16).map(|_| random.below(u64::MAX) | random.below(u64::MAX)).collect();
            check_views(&fsst, &live);
        }
    }

    #[test]
    fn a_text_that_ends_with_an_escape_does_not_change_the_next() {
        let table = Arc::new(SymbolTable::train([&b"packages haggle"[..]; 40].into_iter()));
        for damaged in [&[ESCAPE][..], &[0, 1, ESCAPE], &[ESCAPE, ESCAPE, ESCAPE], &[250, 251]] {
            let (mut ends, mut codes) = (Vec::new(), Vec::new());
            for slot in 0..100 {
                match slot % 7 {
                    3 => codes.extend_from_slice(damaged),
                    _ => table.compress(b"packages haggle", &mut codes),
                }
                ends.push(codes.len() as u32);
            }
            check_views(&Fsst::of_parts(table.clone(), StringBytes::new(&ends, &codes)), &[u64::MAX; 2]);
        }
    }
}
