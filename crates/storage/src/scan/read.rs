//! Reading slots: runs of a column, block after block, as vectors.
//!
//! A *window* is one or several runs of slots, whose positions are counted through. Read are all values
//! ([`decode`]); only those at some positions, which stay in these positions ([`decode_selected`]); or only
//! those at some positions, moved together ([`gather`]). The result is a constant vector if all blocks are
//! the same constant, a dictionary vector if they share a dictionary, and flat otherwise. Positions of dead
//! slots are initialized and mean nothing; string views there are empty or valid. Strings are views into
//! blocks and dictionaries, valid while these are pinned, or into the vector's heap.

use crate::BLOCK_ROWS;
use crate::block::masks::WORDS;
use crate::block::{Block, DictionaryCodes, Fixed, Selected, constant_view, with_fixed};
use crate::tree::Slices;
use crate::value::Datum;
use entasis_vector::vector::StringsMut;
use entasis_vector::{DataType, Dictionary, PhysicalType, StringView, Value, Vector, bitmap};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The part of a window that lies in one slice.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Number of the slice.
    pub(crate) slice: usize,
    /// First slot in the slice.
    pub(crate) from: usize,
    /// First position in the window.
    at: usize,
    /// Slots.
    pub(crate) rows: usize,
}

/// The parts of a window, over slices of so many slots.
pub(crate) fn parts(width: usize, window: &[Range<usize>]) -> impl Iterator<Item = Part> {
    let mut at = 0;
    window.iter().flat_map(move |run| {
        let run_at = at;
        at += run.len();
        let run = run.clone();
        (run.start / width..run.end.div_ceil(width)).map(move |slice| {
            let start = slice * width;
            let (first, last) = (run.start.max(start), run.end.min(start + width));
            Part {
                slice,
                from: first - start,
                at: run_at + first - run.start,
                rows: last.saturating_sub(first),
            }
        })
    })
}

/// A part of a window with a block of it, which has memory for all of its slots.
pub(crate) struct BlockPart<'a> {
    part: Part,
    pub(crate) block: &'a Block,
    live: &'a [u64; WORDS],
}

impl Deref for BlockPart<'_> {
    type Target = Part;
    #[inline(always)]
    fn deref(&self) -> &Part {
        &self.part
    }
}

pub(crate) fn block_parts<'s, S: Slices>(
    slices: &'s S,
    column: usize,
    window: &[Range<usize>],
) -> impl Iterator<Item = BlockPart<'s>> {
    let parts = parts(slices.block_slots(), window).map(move |part| {
        let (block, live) = slices.block(part.slice, column);
        BlockPart {
            part: Part { rows: part.rows.min(block.slots().saturating_sub(part.from)), ..part },
            block,
            live,
        }
    });
    parts.filter(|part| part.rows > 0)
}

/// Few positions of a window are wanted if they are at most one in so many. If more are, all are decoded, but
/// for strings: a string takes 5 to 31 ns. Of such vectors kernels may look at all positions, so all are
/// defined.
const SPARSE: usize = 8;

/// The number of slots in a window.
fn slots_of(window: &[Range<usize>]) -> usize {
    window.iter().map(Range::len).sum()
}

/// Decodes a window of a column that is held as `held` to a vector that has room for `capacity` values: as
/// they are held, or as narrower integers that every live one fits.
pub(crate) fn decode<S: Slices>(
    slices: &S,
    column: usize,
    held: PhysicalType,
    window: &[Range<usize>],
    capacity: usize,
    out: &mut Vector,
) {
    if decode_constant(slices, column, window, out) {
        return;
    }
    if let Some(dictionary) = window_dictionary(slices, column, window) {
        let target = out.begin_codes(dictionary, capacity);
        target[..slots_of(window)].fill(0);
        for part in block_parts(slices, column, window) {
            if let Some(DictionaryCodes { codes, .. }) = part.block.dictionary_codes() {
                codes.widen(part.from, &mut target[part.at..part.at + part.rows]);
            }
        }
    } else {
        with_fixed!(
            out.physical(),
            T => {
                let target = out.begin_flat::<T>(capacity);
                let mut may_be_null = false;
                for part in block_parts(slices, column, window) {
                    part.block.decode_fixed(held, part.from, &mut target[part.at..part.at + part.rows]);
                    may_be_null |= part.block.may_be_null();
                }
                if !may_be_null {
                    return;
                }
            },
            {
                let StringsMut { views, heap } = out.begin_strings(capacity);
                views[..slots_of(window)].fill(StringView::default());
                let mut stable = true;
                for part in block_parts(slices, column, window) {
                    let views = &mut views[part.at..part.at + part.rows];
                    part.block.decode_views(part.from, part.live, views, heap);
                    stable &= !part.block.has_codes_of_strings();
                }
                out.set_strings_stable(stable);
            }
        );
    }
    decode_validity(slices, column, window, out);
}

