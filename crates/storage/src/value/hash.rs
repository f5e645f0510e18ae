//! Hashes for the distinct sketches and for building dictionaries. Never stored, never seen outside this
//! crate.

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
// PERF: sixteen bytes at a time. The last ones are read by words that may overlap, so that nothing is copied
// to be filled up.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    #[cfg(test)]
    HASHED.set(HASHED.get() + bytes.len());
    let mut state = (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut mix = |words: [u64; 2]| state = fold(state ^ words[0], words[1] ^ SECOND_MULTIPLIER);
    let mut rest = bytes;
    while rest.len() > 16 {
        let (pair, behind) = rest.split_at(16);
        mix(words_of(pair));
        rest = behind;
    }
    mix(words_of(&bytes[bytes.len().saturating_sub(16)..]));
    fold(state, MULTIPLIER)
}

/// Up to sixteen bytes as two words; strings of one length that differ have others.
#[inline(always)]
fn words_of(bytes: &[u8]) -> [u64; 2] {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return [first, last].map(|word| u64::from_le_bytes(*word));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return [first, last].map(|word| u32::from_le_bytes(*word).into());
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |&byte| u64::from(byte));
    [byte(0) | byte(1) << 8 | byte(2) << 16, 0]
}

#[cfg(test)]
thread_local! {
    /// Bytes that this thread has hashed, by which tests count work.
    pub(crate) static HASHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
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
