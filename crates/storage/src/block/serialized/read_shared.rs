//! Bytes to the object that blocks of a row group share.

use super::read::{Flaw, Reader, damaged};
use super::{Column, Shared};
use crate::backend::bytes::Cursor;
use crate::block::symbols::SymbolTable;
use entasis_vector::{DataType, Dictionary, PhysicalType, Result, Vector};
use std::sync::Arc;

impl Shared {
    /// The inverse of [`Shared::to_bytes`].
    ///
    /// # Errors
    /// Corruption, if the bytes are no such object.
    pub fn read(bytes: &[u8], ty: DataType) -> Result<Shared> {
        let mut reader =
            Reader { cursor: Cursor::new(bytes), column: Column::of(ty), shared: &Shared::Nothing };
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
            0 => Ok(Shared::Nothing),
            1 => self.dictionary(),
            2 => {
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
            _ => Err("what it shares is not known"),
        }
    }

    fn dictionary(&mut self) -> Result<Shared, Flaw> {
        let count =
            self.cursor.varint().and_then(|count| usize::try_from(count).ok()).ok_or("its dictionary")?;
        let bytes =
            count.checked_mul(4).filter(|bytes| *bytes <= self.cursor.left()).ok_or("its dictionary")?;
        let mut ends = Cursor::new(self.cursor.take(bytes).ok_or("its dictionary")?);
        let (mut texts, mut start, mut last) = (Vector::new(PhysicalType::Str), 0, None);
        let strings = texts.begin_strings(count);
        for rank in 0..count {
            let end = ends.u32().ok_or("its dictionary")?;
            let length = end.checked_sub(start).ok_or("the ends of its dictionary")?;
            let entry = self.cursor.take(length as usize).ok_or("its dictionary")?;
            // Codes are compared instead of strings, and strings are found by binary search.
            if last.is_some_and(|last| last >= entry) {
                return Err("the order of its dictionary");
            }
            if self.column.is_text && std::str::from_utf8(entry).is_err() {
                return Err("a text that is not UTF-8");
            }
            strings.views[rank] = strings.heap.push(entry);
            (start, last) = (end, Some(entry));
        }
        texts.set_strings_stable(true);
        Ok(Shared::Dictionary(Dictionary::new(texts, count)))
    }
}