/// Like [`decode`], but only the given positions, which ascend and are of live slots, need be defined.
pub(crate) fn decode_selected<S: Slices>(
    slices: &S,
    column: usize,
    held: PhysicalType,
    window: &[Range<usize>],
    positions: &[u16],
    capacity: usize,
    out: &mut Vector,
) {
    if decode_constant(slices, column, window, out) {
        return;
    }
    let are_few = positions.len() * SPARSE <= slots_of(window);
    let dictionary = window_dictionary(slices, column, window);
    if !are_few && (dictionary.is_some() || out.physical() != PhysicalType::Str) {
        return decode(slices, column, held, window, capacity, out);
    }
    let block_parts = || block_parts_at(slices, column, window, positions);
    if let Some(dictionary) = dictionary {
        let target = out.begin_codes(dictionary, capacity);
        for (own, part) in block_parts() {
            let own = &positions[own];
            if let Some(DictionaryCodes { codes, .. }) = part.block.dictionary_codes() {
                let mut places = own.iter();
                codes.each_of(part.slots(own), |code| {
                    places.next().into_iter().for_each(|&place| target[usize::from(place)] = code as u32);
                });
            }
        }
    } else {
        with_fixed!(
            out.physical(),
            T => {
                let target = out.begin_flat::<T>(capacity);
                for (own, part) in block_parts() {
                    part.decode_fixed(held, &positions[own], target);
                }
            },
            {
                let StringsMut { views, heap } = out.begin_strings(capacity);
                if !are_few {
                    views[..slots_of(window)].fill(StringView::default());
                }
                let mut stable = true;
                for (own, part) in block_parts() {
                    let own = &positions[own];
                    for (&position, slot) in own.iter().zip(part.slots(own)) {
                        views[usize::from(position)] = part.block.view(slot, heap);
                    }
                    stable &= !part.block.has_codes_of_strings();
                }
                out.set_strings_stable(stable);
            }
        );
    }
    decode_validity(slices, column, window, out);
}

/// The parts of a window in which some of its positions fall, which ascend, each with the range of those.
fn block_parts_at<'s, S: Slices>(
    slices: &'s S,
    column: usize,
    window: &[Range<usize>],
    positions: &[u16],
) -> impl Iterator<Item = (Range<usize>, BlockPart<'s>)> {
    let mut end = 0;
    let parts = block_parts(slices, column, window).map(move |part| {
        let own = part.positions(end, positions);
        end = own.end;
        (own, part)
    });
    parts.filter(|(own, _)| !own.is_empty())
}

/// Decodes the given positions of a window, which ascend and are of live slots, one behind the other.
pub(crate) fn gather<S: Slices>(
    slices: &S,
    column: usize,
    held: PhysicalType,
    window: &[Range<usize>],
    positions: &[u16],
    capacity: usize,
    out: &mut Vector,
) {
    let block_parts = || block_parts_at(slices, column, window, positions);
    if decode_constant(slices, column, window, out) {
        return;
    }
    let mut may_be_null = false;
    if let Some(dictionary) = window_dictionary(slices, column, window) {
        let target = out.begin_codes(dictionary, capacity);
        for (own, part) in block_parts() {
            may_be_null |= part.block.may_be_null();
            if let Some(DictionaryCodes { codes, .. }) = part.block.dictionary_codes() {
                let mut places = target[own.clone()].iter_mut();
                codes.each_of(part.slots(&positions[own]), |code| {
                    places.next().into_iter().for_each(|place| *place = code as u32);
                });
            }
        }
    } else {
        with_fixed!(
            out.physical(),
            T => {
                let target = out.begin_flat::<T>(capacity);
                let mut behind = None;
                for (own, part) in block_parts() {
                    may_be_null |= part.block.may_be_null();
                    // One block after the other, so far.
                    if behind.replace(part.slice + 1) == Some(part.slice) {
                        slices.prefetch_behind(part.slice, column);
                    }
                    part.gather_fixed(held, &positions[own.clone()], &mut target[own]);
                }
            },
            {
                let StringsMut { views, heap } = out.begin_strings(capacity);
                let mut stable = true;
                for (own, part) in block_parts() {
                    may_be_null |= part.block.may_be_null();
                    let slots = part.slots(&positions[own.clone()]);
                    let views = views[own].iter_mut();
                    views.zip(slots).for_each(|(view, slot)| *view = part.block.view(slot, heap));
                    stable &= !part.block.has_codes_of_strings();
                }
                out.set_strings_stable(stable);
            }
        );
    }
    if may_be_null {
        let words = out.validity_mut(positions.len());
        for (own, part) in block_parts().filter(|(_, part)| part.block.may_be_null()) {
            let slots = part.slots(&positions[own.clone()]);
            own.zip(slots).for_each(|(at, slot)| bitmap::set(words, at, part.block.is_valid(slot)));
        }
    }
}

