//! Strings one after the other, with the end of each: what has neither a dictionary nor symbols.

use super::StringBytes;
use super::codec::{Codec, TextCodec};
use super::example::{Example, scattered, text};
use super::serialized::{BlockWriter, Flaw, Reader};
use crate::definition::Compression;
use entasis_vector::{StringHeap, StringView};

/// The strings.
#[derive(Debug, Clone)]
pub(crate) struct Concatenated(pub(crate) StringBytes);

impl Codec for Concatenated {
    const NAME: &'static str = "strings";
    const EXAMPLES: &'static [Example] = &[Example::of_texts(Self::NAME, Compression::Strings, 2.0, |row| {
        text(format!("value {}", scattered(row)))
    })];

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn write(&self, out: &mut BlockWriter<'_>) {
        out.texts(&self.0);
    }

    fn read(reader: &mut Reader<'_>, slots: usize) -> Result<Concatenated, Flaw> {
        let strings = reader.strings(slots)?;
        reader.check_texts(&strings)?;
        Ok(Concatenated(strings))
    }
}

impl TextCodec for Concatenated {
    #[inline]
    fn get(&self, slot: usize) -> &[u8] {
        self.0.get(slot)
    }

    #[inline]
    fn view(&self, slot: usize, _: &mut StringHeap) -> StringView {
        self.0.view(slot)
    }

    fn views(&self, from: usize, _: &[u64], out: &mut [StringView], _: &mut StringHeap) {
        self.0.views(from, out);
    }

    fn copy(&self, _: usize, _: &[u64]) -> Concatenated {
        self.clone()
    }
}
