//! Writes what blocks of a row group share.

use super::{NOTHING, SYMBOLS, Shared, entries};

impl Shared {
    /// As [`Shared::read`] takes it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Shared::Nothing => out.push(NOTHING),
            Shared::Dictionary(dictionary) => entries::write(dictionary, &mut out),
            Shared::Symbols(own) => {
                let symbols: Vec<(u64, u8)> = own.table().symbols().collect();
                out.extend([SYMBOLS, symbols.len() as u8]);
                for (bytes, length) in symbols {
                    out.push(length);
                    out.extend_from_slice(&bytes.to_le_bytes()[..usize::from(length)]);
                }
            }
        }
        out
    }
}
