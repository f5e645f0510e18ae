//! What an encoding is: the operations that it has, with defaults for those that it need not say.
//!
//! | trait | of |
//! |---|---|
//! | [`Codec`] | all encodings: name, memory, bytes in a file |
//! | [`FixedCodec`] | encodings of values of fixed width: decoding, comparing, folding |
//! | [`Chosen`] | those of them that are chosen by their size, or forced by a name of SQL |
//! | [`TextCodec`] | encodings of strings |
//!
//! An encoding is a type that implements them, in a module of its own, and a row of the list in
//! [`super`]. From the list come the enums of [`super::FixedValues`] and [`super::TextValues`], whose methods
//! find the encoding of a block once and call its own: nothing is dispatched for each value. A default
//! decodes, and so is the slow twin of what an encoding does instead.
//!
//! Blocks are written in place only under a few encodings ([`Codec::is_writable`]). The others are *cold*,
//! and have none of the methods for that.

use super::example::Example;
use super::floats::FloatRange;
use super::fold::{Integer, ValidSlots, extreme};
use super::reading::{HeldSlots, Meaning, Selected};
use super::serialized::{BlockWriter, Flaw, Reader, Shared};
use super::unencoded::Unencoded;
use super::{Fixed, StringBytes, search, with_integer};
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, StringHeap, StringView, bitmap};

/// An encoding of the values of a block.
pub(crate) trait Codec: Sized {
    /// Its name for users.
    const NAME: &'static str;
    /// What it is for, and what reading it costs: one for each name that blocks of it have.
    const EXAMPLES: &'static [Example];

    /// The name for users, if that depends on the block.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// True if a slot can be written in place.
    fn is_writable(&self) -> bool {
        false
    }

    /// Bytes of memory besides the block.
    fn bytes(&self) -> usize;

    /// Where the numbers or codes of all slots are, in a block that is not shared; `None` if there is no such
    /// memory.
    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        None
    }

    /// Where those of so many slots are.
    fn ahead(&self, slots: usize) -> Ahead {
        let _ = slots;
        Ahead::NONE
    }

    /// False if a word of memory has bits of several slots, so that none can be written while others are
    /// read.
    #[inline]
    fn has_slots_of_their_own(&self) -> bool {
        true
    }

    /// Its bytes in a file, without what it shares with other blocks.
    fn write(&self, out: &mut BlockWriter<'_>);

    /// The inverse of [`Codec::write`], for a block of so many slots. The bytes are not to be believed:
    /// whatever can be read from the result must be in bounds.
    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Self, Flaw>;
}

/// An encoding of values of fixed width. Values are read as they are held, `held`, or as narrower integers
/// that hold every live one.
pub(crate) trait FixedCodec: Codec {
    /// The value in a slot that is not NULL.
    fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_>;

    /// Writes the values from slot `from` on to all of `out`.
    fn decode<T: Fixed>(&self, held: PhysicalType, from: usize, out: &mut [T]);

    /// True if reading the selected slots one by one is faster than decoding the stretch.
    fn is_read_singly<T: Fixed>(&self, held: PhysicalType, selected: Selected) -> bool {
        let _ = (held, selected);
        false
    }

    /// Calls `put` with the value of each of `slots`, which ascend.
    #[inline(always)]
    fn each_of<T: Fixed>(
        &self,
        held: PhysicalType,
        slots: impl ExactSizeIterator<Item = usize>,
        mut put: impl FnMut(T),
    ) {
        slots.for_each(|slot| put(T::of_datum(self.datum(slot, held))));
    }

    /// Narrows `masks`, without slots that are NULL, to numbers from `low` to `high`; to floats with such
    /// ordinals ([`entasis_vector::Value::ordinal`]).
    fn narrow(&self, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
        narrow_decoded(self, low, high, masks, of);
    }

