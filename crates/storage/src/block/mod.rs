//! A block: up to 1024 slots of one column, and one encoding for all of them.
//!
//! | code | encoding | chosen for | a slot takes | written in place |
//! |---|---|---|---|---|
//! | 0 | constant | one value, or NULL in every slot | nothing | if it is that value |
//! | 1 | frame of reference | integers, decimals, dates, times in a narrow range: `base + code` | 1, 2 or 4 bytes | within the range of codes |
//! | 2 | flat | whatever is no narrower as codes; floats, booleans, intervals | its width | always |
//! | 3 | dictionary | strings with few distinct values in the row group, which shares the dictionary | 1 or 2 bytes | if the dictionary has it |
//! | 4 | strings | all other strings, cold: end offsets and bytes | its bytes and 2 or 4 | never |
//! | 5 | views | strings that are written: a view each, long ones in a heap | 16 bytes and its bytes | always |
//!
//! A block comes cold from a builder, in the tightest encoding. What is written is *hot*: a flat narrow array. Most cold
//! encodings are such arrays already, so that writing needs no other form; where a value does not fit, this block alone is
//! encoded anew (`write`). Who may write, and when a copy is due, is the tree's affair (`crate::tree`).
//!
//! The zone holds every value that a live slot shows, and the slots of a shared block are only ever given values within
//! it: so a zone never changes under a reader. NULL slots hold an arbitrary code; the validity bitmap exists only if some
//! slots, but not all, may be NULL.

pub(crate) mod cells;
pub(crate) mod codes;
mod fixed;
mod narrow;
mod scatter;
pub(crate) mod search;
mod strings;
mod views;
mod write;

pub(crate) use codes::Codes;
pub(crate) use fixed::{Fixed, range_of, with_fixed, with_integer};
pub(crate) use scatter::Scattered;
pub(crate) use strings::{StringBytes, pinned_view};
pub(crate) use views::Views;
pub(crate) use write::widen;

