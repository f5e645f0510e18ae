//! Numbers and checksums in bytes read from, or to be written to, a disk: little-endian, at fixed places or
//! in sequence.
//!
//! [`Cursor`] never reads beyond its bytes, and any length that it returns is of bytes that exist: so memory
//! allocated for what is read is at most a small multiple of the input.

use twox_hash::XxHash64;

/// The checksum of bytes under a seed that names their place.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    XxHash64::oneshot(seed, bytes)
}

/// The number at a fixed place of a record of a given length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The number at a fixed place of a record of a given length.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Puts bytes at a fixed place of a record of a given length.
pub(crate) fn put_at(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Bytes that are read from their beginning; `None` where they end too early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(&'a [u8]);

macro_rules! numbers {
    ($($name:ident $t:ty;)*) => { $(
        /// The next number.
        pub(crate) fn $name(&mut self) -> Option<$t> {
            let (number, rest) = self.0.split_first_chunk()?;
            self.0 = rest;
            Some(<$t>::from_le_bytes(*number))
        }
    )* };
}

impl<'a> Cursor<'a> {
    /// All of some bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor(bytes)
    }

    /// The number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    /// The next bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    numbers! {
        u8 u8;
        u16 u16;
        u32 u32;
        u64 u64;
        i32 i32;
        i64 i64;
        i128 i128;
        f64 f64;
    }

    /// A number in groups of seven bits, the lowest first.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// An integer as [`push_zigzag`] writes it.
    // PERF: most numbers have 63 bits at most, and to shift 128 takes several instructions for each byte.
    #[inline]
    pub(crate) fn zigzag(&mut self) -> Option<i128> {
        let mut number = 0u64;
        for (at, &byte) in self.0.iter().take(9).enumerate() {
            number |= u64::from(byte & 0x7F) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(((number >> 1) as i64 ^ -((number & 1) as i64)).into());
            }
        }
        self.wide_zigzag()
    }

    /// The same for integers of up to 128 bits.
    #[cold]
    fn wide_zigzag(&mut self) -> Option<i128> {
        let mut number = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.u8()?;
            let bits = u128::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some((number >> 1) as i128 ^ -((number & 1) as i128));
            }
        }
        None
    }

    /// A length, and that many bytes.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.take(count)
    }
}

/// Appends what [`Cursor::varint`] reads.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7F {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends an integer in groups of seven bits, the lowest first: 0, -1, 1, -2 and so on as 0, 1, 2, 3
/// (zigzag).
pub(crate) fn push_zigzag(out: &mut Vec<u8>, number: i128) {
    let mut number = (number << 1 ^ number >> 127) as u128;
    while number > 0x7F {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends what [`Cursor::counted`] reads.
pub(crate) fn push_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in (0..64).map(|bit| 1u64 << bit).flat_map(|bit| [bit - 1, bit, bit + 1]).chain([u64::MAX])
        {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, number);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!((cursor.varint(), cursor.left()), (Some(number), 0));
            assert_eq!(Cursor::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
        assert_eq!(Cursor::new(&[0xFF; 10]).varint(), None);
        let integers = (0..127).map(|bit| 1i128 << bit).flat_map(|bit| [bit - 1, bit, -bit, -bit - 1]);
        for number in integers.chain([i128::MIN, i128::MAX]) {
            let mut bytes = Vec::new();
            push_zigzag(&mut bytes, number);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!((cursor.zigzag(), cursor.left()), (Some(number), 0));
            assert_eq!(Cursor::new(&bytes[..bytes.len() - 1]).zigzag(), None);
        }
        assert_eq!(Cursor::new(&[0xFF; 19]).zigzag(), None);
        let mut bytes = Vec::new();
        push_counted(&mut bytes, b"abc");
        assert_eq!(Cursor::new(&bytes).counted(), Some(&b"abc"[..]));
        assert_eq!(Cursor::new(&bytes[..3]).counted(), None);
    }

    /// Files must remain readable for ever, so the checksum must never change.
    #[test]
    fn the_checksum_is_xxh64() {
        assert_eq!(checksum(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(checksum(b"abc", 0), 0x44BC_2CF5_AD77_0999);
    }
}
