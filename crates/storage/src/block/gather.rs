//! Gathering: a new hot block from slots of other blocks, for rows that move together.

use super::hot::bounds;
use super::plain::encode_plain;
use super::{Block, Fixed, Values, range_of, with_fixed};
use crate::node::prefetch;
use crate::value::{Datum, Zone};
use entasis_vector::{DataType, PhysicalType};

/// The most blocks that are decoded whole for the rows that are gathered from them.
const MOST_DECODED: usize = 8;

impl Block {
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
    let values = encode_plain(&values, min, max, sources.len(), true);
    let zone = Zone { min: low, max: high, nulls: 0 };
    Some(Block::new(sources.len(), Values::Fixed(values), None, zone, false))
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
