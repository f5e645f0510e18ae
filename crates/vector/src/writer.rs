//! Strings that are made piece by piece and may become long: each has as much memory as its statement has
//! ([`crate::statement`]), and is made with looks whether the statement may go on.
//!
//! A [`StringMaker`] makes the strings of a vector, one after another: its caller writes each to a
//! [`Writer`]. Short ones are copied into the vector's heap. A long one is not: its memory becomes the
//! heap's.

use crate::statement::{Charge, LONGEST, Looks, STEP, pieces, reserve, too_long};
use crate::string::{StringHeap, StringView};
use crate::{Error, Result};
use std::fmt;

/// Bytes from which on a string is charged, and keeps the memory to which it was written.
const LONG: usize = 1 << 16;

/// Makes strings. See the module.
#[derive(Debug, Default)]
pub struct StringMaker {
    buffer: Vec<u8>,
    looks: Looks,
}

impl StringMaker {
    /// The string that `write` writes, in `heap`; `None` if it returns false.
    ///
    /// # Errors
    /// Those of `write`; interrupted; resource, if there is not enough memory or the string is too long.
    #[inline]
    pub fn make(
        &mut self,
        heap: &mut StringHeap,
        write: impl FnOnce(&mut Writer<'_>) -> Result<bool>,
    ) -> Result<Option<StringView>> {
        if self.buffer.capacity() > LONG {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        let mut writer = Writer::new(&mut self.buffer, &mut self.looks);
        let is_there = write(&mut writer)?;
        let bytes = writer.len();
        writer.room(bytes)?;
        let Writer { charge, failure, .. } = writer;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if !is_there {
            return Ok(None);
        }
        if bytes < LONG {
            heap.ask(bytes)?;
            return Ok(Some(heap.push(&self.buffer)));
        }
        if self.buffer.capacity() > bytes + bytes / 4 {
            let _both = reserve(bytes)?;
            move_to(&mut self.buffer, bytes, &mut self.looks)?;
        }
        heap.keep_charge(charge);
        let number = heap.adopt(std::mem::take(&mut self.buffer));
        Ok(Some(heap.view(number, 0..bytes)))
    }
}

/// Receives the text or the bytes of one string. Before much is appended at once it must be announced
/// ([`Writer::room`]); what is formatted (`write!`) announces itself.
#[derive(Debug)]
pub struct Writer<'a> {
    /// What was written.
    pub buffer: &'a mut Vec<u8>,
    looks: &'a mut Looks,
    /// The memory of a long string.
    charge: Option<Charge>,
    /// Bytes for which there is memory.
    asked: usize,
    /// Bytes that were counted for looks.
    counted: usize,
    /// Why nothing more could be formatted.
    failure: Option<Error>,
}

impl<'a> Writer<'a> {
    fn new(buffer: &'a mut Vec<u8>, looks: &'a mut Looks) -> Writer<'a> {
        Writer { buffer, looks, charge: None, asked: 0, counted: 0, failure: None }
    }

    /// A writer of another string, to `buffer`, which is a part of this one.
    pub fn beside<'b>(&'b mut self, buffer: &'b mut Vec<u8>) -> Writer<'b> {
        Writer::new(buffer, self.looks)
    }

