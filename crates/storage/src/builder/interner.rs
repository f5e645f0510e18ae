//! Distinct strings and their codes, while a row group is filled.

use crate::value::hash_bytes;

/// Gives equal strings one code, counted from 0 in order of first appearance.
#[derive(Default)]
pub(super) struct Interner {
    /// Open addressing, linear probing: code + 1, 0 is empty. A power of two, at most half full.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Interner {
    /// The code of `text`.
    pub(super) fn code(&mut self, text: &[u8]) -> u32 {
        if self.slots.len() <= self.hashes.len() * 2 {
            self.grow();
        }
        let hash = hash_bytes(text);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                slot => {
                    let code = slot - 1;
                    if self.hashes[code as usize] == hash && self.get(code) == text {
                        return code;
                    }
                }
            }
            at = (at + 1) & mask;
        }
        let code = self.hashes.len() as u32;
        self.slots[at] = code + 1;
        self.hashes.push(hash);
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        code
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(capacity, 0);
        for (code, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & (capacity - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (capacity - 1);
            }
            self.slots[at] = code as u32 + 1;
        }
    }

    /// The string of a code.
    pub(super) fn get(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.bytes[start..self.ends[code]]
    }

    /// Number of codes.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The hash of each string, by code.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Bytes of all distinct strings.
    pub(super) fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * 4
            + (self.hashes.capacity() + self.ends.capacity()) * 8
            + self.bytes.capacity()
    }

    /// Forgets all strings.
    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.hashes.clear();
        self.ends.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_code() {
        let mut interner = Interner::default();
        let text = |i: usize| format!("{:x}", i * 7919 % 1000);
        for i in 0..5000 {
            assert_eq!(interner.code(text(i).as_bytes()) as usize, i % 1000);
        }
        assert_eq!(interner.len(), 1000);
        assert_eq!(interner.get(1), text(1).as_bytes());
    }
}