/// Decodes a window whose blocks all are one and the same constant.
fn decode_constant<S: Slices>(slices: &S, column: usize, window: &[Range<usize>], out: &mut Vector) -> bool {
    let mut parts = block_parts(slices, column, window);
    let Some(BlockPart { block: head, .. }) = parts.next() else {
        // Nothing is live.
        out.begin(1);
        out.set_null(0);
        out.make_constant();
        return true;
    };
    let Some(value) = head.values.value() else { return false };
    // Not equal but the same: 0.0 is not -0.0.
    let is_same = |other: &Value| {
        Datum::of_value(other, DataType::Null).is_same(Datum::of_value(value, DataType::Null))
    };
    let same = |block: &Block| block.validity.is_none() && block.values.value().is_some_and(is_same);
    if !same(head) || !parts.all(|part| same(part.block)) {
        return false;
    }
    out.begin(1);
    if value.is_null() {
        out.set_null(0);
    } else {
        with_fixed!(
            out.physical(),
            T => out.values_mut::<T>()[0] = T::of_value(value),
            {
                out.values_mut::<StringView>()[0] = constant_view(value);
                out.set_strings_stable(true);
            }
        );
    }
    out.make_constant();
    true
}

/// The dictionary that all blocks of a window share, if they do.
fn window_dictionary<'s, S: Slices>(
    slices: &'s S,
    column: usize,
    window: &[Range<usize>],
) -> Option<&'s Arc<Dictionary>> {
    let mut shared: Option<&'s Arc<Dictionary>> = None;
    for part in block_parts(slices, column, window) {
        let dictionary = part.block.dictionary()?;
        match shared {
            None => shared = Some(dictionary),
            Some(other) if Arc::ptr_eq(other, dictionary) => {}
            Some(_) => return None,
        }
    }
    shared
}

fn decode_validity<S: Slices>(slices: &S, column: usize, window: &[Range<usize>], out: &mut Vector) {
    let may_be_null = |part: &BlockPart<'_>| part.block.may_be_null();
    if block_parts(slices, column, window).any(|part| may_be_null(&part)) {
        let words = out.validity_mut(slots_of(window));
        for part in block_parts(slices, column, window).filter(may_be_null) {
            part.block.clear_null_bits(part.from, words, part.at, part.rows);
        }
    }
}

impl Part {
    /// Which of some positions, that ascend, fall into this part; those before `from` fall into parts before
    /// it, all others into this one or those behind.
    // PERF: counted by vectors. A binary search through the positions of many blocks takes as long as
    // unpacking one.
    pub(crate) fn positions(&self, from: usize, positions: &[u16]) -> Range<usize> {
        const STEP: usize = 32;
        let end = self.at + self.rows;
        let is_inside = |position: &u16| usize::from(*position) < end;
        let mut to = from;
        for step in positions[from..].chunks(STEP) {
            to += match step.last().is_some_and(is_inside) {
                true => step.len(),
                false => step.iter().map(|position| u16::from(is_inside(position))).sum::<u16>().into(),
            };
            if to < positions.len() && !is_inside(&positions[to]) {
                break;
            }
        }
        debug_assert!(positions.get(from).is_none_or(|&first| usize::from(first) >= self.at));
        from..to
    }

    /// The slot in the slice of a position that falls into this part.
    #[inline(always)]
    pub(crate) fn slot_of(&self, position: u16) -> usize {
        usize::from(position) - self.at + self.from
    }

    /// The slots in the slice of positions that fall into this part.
    pub(crate) fn slots<'p>(&self, positions: &'p [u16]) -> impl ExactSizeIterator<Item = usize> + use<'p> {
        let (from, at) = (self.from, self.at);
        positions.iter().map(move |&position| usize::from(position) - at + from)
    }
}

impl BlockPart<'_> {
    /// Writes the values at positions that fall into this part to all of `out`.
    fn gather_fixed<T: Fixed>(&self, held: PhysicalType, positions: &[u16], out: &mut [T]) {
        let values = match (self.block.values.value(), self.block.values.fixed()) {
            (None, Some(values)) => values,
            (value, _) => return out.fill(value.map_or_else(T::default, T::of_value)),
        };
        let selected = Selected { slots: positions.len(), of: self.rows, in_place: false };
        let mut places = out.iter_mut();
        let put = |value| places.next().into_iter().for_each(|o| *o = value);
        if values.read_singly(held, selected, self.slots(positions), put) {
            return;
        }
        let mut decoded = [T::default(); BLOCK_ROWS];
        let decoded = &mut decoded[..self.rows];
        values.decode(held, self.from, decoded);
        let pairs = out.iter_mut().zip(positions);
        pairs.for_each(|(o, &position)| *o = decoded[usize::from(position) - self.at]);
    }

    /// Writes the values at positions that fall into this part to their places in the window's `out`; if they
    /// are not few, all values of the part.
    fn decode_fixed<T: Fixed>(&self, held: PhysicalType, positions: &[u16], out: &mut [T]) {
        let mut places = positions.iter().map(|&position| usize::from(position));
        let Some(values) = self.block.values.fixed() else {
            return places.for_each(|place| out[place] = T::default());
        };
        let selected = Selected { slots: positions.len(), of: self.rows, in_place: true };
        let put = |value| places.next().into_iter().for_each(|place| out[place] = value);
        if !values.read_singly(held, selected, self.slots(positions), put) {
            values.decode(held, self.from, &mut out[self.at..self.at + self.rows]);
        }
    }
}
