//! Selections: which positions of a group of columns are rows of the chunk.
//!
//! `All` means that row i is at position i. Otherwise row i is at position `indices[i]`; indices may
//! be unsorted and may repeat (a join that matches one row twice).

use crate::buffer::{Buffer, unique};
use crate::simd::widest;
use std::sync::Arc;

/// The end of `positions`: all are below.
// PERF: this loop vectorizes; `max`, which compares sequentially, took a seventh of the time of TPC-H Q1.
pub fn limit(positions: &[u16]) -> usize {
    match positions {
        [] => 0,
        _ => usize::from(widest(|| positions.iter().fold(0, |most, &position| position.max(most)))) + 1,
    }
}

/// The positions of a chunk's rows in the vectors of one group. Cheap to clone; the number of rows is the
/// chunk's.
#[derive(Debug, Clone, Default)]
pub struct Selection(Option<Arc<Buffer>>);

impl Selection {
    /// Row i at position i.
    pub const ALL: Selection = Selection(None);

    /// Row i at position `indices[i]`.
    pub fn from_indices(indices: &[u16]) -> Selection {
        Selection(Some(Arc::new(Buffer::from_slice(indices))))
    }

    /// A selection that shares a buffer of u16 positions.
    pub fn from_buffer(buffer: Arc<Buffer>) -> Selection {
        Selection(Some(buffer))
    }

    /// True if row i is at position i.
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// The positions of the first `rows` rows, or `None` for all.
    #[inline]
    pub fn indices(&self, rows: usize) -> Option<&[u16]> {
        self.0.as_ref().map(|buffer| &buffer.as_slice::<u16>()[..rows])
    }

    /// The position of row `row`.
    #[inline]
    pub fn position(&self, row: usize) -> usize {
        match &self.0 {
            None => row,
            Some(buffer) => buffer.as_slice::<u16>()[row] as usize,
        }
    }

    /// Narrows this selection to the rows that `picks` names: row i of the result is row `picks[i]` of the
    /// old one. `spare` is the buffer to write to, shared with the result; it is reused once no selection
    /// holds it.
    pub fn compose(&mut self, picks: &[u16], spare: &mut Arc<Buffer>) {
        let capacity = picks.len() * 2;
        let target = unique(spare, capacity.max(crate::CHUNK_ROWS * 2));
        let out = &mut target.as_mut_slice::<u16>()[..picks.len()];
        match &self.0 {
            None => out.copy_from_slice(picks),
            Some(old) => {
                let old = old.as_slice::<u16>();
                for (o, &pick) in out.iter_mut().zip(picks) {
                    *o = old[pick as usize];
                }
            }
        }
        self.0 = Some(spare.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composition_applies_the_picks_to_the_old_positions() {
        let mut spare = Arc::new(Buffer::zeroed(0));
        let mut selection = Selection::ALL;
        selection.compose(&[1, 3, 3, 7], &mut spare);
        assert_eq!(selection.indices(4), Some(&[1u16, 3, 3, 7][..]));
        selection.compose(&[3, 0], &mut spare);
        assert_eq!(selection.indices(2), Some(&[7u16, 1][..]));
        assert_eq!(selection.position(0), 7);
    }
}
