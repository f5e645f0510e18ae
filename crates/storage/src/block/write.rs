//! Writing single slots of a block.
//!
//! 1. [`Block::admits`]: may the value be stored while others read the block? It must fit the encoding and
//!    lie within the zone, which readers rely on. Then [`Block::store`] writes it.
//! 2. [`Block::put`]: the same for a block that is not shared. The zone widens; if a value does not fit, the
//!    block, and only this block, is encoded again, wide enough and with slack.
//! 3. [`Block::overwrites`], [`Block::overwrite`]: the same for a live slot, while others read the block.
//! 4. [`Block::gather`]: a new hot block from slots of other blocks, for rows that move together.

use super::fixed::flat;
use super::{Block, Fixed, Form, Validity, Values, Views, cells, choose, range_of, string_value, with_fixed};
use crate::definition::Compression;
use crate::node::{Stamp, prefetch};
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, Native, PhysicalType, StringView, Value, bitmap};
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
        self.zone.holds(datum) && self.has_slots_of_their_own() && self.fits(datum)
    }

    /// True if `datum` may be stored in `slot`, which is live, while others read single slots under the latch
    /// of the slice. Left out are strings in memory of their own, because the bytes of the old one are
    /// counted, and packed codes of a dictionary, as two halves of them may be no code.
    #[inline]
    pub(crate) fn overwrites(&self, slot: usize, datum: Datum<'_>) -> bool {
        slot < self.slots()
            && !self.ascending
            && !datum.is_null()
            && !matches!(self.values, Values::Views(_))
            && (self.has_slots_of_their_own() || !self.has_dictionary())
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

    /// True if a slot can be written while others are read.
    #[inline]
    fn has_slots_of_their_own(&self) -> bool {
        match &self.values {
            Values::FrameOfReference { codes, .. } | Values::Dictionary { codes, .. } => codes.are_plain(),
            _ => true,
        }
    }

    /// True if the encoding can hold a value that is not NULL, in an existing slot.
    #[inline]
    fn fits(&self, datum: Datum<'_>) -> bool {
        match (&self.values, datum) {
            (Values::FrameOfReference { base, codes }, Datum::Integer(v)) => {
                v.checked_sub(*base).is_some_and(|code| (0..=codes.max().into()).contains(&code))
            }
            (Values::Flat(_), _) => true,
            (Values::Views(views), Datum::Bytes(bytes)) => views.has_room(bytes),
            (Values::Dictionary { .. }, Datum::Bytes(bytes)) => self.code_of(bytes).is_some(),
            // Equal floats and intervals may differ in their bits.
            (Values::Constant(value), Datum::Integer(_) | Datum::Bytes(_)) => {
                !value.is_null() && datum.cmp_bound(value).is_eq()
            }
            _ => false,
        }
    }

    pub(super) fn code_of(&self, bytes: &[u8]) -> Option<u64> {
        let Values::Dictionary { dictionary, codes } = &self.values else { return None };
        let entries = &dictionary.values().values::<StringView>()[..dictionary.len()];
        let code = entries.binary_search_by(|entry| entry.as_bytes().cmp(bytes)).ok()? as u64;
        (code <= codes.max()).then_some(code)
    }

    /// Writes `datum`, which is admitted, to a ghost slot of a shared block, in a round of checkpoints. The
    /// block keeps its stamp, so its change is noted separately: before the value is stored, so that a thread
    /// that sees the value sees the note.
    #[inline]
    pub(crate) fn store_ghost(&self, slot: usize, datum: Datum<'_>, physical: PhysicalType, round: u32) {
        self.stored_in.store(round, Relaxed);
        self.store(slot, datum, physical);
    }

    /// Writes `datum`, which fits, to `slot`; see [`cells::store`].
    #[inline]
    fn store(&self, slot: usize, datum: Datum<'_>, physical: PhysicalType) {
        if let Some(words) = &self.validity {
            let (word, bit) = (&words[slot / 64], 1 << (slot % 64));
            let old = word.load(Relaxed);
            word.store(if datum.is_null() { old & !bit } else { old | bit }, Relaxed);
        }
        match (&self.values, datum) {
            (_, Datum::Null) | (Values::Constant(_), _) => {}
            (Values::FrameOfReference { base, codes }, Datum::Integer(v)) => {
                codes.store(slot, (v - base) as u64)
            }
            (Values::Flat(buffer), datum) => with_fixed!(
                physical,
                T => cells::store::<T>(buffer, slot, T::of_datum(datum)),
                unreachable!("strings have no fixed width")
            ),
            (Values::Views(views), Datum::Bytes(bytes)) => views.store(slot, bytes),
            (Values::Dictionary { codes, .. }, Datum::Bytes(bytes)) => {
                codes.store(slot, self.code_of(bytes).expect("it fits"));
            }
            (values, datum) => unreachable!("{datum:?} does not fit {values:?}"),
        }
    }

    /// Prefetches `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize, physical: PhysicalType) {
        match &self.values {
            Values::FrameOfReference { codes, .. } | Values::Dictionary { codes, .. } => codes.prefetch(slot),
            Values::Flat(buffer) => prefetch::prefetch(buffer.as_ptr().wrapping_add(slot * physical.width())),
            _ => {}
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
        if let (Values::Views(views), true) = (&mut self.values, old_is_live) {
            let wasteful = views.forget(slot);
            match datum {
                Datum::Bytes(_) if wasteful => return self.encode_anew(Some((slot, datum)), live, ty, limit),
                Datum::Bytes(bytes) => views.make_room(bytes),
                _ => {}
            }
        } else if let (Values::Views(views), Datum::Bytes(bytes)) = (&mut self.values, datum) {
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
        let Values::Flat(buffer) = &self.values else { return false };
        if slots > FLAT_SLOTS || self.validity.is_some() {
            return false;
        }
        let old = self.slots();
        let grown = with_fixed!(
            physical,
            T => cells::copy::<T>(buffer, old, slots),
            unreachable!("strings have no fixed width")
        );
        (self.values, self.slots) = (Values::Flat(grown), slots as u16);
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

    /// A hot block of the values that `get` gives for slots 0 to `used` - 1, `None` for dead ones; with
    /// memory for `capacity` slots.
    pub(crate) fn of<'a>(
        used: usize,
        capacity: usize,
        ty: DataType,
        get: impl Fn(usize) -> Option<Datum<'a>>,
    ) -> Block {
        Block::of_width(used, capacity, (ty, false), get)
    }

    /// The same; with `are_flat`, numbers are not made narrower.
    fn of_width<'a>(
        used: usize,
        capacity: usize,
        (ty, are_flat): (DataType, bool),
        get: impl Fn(usize) -> Option<Datum<'a>>,
    ) -> Block {
        let mut validity = Vec::new();
        let mut nulls = 0;
        for slot in 0..used {
            if get(slot).is_some_and(Datum::is_null) {
                if nulls == 0 {
                    validity.resize(bitmap::words_for(capacity), u64::MAX);
                }
                bitmap::set(&mut validity, slot, false);
                nulls += 1;
            }
        }
        let validity = (nulls > 0).then_some(&validity[..]);
        let present = |slot: usize| get(slot).filter(|datum| !datum.is_null());
        with_fixed!(
            ty.physical(),
            T => {
                let get = |slot: usize| present(slot).map(T::of_datum);
                of_fixed::<T>(used, capacity, (ty, are_flat), (nulls, validity), &get)
            },
            of_strings(used, capacity, ty, nulls, validity, &|slot| match present(slot) {
                Some(Datum::Bytes(bytes)) => Some(bytes),
                _ => None,
            })
        )
    }

    /// A hot block: slot s holds what `sources[s]` holds, and is dead if that is `None`.
    pub(crate) fn gather(sources: &[Option<(&Block, usize)>], ty: DataType) -> Block {
        let physical = ty.physical();
        let fixed = with_fixed!(physical, T => gather_fixed::<T>(sources, ty), None);
        if let Some(block) = fixed {
            return block;
        }
        // PERF: a block asks four times for each value.
        let datums: Vec<Option<Datum<'_>>> =
            sources.iter().map(|source| source.map(|(block, slot)| block.datum(slot, physical))).collect();
        Block::of(sources.len(), sources.len(), ty, |slot| datums[slot])
    }

    /// A block of slots that all hold one value.
    pub(crate) fn constant(value: &Value, slots: usize, ty: DataType) -> Block {
        let datum = Datum::of_value(value, ty);
        if datum.is_null() {
            return Block::all_null(slots);
        }
        let (min, max) = bounds(datum, datum, ty);
        let physical = match (datum, ty) {
            (Datum::Integer(v), DataType::Uuid) => Value::Integer(v),
            _ => value.clone(),
        };
        Block::new(slots, Values::Constant(physical), None, Zone { min, max, nulls: 0 }, false)
    }

    /// A copy of the block in the same encoding, except that cold integers and doubles get the one that suits
    /// them alone.
    pub(crate) fn twin(&self, live: &[u64], physical: PhysicalType) -> Block {
        let values = match &self.values {
            values if values.are_writable() => return self.copy(self.stamp, live, physical),
            Values::Strings(strings) => Values::Strings(strings.clone()),
            Values::Fsst(fsst) => Values::Fsst(fsst.copy()),
            _ => with_fixed!(
                physical,
                T => {
                    let mut values = vec![T::default(); self.slots()];
                    self.decode_fixed(T::PHYSICAL, 0, &mut values);
                    let (min, max) = range_of(&values).expect("a block without slots is constant");
                    choose::encode(&values, min, max, self.slots(), Form::Cold(Compression::Auto))
                },
                unreachable!("strings have no fixed width")
            ),
        };
        self.with_values(values, self.stamp)
    }

    /// A block of the form, or a hot one if that cannot be written: slot s holds the value of `values` that
    /// `numbers[s]` says, and is dead if that is `none`.
    pub(crate) fn picked<T: Fixed>(
        values: &[T],
        numbers: &[u32],
        none: u32,
        (ty, form): (DataType, Form),
    ) -> Block {
        let mut picked = Vec::with_capacity(numbers.len());
        let first = numbers.iter().find(|number| **number != none);
        let Some(&first) = first else { return empty(numbers.len(), 0) };
        // Slots without a row must not widen the codes.
        let first = values[first as usize];
        picked.extend(numbers.iter().map(|&number| values.get(number as usize).copied().unwrap_or(first)));
        let (min, max) = range_of(&picked).expect("there is a first");
        let (low, high) = bounds(min.datum(), max.datum(), ty);
        let values = match form {
            Form::Writable { .. } => choose::encode(&picked, min, max, numbers.len(), form),
            Form::Cold(_) => T::encode_plain(&picked, min, max, numbers.len(), true),
        };
        Block::new(numbers.len(), values, None, Zone { min: low, max: high, nulls: 0 }, false)
    }

    /// A copy to be written by the owner of `stamp`, while others keep reading this block.
    pub(crate) fn copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        let slots = self.slots();
        let values = match &self.values {
            Values::Constant(value) => Values::Constant(value.clone()),
            Values::FrameOfReference { base, codes } => {
                Values::FrameOfReference { base: *base, codes: codes.copy(slots) }
            }
            Values::Flat(buffer) => Values::Flat(with_fixed!(
                physical,
                T => cells::copy::<T>(buffer, slots, slots),
                unreachable!("strings have no fixed width")
            )),
            Values::Dictionary { dictionary, codes } => {
                Values::Dictionary { dictionary: dictionary.clone(), codes: codes.copy(slots) }
            }
            Values::Views(views) => Values::Views(views.copy(slots, live)),
            _ => self.warm(physical),
        };
        self.with_values(values, stamp)
    }

    /// The same, with codes that are written while others read them.
    pub(crate) fn unpacked_copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        let values = match &self.values {
            Values::FrameOfReference { base, codes } if !codes.are_plain() => {
                let plain = codes.unpacked_copy(self.slots());
                plain.map(|codes| Values::FrameOfReference { base: *base, codes })
            }
            Values::Dictionary { dictionary, codes } if !codes.are_plain() => {
                let plain = codes.unpacked_copy(self.slots());
                plain.map(|codes| Values::Dictionary { dictionary: dictionary.clone(), codes })
            }
            _ => return self.copy(stamp, live, physical),
        };
        self.with_values(values.unwrap_or_else(|| self.warm(physical)), stamp)
    }

    /// A block of the same rows in another encoding.
    fn with_values(&self, values: Values, stamp: Stamp) -> Block {
        let (validity, zone) = (self.copy_validity(), self.zone.clone());
        Block { stamp, ascending: self.ascending, validity, ..self.of_values(values, zone) }
    }

    /// A block of the same slots that hold other values.
    fn of_values(&self, values: Values, zone: Zone) -> Block {
        Block::new(self.slots(), values, None, zone, false)
    }

    /// The values in an encoding that is written in place.
    fn warm(&self, physical: PhysicalType) -> Values {
        match &self.values {
            Values::Strings(strings) => {
                Values::Views(Views::new(self.slots(), self.slots(), |slot| strings.get(slot)))
            }
            Values::Fsst(fsst) => {
                let strings = fsst.strings();
                Values::Views(Views::new(self.slots(), self.slots(), |slot| strings.get(slot)))
            }
            _ => with_fixed!(
                physical,
                T => {
                    let mut values = vec![T::default(); self.slots()];
                    self.decode_fixed(T::PHYSICAL, 0, &mut values);
                    match range_of(&values) {
                        Some((min, max)) => T::encode_plain(&values, min, max, self.slots(), true),
                        None => Values::Constant(Value::Null),
                    }
                },
                unreachable!("strings have no fixed width")
            ),
        }
    }

    fn copy_validity(&self) -> Option<Validity> {
        self.validity
            .as_ref()
            .map(|words| words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect())
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

/// The bounds of values from `min` to `max`, as a zone has them.
pub(super) fn bounds(min: Datum<'_>, max: Datum<'_>, ty: DataType) -> (Value, Value) {
    match ty {
        // A UUID's value is a number whose order is not that of UUIDs, so it bounds nothing.
        DataType::Uuid => (Value::Integer(i128::MIN), Value::Integer(i128::MAX)),
        _ => (min.value(ty), max.value(ty)),
    }
}

fn of_fixed<T: Fixed>(
    used: usize,
    capacity: usize,
    (ty, are_flat): (DataType, bool),
    (nulls, validity): (u32, Option<&[u64]>),
    get: &dyn Fn(usize) -> Option<T>,
) -> Block {
    let mut values = vec![T::default(); used];
    let mut range: Option<(T, T)> = None;
    let mut holes = nulls > 0;
    for (slot, value) in values.iter_mut().enumerate() {
        match get(slot) {
            None => holes = true,
            Some(v) => {
                *value = v;
                range = Some(match range {
                    None => (v, v),
                    Some((min, max)) => {
                        (if v.before(min) { v } else { min }, if max.before(v) { v } else { max })
                    }
                });
            }
        }
    }
    let Some((min, max)) = range else { return empty(capacity, nulls) };
    if holes {
        // Slots without a value must not widen the codes.
        for (slot, value) in values.iter_mut().enumerate() {
            if get(slot).is_none() {
                *value = min;
            }
        }
    }
    let (low, high) = bounds(min.datum(), max.datum(), ty);
    let values = match are_flat {
        true => Values::Flat(flat(&values, capacity)),
        false => T::encode_plain(&values, min, max, capacity, true),
    };
    Block::new(capacity, values, validity, Zone { min: low, max: high, nulls }, false)
}

/// Prefetches what is read a few rows later, first the block and then its slot: each row of another block is
/// a cache miss.
fn prefetch_ahead(sources: &[Option<(&Block, usize)>], at: usize, physical: PhysicalType) {
    if let Some(Some((block, _))) = sources.get(at + 24) {
        let start = std::ptr::from_ref::<Block>(block).cast::<u8>();
        (0..size_of::<Block>()).step_by(64).for_each(|byte| prefetch::prefetch(start.wrapping_add(byte)));
    }
    if let Some(Some((block, slot))) = sources.get(at + 12) {
        block.prefetch(*slot, physical);
    }
}

/// The most blocks that are decoded whole for the rows that are gathered from them.
const MOST_DECODED: usize = 8;

/// [`Block::gather`] for blocks without NULLs. `None` if some value may be NULL, or there is none.
fn gather_fixed<T: Fixed>(sources: &[Option<(&Block, usize)>], ty: DataType) -> Option<Block> {
    let picked = if are_scattered_over_few(sources) { from_few_blocks::<T>(sources) } else { None };
    let mut values = match picked {
        Some(values) => values,
        None => from_runs::<T>(sources, ty)?,
    };
    let first = values[sources.iter().position(Option::is_some)?];
    // Slots without a value must not widen the codes.
    values
        .iter_mut()
        .zip(sources)
        .filter(|(_, source)| source.is_none())
        .for_each(|(value, _)| *value = first);
    let (min, max) = range_of(&values)?;
    let (low, high) = bounds(min.datum(), max.datum(), ty);
    let values = T::encode_plain(&values, min, max, sources.len(), true);
    Some(Block::new(sources.len(), values, None, Zone { min: low, max: high, nulls: 0 }, false))
}

/// True if the first rows suggest that they are mostly not consecutive, and are in a few blocks.
fn are_scattered_over_few(sources: &[Option<(&Block, usize)>]) -> bool {
    let first = &sources[..sources.len().min(64)];
    let follows = |pair: &&[Option<(&Block, usize)>]| match (pair[0], pair[1]) {
        (Some((block, slot)), Some((next, next_slot))) => std::ptr::eq(block, next) && next_slot == slot + 1,
        _ => false,
    };
    let mut blocks: Vec<&Block> = Vec::with_capacity(MOST_DECODED + 1);
    for &(block, _) in first.iter().flatten() {
        if blocks.len() <= MOST_DECODED && !blocks.iter().any(|other| std::ptr::eq(*other, block)) {
            blocks.push(block);
        }
    }
    blocks.len() <= MOST_DECODED && first.windows(2).filter(follows).count() < first.len() * 3 / 4
}

/// The values of rows in a few blocks; `None` if the blocks are many, or may have NULLs.
// PERF: a block is decoded in 30 to 100 ns, a single value in 10. Deleting half of 10 M rows takes half the
// time.
fn from_few_blocks<T: Fixed>(sources: &[Option<(&Block, usize)>]) -> Option<Vec<T>> {
    let mut decoded: Vec<(&Block, Vec<T>)> = Vec::new();
    let mut last = 0;
    let mut values = vec![T::default(); sources.len()];
    for (value, source) in values.iter_mut().zip(sources) {
        let Some((block, slot)) = *source else { continue };
        let is_it = |(own, _): &(&Block, Vec<T>)| std::ptr::eq(*own, block);
        if !decoded.get(last).is_some_and(is_it) {
            last = match decoded.iter().position(is_it) {
                Some(found) => found,
                None if decoded.len() == MOST_DECODED || block.may_be_null() => return None,
                None => {
                    let mut all = vec![T::default(); block.slots()];
                    block.decode_fixed(T::PHYSICAL, 0, &mut all);
                    decoded.push((block, all));
                    decoded.len() - 1
                }
            };
        }
        *value = decoded[last].1[slot];
    }
    Some(values)
}

/// The values of rows in any blocks: consecutive slots are decoded at once, and the next ones are prefetched.
/// `None` if one may be NULL.
fn from_runs<T: Fixed>(sources: &[Option<(&Block, usize)>], ty: DataType) -> Option<Vec<T>> {
    let mut values = vec![T::default(); sources.len()];
    let mut at = 0;
    while at < sources.len() {
        prefetch_ahead(sources, at, ty.physical());
        let Some((block, slot)) = sources[at] else {
            at += 1;
            continue;
        };
        if block.may_be_null() {
            return None;
        }
        let follows = |&(i, source): &(usize, &Option<(&Block, usize)>)| {
            source.is_some_and(|(other, other_slot)| std::ptr::eq(other, block) && other_slot == slot + i)
        };
        let run = sources[at..].iter().enumerate().take_while(follows).count();
        block.decode_fixed(T::PHYSICAL, slot, &mut values[at..at + run]);
        at += run;
    }
    Some(values)
}

fn of_strings<'a>(
    used: usize,
    capacity: usize,
    ty: DataType,
    nulls: u32,
    validity: Option<&[u64]>,
    get: &dyn Fn(usize) -> Option<&'a [u8]>,
) -> Block {
    let present = || (0..used).filter_map(get);
    let (Some(min), Some(max)) = (present().min(), present().max()) else { return empty(capacity, nulls) };
    let zone = Zone { min: string_value(min, ty), max: string_value(max, ty), nulls };
    let views = Views::new(used, capacity, |slot| get(slot).unwrap_or_default());
    Block::new(capacity, Values::Views(views), validity, zone, false)
}

/// A block without a value.
pub(super) fn empty(capacity: usize, nulls: u32) -> Block {
    Block { ascending: nulls == 0, zone: Zone { nulls, ..Zone::EMPTY }, ..Block::all_null(capacity) }
}
