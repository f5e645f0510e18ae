//! A cursor over the bytes of an extent or a log record. Whatever the bytes are, reading them gives a value
//! or an error; for an extent the error names the file and the place.

use crate::backend::bytes::{Cursor, push_counted, push_varint};
use crate::file::{DataFile, Extent};
use crate::record::damaged;
use entasis_vector::{Error, Result};

/// A cursor over bytes that are not trusted.
pub(super) struct Source<'a> {
    /// The file and the offset of the first byte; `None` for a log record, whose place the caller knows.
    place: Option<(&'a DataFile, u64)>,
    /// The number of bytes.
    length: usize,
    cursor: Cursor<'a>,
}

impl<'a> Source<'a> {
    /// A cursor over all bytes of an extent.
    pub(super) fn new(file: &'a DataFile, extent: Extent, bytes: &'a [u8]) -> Source<'a> {
        Source { place: Some((file, extent.offset)), length: bytes.len(), cursor: Cursor::new(bytes) }
    }

    /// A cursor over the rest of a record.
    pub(super) fn of_record(cursor: Cursor<'a>) -> Source<'a> {
        Source { place: None, length: cursor.left(), cursor }
    }

    /// The error that something is wrong at the present position.
    pub(super) fn flaw(&self, what: &str) -> Error {
        match self.place {
            Some((file, at)) => file.damaged(at + (self.length - self.cursor.left()) as u64, what),
            None => damaged(what),
        }
    }

    /// An error unless `holds`.
    pub(super) fn check(&self, holds: bool, what: &str) -> Result<()> {
        if holds { Ok(()) } else { Err(self.flaw(what)) }
    }

    fn whole<T>(&self, found: Option<T>) -> Result<T> {
        found.ok_or_else(|| self.flaw("it ends too early"))
    }

    /// True if all bytes have been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.cursor.left() == 0
    }

    /// An error unless all bytes have been read.
    pub(super) fn end(&self) -> Result<()> {
        self.check(self.is_at_end(), "there is more than there should be")
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        let found = self.cursor.u8();
        self.whole(found)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        let found = self.cursor.u16();
        self.whole(found)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        let found = self.cursor.u64();
        self.whole(found)
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        let found = self.cursor.i64();
        self.whole(found)
    }

    pub(super) fn f64(&mut self) -> Result<f64> {
        let found = self.cursor.f64();
        self.whole(found)
    }

    pub(super) fn varint(&mut self) -> Result<u64> {
        let found = self.cursor.varint();
        self.whole(found)
    }

    /// A number that fits into `usize`.
    pub(super) fn size(&mut self) -> Result<usize> {
        let found = self.varint()?;
        usize::try_from(found).map_err(|_| self.flaw("a number that is too large"))
    }

    /// A number below a bound.
    pub(super) fn below(&mut self, bound: usize, what: &str) -> Result<usize> {
        let found = self.size()?;
        self.check(found < bound, what)?;
        Ok(found)
    }

    /// The number of items that follow, each of at least so many bytes: there cannot be more of them than the
    /// remaining bytes allow, so that damaged numbers take no memory.
    pub(super) fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let found = self.size()?;
        let needed = found.checked_mul(bytes_each);
        self.check(needed.is_some_and(|needed| needed <= self.cursor.left()), "it ends too early")?;
        Ok(found)
    }

    pub(super) fn bool(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.flaw("a number that is neither true nor false")),
        }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let found = self.cursor.take(count);
        self.whole(found)
    }

    /// A length, and that many bytes.
    pub(super) fn counted(&mut self) -> Result<&'a [u8]> {
        let found = self.cursor.counted();
        self.whole(found)
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        let bytes = self.counted()?;
        std::str::from_utf8(bytes).map_err(|_| self.flaw("a text that is not UTF-8"))
    }

    /// A value of a table, by its index.
    pub(super) fn one_of<T: Copy>(&mut self, table: &[T], what: &str) -> Result<T> {
        let number = self.u8()?;
        table.get(usize::from(number)).copied().ok_or_else(|| self.flaw(what))
    }

    /// A reference to an extent.
    pub(super) fn extent(&mut self) -> Result<Extent> {
        let mut bytes = [0; Extent::SIZE];
        bytes.copy_from_slice(self.bytes(Extent::SIZE)?);
        Ok(Extent::from_bytes(&bytes))
    }

    /// An optional value, after a byte that says whether it is there.
    pub(super) fn maybe<T>(&mut self, read: impl FnOnce(&mut Source<'a>) -> Result<T>) -> Result<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    /// A list: its length, and its elements, each of at least a byte.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Source<'a>) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count(1)?).map(|_| read(self)).collect()
    }
}

/// Appends what [`Source::text`] reads.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    push_counted(out, text.as_bytes());
}

/// Appends what [`Source::one_of`] reads; the table must have the value.
pub(super) fn push_one_of<T: PartialEq>(out: &mut Vec<u8>, table: &[T], value: &T) {
    let number = table.iter().position(|other| other == value);
    debug_assert!(number.is_some(), "the table has all values");
    out.push(number.unwrap_or(usize::from(u8::MAX)) as u8);
}

/// Appends what [`Source::maybe`] reads.
pub(super) fn push_maybe<T>(out: &mut Vec<u8>, value: Option<T>, push: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        push(out, value);
    }
}

/// Appends what [`Source::list`] reads.
pub(super) fn push_list<T>(out: &mut Vec<u8>, values: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
    push_varint(out, values.len() as u64);
    values.iter().for_each(|value| push(out, value));
}
