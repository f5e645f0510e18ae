//! A block: up to 1024 values of one column, encoded, immutable.
//!
//! | code | encoding | chosen for | a slot takes |
//! |---|---|---|---|
//! | 0 | constant | one value, or NULL in every slot | nothing |
//! | 1 | frame of reference | integers, decimals, dates, times in a narrow range: `base + code` | 1, 2 or 4 bytes |
//! | 2 | flat | whatever is no narrower as codes; floats, booleans, intervals | its width |
//! | 3 | dictionary | strings with few distinct values in the row group, which shares the dictionary | 1 or 2 bytes |
//! | 4 | strings | all other strings: end offsets and bytes | its bytes and 2 or 4 |
//!
//! NULL slots hold an arbitrary code; the validity bitmap exists only if some slots, but not all, are NULL.

mod fixed;
mod strings;

pub(crate) use fixed::{Fixed, with_fixed};
pub(crate) use strings::{StringBytes, pinned_view};

use crate::zone::Zone;
use entasis_vector::{Buffer, DataType, Dictionary, StringView, Value, bitmap};
use std::sync::Arc;

/// Unsigned codes in the narrowest of three widths.
#[derive(Debug)]
pub(crate) enum Codes {
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
}

impl Codes {
    fn bytes(&self) -> usize {
        match self {
            Codes::U8(codes) => codes.len(),
            Codes::U16(codes) => codes.len() * 2,
            Codes::U32(codes) => codes.len() * 4,
        }
    }

    /// Writes the codes from `from` on to all of `out`.
    pub(crate) fn widen(&self, from: usize, out: &mut [u32]) {
        fn run<C: Copy + Into<u32>>(codes: &[C], out: &mut [u32]) {
            for (o, &code) in out.iter_mut().zip(codes) {
                *o = code.into();
            }
        }
        match self {
            Codes::U8(codes) => run(&codes[from..], out),
            Codes::U16(codes) => run(&codes[from..], out),
            Codes::U32(codes) => run(&codes[from..], out),
        }
    }

    pub(crate) fn get(&self, slot: usize) -> u32 {
        match self {
            Codes::U8(codes) => codes[slot].into(),
            Codes::U16(codes) => codes[slot].into(),
            Codes::U32(codes) => codes[slot],
        }
    }
}

/// The values of a block, by encoding. The discriminants are the codes of the table above.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Values {
    Constant(Value) = 0,
    FrameOfReference { base: i128, codes: Codes } = 1,
    Flat(Buffer) = 2,
    Dictionary { dictionary: Arc<Dictionary>, codes: Codes } = 3,
    Strings(StringBytes) = 4,
}

/// Up to 1024 slots of one column.
#[derive(Debug)]
pub struct Block {
    pub(crate) rows: usize,
    pub(crate) values: Values,
    pub(crate) validity: Option<Box<[u64]>>,
    pub(crate) zone: Zone,
    /// True if each value is greater than the one before, and none is NULL.
    pub(crate) ascending: bool,
}

impl Block {
    /// Slots.
    pub fn rows(&self) -> usize {
        self.rows
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
        };
        size_of::<Block>() + values + self.validity.as_ref().map_or(0, |words| words.len() * 8)
    }

    /// True if all slots are NULL.
    pub(crate) fn is_all_null(&self) -> bool {
        self.zone.nulls as usize == self.rows
    }

    /// Clears the bits of `words` from `at` on for each of the `rows` slots from `from` on that is NULL. The bits must
    /// be set before.
    pub(crate) fn clear_null_bits(&self, from: usize, words: &mut [u64], at: usize, rows: usize) {
        if self.is_all_null() {
            (at..at + rows).for_each(|i| bitmap::set(words, i, false));
        } else if let Some(validity) = &self.validity {
            if from.is_multiple_of(64) && at.is_multiple_of(64) {
                let target = &mut words[at / 64..bitmap::words_for(at + rows)];
                for (word, &valid) in target.iter_mut().zip(&validity[from / 64..]) {
                    *word = valid;
                }
            } else {
                (0..rows).for_each(|i| bitmap::set(words, at + i, bitmap::get(validity, from + i)));
            }
        }
    }

    /// Writes the values from slot `from` on to all of `out`. Not for strings.
    pub(crate) fn decode_fixed<T: Fixed>(&self, from: usize, out: &mut [T]) {
        match &self.values {
            Values::Constant(value) => out.fill(T::of_value(value)),
            Values::FrameOfReference { base, codes } => T::decode(*base, codes, from, out),
            Values::Flat(buffer) => out.copy_from_slice(&buffer.as_slice::<T>()[from..from + out.len()]),
            Values::Dictionary { .. } | Values::Strings(_) => unreachable!("strings have no fixed width"),
        }
    }

    /// The view of the string in `slot`; empty if it is NULL. Its bytes live as long as this block.
    pub(crate) fn view(&self, slot: usize) -> StringView {
        match &self.values {
            Values::Constant(value) => constant_view(value),
            Values::Dictionary { dictionary, codes } => {
                dictionary.values().values::<StringView>()[codes.get(slot) as usize]
            }
            Values::Strings(strings) => strings.view(slot),
            Values::FrameOfReference { .. } | Values::Flat(_) => unreachable!("not a column of strings"),
        }
    }

    /// Writes views of the strings from slot `from` on to all of `out`.
    pub(crate) fn decode_views(&self, from: usize, out: &mut [StringView]) {
        match &self.values {
            Values::Constant(value) => out.fill(constant_view(value)),
            Values::Strings(strings) => strings.views(from, out),
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
    match ty {
        DataType::Blob => Value::Bytes(Arc::from(bytes)),
        // VARCHAR holds UTF-8 by invariant, so nothing is ever replaced here.
        _ => Value::Text(Arc::from(&*String::from_utf8_lossy(bytes))),
    }
}
