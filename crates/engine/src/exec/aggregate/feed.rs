//! Feeding: from the columns of a chunk to the rows that each state's loop walks over.
//!
//! For each feed: the rows that its filter and the NULLs of its argument leave, then the argument as a flat
//! vector with positions, then every state of the feed. Where groups are few, counts and sums take the marks
//! of positions instead of the groups of rows ([`crate::exec::group_table::marked`]). Without filter and
//! NULLs the loops run straight over the chunk's own vector; only dictionary and constant vectors are
//! flattened first. Memory is kept from chunk to chunk.

use super::layout::Feed;
use super::state::State;
use crate::exec::aggregate::rows::Rows;
use crate::exec::group_table::marked::{MASKED_GROUPS, NO_GROUP, ascend};
use entasis_vector::expr::true_bits;
use entasis_vector::{CHUNK_ROWS, Chunk, DataType, Encoding, PhysicalType, Result, Vector, bitmap};

/// The groups of a chunk's rows.
#[derive(Clone, Copy)]
pub enum Groups<'a> {
    /// All belong to group 0.
    One,
    /// The group of each row.
    Rows(&'a [u32]),
    /// The marks of positions ([`crate::exec::group_table::marked`]), and the positions of the rows; `None`:
    /// 0, 1, 2, …
    Marks(&'a [u8], Option<&'a [u16]>),
}

impl Groups<'_> {
    /// The group of each of `rows` rows, unless all belong to one; the first call writes them to `scratch` if
    /// necessary.
    fn by_row<'a>(&'a self, rows: usize, scratch: &'a mut Vec<u32>) -> Option<&'a [u32]> {
        match self {
            Groups::One => None,
            Groups::Rows(groups) => Some(groups),
            Groups::Marks(marks, at) => {
                if scratch.is_empty() {
                    let position = |row: usize| at.map_or(row, |at| usize::from(at[row]));
                    scratch.extend((0..rows).map(|row| u32::from(marks[position(row)])));
                }
                Some(scratch)
            }
        }
    }
}

/// Scratch memory of one worker.
#[derive(Default)]
pub struct Feeder {
    active: Vec<u16>,
    positions: Vec<u16>,
    /// By row, if marks were given.
    by_row: Vec<u32>,
    groups: Vec<u32>,
    args: Vec<Vector>,
    marks: Vec<u8>,
}

impl Feeder {
    /// Folds the rows of `chunk`, which belong to `groups`, into the states of `feeds`.
    ///
    /// # Errors
    /// Those of the states.
    pub fn feed(
        &mut self,
        feeds: &[Feed],
        chunk: &Chunk,
        groups: Groups<'_>,
        group_count: usize,
        states: &mut [State],
    ) -> Result<()> {
        // The positions of the marks in `self.marks`, if these belong to this chunk.
        let mut marked: Option<Option<&[u16]>> = None;
        self.by_row.clear();
        for feed in feeds {
            let restricted = find_active(feed, chunk, &mut self.active);
            let active = restricted.then_some(&self.active[..]);
            let count = active.map_or(chunk.len(), <[u16]>::len);
            if count == 0 {
                continue;
            }
            let only_counts = feed.states.iter().all(|&state| matches!(states[state], State::Count(_)));
            let (args, positions): (&[Vector], _) = if feed.external {
                flatten_args(feed, chunk, active, &mut self.args);
                (&self.args[..feed.args.len()], None)
            } else if let Some(&arg) = feed.args.first().filter(|_| !only_counts) {
                argument(arg, chunk, active, &mut self.args, &mut self.positions)
            } else {
                (&[], None)
            };
            // Marks belong to positions, so the argument must be at the same positions.
            let own = feed
                .args
                .first()
                .filter(|&&arg| args.first().is_some_and(|a| std::ptr::eq(a, chunk.vector(arg))));
            let takes_marks = |&state: &usize| matches!(states[state], State::Count(_) | State::Integers(_));
            let may_mark = !restricted && !feed.external && feed.states.iter().all(takes_marks);
            let marks = match (groups, own) {
                _ if !may_mark => None,
                (Groups::Marks(marks, _), _) if only_counts => Some(marks),
                (Groups::Marks(marks, at), Some(&arg)) if is_same(chunk.positions(arg), at) => Some(marks),
                (Groups::Rows(groups), Some(&arg)) if group_count <= MASKED_GROUPS => {
                    let at = chunk.positions(arg);
                    if !marked.is_some_and(|other| is_same(other, at)) {
                        mark(at, &groups[..count], &mut self.marks);
                        marked = Some(at);
                    }
                    Some(&self.marks[..]).filter(|marks| !marks.is_empty())
                }
                _ => None,
            };
            let by_row = if marks.is_some() { None } else { groups.by_row(chunk.len(), &mut self.by_row) };
            let by_row = match (by_row, active) {
                (Some(groups), Some(active)) => {
                    self.groups.clear();
                    self.groups.extend(active.iter().map(|&row| groups[row as usize]));
                    Some(&self.groups[..])
                }
                (groups, _) => groups,
            };
            let rows = Rows { count, positions, groups: by_row, marks };
            for &state in &feed.states {
                states[state].update(args, &rows, group_count)?;
            }
        }
        Ok(())
    }
}

