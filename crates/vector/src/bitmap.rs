//! Bitmaps: one bit per row, in words of 64, least significant first. Validity (1 = not NULL) and marks.

/// A growable bitmap that owns its words. Vectors keep theirs in a [`crate::Buffer`] and use the functions
/// below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` bits, all `value`.
    pub fn filled(len: usize, value: bool) -> Bitmap {
        Bitmap { words: vec![if value { u64::MAX } else { 0 }; len.div_ceil(64)], len }
    }
    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True without any bit.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Appends one bit.
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        set(&mut self.words, self.len - 1, value);
    }
    /// Bit `i`.
    pub fn get(&self, i: usize) -> bool {
        get(&self.words, i)
    }
    /// Writes bit `i`.
    pub fn set(&mut self, i: usize, value: bool) {
        set(&mut self.words, i, value);
    }
    /// The words; bits at and beyond `len` are unspecified.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
    /// Bits that are 1.
    pub fn count_ones(&self) -> usize {
        count_ones(&self.words, self.len)
    }
}

/// Words that hold `bits` bits.
pub const fn words_for(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// Bit `i` of `words`.
#[inline(always)]
pub fn get(words: &[u64], i: usize) -> bool {
    (words[i / 64] >> (i % 64)) & 1 != 0
}

/// Writes bit `i` of `words`.
#[inline(always)]
pub fn set(words: &mut [u64], i: usize, value: bool) {
    let mask = 1 << (i % 64);
    if value {
        words[i / 64] |= mask;
    } else {
        words[i / 64] &= !mask;
    }
}

/// Ones among the first `bits` bits.
pub fn count_ones(words: &[u64], bits: usize) -> usize {
    let whole = words[..bits / 64].iter().map(|w| w.count_ones() as usize).sum::<usize>();
    match bits % 64 {
        0 => whole,
        rest => whole + (words[bits / 64] & ((1 << rest) - 1)).count_ones() as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_to_the_length() {
        let mut map = Bitmap::default();
        for i in 0..130 {
            map.push(i % 3 == 0);
        }
        assert_eq!(map.count_ones(), (0..130).filter(|i| i % 3 == 0).count());
        map.set(129, !map.get(129));
        assert!(!map.get(129));
    }
}
