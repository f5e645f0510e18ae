//! Writing single slots of a block.
//!
//! 1. [`Block::admits`]: may the value be stored while others read the block? It must fit the encoding and
//!    lie within the zone, which readers rely on. Then [`Block::store`] writes it.
//! 2. [`Block::put`]: the same for a block that is not shared. The zone widens; if a value does not fit, the
//!    block, and only this block, is encoded again, wide enough and with slack.
//! 3. [`Block::overwrites`], [`Block::overwrite`]: the same for a live slot, while others read the block.

use super::hot::bounds;
use super::{Block, FixedValues, Flat, TextValues, Validity, Values};
use crate::node::prefetch;
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, PhysicalType, bitmap};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The fewest slots of a block that is written.
const SLOTS_MIN: usize = 16;
/// Numbers of a block with memory for so many slots, and for more to come, are flat: codes would be narrower,
/// but the next values would often not fit.
const FLAT_SLOTS: usize = 64;

impl Block {
    /// True if `datum` may be stored in `slot`, which is dead for all readers, though the block is shared.
    #[inline]
    pub(crate) fn admits(&self, slot: usize, datum: Datum<'_>) -> bool {
        if slot >= self.slots() || self.ascending {
            return false;
        }
        if datum.is_null() {
            return self.is_all_null() || (self.zone.nulls > 0 && self.validity.is_some());
        }
        self.zone.holds(datum) && self.values.have_slots_of_their_own() && self.fits(datum)
    }

    /// True if `datum` may be stored in `slot`, which is live, while others read single slots under the latch
    /// of the slice. Left out are strings in memory of their own, because the bytes of the old one are
    /// counted, and packed codes of a dictionary, as two halves of them may be no code.
    #[inline]
    pub(crate) fn overwrites(&self, slot: usize, datum: Datum<'_>) -> bool {
        slot < self.slots()
            && !self.ascending
            && !datum.is_null()
            && !self.has_views()
            && (self.values.have_slots_of_their_own() || !self.has_dictionary())
            && self.zone.holds(datum)
            && self.fits(datum)
            && self.is_valid(slot)
    }

    /// Stores `datum`, for which [`Block::overwrites`] is true, in `slot`. The caller has the latch of the
    /// slice, and whoever reads a slot meanwhile finds out.
    #[inline]
    pub(crate) fn overwrite(&self, slot: usize, datum: Datum<'_>, physical: PhysicalType) {
        self.store(slot, datum, physical);
    }

    /// True if its strings are in memory of its own that grows as they are written.
    #[inline]
    pub(crate) fn has_views(&self) -> bool {
        matches!(self.values, Values::Text(TextValues::Views(_)))
    }

    /// True if the encoding can hold a value that is not NULL, in an existing slot.
    #[inline]
    fn fits(&self, datum: Datum<'_>) -> bool {
        match (&self.values, datum) {
            (Values::Fixed(values), datum) => values.fit(datum),
            (Values::Text(values), Datum::Bytes(bytes)) => values.fit(bytes),
            (Values::Null | Values::Text(_), _) => false,
        }
    }

    /// Writes `datum`, which is admitted, to a ghost slot of a shared block, in a round of checkpoints. The
    /// block keeps its stamp, so its change is noted separately: before the value is stored, so that a thread
    /// that sees the value sees the note.
    #[inline]
    pub(crate) fn store_ghost(&self, slot: usize, datum: Datum<'_>, physical: PhysicalType, round: u32) {
        self.stored_in.store(round, Relaxed);
        self.store(slot, datum, physical);
    }

    /// Writes `datum`, which fits, to `slot`; see [`super::cells::store`].
    #[inline]
    fn store(&self, slot: usize, datum: Datum<'_>, physical: PhysicalType) {
        if let Some(words) = &self.validity {
            let (word, bit) = (&words[slot / 64], 1 << (slot % 64));
            let old = word.load(Relaxed);
            word.store(if datum.is_null() { old & !bit } else { old | bit }, Relaxed);
        }
        match (&self.values, datum) {
            (_, Datum::Null) => {}
            (Values::Fixed(values), datum) => values.store(slot, datum, physical),
            (Values::Text(values), Datum::Bytes(bytes)) => values.store(slot, bytes),
            (values, datum) => unreachable!("{datum:?} does not fit {values:?}"),
        }
    }

