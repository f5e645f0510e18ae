//! The table of joins without keys: every row is a candidate of every row.

use super::{Cursor, JoinTable, Pairs, ProbeKeys};
use crate::exec::materialized::Materialized;
use entasis_vector::CHUNK_ROWS;

/// Every row is a candidate of every row.
///
/// Each step pairs all probe rows with a few build rows: as many as fill a chunk.
pub(crate) struct Everything {
    ids: Vec<u32>,
}

impl Everything {
    pub(super) fn new(rows: &Materialized) -> Everything {
        Everything { ids: rows.ids().collect() }
    }

    fn fill(&self, pairs: &mut Pairs, cursor: &mut Cursor) {
        pairs.clear();
        let stride = (CHUNK_ROWS / cursor.count.max(1)).max(1);
        let end = (cursor.at + stride).min(self.ids.len());
        for &id in &self.ids[cursor.at..end] {
            pairs.rows.extend(0..cursor.count as u16);
            pairs.ids.resize(pairs.rows.len(), id);
        }
        cursor.at = end;
    }
}

impl JoinTable for Everything {
    fn first(&self, keys: &mut ProbeKeys, pairs: &mut Pairs, cursor: &mut Cursor) {
        *cursor = Cursor { at: 0, count: keys.count() };
        self.fill(pairs, cursor);
    }
    fn next(&self, pairs: &mut Pairs, cursor: &mut Cursor) {
        self.fill(pairs, cursor);
    }
    fn is_exact(&self) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        self.ids.len() * 4
    }
}
