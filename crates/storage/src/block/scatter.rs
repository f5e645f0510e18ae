//! Writing many slots of a block at once: all values are decoded, the new ones are scattered among them, and
//! the block is encoded again with exact bounds. [`Block::put`] is the slow twin.

use super::plain::encode_plain;
use super::{Block, Fixed, Values, hot, range_of, with_fixed};
use crate::value::Datum;
use entasis_vector::{DataType, Encoding, Vector, bitmap};

/// New values for slots: the one for `slots[i]` stands at position `at[i]` of `vector`.
#[derive(Clone, Copy)]
pub(crate) struct Scattered<'a> {
    pub(crate) slots: &'a [u16],
    pub(crate) at: &'a [u16],
    pub(crate) vector: &'a Vector,
}

impl Scattered<'_> {
    /// Calls `each` with every slot and its value.
    pub(crate) fn each(&self, mut each: impl FnMut(usize, Datum<'_>)) {
        let pairs = self.slots.iter().zip(self.at);
        pairs.for_each(|(&slot, &at)| each(slot.into(), Datum::of_vector(self.vector, at.into())));
    }
}

impl Block {
    /// This block with new values in some live slots. `live` are the live slots of its slice.
    pub(crate) fn scatter(&self, new: Scattered<'_>, live: &[u64], ty: DataType) -> Block {
        with_fixed!(
            ty.physical(),
            T => scatter_fixed::<T>(self, new, live, ty),
            scatter_strings(self, new, live, ty)
        )
    }
}

fn scatter_fixed<T: Fixed>(old: &Block, new: Scattered<'_>, live: &[u64], ty: DataType) -> Block {
    let mut values = vec![T::default(); old.slots()];
    old.decode_fixed(T::PHYSICAL, 0, &mut values);
    let words = bitmap::words_for(old.slots());
    let mut valid: Vec<u64> = (0..words).map(|word| old.valid_word(word)).collect();
    let is_plain = new.vector.encoding() == Encoding::Flat
        && new.vector.physical() == ty.physical()
        && new.vector.validity().is_none();
    let had_nulls = valid.iter().zip(live).any(|(valid, live)| live & !valid != 0);
    if is_plain && !had_nulls {
        // PERF: the usual case; a loop whose only branch is the bounds check.
        let source = new.vector.values::<T>();
        new.slots.iter().zip(new.at).for_each(|(&slot, &at)| values[slot as usize] = source[at as usize]);
    } else {
        new.each(|slot, datum| {
            bitmap::set(&mut valid, slot, !datum.is_null());
            values[slot] = T::of_datum(datum);
        });
    }
    let mut range: Option<(T, T)> = None;
    let mut nulls = 0;
    for (word, (&live, &valid)) in live.iter().zip(&valid).enumerate() {
        nulls += (live & !valid).count_ones();
        let mut left = live & valid;
        let values = &values[word * 64..values.len().min(word * 64 + 64)];
        if left == 0 {
            continue;
        }
        let own = if left == u64::MAX {
            range_of(values).expect("64 values")
        } else {
            let first = values[left.trailing_zeros() as usize];
            let (mut min, mut max) = (first, first);
            while left != 0 {
                let v = values[left.trailing_zeros() as usize];
                min = if v.before(min) { v } else { min };
                max = if max.before(v) { v } else { max };
                left &= left - 1;
            }
            (min, max)
        };
        range = Some(match range {
            None => own,
            Some((min, max)) => {
                (if own.0.before(min) { own.0 } else { min }, if max.before(own.1) { own.1 } else { max })
            }
        });
    }
    let Some((min, max)) = range else { return hot::empty(old.slots(), nulls) };
    let (low, high) = hot::bounds(min.datum(), max.datum(), ty);
    let zone = crate::value::Zone { min: low, max: high, nulls };
    let values = encode_plain(&values, min, max, old.slots(), true);
    Block::new(old.slots(), Values::Fixed(values), (nulls > 0).then_some(&valid[..]), zone, false)
}

fn scatter_strings(old: &Block, new: Scattered<'_>, live: &[u64], ty: DataType) -> Block {
    // The index of the new value of each slot.
    let mut number = vec![u16::MAX; old.slots()];
    new.slots.iter().enumerate().for_each(|(i, &slot)| number[slot as usize] = i as u16);
    Block::of(old.slots(), old.slots(), ty, |slot| match number[slot] {
        u16::MAX => bitmap::get(live, slot).then(|| old.datum(slot, ty.physical())),
        i => Some(Datum::of_vector(new.vector, new.at[i as usize].into())),
    })
}