    /// Prefetches `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize, physical: PhysicalType) {
        match &self.values {
            // The width of a few slots is known here.
            Values::Fixed(FixedValues::Flat(Flat(buffer))) => {
                prefetch::prefetch(buffer.as_ptr().wrapping_add(slot * physical.width()));
            }
            values => values.ahead(self.slots()).prefetch_slot(slot),
        }
    }

    /// Writes `datum` to `slot` of a block that no other thread can see. `live` are the live slots of its
    /// slice, which may show `slot`; `limit` is how many slots it may get.
    pub(crate) fn put(&mut self, slot: usize, datum: Datum<'_>, live: &[u64], ty: DataType, limit: usize) {
        let physical = ty.physical();
        let old_is_live = bitmap::get(live, slot);
        if !self.values.are_writable() {
            self.values = self.warm(physical);
        }
        if slot >= self.slots() && !self.grow(slot, physical, limit) {
            return self.encode_anew(Some((slot, datum)), live, ty, limit);
        }
        if let (Values::Text(TextValues::Views(views)), true) = (&mut self.values, old_is_live) {
            let wasteful = views.forget(slot);
            match datum {
                Datum::Bytes(_) if wasteful => return self.encode_anew(Some((slot, datum)), live, ty, limit),
                Datum::Bytes(bytes) => views.make_room(bytes),
                _ => {}
            }
        } else if let (Values::Text(TextValues::Views(views)), Datum::Bytes(bytes)) =
            (&mut self.values, datum)
        {
            views.make_room(bytes);
        }
        if datum.is_null() {
            self.ascending = false;
            if !self.is_all_null() && self.validity.is_none() {
                self.validity = Some(all_valid(self.slots()));
            }
            self.zone.nulls = self.zone.nulls.saturating_add(u32::from(!old_is_live || self.is_valid(slot)));
        } else if self.is_all_null() || !self.fits(datum) {
            return self.encode_anew(Some((slot, datum)), live, ty, limit);
        } else {
            self.ascending = self.ascending && ascends(&self.zone, slot, datum, live);
            widen(&mut self.zone, datum, ty);
        }
        self.store(slot, datum, physical);
    }

    /// Slots that a block gets memory for, if it has none for `slot`.
    fn slots_for(slot: usize, limit: usize) -> usize {
        (slot + 1).next_power_of_two().max(SLOTS_MIN).min(limit)
    }

    /// Gives a block of few flat numbers without NULLs memory for `slot`, which it has none for. False for
    /// others: they are encoded again.
    fn grow(&mut self, slot: usize, physical: PhysicalType, limit: usize) -> bool {
        let slots = Block::slots_for(slot, limit);
        let Values::Fixed(values) = &self.values else { return false };
        if slots > FLAT_SLOTS || self.validity.is_some() {
            return false;
        }
        let Some(grown) = values.grown(self.slots(), slots, physical) else { return false };
        (self.values, self.slots) = (Values::Fixed(grown), slots as u16);
        true
    }

    /// The same live values in the tightest hot encoding, with `change` made to one slot.
    fn encode_anew(&mut self, change: Option<(usize, Datum<'_>)>, live: &[u64], ty: DataType, limit: usize) {
        let needed = change.map_or(0, |(slot, _)| slot + 1);
        let slots = match change {
            Some((slot, _)) if slot >= self.slots() => Block::slots_for(slot, limit),
            _ => self.slots(),
        };
        let are_flat = slots <= FLAT_SLOTS && slots < limit;
        let physical = ty.physical();
        let ascending = self.ascending
            && change.is_none_or(|(slot, datum)| !datum.is_null() && ascends(&self.zone, slot, datum, live));
        let old = &*self;
        let get = |slot: usize| match change {
            Some((changed, datum)) if changed == slot => Some(datum),
            _ if slot < old.slots() && bitmap::get(live, slot) => Some(old.datum(slot, physical)),
            _ => None,
        };
        let mut new = Block::of_width(self.slots().max(needed), slots, (ty, are_flat), get);
        new.ascending = ascending;
        new.stamp = self.stamp;
        *self = new;
    }
}

fn all_valid(slots: usize) -> Validity {
    (0..bitmap::words_for(slots)).map(|_| AtomicU64::new(u64::MAX)).collect()
}

/// True if a block that ascends still does so with `datum` in `slot`.
fn ascends(zone: &Zone, slot: usize, datum: Datum<'_>, live: &[u64]) -> bool {
    let behind = live.iter().enumerate().any(|(word, &bits)| match word.cmp(&(slot / 64)) {
        Ordering::Less => false,
        Ordering::Equal => bits >> (slot % 64) & !1 != 0,
        Ordering::Greater => bits != 0,
    });
    let overwrites = bitmap::get(live, slot);
    !behind && !overwrites && zone.nulls == 0 && (zone.max.is_null() || datum.cmp_bound(&zone.max).is_gt())
}

/// Widens a zone by a value that is not NULL.
pub(crate) fn widen(zone: &mut Zone, datum: Datum<'_>, ty: DataType) {
    if zone.min.is_null() {
        (zone.min, zone.max) = bounds(datum, datum, ty);
    } else if datum.cmp_bound(&zone.min).is_lt() {
        zone.min = datum.value(ty);
    } else if datum.cmp_bound(&zone.max).is_gt() {
        zone.max = datum.value(ty);
    }
}
