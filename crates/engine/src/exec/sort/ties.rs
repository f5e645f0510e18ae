//! Ties: rows whose codes are equal although their keys may differ.
//!
//! After a stretch has been sorted by code, each group of equal codes is put in its order:
//! - a small group by comparing values;
//! - a large one, if its code ends within a string, by the next sixteen bytes of that string, and so on: each
//!   string is fetched once for sixteen bytes rather than once per comparison. Rows that agree up to the end
//!   of the string are compared by values, beginning with the next key.

use super::codes::{Entry, SortCodes, padded};
use entasis_vector::Result;

/// The largest group that is sorted by comparing values.
const SMALL_GROUP: usize = 24;
/// Bytes of a string in one level.
const LEVEL_BYTES: usize = 16;

/// Resolves the ties of one stretch.
pub(super) struct Ties<'a, E> {
    /// How rows became codes.
    pub codes: &'a SortCodes<'a>,
    /// The row id of an entry.
    pub row: &'a (dyn Fn(&E) -> u32 + Sync),
    /// Fails when the statement must stop.
    pub check: &'a (dyn Fn() -> Result<()> + Sync),
}

impl<E: Entry> Ties<'_, E> {
    /// Puts `entries`, sorted by code, in the order of all keys.
    ///
    /// # Errors
    /// Those of `check`.
    pub(super) fn settle(&self, entries: &mut [E]) -> Result<()> {
        for group in entries.chunk_by_mut(|a, b| a.code() == b.code()) {
            match self.codes.text_to_go_on() {
                Some((column, from, descending)) if group.len() > SMALL_GROUP => {
                    self.by_text(group, column, from, descending)?;
                }
                _ => self.by_values(group),
            }
        }
        Ok(())
    }

    fn by_values(&self, group: &mut [E]) {
        if group.len() > 1 {
            group.sort_unstable_by(|a, b| {
                self.codes.compare((self.row)(a), (self.row)(b)).then_with(|| a.cmp(b))
            });
        }
    }

    /// Sorts a group whose strings in `column` are equal up to byte `from`.
    fn by_text(&self, group: &mut [E], column: usize, from: usize, descending: bool) -> Result<()> {
        (self.check)()?;
        let rows = self.codes.rows();
        let mut goes_on = false;
        let mut level: Vec<(u128, E)> = Vec::with_capacity(group.len());
        for entry in group.iter() {
            let view = rows.string((self.row)(entry), column);
            let rest = view.as_ref().map_or(&[][..], |view| view.as_bytes().get(from..).unwrap_or(&[]));
            goes_on |= rest.len() > LEVEL_BYTES;
            let code = padded(&rest[..rest.len().min(LEVEL_BYTES)]);
            level.push((if descending { !code } else { code }, *entry));
        }
        level.sort_unstable();
        group.iter_mut().zip(&level).for_each(|(entry, (_, sorted))| *entry = *sorted);
        let mut start = 0;
        for equal in level.chunk_by(|a, b| a.0 == b.0) {
            let group = &mut group[start..start + equal.len()];
            start += equal.len();
            if goes_on && group.len() > SMALL_GROUP {
                self.by_text(group, column, from + LEVEL_BYTES, descending)?;
            } else {
                self.by_values(group);
            }
        }
        Ok(())
    }
}
