//! Conditions on texts that are tested on the codes of a symbol table.
//!
//! Texts without a dictionary, if they are not short, are codes of symbols (FSST), a table of which belongs
//! to a row group. A list of texts, or a pattern of `LIKE` without `_`, becomes an automaton of bytes
//! ([`TextSearch`]), once for a statement, and then one of codes ([`CodeSearch`]), once for each table; which
//! reads no text ([`crate::block::automaton`]). The slow twin decompresses one text after the other.
//!
//! NULL satisfies none of these conditions, negated or not. Blocks in other encodings of strings have no
//! codes, except for constant ones, whose value is tested.

use crate::block::automaton::{Automaton, CodeAutomaton};
use crate::block::masks::WORDS;
use crate::block::{Block, Values};
use crate::tree::RowGroup;
use crate::value::Datum;
use entasis_vector::{DataType, bitmap};
use std::ops::Range;
use std::sync::Arc;

/// The most bytes of a block's codes that are searched here: a search cannot be interrupted.
const BYTES_MAX: usize = 4 << 20;

/// A condition on texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSearch {
    automaton: Automaton,
    /// The texts that the automaton accepts are those that satisfy the condition.
    accepted: bool,
}

impl TextSearch {
    /// Texts of a list; `None` if it is too long.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Option<TextSearch> {
        Some(TextSearch { automaton: Automaton::of_texts(texts)?, accepted: true })
    }

    /// Texts that begin with `prefix`, have all of `pieces` behind it, in order and apart, and end with
    /// `suffix` behind these; each may be empty. `None` if they are too long: some 120 bytes together.
    pub fn of_pieces(prefix: &[u8], pieces: &[&[u8]], suffix: &[u8]) -> Option<TextSearch> {
        Some(TextSearch { automaton: Automaton::of_pieces(prefix, pieces, suffix)?, accepted: true })
    }

    /// All other texts.
    pub fn negated(self) -> TextSearch {
        TextSearch { accepted: !self.accepted, ..self }
    }

    /// True if a text satisfies the condition.
    pub fn holds(&self, text: &[u8]) -> bool {
        self.automaton.accepts(text) == self.accepted
    }
}

/// A condition on texts for the codes of a symbol table.
#[derive(Debug)]
pub struct CodeSearch {
    search: Arc<TextSearch>,
    codes: CodeAutomaton,
}

impl RowGroup {
    /// A condition for the codes of a column in some runs of slots; `None` if there are values that are no
    /// codes, or codes of different tables. `last` is what was returned for the same condition before.
    pub fn code_search(
        &self,
        column: usize,
        runs: &[Range<usize>],
        search: &Arc<TextSearch>,
        last: Option<&Arc<CodeSearch>>,
    ) -> Option<Arc<CodeSearch>> {
        let width = self.block_slots;
        let slices = || runs.iter().flat_map(|run| run.start / width..run.end.div_ceil(width));
        let values = || slices().map(|slice| &self.slices[slice].block(column).values);
        let table = values().find_map(Values::fsst)?.table();
        let are_codes = |values: &Values| match values.fsst() {
            Some(fsst) => Arc::ptr_eq(fsst.table(), table) && fsst.code_bytes() <= BYTES_MAX,
            None => values.value().is_some(),
        };
        if !values().all(are_codes) {
            return None;
        }
        let is_for_table = |last: &&Arc<CodeSearch>| Arc::ptr_eq(last.codes.table(), table);
        Some(last.filter(is_for_table).cloned().unwrap_or_else(|| {
            let codes = CodeAutomaton::new(&search.automaton, table);
            Arc::new(CodeSearch { search: search.clone(), codes })
        }))
    }

    /// Keeps those of `rows`, which are positions in `runs` ([`RowGroup::select_runs`]) and ascend, whose
    /// text satisfies a condition that [`RowGroup::code_search`] has returned for them.
    pub fn retain_texts(
        &self,
        column: usize,
        search: &CodeSearch,
        runs: &[Range<usize>],
        rows: &mut Vec<u16>,
    ) {
        self.retain_by(column, runs, rows, |part, rows| {
            let mut masks = [0; WORDS];
            rows.iter().for_each(|&row| bitmap::set(&mut masks, part.slot_of(row), true));
            part.block.narrow_texts(search, &mut masks[..part.block.slots().div_ceil(64)]);
            masks
        });
    }
}

impl Block {
    /// Narrows `masks`, which has a bit for each slot and none for dead ones, to the slots whose text
    /// satisfies a condition.
    pub(crate) fn narrow_texts(&self, search: &CodeSearch, masks: &mut [u64]) {
        if self.may_be_null() {
            masks.iter_mut().enumerate().for_each(|(word, mask)| *mask &= self.valid_word(word));
        }
        match (self.values.fsst(), self.values.value()) {
            (Some(fsst), _) => search.codes.narrow(fsst.codes(), search.search.accepted, masks),
            (None, Some(value)) => match Datum::of_value(value, DataType::Null) {
                Datum::Bytes(text) if search.search.holds(text) => {}
                _ => masks.fill(0),
            },
            (None, None) => unreachable!("only compressed strings have codes of symbols"),
        }
    }
}