    /// Makes room for `bytes` bytes in total, and looks now and then whether the statement may go on.
    ///
    /// # Errors
    /// Interrupted; resource, if there is not enough memory or the string would be too long.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.counted {
            if bytes > LONGEST {
                return Err(too_long(bytes));
            }
            self.looks.after(bytes - self.counted)?;
            self.counted = bytes;
        }
        if bytes < LONG || bytes <= self.asked { Ok(()) } else { self.ask(bytes) }
    }

    #[cold]
    fn ask(&mut self, bytes: usize) -> Result<()> {
        // Exactly, if it is announced once; by a quarter more, if it is announced piece by piece.
        let bytes = bytes.max(self.asked + self.asked / 4).min(LONGEST);
        // What was written is there twice until it has been moved.
        let charge = reserve(bytes)?;
        if self.buffer.capacity() < bytes {
            move_to(self.buffer, bytes, self.looks)?;
        }
        self.charge = charge;
        self.asked = bytes;
        Ok(())
    }

    /// Makes room for `bytes` more.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    #[inline]
    pub fn more(&mut self, bytes: usize) -> Result<()> {
        self.room(self.len().saturating_add(bytes))
    }

    /// Counts bytes that were read for the string, without which it does not grow, for looks.
    ///
    /// # Errors
    /// Interrupted.
    #[inline]
    pub fn read(&mut self, bytes: usize) -> Result<()> {
        self.looks.after(bytes)
    }

    /// Appends text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Appends bytes; for a VARCHAR they must be UTF-8.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends a character.
    #[inline]
    pub fn char(&mut self, c: char) {
        self.text(c.encode_utf8(&mut [0; 4]));
    }

    /// Appends any number of bytes.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Result<()> {
        self.more(bytes.len())?;
        if bytes.len() < STEP {
            self.bytes(bytes);
            return Ok(());
        }
        self.copy_in_steps(bytes)
    }

    #[cold]
    fn copy_in_steps(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(STEP) {
            self.bytes(piece);
            self.read(piece.len())?;
        }
        Ok(())
    }

    /// Appends what `write` writes for each character of a text, which is about as long.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    #[inline]
    pub fn each(&mut self, text: &str, mut write: impl FnMut(char, &mut Writer<'_>)) -> Result<()> {
        for piece in pieces(text) {
            let piece = piece?;
            self.more(piece.len())?;
            piece.chars().for_each(|c| write(c, self));
        }
        Ok(())
    }

    /// Appends what `write` writes for some of the bytes, about a [`STEP`] and a multiple of `unit` but for
    /// the last, which is about as long.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    pub fn each_part(
        &mut self,
        bytes: &[u8],
        unit: usize,
        mut write: impl FnMut(&[u8], &mut Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        for part in bytes.chunks(STEP / unit * unit) {
            self.more(part.len())?;
            write(part, self)?;
        }
        Ok(())
    }

    /// Appends bytes `n` times.
    ///
    /// # Errors
    /// Those of [`Writer::room`].
    pub fn repeat(&mut self, part: &[u8], n: usize) -> Result<()> {
        let total = part.len().saturating_mul(n);
        self.more(total)?;
        if part.len() >= STEP {
            return (0..n).try_for_each(|_| self.copy(part));
        }
        let start = self.len();
        if n > 0 {
            self.bytes(part);
        }
        // Doubles what is written already, by whole parts.
        let most = (STEP / part.len().max(1)).max(1) * part.len();
        while self.len() - start < total {
            let there = self.len() - start;
            let more = there.min(total - there).min(most);
            self.buffer.extend_from_within(start..start + more);
            self.read(more)?;
        }
        Ok(())
    }

    /// Number of bytes so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

/// Gives a buffer exactly so much room, and moves what it has with looks: an allocator would copy all of a
/// long string at once, which takes longer than an interrupt may.
///
/// # Errors
/// Interrupted.
fn move_to(buffer: &mut Vec<u8>, bytes: usize, looks: &mut Looks) -> Result<()> {
    let mut moved = Vec::with_capacity(bytes.max(buffer.len()));
    for piece in buffer.chunks(STEP) {
        moved.extend_from_slice(piece);
        looks.after(piece.len())?;
    }
    *buffer = moved;
    Ok(())
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Err(error) = self.more(text.len()) {
            self.failure.get_or_insert(error);
            return Err(fmt::Error);
        }
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Statement, pieces, within};
    use std::fmt::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the looks, and has memory for so many bytes, each taken once.
    struct Counted(AtomicUsize, usize);

    impl Statement for Counted {
        fn check(&self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn reserve(&self, bytes: usize) -> Result<Charge> {
            if bytes <= self.1 { Ok(Box::new(())) } else { Err(Error::resource("no more")) }
        }
        fn charge(&self, _: usize) -> Charge {
            Box::new(())
        }
    }

    /// The outcome of `work`, and how often it looks.
    fn looks<T>(memory: usize, work: impl FnOnce() -> T) -> (T, usize) {
        let statement = Arc::new(Counted(AtomicUsize::new(0), memory));
        let outcome = within(statement.clone(), work);
        (outcome, statement.0.load(Ordering::Relaxed))
    }

    #[test]
    fn strings_of_all_lengths_are_made() {
        let (mut maker, mut heap) = (StringMaker::default(), StringHeap::charged());
        let mut made = Vec::new();
        for length in [0, 1, 12, 13, 5000, LONG - 1, LONG, LONG + 1, 3 * STEP + 5, 20] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let (by_bytes, by_format, by_copy) = looks(usize::MAX, || {
                let by_bytes = maker.make(&mut heap, |out| {
                    out.bytes(text.as_bytes());
                    Ok(true)
                });
                let by_format = maker.make(&mut heap, |out| Ok(write!(out, "{text}").is_ok()));
                let by_copy = maker.make(&mut heap, |out| out.copy(text.as_bytes()).map(|()| true));
                (by_bytes, by_format, by_copy)
            })
            .0;
            made.push((text, [by_bytes, by_format, by_copy].map(|view| view.unwrap().unwrap())));
        }
        assert_eq!(maker.make(&mut heap, |_| Ok(false)).unwrap(), None);
        for (text, views) in &made {
            assert!(views.iter().all(|view| view.as_str() == text), "{} bytes", text.len());
        }
    }

    #[test]
    fn a_string_that_grows_is_moved_with_looks() {
        const LENGTH: usize = 64 * STEP;
        let mut heap = StringHeap::charged();
        let mut maker = StringMaker::default();
        let moved = AtomicUsize::new(0);
        let write = |out: &mut Writer<'_>| {
            let mut place = out.buffer.as_ptr();
            for _ in 0..LENGTH / 1000 {
                out.more(1000)?;
                if out.buffer.as_ptr() != place {
                    place = out.buffer.as_ptr();
                    moved.fetch_add(out.len(), Ordering::Relaxed);
                }
                out.bytes(&[b'x'; 1000]);
            }
            Ok(true)
        };
        let (made, seen) = looks(usize::MAX, || maker.make(&mut heap, write));
        assert_eq!(made.unwrap().unwrap().as_bytes().len(), LENGTH / 1000 * 1000);
        let moved = moved.into_inner();
        assert!(moved > 2 * LENGTH, "only {moved} bytes were moved");
        // What is announced counts, and so does what is moved; a look forgets what is above a step.
        assert!(seen * STEP >= (LENGTH + moved) / 10 * 9, "{seen} looks for {LENGTH} and {moved} bytes");
    }

    #[test]
    fn what_is_formatted_ends_where_memory_does() {
        let (mut maker, mut heap) = (StringMaker::default(), StringHeap::charged());
        let write = |out: &mut Writer<'_>| {
            let written = (0..STEP).try_for_each(|_| write!(out, "{:>100}", "x"));
            assert!(written.is_err() && out.len() < 3 * STEP, "{} bytes", out.len());
            Ok(true)
        };
        let (made, _) = looks(2 * STEP, || maker.make(&mut heap, write));
        assert_eq!(made.unwrap_err().message(), "no more");
    }

    #[test]
    fn a_long_text_comes_in_pieces_with_looks_between() {
        for (text, length) in [("", 0), ("a", STEP), ("a", STEP + 1), ("ä€🦀", 5 * STEP)] {
            let text: String = text.chars().cycle().take(length).collect();
            let (parts, seen) = looks(0, || pieces(&text).map(|piece| piece.unwrap()).collect::<Vec<_>>());
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.len() <= STEP));
            assert_eq!(seen, parts.len() - 1);
            assert!(parts.len() >= text.len().div_ceil(STEP) && parts.len() <= text.len().div_ceil(STEP) + 1);
        }
    }
}