/// An argument, where it is or else flattened to the first of `flattened`, and the positions of the rows that
/// count.
fn argument<'a>(
    arg: usize,
    chunk: &'a Chunk,
    active: Option<&'a [u16]>,
    flattened: &'a mut Vec<Vector>,
    composed: &'a mut Vec<u16>,
) -> (&'a [Vector], Option<&'a [u16]>) {
    let flat = chunk.vector(arg).encoding() == Encoding::Flat;
    let positions = if flat {
        chunk.positions(arg)
    } else {
        grow(flattened, 1);
        chunk.flatten_column(arg, &mut flattened[0]);
        None
    };
    let positions = match (positions, active) {
        (Some(at), Some(active)) => {
            composed.clear();
            composed.extend(active.iter().map(|&row| at[row as usize]));
            Some(&composed[..])
        }
        (positions, active) => positions.or(active),
    };
    (std::slice::from_ref(if flat { chunk.vector(arg) } else { &flattened[0] }), positions)
}

/// True if both are the same memory, or both stand for all positions.
fn is_same(a: Option<&[u16]>, b: Option<&[u16]>) -> bool {
    a.map(<[u16]>::as_ptr) == b.map(<[u16]>::as_ptr)
}

/// Writes the group of each position to `marks`; nothing, if rows are far apart or several share a position.
fn mark(positions: Option<&[u16]>, groups: &[u32], marks: &mut Vec<u8>) {
    marks.clear();
    let Some(positions) = positions else { return marks.extend(groups.iter().map(|&group| group as u8)) };
    let limit = positions.last().map_or(0, |&last| last as usize + 1);
    if limit > groups.len() * 4 || !ascend(positions) {
        return;
    }
    marks.resize(limit, NO_GROUP);
    positions.iter().zip(groups).for_each(|(&position, &group)| marks[position as usize] = group as u8);
}

/// Writes to `rows` the rows for which column `filter` is true.
pub fn true_rows(chunk: &Chunk, filter: usize, rows: &mut Vec<u16>) {
    rows.clear();
    if let Some(all) = constant(chunk, filter) {
        let count = if all { chunk.len() } else { 0 };
        return rows.extend(0..count as u16);
    }
    let vector = chunk.vector(filter);
    let positions = chunk.positions(filter);
    let dictionary = vector.dictionary();
    let values = dictionary.map_or(vector, |dictionary| dictionary.values()).values::<u8>();
    let codes = dictionary.map(|_| vector.codes());
    let validity = vector.validity();
    rows.resize(chunk.len(), 0);
    let mut kept = 0;
    if positions.is_none() && codes.is_none() {
        for word in 0..bitmap::words_for(chunk.len()) {
            let mut bits = true_bits(vector, word);
            while bits != 0 {
                let row = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if row < chunk.len() {
                    rows[kept] = row as u16;
                    kept += 1;
                }
            }
        }
        return rows.truncate(kept);
    }
    for row in 0..chunk.len() {
        let position = positions.map_or(row, |at| at[row] as usize);
        let value = values[codes.map_or(position, |codes| codes[position] as usize)];
        rows[kept] = row as u16;
        kept += usize::from(value != 0 && validity.is_none_or(|bits| bitmap::get(bits, position)));
    }
    rows.truncate(kept);
}

