//! Hashes for the distinct sketches and for building dictionaries. Never stored, never seen outside this crate.

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const SECOND_MULTIPLIER: u64 = 0x2545_F491_4F6C_DD1D;

/// Both halves of a 128-bit product, folded: every input bit reaches every output bit.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of a word.
// PERF: products of 64 bits, unlike those of 128, are made with vectors.
#[inline(always)]
pub fn hash_word(word: u64) -> u64 {
    let once = (word ^ (word >> 32) ^ SECOND_MULTIPLIER).wrapping_mul(MULTIPLIER);
    let twice = (once ^ (once >> 29)).wrapping_mul(SECOND_MULTIPLIER);
    twice ^ (twice >> 32)
}

/// The hash of a string of bytes.
// PERF: sixteen bytes at a time, and the last of them once more where they are fewer: nothing is copied to be filled up.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let pair = |pair: &[u8; 16]| {
        let (low, high) = pair.split_at(8);
        [low, high].map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
    };
    let mut state = (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut rest = bytes;
    while let (Some((head, behind)), true) = (rest.split_first_chunk(), rest.len() > 16) {
        let [low, high] = pair(head);
        state = fold(state ^ low, high ^ SECOND_MULTIPLIER);
        rest = behind;
    }
    let last = |bytes: &[u8]| match *bytes {
        [] => [0, 0],
        [a, .., b] if bytes.len() < 4 => [a.into(), u64::from(bytes[1]) << 8 | u64::from(b)],
        [a] => [a.into(), 1],
        _ => match (bytes.first_chunk(), bytes.last_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
            (Some(low), Some(high), _, _) => [u64::from_le_bytes(*low), u64::from_le_bytes(*high)],
            (_, _, Some(low), Some(high)) => [u32::from_le_bytes(*low).into(), u32::from_le_bytes(*high).into()],
            _ => unreachable!("four bytes at least"),
        },
    };
    let [low, high] = bytes.last_chunk().map_or_else(|| last(bytes), pair);
    fold(fold(state ^ low, high ^ SECOND_MULTIPLIER), MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn strings_that_differ_in_a_byte_or_in_length_have_other_hashes() {
        let text: Vec<u8> = (0..70u8).collect();
        let mut seen = HashSet::new();
        for length in 0..text.len() {
            assert!(seen.insert(hash_bytes(&text[..length])), "{length} bytes");
            for at in 0..length {
                for change in [1, 128, 255] {
                    let mut other = text[..length].to_vec();
                    other[at] ^= change;
                    assert!(seen.insert(hash_bytes(&other)), "{length} bytes, byte {at}");
                }
            }
        }
    }
}
