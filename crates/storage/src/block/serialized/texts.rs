//! Strings as bytes in a file: concatenated, or compressed with LZ4 where that saves a fifth. In memory,
//! strings are read again and again and so stay uncompressed; in a file they are most of the bytes of many
//! tables, and are read once. Shared objects, codes of symbols and short strings are not compressed.
//!
//! Why LZ4: it has no state outside of a block, so that each is read independently; symbols (FSST) save a
//! little less and would have to be trained for each row group.

use super::reader::{Flaw, Reader, SHORT};
use crate::block::StringBytes;

/// Strings of fewer bytes stay as they are.
const LEAST: usize = 1 << 10;
/// LZ4 decompresses one byte to at most so many.
const MOST_OF_A_BYTE: usize = 255;
/// A flag added to the width of ends: the bytes are compressed.
const COMPRESSED: u8 = 0x10;

/// Appends strings: how wide their ends are, how many there are, the ends, and the bytes.
pub(super) fn write(strings: &StringBytes, out: &mut Vec<u8>) {
    let bytes = strings.parts().1;
    if bytes.len() >= LEAST {
        let compressed = lz4_flex::block::compress(bytes);
        if compressed.len() <= bytes.len() / 5 * 4 {
            write_ends(strings, COMPRESSED, out);
            out.extend((compressed.len() as u32).to_le_bytes());
            out.extend_from_slice(&compressed);
            return;
        }
    }
    write_plain(strings, out);
}

/// The same, never compressed.
pub(super) fn write_plain(strings: &StringBytes, out: &mut Vec<u8>) {
    write_ends(strings, 0, out);
    out.extend_from_slice(strings.parts().1);
}

fn write_ends(strings: &StringBytes, flag: u8, out: &mut Vec<u8>) {
    let (ends, bytes) = strings.parts();
    let is_short = bytes.len() <= u16::MAX.into();
    out.push(flag | if is_short { 2 } else { 4 });
    out.extend((ends.len() as u16).to_le_bytes());
    for end in ends {
        match is_short {
            true => out.extend((end as u16).to_le_bytes()),
            false => out.extend(end.to_le_bytes()),
        }
    }
}

impl Reader<'_> {
    /// As many strings as slots.
    pub(crate) fn strings(&mut self, slots: usize) -> Result<StringBytes, Flaw> {
        let form = self.u8()?;
        let (width, is_compressed) = (form & !COMPRESSED, form & COMPRESSED != 0);
        let count = usize::from(self.u16()?);
        if count != slots || !matches!(width, 2 | 4) {
            return Err("its number of strings");
        }
        let ends = self.ends(count, width)?;
        let length = ends.last().copied().unwrap_or(0) as usize;
        if !is_compressed {
            return Ok(StringBytes::new(&ends, self.take(length)?));
        }
        let compressed = self.cursor.u32().ok_or(SHORT)? as usize;
        let compressed = self.take(compressed)?;
        // Checked before memory is allocated for them.
        if length > compressed.len().saturating_mul(MOST_OF_A_BYTE) {
            return Err("strings that are too long for their bytes");
        }
        match lz4_flex::block::decompress(compressed, length) {
            Ok(bytes) if bytes.len() == length => Ok(StringBytes::of(&ends, bytes.into())),
            _ => Err("strings that are not compressed as they should be"),
        }
    }
}
