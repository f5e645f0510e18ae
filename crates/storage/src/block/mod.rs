//! A block: up to 1024 slots of one column, and one encoding for all of them.
//!
//! | code | encoding | chosen for | a slot takes | written in place |
//! |---|---|---|---|---|
//! | 0 | constant | one value, or NULL in every slot | nothing | if it is that value |
//! | 1 | frame of reference | integers, decimals, dates, times in a narrow range: `base + code` | 1, 2 or 4 bytes, or as many bits as it needs | within the range of codes |
//! | 2 | flat | values that codes would not make narrower; floats, booleans, intervals | its width | always |
//! | 3 | dictionary | strings with few distinct values in the row group, which shares the dictionary | 1 or 2 bytes, or bits | if the dictionary has it |
//! | 4 | strings | all other strings, cold: end offsets and bytes | its bytes and 2 or 4 | never |
//! | 5 | views | strings that are written: a view each, long ones in a heap | 16 bytes and its bytes | always |
//! | 6 | sequence | integers that ascend or descend by one step | nothing | never |
//! | 7 | runs | consecutive equal values: a value and an end for each run | its share of that | never |
//! | 8 | patched | integers in a narrow range except for a few | bits as codes do, 10 bytes for each patch | never |
//! | 9 | scaled doubles (ALP) | doubles that are decimals: integers and a power of ten | bits as its integer does | never |
//! | 10 | singles | doubles that are floats | 4 bytes | never |
//! | 11 | FSST | strings of 24 bytes and more that it halves: codes of a table of symbols that the row group shares | its codes and 2 or 4 bytes | never |
//! | 12 | multiples | integers whose distances have a common factor: `least + factor · code` | bits as a code needs | never |
//! | 13 | split floats (ALP-RD) | floats that are no decimals: a code for the first bits, and the others | some 50 to 57 of 64 bits | never |
//! | 14 | line | integers that ascend or descend about evenly: `base + slope · slot + code` | bits as the distance from the line does | never |
//!
//! A builder makes *cold* blocks, in the tightest encoding that reads fast (`choose`). In tables with a
//! layout key they are flat, or have plain or packed codes, so that they can be written as they are;
//! elsewhere a block in another encoding is converted first. If a value does not fit, this block alone is
//! encoded again: it is *hot*, with spare codes (`write`). The tree decides who may write and when a block
//! is copied (`crate::tree`).
//!
//! Packed codes are written in place only while no other thread can see the block: a word of them has bits of
//! live slots, which readers load. A block that is shared is unpacked to plain codes before a ghost slot of
//! it is written.
//!
//! An encoding is a module with a type that implements [`codec`], and a row of one of the two lists below,
//! from which [`registry`] makes the enums [`FixedValues`] and [`TextValues`]. Numbers and strings are apart,
//! so that nothing which handles numbers has to say what it does with strings.
//!
//! ```text
//! Block, Values           mod, values, fixed_values, text_values; write (put, encode anew), hot, gather,
//!                         copy, scatter, narrow, same
//! what an encoding is     codec, registry, example; choose ──▶ unencoded; serialized; fold
//! encodings of numbers    constant, plain ──▶ flat, frame_of_reference; multiples, patched, progression,
//!                         line, runs
//!             floats      alp ◀── scaled, float32, split; floats
//!             strings     concatenated, views, dictionary; fsst_codec ◀── fsst_interleaved, fsst
//! at the bottom           cells (slots read while written), codes ──▶ packed, search, within, number,
//!                         masks, patches, strings, reading
//! ```
//!
//! The zone holds every value that a live slot shows, and the slots of a shared block are only ever given
//! values within it: so a zone never changes under a reader. NULL slots hold an arbitrary code; the validity
//! bitmap exists only if some slots, but not all, may be NULL.

mod alp;
pub(crate) mod automaton;
pub(crate) mod cells;
pub(crate) mod choose;
mod codec;
pub(crate) mod codes;
mod concatenated;
mod constant;
mod copy;
mod dictionary;
mod example;
mod fixed;
mod fixed_values;
mod flat;
mod float32;
mod floats;
mod fold;
mod frame_of_reference;
mod fsst;
pub(crate) mod fsst_codec;
mod fsst_interleaved;
mod gather;
mod hot;
mod line;
pub(crate) mod masks;
mod multiples;
mod narrow;
mod number;
pub(crate) mod packed;
mod patched;
mod patches;
mod plain;
mod progression;
mod reading;
mod registry;
mod runs;
mod same;
mod scaled;
mod scatter;
pub(crate) mod search;
pub mod serialized;
mod split;
mod strings;
mod text_values;
mod unencoded;
mod values;
mod views;
pub(crate) mod within;
mod write;