    /// Narrows `masks`, without slots that are NULL, to the values for which `holds` is true.
    fn narrow_where<T: Fixed>(&self, of: HeldSlots, holds: impl Fn(T) -> bool, masks: &mut [u64]) {
        let mut all = [T::default(); BLOCK_ROWS];
        self.decode(of.physical, 0, &mut all[..of.slots]);
        for (mask, values) in masks.iter_mut().zip(all.chunks(64)) {
            let bits = values.iter().enumerate();
            *mask &= bits.fold(0, |found, (i, &v)| found | u64::from(holds(v)) << i);
        }
    }

    /// True if one value stands for many slots.
    fn repeats(&self) -> bool {
        false
    }

    /// What its codes mean.
    fn meaning(&self) -> Meaning<'_> {
        Meaning::Other
    }

    /// The sum of integers of at most 64 bits.
    fn sum(&self, slots: &ValidSlots<'_>, held: PhysicalType) -> i128 {
        let mut sum = 0;
        with_integer!(held, T => {
            let values = decoded::<T>(self, slots);
            slots.each_run(|from, count| sum += T::sum(values[..].into(), from - slots.from, count));
        });
        sum
    }

    /// Calls `offer` with integers of at most 64 bits, among which are the greatest of the slots, or the
    /// least.
    fn extremes(
        &self,
        slots: &ValidSlots<'_>,
        held: PhysicalType,
        largest: bool,
        mut offer: impl FnMut(i128),
    ) {
        with_integer!(held, T => {
            let values = decoded::<T>(self, slots);
            slots.each_run(|from, count| {
                offer(extreme::<T>(values[..].into(), from - slots.from, count, largest).into());
            });
        });
    }

    /// True if integers would be packed if the block was encoded again.
    fn is_plain(&self, held: PhysicalType) -> bool {
        let _ = held;
        false
    }

    /// True if it can hold a value that is not NULL, in an existing slot.
    #[inline]
    fn fits(&self, datum: Datum<'_>) -> bool {
        let _ = datum;
        false
    }

    /// Writes a value that fits to a slot; see [`super::cells::store`].
    #[inline]
    fn store(&self, slot: usize, datum: Datum<'_>, held: PhysicalType) {
        unreachable!("{datum:?} is stored as {held:?} in slot {slot} of what is not written in place");
    }

    /// A copy to be written while others read this one; `None` if it is not written in place.
    fn copy(&self, slots: usize, held: PhysicalType) -> Option<Self> {
        let _ = (slots, held);
        None
    }

    /// A copy whose slots are written while others are read; `None` if there is none.
    fn unpacked_copy(&self, slots: usize, held: PhysicalType) -> Option<Self> {
        self.copy(slots, held)
    }

    /// A copy with memory for more slots; `None` if it has to be encoded again.
    fn grown(&self, old: usize, slots: usize, held: PhysicalType) -> Option<Self> {
        let _ = (old, slots, held);
        None
    }
}

/// How values are to be encoded, and the bytes that this takes besides the block.
pub(crate) struct Planned<P> {
    pub(crate) plan: P,
    pub(crate) bytes: usize,
}

/// An encoding that is chosen ([`super::choose`]).
pub(crate) trait Chosen: FixedCodec {
    /// What forces it.
    const FORCED_BY: Compression;
    /// If it pays, it is taken, and those that would be tried later are not.
    const IS_FINAL: bool = true;
    /// How it is made: what was found out about the values.
    type Plan;

