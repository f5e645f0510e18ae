//! Length codes and the tables that decode them (sections 3.3.2 and 3.3.3 of the paper).
//!
//! A code is the index of a length in its field's list, shortest length first; a field that may be NULL has
//! length 0 as its first. Codes are packed first fit: the first byte takes the first field and every later
//! one that still fits, the next byte continues with the others. The fields of part 4 are in the order of
//! their codes, so a field starts after all fields of earlier bytes and those before it in its own byte: its
//! start is the sum of one total for each earlier byte and one entry of its own byte's table.
//!
//! If all codes together have [`UNIVERSAL_BITS`] or fewer and take two bytes, fields of the second byte have
//! a *universal* table, which is indexed by both.

/// The most bits of codes for a universal table: 4096 entries of two bytes per field.
const UNIVERSAL_BITS: u32 = 12;

/// How a field's length is coded.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// The byte of codes that has it.
    pub byte: usize,
    /// Its lowest bit there.
    pub shift: u32,
    /// The length in bytes that each code stands for.
    pub lengths: Vec<u8>,
}

impl Code {
    /// The code in its byte.
    pub fn of(&self, byte: u8) -> u8 {
        byte >> self.shift & ((1u16 << bits_of(&self.lengths)) - 1) as u8
    }

    /// For each number of bytes that a value needs, 0 to 16, the code of the shortest length with room for
    /// it. A value that needs no byte takes one.
    pub fn for_bytes(&self, nullable: bool) -> [u8; 17] {
        let first = usize::from(nullable);
        std::array::from_fn(|bytes| {
            let lengths = &self.lengths[first..];
            let code =
                lengths.iter().position(|&length| length as usize >= bytes).unwrap_or(lengths.len() - 1);
            (first + code) as u8
        })
    }
}

/// Bits that distinguish `lengths`.
fn bits_of(lengths: &[u8]) -> u32 {
    usize::BITS - (lengths.len() - 1).leading_zeros()
}

/// Where a field starts after the fields of earlier bytes, and its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FieldPlace {
    pub offset: u8,
    pub length: u8,
}

/// The codes of all fields of a layout, packed, and the tables to decode them.
#[derive(Debug)]
pub(super) struct TupleCodes {
    codes: Vec<Code>,
    /// The codes in the order of their fields in part 4.
    order: Vec<usize>,
    /// Used bits of each byte.
    bits: Vec<u32>,
    /// For each byte, the sum of its fields' lengths; for a universal table, one sum for both bytes.
    totals: Vec<Vec<u8>>,
    /// For each code, the place of its field.
    places: Vec<Vec<FieldPlace>>,
}

