//! Rows chosen by a condition: lists of positions narrowed, values picked and placed.
//!
//! Over all positions, the bytes of the condition are read eight at a time: a multiplication gathers them
//! into a mask, and a table gives the positions of a mask's ones, so the work does not depend on how many
//! there are. Over a list, each position is stored and the end moves on by the condition's byte. Neither has
//! a branch on the data.

use super::{Rows, operand};
use crate::buffer::Native;
use crate::string::StringView;
use crate::types::PhysicalType;
use crate::vector::Vector;
use crate::{CHUNK_ROWS, bitmap};
use std::ops::Range;

/// Which truth values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// True.
    True,
    /// True and NULL.
    NotFalse,
    /// False and NULL.
    NotTrue,
}

/// For each mask, the positions of its ones, followed by arbitrary values.
const ONES: [[u16; 8]; 256] = {
    let mut table = [[0u16; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut n, mut bit) = (0, 0);
        while bit < 8 {
            if mask >> bit & 1 == 1 {
                table[mask][n] = bit as u16;
                n += 1;
            }
            bit += 1;
        }
        mask += 1;
    }
    table
};

/// Moves byte i (0 or 1) of the word to bit (56 + i) and from there down to bit i; no two partial products
/// meet.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// The lowest bit of each byte.
const LOWEST: u64 = u64::from_ne_bytes([1; 8]);

/// Writes to `out` the positions of `rows` whose value in `condition` is kept, in order.
pub fn narrow(condition: &Vector, keep: Keep, rows: Rows<'_>, out: &mut Vec<u16>) {
    if condition.is_constant() {
        out.clear();
        let truth = condition.is_valid(0).then(|| condition.values::<u8>()[0] != 0);
        let kept = match keep {
            Keep::True => truth == Some(true),
            Keep::NotFalse => truth != Some(false),
            Keep::NotTrue => truth != Some(true),
        };
        if kept {
            rows.each(|p| out.push(p as u16));
        }
        return;
    }
    // Room for eight positions past the end, so that stores need no test.
    out.resize(rows.len().max(CHUNK_ROWS) + 8, 0);
    let values = condition.values::<u8>();
    let flip = u8::from(keep == Keep::NotTrue);
    let validity = condition.validity();
    // A NULL is kept by all but `True`.
    let null_kept = keep != Keep::True;
    let end = match rows {
        Rows::Dense(n) => dense(values, validity, flip, null_kept, n, out),
        Rows::Sparse(list, _) => {
            let mut end = 0;
            match validity {
                None => {
                    for &p in list {
                        out[end] = p;
                        end += usize::from(values[p as usize] ^ flip);
                    }
                }
                Some(validity) => {
                    // PERF: no branch on the data. A NULL may have any byte.
                    let null_kept = u8::from(null_kept);
                    for &p in list {
                        let valid = u8::from(bitmap::get(validity, p as usize));
                        out[end] = p;
                        end += usize::from((values[p as usize] ^ flip) & valid | !valid & null_kept);
                    }
                }
            }
            end
        }
    };
    out.truncate(end);
}

fn dense(
    values: &[u8],
    validity: Option<&[u64]>,
    flip: u8,
    null_kept: bool,
    n: usize,
    out: &mut [u16],
) -> usize {
    let flip = u64::from_ne_bytes([flip; 8]);
    let mut end = 0;
    for (block, bytes) in values[..n.next_multiple_of(8)].chunks_exact(8).enumerate() {
        // A NULL may have any byte, whose other bits must not reach its neighbours.
        let word = (u64::from_le_bytes(bytes.try_into().expect("eight bytes")) ^ flip) & LOWEST;
        let mut mask = (word.wrapping_mul(GATHER) >> 56) as usize;
        let base = block * 8;
        if let Some(validity) = validity {
            let valid = (validity[base / 64] >> (base % 64)) as usize & 0xff;
            mask = if null_kept { mask | (!valid & 0xff) } else { mask & valid };
        }
        if base + 8 > n {
            mask &= (1 << (n - base)) - 1;
        }
        let target = &mut out[end..end + 8];
        target.iter_mut().zip(&ONES[mask]).for_each(|(o, &p)| *o = base as u16 + p);
        end += mask.count_ones() as usize;
    }
    end
}

