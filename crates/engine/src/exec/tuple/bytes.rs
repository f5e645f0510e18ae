//! Tuples as plain bytes, for files, and back.
//!
//! ```text
//! | bytes of all tuples | their number | starts: one base for some tuples (4 bytes), a distance for each (2) |
//! ```
//! The number of starts follows from the layout and the number of rows, so it is not written.

use super::layout::TupleLayout;
use super::{Starts, Tuples};

impl Tuples {
    /// Adds these tuples to `out`.
    pub(in crate::exec) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.bytes);
        if let Starts::Near { bases, distances, .. } = &self.starts {
            bases.iter().for_each(|base| out.extend_from_slice(&base.to_le_bytes()));
            distances.iter().for_each(|distance| out.extend_from_slice(&distance.to_le_bytes()));
        }
    }

    /// The `rows` tuples of this layout that were written at the start of `bytes`, which is advanced past
    /// them; `None` if it is too short.
    pub(in crate::exec) fn read(layout: &TupleLayout, rows: usize, bytes: &mut &[u8]) -> Option<Tuples> {
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(taken)
        };
        let length = u64::from_le_bytes(take(8)?.try_into().ok()?);
        let own = take(usize::try_from(length).ok()?)?.to_vec();
        let mut starts = Starts::new(layout, rows);
        if let Starts::Near { shift, bases, distances } = &mut starts {
            let words = take(rows.div_ceil(1 << *shift) * 4)?.as_chunks::<4>().0;
            bases.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
            let words = take(rows * 2)?.as_chunks::<2>().0;
            distances.extend(words.iter().map(|word| u16::from_le_bytes(*word)));
        }
        Some(Tuples { bytes: own, starts })
    }
}