/// The value of column `filter` if it is known to be the same for all rows; NULL counts as false.
fn constant(chunk: &Chunk, filter: usize) -> Option<bool> {
    let vector = chunk.vector(filter);
    let is_true =
        || vector.values::<u8>()[0] != 0 && vector.validity().is_none_or(|bits| bitmap::get(bits, 0));
    vector.is_constant().then(is_true)
}

/// Finds the rows that count; false if all do.
fn find_active(feed: &Feed, chunk: &Chunk, active: &mut Vec<u16>) -> bool {
    let mut restricted = false;
    if let Some(filter) = feed.filter.filter(|&filter| constant(chunk, filter) != Some(true)) {
        true_rows(chunk, filter, active);
        restricted = true;
    }
    for &arg in feed.args.iter().filter(|_| !feed.keeps_nulls) {
        let vector = chunk.vector(arg);
        let Some(validity) = vector.validity() else { continue };
        if !restricted {
            active.clear();
            active.extend(0..chunk.len() as u16);
            restricted = true;
        }
        let positions = chunk.positions(arg);
        let constant = vector.is_constant();
        let mut kept = 0;
        for i in 0..active.len() {
            let row = active[i];
            let position = if constant { 0 } else { positions.map_or(row, |at| at[row as usize]) };
            active[kept] = row;
            kept += usize::from(bitmap::get(validity, position as usize));
        }
        active.truncate(kept);
    }
    restricted
}

fn grow(vectors: &mut Vec<Vector>, count: usize) {
    while vectors.len() < count {
        vectors.push(Vector::new(PhysicalType::I64));
    }
}

/// Writes a feed's arguments to `out`: dense, and in the default physical types.
fn flatten_args(feed: &Feed, chunk: &Chunk, active: Option<&[u16]>, out: &mut Vec<Vector>) {
    grow(out, feed.args.len());
    for ((&arg, ty), out) in feed.args.iter().zip(&feed.types).zip(out) {
        let composed: Option<Vec<u16>> = match (chunk.positions(arg), active) {
            (Some(at), Some(active)) => Some(active.iter().map(|&row| at[row as usize]).collect()),
            (Some(at), None) => Some(at.to_vec()),
            (None, active) => active.map(<[u16]>::to_vec),
        };
        let rows = composed.as_ref().map_or(chunk.len(), Vec::len);
        chunk.vector(arg).flatten_into(composed.as_deref(), rows, out);
        widen_decimal(*ty, rows, out);
    }
}

/// Widens a decimal that travels in 64 bits to its 128.
pub fn widen_decimal(ty: DataType, rows: usize, vector: &mut Vector) {
    if ty.physical() == PhysicalType::I128 && vector.physical() == PhysicalType::I64 {
        let mut wide = Vector::new(PhysicalType::I128);
        let values = wide.begin_flat::<i128>(rows.max(CHUNK_ROWS));
        values.iter_mut().zip(&vector.values::<i64>()[..rows]).for_each(|(w, &v)| *w = v.into());
        wide.set_validity(vector.validity_buffer().cloned());
        *vector = wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{Selection, Value};

    /// Rows of a flat vector are found 64 at a time, those of selected positions one by one.
    #[test]
    fn rows_that_are_true_are_found_in_words_as_they_are_one_by_one() {
        for len in 1..200usize {
            let of = |row: usize| {
                [Value::Boolean(true), Value::Null, Value::Boolean(false)][row * row % 7 % 3].clone()
            };
            let values: Vec<Value> = (0..len).map(of).collect();
            let expected: Vec<u16> =
                (0..len as u16).filter(|&row| values[row as usize] == Value::Boolean(true)).collect();
            let all: Vec<u16> = (0..len as u16).collect();
            for selection in [Selection::ALL, Selection::from_indices(&all)] {
                let mut chunk = Chunk::new();
                chunk.reset(len);
                let group = chunk.push_group(selection);
                let vector = Vector::from_values(PhysicalType::Bool, &values).expect("booleans");
                chunk.push_column(vector, group);
                let mut found = vec![7; 3];
                true_rows(&chunk, 0, &mut found);
                assert_eq!(found, expected, "{len} rows");
            }
        }
    }
}
