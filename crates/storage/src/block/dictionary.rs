//! Strings as codes of a dictionary, whose entries ascend. The blocks of a row group share it, so its memory
//! is counted separately.

use super::codec::{Codec, TextCodec};
use super::example::{Example, scattered, text};
use super::masks::keep;
use super::serialized::{BlockWriter, Flaw, Reader, Shared};
use super::{Block, Codes, TextValues, Values};
use crate::definition::Compression;
use crate::node::Ahead;
use entasis_vector::{Buffer, Dictionary, StringHeap, StringView};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct DictionaryCodes {
    pub(crate) dictionary: Arc<Dictionary>,
    pub(crate) codes: Codes,
}

impl DictionaryCodes {
    /// The entry in `slot`.
    #[inline]
    fn entry(&self, slot: usize) -> &StringView {
        &self.dictionary.values().values::<StringView>()[self.codes.get(slot) as usize]
    }

    /// The code of a string; `None` if there is none.
    fn code_of(&self, bytes: &[u8]) -> Option<u64> {
        let entries = &self.dictionary.values().values::<StringView>()[..self.dictionary.len()];
        let code = entries.binary_search_by(|entry| entry.as_bytes().cmp(bytes)).ok()? as u64;
        (code <= self.codes.max()).then_some(code)
    }

    fn with_codes(&self, codes: Codes) -> DictionaryCodes {
        DictionaryCodes { dictionary: self.dictionary.clone(), codes }
    }
}

impl Codec for DictionaryCodes {
    const NAME: &'static str = "dictionary";
    const EXAMPLES: &'static [Example] = &[Example::of_texts(Self::NAME, Compression::Auto, 0.07, |row| {
        text(format!("value {}", scattered(row) % 100))
    })];

    fn is_writable(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        self.codes.bytes()
    }

    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Some(self.codes.buffer_mut())
    }

    fn ahead(&self, _: usize) -> Ahead {
        self.codes.ahead()
    }

    #[inline]
    fn has_slots_of_their_own(&self) -> bool {
        self.codes.are_plain()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.codes(&self.codes);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<DictionaryCodes, Flaw> {
        let Shared::Dictionary(dictionary) = reader.shared else { return Err("its dictionary is missing") };
        let codes = reader.codes(slots)?;
        let entries = dictionary.len() as u64;
        let are_entries = codes.max() < entries || codes.greatest(slots) < entries;
        reader.check(are_entries, "a code that is none of its dictionary")?;
        Ok(DictionaryCodes { dictionary: dictionary.clone(), codes })
    }
}

impl TextCodec for DictionaryCodes {
    #[inline]
    fn get(&self, slot: usize) -> &[u8] {
        self.entry(slot).as_bytes()
    }

    #[inline]
    fn view(&self, slot: usize, _: &mut StringHeap) -> StringView {
        *self.entry(slot)
    }

    fn views(&self, from: usize, _: &[u64], out: &mut [StringView], _: &mut StringHeap) {
        out.iter_mut().enumerate().for_each(|(i, o)| *o = *self.entry(from + i));
    }

    fn narrow(&self, bytes: &[u8], masks: &mut [u64]) {
        match self.code_of(bytes) {
            None => masks.fill(0),
            Some(code) => keep(masks, |slot| self.codes.get(slot) == code),
        }
    }

    fn shared(&self) -> Shared {
        Shared::Dictionary(self.dictionary.clone())
    }

    fn copy(&self, slots: usize, _: &[u64]) -> DictionaryCodes {
        self.with_codes(self.codes.copy(slots))
    }

    fn unpacked_copy(&self, slots: usize, _: &[u64]) -> Option<DictionaryCodes> {
        Some(self.with_codes(self.codes.unpacked_copy(slots)?))
    }

    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        self.code_of(bytes).is_some()
    }

    #[inline]
    fn store(&self, slot: usize, bytes: &[u8]) {
        self.codes.store(slot, self.code_of(bytes).expect("it fits"));
    }
}

impl Block {
    /// The codes of its strings in a dictionary, if it has one.
    pub(crate) fn dictionary_codes(&self) -> Option<&DictionaryCodes> {
        match &self.values {
            Values::Text(TextValues::DictionaryCodes(codes)) => Some(codes),
            _ => None,
        }
    }

    /// Its dictionary.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary_codes().map(|codes| &codes.dictionary)
    }

    /// Bytes of its dictionary, which other blocks share.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        self.dictionary().map_or(0, |dictionary| {
            let heap = dictionary.values().heap().map_or(0, |heap| heap.bytes());
            dictionary.len() * size_of::<StringView>() + heap
        })
    }

    /// Its share of those bytes among the blocks that now have the dictionary.
    pub(crate) fn dictionary_share(&self) -> usize {
        self.dictionary().map_or(0, |dictionary| self.dictionary_bytes() / Arc::strong_count(dictionary))
    }

    pub(crate) fn has_dictionary(&self) -> bool {
        self.dictionary().is_some()
    }

    /// True if both have the same dictionary.
    pub(crate) fn shares_dictionary(&self, other: &Block) -> bool {
        match (self.dictionary(), other.dictionary()) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}