use crate::datum::Datum;
use crate::tree::Stamp;
use crate::tree::link::{Ahead, Linked};
use crate::zone::Zone;
use entasis_vector::{Buffer, DataType, Dictionary, PhysicalType, StringView, Value, bitmap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The values of a block, by encoding. The discriminants are the codes of the table above.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Values {
    Constant(Value) = 0,
    FrameOfReference { base: i128, codes: Codes } = 1,
    Flat(Buffer) = 2,
    Dictionary { dictionary: Arc<Dictionary>, codes: Codes } = 3,
    Strings(StringBytes) = 4,
    Views(Views) = 5,
}

/// Validity bits of a block. Words, because bits of dead slots are written while others are read.
pub(crate) type Validity = Box<[AtomicU64]>;

/// Up to 1024 slots of one column: a node of the version tree.
#[derive(Debug)]
pub struct Block {
    pub(crate) stamp: Stamp,
    /// Slots that there is memory for. Those beyond are dead.
    pub(crate) slots: usize,
    pub(crate) values: Values,
    pub(crate) validity: Option<Validity>,
    pub(crate) zone: Zone,
    /// True if each live value is greater than the one before, and none is NULL.
    pub(crate) ascending: bool,
}

impl Linked for Block {
    fn ahead(&self) -> Ahead {
        match &self.values {
            Values::FrameOfReference { codes, .. } | Values::Dictionary { codes, .. } => codes.ahead(),
            // Rounded up to cache lines, so that the width of a few slots is a guess.
            Values::Flat(buffer) => Ahead::slots(buffer, (buffer.capacity() / self.slots.max(1)).min(16)),
            Values::Constant(_) | Values::Strings(_) | Values::Views(_) => Ahead::NONE,
        }
    }
}

impl Block {
    /// A block as a builder makes it, which hangs in no tree yet.
    pub(crate) fn new(slots: usize, values: Values, validity: Option<&[u64]>, zone: Zone, ascending: bool) -> Block {
        let validity = validity.map(|words| words.iter().map(|&word| AtomicU64::new(word)).collect());
        Block { stamp: 0, slots, values, validity, zone, ascending }
    }

    /// A block of slots that are all NULL.
    pub(crate) fn all_null(slots: usize) -> Block {
        let zone = Zone { nulls: slots as u32, ..Zone::EMPTY };
        Block::new(slots, Values::Constant(Value::Null), None, zone, false)
    }

    /// Bounds of its values.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Bytes of memory, without the dictionary that it shares.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Constant(_) => 0,
            Values::FrameOfReference { codes, .. } | Values::Dictionary { codes, .. } => codes.bytes(),
            Values::Flat(buffer) => buffer.capacity(),
            Values::Strings(strings) => strings.bytes(),
            Values::Views(views) => views.bytes(),
        };
        size_of::<Block>() + values + self.validity.as_ref().map_or(0, |words| words.len() * 8)
    }

    /// True if all slots are NULL.
    pub(crate) fn is_all_null(&self) -> bool {
        matches!(&self.values, Values::Constant(value) if value.is_null())
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

    /// Clears the bits of `words` from `at` on for each of the `rows` slots from `from` on that is NULL. The bits must
    /// be set before.
    pub(crate) fn clear_null_bits(&self, from: usize, words: &mut [u64], at: usize, rows: usize) {
        if self.is_all_null() {
            (at..at + rows).for_each(|i| bitmap::set(words, i, false));
        } else if let Some(validity) = &self.validity {
            if from.is_multiple_of(64) && at.is_multiple_of(64) {
                let target = &mut words[at / 64..bitmap::words_for(at + rows)];
                for (word, valid) in target.iter_mut().zip(&validity[from / 64..]) {
                    *word = valid.load(Relaxed);
                }
            } else {
                (0..rows).for_each(|i| bitmap::set(words, at + i, self.is_valid(from + i)));
            }
        }
    }

    /// The value in `slot`, which is live, of a column that is held as `physical`.
    #[inline]
    pub(crate) fn datum(&self, slot: usize, physical: PhysicalType) -> Datum<'_> {
        if !self.is_valid(slot) {
            return Datum::Null;
        }
        match &self.values {
            Values::Constant(Value::Text(text)) => Datum::Bytes(text.as_bytes()),
            Values::Constant(Value::Bytes(bytes)) => Datum::Bytes(bytes),
            // A constant block holds the physical number of a UUID.
            Values::Constant(value) => Datum::of_value(value, DataType::Null),
            Values::FrameOfReference { base, codes } => Datum::Integer(base.wrapping_add(codes.get(slot).into())),
            Values::Flat(buffer) => with_fixed!(
                physical,
                T => cells::load::<T>(buffer, slot).datum(),
                unreachable!("strings have no fixed width")
            ),
            Values::Dictionary { dictionary, codes } => {
                Datum::Bytes(dictionary.values().values::<StringView>()[codes.get(slot) as usize].as_bytes())
            }
            Values::Strings(strings) => Datum::Bytes(strings.get(slot)),
            Values::Views(views) => Datum::Bytes(views.get(slot)),
        }
    }

    /// Writes the values from slot `from` on to all of `out`. Not for strings.
    pub(crate) fn decode_fixed<T: Fixed>(&self, from: usize, out: &mut [T]) {
        match &self.values {
            Values::Constant(value) => out.fill(T::of_value(value)),
            Values::FrameOfReference { base, codes } => T::decode(*base, codes, from, out),
            Values::Flat(buffer) => cells::map_into::<T, T>(buffer, from, out, |value| value),
            Values::Dictionary { .. } | Values::Strings(_) | Values::Views(_) => {
                unreachable!("strings have no fixed width")
            }
        }
    }

    /// The view of the string in `slot`, which is live; empty if it is NULL. Its bytes live as long as this block.
    pub(crate) fn view(&self, slot: usize) -> StringView {
        match &self.values {
            Values::Constant(value) => constant_view(value),
            Values::Dictionary { dictionary, codes } => {
                dictionary.values().values::<StringView>()[codes.get(slot) as usize]
            }
            Values::Strings(strings) => strings.view(slot),
            Values::Views(views) => views.view(slot),
            Values::FrameOfReference { .. } | Values::Flat(_) => unreachable!("not a column of strings"),
        }
    }

    /// Writes views of the strings from slot `from` on to all of `out`; those of slots that `live` says are dead are
    /// empty, or of strings that were there.
    pub(crate) fn decode_views(&self, from: usize, live: &[u64], out: &mut [StringView]) {
        match &self.values {
            Values::Constant(value) => out.fill(constant_view(value)),
            Values::Strings(strings) => strings.views(from, out),
            Values::Views(_) => out.iter_mut().enumerate().for_each(|(i, o)| {
                *o = if bitmap::get(live, from + i) { self.view(from + i) } else { StringView::default() };
            }),
            _ => out.iter_mut().enumerate().for_each(|(i, o)| *o = self.view(from + i)),
        }
    }
}

/// The view of a constant string, whose bytes the block keeps.
pub(crate) fn constant_view(value: &Value) -> StringView {
    match value {
        Value::Text(text) => pinned_view(text.as_bytes()),
        Value::Bytes(bytes) => pinned_view(bytes),
        _ => StringView::default(),
    }
}

/// The value of a string under its type.
pub(crate) fn string_value(bytes: &[u8], ty: DataType) -> Value {
    Datum::Bytes(bytes).value(ty)
}