pub(crate) use choose::Form;
pub(crate) use codes::Codes;
pub(crate) use concatenated::Concatenated;
pub(crate) use constant::{Constant, constant_view};
pub(crate) use dictionary::DictionaryCodes;
pub use example::Example;
pub(crate) use fixed::{Fixed, range_of, with_fixed, with_integer};
pub(crate) use flat::Flat;
pub(crate) use float32::Singles;
pub(crate) use fold::ValidSlots;
pub(crate) use frame_of_reference::FrameOfReference;
pub(crate) use fsst::Fsst;
pub(crate) use line::Line;
pub(crate) use multiples::Multiples;
pub(crate) use patched::Patched;
pub(crate) use progression::Progression;
pub(crate) use reading::{HeldSlots, Meaning, Selected};
pub(crate) use runs::Runs;
pub(crate) use scaled::Scaled;
pub(crate) use scatter::Scattered;
pub(crate) use split::Split;
pub(crate) use strings::{StringBytes, pinned_view};
pub use values::examples;
pub(crate) use views::Views;
pub(crate) use write::widen;

use self::masks::first_bits;
use crate::definition::Compression;
use crate::node::{Ahead, Link, Linked, Stamp};
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, PhysicalType, StringHeap, StringView, Value, bitmap};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

registry::fixed_encodings! { $
    made {
        0 Constant: Constant;
        2 Flat: Flat;
    }
    tried {
        6 Progression: Progression;
        1 FrameOfReference: FrameOfReference;
        7 Runs: Runs;
        12 Multiples: Multiples;
        14 Line: Line;
        8 Patched: Patched;
        10 Singles: Singles;
        9 Scaled: Scaled;
        13 Split: Box<Split>;
    }
}

registry::text_encodings! { $
    0 Constant: Constant;
    3 DictionaryCodes: DictionaryCodes;
    4 Concatenated: Concatenated;
    5 Views: Views;
    11 Fsst: Box<Fsst>;
}

/// The values of a block.
#[derive(Debug)]
pub(crate) enum Values {
    /// Every slot is NULL, of whatever type. In files this is a constant.
    Null,
    /// Values of fixed width.
    Fixed(FixedValues),
    /// Strings.
    Text(TextValues),
}

/// Validity bits of a block. Words, because bits of dead slots are written while others are read.
pub(crate) type Validity = Box<[AtomicU64]>;

/// Up to 1024 slots of one column: a node of the version tree.
// PERF: reading a value takes two cache lines and that of the slot, and writing one three. Rows are spread
// over as many blocks as there are columns.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Block {
    pub(crate) values: Values,
    pub(crate) validity: Option<Validity>,
    pub(crate) stamp: Stamp,
    /// The round of checkpoints in which a ghost slot was last stored to while others had the block, or 0:
    /// it keeps its stamp, although it has changed. See [`Block::store_ghost`].
    pub(crate) stored_in: AtomicU32,
    /// Slots for which there is memory. Those beyond are dead.
    pub(crate) slots: u16,
    /// True if each live value is greater than the one before, and none is NULL.
    pub(crate) ascending: bool,
    pub(crate) zone: Zone,
}

// Three cache lines: writing a row prefetches those of all its columns. An encoding that would make it longer
// is held in a box.
const _: () = assert!(size_of::<Block>() == 192);

impl Linked for Block {
    /// The slots.
    type Ahead = Ahead;
    fn ahead(&self) -> Ahead {
        self.values.ahead(self.slots())
    }
}

impl Link<Block> {
    /// Prefetches what reading `slot` takes.
    #[inline]
    pub(crate) fn prefetch_slot(self, slot: usize) {
        self.prefetch_first(offset_of!(Block, zone));
        self.ahead().prefetch_slot(slot);
    }
}

impl Block {
    /// A block as a builder makes it, not yet part of a tree.
    pub(crate) fn new(
        slots: usize,
        values: Values,
        validity: Option<&[u64]>,
        zone: Zone,
        ascending: bool,
    ) -> Block {
        let validity = validity.map(|words| words.iter().map(|&word| AtomicU64::new(word)).collect());
        debug_assert!(slots <= crate::BLOCK_ROWS);
        let stored_in = AtomicU32::new(0);
        Block { stamp: 0, stored_in, slots: slots as u16, values, validity, zone, ascending }
    }

    /// A block of slots that are all NULL.
    pub(crate) fn all_null(slots: usize) -> Block {
        let zone = Zone { nulls: slots as u32, ..Zone::EMPTY };
        Block::new(slots, Values::Null, None, zone, false)
    }

    /// A block without memory for any slot.
    pub(crate) fn without_slots() -> Block {
        Block { ascending: true, ..Block::all_null(0) }
    }