impl TupleCodes {
    /// Packs codes for fields with these lengths; code i belongs to `lengths[i]`, a list of one to eight
    /// lengths.
    pub fn new(lengths: Vec<Vec<u8>>) -> TupleCodes {
        let mut left: Vec<usize> = (0..lengths.len()).collect();
        let mut codes: Vec<Code> =
            lengths.into_iter().map(|lengths| Code { byte: 0, shift: 0, lengths }).collect();
        let (mut order, mut bits) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let mut used = 0;
            left.retain(|&i| {
                let needed = bits_of(&codes[i].lengths);
                if used + needed > 8 {
                    return true;
                }
                (codes[i].byte, codes[i].shift) = (bits.len(), used);
                order.push(i);
                used += needed;
                false
            });
            bits.push(used);
        }
        let mut packed = TupleCodes { codes, order, bits, totals: Vec::new(), places: Vec::new() };
        packed.totals = packed
            .tables()
            .map(|bytes| packed.table(bytes, None).map(|place| place.offset).collect())
            .collect();
        packed.places = (0..packed.codes.len())
            .map(|i| {
                let byte = packed.codes[i].byte;
                let bytes = if packed.takes_both(i) { 0..2 } else { byte..byte + 1 };
                packed.table(bytes, Some(i)).collect()
            })
            .collect();
        packed
    }

    /// The bytes of codes that each table is indexed by.
    fn tables(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let each = if self.is_universal() { 2 } else { 1 };
        (0..self.bits.len() / each).map(move |i| i * each..(i + 1) * each)
    }

    /// The place of a code's field (`None`: the end of all fields) for every content of these bytes of codes.
    fn table(
        &self,
        bytes: std::ops::Range<usize>,
        wanted: Option<usize>,
    ) -> impl Iterator<Item = FieldPlace> + '_ {
        let first = bytes.start;
        let bits: u32 = self.bits[bytes.clone()].iter().sum();
        // A byte of codes has no other bits set, but a table without gaps needs no bounds checks.
        let size = if bytes.len() == 1 { 8 } else { bits };
        (0..1usize << size).map(move |content| {
            let mut offset = 0;
            for &i in self.order.iter().filter(|&&i| bytes.contains(&self.codes[i].byte)) {
                let code = &self.codes[i];
                let before: u32 = self.bits[first..code.byte].iter().sum();
                // Codes without a length occur in no tuple.
                let length =
                    code.lengths.get(code.of((content >> before) as u8) as usize).copied().unwrap_or(0);
                if wanted == Some(i) {
                    return FieldPlace { offset, length };
                }
                offset += length;
            }
            FieldPlace { offset, length: 0 }
        })
    }

    /// True if there are universal tables.
    pub fn is_universal(&self) -> bool {
        self.bits.len() == 2 && self.bits.iter().sum::<u32>() <= UNIVERSAL_BITS
    }
    /// True if a code's places are indexed by both bytes. The starts of the first byte's fields depend on
    /// that byte alone.
    pub fn takes_both(&self, i: usize) -> bool {
        self.is_universal() && self.codes[i].byte == 1
    }
    /// Used bits of the first byte.
    pub fn first_bits(&self) -> u32 {
        self.bits[0]
    }
    /// The number of bytes of codes.
    pub fn bytes(&self) -> usize {
        self.bits.len()
    }
    /// One code.
    pub fn code(&self, i: usize) -> &Code {
        &self.codes[i]
    }
    /// The codes in the order of their fields.
    pub fn order(&self) -> &[usize] {
        &self.order
    }
    /// The places of a code's field, by the content of its byte or of both.
    pub fn places(&self, i: usize) -> &[FieldPlace] {
        &self.places[i]
    }
    /// The total length of all fields, by the content of each byte or of both.
    pub fn totals(&self) -> &[Vec<u8>] {
        &self.totals
    }
    /// The most bytes that all fields together take.
    pub fn longest(&self) -> usize {
        self.codes.iter().map(|code| *code.lengths.last().expect("one length or more") as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's example: a, b, d and e are nullable integers, c is a double and f an integer without
    /// NULLs.
    #[test]
    fn the_tables_are_those_of_the_paper() {
        let (integer, null) = (vec![1, 2, 3, 4], vec![0, 1, 2, 3, 4]);
        let lengths = [null.clone(), null.clone(), vec![4, 8], null.clone(), null, integer];
        let codes = TupleCodes::new(lengths.to_vec());
        let at = |i: usize| (codes.code(i).byte, codes.code(i).shift);
        assert_eq!([0, 1, 2, 3, 4, 5].map(at), [(0, 0), (0, 3), (0, 6), (1, 0), (1, 3), (1, 6)]);
        assert!(!codes.is_universal());
        // a: 2 bytes, b: NULL, c: 8, d: 3, e: NULL, f: 4.
        let bytes = [2 | 1 << 6, 3 | 3 << 6];
        assert_eq!(codes.totals()[0][bytes[0]], 10);
        assert_eq!(codes.places(4)[bytes[1]], FieldPlace { offset: 3, length: 0 });
        assert_eq!(codes.places(5)[bytes[1]], FieldPlace { offset: 3, length: 4 });
    }

    #[test]
    fn later_fields_fill_earlier_bytes() {
        let codes =
            TupleCodes::new(vec![vec![0, 1, 2, 3, 4]; 3].into_iter().chain([vec![1, 2, 3, 4]]).collect());
        assert_eq!(codes.order(), [0, 1, 3, 2]);
        assert!(codes.is_universal(), "11 bits");
        // From the top: 2 bytes, 4 bytes, 1 byte, 4 bytes.
        let packed = 2 << 8 | 3 << 6 | 1 << 3 | 4;
        assert_eq!(codes.places(2)[packed], FieldPlace { offset: 4 + 4 + 1, length: 2 });
    }
}
