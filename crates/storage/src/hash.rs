//! Hashes for the distinct sketches and for building dictionaries. Never stored, never seen outside this crate.

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Both halves of a 128-bit product, folded: every input bit reaches every output bit.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of a word.
#[inline(always)]
pub fn hash_word(word: u64) -> u64 {
    fold(word ^ 0x2545_F491_4F6C_DD1D, MULTIPLIER).wrapping_mul(MULTIPLIER)
}

/// The hash of a string of bytes.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        state = fold(state ^ word, MULTIPLIER);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        state = fold(state ^ u64::from_le_bytes(padded), MULTIPLIER);
    }
    hash_word(state)
}