    /// Slots that there is memory for.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Bounds of its values.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Bytes of memory, without the dictionary that it shares.
    pub fn bytes(&self) -> usize {
        size_of::<Block>() + self.values.bytes() + self.validity.as_ref().map_or(0, |words| words.len() * 8)
    }

    /// True if a ghost slot was stored to after the checkpoint of a round had pinned the table.
    pub(crate) fn is_stored_after(&self, round: u32) -> bool {
        self.stored_in.load(Relaxed) > round
    }

    /// Clears the note of stores, for a test of the consequences.
    #[cfg(test)]
    pub(crate) fn forget_stores(&self) {
        self.stored_in.store(0, Relaxed);
    }

    /// True if all slots are NULL.
    pub(crate) fn is_all_null(&self) -> bool {
        matches!(self.values, Values::Null)
    }

    /// True if it has packed codes, a word of which has bits of several slots.
    pub(crate) fn has_packed_codes(&self) -> bool {
        !self.values.have_slots_of_their_own()
    }

    /// False if no slot is NULL.
    pub(crate) fn may_be_null(&self) -> bool {
        self.validity.is_some() || self.is_all_null()
    }

    /// True if `slot` is not NULL.
    #[inline]
    pub(crate) fn is_valid(&self, slot: usize) -> bool {
        match &self.validity {
            None => !self.is_all_null(),
            Some(words) => (words[slot / 64].load(Relaxed) >> (slot % 64)) & 1 != 0,
        }
    }

    /// The validity bits of slots 64 · `word` and on.
    #[inline]
    pub(crate) fn valid_word(&self, word: usize) -> u64 {
        match &self.validity {
            None if self.is_all_null() => 0,
            None => u64::MAX,
            Some(words) => words.get(word).map_or(0, |word| word.load(Relaxed)),
        }
    }

    /// Clears the bits of `words` from `at` on for each of the `rows` slots from `from` on that is NULL. The
    /// bits must be set before. The bits after these stay as they are: they belong to what is read next,
    /// even if this block has bits of dead slots in the same word.
    pub(crate) fn clear_null_bits(&self, from: usize, words: &mut [u64], at: usize, rows: usize) {
        if self.is_all_null() {
            (at..at + rows).for_each(|i| bitmap::set(words, i, false));
        } else if let Some(validity) = &self.validity {
            if from.is_multiple_of(64) && at.is_multiple_of(64) {
                let target = &mut words[at / 64..bitmap::words_for(at + rows)];
                for (number, (word, valid)) in target.iter_mut().zip(&validity[from / 64..]).enumerate() {
                    *word &= valid.load(Relaxed) | !first_bits(rows - number * 64);
                }
            } else {
                (0..rows).for_each(|i| bitmap::set(words, at + i, self.is_valid(from + i)));
            }
        }
    }

    /// The value in `slot`, which is live, of a column that is held as `physical`.
    #[inline]
    pub fn datum(&self, slot: usize, physical: PhysicalType) -> Datum<'_> {
        if !self.is_valid(slot) {
            return Datum::Null;
        }
        self.values.datum(slot, physical)
    }

    /// Writes the values from slot `from` on, of a column that is held as `held`, to all of `out`: as they
    /// are held, or as narrower integers that hold every live one. Not for strings.
    #[inline]
    pub(crate) fn decode_fixed<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]) {
        match self.values.fixed() {
            Some(values) => values.decode(held, from, out),
            None => out.fill(T::default()),
        }
    }

    /// The view of the string in `slot`, which is live; empty if it is NULL. Its bytes live as long as this
    /// block, or `heap` if [`Block::has_codes_of_strings`].
    pub(crate) fn view(&self, slot: usize, heap: &mut StringHeap) -> StringView {
        self.values.text().map_or_else(StringView::default, |values| values.view(slot, heap))
    }

    /// Writes views of the strings from slot `from` on to all of `out`; those of slots that `live` says are
    /// dead are empty, or of strings that were there. `heap` as in [`Block::view`].
    pub(crate) fn decode_views(
        &self,
        from: usize,
        live: &[u64],
        out: &mut [StringView],
        heap: &mut StringHeap,
    ) {
        match self.values.text() {
            Some(values) => values.views(from, live, out, heap),
            None => out.fill(StringView::default()),
        }
    }

    /// True if reading its strings writes them to a heap.
    pub(crate) fn has_codes_of_strings(&self) -> bool {
        matches!(&self.values, Values::Text(values) if values.have_codes())
    }
}

/// The value of a string under its type.
pub(crate) fn string_value(bytes: &[u8], ty: DataType) -> Value {
    Datum::Bytes(bytes).value(ty)
}

#[cfg(test)]
pub(crate) mod tests {
    mod conformance;
    mod encodings;
    mod races;
    pub(crate) mod serialized;
}
