//! Code sets: which entries of a dictionary satisfy a condition, so that rows are tested by their codes.
//!
//! A condition on a dictionary column is given by its truth table: an answer for each entry, and one for
//! NULL. Dictionaries of row groups are sorted, so that a comparison or a prefix is one run of codes, and a
//! short list is a few runs. Up to [`MOST_RUNS`] runs are compared as ranges of integers are; otherwise each
//! code is looked up.
//!
//! A set applies to blocks with this very dictionary, and to constants. How the answers were computed does
//! not matter here. The slow twin looks up the entry of one slot after the other.

use crate::block::codes::with_codes;
use crate::block::masks::WORDS;
use crate::block::packed::Lane;
use crate::block::{Block, Codes, DictionaryCodes, search};
use crate::scan::{CodeSearch, ValueRange, ValueSet};
use crate::tree::RowGroup;
use crate::value::Datum;
use entasis_vector::{DataType, Dictionary, PhysicalType, StringView, Value};
use std::ops::Range;
use std::sync::Arc;

/// The most runs of codes that are compared one after the other.
const MOST_RUNS: usize = 4;

/// A condition on rows that can be tested on encoded blocks.
#[derive(Debug, Clone)]
pub enum Condition {
    /// Integers in a range.
    Range(ValueRange),
    /// Strings whose codes are in a set; with the index of their column in the table. See
    /// [`RowGroup::dictionary`].
    Codes(usize, Arc<CodeSet>),
    /// Integers of a set, in a column that is held so; with its index in the table.
    Values(usize, PhysicalType, ValueSet),
    /// Texts that are compressed by symbols; with the index of their column. See [`RowGroup::code_search`].
    Texts(usize, Arc<CodeSearch>),
}

impl Condition {
    /// The index of its column in the table.
    pub fn column(&self) -> usize {
        match self {
            Condition::Range(range) => range.column,
            Condition::Codes(column, _) | Condition::Values(column, ..) | Condition::Texts(column, _) => {
                *column
            }
        }
    }
}

/// A set of dictionary codes.
#[derive(Debug)]
pub struct CodeSet {
    dictionary: Arc<Dictionary>,
    /// For each entry, whether it is in the set.
    entries: Vec<bool>,
    /// The codes of the set, first and last of each run, if these are few.
    runs: Option<Vec<(u64, u64)>>,
    /// NULL satisfies the condition.
    null: bool,
}

impl CodeSet {
    /// The entries of a sorted dictionary for which `entries` is true, and NULL if `null`.
    ///
    /// # Panics
    /// If there are not as many answers as entries.
    pub fn new(dictionary: Arc<Dictionary>, entries: Vec<bool>, null: bool) -> CodeSet {
        assert_eq!(entries.len(), dictionary.len());
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for code in (0..entries.len()).filter(|&code| entries[code]).map(|code| code as u64) {
            if let Some((_, last)) = runs.last_mut().filter(|(_, last)| *last + 1 == code) {
                *last = code;
            } else if runs.len() <= MOST_RUNS {
                runs.push((code, code));
            }
        }
        CodeSet { dictionary, entries, runs: Some(runs).filter(|runs| runs.len() <= MOST_RUNS), null }
    }

    /// The dictionary whose codes they are.
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    // PERF: an entry has a byte; a bit would be one more step in a short loop.
    #[inline(always)]
    fn has(&self, code: u64) -> bool {
        self.entries.get(code as usize).copied().unwrap_or(false)
    }

    /// True if the entry that equals a value is in the set.
    fn has_value(&self, value: &Value) -> bool {
        code_of(&self.dictionary, value).is_some_and(|code| self.has(code))
    }

    /// Narrows `masks`, of slots that are not NULL, to those whose codes are in the set.
    fn narrow(&self, codes: &Codes, masks: &mut [u64]) {
        let Some(runs) = &self.runs else {
            return with_codes!(codes, C, slots => {
                search::narrow_by_lookup(slots, masks, |code: C| self.has(code.code()))
            });
        };
        let max = codes.max();
        let mut found = [0u64; WORDS];
        for &(first, last) in runs.iter().filter(|(first, _)| *first <= max) {
            let mut within = [0u64; WORDS];
            let within = &mut within[..masks.len()];
            within.copy_from_slice(masks);
            codes.narrow(first, last.min(max), within);
            found.iter_mut().zip(within).for_each(|(found, within)| *found |= *within);
        }
        masks.copy_from_slice(&found[..masks.len()]);
    }
}

/// The code of a value in a sorted dictionary, if it is an entry.
fn code_of(dictionary: &Dictionary, value: &Value) -> Option<u64> {
    let Datum::Bytes(text) = Datum::of_value(value, DataType::Null) else { return None };
    let entries = &dictionary.values().values::<StringView>()[..dictionary.len()];
    entries.binary_search_by(|entry| entry.as_bytes().cmp(text)).ok().map(|code| code as u64)
}

impl Block {
    /// Narrows `masks`, which has a bit for each slot and none for dead ones, to the slots whose code is in
    /// `set`.
    pub(crate) fn narrow_codes(&self, set: &CodeSet, masks: &mut [u64]) {
        let mut nulls = [0u64; WORDS];
        if self.may_be_null() {
            for (word, mask) in masks.iter_mut().enumerate() {
                let valid = self.valid_word(word);
                nulls[word] = if set.null { *mask & !valid } else { 0 };
                *mask &= valid;
            }
        }
        match (self.dictionary_codes(), self.values.value()) {
            (Some(DictionaryCodes { codes, .. }), _) => set.narrow(codes, masks),
            (None, Some(value)) if set.has_value(value) => {}
            (None, Some(_)) => masks.fill(0),
            (None, None) => unreachable!("only strings with a dictionary have codes"),
        }
        masks.iter_mut().zip(nulls).for_each(|(mask, null)| *mask |= null);
    }
}

impl RowGroup {
    /// The dictionary whose codes stand for all values of a column in some runs of slots; `None` if there are
    /// other values.
    pub fn dictionary(&self, column: usize, runs: &[Range<usize>]) -> Option<&Arc<Dictionary>> {
        let width = self.block_slots;
        let slices = || runs.iter().flat_map(|run| run.start / width..run.end.div_ceil(width));
        let blocks = || slices().map(|slice| self.slices[slice].block(column));
        let shared = blocks().find_map(Block::dictionary)?;
        let has_codes = |block: &Block| match (block.dictionary(), block.values.value()) {
            (Some(dictionary), _) => Arc::ptr_eq(dictionary, shared),
            (None, Some(value)) => value.is_null() || code_of(shared, value).is_some(),
            (None, None) => false,
        };
        blocks().all(has_codes).then_some(shared)
    }
}