/// Writes to `out`, from `end` on, those of the positions in `range` whose bits in `words` are ones; the
/// lowest bit of the first word is that of the first position. Returns the new end. There must be room for
/// eight positions past it.
pub fn positions(words: &[u64], range: Range<usize>, out: &mut [u16], mut end: usize) -> usize {
    for (word, start) in words.iter().zip(range.clone().step_by(64)) {
        let left = range.end - start;
        let mut bits = if left < 64 { word & ((1 << left) - 1) } else { *word };
        let mut base = start as u16;
        while bits != 0 {
            let mask = (bits & 0xff) as usize;
            out[end..end + 8].iter_mut().zip(&ONES[mask]).for_each(|(o, &p)| *o = base + p);
            end += mask.count_ones() as usize;
            base += 8;
            bits >>= 8;
        }
    }
    end
}

/// Writes to `out` the rows that are not in `taken`, or (`union`) those that are, in the order of `rows`.
/// `marks` is scratch memory of one byte per position, all zero before and after.
pub fn subtract(taken: &[&[u16]], union: bool, rows: Rows<'_>, marks: &mut Vec<u8>, out: &mut Vec<u16>) {
    if marks.len() < rows.limit() {
        marks.resize(rows.limit().max(CHUNK_ROWS), 0);
    }
    for list in taken {
        list.iter().for_each(|&p| marks[p as usize] = 1);
    }
    out.resize(rows.len().max(CHUNK_ROWS) + 8, 0);
    let flip = u8::from(!union);
    let mut end = 0;
    rows.each(|p| {
        out[end] = p as u16;
        end += usize::from(marks[p] ^ flip);
    });
    out.truncate(end);
    for list in taken {
        list.iter().for_each(|&p| marks[p as usize] = 0);
    }
}

/// Copies the values of `rows` from `source` to `out`, which has been begun and holds other rows already.
/// Long strings are copied into the heap of `out`.
pub fn place(source: &Vector, rows: Rows<'_>, out: &mut Vector) {
    if source.is_constant() && !source.is_valid(0) {
        place_null(rows, out);
        return;
    }
    match out.physical() {
        PhysicalType::Str => {
            let values = operand::<StringView>(source);
            let strings = out.strings_mut();
            rows.each(|p| {
                // The view at a NULL position may be of a string that is gone.
                if source.is_valid(p) {
                    strings.views[p] = strings.heap.push(values.get(p).as_bytes());
                }
            });
        }
        other => match other.width() {
            1 => place_values::<u8>(source, rows, out),
            2 => place_values::<u16>(source, rows, out),
            4 => place_values::<u32>(source, rows, out),
            8 => place_values::<u64>(source, rows, out),
            _ => place_values::<i128>(source, rows, out),
        },
    }
    if source.validity().is_some() && !source.is_constant() {
        rows.each(|p| {
            if !source.is_valid(p) {
                out.set_null(p);
            }
        });
    }
}

fn place_values<T: Native>(source: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let (source, out) = (operand::<T>(source), out.values_mut::<T>());
    rows.each(|p| out[p] = source.get(p));
}

/// Makes `rows` NULL in `out`.
pub fn place_null(rows: Rows<'_>, out: &mut Vector) {
    let validity = out.validity_mut(rows.limit());
    rows.each(|p| bitmap::set(validity, p, false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_at_a_null_does_not_matter() {
        let mut condition = Vector::new(PhysicalType::Bool);
        let is_null = |p: usize| p % 5 < 3;
        condition.begin(CHUNK_ROWS);
        let values = condition.values_mut::<u8>();
        (0..CHUNK_ROWS).for_each(|p| values[p] = if is_null(p) { (p * 7) as u8 } else { (p % 2) as u8 });
        let validity = condition.validity_mut(CHUNK_ROWS);
        (0..CHUNK_ROWS).for_each(|p| bitmap::set(validity, p, !is_null(p)));
        let all: Vec<u16> = (0..CHUNK_ROWS as u16).collect();
        for keep in [Keep::True, Keep::NotFalse, Keep::NotTrue] {
            let is_kept = |p: &u16| match (is_null(usize::from(*p)), p % 2 == 1) {
                (true, _) => keep != Keep::True,
                (false, is_true) => is_true == (keep != Keep::NotTrue),
            };
            let expected: Vec<u16> = all.iter().copied().filter(is_kept).collect();
            for rows in [Rows::Dense(CHUNK_ROWS), Rows::Sparse(&all, CHUNK_ROWS)] {
                let mut kept = Vec::new();
                narrow(&condition, keep, rows, &mut kept);
                assert_eq!(kept, expected, "{keep:?}");
            }
        }
    }
}
