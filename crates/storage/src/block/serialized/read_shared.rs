//! Bytes to the object that blocks of a row group share.

use super::read::damaged;
use super::reader::{Flaw, Reader};
use super::{Column, NOTHING, PLAIN_DICTIONARY, SHORTENED_DICTIONARY, SYMBOLS, Shared};
use crate::block::fsst_codec::SymbolTable;
use entasis_vector::{DataType, Result};
use std::sync::Arc;

impl Shared {
    /// The inverse of [`Shared::to_bytes`].
    ///
    /// # Errors
    /// Corruption, if the bytes are no such object.
    pub fn read(bytes: &[u8], ty: DataType) -> Result<Shared> {
        let mut reader = Reader::new(bytes, Column::of(ty), &Shared::Nothing);
        let shared = reader.shared().map_err(damaged)?;
        match reader.cursor.left() {
            0 => Ok(shared),
            _ => Err(damaged("more bytes than what it shares has")),
        }
    }
}

impl Reader<'_> {
    fn shared(&mut self) -> Result<Shared, Flaw> {
        match self.u8()? {
            NOTHING => Ok(Shared::Nothing),
            PLAIN_DICTIONARY => self.plain_dictionary(),
            SYMBOLS => {
                let mut symbols = Vec::new();
                for _ in 0..self.u8()? {
                    let length = self.u8()?;
                    let bytes =
                        self.cursor.take(length.into()).filter(|bytes| bytes.len() <= 8).ok_or("a symbol")?;
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    symbols.push((u64::from_le_bytes(word), length));
                }
                let table = SymbolTable::of_symbols(&symbols).ok_or("symbols of no table")?;
                Ok(Shared::symbols(Arc::new(table)))
            }
            SHORTENED_DICTIONARY => self.shortened_dictionary(),
            _ => Err("what it shares is not known"),
        }
    }
}