    /// How the values would be encoded; `None` if they cannot be.
    fn plan<T: Fixed>(of: &Unencoded<'_, T>) -> Option<Planned<Self::Plan>>;

    /// True if so many bytes are so much fewer than the smallest yet that reading for longer pays.
    fn pays(bytes: usize, smallest: usize) -> bool;

    /// The plan, if it pays. An encoding that is costly to plan looks at the values here first.
    fn propose<T: Fixed>(of: &Unencoded<'_, T>, smallest: usize) -> Option<Planned<Self::Plan>> {
        Self::plan(of).filter(|planned| Self::pays(planned.bytes, smallest))
    }

    /// Carries a plan out; with `slack`, codes that are written in place have room on both sides.
    fn encode<T: Fixed>(of: &Unencoded<'_, T>, plan: Self::Plan, slack: bool) -> Self;
}

/// An encoding of strings.
pub(crate) trait TextCodec: Codec {
    /// True if reading strings writes them to a heap.
    fn has_codes(&self) -> bool {
        false
    }

    /// The string in a slot that is not NULL.
    fn get(&self, slot: usize) -> &[u8];

    /// A view of the string in `slot`, which is live. Its bytes live as long as the block, or `heap` if
    /// [`TextCodec::has_codes`].
    fn view(&self, slot: usize, heap: &mut StringHeap) -> StringView;

    /// Writes views of the strings from slot `from` on to all of `out`; those of slots that `live` says are
    /// dead are empty, or of strings that were there.
    fn views(&self, from: usize, live: &[u64], out: &mut [StringView], heap: &mut StringHeap) {
        for (slot, view) in (from..).zip(out) {
            *view = if bitmap::get(live, slot) { self.view(slot, heap) } else { StringView::default() };
        }
    }

    /// Narrows `masks` to slots that hold `bytes`.
    fn narrow(&self, bytes: &[u8], masks: &mut [u64]) {
        super::masks::keep(masks, |slot| self.get(slot) == bytes);
    }

    /// What it shares with other blocks.
    fn shared(&self) -> Shared {
        Shared::Nothing
    }

    /// A copy of `slots` slots; those that `live` says are dead may be empty in it.
    fn copy(&self, slots: usize, live: &[u64]) -> Self;

    /// A copy whose slots are written while others are read; `None` if there is none.
    fn unpacked_copy(&self, slots: usize, live: &[u64]) -> Option<Self> {
        Some(self.copy(slots, live))
    }

    /// All strings, for one who is going to read all; `None` if they are read as well one by one.
    fn decompressed(&self) -> Option<StringBytes> {
        None
    }

    /// True if it can hold a string, in an existing slot.
    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        false
    }

    /// Writes a string that fits to a slot; see [`super::cells::store`].
    #[inline]
    fn store(&self, slot: usize, bytes: &[u8]) {
        unreachable!("{bytes:?} is stored in slot {slot} of what is not written in place");
    }
}

/// The values of a stretch, for encodings without a fold of their own.
fn decoded<T: Fixed>(codec: &impl FixedCodec, slots: &ValidSlots<'_>) -> Vec<T> {
    let mut values = vec![T::default(); slots.rows];
    codec.decode(T::PHYSICAL, slots.from, &mut values);
    values
}

/// [`FixedCodec::narrow`] on decoded values.
fn narrow_decoded(codec: &impl FixedCodec, low: i128, high: i128, masks: &mut [u64], of: HeldSlots) {
    fn decoded<T: Fixed>(codec: &impl FixedCodec, of: HeldSlots) -> [T; BLOCK_ROWS] {
        let mut values = [T::default(); BLOCK_ROWS];
        codec.decode(of.physical, 0, &mut values[..of.slots]);
        values
    }
    match of.physical {
        PhysicalType::F64 => {
            FloatRange::of_ordinals(low, high).narrow::<f64>(&decoded::<f64>(codec, of)[..], masks);
        }
        PhysicalType::F32 => {
            FloatRange::of_ordinals(low, high).narrow::<f32>(&decoded::<f32>(codec, of)[..], masks);
        }
        PhysicalType::I128 => {
            search::narrow(&decoded::<i128>(codec, of)[..], masks, low, high.wrapping_sub(low));
        }
        _ => with_integer!(of.physical, T => {
            let (low, high) = (low.max(T::MIN.into()), high.min(T::MAX.into()));
            if low > high {
                return masks.fill(0);
            }
            search::narrow(&decoded::<T>(codec, of)[..], masks, low as T, (high - low) as T);
        }),
    }
}
